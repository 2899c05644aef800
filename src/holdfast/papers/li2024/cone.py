"""The geometric theory of attention decay as running code (Li et al. 2024, section 5 and appendices
A and B).

Vectors are float64. A cone C of dimension d is the spherical cone P^d[axis, angle] inside the span
of an orthonormal basis; the eps-approximate cone C^eps allows a part outside that span of at most
eps times the norm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast import ranges
from holdfast.errors import UsageError

Array = np.ndarray


@dataclass(frozen=True)
class Cone:
    """The eps-approximate spherical cone {u + v: u in P^d[axis, angle], v orthogonal to the span,
    |v| <= eps |u + v|}.

    Args:
        basis: [D, d] with orthonormal columns.
        axis: [D], of norm 1, inside the span.
        angle: theta, between 0 and pi/2.
        eps: in [0, 1).
    """

    basis: Array
    axis: Array
    angle: float
    eps: float

    def excess(self, vectors: Array) -> tuple[Array, Array]:
        """How far vectors [n, D] lie outside: radians beyond `angle`, and |v|/|w| beyond `eps`;
        both [n], negative inside.
        """
        inside = vectors @ self.basis @ self.basis.T
        norms = np.linalg.norm(vectors, axis=-1)
        cosines = inside @ self.axis / np.maximum(np.linalg.norm(inside, axis=-1), 1e-300)
        outside = np.linalg.norm(vectors - inside, axis=-1) / norms
        return np.arccos(np.clip(cosines, -1, 1)) - self.angle, outside - self.eps

    def widened(self) -> Cone:
        """C^eps~ of Theorem 5.1, which holds the convex hull of C^eps."""
        return Cone(self.basis, self.axis, self.angle, widened_eps(self.eps, self.angle))

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Unit vectors [count, D] of the cone, some on its border."""
        dimension, rank = self.basis.shape
        side = self.basis.T @ self.axis
        across = rng.standard_normal((count, rank))
        across -= (across @ side)[:, None] * side
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
        angles = self.angle * np.minimum(1, 1.3 * rng.random((count, 1)))
        inside = (np.cos(angles) * side + np.sin(angles) * across) @ self.basis.T
        beside = rng.standard_normal((count, dimension))
        beside -= beside @ self.basis @ self.basis.T
        beside /= np.maximum(np.linalg.norm(beside, axis=1, keepdims=True), 1e-300)
        share = self.eps * np.minimum(1, 1.3 * rng.random((count, 1)))
        return np.sqrt(1 - share**2) * inside + share * beside * (rank < dimension)


def widened_eps(eps: float, angle: float) -> float:
    """eps~ = eps / sqrt(eps^2 + cos^2(angle) (1 - eps^2)) (Theorem 5.1)."""
    return eps / math.sqrt(eps**2 + math.cos(angle) ** 2 * (1 - eps**2))


def random_cone(
    dimension: int, rank: int, angle: float, eps: float, rng: np.random.Generator
) -> Cone:
    """A cone in a random direction of R^dimension; refuses numbers outside their ranges."""
    if not 1 <= rank <= dimension:
        raise UsageError(
            f"A cone in {dimension} dimensions has a rank from 1 to {dimension}, not {rank!r}."
        )
    ranges.Range(0, math.pi / 2, above_low=True).check("a cone", "angle", angle)
    ranges.Range(0, 1 - 1e-12).check("a cone", "eps", eps)
    basis = np.linalg.qr(rng.standard_normal((dimension, rank)))[0]
    axis = basis @ rng.standard_normal(rank)
    return Cone(basis, axis / np.linalg.norm(axis), angle, eps)


