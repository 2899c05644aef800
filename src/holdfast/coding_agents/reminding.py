"""Which rules a coding agent just broke, or no longer has in its context, and the words for it.

A hook reads the session from the beginning of its last turn on (`session_state.py`), judges the
turns that were not settled before, and answers with what the model has to be reminded of.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.coding_agents.hook_input import HookInput, Occasion
from holdfast.coding_agents.hook_rules import HookRule, HookRules
from holdfast.coding_agents.session_state import (
    Mark,
    SessionState,
    digests,
    read_state,
    write_state,
)
from holdfast.errors import UsageError
from holdfast.logs.context import compactions
from holdfast.logs.dialogs import LoggedExchange, LoggedTurn, exchanges_of, turns_of
from holdfast.measures.patterns import searches_end_within
from holdfast.measures.scores import FOLLOWED, Score
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.session_part import SessionPart, read_session_part
from holdfast.transcripts.transcript import Event, Kind

# seconds of computing that regular expressions may take: those of one rule, and all together
_SECONDS_PER_RULE, _SECONDS = 0.05, 0.15
_LONGEST = 9000  # characters of a reminder: agents cut what is longer than 10,000


@dataclass(frozen=True)
class BrokenRule:
    """A rule that a turn broke, and what shows it."""

    rule: HookRule
    evidence: str


@dataclass(frozen=True)
class HookAnswer:
    """The rules that the model is reminded of.

    Args:
        broken: by what the assistant did since the last call of the hook.
        left: all rules, if they have left the context.
        problems: sentences about rules that could not be judged, and a state that was not written.
    """

    event: str
    broken: tuple[BrokenRule, ...] = ()
    left: tuple[HookRule, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words for the model; "" if there is nothing to say."""
        lines: list[str] = []
        if self.broken:
            lines.append("You have just broken these rules; keep them from here on:")
            lines += [f"- {item.rule.text} ({item.evidence})" for item in self.broken]
        named = {item.rule.id for item in self.broken}
        others = [f"- {rule.text}" for rule in self.left if rule.id not in named]
        if others:
            which = "The other rules" if named else "The rules"
            lines.append(f"Your context was compacted. {which} still hold:")
            lines += others
        return "\n".join(_cut(lines))

    @property
    def output(self) -> str:
        """The JSON that the hook prints, which Claude Code, Codex and Gemini CLI read alike."""
        if not self.text:
            return ""
        answer = {"hookEventName": self.event, "additionalContext": self.text}
        return json.dumps({"hookSpecificOutput": answer})


def _cut(lines: Sequence[str]) -> list[str]:
    """The lines that fit, and how many are left out."""
    kept: list[str] = []
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _LONGEST:
            return [*kept, f"(and {len(lines) - number} more lines, left out)"]
        kept.append(line)
    return kept


def answer_hook(hook: HookInput, rules: HookRules, file: Path | None = None) -> HookAnswer:
    """Answers the call of a hook.

    Args:
        file: of the session's state, which is read and written.

    Raises:
        UsageError: the input names no transcript, or one that cannot be read.
    """
    if hook.occasion is Occasion.OTHER:
        return HookAnswer(hook.event)
    if hook.is_in_subagent:  # the transcript is that of the session, and not the subagent's
        turn = AssistantTurn("", () if hook.call is None else (hook.call,))
        judging = _Judging(rules)
        found = judging.broken(LoggedTurn(1, "", "", 0, turn), is_over=False)
        return HookAnswer(hook.event, tuple(found), problems=tuple(judging.problems))
    if hook.transcript is None:
        raise UsageError(
            "The hook's input names no transcript (transcript_path); let the agent keep its"
            " sessions.",
            option="transcript_path",
        )
    if not hook.transcript.exists():  # a session that has just begun
        return HookAnswer(hook.event)
    session = _read_session(hook, rules, file)
    answer, state = _answer(hook, rules, session)
    if file is not None:
        try:
            write_state(file, state)
        except OSError as error:
            problem = (
                f"The state of the session cannot be written to {file} ({error.strerror}), so that"
                " its log is read from the start and rules are repeated; set XDG_CACHE_HOME."
            )
            answer = replace(answer, problems=(*answer.problems, problem))
    return answer


@dataclass(frozen=True)
class _Session:
    """The part of a session that was read, and what is known of what is before it.

    Args:
        state: None if the session was not read before, or its log was written anew.
        settled: how many turns are before the part.
        all_settled: the same for the last call; turns after it are judged.
    """

    part: SessionPart
    exchanges: Sequence[LoggedExchange]
    turns: Sequence[LoggedTurn]
    state: SessionState | None
    settled: int
    all_settled: int
    transcript: Path


def _read_session(hook: HookInput, rules: HookRules, file: Path | None) -> _Session:
    assert hook.transcript is not None
    path = hook.transcript
    state = None if file is None else read_state(file, rules.fingerprint, path)
    part = read_session_part(path, state.start if state else 0)
    rewound = part.reaches_back
    if rewound and part.start:
        part = read_session_part(path)
    known = state if state and part.start else None  # of what is before the part
    exchanges = exchanges_of(_with_call(part.events, hook.call))
    earlier, previous = (known.earlier, known.previous) if known else ((), "")
    turns = turns_of(exchanges, earlier, previous)
    settled = known.turns if known else 0
    turns = tuple(replace(turn, number=settled + turn.number) for turn in turns)
    # of a session that was not followed so far, or was rewound, the last turn counts
    only_last = settled + max(len(turns) - 1, 0)
    all_settled = only_last if state is None or rewound else state.turns
    return _Session(part, exchanges, turns, state, settled, all_settled, path)


