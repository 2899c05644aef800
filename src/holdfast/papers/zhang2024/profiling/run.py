"""Profiles heads in stages, recording each sample as soon as its group is scored."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, cast

from holdfast.analysis.profile import Profile, profile_of, read_profile
from holdfast.attention import layers_with_attention
from holdfast.errors import AnotherRun, ModelError, RequestFailed
from holdfast.methods import Ability, spell
from holdfast.methods.heads import Head, with_heads
from holdfast.models.capabilities import offers
from holdfast.models.local import LocalModel
from holdfast.models.protocol import ChatModel, told_of
from holdfast.models.replicas import Listener, Replicas, Units, replicas_of
from holdfast.papers.zhang2024.profiling.plan import (
    Material,
    ProfilingPlan,
    read_material,
    stages_of,
)
from holdfast.papers.zhang2024.profiling.samples import Question, Samples, check_samples
from holdfast.papers.zhang2024.profiling.scoring import (
    PlainPasses,
    Replies,
    Scorer,
    SharedPasses,
    find_passes,
)
from holdfast.records import Run, RunData, open_run, read_run, refuse_early, resume


class Scoring:
    """Work whose units are numbers of samples, and the heads that they are scored under.

    What a model makes of the samples is kept as long as it is the same model, and does not travel.

    Args:
        samples, plan: as of `profile`.
    """

    together: ClassVar[int] = 1

    def __init__(self, samples: Samples, plan: ProfilingPlan):
        self.samples, self.plan = samples, plan
        self._model: LocalModel | None = None
        self._material: Material | None = None
        self._scorer: Scorer | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Scoring, (self.samples, self.plan)

    def material(self, model: LocalModel) -> Material:
        """The samples as a model reads them.

        Raises:
            UsageError: a sample has nothing to steer to.
        """
        if self._material is None or self._model is not model:
            self._model, self._scorer = model, None
            self._material = read_material(model, self.samples, self.plan)
        return self._material

    def scorer(self, model: LocalModel) -> Scorer:
        """The fastest way that gives this model's own scores."""
        material = self.material(model)
        if self._scorer is None:
            self._scorer = scorer_of(material)
        return self._scorer

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        scorer = self.scorer(cast("LocalModel", model))
        for unit, (numbers, heads) in units:
            began = time.monotonic()
            scored, tokens = scorer.score(numbers, heads)
            seconds = round((time.monotonic() - began) / len(numbers), 3)
            for number, sample in zip(numbers, scored, strict=True):
                record = {"conversation": number, **sample.record(), "seconds": seconds}
                listener.outcome(unit, record)
            listener.progress(len(numbers), tokens)
            listener.over(unit)


def scorer_of(material: Material) -> Scorer:
    """The fastest way that gives this model's own scores."""
    if isinstance(material.samples[0], Question):
        return Replies(material)
    passes = find_passes(material)
    return PlainPasses(material) if passes is None else SharedPasses(material, passes)


