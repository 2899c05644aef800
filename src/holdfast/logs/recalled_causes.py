"""Asks a model for its rules at the breaches whose rule was in the context.

    in the context, and stated  -> the model knew the rule and broke it
    in the context, not stated  -> the model had lost it

The model is asked for its rules in a fork of the dialog: it gets what was in the context at the
breach, and a question in place of the turn's next message. Its answers are kept in the folder of
the run, so that a later command does not ask again.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.chat.messages import Message
from holdfast.drift.cases import Suite
from holdfast.drift.rule_texts import text_of_rule
from holdfast.errors import RequestFailed
from holdfast.files import cannot_write
from holdfast.generation.sampling import Sampling
from holdfast.logs.dialogs import LoggedDialog
from holdfast.logs.log_reading import Logs
from holdfast.logs.recall_forks import AnswerKey, BreachPlace, Fork, make_fork
from holdfast.logs.rereading import LogSource
from holdfast.logs.turn_scoring import case_of
from holdfast.measures.wording.rule_statements import find_statement
from holdfast.measures.wording.rule_text import RuleText
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.protocol import ChatModel, Engine
from holdfast.models.requests import Request
from holdfast.records import LogDialog, LogProbe, Run, append_line, cut_torn_line, read_notes
from holdfast.records.cause_records import RecallAnswer
from holdfast.seeds import seed_of

ANSWERS_FILE = "recall.jsonl"
FORM = 1  # version of the forks; answers to another version are ignored
_SAMPLING = Sampling(temperature=0, top_p=1, max_new_tokens=300)


@dataclass(frozen=True)
class RecallSample:
    """How many of the breaches with the cause `present` the model was asked about.

    Args:
        present: the number of all such breaches.
        asked: how many of them were drawn, and asked about.
        undecided: how many of those got an answer that was cut or empty, or a request that
            the model refused.
    """

    model: str
    present: int
    asked: int
    undecided: int


def ask_recall(
    run: Run,
    logs: Logs | LogSource,
    suite: Suite,
    model: ChatModel,
    limit: int,
    progress: Callable[[int], None] = lambda count: None,
) -> tuple[Run, RecallSample]:
    """Asks a model about breaches with the cause `present`. Returns the run with the causes
    `present_recalled` and `present_not_recalled` in place of `present`; the records in its folder
    are not changed.

    Args:
        run: the complete scores of `logs` by `suite`. Breaches that the logs no longer have are
            not asked about.
        limit: the most breaches to ask about; if there are more, they are drawn at random, always
            the same.
        progress: is called with the number of breaches that were answered since the last call.
    """
    places = [*_present_breaches(run)]
    draw = random.Random(seed_of("recall"))
    sample = sorted(draw.sample(places, min(limit, len(places))))
    records = {place.row: run.dialogs[place.row] for place in sample}
    dialogs = _dialogs_of(records, logs, suite)
    cases = {case.id: case for case in suite.cases}
    forks = [
        make_fork(place, records[place.row], dialogs[place.row], cases)
        for place in sample
        if place.row in dialogs
    ]
    answers = _Answers.read(run.folder)
    run_sync(_ask_all(model, forks, answers, progress))
    verdicts = {
        fork.place: _verdict(fork, answers.by_key[fork.key(model.fingerprint)]) for fork in forks
    }
    undecided = sum(verdict is None for verdict in verdicts.values())
    return _with_causes(run, verdicts), RecallSample(model.name, len(places), len(forks), undecided)


def _present_breaches(run: Run) -> Iterator[BreachPlace]:
    """Where the breaches are whose rule was in the context."""
    for row, dialog in enumerate(run.dialogs):
        for number, probe in enumerate(dialog.probes):
            if probe.cause is not None and probe.cause.cause == "present":
                yield BreachPlace(row, number)


def _dialogs_of(
    records: Mapping[int, LogDialog], logs: Logs | LogSource, suite: Suite
) -> dict[int, LoggedDialog]:
    """The logged dialogs of these records, by the rows of the records."""
    if isinstance(logs, LogSource):
        return logs.dialogs(records)
    matched = [dialog for dialog in logs.dialogs if case_of(dialog, suite) is not None]
    return {row: matched[record.conversation] for row, record in records.items()}


@dataclass
class _Answers:
    """The answers in the folder of a run."""

    folder: Path
    by_key: dict[AnswerKey, RecallAnswer] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> _Answers:
        """Reads the answers of earlier commands; a torn last line is cut off."""
        path = folder / ANSWERS_FILE
        answers = cls(folder)
        if path.is_file():
            cut_torn_line(path)
            for answer in read_notes(path.read_bytes(), path, RecallAnswer):
                if answer.form == FORM:
                    answers.by_key[AnswerKey(answer.model, answer.digest)] = answer
        return answers

    def add(self, answer: RecallAnswer) -> None:
        path = self.folder / ANSWERS_FILE
        try:
            append_line(path, answer)
        except OSError as error:
            raise cannot_write(path, error, "another folder with --out") from error
        self.by_key[AnswerKey(answer.model, answer.digest)] = answer


async def _ask_all(
    model: ChatModel, forks: Sequence[Fork], answers: _Answers, progress: Callable[[int], None]
) -> None:
    """Asks about each fork that has no answer; breaches with the same messages share an answer."""
    counts = Counter(fork.key(model.fingerprint) for fork in forks)
    messages = {fork.key(model.fingerprint): fork.messages for fork in forks}
    progress(sum(count for key, count in counts.items() if key in answers.by_key))
    open_keys = [key for key in counts if key not in answers.by_key]
    if not open_keys:
        return

    async def ask(engine: Engine, key: AnswerKey) -> None:
        answers.add(await _answer(engine, key, messages[key]))
        progress(counts[key])

    async with model.session() as engine, task_group() as group:
        for key in open_keys:
            group.create_task(ask(engine, key))


async def _answer(engine: Engine, key: AnswerKey, messages: Sequence[Message]) -> RecallAnswer:
    """The model's answer; "" if it refuses the request, as one that is too long for it."""
    request = Request(tuple(messages), sampling=_SAMPLING, name="The question for the rules")
    try:
        reply = (await engine.generate(request)).without_reasoning()
        text = reply.text
        stop_reason = reply.stop_reason
    except RequestFailed as error:
        if error.why == "failure":
            raise
        text = ""
        stop_reason = error.why
    return RecallAnswer(
        form=FORM, model=key.model, digest=key.digest, answer=text, stop_reason=stop_reason
    )


