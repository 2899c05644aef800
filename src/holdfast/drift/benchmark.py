"""The drift benchmark: concurrent conversations, each recorded as soon as it is over."""

import contextlib
import dataclasses
import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from holdfast import methods as steering
from holdfast import records
from holdfast.common.event_loop import run_sync
from holdfast.common.version import __version__
from holdfast.drift.attention_traces import write_traces
from holdfast.drift.dialog import Dialog, conversation_of
from holdfast.drift.judges import Judges, load_judges, open_judges
from holdfast.drift.pairing import Pairing, draw, replayable, settled
from holdfast.drift.recorded_dialogs import Dialogs, UserTurns
from holdfast.drift.selfchat import converse
from holdfast.drift.settings import Cast, Running, Settings
from holdfast.drift.suites import Suite, load_suite
from holdfast.drift.two_models import session_of
from holdfast.errors import UsageError
from holdfast.methods import Method, Methods, read_methods
from holdfast.models.protocol import ChatModel, Engine, facts_about
from holdfast.models.served import same_served

# Draws depend on a conversation and its rounds, so a larger run begins like a smaller one. In
# floating point, what else is in a batch can change a last digit, and occasionally a token.
COMPATIBILITY = records.Compatibility(
    # "divergence" was a setting before 0.3
    defaults={"settings": {**dataclasses.asdict(Settings()), "divergence": False}},
    joins={
        "model_fingerprint": same_served,
        "methods": records.union,
        "settings.conversations": max,
    },
    reasons={
        "settings.rounds": (
            "finished dialogs are recorded as text, so they cannot continue with exactly the "
            "tokens of a run of other rounds"
        )
    },
)


def run(
    model: ChatModel,
    suite: Suite | str,
    out: Path | str,
    settings: Settings = Settings(),
    methods: Sequence[Methods] = ((),),
    *,
    cast: Cast = Cast(),
    running: Running = Running(),
    numbers: Iterable[Sequence[int]] | None = None,
) -> records.Run:
    """Measures drift (Li et al. 2024, Figure 3) and records every conversation in the folder `out`;
    resumes an earlier run there.

    More conversations or other methods extend the run in a folder, and give the same records as if
    they had been there from the start. More rounds do not: finished dialogs are recorded as text.

    Args:
        model: plays both sides, or only the agent if the cast has a user model.
        suite: the system prompts, probes and measures, or a spec for `load_suite`.
        out: a new folder, or the folder of the same run.
        settings: the protocol.
        methods: each a list of methods for the agent, a method or a spec; () and "none" are the
            unsteered model. All see the same pairs and draws.
        cast: who takes part besides the agent.
        running: traces, progress and the command line.
        numbers: the conversations, in batches; None: all. A batch is requested once the previous
            one is recorded, so an iterator (for one method) may look into the folder.

    Raises:
        UsageError: the suite lacks what the settings ask for, a method is given twice, or a user
            model is combined with dialogs.
        RecordsError: `out` holds another run, or cannot be written.
        HoldfastError: from the models; methods that they cannot apply are refused at once.
    """
    chosen, user_model = _by_spec(methods), cast.user_model
    if not isinstance(suite, Suite):
        suite = load_suite(suite)
    given = replayable(model, suite, settings, cast.read())
    settings = settled(suite, settings, given)
    for setting in chosen.values():
        model.check(setting)
    judged = load_judges(suite, model, cast.judging)
    identity = identity_of(model, suite, chosen, dataclasses.asdict(settings), given, user_model)
    if judged:
        named = ((" ".join(filter(None, name)), judge) for name, judge in judged.items())
        identity["judges"] = {name: judge.fingerprint for name, judge in named}
    about = {
        "command": "drift",
        "argv": running.command,
        **facts_about(model),
        "versions": _versions(),
    }
    left_out = given.left_out if isinstance(given, Dialogs) else ""
    if notes := [*suite.notes, *([left_out] if left_out else [])]:
        about["notes"] = notes
    with records.open_run(Path(out), identity, about, COMPATIBILITY) as record:

        async def hold_all() -> None:
            groups = [range(settings.conversations)] if numbers is None else numbers
            async with open_judges(suite, judged, Path(out)) as judges:
                await judges.check(cast.judging)
                for name, setting in chosen.items():
                    for batch in records.resume(record, name, groups, alone=True):
                        for _ in range(settings.rounds if batch.kept else 0):
                            running.progress(batch.kept, 0)
                        if batch.again:
                            pairings = [draw(suite, settings, given, n) for n in batch.again]
                            await hold(batch, pairings, setting, judges)

        async def hold(
            batch: records.PendingBatch,
            pairings: list[Pairing],
            setting: tuple[Method, ...],
            judges: Judges,
        ) -> None:
            independent = model.independent and user_model is None  # else each waits for the other
            together = None if independent else settings.batch
            async with session_of(model, user_model) as engine:
                recorder = Recorder(batch, judges, engine, running.traces)
                await converse(
                    engine, pairings, setting, settings, recorder.take, running.progress, together
                )

        run_sync(hold_all())
    return records.read_run(out)


