"""Holds the conversations of the precedent experiment: two histories, and the replies after either.

For the prompt "Always reply in French." and the questions "Where are you?" and "Who is he?", the
histories are ("Where are you?", "Je suis ici.") and ("Where are you?", "I am here."). In a `View`,
the model is shown a part of one of them, and asked "Who is he?".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast import records
from holdfast.chat.messages import Message
from holdfast.drift.progress import Progress
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.errors import RequestFailed
from holdfast.methods import Method, spec_of
from holdfast.models.checked_replies import generate_checked
from holdfast.models.event_loop import task_group
from holdfast.models.failures import CircuitBreaker
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request
from holdfast.records.precedent_records import History, NextReply, PrecedentChat, ReplyScores
from holdfast.seeds import seed_of
from holdfast.study.precedent_scenarios import (
    BROKEN,
    KEPT,
    Histories,
    HistoryKind,
    PrecedentSettings,
    Scenario,
)

# without a system prompt, some templates would insert a default
NEUTRAL_PROMPT = "You are a helpful assistant."
_SCORE_IF_UNKNOWN = 0.5  # of a rule, when the draws of a history are compared


class View(NamedTuple):
    """A condition of the experiment: the model's view of the conversation before the last question.

    Args:
        history: whether the replies in view keep the rules or break them.
        seen: how many of the history's last replies are in view, each with its question.
        prompted: whether the system prompt is in view, rather than a neutral one.
    """

    history: HistoryKind
    seen: int
    prompted: bool


class ChosenReply(NamedTuple):
    """A reply of a history: of several draws, the one that keeps, or breaks, the rules most."""

    reply: Reply
    scores: ReplyScores
    draws: tuple[Reply, ...]  # all that were drawn


@dataclass(frozen=True)
class PrecedentChats:
    """Holds the conversations of a study in a session of a model, under one steering."""

    engine: Engine
    settings: PrecedentSettings
    methods: tuple[Method, ...]
    breaker: CircuitBreaker
    progress: Progress

    async def hold(
        self, number: int, scenario: Scenario, histories: Histories | None
    ) -> PrecedentChat:
        """Makes both histories if there are none yet, and then replies to the last question in
        every view of them.
        """
        draws: list[Reply] = []
        if histories is None:
            histories = {}
            for kind in (KEPT, BROKEN):
                chosen = await self._make_history(number, scenario, kind)
                histories[kind] = _history_record(chosen)
                draws += itertools.chain.from_iterable(reply.draws for reply in chosen)
        views = self._views()
        async with task_group() as group:
            tasks = [
                group.create_task(self._reply_in(view, number, scenario, histories[view.history]))
                for view in views
            ]
        replies = [task.result() for task in tasks]
        case = scenario.case
        return PrecedentChat(
            method=spec_of(self.methods),
            conversation=number,
            agent=records.Agent(
                id=case.id, category=case.category, system_prompt=case.system_prompt
            ),
            questions=scenario.questions,
            kept=histories[KEPT],
            broken=histories[BROKEN],
            next_replies=tuple(
                _next_reply_record(view, reply, scenario.score(reply))
                for view, reply in zip(views, replies, strict=True)
            ),
            tokens=_count_tokens([*draws, *replies]),
        )

    def _views(self) -> list[View]:
        """Returns all views; under methods, which act on the system prompt, only those with it."""
        prompted = (True,) if self.methods else (True, False)
        conditions = itertools.product((KEPT, BROKEN), self.settings.seen, prompted)
        return list(itertools.starmap(View, conditions))

    async def _make_history(
        self, number: int, scenario: Scenario, kind: HistoryKind
    ) -> list[ChosenReply]:
        """Replies to all questions but the last, choosing one of several draws each time.

        To make the model keep the rules, the system prompt is repeated below every question; to
        make it break them, a neutral prompt takes its place. The history has the plain questions.
        """
        if kind == KEPT:
            prompt = scenario.case.system_prompt
            reminder = f"\n\n({prompt})"
        else:
            prompt = NEUTRAL_PROMPT
            reminder = ""
        history: list[ChosenReply] = []
        for turn, question in enumerate(scenario.questions[:-1]):
            texts = [earlier.reply.text for earlier in history]
            chat = _chat(prompt, scenario.questions, texts, question + reminder)
            async with task_group() as group:
                tasks = [
                    group.create_task(self._generate(chat, number, kind, turn, draw))
                    for draw in range(self.settings.draws)
                ]
            draws = tuple(task.result() for task in tasks)
            candidates = [ChosenReply(reply, scenario.score(reply), draws) for reply in draws]
            sign = 1 if kind == KEPT else -1
            history.append(max(candidates, key=lambda reply: sign * _mean_score(reply.scores)))
        return history

    async def _reply_in(
        self, view: View, number: int, scenario: Scenario, history: History
    ) -> Reply:
        """Replies to the last question in one view of the history."""
        first = len(history.replies) - view.seen  # the first reply in view
        questions = scenario.questions[first:]
        replies = history.replies[first:]
        prompt = scenario.case.system_prompt if view.prompted else NEUTRAL_PROMPT
        chat = _chat(prompt, questions, replies, questions[-1])
        methods = with_rules(CaseRules(scenario.case), self.methods) if view.prompted else ()
        # the seed is the same with either history, and with and without the prompt
        return await self._generate(
            chat, number, "next", view.seen, methods=methods, trace=view.prompted
        )

    async def _generate(
        self,
        chat: tuple[Message, ...],
        number: int,
        purpose: HistoryKind | Literal["next"],
        *draw: int,
        methods: tuple[Method, ...] = (),
        trace: bool = False,
    ) -> Reply:
        """Draws a reply to a chat.

        Args:
            number: of the conversation; it seeds the draw, as do the next two.
            purpose: the history that the reply is for, or "next" for a reply after one.
            draw: numbers that tell the draws for this purpose apart.
        """
        request = Request(
            chat,
            methods,
            self.settings.sampling,
            seed_of("precedent", self.settings.seed, number, purpose, *draw),
            trace=trace,
            name=f"Conversation {number} ({purpose})",
        )
        reply = await generate_checked(self.engine, request)
        if reply.stop_reason == "context":
            raise RequestFailed(
                "The chat leaves no room for a reply; use shorter prompts.", "context"
            )
        self.breaker.answered(request)
        self.progress(1, reply.forwarded)
        return reply


def _history_record(replies: Sequence[ChosenReply]) -> History:
    """Makes the record of a history."""
    return History(
        replies=tuple(chosen.reply.text for chosen in replies),
        scores=tuple(chosen.scores for chosen in replies),
    )


def _next_reply_record(view: View, reply: Reply, scores: ReplyScores) -> NextReply:
    """Makes the record of the reply in a view."""
    masses = reply.token_masses
    return NextReply(
        history=view.history,
        seen=view.seen,
        prompted=view.prompted,
        reply=reply.text,
        scores=scores,
        stop_reason=reply.stop_reason,
        mass=round(sum(masses) / len(masses), 6) if masses else None,
    )


def _count_tokens(replies: Sequence[Reply]) -> records.Tokens:
    """Adds up the tokens read and written for replies and for draws discarded before them.

    Empty unless all are counted.
    """
    num_read = 0
    num_written = 0
    for reply in replies:
        for draw in (reply, *reply.discarded):
            if draw.usage is None:
                return records.Tokens()
            num_read += draw.usage.read
            num_written += draw.usage.written
    return records.Tokens(read=num_read, written=num_written)


def _chat(
    prompt: str, questions: Sequence[str], replies: Sequence[str], last_question: str
) -> tuple[Message, ...]:
    """Returns a chat: the system prompt, each reply after its question, and the last question.

    Args:
        questions: one per reply; further ones are left out.
    """
    chat: list[Message] = [{"role": "system", "content": prompt}]
    for question, reply in zip(questions, replies, strict=False):
        chat.append({"role": "user", "content": question})
        chat.append({"role": "assistant", "content": reply})
    return (*chat, {"role": "user", "content": last_question})


def _mean_score(scores: ReplyScores) -> float:
    """Returns the mean over the rules; an unknown score counts as `_SCORE_IF_UNKNOWN`."""
    known = (_SCORE_IF_UNKNOWN if score is None else score for score in scores.values())
    return sum(known) / len(scores)
