"""From logits to the next token of each row: guidance, the draw, and the gate's consent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.engine.drawing import NOT_FINITE, draw
from holdfast.errors import ModelError
from holdfast.methods.protocols import EditsLogits, GatesTokens
from holdfast.sampling import Sampling

Token = int | Exception  # or why there is none


@dataclass(frozen=True, slots=True)
class LogProbability:
    """Log-probabilities behind a drawn token: of the model under its methods, at temperature 1,
    over the whole vocabulary.

    Args:
        drawn: the token's own log-probability, natural logarithm.
        top: the likeliest tokens and theirs, likeliest first; as many as were asked for.
    """

    drawn: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Draw:
    """How a row's next token is drawn.

    Args:
        sampling: temperature and nucleus.
        number: in [0, 1), the place in the nucleus.
        guidance: makes one distribution of the two streams' logits.
        token: the one to take, where it is given; None: it is drawn.
    """

    sampling: Sampling
    number: float
    guidance: EditsLogits | None = None
    token: int | None = None


@dataclass(frozen=True)
class Drawn:
    """The next token of each row, and what it was drawn from.

    Args:
        tokens: one per row.
        logits: after guidance, [row, vocabulary].
    """

    tokens: list[Token]
    logits: Tensor

    def pairs(self) -> list[tuple[Token, Tensor]]:
        """The token of each row with its logits, [vocabulary]."""
        return list(zip(self.tokens, self.logits, strict=True))


def choose(logits: Tensor, beside: Sequence[Tensor | None], draws: Sequence[Draw]) -> Drawn:
    """Draws the next token of each row.

    Args:
        logits: of the streams that write, [row, vocabulary].
        beside: per row, the logits [vocabulary] of the stream that reads along, or None.
        draws: per row.
    """
    failed: dict[int, Exception] = {}
    if any(draw.guidance for draw in draws):
        logits = logits.float().clone()
        for guidance in {draw.guidance for draw in draws if draw.guidance}:
            rows = [row for row, draw in enumerate(draws) if draw.guidance == guidance]
            others = torch.stack([other for row in rows if (other := beside[row]) is not None])
            try:
                logits[rows] = guidance.guide(logits[rows], others)
            except Exception as error:
                failed |= dict.fromkeys(rows, error)
    drawn = draw(logits, [each.sampling for each in draws], [each.number for each in draws])
    taken = [
        token if token == NOT_FINITE or draw.token is None else draw.token
        for token, draw in zip(drawn, draws, strict=True)
    ]
    tokens = [
        failed.get(row) or (_not_finite() if token == NOT_FINITE else token)
        for row, token in enumerate(taken)
    ]
    return Drawn(tokens, logits)


def log_probabilities(
    logits: Tensor, tokens: Sequence[int], counts: Sequence[int]
) -> list[LogProbability]:
    """The log-probabilities of drawn tokens; of the device, one thing is read.

    Args:
        logits: that they were drawn from, [row, vocabulary].
        tokens: one per row.
        counts: per row, how many of the likeliest tokens are wanted beside.
    """
    known = logits.float().log_softmax(-1)
    own = known.gather(-1, torch.tensor(tokens, device=known.device)[:, None])
    top, ids = known.topk(max(counts))
    width = top.shape[-1]
    read = torch.cat([own.double(), top.double(), ids.double()], -1).tolist()  # ids are exact so
    told = []
    for (drawn, *row), count in zip(read, counts, strict=True):
        likeliest = zip(map(int, row[width : width + count]), row[:count], strict=True)
        told.append(LogProbability(drawn, tuple(likeliest)))
    return told


def refused(
    tokens: Sequence[Token], beside: Sequence[Tensor | None], gates: Sequence[GatesTokens | None]
) -> list[int]:
    """The rows whose gate does not accept their token.

    Args:
        tokens: one per row.
        beside: per row, the logits [vocabulary] of the stream that reads along.
        gates: per row.
    """
    not_accepted: list[int] = []
    for gate in dict.fromkeys(gate for gate in gates if gate is not None):
        rows = [
            row
            for row, own in enumerate(gates)
            if own == gate and not isinstance(tokens[row], Exception)
        ]
        if rows:
            unsteered = torch.stack([other for row in rows if (other := beside[row]) is not None])
            drawn = torch.tensor([tokens[row] for row in rows], device=unsteered.device)
            accepted = gate.accepts(drawn, unsteered).tolist()
            not_accepted += [row for row, yes in zip(rows, accepted, strict=True) if not yes]
    return sorted(not_accepted)


def _not_finite() -> ModelError:
    return ModelError(
        "The model's logits are not finite, so no token can be drawn; load it with dtype='float32'."
    )
