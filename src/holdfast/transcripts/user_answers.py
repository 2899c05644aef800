"""Reads the user's answers to the questions that an agent asked with a tool.

They are in the tool's result. Claude Code and opencode write them as text, such as
`User has answered your questions: "Push?"="Yes". You can now continue with ...`; Codex and Gemini
CLI as JSON, by the question's id or number. The answer to a single question is also an element
(`<answer>Yes</answer>`), a text such as `User selected: Yes`, or one of the question's options. Any
other result may be an error or a refusal of the call, and has no answers.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from holdfast.measures.agent_acts.agent_tools import ASKS_USER
from holdfast.measures.agent_acts.user_questions import UserQuestion, questions_in
from holdfast.measures.turns import ToolCall, UserAnswer
from holdfast.transcripts.transcript import Event, EventKind
from holdfast.validation.json_values import fields_of

_NO_ANSWERS = ("", "Unanswered")  # as opencode writes a question that was skipped
# what follows an answer in its quotation marks: a note of the user, or the preview of an option
_AFTER_ANSWER = re.compile(r'"(?=\.? You can now|\.?\Z| selected preview:| user notes:)')
_NOTE = re.compile(r"\A.*? user notes: (.*?)(?=\. You can now|\.?\Z)", re.DOTALL)
# of Cline and Roo Code, before what a tool returned
_HEADER = re.compile(r"\A\[\w+(?: for '.*?')?\] Result:\s*", re.DOTALL)
_ELEMENT = re.compile(r"\A<(answer|user_message)>(.*)</\1>", re.DOTALL)
_SINGLE = re.compile(
    r"\A(?:The )?user (?:selected|responded|answered|said): (.*)\Z", re.DOTALL | re.IGNORECASE
)
_YES_OR_NO = re.compile(r"(?:yes|no|y|n)[.!]?", re.IGNORECASE)
# the fields of an answer in JSON, those that say that there is none, and which question it is for
_ANSWER_FIELDS = ("answers", "selected", "freeText", "answer")
_FAILURE_FIELDS = ("error", "isError", "is_error", "cancelled", "canceled", "declined")
_KEY_FIELDS = ("question", "id", "questionId", "header")


class _Result(NamedTuple):
    """The result of a call that asked the user, with its answers.

    Args:
        position, call_position: those of the result, and of its call.
    """

    position: int
    call_position: int
    answers: tuple[UserAnswer, ...]


def calls_with_answers(events: Sequence[Event]) -> tuple[ToolCall, ...]:
    """Returns the tool calls among some events, in order. Those that asked the user have the
    answers in their results; of several results, the first one with answers counts.
    """
    answers = {result.call_position: result.answers for result in _results_with_answers(events)}
    return tuple(
        replace(event.call, answers=answers[position]) if position in answers else event.call
        for position, event in enumerate(events)
        if event.call is not None
    )


def words_of_user(path: Sequence[Event]) -> dict[int, str]:
    """Returns what the user said on a path, messages and answers, by the positions of events."""
    words = {position: event.text for position, event in enumerate(path) if event.is_by_user}
    for result in _results_with_answers(path):
        words[result.position] = "\n".join(answer.text for answer in result.answers)
    return dict(sorted(words.items()))


def _results_with_answers(events: Sequence[Event]) -> Iterator[_Result]:
    """Yields the first result with answers of each call that asked the user.

    A result belongs to the last call with its id before it; if there is none, as in logs that write
    results first, to the first such call after it.
    """
    answered: set[int] = set()
    calls = {
        event.call.id: (position, event.call)
        for position, event in reversed([*enumerate(events)])
        if event.call is not None and event.call.id
    }
    for position, event in enumerate(events):
        if event.call is not None and event.call.id:
            calls[event.call.id] = (position, event.call)
        elif event.kind is EventKind.TOOL_RESULT and event.call_id in calls:
            call_position, call = calls[event.call_id]
            if call_position in answered or not ASKS_USER.search(call.name):
                continue
            answers = answers_in(event.text, call)
            if answers:
                answered.add(call_position)
                yield _Result(position, call_position, answers)


def answers_in(result: str, call: ToolCall) -> tuple[UserAnswer, ...]:
    """Returns the answers in the result of a call that asked the user; () if it has none."""
    questions = questions_in(call.arguments)
    by_key = _json_answers(result)
    quoted_answers = _quoted_answers(result, questions)
    answers: list[UserAnswer] = []
    for number, question in enumerate(questions):
        keys = (question.text, question.id, str(number), question.header)
        text = next((by_key[key] for key in keys if key in by_key), None)
        if text is None:
            text = quoted_answers.get(number)
        if text is None and len(questions) == 1:
            text = _single_answer(result, question)
        if text is not None and text.strip() not in _NO_ANSWERS:
            answers.append(UserAnswer(question.text, text.strip()))
    return tuple(answers)


def _single_answer(result: str, question: UserQuestion) -> str | None:
    """Returns the answer in the result of a call that asked one question; None if it has none."""
    text = _HEADER.sub("", result.strip(), count=1)
    for form in (_ELEMENT, _SINGLE):
        if match := form.match(text):
            return match[match.lastindex or 0]
    try:
        value = json.loads(text)
        if isinstance(value, Mapping):
            has_failed = any(value.get(name) for name in _FAILURE_FIELDS)
            texts = [] if has_failed else _texts_in([value.get(name) for name in _ANSWER_FIELDS])
            return "\n".join(texts) or None
        if isinstance(value, str):
            text = value.strip()
    except (ValueError, RecursionError):
        pass  # not JSON
    labels = [option.label.strip().casefold() for option in question.options]
    return text if text.casefold() in labels or _YES_OR_NO.fullmatch(text) else None


def _json_answers(result: str) -> dict[str, str]:
    """Returns the answers in a result that is JSON, by their ids; {} for other results."""
    try:
        value = fields_of(json.loads(result))
        if isinstance(output := value.get("output"), str):  # as Gemini CLI wraps results
            value = fields_of(json.loads(output))
        answers = value.get("answers")
        if isinstance(answers, list):
            answers = {_key_of(answer, number): answer for number, answer in enumerate(answers)}
        return {str(key): "\n".join(_texts_in(value)) for key, value in fields_of(answers).items()}
    except (ValueError, RecursionError):
        return {}


def _key_of(answer: Any, number: int) -> str:
    """Returns the question or the id that an answer in a list names, or else its number."""
    names = (fields_of(answer).get(name) for name in _KEY_FIELDS)
    return str(next(filter(None, names), number))


def _texts_in(answer: Any) -> list[str]:
    """Returns the texts of an answer: one, or several, or the choices and a text of one's own."""
    if isinstance(answer, str):
        return [answer] if answer.strip() else []
    if isinstance(answer, int | float):
        return [json.dumps(answer)]
    if isinstance(answer, Mapping):
        answer = [answer.get(name) for name in (*_ANSWER_FIELDS, "text")]
    return [*chain.from_iterable(map(_texts_in, answer))] if isinstance(answer, list) else []


def _quoted_answers(result: str, questions: Sequence[UserQuestion]) -> dict[int, str]:
    """Returns the answers in a result such as `"Push?"="Yes"`, by the numbers of the questions."""
    answers: dict[int, str] = {}
    last_answers: dict[str, int] = {}  # by question: where its last answer begins
    for number, question in enumerate(questions):
        if not question.text:
            continue
        mark = f'"{question.text}"="'
        start = result.find(mark, last_answers.get(question.text, 0))
        if start >= 0:
            begin = start + len(mark)
            last_answers[question.text] = begin
            answers[number] = _quoted_answer(result[begin:], questions)
    return answers


def _quoted_answer(rest: str, questions: Sequence[UserQuestion]) -> str:
    """Returns the answer with which a text begins, up to its quotation mark.

    Quotation marks within an answer are not escaped, so an answer ends at the next question, or at
    the end of the text.
    """
    for other in questions:
        rest = rest.partition(f', "{other.text}"="')[0]
    rest = rest.rstrip()
    end = _AFTER_ANSWER.search(rest)
    if end is None:
        return rest.removesuffix('"')
    note = _NOTE.match(rest[end.end() :])
    return f"{rest[: end.start()]}\n{note[1]}" if note else rest[: end.start()]
