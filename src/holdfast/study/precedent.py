"""Prompt or precedent? How much of what looks like following the system prompt is a model that
follows its own earlier replies.

For each prompt two histories of the same questions are made: in one the agent's replies keep its
rules, in the other they break them. Then the model answers one more question after the last k
replies of either history, with the system prompt in view and without it. Everything else is alike:
the questions, the number of turns, and the seeds of the draws.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from holdfast import drift, records
from holdfast import methods as steering
from holdfast.chat.messages import Message
from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.progress import Progress
from holdfast.drift.prompt_rules import CaseRules, check_in_dialogs, with_rules
from holdfast.drift.settings import Running
from holdfast.errors import ParameterOutOfRange, RequestFailed, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Method, Methods, read_methods
from holdfast.models.checked_replies import generate_checked
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.failures import FailedRequest, OutageWatch
from holdfast.models.protocol import ChatModel, Engine, facts_about
from holdfast.models.requests import Reply, Request
from holdfast.models.served import same_served
from holdfast.records.precedent_records import History, NextReply, PrecedentChat, RuleScores
from holdfast.seeds import seed_of
from holdfast.validation import ranges

Kind = Literal["kept", "broken"]
Histories = dict[Kind, History]
KEPT: Kind = "kept"
BROKEN: Kind = "broken"
# without one, templates insert prompts of their own
NEUTRAL_PROMPT = "You are a helpful assistant."


@dataclass(frozen=True)
class Settings:
    """How precedent is measured.

    Args:
        conversations: how many pairs of histories; the prompts of the suite take turns.
        seed: of the questions and of every draw.
        sampling: of all replies.
        seen: how many of its earlier replies the model is shown, in ascending order.
        draws: each reply of a history is the best of so many: that which keeps, or breaks, most.
        batch: conversations that run side by side.
    """

    conversations: int = 96
    seed: int = 0
    sampling: Sampling = Sampling(temperature=0.7, top_p=0.9, max_new_tokens=60)
    seen: tuple[int, ...] = (0, 1, 3, 6)
    draws: int = 3
    batch: int = 16

    def __post_init__(self) -> None:
        for name in ("conversations", "draws", "batch"):
            ranges.whole_number("precedent", name, getattr(self, name), 1)
        if list(self.seen) != sorted(set(self.seen)) or not self.seen or self.seen[0] < 0:
            raise ParameterOutOfRange(
                f"precedent takes the numbers of replies seen in ascending order, not {self.seen}.",
                option="seen",
                value=self.seen,
            )


@dataclass(frozen=True)
class Subject:
    """A system prompt, those of its rules that share their probes, and the questions to ask."""

    case: Case
    rules: tuple[Rule, ...]
    questions: tuple[str, ...]  # of the history, oldest first, and the last one

    def score(self, reply: Reply) -> RuleScores:
        """The score of a reply by rule; None where the reply is no evidence."""
        return {rule.id or self.case.id: _score(rule, reply) for rule in self.rules}


def _score(rule: Rule, reply: Reply) -> float | None:
    if not reply.text.strip():
        return None
    is_cut = reply.stop_reason == "length"
    score = (rule.measure.score_cut if is_cut else rule.measure.score)(reply.text)
    return None if score is None else score.value


def subjects_of(suite: Suite, settings: Settings) -> list[Subject]:
    """Who is asked what in each conversation of a study.

    The last question is a probe of the rules. Those before it are further probes, so that every
    reply of a history can keep or break the rules; if they are too few, starters come first.

    Raises:
        UsageError: the suite has judges, rules without probes, or too few questions.
    """
    groups = [(case, rules) for case in suite.cases for rules in case.rules_asked_together]
    most, subjects = settings.seen[-1], []
    for case, rules in groups:
        for rule in rules:
            if rule.measure.judged:
                raise UsageError(
                    f"The rule {rule.id or case.id!r} of {suite.name} is scored by a judge, and"
                    " precedent takes rules that are scored without a model."
                )
    for number in range(settings.conversations):
        case, rules = groups[number % len(groups)]
        rng = random.Random(seed_of("precedent", settings.seed, number))
        probes = rng.sample(rules[0].probes, len(rules[0].probes))
        starters = rng.sample(suite.starters, len(suite.starters))
        *history, last = probes[: most + 1]
        if len(history) + len(starters) < most:
            raise UsageError(
                f"{case.id!r} has {len(probes)} probes and {suite.name} {len(starters)} starters,"
                f" too few for a history of {most} replies; add probes, or show fewer replies."
            )
        questions = (*starters[: most - len(history)], *history, last)
        subjects.append(Subject(case, rules, questions))
    return subjects


def count_replies(settings: Settings, methods: Methods = ()) -> int:
    """How many replies a pair of histories has, with those of the histories, if no method made
    them before.
    """
    next_replies = 2 * len(settings.seen)
    if read_methods(methods):
        return next_replies
    return 2 * settings.seen[-1] * settings.draws + 2 * next_replies


def run(
    model: ChatModel,
    suite: Suite | str,
    out: Path | str,
    settings: Settings = Settings(),
    methods: Sequence[Methods] = ((),),
    running: Running = Running(),
) -> records.Run:
    """Measures precedent, and records every conversation in the folder `out`; resumes it.

    Args:
        methods: of the next replies whose system prompt is in view. The first is (), "none", whose
            histories all others see.

    Raises:
        UsageError: the suite cannot be used (`subjects_of`), or the first method is not "none".
        RecordsError: `out` holds another run, or cannot be written.
    """
    if not isinstance(suite, Suite):
        suite = drift.load_suite(suite)
    chosen = {steering.spec_of(setting): setting for setting in map(read_methods, methods)}
    if not chosen or next(iter(chosen)) != steering.spec_of(()):
        raise UsageError(
            "precedent makes its histories without a method; give none before the others."
        )
    for setting in chosen.values():
        check_in_dialogs(model, setting, suite.cases, drift.Settings())
    subjects = subjects_of(suite, settings)
    identity = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "suite": suite.name,
        "suite_fingerprint": suite.fingerprint,
        "methods": list(chosen),
        "settings": dataclasses.asdict(settings),
    }
    about = {"command": "precedent", "argv": running.command, **facts_about(model)}
    compatibility = records.Compatibility(
        joins={
            "model_fingerprint": same_served,
            "methods": records.union,
            "settings.conversations": max,
        }
    )
    with records.open_run(Path(out), identity, about, compatibility) as folder:
        run_sync(_run_methods(model, chosen, subjects, settings, folder, running.progress))
    return records.read_run(out)


async def _run_methods(
    model: ChatModel,
    methods: Mapping[str, tuple[Method, ...]],
    subjects: Sequence[Subject],
    settings: Settings,
    folder: records.OpenRun,
    progress: Progress,
) -> None:
    """Records the conversations that the folder lacks, method by method."""

    def note(failed: FailedRequest) -> None:
        name, number = failed.name
        folder.note_failure(name, number, failed.why, failed.reason)

    watch = OutageWatch(note, "conversation")
    groups = records.batches(range(settings.conversations), settings.batch)
    for name, method in methods.items():
        for batch in records.resume(folder, name, groups, alone=model.independent):
            progress(batch.num_finished * count_replies(settings, method), 0)
            if not batch.to_run:
                continue
            known = histories_in(folder.folder)
            async with model.session() as engine, task_group() as group:
                chats = PrecedentChats(engine, settings, method, watch, progress)
                for number in batch.to_run:
                    task = _record(batch, chats, number, subjects[number], known.get(number))
                    group.create_task(task, name=str(number))
    async with model.session() as engine:
        await watch.finish(engine)


async def _record(
    batch: records.PendingBatch,
    chats: PrecedentChats,
    number: int,
    subject: Subject,
    known: Histories | None,
) -> None:
    """Holds one conversation, and appends its record; a failed one is left to the watch."""
    begun = time.monotonic()
    try:
        record = await chats.hold(number, subject, known)
    except RequestFailed as error:
        chats.watch.failed(number, error)
        chats.watch.over(number, FailedRequest((batch.name, number), error.why, str(error)))
    else:
        seconds = round(time.monotonic() - begun, 3)
        batch.append(record.model_copy(update={"seconds": seconds}))


def histories_in(folder: Path) -> dict[int, Histories]:
    """The histories that were made without a method, by conversation."""
    return {
        chat.conversation: {KEPT: chat.kept, BROKEN: chat.broken}
        for chat in records.read_run(folder).precedents
        if chat.method == steering.spec_of(())
    }


class View(NamedTuple):
    """The messages that the model is shown before the last question."""

    history: Kind
    seen: int  # the last so many of its replies, with their questions
    prompted: bool  # whether the system prompt is in view


class DrawnReply(NamedTuple):
    """A reply of a history, and the draws that it is the best of."""

    reply: Reply
    scores: RuleScores
    draws: tuple[Reply, ...]


@dataclass(frozen=True)
class PrecedentChats:
    """The conversations of a study with a session of a model, under one method."""

    engine: Engine
    settings: Settings
    methods: tuple[Method, ...]
    watch: OutageWatch
    progress: Progress

    async def hold(self, number: int, subject: Subject, known: Histories | None) -> PrecedentChat:
        """One conversation: both histories, unless they are known, and all next replies."""
        made: dict[Kind, list[DrawnReply]] = {}
        if known is None:
            made = {kind: await self._make(number, subject, kind) for kind in (KEPT, BROKEN)}
            known = {kind: _history_of(drawn) for kind, drawn in made.items()}
        views = [
            View(*view)
            for view in itertools.product((KEPT, BROKEN), self.settings.seen, (True, False))
        ]
        if self.methods:  # which act on the system prompt
            views = [view for view in views if view.prompted]
        async with task_group() as group:
            tasks = [
                group.create_task(self._reply_in(view, number, subject, known[view.history]))
                for view in views
            ]
        replies = [task.result() for task in tasks]
        draws = [draw for drawn in itertools.chain(*made.values()) for draw in drawn.draws]
        case = subject.case
        return PrecedentChat(
            method=steering.spec_of(self.methods),
            conversation=number,
            agent=records.Agent(
                id=case.id, category=case.category, system_prompt=case.system_prompt
            ),
            questions=subject.questions,
            kept=known[KEPT],
            broken=known[BROKEN],
            next_replies=tuple(map(_next_reply, views, replies, map(subject.score, replies))),
            tokens=_tokens_of([*draws, *replies]),
        )

    async def _make(self, number: int, subject: Subject, kind: Kind) -> list[DrawnReply]:
        """Replies to all questions but the last, each the best of several draws.

        To keep the rules, the system prompt is repeated below every question; to break them, a
        neutral one takes its place. The history has the plain questions.
        """
        prompt, below = subject.case.system_prompt, f"\n\n({subject.case.system_prompt})"
        if kind == BROKEN:
            prompt, below = NEUTRAL_PROMPT, ""
        sign = 1 if kind == KEPT else -1
        history: list[DrawnReply] = []
        for turn, question in enumerate(subject.questions[:-1]):
            texts = [drawn.reply.text for drawn in history]
            chat = _chat(prompt, subject.questions, texts, question + below)
            async with task_group() as group:
                tasks = [
                    group.create_task(self._generate(chat, (number, kind, turn, draw)))
                    for draw in range(self.settings.draws)
                ]
            draws = tuple(task.result() for task in tasks)
            scored = [DrawnReply(reply, subject.score(reply), draws) for reply in draws]
            history.append(max(scored, key=lambda drawn: sign * _mean(drawn.scores, missing=0.5)))
        return history

    async def _reply_in(self, view: View, number: int, subject: Subject, history: History) -> Reply:
        """The reply to the last question in a view of the dialog before it."""
        first = len(history.replies) - view.seen
        questions, replies = subject.questions[first:], history.replies[first:]
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
        self.watch.answered(request)
        self.progress(1, reply.forwarded)
        return reply


def _history_of(drawn: Sequence[DrawnReply]) -> History:
    return History(
        replies=tuple(item.reply.text for item in drawn),
        scores=tuple(item.scores for item in drawn),
    )


def _next_reply(view: View, reply: Reply, scores: RuleScores) -> NextReply:
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
    """The tokens read and written for replies and those drawn before them, if all are counted."""
    every = [drawn.usage for reply in replies for drawn in (reply, *reply.discarded)]
    counted = [usage for usage in every if usage is not None]
    if len(counted) < len(every):
        return records.Tokens()
    read, written = (sum(tokens) for tokens in zip(*counted, strict=True))
    return records.Tokens(read=read, written=written)


def _chat(
    prompt: str, questions: Sequence[str], replies: Sequence[str], last: str
) -> tuple[Message, ...]:
    """The system prompt, the first questions with their replies, and the last question."""
    chat: list[Message] = [{"role": "system", "content": prompt}]
    for question, reply in zip(questions, replies, strict=False):
        chat.append({"role": "user", "content": question})
        chat.append({"role": "assistant", "content": reply})
    return (*chat, {"role": "user", "content": last})


def _mean(scores: RuleScores, missing: float) -> float:
    """The mean score over the rules; a rule without a score counts as `missing`."""
    return sum(missing if score is None else score for score in scores.values()) / len(scores)
