"""Detects that a server truncated chats: it read less of the dialog than it was sent."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.series import Series
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.analysis.verdicts import CANNOT_TELL
from holdfast.records import Conversation, Probe, Turn

PROMPT_LOST = "prompt lost"
PROMPT_KEPT = "prompt kept"
# a canary is known or not, and a lost prompt turns all conversations at once, so few of them decide
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


class _KnownCanaries(NamedTuple):
    """The shares of the canaries of a conversation that were known."""

    before: float  # they were cut
    after: float


@dataclass(frozen=True)
class _Cut:
    """The cut of one conversation."""

    first_round: int
    most_tokens: int  # that the server counted in a prompt
    canaries: _KnownCanaries | None  # None if none were cut


def truncation_of(series: Series) -> Truncation | None:
    """Detects that a server read less than it was sent; None if nothing shows that."""
    cuts = {int(record.conversation): cut for record in series.records if (cut := _cut_of(record))}
    if not cuts:
        return None
    canaries = [cut.canaries for cut in cuts.values() if cut.canaries is not None]
    known_before = np.array([shares.before for shares in canaries])
    known_after = np.array([shares.after for shares in canaries])
    return Truncation(
        conversations=len(series.records),
        cut_from={number: cut.first_round for number, cut in cuts.items()},
        limit=max(cut.most_tokens for cut in cuts.values()),
        canary_before=estimate(known_before, SCORES),
        canary_after=estimate(known_after, SCORES),
        fewer_known=int((known_after < known_before).sum()),
        more_known=int((known_after > known_before).sum()),
    )


def _cut_of(record: Conversation) -> _Cut | None:
    turns = [turn for turn in record.turns if turn.speaker == "agent"]
    canaries = [probe for probe in record.probes if probe.kind == "canary"]
    turn_round = _first_cut_round(turns)
    canary_round = _first_cut_round(canaries)
    rounds = [number for number in (turn_round, canary_round) if number is not None]
    if not rounds:
        return None
    replies: list[Turn | Probe] = [*turns, *canaries]
    known = None
    # a canary's question may be shorter than the turn beside it, so its own round counts
    if canary_round is not None:
        before = [probe.score for probe in canaries if probe.round < canary_round]
        after = [probe.score for probe in canaries if probe.round >= canary_round]
        known = _KnownCanaries(float(np.mean(before)), float(np.mean(after)))
    most_tokens = max(reply.prompt_tokens or 0 for reply in replies)
    return _Cut(min(rounds), most_tokens, known)


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
