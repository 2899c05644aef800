"""The drift benchmark: conversations side by side, each recorded as soon as it is over."""

from __future__ import annotations

import dataclasses
import functools
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from holdfast import methods as steering
from holdfast.drift.dialogs import Dialogs, read_dialogs
from holdfast.drift.divergence import check_measurable
from holdfast.drift.judgements import Judgements
from holdfast.drift.judges import Judges, Judging, load_judges
from holdfast.drift.pairing import draw, settled
from holdfast.drift.settings import Settings
from holdfast.drift.suites import Suite, load_suite
from holdfast.drift.talks import Recorder, Talks
from holdfast.drift.traces import TurnTrace, write_traces
from holdfast.drift.two_models import TwoModels
from holdfast.errors import UsageError
from holdfast.methods import Method, read_methods
from holdfast.models.forked import replicas_of
from holdfast.models.protocol import ChatModel, told_of
from holdfast.models.replicas import Here, Listener, Replicas
from holdfast.models.served import same_served
from holdfast.records import (
    Batch,
    Compatibility,
    RunData,
    open_run,
    read_run,
    resume,
    union,
)
from holdfast.version import __version__

# Draws belong to a conversation and its rounds, so more of them begin like fewer. In floating
# point, what runs beside a conversation can change a last digit, and now and then a token.
COMPATIBILITY = Compatibility(
    defaults={"settings": dataclasses.asdict(Settings())},
    joins={"model_fingerprint": same_served, "methods": union, "settings.conversations": max},
    reasons={
        "settings.rounds": (
            "finished dialogs are recorded as text, and cannot go on with the very "
            "tokens that a run of other rounds would have"
        )
    },
)

Progress = Callable[[int, int], None]


def run(
    model: ChatModel,
    suite: Suite | str,
    out: Path | str,
    settings: Settings = Settings(),
    methods: Sequence[Sequence[Method] | Method | str] = ((),),
    *,
    command: str = "",
    progress: Progress = lambda conversations, tokens: None,
    traces: bool = False,
    replicas: int | None = 1,
    user_model: ChatModel | None = None,
    dialogs: Dialogs | Path | str | None = None,
    judging: Judging | None = None,
    numbers: Iterable[Sequence[int]] | None = None,
) -> RunData:
    """Measures drift (Li et al. 2024, Figure 3) and records every conversation in the folder `out`;
    resumes what is there.

    A run can be extended: more conversations or other methods go into the same folder, and give the
    records that they would have given in the first run. More rounds do not, as the tokens of
    finished dialogs are not recorded.

    Args:
        model: plays both sides, or the agent alone where there is a `user_model`.
        suite: the system prompts, probes and measures, or what `load_suite` takes.
        out: a new folder, or that of the same run, which may have fewer or more conversations and
            other methods.
        settings: the protocol.
        methods: each one a list applied to the agent, a method or a spelling; () and "none" are the
            model as it is. All see the same pairs and draws.
        command: the command line, for the manifest.
        progress: told at every round how many conversations advanced, and the tokens forwarded;
            finished conversations found on resuming are told at once, round by round, with no
            tokens.
        traces: whether the mass of every head at every generated token of the agent is kept too
            (`drift.traces`).
        replicas: processes that conversations are shared out to, which are forked and read the same
            weights; None: as many as pay, for a small model in this processor's memory. A model
            that has replicas elsewhere has its own number of them. Two models have none.
        user_model: plays the user model; a run with another one is another run.
        dialogs: that were held, or their file (`dialogs.read_dialogs`): they are replayed in place
            of self-chats, and the model answers the probes alone.
        judging: how the judges of the suite are had, where it has some.
        numbers: which conversations are held, in batches; None: all. A batch is asked for when the
            one before it is recorded, so an iterator (for one method) may look into the folder.

    Raises:
        UsageError: a suite without the prompts or personas that the settings ask for, the same
            methods twice, dialogs and a user model, or replicas of two models or of one that cannot
            be forked.
        RecordsError: `out` holds another run, or cannot be written.
        HoldfastError: whatever a model raises; methods that it cannot apply are refused before
            anything is written.
    """
    chosen = _by_spelling(methods)
    for given in (model,) if user_model is None else (model, user_model):
        _refuse_no_model(given)
    if not isinstance(suite, Suite):
        suite = load_suite(suite)
    if isinstance(dialogs, (Path, str)):
        dialogs = read_dialogs(dialogs)
    if dialogs is not None and user_model is not None:
        raise UsageError(
            f"The dialogs {dialogs.name} have what their users said, and {user_model.name} is to"
            " play the user; leave out --dialogs or --user-model."
        )
    settings = settled(suite, settings, dialogs)
    for setting in chosen.values():
        model.check(setting)
    if settings.divergence:
        check_measurable(model, chosen.values())
    side_by_side = min(settings.conversations, settings.batch)
    shared_out = (
        replicas_of(model, side_by_side, replicas)
        if user_model is None
        else Here(_both(model, user_model, replicas))
    )
    identity = identity_of(model, suite, list(chosen), dataclasses.asdict(settings))
    if user_model is not None:
        identity["user_model"] = _named(user_model)
    if dialogs is not None:
        identity["dialogs"] = {"name": dialogs.name, "fingerprint": dialogs.fingerprint}
    judged = load_judges(suite, model, judging or Judging())
    if judged:
        identity["judges"] = {name: judge.fingerprint for (name, _), judge in judged.items()}
    about = {
        "command": "drift",
        "argv": command,
        **told_of(model),
        "versions": _versions(),
        **({"notes": list(suite.notes)} if suite.notes else {}),
    }
    with open_run(Path(out), identity, about, COMPATIBILITY) as record:
        judges = Judges(suite, judged, Judgements.opened(Path(out)))
        judges.check(judging or Judging())
        groups = [range(settings.conversations)] if numbers is None else numbers
        for name, setting in chosen.items():
            for batch in resume(record, name, groups, alone=True):
                if batch.kept:
                    for _ in range(settings.rounds):
                        progress(batch.kept, 0)
                pairings = {n: draw(suite, settings, dialogs, n) for n in batch.again}
                if pairings:
                    recorder = Recorder(pairings, functools.partial(_keep, batch, judges, traces))
                    listener = Listener(recorder.take, progress=progress, lost=recorder.lose)
                    shared_out.work(Talks(setting, settings), pairings, listener)
    return read_run(out)


