"""Figures 3 and 9: stability and adoption over the rounds of self-chats."""

from dataclasses import replace

from holdfast.analysis.estimate_rows import row_of
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.verdicts import UNDECIDED
from holdfast.papers.findings import Claim, Figure, claim_that, pngs
from holdfast.papers.li2024.li2024_setup import Li2024Setup
from holdfast.records import read_run
from holdfast.report.run_figures import write_figures

_POSITIONS = {  # of the system prompt, by `system_as`
    "role": "in the system role",
    "first-user": "before the first user message",
}


def figure_3(setup: Li2024Setup) -> Figure:
    """How well the agent keeps its own prompt, and how far it takes on the other's, by round."""
    (series,) = read_series(setup.self_chats("figure-3", setup.model, setup.settings))
    follows_less = "A: over eight rounds the model follows its own system prompt less and less."
    takes_on = "B: it begins to follow the prompt of its partner, which it never saw."
    return Figure(
        "3",
        "the agent lets go of its prompt, and takes on the other's",
        "Self-chat of two copies of the model, probed at every round.",
        images=pngs(write_figures([series], setup.figures("3"), whiskers=True), "drift"),
        claims=(
            _change_claim(follows_less, series, "stability", -1),
            _change_claim(takes_on, series, "adoption", +1),
        ),
    )


def figure_9(setup: Li2024Setup) -> Figure:
    """Like Figure 3 for a model behind an API, with the prompt in either of two places."""
    model = setup.other or setup.model
    series: dict[str, Series] = {}
    for system_as in _POSITIONS:
        if system_as == "role" and not setup.other:  # Figure 3 has these dialogs
            run = read_run(setup.out / "figure-3")
        else:
            settings = replace(setup.settings, system_as=system_as, adoption=False)
            run = setup.self_chats(f"figure-9-{system_as}", model, settings)
        series[system_as] = replace(read_series(run)[0], run=f"as {system_as}")
    text = "a model behind an API loses stability too, with the prompt {}."
    protocol = f"The endpoint {model.name}, with both places of the prompt."
    if not setup.other:
        protocol = (
            f"No endpoint was given (--endpoint), so this is the model itself ({model.name}), with"
            " both places of the prompt."
        )
    return Figure(
        "9",
        "the system prompt in its role, and before the first user message",
        protocol,
        images=pngs(
            write_figures(list(series.values()), setup.figures("9"), whiskers=True), "drift"
        ),
        claims=tuple(
            _change_claim(text.format(position), series[system_as], "stability", -1)
            for system_as, position in _POSITIONS.items()
        ),
    )


def _change_claim(text: str, series: Series, kind: str, sign: int) -> Claim:
    """Judges the claim that a kind of score rises (`sign` +1) or falls (-1) over the rounds."""
    row = row_of(series, kind)
    if series.rounds < 2 or not series.measured(kind):
        return Claim(text, UNDECIDED, f"{kind.capitalize()} was measured in one round only.")
    ends = f"from {row.points[0].mean:.3f} to {row.points[-1].mean:.3f}"
    return claim_that(text, row.change, sign, f"{kind.capitalize()} {ends}, change:")
