"""A profile of heads: what steering each alone gives, which gain anything, and what halving may
have missed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.analysis.verdicts import MIN_SAMPLES, tell
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import write_whole
from holdfast.methods.heads import Head, HeadSet, Ranking, Shape
from holdfast.records import RunData, read_run

UNSTEERED = "none"  # in records, where others have a head's name
_BY_CHANCE = 0.025  # of the heads without any gain, those whose interval lies above 0
_DIGITS = 4  # a gain that is printed as 0.0000 is none: sums in another order may move a score

Gains = dict[Head, Estimate]  # by head, its score minus the unsteered one on the same samples


@dataclass(frozen=True)
class Profile:
    """The scores on one task of steering each head alone.

    Args:
        shape: of the model.
        method: as it is spelled, without heads.
        by: what scores are.
        unsteered: the mean score without steering.
        scores: by head, the mean over the samples it was scored on.
        samples: by head, how many these are; fewer for those that halving dropped.
        ranking: the heads, best first; those dropped stand behind all that were not, and were
            compared on fewer samples.
    """

    shape: Shape
    method: str
    by: str
    unsteered: float
    scores: dict[Head, float]
    samples: dict[Head, int]
    ranking: Ranking


@dataclass(frozen=True)
class Dropped:
    """Heads that halving may have missed.

    Args:
        share: of all heads and samples, those that were scored.
        kept: heads scored on every sample.
        dropped: heads that were not.
        near: how many of these have an interval that reaches the worst head kept.
    """

    share: float
    kept: int
    dropped: int
    near: int


@dataclass(frozen=True)
class Chosen:
    """The heads to steer.

    Args:
        heads: those that gain something.
        dropped: how many of the best gain nothing, and were left out.
        distinct: how many of the heads have a gain that can be told from chance.
    """

    heads: HeadSet
    dropped: int
    distinct: int

    def line(self) -> str:
        """A sentence on how sure their gains are."""
        left_out = f", {self.dropped} that gain nothing left out" if self.dropped else ""
        return (
            f"{self.distinct} of these {len(self.heads)} heads have a gain that can be told from"
            f" chance{left_out}."
        )


def head_name(head: Head | None) -> str:
    """As records name a head; None is the model as it is."""
    return UNSTEERED if head is None else f"{head[0]}.{head[1]}"


def head_named(name: str) -> Head:
    """The head of that name."""
    layer, head = name.split(".")
    return int(layer), int(head)


def read_profile(out: Path | str) -> Profile:
    """The profile in a run folder, finished or not.

    Raises:
        RecordsError: not a run folder.
        UsageError: a run of another kind, or without records.
    """
    run = read_run(out)
    if run.manifest.get("command") != "profile" or not run.records:
        raise UsageError(
            f"{out} holds no profile; give a folder written by `holdfast profile`, with at least"
            " one finished sample."
        )
    return profile_of(run)


def rank_first(out: Path | str, count: int) -> Ranking:
    """The ranking by the first `count` samples of a finished run: what fewer samples would have
    given.

    Raises:
        RecordsError, UsageError: as `read_profile`.
    """
    run = read_run(out)
    records = [record for record in run.records if record["conversation"] < count]
    return profile_of(replace(run, records=records)).ranking


def profile_of(run: RunData, stages: Sequence[str] | None = None) -> Profile:
    """The profile by the records of some stages; None: of all.

    Raises:
        UsageError: no head has a score.
    """
    identity = run.manifest["identity"]
    totals: dict[str, list[float]] = {}
    for record in sorted(run.records, key=lambda record: record["conversation"]):
        if stages is None or record["method"] in stages:
            for name, score in record["scores"].items():
                totals.setdefault(name, []).append(score)
    unsteered = totals.pop(UNSTEERED)
    if not totals:
        raise UsageError(f"{run.folder} holds no head's score; repeat the command to go on.")
    by_head = {head_named(name): values for name, values in totals.items()}
    scores = {head: sum(values) / len(values) for head, values in by_head.items()}
    samples = {head: len(values) for head, values in by_head.items()}
    shape = Shape(
        identity["layers"], identity["heads"], identity["model"], identity["model_fingerprint"]
    )
    order = sorted(scores, key=lambda head: (-samples[head], -scores[head], head))
    return Profile(
        shape=shape,
        method=identity["method"],
        by=identity["by"],
        unsteered=sum(unsteered) / len(unsteered),
        scores=scores,
        samples=samples,
        ranking=Ranking(tuple(order), shape),
    )


def read_gains(folder: Path) -> Gains:
    """By head, what it gains in the run of a profile."""
    records = sorted(read_run(folder).records, key=lambda record: record["conversation"])
    names = sorted({name for record in records for name in record["scores"]} - {UNSTEERED})
    steered = [[record["scores"].get(name, np.nan) for name in names] for record in records]
    unsteered = [record["scores"][UNSTEERED] for record in records]
    gains = estimate_columns(np.array(steered) - np.array(unsteered)[:, None])
    return dict(zip(map(head_named, names), gains, strict=True))


def write_ranking(folder: Path) -> Path:
    """Writes `profile.json` into the folder of a profile; returns it."""
    profile, gains = read_profile(folder), read_gains(folder)
    ranking = [
        {
            "layer": head[0],
            "head": head[1],
            "score": profile.scores[head],
            "samples": profile.samples[head],
            "gain": asdict(gains[head]),
        }
        for head in profile.ranking.heads
    ]
    record = {
        "made_for": asdict(profile.shape),
        "method": profile.method,
        "by": profile.by,
        "unsteered": profile.unsteered,
        "ranking": ranking,
    }
    return write_whole(folder / "profile.json", json.dumps(record, indent=1) + "\n")


def choose_heads(best: HeadSet, tasks: Sequence[Gains], combine: str) -> Chosen:
    """Leaves out the heads that gain nothing.

    Args:
        best: the best heads of the tasks together.
        tasks: what every head gains on each.
        combine: "intersection" (a head must gain on every task) or "union" (on any).

    Raises:
        HoldfastError: none of the heads gains anything.
    """
    some = all if combine == "intersection" else any
    kept = [head for head in best if some(_gains(gains[head]) for gains in tasks)]
    if not kept:
        raise HoldfastError(
            f"None of the best {len(best)} heads gains anything, so no heads are written; profile"
            " on other or more samples, by probability, or with a stronger --method."
        )
    distinct = sum(some(tell(gains[head]).sign > 0 for gains in tasks) for head in kept)
    return Chosen(HeadSet(kept, best.made_for), len(best) - len(kept), distinct)


def _gains(gain: Estimate) -> bool:
    return gain.mean is not None and round(gain.mean, _DIGITS) > 0


def count_distinct(gains: Gains) -> tuple[int, float] | None:
    """How many heads have a gain that can be told, and how many would by chance; None where there
    are too few samples to tell any.
    """
    if max(gain.n for gain in gains.values()) < MIN_SAMPLES:
        return None
    return sum(tell(gain).sign > 0 for gain in gains.values()), len(gains) * _BY_CHANCE


def dropped_by_halving(profile: Profile, gains: Gains) -> Dropped | None:
    """The most that dropping heads early may have cost; None where none were dropped."""
    most = max(profile.samples.values())
    kept = [head for head in profile.ranking.heads if profile.samples[head] == most]
    dropped = [head for head in profile.ranking.heads if profile.samples[head] < most]
    if not dropped:
        return None
    worst = min(_mean(gains[head]) for head in kept)
    return Dropped(
        share=sum(profile.samples.values()) / (most * len(profile.samples)),
        kept=len(kept),
        dropped=len(dropped),
        near=sum(_reaches(gains[head], worst) for head in dropped),
    )


def _mean(gain: Estimate) -> float:
    assert gain.mean is not None, "a head without a score"
    return gain.mean


def _reaches(gain: Estimate, level: float) -> bool:
    return gain.high is None or gain.high >= level