def _verdict(fork: Fork, answer: RecallAnswer) -> bool | None:
    """Whether an answer states the rule; None if it is empty, or was cut before it stated it."""
    recalled = fork.rule.recalled
    text = answer.answer
    if recalled is not None and not recalled.judged:
        states = recalled.score(text).keeps_rule
    else:
        passage = RuleText(text_of_rule(fork.case, fork.rule)).find_in(text)
        states = (passage or find_statement(text, fork.rule.measure)) is not None
    is_whole = answer.stop_reason not in ("length", "context") and bool(text.strip())
    return states if states or is_whole else None


def _with_causes(run: Run, verdicts: Mapping[BreachPlace, bool | None]) -> Run:
    """The run with the causes that the verdicts give."""
    dialogs: dict[int, LogDialog] = {}
    for row in {place.row for place in verdicts}:
        dialog = run.dialogs[row]
        probes = [
            _with_cause(probe, verdicts.get(BreachPlace(row, number)))
            for number, probe in enumerate(dialog.probes)
        ]
        dialogs[row] = dialog.model_copy(update={"probes": tuple(probes)})
    return run.with_dialogs(dialogs)


def _with_cause(probe: LogProbe, verdict: bool | None) -> LogProbe:
    """A score with the cause that a verdict gives; the same score if there is no verdict."""
    if verdict is None or probe.cause is None:
        return probe
    if verdict:
        name = "present_recalled"
        why = f"{probe.cause.why}, and the model states it when asked"
    else:
        name = "present_not_recalled"
        why = f"{probe.cause.why}, and the model does not state it when asked"
    cause = probe.cause.model_copy(update={"cause": name, "why": why})
    return probe.model_copy(update={"cause": cause})
