"""Detects that a server truncated chats: it read less of the dialog than it was sent."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from holdfast.analysis.series import Series
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.analysis.verdicts import CANNOT_TELL
from holdfast.records import Conversation, Probe, Turn
from holdfast.records.drift_summary import Truncation

PROMPT_LOST: Final = "prompt lost"
PROMPT_KEPT: Final = "prompt kept"
# A model either knows a canary or not, and a lost prompt affects all conversations at once, so few
# conversations are enough to decide.
MAX_KNOWN_IF_LOST = 0.1  # with a lost prompt, the share of known canaries is at most this
MIN_KNOWN_IF_KEPT = 0.5  # with a kept prompt, the interval of that share lies above this
MIN_AGREEING = 6  # conversations; a two-sided sign test gives p = 0.03 if all 6 agree


class _KnownCanaries(NamedTuple):
    """The shares of a conversation's canaries that were known before and after the cut."""

    before: float
    after: float


@dataclass(frozen=True)
class _PromptCut:
    """The cut of one conversation."""

    first_round: int
    most_tokens: int  # the most tokens that the server counted in a prompt
    canaries: _KnownCanaries | None  # None if no probe of a canary was cut


def truncation_of(series: Series) -> Truncation | None:
    """Detects that a server read less than it was sent; None if nothing shows that."""
    cuts = {int(record.conversation): cut for record in series.records if (cut := _cut_of(record))}
    if not cuts:
        return None
    canaries = [cut.canaries for cut in cuts.values() if cut.canaries is not None]
    known_before = np.array([shares.before for shares in canaries])
    known_after = np.array([shares.after for shares in canaries])
    canary_after = estimate(known_after, SCORES)
    return Truncation(
        verdict=_verdict(
            canary_after,
            fewer_known=int((known_after < known_before).sum()),
            more_known=int((known_after > known_before).sum()),
        ),
        from_round={number: cut.first_round for number, cut in cuts.items()},
        most_prompt_tokens=max(cut.most_tokens for cut in cuts.values()),
        canary_before=estimate(known_before, SCORES),
        canary_after=canary_after,
        conversations=len(series.records),
    )


def _verdict(after: Estimate, *, fewer_known: int, more_known: int) -> str:
    """Whether the prompt was lost or kept; "cannot tell" if the canaries do not show it.

    Args:
        after: the share of canaries that are known after the cut.
        fewer_known, more_known: in how many conversations it is lower, or higher, than before.
    """
    if after.n < MIN_AGREEING or after.mean is None or after.low is None:
        return CANNOT_TELL
    if after.mean <= MAX_KNOWN_IF_LOST and fewer_known >= MIN_AGREEING and not more_known:
        return PROMPT_LOST
    return PROMPT_KEPT if after.low > MIN_KNOWN_IF_KEPT else CANNOT_TELL


def _cut_of(record: Conversation) -> _PromptCut | None:
    """Returns the cut of a conversation; None if its chats were not truncated."""
    turns = [turn for turn in record.turns if turn.speaker == "agent"]
    canaries = [probe for probe in record.probes if probe.kind == "canary"]
    turn_round = _first_cut_round(turns)
    canary_round = _first_cut_round(canaries)
    rounds = [number for number in (turn_round, canary_round) if number is not None]
    if not rounds:
        return None
    replies: list[Turn | Probe] = [*turns, *canaries]
    known_shares = None
    # a canary's question may be shorter than the turn beside it, so its own round counts
    if canary_round is not None:
        before = [probe.score for probe in canaries if probe.round < canary_round]
        after = [probe.score for probe in canaries if probe.round >= canary_round]
        known_shares = _KnownCanaries(float(np.mean(before)), float(np.mean(after)))
    most_tokens = max(reply.prompt_tokens or 0 for reply in replies)
    return _PromptCut(min(rounds), most_tokens, known_shares)


def until_prompt_lost(all_series: Sequence[Series]) -> Sequence[Series]:
    """Ends all series before the first round in which a server stopped reading the system prompt in
    any of them; returns them unchanged if that never happened.
    """
    rounds = [number for cut in _lost_prompts(all_series) for number in cut.from_round.values()]
    if not rounds:
        return all_series
    return [series.until(min(rounds) - 1) for series in all_series]


def has_lost_prompt(all_series: Sequence[Series]) -> bool:
    """Whether a server certainly stopped reading the system prompt."""
    return bool(_lost_prompts(all_series))


def _lost_prompts(all_series: Sequence[Series]) -> list[Truncation]:
    """Returns the truncations in which the prompt was certainly lost."""
    cuts = map(truncation_of, all_series)
    return [cut for cut in cuts if cut is not None and cut.verdict == PROMPT_LOST]


def _first_cut_round(replies: Sequence[Turn | Probe]) -> int | None:
    """Returns the first round whose prompt has no more tokens than the one before, although the
    same rounds were left out; None if there is none.
    """
    for earlier, later in itertools.pairwise(replies):
        if earlier.prompt_tokens is None or later.prompt_tokens is None:
            continue
        if earlier.left_out == later.left_out and later.prompt_tokens <= earlier.prompt_tokens:
            return int(later.round)
    return None
