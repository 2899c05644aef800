"""Figures 4, 7 and 8: the attention to the system prompt, and the norms of the embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast import drift
from holdfast.analysis.decay import Decay, Trace, trace_of
from holdfast.analysis.estimate_rows import EstimateRow, row_of
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import paired_difference, row_means
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED
from holdfast.drift.remaining import count_replies
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, pngs
from holdfast.papers.li2024.geometry import embedding_norms
from holdfast.papers.li2024.li2024_setup import Li2024Setup
from holdfast.records import read_run
from holdfast.report.geometry_report import write_norms
from holdfast.report.trace_figures import write_trace_figures
from holdfast.study import attention_decay

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

# coefficients of variation up to which we call norms concentrated, and from which we do not
_CONCENTRATED = 0.2
_SPREAD = 0.5


def figure_4(setup: Li2024Setup) -> Figure:
    """The attention to the system prompt over a conversation."""
    trace = _trace(setup, setup.model, "figure-4")
    layer, head = trace.shown_head
    return Figure(
        "4",
        "attention to the system prompt over a conversation",
        "One line per round; dashed: uniform attention to the tokens in view.",
        images=pngs(write_trace_figures(trace, setup.figures("4")), "decay"),
        claims=(
            *_decay_claims(f"head {layer}.{head}, chosen on other dialogs", trace.head),
            *_decay_claims("the average over heads", trace.average),
        ),
    )


def _trace(setup: Li2024Setup, model: LocalModel, step: str) -> Trace:
    """The trace of a model's attention in the folder of a step; an earlier run is resumed."""
    settings = attention_decay.traced_settings(setup.scale.traced, setup.scale.rounds, setup.seed)
    settings = replace(settings, sampling=setup.sampling)
    replies = count_replies(setup.suite, settings, range(settings.conversations))
    with setup.watch(step, replies) as progress:
        running = drift.Running(progress=progress)
        run = attention_decay.run_traced(
            model, setup.suite, setup.out / step, settings, running=running
        )
    return trace_of(model.name, run.records, run.dialogs)


def _decay_claims(heads: str, decay: Decay) -> tuple[Claim, Claim]:
    """Judges the paper's two claims on how attention to the prompt falls."""
    within = in_words(decay.within_turns.real)
    return (
        claim_that(
            f"{heads}: attention to the system prompt falls between turns.",
            decay.between_turns.real,
            sign=-1,
            quantity="Log of the mass, all turns:",
        ),
        claim_that(
            f"{heads}: within a turn it falls less than uniform attention, which decays"
            " hyperbolically.",
            decay.within_turns.difference,
            sign=+1,
            quantity=f"Log of the mass within turns: {within}; less that of uniform attention:",
        ),
    )


def figure_7(setup: Li2024Setup) -> Figure:
    """The norms of the embeddings, which the paper's theory takes as equal."""
    norms = embedding_norms(setup.model)
    mean = float(np.mean(norms))
    spread = float(np.std(norms) / np.mean(norms))
    verdict = UNDECIDED
    if spread <= _CONCENTRATED:
        verdict = SUPPORTED
    elif spread >= _SPREAD:
        verdict = CONTRADICTED
    claim = Claim(
        "the norms of the embeddings are concentrated, so that taking them as equal is no great"
        " loss.",
        verdict,
        f"Mean {mean:.3f}, coefficient of variation {spread:.2f} (we call norms concentrated if it"
        f" is at most {_CONCENTRATED}, and not concentrated from {_SPREAD} on). Their scale has no"
        " meaning in a model that normalises its input.",
    )
    return Figure(
        "7",
        "norms of the embedding vectors",
        "Every token of the vocabulary.",
        images=pngs(write_norms(setup.model.name, norms, setup.figures("7"))),
        claims=(claim,),
    )


def figure_8(setup: Li2024Setup) -> Figure:
    """The attention to the system prompt before and after chat training."""
    title = "attention to the system prompt before and after chat training"
    raises = "training on human feedback raises the attention to the system prompt."
    still_falls = "the trained model's attention to it still decays."
    if setup.base is None:
        why = "No base model was given; name it with --base."
        claims = tuple(Claim(text, UNDECIDED, why) for text in (raises, still_falls))
        return Figure("8", title, "Not run.", claims=claims)
    chat = _trace(setup, setup.model, "figure-4")
    base = _trace(setup, setup.base, "figure-8-base")
    chat_mass = _mass(setup, "figure-4")
    base_mass = _mass(setup, "figure-8-base")
    difference = paired_difference(row_means(chat_mass.values), row_means(base_mass.values))
    less = f"Mean mass of {setup.model.name} less that of {setup.base.name}:"
    return Figure(
        "8",
        title,
        f"{setup.base.name} and {setup.model.name}, the same pairs of prompts.",
        images=pngs(write_trace_figures(chat, setup.figures("8"), [base]), "models"),
        claims=(
            claim_that(raises, difference, +1, less),
            claim_that(
                still_falls, chat_mass.change, -1, "Mass in the last round less that in the first:"
            ),
        ),
    )


def _mass(setup: Li2024Setup, step: str) -> EstimateRow:
    """The mean attention mass on the system prompt, pi(t), in the run of a step."""
    (series,) = read_series(read_run(setup.out / step))
    return row_of(series, "mass")
