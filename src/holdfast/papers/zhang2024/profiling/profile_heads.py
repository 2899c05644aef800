"""Profiles heads, recording each sample as soon as its group is scored."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from holdfast.analysis.profile import Profile, read_profile
from holdfast.attention import layers_with_attention
from holdfast.errors import AnotherRun, ModelError, RequestFailed, option
from holdfast.methods import spec_of
from holdfast.methods.heads import Head, with_heads
from holdfast.models.capabilities import require_layers
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.local import LocalModel
from holdfast.models.protocol import ChatModel, facts_about
from holdfast.models.replicas import call_with_session, replicas_of
from holdfast.models.session import LocalSession
from holdfast.papers.zhang2024.profiling.head_scores import (
    SampleScores,
    ScoredSamples,
    can_share_passes,
    scorer_of,
)
from holdfast.papers.zhang2024.profiling.plan import ProfilingPlan, read_material
from holdfast.papers.zhang2024.profiling.profiling_samples import (
    ReplySample,
    Samples,
    check_samples,
)
from holdfast.plurals import join_with_and
from holdfast.records import (
    MANIFEST,
    HeadScores,
    PendingBatch,
    Run,
    open_run,
    read_run,
    refuse_early,
    resume,
    unfinished,
)
from holdfast.records.samples import head_name

# the method of every record, for the sake of records that earlier versions wrote
_STAGE = "stage 1"
# in every identity, as version 0.2 could drop the worse half of the heads, in a seeded order
_UNHALVED = {"halving": False, "seed": 0}


@dataclass(frozen=True)
class Preparation:
    """The work of a profile, which depends on its model."""

    identity: dict[str, Any]  # of the run
    heads: Sequence[Head]  # to steer, each on its own
    groups: Sequence[Sequence[int]]  # the numbers of samples to score together
    shares_passes: bool  # whether heads share what steering one of them cannot change


def profile(
    model: ChatModel,
    samples: Samples,
    out: Path | str,
    plan: ProfilingPlan = ProfilingPlan(),
    *,
    progress: Callable[[int, int], None] = lambda samples, tokens: None,
    command: str = "",
) -> Profile:
    """Steers every head of a model on its own on every sample, and ranks the heads.

    Args:
        model: its layers must be steerable one by one.
        samples: chats with emphasis, and how a reply to them is scored.
        out: the folder of records; finished samples in it are not scored again.
        plan: how heads are steered and scored. As every head is steered on its own, heads that the
            plan's method sets are ignored.
        progress: called with how many samples have been scored since the last call, and how many
            tokens were forwarded for them; first for all samples of an earlier run.
        command: the command line, for the manifest.

    Raises:
        ModelError: the model lacks layers, the method cannot steer it, or a sample could not be
            scored.
        UsageError: the samples do not fit the plan, or a score is not finite.
        AnotherRun: `out` holds another run, or scores that the samples no longer give.
        RecordsError: `out` is in use, or cannot be written.
    """
    require_layers(model, "layers, whose heads are to be steered one by one")
    plan = replace(plan, method=with_heads(plan.method, None))
    model.check([plan.method])
    check_samples(samples, compared=plan.by == "accuracy")
    run_sync(_profile(model, samples, plan, Path(out), progress, command))
    return read_profile(out)


def check_folder(out: Path | str, samples: Samples, plan: ProfilingPlan, command: str = "") -> None:
    """Refuses a folder that holds something else, before a model is loaded.

    Raises:
        AnotherRun: the folder holds another run.
    """
    identity = {"samples": len(samples), **_identity_of_plan(plan)}
    refuse_early(out, identity, {"command": "profile", "argv": command})


async def _profile(
    model: ChatModel,
    samples: Samples,
    plan: ProfilingPlan,
    out: Path,
    progress: Callable[[int, int], None],
    command: str,
) -> None:
    """Scores the heads that the folder lacks, and records them batch by batch."""
    about = {"command": "profile", "argv": command, **facts_about(model)}
    async with model.session() as engine:
        preparation = await call_with_session(engine, _prepare, samples, plan)
        refuse_early(out, preparation.identity, about)
        if (out / MANIFEST).is_file():
            _check_scores(read_run(out), samples)
        with open_run(out, preparation.identity, about) as run:
            unfinished_batches = unfinished(resume(run, _STAGE, preparation.groups), progress)
            slots = asyncio.Semaphore(replicas_of(engine))

            async def score_and_keep(batch: PendingBatch) -> None:
                numbers = batch.to_run
                group_samples = [samples[number] for number in numbers]
                start = time.monotonic()
                try:
                    result = await call_with_session(
                        engine,
                        _score,
                        group_samples,
                        plan,
                        preparation.heads,
                        preparation.shares_passes,
                    )
                except RequestFailed as error:
                    raise ModelError(_failure(numbers, error)) from error
                seconds = round((time.monotonic() - start) / len(numbers), 3)
                for number, sample in zip(numbers, result.samples, strict=True):
                    batch.append(_record(number, sample, seconds))
                progress(len(numbers), result.tokens)
                slots.release()

            async with task_group() as group:
                for batch in unfinished_batches:
                    # acquired here, not in the task: a group that fails keeps its slot, so that no
                    # other starts after it
                    await slots.acquire()
                    group.create_task(score_and_keep(batch))


async def _prepare(session: LocalSession, samples: Samples, plan: ProfilingPlan) -> Preparation:
    """Prepares a profile with the model of a session, in this process or in that of a replica."""
    material = await read_material(_model_of(session), samples, plan)
    model = material.model
    shares_passes = await can_share_passes(material)
    identity = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "layers": model.shape.layers,
        "heads": model.shape.heads,
        "samples": len(samples),
        "samples_fingerprint": material.fingerprint,
        **_identity_of_plan(plan),
    }
    return Preparation(
        identity=identity,
        heads=_steerable_heads(model),
        groups=scorer_of(material, shares_passes=shares_passes).groups(),
        shares_passes=shares_passes,
    )


def _model_of(session: LocalSession) -> LocalModel:
    assert isinstance(session.model, LocalModel)  # others have no layers to steer one by one
    return session.model


def _identity_of_plan(plan: ProfilingPlan) -> dict[str, Any]:
    names = [setting.name for setting in fields(plan) if setting.name != "method"]
    return {
        "method": spec_of([with_heads(plan.method, None)]),
        **{name: getattr(plan, name) for name in names},
        **_UNHALVED,
    }


def _steerable_heads(model: LocalModel) -> list[Head]:
    """The heads that can be steered one by one; hybrid models have layers without any."""
    layers: Sequence[int] = range(model.shape.layers)
    attending = layers_with_attention(model.hf_model)
    if attending is not None:
        layers = [layer for layer in layers if layer in attending]
    if not layers:
        raise ModelError(
            f"The layers of {model.name} share an attention that does not expose its layer, so no"
            " head can be steered alone; steer all of them."
        )
    return [(layer, head) for layer in layers for head in range(model.shape.heads)]


def _check_scores(run: Run, samples: Samples) -> None:
    """Refuses a run whose replies the samples now score differently."""
    for record in run.head_scores:
        number = record.conversation
        sample = samples[number]
        if not isinstance(sample, ReplySample):
            continue
        for text, names in (record.replies or {}).items():
            stored_score = record.scores[names[0]]
            new_score = float(sample.score(text))
            if stored_score != new_score:
                raise AnotherRun(
                    f"{run.folder} holds another run: sample {number + 1}'s reply {text[:60]!r} is"
                    f" scored {stored_score:g} there and {new_score:g} by this command; choose"
                    f" another folder with {option('out')}, or score as before.",
                    option="score",
                    value=new_score,
                    allowed=stored_score,
                )


async def _score(
    session: LocalSession,
    samples: Samples,
    plan: ProfilingPlan,
    heads: Sequence[Head],
    shares_passes: bool,
) -> ScoredSamples:
    """Scores samples together with every head, in this process or in that of a replica."""
    material = await read_material(_model_of(session), samples, plan)
    return await scorer_of(material, shares_passes=shares_passes).score(heads)


def _record(number: int, sample: SampleScores, seconds: float) -> HeadScores:
    """Makes the record of a sample; `seconds` is the mean of the group that it was scored in."""
    heads_by_reply: dict[str, list[str]] = {}
    for head, reply in sample.replies.items():
        heads_by_reply.setdefault(reply, []).append(head_name(head))
    return HeadScores(
        method=_STAGE,
        conversation=number,
        scores={head_name(head): score for head, score in sample.scores.items()},
        replies={reply: tuple(names) for reply, names in heads_by_reply.items()} or None,
        seconds=seconds,
    )


def _failure(numbers: Sequence[int], error: RequestFailed) -> str:
    noun = "Sample" if len(numbers) == 1 else "Samples"
    names = join_with_and([str(number + 1) for number in numbers])
    return f"{noun} {names} could not be scored: {error}"
