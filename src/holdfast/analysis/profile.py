"""Profiles of attention heads: the effect of steering each head alone, and their ranking."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from holdfast.analysis.statistics import DIFFERENCES, Estimate, estimate_columns
from holdfast.errors import UsageError
from holdfast.methods.heads import Head, Ranking, Shape
from holdfast.records import HeadScores, Run, read_run
from holdfast.records.identity import ProfileIdentity

Gains = dict[Head, Estimate]  # by head: its score minus the unsteered score of the same samples


@dataclass(frozen=True)
class Profile:
    """The mean scores on one task when steering each head alone, and without steering."""

    shape: Shape
    method: str  # its spec string, without heads
    by: str  # what the scores measure
    unsteered: float
    scores: dict[Head, float]
    gains: Gains
    samples: dict[Head, int]  # how many each was scored on; version 0.2 dropped heads on the way
    ranking: Ranking  # best first


def read_profile(out: Path | str) -> Profile:
    """Reads the profile in a folder.

    Raises:
        UsageError: the folder holds no profile, or one without any score.
    """
    run = read_run(out)
    if run.manifest.command != "profile" or not run.records:
        raise UsageError(
            f"{out} holds no profile; give a folder written by `holdfast profile`, with at least"
            " one finished sample."
        )
    return profile_of(run)


def rank_first(out: Path | str, count: int) -> Ranking:
    """Returns the ranking by the first `count` samples of a run alone."""
    run = read_run(out)
    records = tuple(record for record in run.records if record.conversation < count)
    return profile_of(replace(run, records=records)).ranking


def profile_of(run: Run) -> Profile:
    """Computes the profile from the records of a run.

    Raises:
        UsageError: no head was scored.
    """
    identity = run.identity_as(ProfileIdentity)
    records = sorted(run.head_scores, key=lambda record: record.conversation)
    scores_by_head: dict[Head, list[float]] = {}
    for record in records:
        for head, score in record.by_head.items():
            scores_by_head.setdefault(head, []).append(score)
    if not scores_by_head:
        raise UsageError(
            f"{run.folder} has no score of any head yet; repeat its command to continue."
        )
    scores = {head: sum(values) / len(values) for head, values in scores_by_head.items()}
    samples = {head: len(values) for head, values in scores_by_head.items()}
    shape = Shape(
        identity.layers, identity.heads, identity.model or "", identity.model_fingerprint or ""
    )
    order = sorted(scores, key=lambda head: (-samples[head], -scores[head], head))
    return Profile(
        shape=shape,
        method=identity.method,
        by=identity.by,
        unsteered=sum(record.unsteered for record in records) / len(records),
        scores=scores,
        gains=_gains_of(records, order),
        samples=samples,
        ranking=Ranking(tuple(order), shape),
    )


def _gains_of(records: Sequence[HeadScores], heads: Sequence[Head]) -> Gains:
    by_sample = [record.by_head for record in records]
    steered = np.array([[scores.get(head, np.nan) for head in heads] for scores in by_sample])
    unsteered = np.array([record.unsteered for record in records])
    gains = estimate_columns(steered - unsteered[:, None], DIFFERENCES)
    return dict(zip(heads, gains, strict=True))
