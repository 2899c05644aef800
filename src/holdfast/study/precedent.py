"""`holdfast precedent`: does a model follow its system prompt, or its own earlier replies?

For each prompt, such as "Always reply in French.", two histories of the same questions are made:
in one the agent's replies keep its rules, in the other they break them. The model then replies to
one more question in each of these conditions:

    history            kept or broken
    replies in view    its last 0, 1, 3 or 6
    system prompt      in view, or a neutral one in its place

All else is the same: the questions, the number of turns, and the seeds of the draws. A model that
follows its prompt keeps the rules after either history; one that follows precedent keeps them only
after the kept one, whichever prompt it sees. `analysis.precedent_results` compares the conditions.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast import drift, records
from holdfast.drift.cases import Suite
from holdfast.drift.method_checks import check_in_dialogs
from holdfast.drift.progress import Progress
from holdfast.drift.settings import Running
from holdfast.errors import RequestFailed, UsageError
from holdfast.methods import Method, Methods, read_methods, spec_of
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.failures import CircuitBreaker, FailedRequest, RequestKey
from holdfast.models.offered_steering import same_fingerprint
from holdfast.models.protocol import ChatModel, facts_about
from holdfast.study.precedent_chats import PrecedentChats
from holdfast.study.precedent_scenarios import (
    BROKEN,
    KEPT,
    Histories,
    PrecedentSettings,
    Scenario,
    count_replies,
    draw_scenarios,
)


def run(
    model: ChatModel,
    suite: Suite | str,
    out: Path | str,
    settings: PrecedentSettings = PrecedentSettings(),
    methods: Sequence[Methods] = ((),),
    running: Running = Running(),
) -> records.Run:
    """Runs the experiment, and records every conversation in the folder `out`; resumes it.

    Args:
        methods: applied to the next replies that have the system prompt in view. The first must be
            (), "none"; all others use its histories.

    Raises:
        UsageError: the suite cannot be used (`draw_scenarios`), or the first method is not "none".
        RecordsError: `out` holds another run, or cannot be written.
    """
    if not isinstance(suite, Suite):
        suite = drift.load_suite(suite)
    steerings = {spec_of(steering): steering for steering in map(read_methods, methods)}
    if next(iter(steerings), "") != spec_of(()):
        raise UsageError(
            "precedent makes its histories without a method; give the method none first."
        )
    for steering in steerings.values():
        check_in_dialogs(model.check, steering, suite.cases, drift.Settings())
    scenarios = draw_scenarios(suite, settings)
    identity = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "suite": suite.name,
        "suite_fingerprint": suite.fingerprint,
        "methods": list(steerings),
        "settings": dataclasses.asdict(settings),
    }
    about = {"command": "precedent", "argv": running.command, **facts_about(model)}
    compatibility = records.Compatibility(
        joins={
            "model_fingerprint": same_fingerprint,
            "methods": records.union,
            "settings.conversations": max,
        }
    )
    with records.open_run(Path(out), identity, about, compatibility) as folder:
        run_sync(
            _run_conversations(model, steerings, scenarios, settings, folder, running.progress)
        )
    return records.read_run(out)


async def _run_conversations(
    model: ChatModel,
    steerings: Mapping[str, tuple[Method, ...]],
    scenarios: Sequence[Scenario],
    settings: PrecedentSettings,
    folder: records.OpenRun,
    progress: Progress,
) -> None:
    """Holds and records the conversations that the folder lacks under each steering."""

    def note_failure(failed_request: FailedRequest) -> None:
        folder.note_failure(*failed_request.key, failed_request.why, failed_request.reason)

    breaker = CircuitBreaker(note_failure, "conversation")
    groups = records.batches(range(settings.conversations), settings.batch)
    for name, methods in steerings.items():
        for batch in records.resume(folder, name, groups, independent=model.independent):
            progress(batch.num_finished * count_replies(settings, methods), 0)
            if not batch.to_run:
                continue
            histories = _read_histories(folder.folder)
            async with model.session() as engine, task_group() as group:
                chats = PrecedentChats(engine, settings, methods, breaker, progress)
                for number in batch.to_run:
                    task = _hold_and_record(
                        batch, chats, number, scenarios[number], histories.get(number)
                    )
                    group.create_task(task, name=str(number))
    async with model.session() as engine:
        await breaker.finish(engine)


async def _hold_and_record(
    batch: records.PendingBatch,
    chats: PrecedentChats,
    number: int,
    scenario: Scenario,
    histories: Histories | None,
) -> None:
    """Holds one conversation and appends its record; if it fails, tells the circuit breaker."""
    start = time.monotonic()
    try:
        record = await chats.hold(number, scenario, histories)
    except RequestFailed as error:
        chats.breaker.failed(number, error)
        chats.breaker.record_or_hold_back(
            number, FailedRequest(RequestKey(batch.name, number), error.why, str(error))
        )
    else:
        seconds = round(time.monotonic() - start, 3)
        batch.append(record.model_copy(update={"seconds": seconds}))


def _read_histories(folder: Path) -> dict[int, Histories]:
    """Reads the histories that were made without a method, by conversation."""
    return {
        chat.conversation: {KEPT: chat.kept, BROKEN: chat.broken}
        for chat in records.read_run(folder).precedents
        if chat.method == spec_of(())
    }
