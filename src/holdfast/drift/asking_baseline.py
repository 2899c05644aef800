"""Asks the probes of a run without any system prompt, to see how the model scores by itself.

Each question to the run's agents is asked in a new chat with an empty system prompt, so that the
chat template does not insert its default prompt. The answers form a separate run, in the folder
`baseline` of the run. So they change none of its draws, and may be asked for at any time.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.drift.cases import Suite
from holdfast.drift.dialog_records import agent_of, participant_of, probe_key_of
from holdfast.drift.judges import Judges, load_judges, open_judges
from holdfast.drift.pairing import Pairing, ProbeQuestion, draw_conversation
from holdfast.drift.probe_outcomes import ProbeOutcome, ProbeResults, outcome_of
from holdfast.drift.progress import Progress
from holdfast.drift.resolved_settings import prepare
from holdfast.drift.run_identity import identity_of_model, known_identity
from holdfast.drift.settings import Cast, Running, Settings
from holdfast.drift.suites import as_suite
from holdfast.models.capabilities import require_chat_model
from holdfast.models.event_loop import run_sync
from holdfast.models.failures import CircuitBreaker, FailedRequest, RequestKey, answer_each
from holdfast.models.protocol import ChatModel, Engine, facts_about
from holdfast.models.requests import Reply, Request
from holdfast.records import (
    MANIFEST,
    Conversation,
    PendingBatch,
    ProbeReply,
    Run,
    Tokens,
    batches,
    open_run,
    read_run,
    resume,
    unfinished,
)
from holdfast.seeds import seed_of

FOLDER = "baseline"
KIND = "baseline"
UNSTEERED = "none"
# the settings that determine the questions and the replies to them
_QUESTION_SETTINGS = ("seed", "sampling", "user_prompt", "pairs", "probes_per_round")


def ask_baseline(
    model: ChatModel,
    suite: Suite | str,
    out: Path | str,
    settings: Settings = Settings(),
    *,
    cast: Cast = Cast(),
    running: Running = Running(),
) -> Run:
    """Asks the stability probes of every conversation again, without a system prompt.

    An earlier baseline is resumed. A conversation with an unanswered question is noted as failed,
    and asked again by the next command; the others continue.

    Args:
        model: the model, used without methods.
        out: the folder of the run, which has checked its judges; `suite`, `settings` and `cast` are
            those of that run.
        running: its progress receives how many conversations were asked, and the tokens forwarded.

    Raises:
        RecordsError: `out` has a baseline of another model, suite or seed.
        ModelError: requests of too many conversations in a row failed.
    """
    require_chat_model(model)
    suite = as_suite(suite)
    folder = Path(out) / FOLDER
    about = {"command": KIND, "argv": running.command, **facts_about(model)}
    settings, cast = prepare(model, suite, settings, cast)
    baseline = _Baseline(model, suite, settings, cast)
    judge_models = load_judges(suite, model, cast.judging)
    with open_run(folder, baseline.identity(about), about) as run:
        groups = batches(range(settings.conversations), settings.batch)
        resumed = resume(run, UNSTEERED, groups, independent=model.independent)
        pending = unfinished(resumed, running.progress)

        def note(failed: FailedRequest) -> None:
            run.note_failure(UNSTEERED, failed.key.number, failed.why, failed.reason)

        async def ask_all() -> None:
            breaker = CircuitBreaker(note, "conversation")
            async with open_judges(suite, judge_models, Path(out)) as judges:
                await baseline.ask(pending, judges, breaker, running.progress)

        if pending:
            run_sync(ask_all())
    return read_run(folder)


def read_baseline(out: Path | str) -> Run | None:
    """The baseline of a run; None if there is none."""
    folder = Path(out) / FOLDER
    return read_run(folder) if (folder / MANIFEST).is_file() else None


@dataclass(frozen=True)
class _Baseline:
    """The model, and the conversations whose questions it answers."""

    model: ChatModel
    suite: Suite
    settings: Settings
    cast: Cast

    def identity(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The facts that distinguish the baseline from others, for its manifest."""
        fields = dataclasses.asdict(self.settings)
        question_settings = {name: fields[name] for name in _QUESTION_SETTINGS}
        identity = {
            **identity_of_model(self.model),
            **known_identity(self.suite, [UNSTEERED], question_settings, self.cast),
        }
        if "default_system_prompt" in about:  # version 0.2 asked with the template's default prompt
            identity["default_system_prompt"] = about["default_system_prompt"]
        return identity

    async def ask(
        self,
        pending: Sequence[PendingBatch],
        judges: Judges,
        breaker: CircuitBreaker,
        progress: Progress,
    ) -> None:
        """Asks the questions of each batch, and records the answers of its conversations."""
        async with self.model.session() as engine:
            for batch in pending:
                pairings = [
                    draw_conversation(self.suite, self.settings, number, self.cast)
                    for number in batch.to_run
                ]
                start = time.monotonic()
                answered = await _ask_questions(engine, pairings, self.settings, breaker)
                seconds = (time.monotonic() - start) / len(pairings)
                for conversation in answered:
                    results = await judges.resolve(conversation.outcomes)
                    batch.append(conversation.as_record(results, seconds))
                forwarded = sum(conversation.forwarded for conversation in answered)
                progress(len(batch.numbers), forwarded)
            await breaker.finish(engine)


