"""The outcome of a probe: its reply is scored, left to a judge, or no evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.errors import cut
from holdfast.measures import Measure
from holdfast.measures.scores import FOLLOWED
from holdfast.records import Probe, ProbeReply, Unanswered, Unscored

NOT_SHOWN = "not shown"  # why a turn of a log is not scored: its log lacks what decides
CUT = "cut at the token limit, and the rule needs the end"
_RECALL_CUT = "cut at the token limit before this rule was stated"
_REFUSED = "a refusal of the model or its server, not scored"
_NO_TEXT = {
    "cut": "cut at the token limit before the reply began",
    "tool_calls": "a tool call without text",
    "empty": "the reply is empty",
}
_MAX_REASON_CHARACTERS = 500  # characters


@dataclass(frozen=True)
class PendingProbe:
    """A probe whose reply a judge has yet to score."""

    probe: ProbeReply
    measure: Measure  # has the judge and its question
    text: str  # for the judge: the reply, and the tool calls of a logged turn


ProbeOutcome = Probe | Unscored | Unanswered | PendingProbe


@dataclass(frozen=True)
class ProbeResults:
    """The probes of a conversation by what became of them, as its record lists them."""

    probes: tuple[Probe, ...]
    unscored: tuple[Unscored, ...]
    unanswered: tuple[Unanswered, ...]


def results_of(outcomes: Iterable[ProbeOutcome]) -> ProbeResults:
    """Sorts the outcomes of probes by their kind; those that await a judge are left out."""
    listed = list(outcomes)
    return ProbeResults(
        probes=tuple(outcome for outcome in listed if isinstance(outcome, Probe)),
        unscored=tuple(outcome for outcome in listed if isinstance(outcome, Unscored)),
        unanswered=tuple(outcome for outcome in listed if isinstance(outcome, Unanswered)),
    )


def outcome_of(
    probe: ProbeReply, measure: Measure, stop_reason: str
) -> Probe | Unscored | PendingProbe:
    """A probe with the score that a measure gives its reply.

    A reply is no evidence if it has no text, or if it was cut off at the token limit and the rule
    needs its end. A list of rules that was cut off is none for those that it did not reach.
    """
    if stop_reason == "refusal":
        return probe.unscored("refusal", _REFUSED)
    is_cut = stop_reason == "length"
    if not probe.reply.strip():
        why = "empty"
        if is_cut:
            why = "cut"
        elif stop_reason == "tool_calls":
            why = "tool_calls"
        return probe.unscored(why, _NO_TEXT[why])
    if measure.judged:
        return PendingProbe(probe, measure, probe.reply)
    score = measure.score_cut(probe.reply) if is_cut else measure.score(probe.reply)
    if score is None:
        return probe.unscored("cut", CUT)
    if is_cut and probe.kind == "recall" and score.value < FOLLOWED:
        return probe.unscored("cut", _RECALL_CUT)
    reason = score.reason + (" (the reply was cut off)" if is_cut else "")
    return probe.scored(score.value, cut(reason, _MAX_REASON_CHARACTERS))
