"""Asks the questions of a capability in the middle of dialogs, under the methods of the dialogs.

Of 40 questions and 20 conversations, conversation 3 is asked questions 3 and 23: each takes the
place of the user's message in round `ask_at`, and never becomes a part of the dialog.

    system     Always reply in French.
    user       Hello.
    assistant  Bonjour !
    user       What is the capital of Italy?

The answer is read as the likeliest of the options, given their log-probabilities, or as the letter
in a reply that the model writes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.analysis.calibration_results import LETTERS
from holdfast.chat.messages import Message
from holdfast.drift.cases import Case
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.errors import UsageError
from holdfast.measures.multiple_choice import read_choice
from holdfast.methods import Ability, Method, spec_of
from holdfast.models.capabilities import supports
from holdfast.models.failures import CircuitBreaker, RequestKey, answer_each
from holdfast.models.protocol import ChatModel, Engine, score_replies
from holdfast.models.requests import Reply, Request
from holdfast.records import (
    CapabilityAnswer,
    CapabilityConversation,
    Conversation,
    LastReply,
    Tokens,
)
from holdfast.seeds import seed_of
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import Capability
from holdfast.study.capability_items import Item

if TYPE_CHECKING:
    from holdfast.generation.reply_scoring import Scored


@dataclass(frozen=True)
class CapabilityQuestion:
    """An item to ask about in a dialog."""

    dialog: Conversation
    number: int  # of the item
    item: Item


@dataclass(frozen=True)
class Answers:
    """The answers to questions by number, in both readings; {} for one that does not apply."""

    option_scores: Mapping[int, Scored]  # the log-probabilities of the options
    replies: Mapping[int, Reply]  # written


@dataclass(frozen=True)
class Questioner:
    """Asks the questions of a capability in the dialogs under one steering.

    Attributes:
        methods: of the dialogs.
        cases: the prompts of the suite, by id.
        capability: its items are divided among the conversations.
        num_conversations: of every steering.
        breaker: of the run; failed questions are reported to it.
    """

    model: ChatModel
    methods: tuple[Method, ...]
    cases: Mapping[str, Case]
    capability: Capability
    plan: CalibrationPlan
    num_conversations: int
    breaker: CircuitBreaker

    def count_questions(self, conversations: Sequence[int]) -> int:
        """Returns how many questions these conversations are asked."""
        return sum(len(self._numbers_in(conversation)) for conversation in conversations)

    async def ask(self, dialogs: Sequence[Conversation]) -> list[CapabilityConversation]:
        """Asks the questions of these dialogs together, and returns their records.

        A dialog with an unanswered question has none.
        """
        start = time.monotonic()
        questions = [question for dialog in dialogs for question in self._questions_in(dialog)]
        answers = await self._answer(questions)
        seconds = round((time.monotonic() - start) / max(len(dialogs), 1), 3)
        if self._has_letters:
            unanswered = {
                question.dialog.conversation
                for question in questions
                if question.number not in answers.replies
            }
            dialogs = [dialog for dialog in dialogs if dialog.conversation not in unanswered]
        last_replies = await self._score_last_replies(dialogs)
        return [
            self._record(dialog, answers, last_replies.get(dialog.conversation), seconds)
            for dialog in dialogs
        ]

    def _numbers_in(self, conversation: int) -> range:
        """Returns the numbers of the items that a conversation is asked about."""
        return self.capability.numbers_in(conversation, self.num_conversations)

    def _questions_in(self, dialog: Conversation) -> list[CapabilityQuestion]:
        """Returns the questions that a dialog is asked, the first one first."""
        items = self.capability.items
        numbers = self._numbers_in(dialog.conversation)
        return [CapabilityQuestion(dialog, number, items[number]) for number in numbers]

    @property
    def _has_letters(self) -> bool:
        """Whether the answer can be read from a written reply, as the letter of an option."""
        return self.capability.lettered and not self.capability.is_text

    async def _answer(self, questions: Sequence[CapabilityQuestion]) -> Answers:
        """Answers the questions in both readings, as far as model and capability support them."""
        option_scores: dict[int, Scored] = {}
        replies: dict[int, Reply] = {}
        # asking the first question of each dialog first lets the others reuse its cached history
        first = [question for question in questions if question.number < self.num_conversations]
        later = [question for question in questions if question.number >= self.num_conversations]
        async with self.model.session() as engine:
            if supports(self.model, Ability.REPLY_SCORES):
                option_scores |= await self._score_options(engine, first, keep=True)
                option_scores |= await self._score_options(engine, later, keep=False)
            if self._has_letters:
                replies |= await self._write_replies(engine, first, keep=not option_scores)
                replies |= await self._write_replies(engine, later, keep=False)
        return Answers(option_scores, replies)

    async def _score_options(
        self, engine: Engine, questions: Sequence[CapabilityQuestion], *, keep: bool
    ) -> dict[int, Scored]:
        """Scores the options of questions, by number; `keep` keeps the history in the cache."""
        if not questions:
            return {}
        # methods that draw a reply again do not apply to replies that are given
        requests = [
            replace(request, methods=request.compiled.without_retries.methods)
            for request in (self._request(question, keep=keep) for question in questions)
        ]
        options = [question.item.replies for question in questions]
        all_scores = await score_replies(engine, requests, options)
        scores_by_number: dict[int, Scored] = {}
        for question, scores in zip(questions, all_scores, strict=True):
            if question.item.answer is None and not math.isfinite(scores.log_probabilities[0]):
                raise UsageError(
                    f"{spec_of(self.methods)} gives a token of the text no probability, so"
                    " its perplexity is infinite; sweep without a threshold."
                )
            scores_by_number[question.number] = scores
        return scores_by_number

    async def _write_replies(
        self, engine: Engine, questions: Sequence[CapabilityQuestion], *, keep: bool
    ) -> dict[int, Reply]:
        """Generates the replies to questions, by number, without those that failed."""
        if not questions:
            return {}
        label = spec_of(self.methods)
        replies: dict[int, Reply] = {}
        requests = {
            RequestKey(label, question.number): self._request(question, keep=keep)
            for question in questions
        }

        def note_reply(key: RequestKey, reply: Reply) -> None:
            replies[key.number] = reply

        await answer_each(engine, requests, self.breaker, note_reply)
        return replies

    def _request(self, question: CapabilityQuestion, *, keep: bool) -> Request:
        """Makes the request that asks a question at the end of its dialog's history."""
        number = question.dialog.conversation
        message: Message = {"role": "user", "content": question.item.question}
        return Request(
            (*_history(question.dialog, self.plan), message),
            with_rules(CaseRules(self.cases[question.dialog.agent.id]), self.methods),
            self.plan.answering,
            seed=seed_of("capability", self.plan.seed, question.number),
            conversation_seed=seed_of("methods", self.plan.seed, number),
            thread=number,
            keep=keep,
            system_as=self.plan.system_as,
        )

    async def _score_last_replies(self, dialogs: Sequence[Conversation]) -> dict[int, LastReply]:
        """Returns, by conversation, the log-probability of its last reply before the questions
        under the model without methods.

        Leaves out conversations without a reply and impossible replies; {} if the model reports no
        log-probabilities.
        """
        if not supports(self.model, Ability.REPLY_SCORES):
            return {}
        histories: dict[int, list[Message]] = {}  # of conversations that have a last reply
        for dialog in dialogs:
            history = _history(dialog, self.plan)
            if len(history) >= 2 and str(history[-1]["content"]).strip():
                histories[dialog.conversation] = history
        if not histories:
            return {}
        requests = [
            Request(history[:-1], system_as=self.plan.system_as) for history in histories.values()
        ]
        replies = [[str(history[-1]["content"])] for history in histories.values()]
        async with self.model.session() as engine:
            all_scores = await score_replies(engine, requests, replies)
        last_replies: dict[int, LastReply] = {}
        for conversation, scores in zip(histories, all_scores, strict=True):
            log_probability = scores.log_probabilities[0]
            if math.isfinite(log_probability):
                last_replies[conversation] = LastReply(
                    log_probability=log_probability, tokens=scores.tokens[0]
                )
        return last_replies

    def _record(
        self, dialog: Conversation, answers: Answers, last_reply: LastReply | None, seconds: float
    ) -> CapabilityConversation:
        """Makes the record of the answers in a dialog."""
        questions = self._questions_in(dialog)
        readings: tuple[Mapping[int, Scored | Reply], ...] = (
            answers.option_scores,
            answers.replies,
        )
        forwarded = [
            reading[question.number].forwarded
            for reading in readings
            for question in questions
            if question.number in reading
        ]
        return CapabilityConversation(
            method=spec_of(self.methods),
            conversation=dialog.conversation,
            agent=dialog.agent,
            user=dialog.user,
            turns=tuple(turn for turn in dialog.turns if turn.round < self.plan.ask_at),
            probes=tuple(_record_answer(question, answers, self.plan) for question in questions),
            tokens=Tokens(forwarded=sum(forwarded)),
            last_reply=last_reply,
            seconds=seconds,
        )


