"""Finds the rules that a coding agent just broke, or no longer has in its context.

A hook reads the session from the beginning of its last turn on (`session_state.py`), judges the
turns that were not settled before, and answers with the rules of which to remind the model.

    HookInput, HookRules -> answer_hook -> HookAnswer
        _read_session        the new part of the log, and the state after the last call
        _judge               the rules that its turns broke
        _next_state          the state for the next call, which is written to a file
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from holdfast.coding_agents.hook_answers import BrokenRule, HookAnswer
from holdfast.coding_agents.hook_input import HookInput, HookOccasion
from holdfast.coding_agents.hook_judge import HookJudge
from holdfast.coding_agents.hook_rules import HookRules
from holdfast.coding_agents.session_orders import SessionOrders, user_events
from holdfast.coding_agents.session_state import (
    ContextLoss,
    Mark,
    SessionState,
    digests,
    read_state,
    write_state,
)
from holdfast.errors import UsageError
from holdfast.logs.context import compaction_starts
from holdfast.logs.dialogs import LoggedExchange, LoggedTurn, exchanges_of, turns_of
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.session_part import SessionPart, read_session_part
from holdfast.transcripts.transcript import Event, EventKind


@dataclass(frozen=True)
class _Session:
    """The part of a session that was read, and the state of the session before it.

    Args:
        events: the events of the part, with the call that was just made.
        last_state: the state after the last call of the hook; None if the session was not read
            before, or if its log was written anew.
        start_state: the state before the part that was read; without turns if the whole log was
            read.
        judged_turns: how many turns of the session are not judged again.
    """

    transcript: Path
    part: SessionPart
    events: Sequence[Event]
    exchanges: Sequence[LoggedExchange]
    turns: Sequence[LoggedTurn]
    last_state: SessionState | None
    start_state: SessionState
    judged_turns: int

    @property
    def is_answering(self) -> bool:
        """Whether the assistant has begun to answer the user's last message."""
        return bool(self.exchanges[-1].replies)

    @property
    def turns_to_judge(self) -> list[LoggedTurn]:
        """The turns that were not judged before, or not to their end."""
        return [turn for turn in self.turns if turn.number > self.judged_turns]


class _Judgement(NamedTuple):
    """The answer with the broken rules, and the marks of all that the model was told by then."""

    answer: HookAnswer
    marks: tuple[Mark, ...]


def answer_hook(hook: HookInput, rules: HookRules, file: Path | None = None) -> HookAnswer:
    """Answers the call of a hook.

    Args:
        file: the state of the session, which is read and written; None keeps no state.

    Raises:
        UsageError: the input names no transcript, or one that cannot be read.
    """
    if hook.occasion is HookOccasion.OTHER:
        return HookAnswer(hook.event)
    if hook.is_in_subagent:  # the transcript is the session's, not the subagent's
        return _answer_in_subagent(hook, rules)
    if hook.transcript is None:
        raise UsageError(
            "The hook's input names no transcript (transcript_path); let the agent keep its"
            " sessions.",
            option="transcript_path",
        )
    if not hook.transcript.exists():  # the session has just begun
        return HookAnswer(hook.event)
    session = _read_session(hook.transcript, hook.call, rules, file)
    answer, state = _answer(hook, rules, session)
    if file is not None:
        try:
            write_state(file, state)
        except OSError as error:
            problem = (
                f"The state of the session cannot be written to {file} ({error.strerror}), so its"
                " log is read from the start and rules are repeated; set XDG_CACHE_HOME."
            )
            answer = replace(answer, problems=(*answer.problems, problem))
    return answer


def _answer_in_subagent(hook: HookInput, rules: HookRules) -> HookAnswer:
    """The answer to a tool call of a subagent; nothing else is known of its turn."""
    done = AssistantTurn("", () if hook.call is None else (hook.call,))
    judge = HookJudge(rules)
    turn = LoggedTurn(1, "", "", 0, done)
    broken = tuple(judge.find_broken_rules(turn, is_over=False))
    return HookAnswer(hook.event, broken, problems=tuple(judge.problems))


def _read_session(
    transcript: Path, call: ToolCall | None, rules: HookRules, file: Path | None
) -> _Session:
    """Reads the part of a session that is not settled, with the call that was just made."""
    state = None if file is None else read_state(file, rules.fingerprint, transcript)
    part = read_session_part(transcript, state.start if state else 0)
    is_rewound = part.reaches_back
    if is_rewound and part.start:
        part = read_session_part(transcript)
    start = state if state and part.start else SessionState(rules.fingerprint)
    events = _with_call(part.events, call)
    exchanges = exchanges_of(events)
    turns = tuple(
        replace(turn, number=start.turns + turn.number)
        for turn in turns_of(exchanges, start.earlier_calls, start.previous_text)
    )
    if state is None or is_rewound:  # only the last turn of an unknown session is judged
        judged_turns = start.turns + max(len(turns) - 1, 0)
    else:
        judged_turns = state.turns
    return _Session(transcript, part, events, exchanges, turns, state, start, judged_turns)


