"""Runs the drift benchmark: concurrent conversations, each recorded as soon as it is over."""

import contextlib
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from holdfast import records
from holdfast.drift.cases import Suite
from holdfast.drift.concurrent_dialogs import hold_dialogs
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_records import conversation_of
from holdfast.drift.judges import Judges, load_judges, open_judges
from holdfast.drift.method_checks import check_in_dialogs, check_with_rules
from holdfast.drift.pairing import draw_conversation
from holdfast.drift.prompt_rules import CaseRules
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import prepare, resolve_settings
from holdfast.drift.run_identity import (
    COMPATIBILITY,
    identity_of_model,
    identity_of_others,
    known_identity,
)
from holdfast.drift.settings import Cast, Running, Settings
from holdfast.drift.suites import as_suite
from holdfast.drift.two_models import session_of
from holdfast.errors import UsageError
from holdfast.methods import Method, Methods, read_methods, spec_of
from holdfast.models.event_loop import run_sync
from holdfast.models.protocol import ChatModel, Engine, facts_about, reduced_max_sequences
from holdfast.models.replicas import replicas_of
from holdfast.records.traces import write_traces
from holdfast.version import __version__


def run(
    model: ChatModel,
    suite: Suite | str,
    out: Path | str,
    settings: Settings = Settings(),
    methods: Sequence[Methods] = ("none",),
    *,
    cast: Cast = Cast(),
    running: Running = Running(),
    batches: Callable[[], Iterable[Sequence[int]]] | None = None,
) -> records.Run:
    """Measures drift (Li et al. 2024, Figure 3) and records every conversation in the folder `out`.

    An earlier run there is resumed. More conversations or other methods extend it, and give the
    same records as if they had been requested from the start. More rounds cannot extend it, as
    finished dialogs are recorded as text, without their tokens.

    Args:
        model: plays both sides, or only the agent if the cast has a user model.
        suite: the system prompts, probes and measures, or a spec for `load_suite`.
        out: a new folder, or the folder of the same run.
        settings: the protocol.
        methods: the steerings of the agent to compare, each a spec, a method or a list of methods
            that apply together; "none" and () are the unsteered model. All see the same pairs and
            draws.
        cast: who takes part besides the agent.
        running: traces, progress and the command line.
        batches: called for each method, returns the numbers of its conversations in batches. A
            batch is requested once the previous one is recorded, so a generator may read the folder
            to decide on the next. None runs all conversations.

    Returns:
        The run as it is in the folder, with the records of earlier commands.

    Raises:
        UsageError: the suite lacks something that the settings require, or a method is given twice.
        RecordsError: `out` holds another run, or cannot be written.
        HoldfastError: a model fails, or cannot apply a method, which is refused at once.
    """
    methods_by_spec = _read_by_spec(methods)
    suite = as_suite(suite)
    settings, cast = prepare(model, suite, settings, cast)
    for methods_of_agent in methods_by_spec.values():
        check_in_dialogs(model.check, methods_of_agent, suite.cases, settings)
    judge_models = load_judges(suite, model, cast.judging)
    benchmark = _Benchmark(model, suite, settings, cast, running)
    identity = {
        **identity_of_model(model),
        **known_identity(suite, methods_by_spec, asdict(settings), cast),
        **identity_of_others(cast.user_model, judge_models),
    }
    with records.open_run(Path(out), identity, benchmark.details(), COMPATIBILITY) as open_run:

        async def run_all() -> None:
            async with open_judges(suite, judge_models, Path(out)) as judges:
                await judges.check(cast.judging)
                for spec, methods_of_agent in methods_by_spec.items():
                    groups = batches() if batches else [range(settings.conversations)]
                    for batch in records.resume(open_run, spec, groups, independent=True):
                        # no batch begins once all of its conversations would be given up
                        if batch.numbers and all(map(running.should_stop, batch.numbers)):
                            return
                        await benchmark.run_batch(batch, methods_of_agent, judges)

        run_sync(run_all())
    return records.read_run(out)