def _with_call(events: Sequence[Event], call: ToolCall | None) -> list[Event]:
    """The events with the call that was just made, which the log may not have yet."""
    calls = [event.call for event in events if event.call is not None]
    if call is None or any(call.id and call.id == known.id for known in calls):
        return [*events]
    if not call.id and calls and calls[-1] == call:
        return [*events]
    return [*events, Event(Kind.TOOL_CALL, call=call)]


def _answer(
    hook: HookInput, rules: HookRules, session: _Session
) -> tuple[HookAnswer, SessionState]:
    """The answer to the call of a hook, and the state for the next call."""
    before = session.state or SessionState(rules.fingerprint)
    new = _new_compactions(session.part, before.offset if session.state else 0)
    unsaid = new - 1 if before.said_ahead and new else new
    said_ahead = before.said_ahead and not new
    has_left = (
        before.has_left or unsaid > 0 or hook.occasion in (Occasion.COMPACTED, Occasion.LEAVING)
    )
    marks = before.marks
    if hook.occasion is Occasion.LEAVING:
        answer = HookAnswer(hook.event)
    else:
        answer, marks = _judge(hook, rules, session, marks)
        if has_left:
            answer = replace(answer, left=rules.rules)
            has_left, said_ahead = False, not new
    return answer, _next_state(rules, session, marks, has_left, said_ahead)


def _new_compactions(part: SessionPart, offset: int) -> int:
    """How many compactions begin after a byte of the log."""
    begins = compactions(part.events)
    return sum(part.offset_of(part.events[position]) >= offset for position in begins)


def _judge(
    hook: HookInput, rules: HookRules, session: _Session, marks: tuple[Mark, ...]
) -> tuple[HookAnswer, tuple[Mark, ...]]:
    """The rules that were broken in turns which are not settled, and the marks of what is said."""
    judging = _Judging(rules)
    goes_on = hook.occasion is not Occasion.PROMPT and bool(
        session.exchanges and session.exchanges[-1].replies
    )
    found: dict[str, BrokenRule] = {}
    for turn in session.turns:
        if turn.number <= session.all_settled:
            continue
        is_over = not (goes_on and turn is session.turns[-1])
        key = (turn.number, _digest(turn.user))
        said = {mark.rule: mark for mark in marks if (mark.turn, mark.message) == key}
        others = [mark for mark in marks if mark not in said.values()]
        calls = turn.done.calls
        for broken in judging.broken(turn, is_over, said):
            rule = broken.rule.id
            found[rule] = broken
            said[rule] = Mark(*key, rule, len(calls), calls[-1].id if calls else "")
        marks = (*others, *said.values())
    answer = HookAnswer(hook.event, tuple(found.values()), problems=tuple(judging.problems))
    return answer, marks


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _next_state(
    rules: HookRules,
    session: _Session,
    marks: tuple[Mark, ...],
    has_left: bool,
    said_ahead: bool,
) -> SessionState:
    """The state from which the next call goes on: at the beginning of the last exchange."""
    part, last = session.part, session.exchanges[-1]
    is_open = bool(last.replies)
    before = session.turns[:-1] if is_open else session.turns
    settled = session.settled + len(before)
    start = part.offset_of(last.begins) if last.begins is not None else part.start
    earlier, previous = _before_last(session, is_open)
    known_by = digests(session.transcript, part.end)
    return SessionState(
        rules=rules.fingerprint,
        offset=part.end,
        start=start,
        turns=settled,
        earlier=earlier if rules.need_earlier_calls else (),
        previous=previous if rules.need_earlier_calls else "",
        has_left=has_left,
        said_ahead=said_ahead,
        marks=tuple(mark for mark in marks if mark.turn > settled),
        head=known_by.head,
        tail=known_by.tail,
    )


def _before_last(session: _Session, is_open: bool) -> tuple[tuple[ToolCall, ...], str]:
    """The tool calls before the last exchange, and the assistant's text before it."""
    if not session.turns:  # the user's message alone: what is known of the turns before stands
        known = session.state if session.part.start else None
        return (known.earlier, known.previous) if known else ((), "")
    done = session.turns[-1].done
    return (done.earlier, done.previous) if is_open else (done.earlier + done.calls, done.text)


class _Judging:
    """Judges turns by rules; `problems` has a sentence for each rule that could not be judged."""

    def __init__(self, rules: HookRules):
        self._rules = rules.rules
        self._seconds = _SECONDS
        self.problems: list[str] = []

    def broken(
        self, turn: LoggedTurn, is_over: bool, said: Mapping[str, Mark] | None = None
    ) -> Iterator[BrokenRule]:
        """The rules that a turn breaks.

        Args:
            said: by the ids of the rules that it was already said to break.
        """
        for rule in self._rules:
            seconds = min(_SECONDS_PER_RULE, self._seconds)
            try:
                with searches_end_within(seconds) as search_time:
                    score = _score(rule, turn, is_over, (said or {}).get(rule.id))
            except UsageError as error:
                self.problems.append(f"The rule {rule.id!r} was not judged: {error}")
                continue
            finally:
                self._seconds -= seconds - search_time.left
            if score is not None and score.value < FOLLOWED:
                yield BrokenRule(rule, " ".join(score.reason.split()))


def _score(rule: HookRule, turn: LoggedTurn, is_over: bool, said: Mark | None) -> Score | None:
    """The score of a turn, or of what was done in it since the rule was said to be broken."""
    done = turn.done
    if said is not None:
        count = said.calls_in(done.calls)
        earlier = (*done.earlier, *done.calls[:count])
        done = replace(done, text="", calls=done.calls[count:], earlier=earlier)
        if not (rule.measure.of_turn and done.calls):
            return None
    if not rule.when.applies(turn.done, turn.user, turn.role):
        return None
    return rule.measure.score_turn(done) if is_over else rule.measure.score_so_far(done)
