"""A profile of attention heads: the effect of steering each one alone, and which heads gain."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from holdfast.analysis.statistics import DIFFERENCES, Estimate, estimate_columns
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import write_whole
from holdfast.methods.heads import Head, HeadSet, Ranking, Shape
from holdfast.records import HeadScores, Run, read_run
from holdfast.records.identity import ProfileIdentity
from holdfast.records.model import List, RecordModel

UNSTEERED = "none"  # in records, in place of a head's name
_BY_CHANCE = 0.025  # the share of heads without any gain whose interval still lies above 0
_DIGITS = 4  # a gain printed as 0.0000 is none: the order of summation may change a score

Gains = dict[Head, Estimate]  # by head, its score minus the unsteered one on the same samples


@dataclass(frozen=True)
class Profile:
    """The mean scores on one task when steering each head alone, and without steering."""

    shape: Shape
    method: str  # its spec string, without heads
    by: str  # what the scores measure
    unsteered: float
    scores: dict[Head, float]
    gains: Gains
    samples: dict[Head, int]  # how many a head was scored on; fewer if version 0.2 halved the heads
    ranking: Ranking  # best first


@dataclass(frozen=True)
class Chosen:
    """The heads that gain something, how many were left out, and how many gains are certain."""

    heads: HeadSet
    dropped: int
    distinct: int


def head_name(head: Head | None) -> str:
    """A head's name in records; None stands for the unsteered model."""
    return UNSTEERED if head is None else f"{head[0]}.{head[1]}"


def _head_named(name: str) -> Head:
    layer, head = name.split(".")
    return int(layer), int(head)


def read_profile(out: Path | str) -> Profile:
    run = read_run(out)
    if run.manifest.command != "profile" or not run.records:
        raise UsageError(
            f"{out} holds no profile; give a folder written by `holdfast profile`, with at least"
            " one finished sample."
        )
    return profile_of(run)


def rank_first(out: Path | str, count: int) -> Ranking:
    """The ranking that the first `count` samples of a finished run alone would have given."""
    run = read_run(out)
    records = tuple(record for record in run.records if record.conversation < count)
    return profile_of(replace(run, records=records)).ranking


def profile_of(run: Run) -> Profile:
    identity = run.identity_as(ProfileIdentity)
    totals: dict[str, list[float]] = {}
    records = sorted(run.head_scores, key=lambda record: record.conversation)
    for record in records:
        for name, score in record.scores.items():
            totals.setdefault(name, []).append(score)
    unsteered = totals.pop(UNSTEERED)
    if not totals:
        raise UsageError(f"{run.folder} holds no head's score; repeat the command to continue.")
    by_head = {_head_named(name): values for name, values in totals.items()}
    scores = {head: sum(values) / len(values) for head, values in by_head.items()}
    samples = {head: len(values) for head, values in by_head.items()}
    shape = Shape(
        identity.layers, identity.heads, identity.model or "", identity.model_fingerprint or ""
    )
    order = sorted(scores, key=lambda head: (-samples[head], -scores[head], head))
    return Profile(
        shape=shape,
        method=identity.method,
        by=identity.by,
        unsteered=sum(unsteered) / len(unsteered),
        scores=scores,
        gains=_gains_of(records),
        samples=samples,
        ranking=Ranking(tuple(order), shape),
    )


def _gains_of(records: Sequence[HeadScores]) -> Gains:
    names = sorted({name for record in records for name in record.scores} - {UNSTEERED})
    steered = [[record.scores.get(name, np.nan) for name in names] for record in records]
    unsteered = [record.scores[UNSTEERED] for record in records]
    gains = estimate_columns(np.array(steered) - np.array(unsteered)[:, None], DIFFERENCES)
    return dict(zip(map(_head_named, names), gains, strict=True))


class ScoredHead(RecordModel):
    """A head of a ranking."""

    layer: int
    head: int
    score: float  # with this head steered alone
    samples: int  # that it was scored on
    gain: Estimate  # over the model without steering, on the same samples


class StoredRanking(RecordModel):
    """A ranking of heads, as in `profile.json`."""

    made_for: Shape
    method: str  # its spec string, without heads
    by: str  # what the scores measure
    unsteered: float
    ranking: List[ScoredHead]  # best first


def write_ranking(profile: Profile, folder: Path) -> Path:
    """Writes `profile.json` into the folder of a profile; returns its path."""
    stored = StoredRanking(
        made_for=profile.shape,
        method=profile.method,
        by=profile.by,
        unsteered=profile.unsteered,
        ranking=tuple(
            ScoredHead(
                layer=layer,
                head=head,
                score=profile.scores[layer, head],
                samples=profile.samples[layer, head],
                gain=profile.gains[layer, head],
            )
            for layer, head in profile.ranking.heads
        ),
    )
    return write_whole(folder / "profile.json", json.dumps(stored.to_json(), indent=1) + "\n")


def choose_heads(best: HeadSet, tasks: Sequence[Gains], combine: str) -> Chosen:
    """Keeps the heads that gain something on every task ("intersection") or on any ("union")."""
    some = all if combine == "intersection" else any
    kept = [
        head
        for head in best
        if some(round(gains[head].mean or 0.0, _DIGITS) > 0 for gains in tasks)
    ]
    if not kept:
        raise HoldfastError(
            f"None of the best {len(best)} heads gains anything, so no heads are written; profile"
            " on other or more samples, by probability, or with a stronger --method.",
            option="top",
            value=len(best),
        )
    distinct = sum(some(verdict_on(gains[head]).sign > 0 for gains in tasks) for head in kept)
    return Chosen(HeadSet(kept, best.made_for), len(best) - len(kept), distinct)


def count_distinct(gains: Gains) -> tuple[int, float] | None:
    """How many heads have a clear gain, and how many would by chance; None with too few samples."""
    if max(gain.n for gain in gains.values()) < MIN_SAMPLES:
        return None
    return sum(verdict_on(gain).sign > 0 for gain in gains.values()), len(gains) * _BY_CHANCE
