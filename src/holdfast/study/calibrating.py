"""Stability and capability under each method at each strength (Li et al. 2024, section 6.3).

Stability is the drift benchmark over all ordered pairs of a few prompts, over pairs drawn anew for
every conversation, or over one prompt and the suite's personas. Capability is tested in the same
dialogs: after the rounds before `ask_at`, under the same methods. The records are in two run
folders, `stability` and `capability`; both can be resumed.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast import drift, records
from holdfast import methods as steering
from holdfast.drift.prompt_rules import check_in_dialogs, check_with_rules
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import resolve_settings
from holdfast.drift.run_identity import COMPATIBILITY as OF_DRIFT
from holdfast.drift.run_identity import identity_of_user_source
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability, Method
from holdfast.models.capabilities import supports
from holdfast.models.event_loop import run_sync
from holdfast.models.failures import FailedRequest, OutageWatch
from holdfast.models.protocol import ChatModel, facts_about
from holdfast.models.served import same_served
from holdfast.records.folder import refuse_other_command
from holdfast.records.identity import SweepIdentity
from holdfast.study.calibration_plan import Plan, choose_prompts, conversations, settings_for
from holdfast.study.capability import Capability
from holdfast.study.questions import Questioner


def _wider(recorded: Sequence[Any], given: Sequence[Any]) -> list[Any] | None:
    """This command's sweeps if they include every setting of those in the folder, else None."""

    def methods_of(sweeps: Sequence[Any]) -> list[str]:
        read = map(SweepIdentity.model_validate, sweeps)
        return [method for sweep in read for method in sweep.methods]

    wider = records.superset(methods_of(recorded), methods_of(given))
    return None if wider is None else list(given)


COMPATIBILITY = records.Compatibility(
    defaults={"plan": Plan().identity, **OF_DRIFT.defaults},
    joins={"model_fingerprint": same_served, "methods": records.superset, "sweeps": _wider},
    reasons={
        "settings.conversations": "the questions are divided among the conversations",
        "plan.draws": "the questions are divided among the conversations",
    },
)


# conversations may be added before their questions are asked, as after `--dry-run`
_STABILITY = dataclasses.replace(
    COMPATIBILITY,
    joins={
        **COMPATIBILITY.joins,
        "settings.conversations": lambda recorded, given: given if given >= recorded else None,
    },
)


def calibrate(
    model: ChatModel,
    suite: drift.Suite | str,
    capability: Capability,
    out: Path | str,
    plan: Plan = Plan(),
    running: drift.Running = drift.Running(),
) -> tuple[records.Run, records.Run]:
    """Measures stability and capability without any method and at every point of the sweeps;
    resumes what `out` holds.

    Args:
        model: plays both sides; the reading "likeliest" needs its log-probabilities of replies.
        capability: asked in the dialogs; its items are divided among the conversations.
        out: a folder; its subfolders `stability` and `capability` are runs.

    Raises:
        UsageError: methods given twice, fewer than four conversations.
        ModelError: methods that the model cannot apply, or too many failed questions in a row; a
            single failed question is noted, and asked again by the next command.
        AnotherRun: as `check_before_loading`.
    """
    if not isinstance(suite, drift.Suite):
        suite = choose_prompts(drift.load_suite(suite), plan=plan)
    settings, count = plan.settings, conversations(suite, plan)
    protocol = settings_for(suite, plan)
    for setting in settings:
        check_in_dialogs(model, setting, suite.cases, protocol)
        _check_reading(model, setting, capability, plan.reading)
    asked_for = check_before_loading(out, suite, capability, plan)
    cast, folder = drift.Cast(user_turns=plan.user_turns), Path(out) / "stability"
    stability = drift.run(model, suite, folder, protocol, settings, cast=cast, running=running)
    methods = {steering.spec_of(setting): setting for setting in settings}
    identity = {**stability.manifest.identity.to_json(), "methods": list(methods), **asked_for}
    about = {"command": "calibrate", "argv": running.command, **facts_about(model)}
    with records.open_run(Path(out) / "capability", identity, about, COMPATIBILITY) as run:

        def note(failed: FailedRequest) -> None:
            name, question = failed.name
            run.note_failure(name, question % count, failed.why, failed.reason)

        watch = OutageWatch(note, "question")
        cases = {case.id: case for case in suite.cases}
        questioners = {
            name: Questioner(model, setting, cases, capability, plan, count, watch)
            for name, setting in methods.items()
        }
        dialogs = {(row.method, row.conversation): row for row in stability.conversations}
        groups = records.batches(range(min(count, len(capability.items))), plan.batch)
        left: list[records.PendingBatch] = []
        for name in methods:
            for batch in records.resume(run, name, groups, alone=model.independent):
                if batch.to_run:
                    left.append(batch)
                else:
                    running.progress(questioners[name].count_in(batch.numbers), 0)

        async def ask_all() -> None:
            for batch in left:
                questioner = questioners[batch.name]
                rows = await questioner.ask([dialogs[batch.name, n] for n in batch.to_run])
                for row in rows:
                    batch.append(row)
                tokens = sum(row.tokens.forwarded for row in rows)
                running.progress(questioner.count_in(batch.numbers), tokens)
            async with model.session() as engine:
                await watch.finish(engine)

        if left:
            run_sync(ask_all())
    return stability, records.read_run(Path(out) / "capability")


