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
from typing import Any, NamedTuple

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
from holdfast.drift.concurrent_dialogs import hold_dialog
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_records import conversation_of
from holdfast.drift.method_checks import check_in_dialogs
from holdfast.drift.pairing import Pairing, draw_pairing
from holdfast.drift.probe_outcomes import results_of
from holdfast.drift.resolved_settings import user_prompt_of
from holdfast.drift.settings import Settings
from holdfast.drift.suites import load_suite
from holdfast.errors import cut
from holdfast.generation.sampling import Sampling
from holdfast.integrations.inspect.speakers import Speaker, Speakers
from holdfast.integrations.inspect.task_arguments import (
    prerequisite_errors,
    read_settings,
    rejoin_spec,
)
from holdfast.methods import Method, parse, spec_of
from holdfast.records import Conversation
from holdfast.seeds import seed_of

RECORD = "holdfast_record"  # the key of the conversation in a sample's store
USER = "user"  # the role of a separate model that plays the user
_MAX_REPLY_CHARACTERS = 300  # characters of a reply in the list of probes


class _Benchmark(NamedTuple):
    """The arguments of the task, as the benchmark takes them."""

    suite: Suite
    protocol: Settings
    methods: tuple[Method, ...]  # () keeps the steering of the agent's model


@task
def drift(suite: str = "starter", method: str | None = None, **settings: Any) -> Task:
    """Measures how well a model keeps to its system prompt as a conversation grows.

    Args:
        suite: `starter`, `core`, `li2024:PATH` or FILE.yaml.
        method: how the agent is steered; the user model never is.
        settings: fields of `holdfast.drift.Settings` and `holdfast.Sampling`: rounds,
            conversations, seed, user_prompt, temperature, max_new_tokens and so on.

    Raises:
        PrerequisiteError: an argument is unknown, or a value is not accepted.
    """
    benchmark = _read_benchmark(suite, method, settings)
    protocol = benchmark.protocol
    pairings = [draw_pairing(benchmark.suite, protocol, n) for n in range(protocol.conversations)]
    samples = MemoryDataset([_sample(pairing) for pairing in pairings], benchmark.suite.name)
    metadata = {
        "suite_fingerprint": benchmark.suite.fingerprint,
        "notes": list(benchmark.suite.notes),
    }
    return Task(
        dataset=samples,
        solver=self_chat(suite, method, **settings),
        scorer=stability_and_adoption(protocol.rounds),
        config=_generate_config(protocol.sampling),
        metadata=metadata,
    )


@solver
def self_chat(suite: str = "starter", method: str | None = None, **settings: Any) -> Solver:
    """Has two models talk under different system prompts, with probes in forks of their dialog.

    The arguments are those of `drift`. The model of the role `user` plays the user, if there is
    one; otherwise the same model does, without steering.
    """
    benchmark = _read_benchmark(suite, method, settings)
    protocol = benchmark.protocol
    methods = benchmark.methods

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        start = time.monotonic()
        dialog = Dialog(draw_pairing(benchmark.suite, protocol, int(state.sample_id)))
        speakers = _speakers(protocol.sampling)
        check_in_dialogs(speakers.agent.check, methods, benchmark.suite.cases, protocol)
        await hold_dialog(speakers, dialog, methods, _settings_of_epoch(protocol, state.epoch))
        seconds = time.monotonic() - start
        record = conversation_of(dialog, spec_of(methods), results_of(dialog.probes), seconds)
        state.store.set(RECORD, record.to_json())
        state.messages = messages_of(record, str(speakers.agent.model))
        state.output = ModelOutput.from_message(state.messages[-1])
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def stability_and_adoption(rounds: int = 8) -> Scorer:
    """Scores stability (following the own prompt) and adoption (the user's), also by round."""

    async def score(state: TaskState, target: Target) -> Score:
        return score_of(Conversation.model_validate(state.store.get(RECORD)), rounds)

    return score


def _read_benchmark(suite: str, method: str | None, settings: dict[str, Any]) -> _Benchmark:
    """Reads and checks the arguments of the task."""
    with prerequisite_errors():
        loaded = load_suite(rejoin_spec(suite))
        protocol = read_settings(settings)
        protocol = replace(protocol, user_prompt=user_prompt_of(loaded, protocol))
        methods = () if method is None else parse(rejoin_spec(method))
        return _Benchmark(loaded, protocol, methods)


def _sample(pairing: Pairing) -> Sample:
    """Describes a conversation to Inspect."""
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


def _settings_of_epoch(settings: Settings, epoch: int) -> Settings:
    """Returns the protocol of an epoch; the first one has the draws of `holdfast drift`."""
    if epoch == 1:
        return settings
    return replace(settings, seed=seed_of("epoch", settings.seed, epoch))


def _speakers(sampling: Sampling) -> Speakers:
    """Returns the models that play the agent and the user."""
    agent = Speaker(get_model())
    if USER not in model_roles():
        return Speakers(agent, Speaker(agent.model, steering="none"))
    model = get_model(role=USER)
    # the task's own configuration does not apply to roles
    return Speakers(agent, Speaker(model, _generate_config(sampling).merge(model.config)))


def _generate_config(sampling: Sampling) -> GenerateConfig:
    """Returns the sampling of the protocol as Inspect's configuration."""
    return GenerateConfig(
        temperature=sampling.temperature, top_p=sampling.top_p, max_tokens=sampling.max_new_tokens
    )


def messages_of(record: Conversation, model: str = "") -> list[ChatMessage]:
    """Returns the dialog of a record as the agent saw it; the agent's turns have their mass."""
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
    """Computes stability and adoption of a conversation, by round and over all rounds.

    The values are named `stability`, `stability_round_1` and so on, and are NaN if nothing was
    asked. The explanation lists every probe with its reply, the measure's reason and the mass.
    """
    values: dict[str, float] = {}
    for kind in ("stability", "adoption"):
        probes = [probe for probe in record.probes if probe.kind == kind]
        by_round = {
            number: _mean([probe.score for probe in probes if probe.round == number])
            for number in range(1, rounds + 1)
        }
        values[kind] = _mean([value for value in by_round.values() if not math.isnan(value)])
        values |= {f"{kind}_round_{number}": value for number, value in by_round.items()}
    metadata = record.model_dump(include={"probes", "unscored", "ended", "unanswered"})
    return Score(value=values, explanation=_list_probes(record), metadata=metadata)


def _mean(values: Sequence[float]) -> float:
    """Returns the mean; NaN of no values."""
    return fmean(values) if values else math.nan


def _list_probes(record: Conversation) -> str:
    """Lists the probes of a conversation in Markdown."""
    entries = []
    for probe in record.probes:
        mass = "" if probe.mass is None else f", mass {probe.mass:.3f}"
        entries.append(
            f"- **Round {probe.round}, {probe.kind} {probe.score:.2f}**"
            f" ({_one_line(probe.reason)}{mass})\n"
            f"    - {_one_line(probe.question)}\n"
            f"    - {_one_line(probe.reply)}"
        )
    return "\n".join(entries)


def _one_line(text: str) -> str:
    """Cuts a text and puts it on one line."""
    return " ".join(cut(text, _MAX_REPLY_CHARACTERS).split())
