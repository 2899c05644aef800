"""Asks the probes of a run without any system prompt, to see the scores of the model by itself.

The questions are those of the run's agents, each in a new chat with an empty system prompt, so that
a template does not insert its default. They form a separate run, in the folder `baseline` of the
run, so they change none of its draws and may be asked at any time.
"""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.common.event_loop import run_sync
from holdfast.common.seeds import seed_of
from holdfast.drift.benchmark import identity_of
from holdfast.drift.cases import Suite
from holdfast.drift.dialog import add_probes, person_of, places_of, scored
from holdfast.drift.judges import load_judges, open_judges
from holdfast.drift.pairing import Pairing, draw, replayable, settled
from holdfast.drift.settings import Cast, Running, Settings
from holdfast.models.failures import Name, OutageWatch, Unanswered, answer_each
from holdfast.models.protocol import ChatModel, Engine, facts_about
from holdfast.models.requests import Reply, Request
from holdfast.records import MANIFEST, Run, batches, open_run, read_run, resume, unfinished

FOLDER = "baseline"
KIND = "baseline"
UNSTEERED = "none"
_ASKED_BY = ("seed", "sampling", "user_prompt", "pairs", "probes_per_round")  # fix the questions


def ask_baseline(
    model: ChatModel,
    suite: Suite,
    out: Path | str,
    settings: Settings = Settings(),
    *,
    cast: Cast = Cast(),
    running: Running = Running(),
) -> Run:
    """Asks every conversation's stability probes once more, without a system prompt; resumes an
    earlier baseline.

    Args:
        model: the model, used without methods.
        out: the folder of the run, which has checked its judges; `suite`, `settings` and `cast` are
            those of that run.
        running: its progress receives how many conversations were asked, and the tokens forwarded.

    A conversation with an unanswered question is noted and asked again by the next command; the
    others continue.

    Raises:
        RecordsError: `out` has a baseline of another model, suite or seed.
        ModelError: requests of too many conversations in a row failed.
    """
    folder = Path(out) / FOLDER
    about = {"command": KIND, "argv": running.command, **facts_about(model)}
    given = replayable(model, suite, settings, cast.read())
    settings = settled(suite, settings, given)
    every = dataclasses.asdict(settings)
    asked_by = {name: every[name] for name in _ASKED_BY}
    identity = identity_of(model, suite, [UNSTEERED], asked_by, given)
    if "default_system_prompt" in about:  # version 0.2 asked with the template's default
        identity["default_system_prompt"] = about["default_system_prompt"]
    judged = load_judges(suite, model, cast.judging)
    with open_run(folder, identity, about) as run:
        groups = batches(range(settings.conversations), settings.batch)
        every_batch = resume(run, UNSTEERED, groups, alone=model.independent)
        left = unfinished(every_batch, running.progress)

        def note(failed: Unanswered) -> None:
            run.note_failure(UNSTEERED, failed.name[1], failed.why, failed.reason)

        async def ask_all() -> None:
            watch = OutageWatch(note, "conversation")
            async with open_judges(suite, judged, Path(out)) as judges, model.session() as engine:
                for batch in left:
                    pairings = [draw(suite, settings, given, number) for number in batch.again]
                    records = await _ask(engine, pairings, settings, watch)
                    for record in records:
                        batch.keep(await judges.resolve(record))
                    tokens = sum(record["tokens"]["forwarded"] for record in records)
                    running.progress(len(batch.numbers), tokens)
                await watch.finish(engine)

        if left:
            run_sync(ask_all())
    return read_run(folder)


def read_baseline(out: Path | str) -> Run | None:
    """The baseline of a run; None if there is none."""
    folder = Path(out) / FOLDER
    return read_run(folder) if (folder / MANIFEST).is_file() else None


async def _ask(
    engine: Engine, pairings: Sequence[Pairing], settings: Settings, watch: OutageWatch
) -> list[dict[str, Any]]:
    """The records of conversations, asked together; none for one with an unanswered question."""
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
    await answer_each(engine, requests, watch, replies.__setitem__)
    records = {pairing.number: _record(pairing) for pairing in pairings}
    for name, probe in probes.items():
        if (reply := replies.get(name)) is None:
            records.pop(name[1], None)
        elif (record := records.get(name[1])) is not None:
            record["tokens"]["forwarded"] += reply.forwarded
            entries = [
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
            add_probes(record, entries)
    seconds = round((time.monotonic() - began) / len(pairings), 3)
    return [{**record, "seconds": seconds} for record in records.values()]


def _record(pairing: Pairing) -> dict[str, Any]:
    return {
        "conversation": pairing.number,
        "agent": person_of(pairing.agent),
        "user": person_of(None),
        "turns": [],
        "probes": [],
        "tokens": {"forwarded": 0, "least": 0},
    }