@dataclass(frozen=True)
class SimplifiedTransformer:
    """Equations 1 to 4 without MLP and norms; the next token is the normalised last output
    (appendix B).

    Args:
        output_value: [layer, head, D, D], the matrices W_o W_v.
        query_key: [layer, head, D, D], the matrices W_k^T W_q / sqrt(d).
    """

    output_value: Array
    query_key: Array

    def outputs(self, tokens: Array) -> Array:
        """h^L, [t, D], of tokens [t, D]."""
        hidden, hidden_from = tokens, np.tril(np.ones((len(tokens), len(tokens)), bool))
        for output_value, query_key in zip(self.output_value, self.query_key, strict=True):
            scores = np.einsum("td,hde,se->hst", hidden, query_key, hidden)  # of query s on key t
            scores = np.where(hidden_from, scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            hidden = hidden + np.einsum("hst,td,hed->se", weights, hidden, output_value)
        return hidden

    def generate(self, tokens: Array, count: int) -> Array:
        """`tokens` [t, D] and `count` generated ones behind them."""
        for _ in range(count):
            last = self.outputs(tokens)[-1]
            tokens = np.concatenate([tokens, last[None] / np.linalg.norm(last)])
        return tokens

    def images(self, tokens: Array) -> Array:
        """The tokens under every product of one W_o W_v per layer at most: the parts of outputs."""
        products = tokens
        for layer in self.output_value:
            products = np.concatenate([products, *(products @ head.T for head in layer)])
        return products


def random_transformer(
    cone: Cone, layers: int, heads: int, rng: np.random.Generator
) -> SimplifiedTransformer:
    """One that meets the assumption of Theorem 5.1: W_o W_v takes the cone into itself.

    Each matrix turns the span about the axis, stretches the axis at least as much as the rest (so
    that angles shrink), and shrinks what is outside the span."""
    dimension, rank = cone.basis.shape
    axis = np.outer(cone.axis, cone.axis)
    across = np.linalg.svd(cone.basis - axis @ cone.basis)[0][:, : rank - 1]
    beside = np.linalg.svd(cone.basis)[0][:, rank:]

    def rotation(size: int) -> Array:
        return np.linalg.qr(rng.standard_normal((size, size)))[0]

    def matrix() -> Array:
        stretch, shrink = 1 + rng.random(), rng.random()
        turned = across @ rotation(rank - 1) @ across.T if rank > 1 else 0.0
        return stretch * axis + turned + shrink * beside @ rotation(dimension - rank) @ beside.T

    output_value = np.array([[matrix() / heads for _ in range(heads)] for _ in range(layers)])
    query_key = (
        rng.standard_normal((layers, heads, dimension, dimension)) * 2 / math.sqrt(dimension)
    )
    return SimplifiedTransformer(output_value, query_key)


def hull_residual(vector: Array, generators: Array) -> float:
    """The least |vector - sum a_i generators_i| / |vector| over a_i >= 0; 0 in their cone."""
    from scipy.optimize import nnls

    return float(
        nnls(generators.T, vector, maxiter=50 * len(generators))[1] / np.linalg.norm(vector)
    )


def hemisphere_probability(points: int, dimension: int) -> float:
    """Wendel's exact probability that random points on the sphere of R^dimension lie in one
    hemisphere (Lemma B.1).
    """
    if points <= dimension:
        return 1.0
    return sum(math.comb(points - 1, k) for k in range(dimension)) / 2 ** (points - 1)


def enough_points(dimension: int, eta: float) -> int:
    """The least n >= 4 D + 2 log(1/eta): so many random tokens span R^D as a cone with probability
    1 - eta (Proposition A.1).
    """
    ranges.Range(0, 1, above_low=True).check("the bound", "eta", eta)
    return math.ceil(4 * dimension + 2 * math.log(1 / eta))


def spans_everything(points: Array) -> bool:
    """Whether the convex cone of points [n, D] is all of R^D: whether it holds the negative of
    their sum.
    """
    if np.linalg.matrix_rank(points) < points.shape[1]:
        return False
    return hull_residual(-points.sum(0), points) < 1e-9


def simulate_spanning(points: int, dimension: int, trials: int, rng: np.random.Generator) -> float:
    """The share of `trials` in which random points on the sphere span everything."""
    return (
        sum(spans_everything(rng.standard_normal((points, dimension))) for _ in range(trials))
        / trials
    )


def cone_volume(dimension: int, rank: int, angle: float, eps: float) -> float:
    """mu(C^eps): the share of the sphere of R^dimension that lies in the eps-approximate
    P^rank[axis, angle].

    The squared norm of a random unit vector's part outside the span is Beta((D - d) / 2, d / 2),
    independent of the direction of its part inside, which is uniform on the sphere of R^d (so the
    share of the cap is Lemma B.2)."""
    from scipy.special import betainc

    beside = 1.0 if rank == dimension else float(betainc((dimension - rank) / 2, rank / 2, eps**2))
    if rank == 1:
        return beside / 2
    share = 0.5 * float(betainc((rank - 1) / 2, 0.5, math.sin(min(angle, math.pi / 2)) ** 2))
    return beside * share


def volume_rate(dimension: int, before: int, after: int, angle: float, eps: Array) -> float:
    """The slope of log(mu(C_0^eps) / mu(C_n^eps)) over log eps for cones of rank `before` and
    `after`.

    Proposition A.2 bounds the ratio by a constant times eps^(after - before).
    """
    ratios = [
        cone_volume(dimension, before, angle, e) / cone_volume(dimension, after, angle, e)
        for e in eps
    ]
    return float(np.polyfit(np.log(eps), np.log(ratios), 1)[0])


def effective_dimension(vectors: Array) -> float:
    """The participation ratio (sum s_i^2)^2 / sum s_i^4 of the singular values of vectors [n, D],
    each scaled to norm 1.
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    squares = np.linalg.svd(unit, compute_uv=False) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def opening_angle(vectors: Array, share: float = 0.95) -> float:
    """The angle in radians around the mean direction that holds so large a share of vectors [n,
    D].
    """
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = unit.mean(0)
    return float(np.quantile(np.arccos(np.clip(unit @ mean / np.linalg.norm(mean), -1, 1)), share))
