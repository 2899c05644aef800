"""The probes of a run asked of the model without any system prompt: what a measure gives by itself.

The questions are those of the run's agents, each alone in a new chat under an empty system prompt,
so that a template inserts none of its own. They are a run of their own, in the folder `baseline` of
the run, so they change none of its draws and may be asked at any time.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from holdfast.common.seeds import seed_of
from holdfast.drift.benchmark import identity_of, identity_of_given
from holdfast.drift.cases import Suite
from holdfast.drift.dialog import places_of, scored
from holdfast.drift.judges import Judgements, Judges, load_judges
from holdfast.drift.pairing import Pairing, Probe, draw, replayable, settled
from holdfast.drift.settings import Cast, Running, Settings
from holdfast.models.failures import Failures, Name, Unanswered, answer_each
from holdfast.models.protocol import ChatModel, told_of
from holdfast.models.replicas import BatchUnit, Listener, Units, replicas_of, work_on
from holdfast.models.requests import Reply, Request
from holdfast.records import MANIFEST, Run, RunData, batches, open_run, read_run, resume

FOLDER = "baseline"
KIND = "baseline"
UNSTEERED = "none"
_UNPROMPTED = {"id": None, "category": None, "system_prompt": ""}
_ASKED_BY = ("seed", "sampling", "user_prompt", "pairs", "probes_per_round")  # the questions


def ask_baseline(
    model: ChatModel,
    suite: Suite,
    out: Path | str,
    settings: Settings = Settings(),
    *,
    cast: Cast = Cast(),
    running: Running = Running(),
) -> RunData:
    """Asks every conversation's stability probes once more, without a system prompt; resumes what
    is there.

    Args:
        model: as it is, without methods.
        suite, out, settings, cast: of the run, which has checked its judges.
        running: its progress takes how many conversations were asked, and the tokens forwarded.

    A conversation with a question that is not answered is noted, and asked again by the next
    command; the others go on.

    Raises:
        RecordsError: `out` has a baseline of another model, suite or seed.
        ModelError: requests of too many conversations in a row failed.
    """
    folder = Path(out) / FOLDER
    about = {"command": KIND, "argv": running.command, **told_of(model)}
    given = replayable(model, suite, settings, cast.read())
    settings = settled(suite, settings, given)
    every = dataclasses.asdict(settings)
    asked_by = {name: every[name] for name in _ASKED_BY}
    identity = identity_of(model, suite, [UNSTEERED], asked_by) | identity_of_given(given)
    if "default_system_prompt" in about:  # version 0.2 asked under the template's default
        identity["default_system_prompt"] = about["default_system_prompt"]
    judged = load_judges(suite, model, cast.judging)
    with open_run(folder, identity, about) as run:
        judges = Judges(suite, judged, Judgements.opened(Path(out)))
        groups, units = batches(range(settings.conversations), settings.batch), []
        for batch in resume(run, UNSTEERED, groups, alone=model.independent):
            if batch.again:
                pairings = [draw(suite, settings, given, number) for number in batch.again]
                units.append(BatchUnit(batch, pairings))
            else:
                running.progress(len(batch.numbers), 0)
        note = functools.partial(_note, run)
        work_on(
            replicas_of(model), Unprompted(settings), units, note, running.progress, judges.settle
        )
    return read_run(folder)


@dataclass(frozen=True)
class Unprompted:
    """Work whose units are lists of pairings."""

    settings: Settings
    together: ClassVar[int] = 1

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        unit = 0
        failures = Failures(lambda unanswered: listener.outcome(unit, unanswered), "conversation")
        for unit, pairings in units:
            for record in _ask(model, pairings, self.settings, failures):
                listener.outcome(unit, record)
            listener.over(unit)
        failures.settle(model.session())


def read_baseline(out: Path | str) -> RunData | None:
    """The baseline of a run; None where none was asked."""
    folder = Path(out) / FOLDER
    return read_run(folder) if (folder / MANIFEST).is_file() else None


def _note(run: Run, unanswered: Unanswered) -> None:
    """The conversation of a question that was not answered stays missing."""
    run.note_failure(UNSTEERED, unanswered.name[1], unanswered.why, unanswered.reason)


def _ask(
    model: ChatModel, pairings: Sequence[Pairing], settings: Settings, failures: Failures
) -> list[dict[str, Any]]:
    """The records of some conversations, asked side by side; of those that were answered."""
    began = time.monotonic()
    probes = {
        (f"question {position}", pairing.number): probe
        for pairing in pairings
        for position, probe in enumerate(pairing.every_probe, 1)
        if probe.kind == "stability"
    }
    unprompted = {"role": "system", "content": ""}
    requests = {
        (question, number): Request(
            (unprompted, {"role": "user", "content": probe.question}),
            sampling=settings.sampling,
            seed=seed_of("baseline", settings.seed, number, probe.rule.id, probe.index),
            system_as=settings.system_as,
        )
        for (question, number), probe in probes.items()
    }
    replies: dict[Name, Reply] = {}
    answer_each(
        model.session(), requests, failures, lambda name, reply: replies.update({name: reply})
    )
    records = {pairing.number: _record(pairing) for pairing in pairings}
    for name, probe in probes.items():
        if (reply := replies.get(name)) is None:
            records.pop(name[1], None)
        elif (record := records.get(name[1])) is not None:
            record["tokens"]["forwarded"] += reply.forwarded
            record["probes"] += _probed(probe, reply)
    seconds = round((time.monotonic() - began) / len(pairings), 3)
    return [{**record, "seconds": seconds} for record in records.values()]


def _probed(probe: Probe, reply: Reply) -> list[dict[str, Any]]:
    """The record of a probe: an entry for each of its rules."""
    return [
        {
            **fields,
            "kind": KIND,
            "question": probe.question,
            "reply": reply.text,
            **scored(rule.measure, reply),
            "mass": None,
            "measure": rule.measure.name,
        }
        for rule, fields in places_of(1, probe)
    ]


def _record(pairing: Pairing) -> dict[str, Any]:
    agent = pairing.agent
    return {
        "conversation": pairing.number,
        "agent": {"id": agent.id, "category": agent.category, "system_prompt": agent.system_prompt},
        "user": _UNPROMPTED,
        "turns": [],
        "probes": [],
        "tokens": {"forwarded": 0, "least": 0},
    }