def _history(dialog: Conversation, plan: CalibrationPlan) -> list[Message]:
    """Returns the chat before the questions: the system prompt, and the rounds before `ask_at`."""
    roles = {"user": "user", "agent": "assistant"}
    chat: list[Message] = []
    if system := dialog.agent.system_prompt:
        chat.append({"role": "system", "content": system})
    turns = [turn for turn in dialog.turns if turn.round < plan.ask_at]
    if turns and turns[-1].speaker == "user":  # the dialog ended before the reply
        turns.pop()
    chat += [{"role": roles[turn.speaker], "content": turn.text} for turn in turns]
    return chat


def _record_answer(
    question: CapabilityQuestion, answers: Answers, plan: CalibrationPlan
) -> CapabilityAnswer:
    """Makes the record of a question, with its score in the reading of the plan."""
    item = question.item
    reply = answers.replies.get(question.number)
    scores = answers.option_scores.get(question.number)
    likeliest_score: float | None = None
    written_score: float | None = None
    reason = ""  # for the score of the written reply
    if scores is not None and item.answer is not None:
        likeliest_score = _score_likeliest(scores.log_probabilities, item.answer)
    if reply is not None and item.answer is not None:
        letter, reason = read_choice(reply.text, LETTERS)
        written_score = float(bool(letter) and letter == LETTERS[item.answer])
    score = likeliest_score if plan.reading == "likeliest" else written_score
    if item.answer is None and scores is not None:  # a passage: its log-probability per token
        score = scores.log_probabilities[0] / scores.tokens[0]
    assert score is not None  # `calibrate` refuses a reading that does not apply
    return CapabilityAnswer(
        round=plan.ask_at,
        kind="capability",
        probe=question.number,
        question=item.question,
        reply=reply.text if reply else "",
        score=score,
        reason=reason,
        likeliest=likeliest_score,
        written=written_score,
        answer=item.answer,
        log_probabilities=None if scores is None else _finite(scores.log_probabilities),
        tokens=None if scores is None else scores.tokens[0],
    )


def _score_likeliest(log_probabilities: Sequence[float], answer: int) -> float:
    """Returns 1 if the right option is the likeliest and not impossible, else 0."""
    best = max(range(len(log_probabilities)), key=log_probabilities.__getitem__)
    return float(best == answer and math.isfinite(log_probabilities[best]))


def _finite(log_probabilities: Sequence[float]) -> tuple[float | None, ...]:
    """Replaces the log-probabilities of impossible replies, which JSON cannot have, by None."""
    return tuple(value if math.isfinite(value) else None for value in log_probabilities)
