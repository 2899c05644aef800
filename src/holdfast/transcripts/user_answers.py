"""Reads the user's answers to the questions that an agent asked with a tool.

They are in the tool's result. Claude Code and opencode write them as text, such as
`User has answered your questions: "Push?"="Yes". You can now continue with ...`; Codex and Gemini
CLI as JSON, by the question's id or number.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from holdfast.measures.agent_tools import ASKS_USER
from holdfast.measures.turns import Answer, ToolCall
from holdfast.transcripts.transcript import Event, Kind
from holdfast.validation.json_values import fields_of, text_or_empty

_QUESTION_FIELDS = ("question", "prompt", "text")
_NO_ANSWERS = ("", "Unanswered")  # as opencode writes a question that was skipped
# what follows an answer in its quotation marks: a note of the user, or the preview of an option
_AFTER_ANSWER = re.compile(r'"(?=\.? You can now|\.?\s*\Z| selected preview:| user notes:)')
_NOTE = re.compile(r"\A.*? user notes: (.*?)(?=\. You can now|\.?\s*\Z)", re.DOTALL)
_SINGLE = re.compile(r"\A(?:User (?:selected|responded|answered|said): )?(.*)\Z", re.DOTALL)
_ELEMENT = re.compile(r"\A<(answer|user_message)>(.*)</\1>\Z", re.DOTALL)


class _Result(NamedTuple):
    """The result of a call that asked the user, with its answers.

    Args:
        position, call_position: those of the result, and of its call.
    """

    position: int
    call_position: int
    answers: tuple[Answer, ...]


def calls_with_answers(events: Sequence[Event]) -> tuple[ToolCall, ...]:
    """Returns the tool calls among some events, in order. Those that asked the user have the
    answers in their results; of several results, the last one with answers counts.
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
    """Yields the results that have answers. A result belongs to the last call with its id before
    it; if there is none, as in logs that write results first, to the first such call after it.
    """
    calls = {
        event.call.id: (position, event.call)
        for position, event in reversed([*enumerate(events)])
        if event.call is not None and event.call.id
    }
    for position, event in enumerate(events):
        if event.call is not None and event.call.id:
            calls[event.call.id] = (position, event.call)
        elif event.kind is Kind.TOOL_RESULT and event.call_id in calls:
            call_position, call = calls[event.call_id]
            answers = answers_in(event.text, call) if ASKS_USER.search(call.name) else ()
            if answers:
                yield _Result(position, call_position, answers)


def answers_in(result: str, call: ToolCall) -> tuple[Answer, ...]:
    """Returns the answers in the result of a call that asked the user; () if it has none."""
    asked = call.arguments.get("questions")
    entries = [fields_of(entry) for entry in asked] if isinstance(asked, list) else []
    if not entries:
        question = _question_of(call.arguments)
        answer = _single_answer(result)
        return (Answer(question, answer),) if question and answer not in _NO_ANSWERS else ()
    by_key = _json_answers(result)
    questions = [_question_of(entry) for entry in entries]
    answers: list[Answer] = []
    for number, (entry, question) in enumerate(zip(entries, questions, strict=True)):
        keys = (question, entry.get("id"), str(number), entry.get("header"))
        values = (by_key[str(key)] for key in keys if str(key) in by_key)
        text = next(values, None)
        if text is None and question:
            text = _quoted_answer(result, question, questions)
        if text is not None and text.strip() not in _NO_ANSWERS:
            answers.append(Answer(question, text.strip()))
    return tuple(answers)


def _question_of(fields: Mapping[str, Any]) -> str:
    texts = (text_or_empty(fields.get(name)) for name in _QUESTION_FIELDS)
    return next(filter(None, texts), "")


def _single_answer(result: str) -> str:
    """Returns the result of a tool that asks one question, without what is around the answer."""
    text = result.strip()
    if element := _ELEMENT.match(text):
        text = element[2].strip()
    match = _SINGLE.match(text)
    return match[1].strip() if match else text


def _json_answers(result: str) -> dict[str, str]:
    """Returns the answers in a result that is JSON, by their ids; {} for other results."""
    try:
        answers = fields_of(json.loads(result)).get("answers")
    except (ValueError, RecursionError):
        return {}
    if isinstance(answers, list):
        answers = dict(enumerate(answers))
    return {str(key): "\n".join(_texts_in(value)) for key, value in fields_of(answers).items()}


def _texts_in(answer: Any) -> list[str]:
    """Returns the texts of an answer: one, or several, or the choices and a text of one's own."""
    if isinstance(answer, str):
        return [answer]
    if isinstance(answer, Mapping):
        names = ("answers", "selected", "freeText", "answer", "text")
        answer = [answer[name] for name in names if answer.get(name)]
    return [*chain.from_iterable(map(_texts_in, answer))] if isinstance(answer, list) else []


def _quoted_answer(result: str, question: str, questions: Sequence[str]) -> str | None:
    """Returns the answer that stands behind its question in a text; None if there is none.

    Quotation marks within an answer are not escaped, so an answer ends at the next question, or at
    the end of the text.
    """
    _, mark, rest = result.partition(f'"{question}"="')
    if not mark:
        return None
    for other in questions:
        rest = rest.partition(f', "{other}"="')[0]
    end = _AFTER_ANSWER.search(rest)
    if end is None:
        return rest.removesuffix('"')
    note = _NOTE.match(rest[end.end() :])
    return f"{rest[: end.start()]}\n{note[1]}" if note else rest[: end.start()]
