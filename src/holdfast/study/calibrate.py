"""Stability and capability under each method at each strength (Li et al. 2024, section 6.3).

Stability is the drift benchmark over all ordered pairs of a few prompts, over pairs drawn anew for
every conversation, or over one prompt and the suite's personas. Capability is asked in the very
dialogs of that run: behind the rounds before `ask_at`, under the same methods. Two run folders hold
the records, `stability` and `capability`; both resume.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast import drift
from holdfast import methods as steering
from holdfast.analysis.summary import refuse_other_command
from holdfast.drift.benchmark import identity_of_given
from holdfast.drift.dialogs import UserTurns
from holdfast.drift.pairing import settled
from holdfast.drift.settings import Progress
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability, Method, Sweep, gate_of, parse_sweep
from holdfast.models.capabilities import offers
from holdfast.models.failures import Unanswered
from holdfast.models.protocol import ChatModel, told_of
from holdfast.models.replicas import BatchUnit, replicas_of, work_on
from holdfast.models.served import same_served
from holdfast.records import (
    Compatibility,
    Run,
    RunData,
    batches,
    open_run,
    read_run,
    refuse_another,
    resume,
    superset,
)
from holdfast.study.calibration_plan import Plan, choose_prompts, conversations, settings_for
from holdfast.study.capability import Capability
from holdfast.study.questions import Questioning

__all__ = [
    "COMPATIBILITY",
    "DEFAULT_SWEEPS",
    "Plan",
    "calibrate",
    "check_folder",
    "choose_prompts",
    "conversations",
    "read_sweeps",
    "settings_for",
    "units_of",
]

DEFAULT_SWEEPS = (
    "split-softmax:exponent=0.9,0.7,0.5,0.3",
    "repetition:probability=0.25,0.5,1",
    "guidance:scale=1.25,1.5,2",
    "boost:factor=2,4,8",
    "spotlight:target=0.1,0.2,0.4",
)


def _wider(there: Sequence[Any], here: Sequence[Any]) -> list[Any] | None:
    """The sweeps of this command, where they have every setting of those in the folder."""
    swept = ([name for sweep in sweeps for name in sweep["methods"]] for sweeps in (there, here))
    return None if superset(*swept) is None else list(here)


COMPATIBILITY = Compatibility(
    defaults={"plan": dataclasses.asdict(Plan()), "settings": dataclasses.asdict(drift.Settings())},
    joins={"model_fingerprint": same_served, "methods": superset, "sweeps": _wider},
    reasons={
        "settings.conversations": "the questions are shared out among the conversations",
        "plan.draws": "the questions are shared out among the conversations",
    },
)


def calibrate(
    model: ChatModel,
    suite: drift.Suite,
    capability: Capability,
    out: Path | str,
    sweeps: Sequence[str] = DEFAULT_SWEEPS,
    plan: Plan = Plan(),
    *,
    command: str = "",
    progress: Progress = lambda conversations, tokens: None,
    user_turns: UserTurns | None = None,
) -> tuple[RunData, RunData]:
    """Measures stability and capability without any method and at every point of the sweeps;
    resumes what `out` holds.

    Args:
        model: plays both sides; read as "likeliest", it must tell log-probabilities of
            given replies.
        suite: cases, as `choose_prompts` gives them, or a suite's name. Every ordered pair talks,
            or as many as the plan draws; a single case talks to every persona, or to a user model
            without a prompt.
        capability: asked in the dialogs, whose conversations share its items out among them.
        out: a folder; its folders `stability` and `capability` are runs.
        sweeps: one or several, as `methods.parse_sweep` reads them.
        plan: the sizes.
        command: the command line, for the manifests.
        progress: as `drift.run` tells it; capability counts as one round.
        user_turns: scripted user messages, in place of a user model.

    Returns:
        The runs of stability and of capability.

    Raises:
        UsageError: methods given twice, fewer than four conversations.
        ModelError: methods that the model cannot apply, a reading that it cannot give, or requests
            of several questions failed in a row. A question that fails by itself is noted, and the
            next command asks those of its conversation again.
        AnotherRun: as `check_folder`.
    """
    if not isinstance(suite, drift.Suite):
        suite = choose_prompts(drift.load_suite(suite), plan=plan)
    parsed = read_sweeps(sweeps)
    settings = [(), *(setting for sweep in parsed for setting in sweep.settings)]
    count = conversations(suite, plan)
    for setting in settings:
        model.check(setting)
        _check_reading(model, setting, capability, plan.reading)
    chats = settings_for(suite, plan)
    asked_for = check_folder(out, suite, capability, parsed, plan, user_turns)
    stability = drift.run(
        model,
        suite,
        Path(out) / "stability",
        chats,
        settings,
        cast=drift.Cast(user_turns=user_turns),
        running=drift.Running(progress=progress, command=command),
    )
    methods = {steering.spell(setting): setting for setting in settings}
    identity = {**stability.manifest["identity"], "methods": list(methods), **asked_for}
    about = {"command": "calibrate", "argv": command, **told_of(model)}
    with open_run(Path(out) / "capability", identity, about, COMPATIBILITY) as run:
        groups = batches(range(min(count, len(capability.items))), plan.batch)
        dialogs = {(row["method"], row["conversation"]): row for row in stability.records}
        units = []
        for name, setting in methods.items():
            for batch in resume(run, name, groups, alone=model.independent):
                some = [dialogs[name, number] for number in batch.again]
                if batch.again:
                    units.append(BatchUnit(batch, (setting, some)))
                else:
                    progress(len(batch.numbers), 0)
        work_on(
            replicas_of(model),
            Questioning(capability, plan, count),
            units,
            functools.partial(_note, run, count),
            progress,
        )
    return stability, read_run(Path(out) / "capability")


def read_sweeps(sweeps: str | Sequence[str]) -> list[Sweep]:
    """The sweeps, as they are spelled.

    Raises:
        UsageError: one that cannot be read, or a setting that is given twice.
    """
    parsed = [parse_sweep(sweep) for sweep in ([sweeps] if isinstance(sweeps, str) else sweeps)]
    names = [steering.spell(setting) for sweep in parsed for setting in sweep.settings]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"The setting {doubled!r} is given twice; give it once.")
    return parsed


def check_folder(
    out: Path | str,
    suite: drift.Suite,
    capability: Capability,
    sweeps: Sequence[Sweep],
    plan: Plan,
    user_turns: UserTurns | None = None,
) -> dict[str, Any]:
    """Refuses a folder that holds anything but this calibration, or its beginning with fewer
    settings; writes nothing. Returns what tells this calibration from others.

    Raises:
        AnotherRun: names what the folder holds.
    """
    refuse_other_command(out, "calibrate")
    asked_for = _identity(suite, capability, sweeps, plan)
    chats = settled(suite, settings_for(suite, plan), user_turns)
    known = {"settings": {"conversations": chats.conversations}, **identity_of_given(user_turns)}
    refuse_another(Path(out) / "stability", known, COMPATIBILITY)
    refuse_another(Path(out) / "capability", asked_for, COMPATIBILITY)
    return asked_for


def _note(run: Run, count: int, unanswered: Unanswered) -> None:
    """The conversation of a question that was not answered stays missing."""
    method, number = unanswered.name
    run.note_failure(method, number % count, unanswered.why, unanswered.reason)


def units_of(suite: drift.Suite, capability: Capability, sweeps: Sequence[str], plan: Plan) -> int:
    """The units of progress of `calibrate`: rounds of all conversations, and one for the questions
    of each.

    Raises:
        UsageError: as `conversations`, or a sweep that cannot be read.
    """
    settings = 1 + sum(len(parse_sweep(sweep).settings) for sweep in sweeps)
    chats = conversations(suite, plan)
    return settings * (chats * plan.rounds + min(chats, len(capability.items)))


def _check_reading(
    model: ChatModel, setting: Sequence[Method], capability: Capability, reading: str
) -> None:
    if capability.is_text and gate_of(setting):
        raise ModelError(
            f"Under {steering.spell(setting)} a text has no probability, as tokens are drawn again;"
            " use a capability with questions, such as knowledge."
        )
    if offers(model, Ability.REPLY_SCORES) or (reading == "written" and capability.lettered):
        return
    cure = (
        "use --reading=written"
        if capability.lettered
        else "use questions with letters (knowledge, mmlu) and --reading=written"
    )
    raise ModelError(f"{model.name} does not tell the probability of a given reply; {cure}.")


def _identity(
    suite: drift.Suite, capability: Capability, sweeps: Sequence[Sweep], plan: Plan
) -> dict[str, Any]:
    return {
        "prompts": [case.id for case in suite.cases],
        "capability": capability.name,
        "capability_fingerprint": capability.fingerprint,
        "is_text": capability.is_text,
        "sweeps": [
            {
                "name": sweep.name,
                "knob": sweep.parameter,
                "values": list(sweep.values),
                "methods": [steering.spell(setting) for setting in sweep.settings],
            }
            for sweep in sweeps
        ],
        "plan": dataclasses.asdict(plan),
    }