@dataclass(frozen=True)
class _AnsweredConversation:
    """A conversation of the run whose questions were all answered."""

    pairing: Pairing
    outcomes: tuple[ProbeOutcome, ...]
    forwarded: int  # tokens that went through the model

    def as_record(self, results: ProbeResults, seconds: float) -> Conversation:
        """The record: a conversation without turns."""
        return Conversation(
            method=UNSTEERED,
            conversation=self.pairing.number,
            agent=agent_of(self.pairing.agent),
            user=participant_of(None),
            turns=(),
            probes=results.probes,
            tokens=Tokens(forwarded=self.forwarded, least=0),
            seconds=round(seconds, 3),
            unscored=results.unscored,
            unanswered=results.unanswered,
        )


async def _ask_questions(
    engine: Engine, pairings: Sequence[Pairing], settings: Settings, breaker: CircuitBreaker
) -> list[_AnsweredConversation]:
    """Asks the questions of several conversations at once; returns those that were answered."""
    questions = {pairing.number: _questions_of(pairing) for pairing in pairings}
    requests: dict[RequestKey, Request] = {}
    for number, by_key in questions.items():
        for key, question in by_key.items():
            requests[key] = _request_for(question, number, settings)
    replies: dict[RequestKey, Reply] = {}
    await answer_each(engine, requests, breaker, replies.__setitem__)
    answered: list[_AnsweredConversation] = []
    for pairing in pairings:
        by_key = questions[pairing.number]
        if by_key.keys() <= replies.keys():
            outcomes = [_outcomes_of(question, replies[key]) for key, question in by_key.items()]
            forwarded = sum(replies[key].forwarded for key in by_key)
            all_outcomes = tuple(chain.from_iterable(outcomes))
            answered.append(_AnsweredConversation(pairing, all_outcomes, forwarded))
    return answered


def _questions_of(pairing: Pairing) -> dict[RequestKey, ProbeQuestion]:
    """The questions of one conversation, by the keys of their requests."""
    return {
        RequestKey(f"question {position}", pairing.number): question
        for position, question in enumerate(pairing.round_probes, 1)
        if question.kind == "stability"
    }


def _request_for(question: ProbeQuestion, number: int, settings: Settings) -> Request:
    """Builds the request for a question of conversation `number`, without a system prompt."""
    return Request(
        ({"role": "system", "content": ""}, {"role": "user", "content": question.question}),
        sampling=settings.sampling,
        seed=seed_of("baseline", settings.seed, number, question.rule.id, question.index),
        system_as=settings.system_as,
    )


def _outcomes_of(question: ProbeQuestion, reply: Reply) -> list[ProbeOutcome]:
    """The outcome of a reply for each rule that its question tests."""
    return [
        outcome_of(
            ProbeReply(
                **{**dict(probe_key_of(1, question, rule)), "kind": KIND},
                question=question.question,
                reply=reply.text,
                measure=rule.measure.name,
            ),
            rule.measure,
            reply.stop_reason,
        )
        for rule in question.rules
    ]
