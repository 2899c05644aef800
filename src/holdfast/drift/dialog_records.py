"""Builds the records of a dialog: its turns, the outcomes of its probes, and the conversation."""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.chat.default_prompts import common_prefix_length
from holdfast.drift.cases import Case, Persona, Rule
from holdfast.drift.dialog import Dialog, DialogSide, ProcessedSequence
from holdfast.drift.dialog_requests import DialogReply
from holdfast.drift.pairing import Pairing, ProbeQuestion
from holdfast.drift.probe_outcomes import ProbeOutcome, ProbeResults, outcome_of
from holdfast.drift.turn_repetition import with_repetition
from holdfast.errors import RequestFailed
from holdfast.generation.sampling import NO_CONTENT
from holdfast.models.requests import Reply
from holdfast.records import (
    Agent,
    Conversation,
    Participant,
    ProbeKey,
    ProbeReply,
    Replayed,
    Scripted,
    Tokens,
    Turn,
    Unanswered,
)

_PROBE_STOP_REASONS = (*NO_CONTENT, "length")  # the record of a probe leaves out any other


def turn_of(number: int, speaker: DialogSide, answer: DialogReply) -> Turn:
    """Builds the record of a reply as the turn of round `number`."""
    return Turn(
        round=number,
        speaker=speaker,
        text=answer.reply.text,
        stop_reason=answer.reply.stop_reason,
        **_shared_fields(answer),
    )


def probe_key_of(number: int, question: ProbeQuestion, rule: Rule) -> ProbeKey:
    """The fields of a probe's record that identify it: its round, question and rule."""
    return ProbeKey(
        round=number,
        kind=question.kind,
        rule=rule.id,
        probe=question.index,
        reply_of=None if rule is question.rule else question.rule.id,
        rule_kind=rule.kind,
        polarity=rule.polarity,
    )


def probe_outcomes_of(
    number: int, question: ProbeQuestion, answer: DialogReply
) -> list[ProbeOutcome]:
    """The outcomes of a probe in round `number`, one for each rule that it tests."""
    reply = answer.reply
    outcomes: list[ProbeOutcome] = []
    for rule in question.rules:
        probe = ProbeReply(
            **dict(probe_key_of(number, question, rule)),
            question=question.question,
            reply=reply.text,
            **_shared_fields(answer),
            stop_reason=reply.stop_reason if reply.stop_reason in _PROBE_STOP_REASONS else None,
        )
        outcomes.append(outcome_of(probe, rule.measure, reply.stop_reason))
    return outcomes


def unanswered_of(number: int, question: ProbeQuestion, error: RequestFailed) -> list[Unanswered]:
    """The outcomes of a probe whose request failed, one for each rule that it tests."""
    keys = [dict(probe_key_of(number, question, rule)) for rule in question.rules]
    return [Unanswered(**key, why=error.why, reason=str(error)) for key in keys]


def _shared_fields(answer: DialogReply) -> dict[str, Any]:
    """The fields that the records of turns and probes have in common."""
    reply = answer.reply
    return {
        "mass": _mass(reply),
        "reasoning": reply.reasoning or None,
        "prompt_tokens": reply.billed.read if reply.billed else None,
        "left_out": answer.shown.first - 1 or None,
        "retries": len(reply.discarded) or None,
        "retry_failed": reply.retry_failed or None,
        "cut_at": answer.cut_at,
    }


def _mass(reply: Reply) -> float | None:
    """The mean mass over layers, heads and the tokens of the reply; None if it is not known."""
    if reply.trace is not None:
        return round(float(reply.trace.mass.mean()), 6)
    return round(sum(reply.masses) / len(reply.masses), 6) if reply.masses else None


def conversation_of(
    dialog: Dialog,
    method: str,
    results: ProbeResults,
    seconds: float,
    max_sequences: int | None = None,
) -> Conversation:
    """Builds the record of a dialog that is over.

    Args:
        method: the spec of the methods that steered the agent.
        results: the results of its probes.
        seconds: its share of the run's time.
        max_sequences: the most sequences that the engine forwarded at once, if memory was short.
    """
    pairing = dialog.pairing
    order = _probe_order(pairing)
    speakers = {"agent": pairing.agent, "user": pairing.user}
    return Conversation(
        method=method,
        conversation=pairing.number,
        agent=agent_of(pairing.agent),
        user=participant_of(pairing.user),
        turns=tuple(with_repetition(dialog.turns, speakers)),
        probes=tuple(sorted(results.probes, key=order)),
        tokens=_tokens(dialog),
        seconds=round(seconds, 3),
        ended=dialog.ended,
        unscored=tuple(sorted(results.unscored, key=order)),
        unanswered=tuple(sorted(results.unanswered, key=order)),
        summaries=tuple(dialog.summaries),
        replayed=_replayed(pairing),
        canary=pairing.canary or None,
        scripted=Scripted(line=pairing.script.line) if pairing.script else None,
        rows_at_most=max_sequences,
    )


def _probe_order(pairing: Pairing) -> Callable[[ProbeKey], tuple[int, int, int]]:
    """The key by which a record sorts probes: by round, then as the pairing lists the rules."""
    positions: dict[tuple[str, str | None], int] = {}  # by the kind of probe and the rule
    for question in pairing.all_probes:
        for rule in question.rules:
            positions.setdefault((question.kind, rule.id), len(positions))
    return lambda probe: (probe.round, positions[probe.kind, probe.rule], probe.probe)


def _replayed(pairing: Pairing) -> Replayed | None:
    """Says which recorded dialog was replayed, and whether the system prompt was its own."""
    recorded = pairing.recorded
    if recorded is None:
        return None
    if recorded.system.strip() == pairing.agent.system_prompt.strip():
        prompt = "own"
    elif recorded.system:
        prompt = "in place of another"
    else:
        prompt = "added"
    return Replayed(line=recorded.line, system_prompt=prompt)


def _tokens(dialog: Dialog) -> Tokens:
    """Counts the tokens of a dialog; those read and written are None unless known of each reply."""
    read: int | None = None
    written: int | None = None
    usages = [usage for usage in dialog.usage if usage is not None]
    if usages and len(usages) == len(dialog.usage):
        read = sum(usage.read for usage in usages)
        written = sum(usage.written for usage in usages)
    return Tokens(
        forwarded=dialog.forwarded,
        least=least_tokens(dialog.sequences),
        read=read,
        written=written,
    )


def agent_of(case: Case) -> Agent:
    """The record of an agent."""
    return Agent(id=case.id, category=case.category, system_prompt=case.system_prompt)


def participant_of(user: Case | Persona | None) -> Participant:
    """The record of a user model; one without a system prompt has no id."""
    if user is None:
        return Participant(id=None, category=None, system_prompt="")
    category = user.category if isinstance(user, Case) else None
    return Participant(id=user.id, category=category, system_prompt=user.system_prompt)


def least_tokens(sequences: Sequence[ProcessedSequence]) -> int:
    """The least number of tokens to forward, if no prefix of a view is forwarded twice.

    It is the number of nodes in the prefix trees of the views.

    Args:
        sequences: one for each reply.
    """
    total = 0
    last_view = ""
    last_ids: tuple[int, ...] = ()
    for view, ids in sorted(sequences):
        total += len(ids)
        if view == last_view:
            total -= common_prefix_length(ids, last_ids)
        last_view = view
        last_ids = ids
    return total