def check_before_loading(
    out: Path | str, suite: drift.Suite, capability: Capability, plan: Plan
) -> dict[str, Any]:
    """Refuses what can be refused before a model is loaded; returns the calibration's identity.

    Raises:
        UsageError: a method cannot work with these prompts or in this protocol.
        AnotherRun: the folder holds anything but this calibration.
    """
    for setting in plan.settings:
        check_with_rules(setting, suite.cases, settings_for(suite, plan))
    refuse_other_command(out, "calibrate")
    asked_for = {
        "prompts": [case.id for case in suite.cases],
        "capability": capability.name,
        "capability_fingerprint": capability.fingerprint,
        "is_text": capability.is_text,
        "sweeps": [
            SweepIdentity(
                name=sweep.name,
                knob=sweep.parameter,
                values=tuple(sweep.values),
                methods=tuple(map(steering.spec_of, sweep.settings)),
            ).to_json()
            for sweep in plan.parsed
        ],
        "plan": plan.identity,
    }
    chats = resolve_settings(suite, settings_for(suite, plan), plan.user_turns)
    known = {"settings": {"conversations": chats.conversations}}
    known |= identity_of_user_source(plan.user_turns)
    records.refuse_another(Path(out) / "stability", known, _STABILITY)
    records.refuse_another(Path(out) / "capability", asked_for, COMPATIBILITY)
    return asked_for


def units_of(suite: drift.Suite, capability: Capability, plan: Plan) -> int:
    """Progress units of `calibrate`: replies and questions."""
    settings = resolve_settings(suite, settings_for(suite, plan), plan.user_turns)
    numbers = range(settings.conversations)
    replies = count_replies(suite, settings, plan.user_turns, numbers)
    return len(plan.settings) * (replies + len(capability.items))


def _check_reading(
    model: ChatModel, setting: Sequence[Method], capability: Capability, reading: str
) -> None:
    if reading == "written" and not (capability.lettered or capability.is_text):
        raise UsageError(
            f"The replies to {capability.name} name no letter that --reading=written could read;"
            " use questions with letters (knowledge, mmlu), or leave --reading out.",
            option="reading",
            value=reading,
        )
    if supports(model, Ability.REPLY_SCORES) or (reading == "written" and capability.lettered):
        return
    cure = (
        "use --reading=written"
        if capability.lettered
        else "use questions with letters (knowledge, mmlu) and --reading=written"
    )
    raise ModelError(
        f"{model.name} does not report the probability of a given reply; {cure}.",
        option="reading",
        value=reading,
    )
