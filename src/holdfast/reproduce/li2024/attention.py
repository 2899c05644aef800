"""Figures 4, 7 and 8: attention to the system prompt, and the norms of embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.analysis.decay import describe
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.statistics import Estimate, change, paired_difference
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED
from holdfast.records import read_run
from holdfast.report.study_figures import write_norms, write_trace_figures
from holdfast.reproduce.findings import Claim, Figure, claim_that, pngs, spelled
from holdfast.reproduce.li2024.setup import Setup
from holdfast.study import decay
from holdfast.study.geometry import embedding_norms

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

# coefficient of variation of norms: up to the first we call them concentrated, from the second on
# not
_NARROW, _WIDE = 0.2, 0.5


def figure_4(setup: Setup) -> list[Figure]:
    """Attention to the prompt decays between turns, not within them."""
    trace = _trace(setup, setup.model, "figure-4")
    images = write_trace_figures(trace, setup.figures("4"))
    layer, head = trace["shown_head"]
    claims = (
        *_decay_claims(f"head {layer}.{head}, whose mass falls most", trace["head"]),
        *_decay_claims("the average over heads", trace["average"]),
    )
    figure = Figure(
        number="4",
        title="attention to the system prompt over a conversation",
        how="One line per round; dashed: attention spread evenly over the tokens in view.",
        images=pngs(images, "decay"),
        claims=claims,
    )
    return [figure]


def _trace(setup: Setup, model: LocalModel, step: str) -> dict[str, Any]:
    """What is measured of the masses in a model's self-chats."""
    sizes = decay.Sizes(setup.scale.traced, setup.scale.rounds, setup.seed)
    with setup.watch(step, sizes.conversations * sizes.rounds) as progress:
        chats = decay.hold(model, setup.suite, setup.out / step, sizes, progress=progress)
    return describe(model.name, *chats)


def _decay_claims(who: str, changes: dict[str, Any]) -> tuple[Claim, Claim]:
    between = Estimate(**changes["between_turns"]["real"])
    within = Estimate(**changes["within_turns"]["real"])
    slower = Estimate(**changes["within_turns"]["difference"])
    return (
        claim_that(
            f"{who}: attention to the system prompt falls between turns.",
            between,
            -1,
            f"Log of the mass, all turns: {spelled(between)}.",
        ),
        claim_that(
            f"{who}: within a turn it falls less than even attention, which decays hyperbolically.",
            slower,
            +1,
            f"Log of the mass within turns {spelled(within)}; less that of even attention "
            f"{spelled(slower)}.",
        ),
    )


def figure_7(setup: Setup) -> list[Figure]:
    """Norms of the embeddings."""
    norms = embedding_norms(setup.model)
    mean, spread = float(np.mean(norms)), float(np.std(norms) / np.mean(norms))
    verdict = SUPPORTED if spread <= _NARROW else CONTRADICTED if spread >= _WIDE else UNDECIDED
    evidence = (
        f"Mean {mean:.3f}, coefficient of variation {spread:.2f} (we call up to {_NARROW}"
        f" concentrated, from {_WIDE} on not). Their scale has no meaning in a model that"
        " normalises its input."
    )
    claim = Claim(
        "the norms of the embeddings are concentrated, so that taking them as equal is no great"
        " loss.",
        verdict,
        evidence,
    )
    figure = Figure(
        number="7",
        title="norms of the embedding vectors",
        how="Every token of the vocabulary.",
        images=pngs(write_norms(setup.model.name, norms, setup.figures("7"))),
        claims=(claim,),
    )
    return [figure]


_TRAINED = "attention to the system prompt before and after chat training"
_RAISES = "training on human feedback raises the attention to the system prompt."
_STILL_FALLS = "the trained model's attention to it still decays."


def figure_8(setup: Setup) -> list[Figure]:
    """A model before and after its chat training."""
    if setup.base is None:
        why = "No base model was given; name it with --base."
        claims = tuple(Claim(text, UNDECIDED, why) for text in (_RAISES, _STILL_FALLS))
        return [Figure("8", _TRAINED, "Not run.", (), claims)]
    chat = _trace(setup, setup.model, "figure-4")
    base = _trace(setup, setup.base, "figure-8-base")
    images = write_trace_figures(chat, setup.figures("8"), [base])
    ours, theirs = _series(setup, "figure-4").mass, _series(setup, "figure-8-base").mass
    more = paired_difference(np.nanmean(ours, 1), np.nanmean(theirs, 1))
    fall = change(ours)
    less = f"Mean mass of {setup.model.name} less that of {setup.base.name}: {spelled(more)}."
    figure = Figure(
        number="8",
        title=_TRAINED,
        how=f"{setup.base.name} and {setup.model.name}, the same pairs of prompts.",
        images=pngs(images, "models"),
        claims=(
            claim_that(_RAISES, more, +1, less),
            claim_that(
                _STILL_FALLS,
                fall,
                -1,
                f"Mass in the last round less that in the first: {spelled(fall)}.",
            ),
        ),
    )
    return [figure]


def _series(setup: Setup, step: str) -> Series:
    return read_series(read_run(setup.out / step))[0]