def _with_call(events: Sequence[Event], call: ToolCall | None) -> list[Event]:
    """The events, with the call that was just made if the log does not have it yet."""
    if call is None or _has_call(events, call):
        return [*events]
    return [*events, Event(EventKind.TOOL_CALL, call=call)]


def _has_call(events: Sequence[Event], call: ToolCall) -> bool:
    """Whether the log has a call: one with the same id, or an equal last call if it has no id."""
    calls = [event.call for event in events if event.call is not None]
    if call.id:
        return any(call.id == logged.id for logged in calls)
    return bool(calls) and calls[-1] == call


def _answer(
    hook: HookInput, rules: HookRules, session: _Session
) -> tuple[HookAnswer, SessionState]:
    """The answer to the call of a hook, and the state for the next call."""
    state = session.last_state or SessionState(rules.fingerprint)
    new_compactions = _count_compactions(session.part, state.offset)
    is_compacting = hook.occasion in (HookOccasion.COMPACTED, HookOccasion.COMPACTING)
    loss = state.loss.after(new_compactions, is_compacting)
    if hook.occasion is HookOccasion.COMPACTING:  # a reminder would not stay in the context
        return HookAnswer(hook.event), _next_state(rules, session, state.marks, loss)
    judgement = _judge(hook, rules, session, state.marks)
    answer = judgement.answer
    if loss.is_open:
        answer = replace(answer, all_rules=rules.rules)
        loss = ContextLoss(is_answered_ahead=new_compactions == 0)
    return answer, _next_state(rules, session, judgement.marks, loss)


def _count_compactions(part: SessionPart, offset: int) -> int:
    """Counts the compactions that begin after a byte of the log."""
    starts = compaction_starts(part.events)
    return sum(part.offset_of(part.events[position]) >= offset for position in starts)


def _judge(
    hook: HookInput, rules: HookRules, session: _Session, marks: tuple[Mark, ...]
) -> _Judgement:
    """Judges the turns of a session that are not settled."""
    start = session.start_state
    orders = SessionOrders(start.earlier_words, start.previous_text, session.events)
    judge = HookJudge(rules, orders)
    is_unfinished = hook.occasion is not HookOccasion.PROMPT and session.is_answering
    broken_rules: dict[str, BrokenRule] = {}
    all_marks = {mark.key: mark for mark in marks}
    for turn in session.turns_to_judge:
        is_over = not (is_unfinished and turn is session.turns[-1])
        turn_marks = {mark.rule: mark for mark in all_marks.values() if mark.is_of(turn)}
        for broken in judge.find_broken_rules(turn, is_over, turn_marks):
            broken_rules[broken.rule.id] = broken
            mark = Mark.of(turn, broken.rule.id)
            all_marks[mark.key] = mark
    all_broken = tuple(broken_rules.values())
    answer = HookAnswer(hook.event, all_broken, problems=tuple(judge.problems))
    return _Judgement(answer, tuple(all_marks.values()))


def _next_state(
    rules: HookRules, session: _Session, marks: tuple[Mark, ...], loss: ContextLoss
) -> SessionState:
    """The state for the next call, which reads the log from the last exchange on."""
    part = session.part
    last = session.exchanges[-1]
    settled_turns = session.turns[:-1] if session.is_answering else session.turns
    count = session.start_state.turns + len(settled_turns)
    log_digests = digests(session.transcript, part.end)
    state = SessionState(
        rules=rules.fingerprint,
        offset=part.end,
        start=part.start if last.begins is None else part.offset_of(last.begins),
        turns=count,
        loss=loss,
        marks=tuple(mark for mark in marks if mark.turn > count),
        head=log_digests.head,
        tail=log_digests.tail,
    )
    return _with_context_before(state, session, rules)


def _with_context_before(state: SessionState, session: _Session, rules: HookRules) -> SessionState:
    """A state with what stands before the last exchange: the user's words, the assistant's last
    text and, if a rule needs them, the tool calls.
    """
    start = session.start_state
    earlier_calls, previous_text = start.earlier_calls, start.previous_text
    if session.turns:  # else there is only a message of the user, and nothing new before it
        done = session.turns[-1].done
        earlier_calls, previous_text = done.earlier, done.previous
        if not session.is_answering:
            earlier_calls, previous_text = (*done.earlier, *done.calls), done.text
    begins = session.exchanges[-1].begins
    before = itertools.takewhile(lambda event: event is not begins, session.events)
    return replace(
        state,
        earlier_calls=earlier_calls if rules.need_earlier_calls else (),
        previous_text=previous_text,
        earlier_words=user_events([*start.earlier_words, *(before if begins else ())]),
    )
