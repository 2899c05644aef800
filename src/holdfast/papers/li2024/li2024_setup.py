"""The scales of the reproduction, and what it runs on: models, prompts and a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import drift
from holdfast.drift.progress import Watch, unwatched
from holdfast.drift.remaining import count_replies
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
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
    # of Figures 5 and 6: split-softmax, repetition and guidance, in the form of `holdfast calibrate
    # --sweep`; () skips both figures, which cost the most
    sweeps: tuple[str, ...]
    max_new_tokens: int = 400  # of a reply; Figures 5 and 6 keep the paper's 400


def _sweeps(*values: str) -> tuple[str, ...]:
    swept = ("split-softmax:exponent", "repetition:probability", "guidance:scale")
    return tuple(f"{name}={some}" for name, some in zip(swept, values, strict=True))


_SMALLEST = _sweeps("0.9,0.5", "0.5,1", "1.5,2")
_SMALL = _sweeps("0.9,0.7,0.5,0.3", "0.25,0.5,1", "1.1,1.25,1.5")
_PAPER = _sweeps("0.95,0.9,0.8,0.7,0.6,0.5,0.4,0.3", "0.1,0.25,0.5,0.75,1", "1.05,1.1,1.25,1.5,2")
SCALES = {
    "smallest": Li2024Scale(4, 3, 3, 2, 2, 8, _SMALLEST),
    "brief": Li2024Scale(24, 24, 8, 1, 1, 1, (), max_new_tokens=100),
    "small": Li2024Scale(100, 40, 8, 5, 2, 120, _SMALL),
    "paper": Li2024Scale(200, 40, 8, 5, 5, 500, _PAPER),
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
    watch: Watch = unwatched  # notified of every long step, in replies

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
