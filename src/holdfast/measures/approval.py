"""Whether the user agreed to an act in the answers to a tool's questions, or to a plan with it.

For example, for the act `push`, a question and its answer:

    "Push to main?"           "Yes"      ->  the user agreed
    "Push to main?"           "Not yet"  ->  the user did not agree
    "Push to main, or wait?"  "Yes"      ->  undecided
    "What next?"              "Push"     ->  the user agreed, if "Push" is an option
"""

import json
import re
from collections.abc import Iterator

from holdfast.measures.agent_acts.agent_tools import SHOWS_PLAN
from holdfast.measures.agent_acts.user_questions import UserQuestion, questions_in
from holdfast.measures.patterns import matches
from holdfast.measures.scores import Undecided
from holdfast.measures.turns import ToolCall
from holdfast.measures.user_orders import (
    AGREED,
    has_condition,
    has_doubt,
    is_ordered,
    is_proposed,
    may_order,
    refuses,
    says_yes,
)
from holdfast.measures.wording.act_nouns import names_act

_APPROVED = re.compile(r"\bapproved\b", re.IGNORECASE)  # in the result of a call that shows a plan
_ALTERNATIVE = re.compile(r"\b(?:or|oder|ou)\b", re.IGNORECASE)  # "push *or* wait"


def agreement_in(call: ToolCall, act: str, agreed: str) -> bool | Undecided | None:
    """Whether the user agreed to an act in the answers to a tool's questions, or to a plan with it.

    Args:
        agreed: a regular expression that an answer matches if the user agrees.

    Returns:
        None if the tool asked for something else.
    """
    if SHOWS_PLAN.search(call.name):
        is_planned = is_proposed(act, str(call.arguments.get("plan") or ""))
        return True if is_planned and _APPROVED.search(call.result) else None
    questions = [question for question in _questions_of(call) if any(_names_in(act, question))]
    if not questions:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
        return _no_answer(call) if matches(act, arguments, "i") and not call.answers else None
    verdicts: list[bool | None] = []
    for question in questions:
        answers = [answer for answer in call.answers if answer.question == question.text]
        verdicts += [_agrees(answer.text, question, act, agreed) for answer in answers]
    if not verdicts:
        return _no_answer(call)
    if True in verdicts and False not in verdicts:
        return True
    if not any(verdict is None or verdict for verdict in verdicts):
        return False
    return Undecided(f"the answer to the question that {call.name} asked is neither yes nor no")


def _no_answer(call: ToolCall) -> Undecided:
    return Undecided(f"the log does not show the answer to the question that {call.name} asked")


def _questions_of(call: ToolCall) -> list[UserQuestion]:
    """Returns the questions in a call's arguments, and those that only its answers have."""
    questions = list(questions_in(call.arguments))
    texts = [question.text for question in questions]
    answered = (answer.question for answer in call.answers)
    return [*questions, *(UserQuestion(text) for text in answered if text not in texts)]


def _names_in(act: str, question: UserQuestion) -> Iterator[bool]:
    """Yields for each text of a question whether it names an act; its options have texts too."""
    yield _is_named(act, question)
    for option in question.options:
        yield names_act(act, option.label)
        yield names_act(act, option.description)


def _is_named(act: str, question: UserQuestion) -> bool:
    """Whether a question names an act itself, or in its header."""
    return names_act(act, question.text) or names_act(act, question.header)


def _agrees(text: str, question: UserQuestion, act: str, agreed: str) -> bool | None:
    """Whether an answer agrees to an act that a question, or an option of it, names.

    None if that is not decided.

    The answer agrees if it is a yes, or if it or the option that it chooses names the act.
    """
    if agreed != AGREED:
        return matches(agreed, text)
    is_named = _is_named(act, question)
    is_clear = is_named and _is_clear(act, question)
    words = (text, *_chosen_descriptions(text, question))
    if refuses(text):
        is_open = any(may_order(act, part) for part in words) or (is_named and not is_clear)
        return None if is_open else False
    orders = [is_ordered(act, part) for part in words]
    if None in orders:
        return None
    if True in orders:
        return True
    is_simple = is_clear and not _ALTERNATIVE.search(question.text)
    is_plain_yes = says_yes(text) and not has_doubt(text) and not has_condition(text)
    return True if is_simple and is_plain_yes else None


def _is_clear(act: str, question: UserQuestion) -> bool:
    """Whether a no to a question is a no to the act, unlike in "Shall I skip the push?"."""
    if names_act(act, question.text):
        parts = _ALTERNATIVE.split(question.text)
        return any(is_proposed(act, part) is True for part in parts)
    return not has_doubt(question.text)


def _chosen_descriptions(text: str, question: UserQuestion) -> list[str]:
    """Returns the descriptions of the options that an answer chooses; a note may follow them."""
    first_line = text.partition("\n")[0].strip()
    labels = {label.casefold() for label in (text, first_line, *first_line.split(", "))}
    return [o.description for o in question.options if o.label.strip().casefold() in labels]