@dataclass
class Recorder:
    """Records the conversations of a batch, each as soon as its judges have answered.

    A record's seconds are counted from the previous conversation: its share of the total time.
    """

    batch: records.PendingBatch
    judges: Judges
    engine: Engine
    traces: bool  # whether the masses of the turns are written too
    last: float = field(default_factory=time.monotonic)

    async def take(self, dialog: Dialog) -> None:
        now = time.monotonic()
        seconds, self.last = now - self.last, now
        rows = getattr(self.engine, "rows_at_most", None)
        results = await self.judges.resolve(dialog.probes)
        record = conversation_of(dialog, self.batch.name, results, seconds, rows)
        number = dialog.pairing.number
        if self.traces and number in self.batch.missing:
            # before the record, which thus always has its trace
            write_traces(self.batch.run.folder, self.batch.name, number, dialog.traces)
        self.batch.keep(record)


def check_folder(
    suite: Suite,
    out: Path | str,
    settings: Settings,
    methods: Sequence[Methods],
    given: Dialogs | UserTurns | None = None,
    command: str = "",
) -> None:
    """Refuses a folder that holds another run, or something else, before a model is loaded."""
    final = dataclasses.asdict(settled(suite, settings, given))
    known = identity_of(None, suite, _by_spec(methods), final, given)
    records.refuse_early(out, known, {"command": "drift", "argv": command}, COMPATIBILITY)


def _by_spec(methods: Sequence[Methods]) -> dict[str, tuple[Method, ...]]:
    chosen: dict[str, tuple[Method, ...]] = {}
    for setting in map(read_methods, [methods] if isinstance(methods, str) else methods):
        name = steering.spec_of(setting)
        if name in chosen:
            raise UsageError(f"The method {name!r} is given twice; give it once.")
        chosen[name] = setting
    return chosen


def identity_of(
    model: ChatModel | None,
    suite: Suite,
    methods: Iterable[str],
    settings: Mapping[str, Any],
    given: Dialogs | UserTurns | None = None,
    user_model: ChatModel | None = None,
) -> dict[str, Any]:
    """The facts that all commands of a run share; without a model, those known before loading."""
    identity: dict[str, Any] = {}
    if model is not None:
        fingerprint, runtime = model.fingerprint, model.runtime
        identity = {"model": model.name, "model_fingerprint": fingerprint, "runtime": runtime}
    identity |= {
        "suite": suite.name,
        "suite_fingerprint": suite.fingerprint,
        "methods": list(methods),
        "settings": dict(settings),
    }
    if user_model is not None:
        identity["user_model"] = {
            "name": user_model.name,
            "fingerprint": user_model.fingerprint,
            "runtime": user_model.runtime,
        }
    return identity | identity_of_given(given)


def identity_of_given(given: Dialogs | UserTurns | None) -> dict[str, Any]:
    """The dialogs or the user turns of a run, by name and content; {} if it has none."""
    if given is None:
        return {}
    kind = "user_turns" if isinstance(given, UserTurns) else "dialogs"
    return {kind: {"name": given.name, "fingerprint": given.fingerprint}}


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    versions["holdfast"] = __version__
    for package in ("torch", "transformers", "numpy", "openai"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions
