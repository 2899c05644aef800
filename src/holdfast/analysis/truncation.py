"""Detects that a server truncated chats: it read less of the dialog than it was sent."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.series import Series
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.analysis.verdicts import CANNOT_TELL
from holdfast.records import Probe, Turn

PROMPT_LOST, PROMPT_KEPT = "prompt lost", "prompt kept"
MAX_KNOWN_IF_LOST = 0.1  # the largest share of canaries that may be known without the prompt
MIN_KNOWN_IF_KEPT = 0.5  # the lower end of the interval of that share exceeds it, if it was read
MIN_AGREEING = 6  # conversations; a two-sided sign test gives p = 0.03 if all 6 agree


@dataclass(frozen=True)
class Truncation:
    """Conversations in which a server's count of prompt tokens stopped growing with the dialog.

    Attributes:
        conversations: how many the series has.
        cut_from: by the conversation's number, the first round with a longer chat, but no more
            tokens, than the one before.
        limit: the most prompt tokens that the server counted in these.
        canary_before: the share of canaries known before those rounds; n is 0 if none were asked.
        canary_after: the share known from those rounds on.
        fewer_known: how many conversations have a lower share from then on.
        more_known: how many have a higher one.
    """

    conversations: int
    cut_from: Mapping[int, int]
    limit: int
    canary_before: Estimate
    canary_after: Estimate
    fewer_known: int
    more_known: int

    @property
    def verdict(self) -> str:
        """Whether the prompt was lost or kept; "cannot tell" if the canaries do not show it."""
        after = self.canary_after
        if after.n < MIN_AGREEING or after.mean is None or after.low is None:
            return CANNOT_TELL
        all_agree = self.fewer_known >= MIN_AGREEING and not self.more_known
        if after.mean <= MAX_KNOWN_IF_LOST and all_agree:
            return PROMPT_LOST
        return PROMPT_KEPT if after.low > MIN_KNOWN_IF_KEPT else CANNOT_TELL


def truncation_of(series: Series) -> Truncation | None:
    """Detects that a server read less than it was sent; None if nothing shows that."""
    cut_from: dict[int, int] = {}
    limit = 0
    shares_before: list[float] = []  # of the canaries known, one entry per conversation
    shares_after: list[float] = []
    for record in series.records:
        turns = [turn for turn in record.turns if turn.speaker == "agent"]
        canaries = [probe for probe in record.probes if probe.kind == "canary"]
        turn_round = _first_cut_round(turns)
        canary_round = _first_cut_round(canaries)
        rounds = [number for number in (turn_round, canary_round) if number is not None]
        if not rounds:
            continue
        cut_from[int(record.conversation)] = min(rounds)
        replies: list[Turn | Probe] = [*turns, *canaries]
        limit = max(limit, *(reply.prompt_tokens or 0 for reply in replies))
        # a canary's question may be shorter than the turn beside it, so its own round counts
        if canary_round is not None:
            before = [probe.score for probe in canaries if probe.round < canary_round]
            after = [probe.score for probe in canaries if probe.round >= canary_round]
            shares_before.append(float(np.mean(before)))
            shares_after.append(float(np.mean(after)))
    if not cut_from:
        return None
    known_before, known_after = np.array(shares_before), np.array(shares_after)
    return Truncation(
        conversations=len(series.records),
        cut_from=cut_from,
        limit=limit,
        canary_before=estimate(known_before, SCORES),
        canary_after=estimate(known_after, SCORES),
        fewer_known=int((known_after < known_before).sum()),
        more_known=int((known_after > known_before).sum()),
    )


def until_prompt_lost(all_series: Sequence[Series]) -> Sequence[Series]:
    """All series, each ended before the first round in which a server stopped reading its system
    prompt in any of them; unchanged if none did.
    """
    rounds = [number for cut in _prompts_lost(all_series) for number in cut.cut_from.values()]
    if not rounds:
        return all_series
    return [series.until(min(rounds) - 1) for series in all_series]


def has_lost_prompt(all_series: Sequence[Series]) -> bool:
    """Whether a server certainly stopped reading the system prompt."""
    return bool(_prompts_lost(all_series))


def _prompts_lost(all_series: Sequence[Series]) -> list[Truncation]:
    cuts = map(truncation_of, all_series)
    return [cut for cut in cuts if cut is not None and cut.verdict == PROMPT_LOST]


def _first_cut_round(replies: Sequence[Turn | Probe]) -> int | None:
    """The first round with no more tokens than the one before, though no more was left out."""
    for earlier, later in itertools.pairwise(replies):
        if earlier.prompt_tokens is None or later.prompt_tokens is None:
            continue
        same = earlier.left_out == later.left_out
        if same and later.prompt_tokens <= earlier.prompt_tokens:
            return int(later.round)
    return None
