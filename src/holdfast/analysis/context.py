"""How much of a chat the model read: a server may truncate it, or a summary replace its rounds."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.series import Series
from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.records import Probe, Turn

LOST = 0.1  # the largest share of canaries that may be known if the prompt is cut off
SURE = 6  # conversations that all agree: by chance, in either direction, 3 times in 100


@dataclass(frozen=True)
class Truncation:
    """Conversations in which a server's count of prompt tokens stopped growing with the dialog."""

    conversations: int  # of the series
    # by conversation, the first round with a longer chat, but no more tokens, than the one before
    cut_from: Mapping[int, int]
    limit: int  # the most prompt tokens that the server counted in these
    # the share of canaries known before those rounds, and from then on; n is 0 if none were asked
    canary_before: Estimate
    canary_after: Estimate
    fell: int  # the number of conversations whose share was lower from then on
    rose: int  # and of those whose share was higher

    @property
    def verdict(self) -> str:
        """Whether the prompt was lost or kept; "cannot tell" if the canaries do not show it."""
        after = self.canary_after
        if after.n < SURE or after.mean is None or after.low is None:
            return "cannot tell"
        if after.mean <= LOST and self.fell >= SURE and not self.rose:
            return "prompt lost"
        return "prompt kept" if after.low > 0.5 else "cannot tell"


def truncation_of(series: Series) -> Truncation | None:
    """Detects that a server read less than it was sent; None if nothing shows that."""
    cut_from, limit = {}, 0
    known: list[
        tuple[float, float]
    ] = []  # the share of a conversation's canaries, before and after
    for record in series.records:
        turns = [turn for turn in record.turns if turn.speaker == "agent"]
        canaries = [probe for probe in record.probes if probe.kind == "canary"]
        rounds = [first for spoken in (turns, canaries) if (first := _stops_growing(spoken))]
        if not rounds:
            continue
        cut_from[int(record.conversation)] = min(rounds)
        spoken: list[Turn | Probe] = [*turns, *canaries]
        limit = max(limit, *(reply.prompt_tokens or 0 for reply in spoken))
        if first := _stops_growing(canaries):  # a question may be shorter than the turn beside it
            earlier = [probe.score for probe in canaries if probe.round < first]
            later = [probe.score for probe in canaries if probe.round >= first]
            known.append((float(np.mean(earlier)), float(np.mean(later))))
    if not cut_from:
        return None
    before, after = np.array(known).reshape(-1, 2).T
    return Truncation(
        conversations=len(series.records),
        cut_from=cut_from,
        limit=limit,
        canary_before=estimate(before, SCORES),
        canary_after=estimate(after, SCORES),
        fell=int((after < before).sum()),
        rose=int((after > before).sum()),
    )


def read_whole(series: Sequence[Series]) -> Sequence[Series]:
    """The series until the server stopped reading the system prompt; unchanged if it never did."""
    lost = (number for cut in _prompts_lost(series) for number in cut.cut_from.values())
    first = min(lost, default=0)
    return [item.until(first - 1) for item in series] if first > 1 else series


def was_cut_off(series: Sequence[Series]) -> bool:
    """Whether a server certainly stopped reading the system prompt."""
    return bool(_prompts_lost(series))


def _prompts_lost(series: Sequence[Series]) -> list[Truncation]:
    cuts = map(truncation_of, series)
    return [cut for cut in cuts if cut and cut.verdict == "prompt lost"]


def _stops_growing(replies: Sequence[Turn | Probe]) -> int | None:
    """The first round with no more tokens than the one before, though no more was left out."""
    for earlier, later in itertools.pairwise(replies):
        if earlier.prompt_tokens is None or later.prompt_tokens is None:
            continue
        same = earlier.left_out == later.left_out
        if same and later.prompt_tokens <= earlier.prompt_tokens:
            return int(later.round)
    return None


@dataclass(frozen=True)
class RuleSurvival:
    """A rule before and after older rounds were summarised, over conversations with both scores."""

    name: str  # "" for all rules
    before: Estimate
    after: Estimate
    difference: Estimate


def survivals_of(series: Series) -> list[RuleSurvival]:
    """All rules together, then each rule, worst survivor first; empty if nothing was summarised."""
    scores: dict[str, dict[int, tuple[list[float], list[float]]]] = defaultdict(dict)
    for record in series.records:
        if not any(summary.view == "agent" for summary in record.summaries):
            continue
        for probe in record.probes:
            if probe.kind != "stability":
                continue
            names = ": ".join(filter(None, (record.agent.id, probe.rule)))
            for name in ("", names):
                pair = scores[name].setdefault(int(record.conversation), ([], []))
                pair[bool(probe.left_out)].append(float(probe.score))
    rows = []
    for name, pairs in scores.items():
        both = [
            (np.mean(earlier), np.mean(later))
            for earlier, later in pairs.values()
            if earlier and later
        ]
        if both:
            before, after = np.array(both).T
            rows.append(
                RuleSurvival(
                    name=name,
                    before=estimate(before, SCORES, error=series.error),
                    after=estimate(after, SCORES, error=series.error),
                    difference=paired_difference(after, before, error=series.error),
                )
            )
    return sorted(rows, key=lambda row: (bool(row.name), row.after.mean or 0.0, row.name))
