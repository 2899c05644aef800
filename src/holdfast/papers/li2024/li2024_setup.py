"""The scales of the reproduction, and what it runs on: models, prompts and a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    """The size of a reproduction."""

    conversations: int  # of Figures 3 and 9
    traced: int  # conversations of Figures 4 and 8
    rounds: int  # of all conversations
    # of Figures 5 and 6, where every ordered pair talks; the paper has 5, one of each category
    prompts: int
    draws: int  # conversations of each such pair, per setting
    questions: int  # of the capability, per setting
    # of Figures 5 and 6: by the name of a method, its parameter with the values that are compared;
    # without any, both figures are skipped, which cost the most
    sweeps: Mapping[str, str]
    max_new_tokens: int = 400  # of a reply; Figures 5 and 6 keep the paper's 400


_SMALLEST_SETUP = {
    SplitSoftmax.name: "exponent=0.9,0.5",
    Repetition.name: "probability=0.5,1",
    Guidance.name: "scale=1.5,2",
}
_SMALL = {
    SplitSoftmax.name: "exponent=0.9,0.7,0.5,0.3",
    Repetition.name: "probability=0.25,0.5,1",
    Guidance.name: "scale=1.1,1.25,1.5",
}
_PAPER = {
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
        sweeps=_SMALLEST_SETUP,
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
        sweeps=_SMALL,
    ),
    "paper": Li2024Scale(
        conversations=200,
        traced=40,
        rounds=8,
        prompts=5,
        draws=5,
        questions=500,
        sweeps=_PAPER,
    ),
}


@dataclass(frozen=True)
class Li2024Setup:
    """The model, the scale and the folder of a reproduction."""

    model: LocalModel
    suite: drift.Suite  # supplies the prompts
    out: Path  # the folder of all runs, figures and the page
    scale: Li2024Scale
    seed: int = 0
    # the capability of Figures 5 and 6, as for `holdfast calibrate --capability`
    capability: str = "knowledge"
    # the model before its chat training, for Figure 8; None leaves that figure undecided
    base: LocalModel | None = None
    # the model of Figure 9, an endpoint as in the paper, or None for `model` itself
    other: ChatModel | None = None
    notify: Callable[[str], None] = lambda line: None  # receives a line per claim
    watch: Watch = ignore_steps  # notified of every long step, in replies

    def figures(self, number: str) -> Path:
        """The folder of the images of a figure."""
        return self.out / "figures" / number

    @property
    def sampling(self) -> Sampling:
        """The sampling of all replies."""
        return Sampling(max_new_tokens=self.scale.max_new_tokens)

    def self_chats(self, step: str, model: ChatModel, **changed: Any) -> Run:
        """Runs self-chats in a folder named after the step, with some of the settings changed."""
        settings = drift.Settings(
            rounds=self.scale.rounds,
            conversations=self.scale.conversations,
            sampling=self.sampling,
            seed=self.seed,
        )
        settings = replace(settings, **changed)
        replies = count_replies(self.suite, settings, None, range(settings.conversations))
        with self.watch(step, replies) as progress:
            running = drift.Running(progress=progress)
            return drift.run(model, self.suite, self.out / step, settings, running=running)


def check(setup: Li2024Setup) -> None:
    """Refuses what cannot be reproduced, before anything runs."""
    require_layers(setup.model, "attention and embeddings")
    if setup.base is not None and setup.base.fingerprint == setup.model.fingerprint:
        raise UsageError(
            f"The base model is {setup.model.name} itself; give the model it was before its chat"
            " training."
        )
    if setup.scale.sweeps:
        load_capability(setup.capability, setup.scale.questions, setup.seed)
