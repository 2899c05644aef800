"""`holdfast calibrate`: what each fix gains in stability and costs in capability (Li et al. 2024,
section 6.3).

The sweep `boost:factor=2,4` makes three steerings: no method, factor 2 and factor 4. Under each, a
calibration has two steps, with a run folder each, which can be resumed:

1. `stability`: the drift benchmark, over all ordered pairs of a few prompts, over pairs drawn anew
   for every conversation, or over one prompt and the suite's personas.
2. `capability`: questions with known answers, asked in the middle of the dialogs of step 1 without
   becoming a part of them.

`analysis.calibration_results` compares each steering with no method in both, dialog by dialog.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import drift, records
from holdfast.drift.method_checks import check_in_dialogs, check_with_rules
from holdfast.drift.progress import Progress
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import resolve_settings
from holdfast.drift.run_identity import COMPATIBILITY as DRIFT_COMPATIBILITY
from holdfast.drift.run_identity import identity_of_user
from holdfast.errors import ModelError, UsageError, option
from holdfast.methods import Ability, spec_of
from holdfast.models.capabilities import require_chat_model, supports
from holdfast.models.event_loop import run_sync
from holdfast.models.failures import CircuitBreaker, FailedRequest
from holdfast.models.offered_steering import same_fingerprint
from holdfast.models.protocol import ChatModel, facts_about
from holdfast.records.folder import refuse_other_command
from holdfast.records.identity import SweepIdentity
from holdfast.study.calibration_plan import (
    CalibrationPlan,
    calibration_settings,
    choose_prompts,
    conversations_per_steering,
)
from holdfast.study.capability import Capability
from holdfast.study.questioner import Questioner


class CalibrationRuns(NamedTuple):
    """The two runs of a calibration."""

    stability: records.Run
    capability: records.Run


def _join_sweeps(stored: Sequence[Any], new: Sequence[Any]) -> list[Any] | None:
    """Returns the command's sweeps if they include all methods of the folder's, else None.

    So `boost:factor=2,4,8` can resume a folder with `boost:factor=2,4`.
    """

    def methods_of(sweeps: Sequence[Any]) -> list[str]:
        identities = map(SweepIdentity.model_validate, sweeps)
        return [method for sweep in identities for method in sweep.methods]

    includes_all = records.superset(methods_of(stored), methods_of(new)) is not None
    return list(new) if includes_all else None


COMPATIBILITY = records.Compatibility(
    defaults={"plan": CalibrationPlan().identity, **DRIFT_COMPATIBILITY.defaults},
    joins={
        "model_fingerprint": same_fingerprint,
        "methods": records.superset,
        "sweeps": _join_sweeps,
    },
    reasons={
        "settings.conversations": "the questions are divided among the conversations",
        "plan.draws": "the questions are divided among the conversations",
    },
)
# As long as no questions were asked, conversations may be added, for example after `--dry-run`.
_STABILITY_COMPATIBILITY = dataclasses.replace(
    COMPATIBILITY,
    joins={
        **COMPATIBILITY.joins,
        "settings.conversations": lambda stored, new: new if new >= stored else None,
    },
)


def calibrate(
    model: ChatModel,
    suite: drift.Suite | str,
    capability: Capability,
    out: Path | str,
    plan: CalibrationPlan = CalibrationPlan(),
    running: drift.Running = drift.Running(),
) -> CalibrationRuns:
    """Measures stability and capability without any method and at every point of the sweeps;
    resumes what `out` holds.

    Args:
        model: plays both sides; the reading "likeliest" needs its log-probabilities of replies.
        suite: the prompts, or the name of a suite of which the plan chooses prompts.
        capability: asked in the dialogs; its items are divided among the conversations.
        out: a folder; its subfolders `stability` and `capability` are runs.

    Raises:
        UsageError: methods are given twice, or there are fewer than four conversations.
        ModelError: the model cannot apply a method, or too many questions in a row failed. A single
            failed question is noted, and asked again by the next command.
        AnotherRun: the folder holds anything but this calibration.
    """
    require_chat_model(model)
    if not isinstance(suite, drift.Suite):
        suite = choose_prompts(drift.load_suite(suite), plan=plan)
    settings = calibration_settings(suite, plan)
    for methods in plan.steerings:
        check_in_dialogs(model.check, methods, suite.cases, settings)
    _check_reading(model, capability, plan.reading)
    check_before_loading(out, suite, capability, plan)
    stability = drift.run(
        model,
        suite,
        Path(out) / "stability",
        settings,
        plan.steerings,
        cast=drift.Cast(user_turns=plan.user_turns),
        running=running,
    )
    capability_run = _CapabilityRun(model, suite, capability, plan, stability)
    return CalibrationRuns(stability, capability_run.resume(Path(out) / "capability", running))


@dataclass(frozen=True)
class _CapabilityRun:
    """The second step of a calibration: asks its questions in the dialogs of the stability run."""

    model: ChatModel
    suite: drift.Suite
    capability: Capability
    plan: CalibrationPlan
    stability: records.Run

    def resume(self, out: Path, running: drift.Running) -> records.Run:
        """Asks the questions that the folder has no answers to, and records the answers there."""
        identity = {
            **self.stability.manifest.identity.to_json(),
            "methods": list(map(spec_of, self.plan.steerings)),
            **_identity_of(self.suite, self.capability, self.plan),
        }
        about = {"command": "calibrate", "argv": running.command, **facts_about(self.model)}
        with records.open_run(out, identity, about, COMPATIBILITY) as run:
            breaker = CircuitBreaker(partial(self._note_failure, run), "question")
            questioners = self._questioners(breaker)
            batches = self._unfinished_batches(run, questioners, running.progress)
            if batches:
                run_sync(self._ask_batches(batches, questioners, breaker, running.progress))
        return records.read_run(out)

    def _note_failure(self, run: records.OpenRun, failed_request: FailedRequest) -> None:
        """Notes a failed question as a failure of the conversation that it was asked in."""
        method, question = failed_request.key
        conversation = question % conversations_per_steering(self.suite, self.plan)
        run.note_failure(method, conversation, failed_request.why, failed_request.reason)

    def _questioners(self, breaker: CircuitBreaker) -> dict[str, Questioner]:
        """Makes the questioner of each steering, by its spec string."""
        cases = {case.id: case for case in self.suite.cases}
        count = conversations_per_steering(self.suite, self.plan)
        return {
            spec_of(methods): Questioner(
                self.model, methods, cases, self.capability, self.plan, count, breaker
            )
            for methods in self.plan.steerings
        }

    def _unfinished_batches(
        self, run: records.OpenRun, questioners: Mapping[str, Questioner], progress: Progress
    ) -> list[records.PendingBatch]:
        """Returns the batches that have questions left, and reports those that are finished."""
        count = min(conversations_per_steering(self.suite, self.plan), len(self.capability.items))
        groups = records.batches(range(count), self.plan.batch)
        pending: list[records.PendingBatch] = []
        for name, questioner in questioners.items():
            for batch in records.resume(run, name, groups, independent=self.model.independent):
                if batch.to_run:
                    pending.append(batch)
                else:
                    progress(questioner.count_questions(batch.numbers), 0)
        return pending

    async def _ask_batches(
        self,
        batches: Sequence[records.PendingBatch],
        questioners: Mapping[str, Questioner],
        breaker: CircuitBreaker,
        progress: Progress,
    ) -> None:
        """Asks the questions in the recorded dialogs, and records the answers batch by batch."""
        dialogs = {
            (record.method, record.conversation): record for record in self.stability.conversations
        }
        for batch in batches:
            questioner = questioners[batch.name]
            answered = await questioner.ask(
                [dialogs[batch.name, number] for number in batch.to_run]
            )
            for record in answered:
                batch.append(record)
            tokens = sum(record.tokens.forwarded for record in answered)
            progress(questioner.count_questions(batch.numbers), tokens)
        async with self.model.session() as engine:
            await breaker.finish(engine)


def check_before_loading(
    out: Path | str, suite: drift.Suite, capability: Capability, plan: CalibrationPlan
) -> None:
    """Refuses what can be refused before a model is loaded.

    Raises:
        UsageError: a method cannot work with these prompts or in this protocol.
        AnotherRun: the folder holds anything but this calibration.
    """
    settings = calibration_settings(suite, plan)
    for methods in plan.steerings:
        check_with_rules(methods, suite.cases, settings)
    refuse_other_command(out, "calibrate")
    cast = drift.Cast(user_turns=plan.user_turns)
    resolved_settings = resolve_settings(suite, settings, cast)
    identity_of_chats = {
        "settings": {"conversations": resolved_settings.conversations},
        **identity_of_user(cast),
    }
    records.refuse_early(Path(out) / "stability", identity_of_chats, {}, _STABILITY_COMPATIBILITY)
    identity = _identity_of(suite, capability, plan)
    records.refuse_early(Path(out) / "capability", identity, {}, COMPATIBILITY)


def _identity_of(
    suite: drift.Suite, capability: Capability, plan: CalibrationPlan
) -> dict[str, Any]:
    """Returns the recorded identity of a calibration, except for the part that its dialogs have."""
    sweeps = [
        SweepIdentity(
            name=sweep.name,
            knob=sweep.parameter,
            values=sweep.values,
            methods=tuple(map(spec_of, sweep.steerings)),
        )
        for sweep in plan.parsed_sweeps
    ]
    return {
        "prompts": [case.id for case in suite.cases],
        "capability": capability.name,
        "capability_fingerprint": capability.fingerprint,
        "is_text": capability.is_text,
        "sweeps": [sweep.to_json() for sweep in sweeps],
        "plan": plan.identity,
    }


def count_progress_steps(suite: drift.Suite, capability: Capability, plan: CalibrationPlan) -> int:
    """Returns how many steps `calibrate` reports to its progress: replies and questions."""
    cast = drift.Cast(user_turns=plan.user_turns)
    settings = resolve_settings(suite, calibration_settings(suite, plan), cast)
    numbers = range(settings.conversations)
    replies = count_replies(suite, settings, numbers, cast)
    return len(plan.steerings) * (replies + len(capability.items))


def _check_reading(model: ChatModel, capability: Capability, reading: str) -> None:
    """Refuses a reading that the capability or the model does not support."""
    if reading == "written" and not (capability.lettered or capability.is_text):
        raise UsageError(
            f"The replies to {capability.name} name no letter that {option('reading', 'written')}"
            " could read; use questions with letters (knowledge, mmlu), or leave it out.",
            option="reading",
            value=reading,
        )
    if supports(model, Ability.REPLY_SCORES) or (reading == "written" and capability.lettered):
        return
    if capability.lettered:
        cure = f"use {option('reading', 'written')}"
    else:
        cure = f"use questions with letters (knowledge, mmlu) and {option('reading', 'written')}"
    raise ModelError(
        f"{model.name} does not report the probability of a given reply; {cure}.",
        option="reading",
        value=reading,
    )
