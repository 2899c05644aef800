"""The scales of the reproduction, and its setup: models, prompts and a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import drift
from holdfast.drift.progress import Watch, ignore_steps
from holdfast.drift.remaining import count_replies
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Guidance, Repetition, SplitSoftmax
from holdfast.models.capabilities import require_layers
from holdfast.models.protocol import ChatModel
from holdfast.records import Run
from holdfast.study.capability import load_capability

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


@dataclass(frozen=True)
class Li2024Scale:
    """The size of a reproduction.

    Attributes:
        conversations: of Figures 3 and 9.
        traced: conversations of Figures 4 and 8.
        rounds: of all conversations.
        prompts: of Figures 5 and 6, where every ordered pair talks; the paper has 5, one of each
            category.
        draws: conversations of each such pair, per setting.
        questions: of the capability, per setting.
        sweeps: of Figures 5 and 6: by the name of a method, its parameter with the values to
            compare. Without any, both figures are skipped, which cost the most.
        max_new_tokens: of a reply; Figures 5 and 6 keep the paper's 400.
    """

    conversations: int
    traced: int
    rounds: int
    prompts: int
    draws: int
    questions: int
    sweeps: Mapping[str, str]
    max_new_tokens: int = 400


_SMALLEST_SWEEPS = {
    SplitSoftmax.name: "exponent=0.9,0.5",
    Repetition.name: "probability=0.5,1",
    Guidance.name: "scale=1.5,2",
}
_SMALL_SWEEPS = {
    SplitSoftmax.name: "exponent=0.9,0.7,0.5,0.3",
    Repetition.name: "probability=0.25,0.5,1",
    Guidance.name: "scale=1.1,1.25,1.5",
}
_PAPER_SWEEPS = {
    SplitSoftmax.name: "exponent=0.95,0.9,0.8,0.7,0.6,0.5,0.4,0.3",
    Repetition.name: "probability=0.1,0.25,0.5,0.75,1",
    Guidance.name: "scale=1.05,1.1,1.25,1.5,2",
}
SCALES = {
    "smallest": Li2024Scale(
        conversations=4,
        traced=3,
        rounds=3,
        prompts=2,
        draws=2,
        questions=8,
        sweeps=_SMALLEST_SWEEPS,
    ),
    "brief": Li2024Scale(
        conversations=24,
        traced=24,
        rounds=8,
        prompts=1,
        draws=1,
        questions=1,
        sweeps={},
        max_new_tokens=100,
    ),
    "small": Li2024Scale(
        conversations=100,
        traced=40,
        rounds=8,
        prompts=5,
        draws=2,
        questions=120,
        sweeps=_SMALL_SWEEPS,
    ),
    "paper": Li2024Scale(
        conversations=200,
        traced=40,
        rounds=8,
        prompts=5,
        draws=5,
        questions=500,
        sweeps=_PAPER_SWEEPS,
    ),
}


@dataclass(frozen=True)
class Li2024Setup:
    """The model, the scale and the folder of a reproduction.

    Attributes:
        suite: supplies the prompts.
        out: the folder of all runs, figures and the page.
        capability: of Figures 5 and 6, as `holdfast calibrate --capability` takes it.
        base: the model before its chat training, for Figure 8; None leaves it undecided.
        other: the model of Figure 9, which is an endpoint in the paper; None for `model` itself.
        notify: receives a line on each claim.
        watch: is notified of every long step, in replies.
    """

    model: LocalModel
    suite: drift.Suite
    out: Path
    scale: Li2024Scale
    seed: int = 0
    capability: str = "knowledge"
    base: LocalModel | None = None
    other: ChatModel | None = None
    notify: Callable[[str], None] = lambda line: None
    watch: Watch = ignore_steps

    def figures(self, number: str) -> Path:
        """The folder of the images of a figure."""
        return self.out / "figures" / number

    @property
    def sampling(self) -> Sampling:
        """The sampling of all replies."""
        return Sampling(max_new_tokens=self.scale.max_new_tokens)

    @property
    def settings(self) -> drift.Settings:
        """The settings of self-chats with a probe of each kind in every round."""
        return drift.Settings(
            rounds=self.scale.rounds,
            conversations=self.scale.conversations,
            sampling=self.sampling,
            seed=self.seed,
        )

    def self_chats(self, step: str, model: ChatModel, settings: drift.Settings) -> Run:
        """Runs self-chats in a folder named after the step; an earlier run is resumed."""
        replies = count_replies(self.suite, settings, range(settings.conversations))
        with self.watch(step, replies) as progress:
            running = drift.Running(progress=progress)
            return drift.run(model, self.suite, self.out / step, settings, running=running)


def check(setup: Li2024Setup) -> None:
    """Refuses a setup that cannot be reproduced, before anything runs."""
    require_layers(setup.model, "attention and embeddings")
    if setup.base is not None and setup.base.fingerprint == setup.model.fingerprint:
        raise UsageError(
            f"The base model is {setup.model.name} itself; give the model it was before its chat"
            " training."
        )
    if setup.scale.sweeps:
        load_capability(setup.capability, setup.scale.questions, setup.seed)
