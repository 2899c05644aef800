"""Measures how a model's hidden states spread as a dialog grows (Li et al. 2024, section 5).

The paper's theory is about the cone that contains the states: its dimension d, and the angle theta
of the spherical cone around it. The states of a real model have a part in every dimension, so d is
measured as the effective dimension, and theta as the angle that contains 95% of the states.
"""

import numpy as np

from holdfast.records.model import List, RecordModel


class ByGroup(RecordModel):
    """A quantity of the tokens up to a round, averaged over layers and dialogs.

    `all` is over every token of the system prompt and of both speakers. The other three are over
    equally many tokens each, as both quantities grow with the number of tokens.
    """

    all: float
    system: float
    user: float
    agent: float

    def values(self) -> tuple[float, float, float, float]:
        """Returns the values in the order of the fields."""
        return self.all, self.system, self.user, self.agent


class RoundSpread(RecordModel):
    """How far the hidden states have spread by a round."""

    round: int
    dimension: ByGroup  # effective dimension
    angle: ByGroup  # opening angle, in radians


class Geometry(RecordModel):
    """The geometry of a model, as in `geometry.json`."""

    model: str
    model_fingerprint: str
    suite: str
    embedding_norms: List[float]  # of every token of the vocabulary
    hidden_states: List[RoundSpread]


def effective_dimension(vectors: np.ndarray) -> float:
    """Returns how many dimensions vectors [n, D] fill, from 1 to min(n, D).

    This is the participation ratio (sum s^2)^2 / sum s^4 of the singular values s of the vectors,
    each scaled to norm 1.
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    squares = np.linalg.svd(unit, compute_uv=False) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def opening_angle(vectors: np.ndarray, share: float = 0.95) -> float:
    """Returns the angle in radians around the mean of vectors [n, D] that contains this share of
    them.
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = unit.mean(0)
    cosines = np.clip(unit @ mean / np.linalg.norm(mean), -1, 1)
    return float(np.quantile(np.arccos(cosines), share))