def _refuse_no_model(model: object) -> None:
    if isinstance(model, str) or not hasattr(model, "session"):
        seen = repr(model) if isinstance(model, str) else type(model).__name__
        raise UsageError(f"A model is what holdfast.load or holdfast.connect gives, not {seen}.")


def _both(agent: ChatModel, user: ChatModel, replicas: int | None) -> ChatModel:
    """Two models, which have no replicas.

    Raises:
        UsageError: some are wanted.
    """
    if isinstance(agent, Replicas) or (replicas or 1) > 1:
        count = "" if isinstance(agent, Replicas) else f"{replicas} "
        raise UsageError(
            f"With a user model of its own, a run has no {count}replicas; leave out --replicas and"
            " --ray, or --user-model."
        )
    return cast("ChatModel", TwoModels(agent, user))  # conversations use its session alone


def _by_spelling(
    methods: Sequence[Sequence[Method] | Method | str],
) -> dict[str, tuple[Method, ...]]:
    """Each setting by its spelling, in the order given.

    Raises:
        UsageError: no list, or a setting that is there twice.
    """
    if isinstance(methods, str):
        raise UsageError(f"methods is a list of settings, not {methods!r}; put it into one.")
    chosen: dict[str, tuple[Method, ...]] = {}
    for setting in map(read_methods, methods):
        name = steering.spell(setting)
        if name in chosen:
            raise UsageError(f"The method {name!r} is given twice; give it once.")
        chosen[name] = setting
    return chosen


def _keep(
    batch: Batch,
    judges: Judges,
    traces: bool,
    record: dict[str, Any],
    masses: dict[int, TurnTrace],
) -> None:
    number = record["conversation"]
    if traces and number in batch.missing:  # before the record, which thus always has its trace
        write_traces(batch.run.folder, batch.name, number, masses)
    batch.keep(judges.settle(record))


def identity_of(
    model: ChatModel, suite: Suite, methods: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What two commands must have in common to be the same run; methods as they are spelled."""
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "suite": suite.name,
        "suite_fingerprint": suite.fingerprint,
        "methods": list(methods),
        "settings": dict(settings),
    }


def _named(model: ChatModel) -> dict[str, Any]:
    """A second model, as the identity of a run names it."""
    return {"name": model.name, "fingerprint": model.fingerprint, "runtime": model.runtime}


def _versions() -> dict[str, str]:
    versions = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "holdfast": __version__,
    }
    for package in ("torch", "transformers", "numpy", "openai"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
