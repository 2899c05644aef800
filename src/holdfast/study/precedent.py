"""Prompt or precedent? How much of what looks like following the system prompt is a model that
follows its own earlier replies.

For each prompt two histories of the same questions are made: in one the agent's replies keep its
rules, in the other they break them. Then the model answers one more question after the last k
replies of either history, with the system prompt in view and without it. Everything else is alike:
the questions, the number of turns, and the seeds of the draws.
"""

import dataclasses
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
KEPT: Kind = "kept"
BROKEN: Kind = "broken"
NEUTRAL_PROMPT = (
    "You are a helpful assistant."  # without one, templates insert prompts of their own
)


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
    groups = records.batches(range(settings.conversations), settings.batch)
    with records.open_run(Path(out), identity, about, compatibility) as folder:

        def note(failed: FailedRequest) -> None:
            name, number = failed.name
            folder.note_failure(name, number, failed.why, failed.reason)

        async def run_all() -> None:
            watch = OutageWatch(note, "conversation")
            for name, setting in chosen.items():
                for batch in records.resume(folder, name, groups, alone=model.independent):
                    running.progress(batch.num_finished * count_replies(settings, setting), 0)
                    if not batch.to_run:
                        continue
                    known = histories_in(Path(out))
                    async with model.session() as engine, task_group() as group:
                        for number in batch.to_run:
                            study = Precedent(
                                engine, settings, setting, name, watch, running.progress
                            )
                            group.create_task(
                                run_one(batch, study, number, known.get(number)), name=str(number)
                            )
            async with model.session() as engine:
                await watch.finish(engine)

        async def run_one(
            batch: records.PendingBatch,
            study: "Precedent",
            number: int,
            known: dict[Kind, History] | None,
        ) -> None:
            begun = time.monotonic()
            try:
                record = await study.ask(number, subjects[number], known)
            except RequestFailed as error:
                study.watch.failed(number, error)
                study.watch.over(number, FailedRequest((batch.name, number), error.why, str(error)))
            else:
                seconds = round(time.monotonic() - begun, 3)
                batch.append(record.model_copy(update={"seconds": seconds}))

        run_sync(run_all())
    return records.read_run(out)


def histories_in(folder: Path) -> dict[int, dict[Kind, History]]:
    """The histories that were made without a method, by conversation."""
    return {
        chat.conversation: {KEPT: chat.kept, BROKEN: chat.broken}
        for chat in records.read_run(folder).precedents
        if chat.method == steering.spec_of(())
    }


@dataclass(frozen=True)
class Precedent:
    """One conversation with a model under one method."""

    engine: Engine
    settings: Settings
    methods: tuple[Method, ...]
    name: str  # the methods as a spec string
    watch: OutageWatch
    progress: Progress
    usage: list[tuple[int, int] | None] = field(default_factory=list)  # of every reply, if counted

    async def ask(
        self, number: int, subject: Subject, known: dict[Kind, History] | None
    ) -> PrecedentChat:
        """One conversation: both histories, unless they are known, and all next replies."""
        if known is None:
            known = {
                kind: await self.make_history(number, subject, kind) for kind in (KEPT, BROKEN)
            }
        cells = [
            (kind, seen, prompted)
            for kind in (KEPT, BROKEN)
            for seen in self.settings.seen
            for prompted in (True, False)
            if prompted or not self.methods
        ]
        async with task_group() as group:
            tasks = [
                group.create_task(self.reply_after(number, subject, known[kind], kind, seen, shown))
                for kind, seen, shown in cells
            ]
        case = subject.case
        return PrecedentChat(
            method=self.name,
            conversation=number,
            agent=records.Agent(
                id=case.id, category=case.category, system_prompt=case.system_prompt
            ),
            questions=subject.questions,
            kept=known[KEPT],
            broken=known[BROKEN],
            next_replies=tuple(task.result() for task in tasks),
            tokens=self._tokens(),
        )

    def _tokens(self) -> records.Tokens:
        counted = [usage for usage in self.usage if usage is not None]
        if len(counted) < len(self.usage):
            return records.Tokens()
        read, written = (sum(tokens) for tokens in zip(*counted, strict=True))
        return records.Tokens(read=read, written=written)

    async def make_history(self, number: int, subject: Subject, kind: Kind) -> History:
        """Replies to all questions but the last, each the best of several draws.

        To keep the rules, the system prompt is repeated below every question; to break them, a
        neutral one takes its place. The history has the plain questions.
        """
        prompt, below = subject.case.system_prompt, f"\n\n({subject.case.system_prompt})"
        if kind == BROKEN:
            prompt, below = NEUTRAL_PROMPT, ""
        replies: list[str] = []
        scores: list[RuleScores] = []
        for turn, question in enumerate(subject.questions[:-1]):
            chat = _chat(prompt, subject.questions, replies, question + below)
            async with task_group() as group:
                tasks = [
                    group.create_task(self._generate(chat, (number, kind, turn, draw)))
                    for draw in range(self.settings.draws)
                ]
            drawn = [(task.result(), subject.score(task.result())) for task in tasks]
            sign = 1 if kind == KEPT else -1
            best, score = max(drawn, key=lambda pair: sign * _mean(pair[1], missing=0.5))
            replies.append(best.text)
            scores.append(score)
        return History(replies=tuple(replies), scores=tuple(scores))

    async def reply_after(
        self, number: int, subject: Subject, history: History, kind: Kind, seen: int, prompted: bool
    ) -> NextReply:
        """The reply to the last question, after the last `seen` replies of a history."""
        first = len(history.replies) - seen
        questions, replies = subject.questions[first:], history.replies[first:]
        prompt = subject.case.system_prompt if prompted else NEUTRAL_PROMPT
        chat = _chat(prompt, questions, replies, questions[-1])
        # the same draw in every cell, so that only what is in view differs
        methods = with_rules(CaseRules(subject.case), self.methods) if prompted else ()
        reply = await self._generate(chat, (number, "next", seen), methods, trace=prompted)
        masses = reply.token_masses
        return NextReply(
            history=kind,
            seen=seen,
            prompted=prompted,
            reply=reply.text,
            scores=subject.score(reply),
            stop_reason=reply.stop_reason,
            mass=round(sum(masses) / len(masses), 6) if masses else None,
        )

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
        self.usage.extend(each.usage for each in (reply, *reply.discarded))
        self.progress(1, reply.forwarded)
        return reply


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
