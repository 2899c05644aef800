"""Profiles heads, recording each sample as soon as its group is scored."""

import dataclasses
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, cast

from holdfast import drift
from holdfast.analysis.profile import Profile, read_profile
from holdfast.attention import layers_with_attention
from holdfast.errors import AnotherRun, ModelError, RequestFailed
from holdfast.methods import spell
from holdfast.methods.heads import Head, with_heads
from holdfast.models.capabilities import require_layers
from holdfast.models.local import LocalModel
from holdfast.models.protocol import ChatModel, facts_about
from holdfast.models.replicas import Listener, Units, replicas_of
from holdfast.papers.zhang2024.profiling.samples import (
    ProfilingPlan,
    Question,
    Samples,
    check_samples,
    read_material,
)
from holdfast.papers.zhang2024.profiling.scoring import Scorer, scorer_of
from holdfast.records import HeadScores, Run, open_run, read_run, refuse_early, resume

_NAME = "stage 1"  # of the batches in records
# in every identity, as version 0.2 could drop the worse half of the heads, in a seeded order
_UNHALVED = {"halving": False, "seed": 0}


@dataclass
class Scoring:
    """Scores samples, by number, under heads; caches its scorer, but does not pickle it."""

    samples: Samples
    plan: ProfilingPlan
    together: ClassVar[int] = 1
    _scorer: Scorer | None = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_scorer": None}

    def scorer(self, model: LocalModel) -> Scorer:
        """The fastest scorer that gives this model's own scores."""
        if self._scorer is None or self._scorer.material.model is not model:
            self._scorer = scorer_of(read_material(model, self.samples, self.plan))
        return self._scorer

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        scorer = self.scorer(cast("LocalModel", model))
        for unit, (numbers, heads) in units:
            began = time.monotonic()
            scored, tokens = scorer.score(numbers, heads)
            seconds = round((time.monotonic() - began) / len(numbers), 3)
            for number, sample in zip(numbers, scored, strict=True):
                record = HeadScores(
                    method=_NAME,
                    conversation=number,
                    scores=sample.scores,
                    replies=sample.heads_by_reply(),
                    seconds=seconds,
                )
                listener.outcome(unit, record)
            listener.progress(len(numbers), tokens)
            listener.over(unit)


def profile(
    model: LocalModel,
    samples: Samples,
    out: Path | str,
    plan: ProfilingPlan = ProfilingPlan(),
    running: drift.Running = drift.Running(),
) -> Profile:
    """Steers every head of a model on its own on every sample, and ranks the heads.

    Finished samples in the folder `out` are not scored again. Errors name the sample, what the
    model lacks, or the other run in `out`.
    """
    require_layers(model, "layers, whose heads are to be steered one by one")
    plan = replace(plan, method=with_heads(plan.method, None))
    model.check([plan.method])
    check_samples(samples, compared=plan.by == "accuracy")
    replicas, scoring = replicas_of(model), Scoring(samples, plan)
    identity, heads, groups = replicas.ask(_prepare, scoring)
    about = {"command": "profile", "argv": running.command, **facts_about(model)}
    with open_run(Path(out), identity, about) as run:
        _check_scores(read_run(out), samples)
        left = [batch for batch in resume(run, _NAME, groups) if batch.again]
        running.progress(len(samples) - sum(len(batch.again) for batch in left), 0)

        def lost(unit: int, error: RequestFailed) -> None:
            some = ", ".join(str(number + 1) for number in left[unit].again)
            raise ModelError(f"Sample {some} could not be scored: {error}")

        def keep(unit: int, record: HeadScores) -> None:
            left[unit].keep(record)

        if left:
            units = {unit: (batch.again, heads) for unit, batch in enumerate(left)}
            replicas.work(scoring, units, Listener(keep, progress=running.progress, lost=lost))
    return read_profile(out)


def check_folder(out: Path | str, samples: Samples, plan: ProfilingPlan, command: str = "") -> None:
    """Refuses a folder that holds another run, or something else, before a model is loaded."""
    known = {"samples": len(samples), **_identity_of_plan(plan)}
    refuse_early(out, known, {"command": "profile", "argv": command})


def _prepare(
    model: LocalModel, scoring: Scoring
) -> tuple[dict[str, Any], list[Head], list[list[int]]]:
    scorer, samples = scoring.scorer(model), scoring.samples
    identity = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "layers": model.shape.layers,
        "heads": model.shape.heads,
        "samples": len(samples),
        "samples_fingerprint": scorer.material.fingerprint,
        **_identity_of_plan(scoring.plan),
    }
    return identity, _steerable_heads(model), scorer.groups(range(len(samples)))


def _steerable_heads(model: LocalModel) -> list[Head]:
    """The heads that can be steered one by one; hybrid models have layers without any."""
    known = layers_with_attention(model.hf_model)
    layers = [layer for layer in range(model.shape.layers) if known is None or layer in known]
    if not layers:
        raise ModelError(
            f"The layers of {model.name} share an attention that does not expose its layer, so no"
            " head can be steered alone; steer all."
        )
    return [(layer, head) for layer in layers for head in range(model.shape.heads)]


def _check_scores(run: Run, samples: Samples) -> None:
    """Refuses to continue with replies that the samples now score differently."""
    for record in run.head_scores:
        number = record.conversation
        question = samples[number]
        if not isinstance(question, Question):
            continue
        for text, names in (record.replies or {}).items():
            there, here = record.scores[names[0]], float(question.score(text))
            if there != here:
                raise AnotherRun(
                    f"{run.folder} holds another run: sample {number + 1}'s reply {text[:60]!r} is"
                    f" scored {there:g} there and {here:g} by this command; choose another folder"
                    " with --out, or score as before."
                )


def _identity_of_plan(plan: ProfilingPlan) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(plan) if field.name != "method"]
    return {
        "method": spell([with_heads(plan.method, None)]),
        **{name: getattr(plan, name) for name in names},
        **_UNHALVED,
    }
