"""Profiles heads in stages, recording each sample as soon as its group is scored."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.analysis.profile import Profile, profile_of, read_profile
from holdfast.attention import layers_with_attention
from holdfast.errors import ModelError, RecordsError
from holdfast.methods import Ability, spell
from holdfast.methods.heads import Head, with_heads
from holdfast.models.capabilities import offers
from holdfast.models.local import LocalModel
from holdfast.models.protocol import told_of
from holdfast.records import Run, RunData, open_run, read_run, resume
from holdfast.study.profiling.material import Material, read_material
from holdfast.study.profiling.plan import Plan, stages_of
from holdfast.study.profiling.replies import Replies
from holdfast.study.profiling.samples import Question, Samples, check_samples
from holdfast.study.profiling.scoring import PlainPasses, Scorer, SharedPasses, find_passes


def profile(
    model: LocalModel,
    samples: Samples,
    out: Path | str,
    plan: Plan = Plan(),
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
        ModelError: an endpoint, or a model whose attention cannot be steered.
        RecordsError: `out` holds another run, or replies that the samples score otherwise.
    """
    if not offers(model, Ability.LAYERS):
        raise ModelError(
            f"{getattr(model, 'name', model)} is an endpoint, whose heads cannot be steered; give a"
            " local model."
        )
    plan = replace(plan, method=with_heads(plan.method, None))
    model.check([plan.method])
    check_samples(samples, compared=plan.by == "accuracy")
    stages = stages_of(len(samples), plan)
    material = read_material(model, samples, plan)
    scorer, heads = scorer_of(material), _steerable_heads(model)
    about = {"command": "profile", "argv": command, **told_of(model)}
    with open_run(Path(out), _identity(material), about) as run:
        _check_scores(read_run(out), samples)
        kept = heads
        for number in range(len(stages)):
            work = _Stage(run, scorer, stages, number, kept, progress)
            work.score(tell)
            if number + 1 < len(stages):
                kept = _better_half(read_run(out), kept, number + 1)
                seen = sum(map(len, stages[: number + 1]))
                tell(
                    f"After {seen} of {len(samples)} samples the better {len(kept)} heads go on;"
                    f" the other {len(heads) - len(kept)} are ranked by what they showed so far."
                )
    return read_profile(out)


def scorer_of(material: Material) -> Scorer:
    """The fastest way that gives this model's own scores."""
    if isinstance(material.samples[0], Question):
        return Replies(material)
    passes = find_passes(material)
    return PlainPasses(material) if passes is None else SharedPasses(material, passes)


@dataclass(frozen=True)
class _Stage:
    """The samples of a stage under the heads that are left.

    Args:
        run: where records go.
        scorer: how samples are scored.
        stages: the samples of each.
        number: which of them, from 0.
        heads: those left.
        progress: as of `profile`.
    """

    run: Run
    scorer: Scorer
    stages: Sequence[Sequence[int]]
    number: int
    heads: Sequence[Head]
    progress: Callable[[int, int], None]

    def score(self, tell: Callable[[str], None]) -> None:
        """Scores and records what the run does not have yet."""
        numbers = self.stages[self.number]
        every = resume(self.run, name_of_stage(self.number), self.scorer.groups(numbers))
        left = [batch for batch in every if batch.again]
        if left and not self.number:
            groups = [batch.again for batch in left]
            tell(self.scorer.estimate(groups, self.heads, _further(self.stages)))
        self.progress(len(numbers) - sum(len(batch.again) for batch in left), 0)
        for batch in left:
            began = time.monotonic()
            scored, tokens = self.scorer.score(batch.again, self.heads)
            seconds = round((time.monotonic() - began) / len(batch.again), 3)
            for number, sample in zip(batch.again, scored, strict=True):
                batch.keep({"conversation": number, **sample.record(), "seconds": seconds})
            self.progress(len(batch.again), tokens)


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
                raise RecordsError(
                    f"{run.folder} holds another run: sample {number + 1}'s reply {text[:60]!r} is"
                    f" scored {there:g} there and {here:g} by this command; choose another folder"
                    " with --out, or score as before."
                )


def _identity(material: Material) -> dict[str, Any]:
    model, plan = material.model, material.plan
    names = [knob.name for knob in dataclasses.fields(plan) if knob.name != "method"]
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "layers": model.shape.layers,
        "heads": model.shape.heads,
        "method": spell([plan.method]),
        "samples": len(material.samples),
        "samples_fingerprint": material.fingerprint,
        **{name: getattr(plan, name) for name in names},
    }
