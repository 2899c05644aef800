"""The lines and the page of `holdfast trace`: how the mass decays, and whether scores follow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.statistics import estimate_of
from holdfast.analysis.study_summary import DIALOGS, MODELS
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.records import read_run
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.wording import with_interval

_CHANGES = {
    "between_turns": "between turns",
    "within_turns": "within turns",
    "slope": "slope per token",
}
_WHERE = {
    "all": "over all",
    "within_rounds": "within rounds",
    "within_dialogs": "within dialogs",
    "between_dialogs": "between dialogs",
}


def lines(trace: dict[str, Any]) -> list[str]:
    """The decay of the mass on the system prompt, and whether it correlates with the score."""
    layer, head = trace["shown_head"]
    words = "they rise together", "one falls as the other rises"
    parts = [
        f"{where} r = {_judged(trace['behaviour'][name], *words)}" for name, where in _WHERE.items()
    ]
    sentences = [
        _decay_line(trace, "average", "all heads"),
        _decay_line(
            trace,
            "head",
            f"head {layer}.{head}, chosen because its mass falls most here (so no intervals)",
        ),
        f"Mass and score of the probes: {'; '.join(parts)}.",
    ]
    if trace["whole_dialogs"] < MIN_SAMPLES:
        sentences.append(
            f"{trace['whole_dialogs']} whole dialogs are an example and not a measurement, "
            f"which takes {MIN_SAMPLES}."
        )
    return sentences


def _decay_line(trace: dict[str, Any], name: str, title: str) -> str:
    row = trace[name]
    masses = (estimate_of(row["mass"][at]) for at in (0, -1))
    if name == "head":
        first, last = (f"{mass.mean:.3f}" for mass in masses)
        verbs: tuple[str, ...] = ()
    else:
        first, last = (with_interval(mass, lambda value: f"{value:.3f}") for mass in masses)
        verbs = "rises", "falls"
    changes = []
    for where in ("between", "within"):
        change = row[f"{where}_turns"]
        measured = _judged(change["real"], *verbs) if verbs else _bare(change["real"])
        changes.append(f"{where} turns {measured} (even attention {_text(change['uniform'])})")
    return (
        f"{trace['model']}, {title}: mass {first} in round 1, {last} in round {trace['rounds']}."
        f" Log of the mass {'; '.join(changes)}."
    )


def _text(change: dict[str, Any]) -> str:
    """+0.123 [+0.100, +0.145]."""
    if change.get("low") is None:
        return "not measurable"
    return with_interval(estimate_of(change), lambda value: f"{value:+.3f}")


def _bare(change: dict[str, Any]) -> str:
    """+0.123, of a head that was chosen for its fall in the same dialogs."""
    return "not measurable" if change.get("mean") is None else f"{change['mean']:+.3f}"


def _judged(change: dict[str, Any], above: str, below: str) -> str:
    """+0.123 [+0.100, +0.145], rises; or, cannot tell."""
    return f"{_text(change)}, {verdict_on(estimate_of(change)).word(above, below)}"


def trace_page(traces: Sequence[dict[str, Any]], folder: Path) -> str:
    """The HTML of the page of one or two models, from traces by `analysis.decay.describe`."""
    runs = {name: read_run(folder / name) for name, _ in zip(MODELS, traces, strict=False)}
    first, last = (_share(traces[0]["average"]["mass"][at]) for at in (0, -1))
    figures, rounds = folder / "figures", traces[0]["rounds"]
    changes = "Change of the logarithm of the mass over a dialog, with 95% intervals"
    correlations = "Correlation of a probe’s mass with its score, with 95% intervals"
    return render_study(
        "trace",
        f"Of the attention of {traces[0]['model']}, its system prompt gets {first} in round 1 and"
        f" {last} in round {rounds}.",
        runs,
        (f"{traces[0]['dialogs']} dialogs of {rounds} rounds",),
        decay=pictures(
            figures,
            decay="Mass at each generated token; the later the round, the darker",
            models="The models side by side",
        ),
        changes=Table(changes, _changes(traces)),
        heads=pictures(figures, heads="Mass in round 1, and its drop, in every head"),
        behaviour=pictures(
            figures, mass_and_behaviour="Stability of the probes by their mean mass"
        ),
        correlations=Table(correlations, _correlations(traces)),
        words=[line for trace in traces for line in lines(trace)],
    )


def _share(mass: dict[str, Any]) -> str:
    """'3.3% [3.0, 3.6]'."""
    share, _, interval = with_interval(estimate_of(mass), lambda s: f"{100 * s:.1f}").partition(" ")
    return f"{share}% {interval}".rstrip()


def _changes(traces: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("model and heads", "change", "measured", "even attention", "difference")
    ]
    for trace in traces:
        layer, head = trace["shown_head"]
        for name, title in {"average": "all heads", "head": f"head {layer}.{head}"}.items():
            for key, words in _CHANGES.items():
                change = trace[name][key]
                text = _bare if name == "head" else _text
                cells = text(change["real"]), _text(change["uniform"]), text(change["difference"])
                rows.append((f"{trace['model']}, {title}", words, *cells))
    return rows


def _correlations(traces: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("model", "over all probes", "within rounds", "within dialogs", "between dialogs")
    ]
    for trace in traces:
        rows.append((trace["model"], *(_text(trace["behaviour"][kind]) for kind in _WHERE)))
    return rows


_COLUMNS = [(q, who) for q in ("dimension", "angle") for who in ("all", "system", "user", "agent")]


def geometry_page(geometry: dict[str, Any], lines: Sequence[str], folder: Path) -> str:
    """The HTML of the page of a study of geometry, with its results in words."""
    run = read_run(folder / DIALOGS)
    rows = [
        (row["round"], *(row[quantity][who] for quantity, who in _COLUMNS))
        for row in geometry["hidden_states"]
    ]
    averages = [("round", *(f"{quantity}, {who}" for quantity, who in _COLUMNS))]
    averages += [(str(number), *(f"{value:.2f}" for value in values)) for number, *values in rows]
    return render_study(
        "geometry",
        f"How the hidden states of {geometry['model']} spread over {rows[-1][0]} rounds.",
        {DIALOGS: run},
        (f"{len(run.records)} dialogs", f"suite {geometry['suite']}"),
        read=lines,
        states=pictures(
            folder,
            hidden_states="Effective dimension and opening angle, averaged over layers and dialogs",
        ),
        norms=pictures(folder, norms="Li et al. 2024, Figure 7"),
        averages=Table("Averages over layers and dialogs, without intervals", averages),
    )