@dataclass(frozen=True)
class _Benchmark:
    """The objects that all conversations of a run share; settings and cast are prepared."""

    model: ChatModel
    suite: Suite
    settings: Settings
    cast: Cast
    running: Running

    def details(self) -> dict[str, Any]:
        """The facts for the manifest that do not identify the run."""
        notes = list(self.suite.notes)
        if self.cast.dialogs is not None and self.cast.dialogs.left_out:
            notes.append(self.cast.dialogs.left_out)
        return {
            "command": "drift",
            "argv": self.running.command,
            **facts_about(self.model),
            "checkable": all(CaseRules(case).has_checked_texts for case in self.suite.cases),
            "versions": _versions(),
            **({"notes": notes} if notes else {}),
        }

    async def run_batch(
        self, batch: records.PendingBatch, methods: Sequence[Method], judges: Judges
    ) -> None:
        """Runs the conversations of a batch that are not recorded yet, and records them."""
        if batch.num_finished:
            finished = set(batch.numbers).difference(batch.to_run)
            replies = count_replies(self.suite, self.settings, finished, self.cast)
            self.running.progress(replies, 0)  # without tokens, as none are forwarded now
        if not batch.to_run:
            return
        pairings = [
            draw_conversation(self.suite, self.settings, number, self.cast)
            for number in batch.to_run
        ]
        # a model that runs elsewhere limits the number of its requests itself
        is_remote = self.model.independent and self.cast.user_model is None
        async with session_of(self.model, self.cast.user_model) as engine:
            recorder = _Recorder(batch, judges, engine, self.running.traces)
            concurrency = None if is_remote else self.settings.batch * replicas_of(engine)
            await hold_dialogs(
                engine,
                pairings,
                methods,
                self.settings,
                recorder.record,
                running=self.running,
                concurrency=concurrency,
            )


@dataclass
class _Recorder:
    """Records the conversations of a batch, each as soon as its judges have answered.

    The seconds of a record are those since the previous conversation ended, so that those of all
    records add up to the time of the run.
    """

    batch: records.PendingBatch
    judges: Judges
    engine: Engine
    traces: bool  # whether the masses of the turns are written too
    latest_end: float = field(default_factory=time.monotonic)  # of a conversation

    async def record(self, dialog: Dialog) -> None:
        """Records a conversation that is over."""
        now = time.monotonic()
        seconds = now - self.latest_end
        self.latest_end = now
        results = await self.judges.resolve(dialog.probes)
        conversation = conversation_of(
            dialog, self.batch.name, results, seconds, reduced_max_sequences(self.engine)
        )
        number = dialog.pairing.number
        if self.traces and number in self.batch.missing:
            # written before the record, so that every record has its trace
            write_traces(self.batch.run.folder, self.batch.name, number, dialog.traces)
        self.batch.append(conversation)


def check_before_loading(
    suite: Suite,
    out: Path | str,
    settings: Settings,
    methods: Sequence[Methods],
    cast: Cast = Cast(),
    command: str = "",
) -> None:
    """Refuses a run for all reasons that are known before its model is loaded.

    Raises:
        UsageError: a method is given twice, or cannot work with these prompts or settings.
        AnotherRun: the folder holds another run, or something else.
    """
    by_spec = _read_by_spec(methods)
    for methods_of_agent in by_spec.values():
        check_with_rules(methods_of_agent, suite.cases, settings)
    final_settings = asdict(resolve_settings(suite, settings, cast))
    known = known_identity(suite, by_spec, final_settings, cast)
    records.refuse_early(out, known, {"command": "drift", "argv": command}, COMPATIBILITY)


def _read_by_spec(methods: Sequence[Methods]) -> dict[str, tuple[Method, ...]]:
    """Parses each steering, and returns its methods by their spec; refuses one given twice."""
    by_spec: dict[str, tuple[Method, ...]] = {}
    for steering in map(read_methods, [methods] if isinstance(methods, str) else methods):
        spec = spec_of(steering)
        if spec in by_spec:
            raise UsageError(
                f"The method {spec!r} is given twice; give it once.", option="method", value=spec
            )
        by_spec[spec] = steering
    return by_spec


def _versions() -> dict[str, str]:
    """The versions of Python, Holdfast and the libraries that a result may depend on."""
    versions = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "holdfast": __version__,
    }
    for package in ("torch", "transformers", "numpy", "openai"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions
