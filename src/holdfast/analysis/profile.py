"""Profiles of attention heads: the effect of steering each head alone, their ranking, and which of
them gain something.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from holdfast.analysis.statistics import DIFFERENCES, Estimate, estimate_columns
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import write_whole
from holdfast.methods.head_rankings import Ranking
from holdfast.methods.heads import Head, HeadSet, Shape
from holdfast.records import HeadScores, Run, read_run
from holdfast.records.identity import ProfileIdentity
from holdfast.records.run_summary import ProfiledHead

Gains = Mapping[Head, Estimate]  # a head's score minus the unsteered score of the same samples
Combination = Literal["intersection", "union"]

SHARE_BY_CHANCE = 0.025  # of the heads that gain nothing, whose intervals still lie above 0
_DIGITS = 4  # a gain that rounds to 0 counts as 0, as the order of summation may change a score


@dataclass(frozen=True)
class Profile:
    """The mean scores on one task when steering each head alone, and without steering."""

    shape: Shape
    method: str  # its spec string, without heads
    by: str  # what the scores measure
    unsteered: float
    heads: tuple[ProfiledHead, ...]  # best first

    @property
    def ranking(self) -> Ranking:
        """The heads, best first."""
        return Ranking(tuple((row.layer, row.head) for row in self.heads), self.shape)

    @property
    def scores(self) -> dict[Head, float]:
        """The mean score of every head."""
        return {(row.layer, row.head): row.score for row in self.heads}

    @property
    def gains(self) -> Gains:
        """The gain of every head."""
        return {(row.layer, row.head): row.gain for row in self.heads}


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
    """Returns the ranking of a run by its first `count` samples alone."""
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
    # version 0.2 dropped heads on the way, which have fewer samples
    ranking = sorted(scores, key=lambda head: (-samples[head], -scores[head], head))
    gains = _gains_of(records, ranking)
    return Profile(
        shape=Shape(
            identity.layers, identity.heads, identity.model or "", identity.model_fingerprint or ""
        ),
        method=identity.method,
        by=identity.by,
        unsteered=sum(record.unsteered for record in records) / len(records),
        heads=tuple(
            ProfiledHead(
                layer=layer,
                head=head,
                score=scores[layer, head],
                gain=verdict_on(gains[layer, head]),
                samples=samples[layer, head],
            )
            for layer, head in ranking
        ),
    )


def _gains_of(records: Sequence[HeadScores], heads: Sequence[Head]) -> Gains:
    """Estimates the gain of each head over the samples that it was scored on."""
    by_sample = [record.by_head for record in records]
    steered = np.array([[scores.get(head, np.nan) for head in heads] for scores in by_sample])
    unsteered = np.array([record.unsteered for record in records])
    gains = estimate_columns(steered - unsteered[:, None], DIFFERENCES)
    return dict(zip(heads, gains, strict=True))


@dataclass(frozen=True)
class GainingHeads:
    """The heads that gain something.

    Attributes:
        left_out: how many of the best heads gain nothing, and so are left out.
        certain: how many of the heads have a certain gain.
    """

    heads: HeadSet
    left_out: int
    certain: int


def choose_heads(best: HeadSet, tasks: Sequence[Gains], combine: Combination) -> GainingHeads:
    """Keeps the heads that gain something on every task ("intersection") or on any ("union").

    Raises:
        HoldfastError: no head gains anything.
    """
    enough_tasks = all if combine == "intersection" else any
    heads = [
        head
        for head in best
        if enough_tasks(round(gains[head].mean or 0.0, _DIGITS) > 0 for gains in tasks)
    ]
    if not heads:
        raise HoldfastError(
            f"None of the best {len(best)} heads gains anything, so no heads are written; profile"
            " on other or more samples, by probability, or with a stronger --method.",
            option="top",
            value=len(best),
        )
    certain = [
        head for head in heads if enough_tasks(verdict_on(gains[head]).sign > 0 for gains in tasks)
    ]
    return GainingHeads(HeadSet(heads, best.made_for), len(best) - len(heads), len(certain))


def count_certain_gains(profile: Profile) -> int | None:
    """Counts the heads that have a certain gain; None if there are too few samples to say."""
    if max(row.gain.n for row in profile.heads) < MIN_SAMPLES:
        return None
    return sum(row.gain.sign > 0 for row in profile.heads)


def write_ranking(profile: Profile, folder: Path) -> Path:
    """Writes `profile.json`, the ranking with all digits, into the folder of a profile.

    Returns its path.
    """
    heads = [
        {
            "layer": row.layer,
            "head": row.head,
            "score": row.score,
            "samples": row.samples,
            "gain": _gain_json(row.gain),
        }
        for row in profile.heads
    ]
    content = {
        "made_for": asdict(profile.shape),
        "method": profile.method,
        "by": profile.by,
        "unsteered": profile.unsteered,
        "ranking": heads,
    }
    return write_whole(folder / "profile.json", json.dumps(content, indent=1) + "\n")


def _gain_json(gain: Estimate) -> dict[str, Any]:
    """The fields of the estimate, with all digits and without a verdict."""
    values = asdict(gain)
    return {field.name: values[field.name] for field in fields(Estimate)}
