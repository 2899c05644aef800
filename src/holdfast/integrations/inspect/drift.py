"""`holdfast/drift`: the benchmark of Li et al. (2024) on any model of Inspect.

A sample is one conversation: the solver runs the self-chat and asks the probes in forks of it, and
the scorer computes stability and adoption in every round. Prompts, pairs and seeds are those of
`holdfast drift`, so the same model gives the same numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
    get_model,
    model_roles,
)
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from holdfast.drift.cases import Suite
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_records import conversation_of
from holdfast.drift.pairing import Pairing, draw_pairing
from holdfast.drift.probe_outcomes import results_of
from holdfast.drift.prompt_rules import check_in_dialogs
from holdfast.drift.resolved_settings import user_prompt_of
from holdfast.drift.selfchat import converse_once
from holdfast.drift.settings import Settings
from holdfast.drift.suites import load_suite
from holdfast.errors import cut
from holdfast.generation.sampling import Sampling
from holdfast.integrations.inspect.speakers import Speaker, Speakers
from holdfast.integrations.inspect.task_arguments import (
    as_text,
    in_one_sentence,
    read_settings,
)
from holdfast.methods import Method, parse, spec_of
from holdfast.records import Conversation
from holdfast.seeds import seed_of

RECORD = "holdfast_record"  # the key of the conversation in a sample's store
USER = "user"  # the role of a separate model that plays the user
_MAX_REPLY_CHARACTERS = 300  # characters of a reply in the list of probes


@task
def drift(suite: str = "starter", method: str | None = None, **settings: Any) -> Task:
    """Measures how well a model keeps to its system prompt as a conversation grows.

    Args:
        suite: `starter`, `core`, `li2024:PATH` or FILE.yaml.
        method: steering of the agent; the user model is never steered.
        settings: fields of `holdfast.drift.Settings` and `holdfast.Sampling`: rounds,
            conversations, seed, user_prompt, temperature, max_new_tokens and so on.

    Raises:
        PrerequisiteError: an argument is unknown, or a value is not accepted.
    """
    loaded, protocol, _ = _read(suite, method, settings)
    pairings = [draw_pairing(loaded, protocol, n) for n in range(protocol.conversations)]
    return Task(
        dataset=MemoryDataset([_sample(pairing) for pairing in pairings], loaded.name),
        solver=self_chat(suite, method, **settings),
        scorer=stability_and_adoption(protocol.rounds),
        config=_sampled(protocol.sampling),
        metadata={"suite_fingerprint": loaded.fingerprint, "notes": list(loaded.notes)},
    )


@solver
def self_chat(suite: str = "starter", method: str | None = None, **settings: Any) -> Solver:
    """Two models talk under different system prompts, and probes fork their dialog at every round;
    arguments are those of `drift`.

    The user is played by the model of the role `user` if there is one, else by the same model,
    unsteered.
    """
    loaded, protocol, methods = _read(suite, method, settings)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        began = time.monotonic()
        dialog = Dialog(draw_pairing(loaded, protocol, int(state.sample_id)))
        agent, user = _speakers(protocol.sampling)
        check_in_dialogs(agent, methods, loaded.cases, protocol)
        await converse_once(
            Speakers(agent, user), dialog, methods, _of_epoch(protocol, state.epoch)
        )
        seconds = time.monotonic() - began
        record = conversation_of(dialog, spec_of(methods), results_of(dialog.probes), seconds)
        state.store.set(RECORD, record.to_json())
        state.messages = messages_of(record, str(agent.model))
        state.output = ModelOutput.from_message(state.messages[-1])
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def stability_and_adoption(rounds: int = 8) -> Scorer:
    """Stability (the agent follows its own prompt) and adoption (the user's), by round too."""

    async def score(state: TaskState, target: Target) -> Score:
        return score_of(Conversation.model_validate(state.store.get(RECORD)), rounds)

    return score


def _read(
    suite: str, method: str | None, settings: dict[str, Any]
) -> tuple[Suite, Settings, tuple[Method, ...]]:
    """Checks a task's arguments; without a method, () keeps the steering of the agent's model."""
    with in_one_sentence():
        loaded = load_suite(as_text(suite))
        protocol = read_settings(settings)
        protocol = replace(protocol, user_prompt=user_prompt_of(loaded, protocol))
        return loaded, protocol, () if method is None else parse(as_text(method))


def _sample(pairing: Pairing) -> Sample:
    user = pairing.user
    return Sample(
        input=pairing.starter,
        id=pairing.number,
        metadata={
            "agent": pairing.agent.id,
            "category": pairing.agent.category,
            "system_prompt": pairing.agent.system_prompt,
            "user": None if user is None else user.id,
            "user_system_prompt": None if user is None else user.system_prompt,
        },
    )


def _of_epoch(settings: Settings, epoch: int) -> Settings:
    """The protocol of an epoch; the draws of the first are those of `holdfast drift`."""
    if epoch == 1:
        return settings
    return replace(settings, seed=seed_of("epoch", settings.seed, epoch))


def _speakers(sampling: Sampling) -> tuple[Speaker, Speaker]:
    agent = Speaker(get_model())
    if USER not in model_roles():
        return agent, Speaker(agent.model, steering="none")
    model = get_model(role=USER)
    # the task's own configuration does not apply to roles
    return agent, Speaker(model, _sampled(sampling).merge(model.config))


def _sampled(sampling: Sampling) -> GenerateConfig:
    return GenerateConfig(
        temperature=sampling.temperature, top_p=sampling.top_p, max_tokens=sampling.max_new_tokens
    )


def messages_of(record: Conversation, model: str = "") -> list[ChatMessage]:
    """The dialog of a record as the agent saw it, with the mass of each of the agent's turns."""
    prompt = record.agent.system_prompt
    messages: list[ChatMessage] = [ChatMessageSystem(content=prompt)] if prompt else []
    for turn in record.turns:
        if turn.speaker == "user":
            messages.append(ChatMessageUser(content=turn.text, metadata={"round": turn.round}))
        else:
            details = {"round": turn.round, "stop_reason": turn.stop_reason, "mass": turn.mass}
            messages.append(
                ChatMessageAssistant(content=turn.text, model=model or None, metadata=details)
            )
    return messages


def score_of(record: Conversation, rounds: int) -> Score:
    """Stability and adoption of a conversation, in every round of the run and over all of them.

    The values are named `stability`, `stability_round_1` and so on, NaN if nothing was asked;
    the explanation lists every probe with its reply, the measure's reason and the mass.
    """
    values: dict[str, float] = {}
    for kind in ("stability", "adoption"):
        of_kind = [probe for probe in record.probes if probe.kind == kind]
        by_round = {
            number: _mean([probe.score for probe in of_kind if probe.round == number])
            for number in range(1, rounds + 1)
        }
        values[kind] = _mean([value for value in by_round.values() if not math.isnan(value)])
        values |= {f"{kind}_round_{number}": value for number, value in by_round.items()}
    metadata = record.model_dump(include={"probes", "unscored", "ended", "unanswered"})
    return Score(value=values, explanation=_listed(record), metadata=metadata)


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else math.nan


def _listed(record: Conversation) -> str:
    entries = []
    for probe in record.probes:
        mass = "" if probe.mass is None else f", mass {probe.mass:.3f}"
        entries.append(
            f"- **Round {probe.round}, {probe.kind} {probe.score:.2f}**"
            f" ({_line(probe.reason)}{mass})\n"
            f"    - {_line(probe.question)}\n"
            f"    - {_line(probe.reply)}"
        )
    return "\n".join(entries)


def _line(text: str) -> str:
    return " ".join(cut(text, _MAX_REPLY_CHARACTERS).split())
