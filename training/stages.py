"""The stages of the default model's training: their data, and their learning rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dialogues import Mix
from endings import NONE, Loops


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One decay of the learning rate, and its training data.

    Args:
        copy_steps: first steps, on random tokens written twice: copying heads form here, which
            held-out values need.
        early_drills: share of drills in the first blocks of dialogues.
        drills: share of drills in the later ones.
        mix: shares of the content that takes longest to learn.
        peak: highest learning rate, as a fraction of --lr and --muon-lr.
        fall: share of the steps over which the learning rate falls to zero.
        keeps_best: whether to keep the checkpoint that follows held-out instructions best in round
            1, or else the last one.
        loops: which dialogues get stuck in a loop and must end.
    """

    copy_steps: int = 0
    early_drills: float
    drills: float
    mix: Mix
    peak: float
    fall: float
    keeps_best: bool = True
    loops: Loops = NONE


STAGES = (
    Stage(
        copy_steps=300,
        early_drills=0.5,
        drills=0.0,
        mix=Mix(facts=0.15, knowledge=0.15),
        peak=1.0,
        fall=0.4,
    ),
    Stage(
        early_drills=0.2,
        drills=0.2,
        mix=Mix(facts=0.4, knowledge=0.25),
        peak=0.5,
        fall=1.0,
    ),
)


def last_stage(facts: float, tasks: float, drills: float, loops: Loops) -> Stage:
    """PASTA's tasks, practised but not mastered, and replies that end.

    Its last checkpoint is kept: how well a model follows instructions shows neither, and would
    choose a checkpoint from before they were learned.
    """
    return Stage(
        early_drills=drills,
        drills=drills,
        mix=Mix(facts=facts, knowledge=0.25, tasks=tasks),
        peak=0.25,
        fall=1.0,
        keeps_best=False,
        loops=loops,
    )


class Branch(NamedTuple):
    """One run of the last stage."""

    steps: int
    stage: Stage


# All start from the same model, and their weights are averaged (model soups, Wortsman et al. 2022,
# arXiv 2203.05482): the average follows held-out instructions better than any of the four.
_FEW_LOOPS = Loops(0.08, repeated=(1, 2, 3, 4, 5, 6), times=(4, 8, 16, 32), stuck=(1,), target=1.0)
BRANCHES = (
    Branch(200, last_stage(facts=0.4, tasks=0.3, drills=0.2, loops=_FEW_LOOPS)),
    Branch(300, last_stage(facts=0.4, tasks=0.2, drills=0.2, loops=Loops(0.12))),
    Branch(200, last_stage(facts=0.4, tasks=0.3, drills=0.2, loops=Loops(0.12))),
    Branch(300, last_stage(facts=0.15, tasks=0.2, drills=0.1, loops=Loops(0.15))),
)
