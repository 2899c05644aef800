"""Holds the conversations of a study of precedent: two histories, and the replies after either."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
from holdfast.study.precedent_subjects import (
    BROKEN,
    KEPT,
    Histories,
    HistoryKind,
    PrecedentSettings,
    Subject,
)

# without a system prompt, some templates would insert a default
NEUTRAL_PROMPT = "You are a helpful assistant."


class View(NamedTuple):
    """The conversation that the model is shown before the last question."""

    history: HistoryKind
    seen: int  # how many of the history's last replies, each with its question
    prompted: bool  # whether the system prompt is in view


class DrawnReply(NamedTuple):
    """A reply of a history: the best of several draws."""

    reply: Reply
    scores: ReplyScores
    draws: tuple[Reply, ...]  # all of them


@dataclass(frozen=True)
class PrecedentChats:
    """Holds the conversations of a study in a session of a model, under one steering."""

    engine: Engine
    settings: PrecedentSettings
    methods: tuple[Method, ...]
    breaker: CircuitBreaker
    progress: Progress

    async def hold(
        self, number: int, subject: Subject, histories: Histories | None
    ) -> PrecedentChat:
        """Holds one conversation: makes both histories if there are none yet, and then all next
        replies.
        """
        draws: list[Reply] = []
        if histories is None:
            histories = {}
            for kind in (KEPT, BROKEN):
                best_replies = await self._make_history(number, subject, kind)
                histories[kind] = _history_of(best_replies)
                draws += itertools.chain.from_iterable(reply.draws for reply in best_replies)
        views = self._views()
        async with task_group() as group:
            tasks = [
                group.create_task(self._reply_in(view, number, subject, histories[view.history]))
                for view in views
            ]
        replies = [task.result() for task in tasks]
        case = subject.case
        return PrecedentChat(
            method=spec_of(self.methods),
            conversation=number,
            agent=records.Agent(
                id=case.id, category=case.category, system_prompt=case.system_prompt
            ),
            questions=subject.questions,
            kept=histories[KEPT],
            broken=histories[BROKEN],
            next_replies=tuple(map(_next_reply, views, replies, map(subject.score, replies))),
            tokens=_tokens_of([*draws, *replies]),
        )

    def _views(self) -> list[View]:
        """Returns all views; under methods, which act on the system prompt, only those with it."""
        prompted = (True,) if self.methods else (True, False)
        return [
            View(*view) for view in itertools.product((KEPT, BROKEN), self.settings.seen, prompted)
        ]

    async def _make_history(
        self, number: int, subject: Subject, kind: HistoryKind
    ) -> list[DrawnReply]:
        """Replies to all questions but the last, choosing the best of several draws each time.

        To make the model keep the rules, the system prompt is repeated below every question; to
        make it break them, a neutral prompt takes its place. The history has the plain questions.
        """
        if kind == KEPT:
            prompt = subject.case.system_prompt
            sign = 1
            below = f"\n\n({prompt})"
        else:
            prompt = NEUTRAL_PROMPT
            sign = -1
            below = ""
        history: list[DrawnReply] = []
        for turn, question in enumerate(subject.questions[:-1]):
            texts = [earlier.reply.text for earlier in history]
            chat = _chat(prompt, subject.questions, texts, question + below)
            async with task_group() as group:
                tasks = [
                    group.create_task(self._generate(chat, (number, kind, turn, draw)))
                    for draw in range(self.settings.draws)
                ]
            draws = tuple(task.result() for task in tasks)
            candidates = [DrawnReply(reply, subject.score(reply), draws) for reply in draws]
            best = max(candidates, key=lambda draw: sign * _mean(draw.scores, missing=0.5))
            history.append(best)
        return history

    async def _reply_in(self, view: View, number: int, subject: Subject, history: History) -> Reply:
        """Replies to the last question in a view of the dialog before it."""
        first = len(history.replies) - view.seen
        questions = subject.questions[first:]
        replies = history.replies[first:]
        prompt = subject.case.system_prompt if view.prompted else NEUTRAL_PROMPT
        chat = _chat(prompt, questions, replies, questions[-1])
        methods = with_rules(CaseRules(subject.case), self.methods) if view.prompted else ()
        # the same draw in every view, so that only what is in view differs
        return await self._generate(chat, (number, "next", view.seen), methods, view.prompted)

    async def _generate(
        self,
        chat: tuple[Message, ...],
        draw: tuple[int | str, ...],
        methods: tuple[Method, ...] = (),
        trace: bool = False,
    ) -> Reply:
        """Draws a reply to a chat, seeded by its conversation."""
        request = Request(
            chat,
            methods,
            self.settings.sampling,
            seed_of("precedent", self.settings.seed, *draw),
            trace=trace,
            name=f"Conversation {draw[0]} ({draw[1]})",
        )
        reply = await generate_checked(self.engine, request)
        if reply.stop_reason == "context":
            raise RequestFailed(
                "The chat leaves no room for a reply; use shorter prompts.", "context"
            )
        self.breaker.answered(request)
        self.progress(1, reply.forwarded)
        return reply


def _history_of(replies: Sequence[DrawnReply]) -> History:
    return History(
        replies=tuple(item.reply.text for item in replies),
        scores=tuple(item.scores for item in replies),
    )


def _next_reply(view: View, reply: Reply, scores: ReplyScores) -> NextReply:
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


def _tokens_of(replies: Sequence[Reply]) -> records.Tokens:
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
    """Returns the system prompt, the questions that have replies with these, and the last one."""
    chat: list[Message] = [{"role": "system", "content": prompt}]
    for question, reply in zip(questions, replies, strict=False):
        chat.append({"role": "user", "content": question})
        chat.append({"role": "assistant", "content": reply})
    return (*chat, {"role": "user", "content": last_question})


def _mean(scores: ReplyScores, missing: float) -> float:
    """Returns the mean score over the rules; a rule without a score counts as `missing`."""
    return sum(missing if score is None else score for score in scores.values()) / len(scores)