def profile(
    model: LocalModel,
    samples: Samples,
    out: Path | str,
    plan: ProfilingPlan = ProfilingPlan(),
    *,
    command: str = "",
    progress: Callable[[int, int], None] = lambda samples, tokens: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Profile:
    """Steers every head of a model alone on every sample, and ranks the heads.

    Args:
        model: a model in this process.
        samples: of one task, all of one kind.
        out: the run's folder; finished samples are kept there, and not scored again.
        plan: how.
        command: of the manifest.
        progress: told the samples and tokens just finished.
        tell: takes one line at a time: an estimate before the start, and what halving gave up.

    Raises:
        UsageError: no samples, or some that are not as described (named by their number).
        ModelError: a model that does not show its layers, or whose attention cannot be steered.
        RecordsError: `out` holds another run, or replies that the samples score otherwise.
    """
    plan = _checked(model, samples, plan)
    stages = stages_of(len(samples), plan)
    shared_out, scoring = replicas_of(model), Scoring(samples, plan)
    identity, heads = shared_out.ask(_prepare, scoring)
    about = {"command": "profile", "argv": command, **told_of(model)}
    with open_run(Path(out), identity, about) as run:
        _check_scores(read_run(out), samples)
        kept = heads
        for number in range(len(stages)):
            work = _Stage(run, shared_out, scoring, stages, number, kept, progress)
            work.score(tell)
            if number + 1 < len(stages):
                kept = _better_half(read_run(out), kept, number + 1)
                seen = sum(map(len, stages[: number + 1]))
                tell(
                    f"After {seen} of {len(samples)} samples the better {len(kept)} heads go on;"
                    f" the other {len(heads) - len(kept)} are ranked by what they showed so far."
                )
    return read_profile(out)


def check_folder(out: Path | str, samples: Samples, plan: ProfilingPlan, command: str = "") -> None:
    """Refuses a folder that holds another run, or something else, before a model is loaded.

    Raises:
        RecordsError: names the first difference that shows without a model.
    """
    known = {"samples": len(samples), **_identity_of_plan(plan)}
    refuse_early(out, known, {"command": "profile", "argv": command})


def _checked(model: LocalModel, samples: Samples, plan: ProfilingPlan) -> ProfilingPlan:
    """The plan with a method that can be put on any head; refuses what cannot be profiled."""
    if not offers(model, Ability.LAYERS):
        raise ModelError(
            f"{getattr(model, 'name', model)} does not show its layers, whose heads are to be"
            " steered one by one; give a model that is loaded here."
        )
    plan = replace(plan, method=with_heads(plan.method, None))
    model.check([plan.method])
    check_samples(samples, compared=plan.by == "accuracy")
    return plan


def estimate(model: LocalModel, samples: Samples, plan: ProfilingPlan = ProfilingPlan()) -> str:
    """Estimates the cost of `profile` in one line, from a small piece of it, which is not kept.

    Raises:
        HoldfastError: as `profile`.
    """
    plan = _checked(model, samples, plan)
    stages = stages_of(len(samples), plan)
    where, scoring = replicas_of(model), Scoring(samples, plan)
    groups = where.ask(_groups, scoring, stages[0])
    line: str = where.ask(_estimate, scoring, groups, where.ask(_heads, scoring), _further(stages))
    return line


@dataclass(frozen=True)
class _Stage:
    """The samples of a stage under the heads that are left.

    Args:
        run: where records go.
        replicas: of the model, which score.
        scoring: how samples are scored.
        stages: the samples of each.
        number: which of them, from 0.
        heads: those left.
        progress: as of `profile`.
    """

    run: Run
    replicas: Replicas
    scoring: Scoring
    stages: Sequence[Sequence[int]]
    number: int
    heads: Sequence[Head]
    progress: Callable[[int, int], None]

    def score(self, tell: Callable[[str], None]) -> None:
        """Scores and records what the run does not have yet.

        Raises:
            ModelError: samples that no replica could score.
        """
        numbers = self.stages[self.number]
        groups = self.replicas.ask(_groups, self.scoring, numbers)
        every = resume(self.run, name_of_stage(self.number), groups)
        left = [batch for batch in every if batch.again]
        if left and not self.number:
            again = [batch.again for batch in left]
            further = _further(self.stages)
            tell(self.replicas.ask(_estimate, self.scoring, again, self.heads, further))
        self.progress(len(numbers) - sum(len(batch.again) for batch in left), 0)

        def lost(unit: int, error: RequestFailed) -> None:
            some = ", ".join(str(number + 1) for number in left[unit].again)
            raise ModelError(f"Sample {some} could not be scored: {error}")

        units = {unit: (batch.again, self.heads) for unit, batch in enumerate(left)}
        keep = Listener(
            lambda unit, record: left[unit].keep(record), progress=self.progress, lost=lost
        )
        if units:
            self.replicas.work(self.scoring, units, keep)


def _prepare(model: LocalModel, scoring: Scoring) -> tuple[dict[str, Any], list[Head]]:
    """The identity of a run, and the heads that are scored; the samples are read for it."""
    return _identity(scoring.material(model)), _steerable_heads(model)


def _heads(model: LocalModel, scoring: Scoring) -> list[Head]:
    return _steerable_heads(model)


def _groups(model: LocalModel, scoring: Scoring, numbers: Sequence[int]) -> list[list[int]]:
    return scoring.scorer(model).groups(numbers)


def _estimate(
    model: LocalModel,
    scoring: Scoring,
    groups: Sequence[Sequence[int]],
    heads: Sequence[Head],
    further: float,
) -> str:
    return scoring.scorer(model).estimate(groups, heads, further)


def name_of_stage(number: int) -> str:
    """As records name a stage, counted from 0 here and from 1 there."""
    return f"stage {number + 1}"


def _further(stages: Sequence[Sequence[int]]) -> float:
    """The work of all stages but the first, as a part of the first one's: heads are halved."""
    later = sum(len(stage) * 0.5**number for number, stage in enumerate(stages[1:], 1))
    return later / len(stages[0])


def _better_half(run: RunData, heads: Sequence[Head], stages: int) -> list[Head]:
    """The better half of the heads by the records of so many stages."""
    ranked = profile_of(run, [name_of_stage(number) for number in range(stages)]).ranking
    return sorted(ranked.heads[: -(-len(heads) // 2)])


def _steerable_heads(model: LocalModel) -> list[Head]:
    """The heads that can be steered one by one; hybrid models have layers without any.

    Raises:
        ModelError: there are none.
    """
    known = layers_with_attention(model.hf_model)
    layers = [layer for layer in range(model.shape.layers) if known is None or layer in known]
    if not layers:
        raise ModelError(
            f"The layers of {model.name} share an attention that does not tell its layer, so no"
            " head can be steered alone; steer all."
        )
    return [(layer, head) for layer in layers for head in range(model.shape.heads)]


def _check_scores(run: RunData, samples: Samples) -> None:
    """Refuses to go on with replies that the samples now score otherwise."""
    for record in run.records:
        number = record["conversation"]
        question = samples[number]
        if not isinstance(question, Question):
            continue
        for text, names in record.get("replies", {}).items():
            there, here = record["scores"][names[0]], float(question.score(text))
            if there != here:
                raise AnotherRun(
                    f"{run.folder} holds another run: sample {number + 1}'s reply {text[:60]!r} is"
                    f" scored {there:g} there and {here:g} by this command; choose another folder"
                    " with --out, or score as before."
                )


def _identity(material: Material) -> dict[str, Any]:
    model = material.model
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "layers": model.shape.layers,
        "heads": model.shape.heads,
        "samples": len(material.samples),
        "samples_fingerprint": material.fingerprint,
        **_identity_of_plan(material.plan),
    }


def _identity_of_plan(plan: ProfilingPlan) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(plan) if field.name != "method"]
    return {
        "method": spell([with_heads(plan.method, None)]),
        **{name: getattr(plan, name) for name in names},
    }
