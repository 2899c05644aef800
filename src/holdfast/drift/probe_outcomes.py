"""The outcome of a probe: a score, a question to a judge, or no evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.errors import cut
from holdfast.measures import Measure
from holdfast.records import Probe, ProbeReply, Unanswered, Unscored

# why a reply is not scored
NOT_SHOWN = "not shown"  # a turn whose log lacks the text or the calls that the rule is about
CUT = "cut at the token limit, and the rule needs the end"
_RECALL_CUT = "cut at the token limit before this rule was stated"
_REFUSED = "a refusal by the model or its server, which is not scored"
_NO_TEXT = {
    "cut": "cut at the token limit before the reply began",
    "tool_calls": "a tool call without text",
    "empty": "the reply is empty",
}
_MAX_REASON_LENGTH = 500  # characters


@dataclass(frozen=True)
class PendingProbe:
    """A probe whose reply a judge has yet to score."""

    probe: ProbeReply
    measure: Measure  # names the judge and its question
    text: str  # what the judge reads: the reply, with the tool calls of a turn of a log


ProbeOutcome = Probe | Unscored | Unanswered | PendingProbe


@dataclass(frozen=True)
class ProbeResults:
    """The probes of a conversation, sorted by outcome as its record lists them."""

    probes: tuple[Probe, ...]
    unscored: tuple[Unscored, ...]
    unanswered: tuple[Unanswered, ...]


def results_of(outcomes: Iterable[ProbeOutcome]) -> ProbeResults:
    """Sorts the outcomes of probes by their kind; leaves out probes that await a judge."""
    outcomes = list(outcomes)
    return ProbeResults(
        probes=tuple(outcome for outcome in outcomes if isinstance(outcome, Probe)),
        unscored=tuple(outcome for outcome in outcomes if isinstance(outcome, Unscored)),
        unanswered=tuple(outcome for outcome in outcomes if isinstance(outcome, Unanswered)),
    )


def outcome_of(
    probe: ProbeReply, measure: Measure, stop_reason: str
) -> Probe | Unscored | PendingProbe:
    """Scores the reply to a probe, unless it awaits a judge or is no evidence.

    A reply is no evidence if it has no text, or if it was cut at the token limit and the rule needs
    its end. A list of rules that was cut is no evidence on rules that it does not state.
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
    if is_cut and probe.kind == "recall" and not score.keeps_rule:
        return probe.unscored("cut", _RECALL_CUT)
    reason = f"{score.reason} (the reply was cut off)" if is_cut else score.reason
    return probe.scored(score.value, cut(reason, _MAX_REASON_LENGTH))
