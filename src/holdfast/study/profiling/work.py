"""Scoring samples as units of work, which replicas of a model do."""

from __future__ import annotations

import time
from typing import Any, ClassVar, cast

from holdfast.models.local import LocalModel
from holdfast.models.protocol import ChatModel
from holdfast.models.replicas import Listener, Units
from holdfast.study.profiling.material import Material, read_material
from holdfast.study.profiling.plan import Plan
from holdfast.study.profiling.replies import Replies
from holdfast.study.profiling.samples import Question, Samples
from holdfast.study.profiling.scoring import PlainPasses, Scorer, SharedPasses, find_passes


class Scoring:
    """Work whose units are numbers of samples, and the heads that they are scored under.

    What a model makes of the samples is kept as long as it is the same model, and does not travel.

    Args:
        samples, plan: as of `profile`.
    """

    together: ClassVar[int] = 1

    def __init__(self, samples: Samples, plan: Plan):
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
                told = {"conversation": number, **sample.record(), "seconds": seconds}
                listener.outcome(unit, told)
            listener.progress(len(numbers), tokens)
            listener.over(unit)


def scorer_of(material: Material) -> Scorer:
    """The fastest way that gives this model's own scores."""
    if isinstance(material.samples[0], Question):
        return Replies(material)
    passes = find_passes(material)
    return PlainPasses(material) if passes is None else SharedPasses(material, passes)
