"""Draws tokens as Holdfast's own engine does, for rows whose request has a `holdfast_seed`.

A draw depends only on the reply's seed and the token's position in the reply, not on the batch or
the runner. All other logits of such a row become -inf, and vLLM's sampler, which is set to greedy,
can only take the token drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.generation.drawing import NOT_FINITE, draw, uniforms
from holdfast.generation.sampling import Sampling
from holdfast_vllm.rows import Rows
from holdfast_vllm.wire import Admitted


@dataclass(frozen=True, eq=False)
class Draw:
    """How the tokens of one reply are drawn.

    Args:
        sampling: temperature and nucleus.
        numbers: random numbers in [0, 1), one for each token of the reply.
        prompt: the length of the prompt in tokens.
        generated: the reply so far, a list that the old runner keeps extending; None with the new
            runner, which reports the length of each context in each pass.
    """

    sampling: Sampling
    numbers: list[float]
    prompt: int
    generated: Sequence[int] | None = None

    def number(self, length: int | None) -> float:
        """Returns the random number for the next token, when the context has `length` tokens.

        A chunk of a prompt also draws a token, but it is discarded.
        """
        drawn = len(self.generated or ()) if length is None else length - self.prompt
        return self.numbers[min(max(drawn, 0), len(self.numbers) - 1)]


def draw_of(admitted: Admitted | None, generated: Sequence[int] | None = None) -> Draw | None:
    """Returns how a request draws its tokens; None if it leaves that to vLLM."""
    if admitted is None or admitted.drawing is None:
        return None
    drawing = admitted.drawing
    sampling = Sampling(drawing.temperature, drawing.top_p, drawing.tokens)
    return Draw(sampling, uniforms(drawing.seed, drawing.tokens), admitted.prompt, generated)


def draw_rows(
    logits: Tensor, rows: Rows[Draw], numbers: Sequence[int], lengths: Sequence[int] | None
) -> Tensor:
    """Leaves only the drawn token in the logits of each row that has a draw.

    A row whose logits are not finite is left to vLLM.

    Args:
        logits: float32 [row, vocabulary]; written to.
        rows: the draws of the engine's rows.
        numbers: the runner's number of each row.
        lengths: the length of each row's context in tokens; None with the old runner, where
            `Draw.generated` has the reply.
    """
    draws = rows.of(numbers)
    if draws is None:
        return logits
    with_draw = [(row, settings) for row, settings in enumerate(draws) if settings is not None]
    indices = torch.tensor([row for row, _ in with_draw], device=logits.device)
    row_logits = logits[indices]
    tokens = draw(
        row_logits,
        [settings.sampling for _, settings in with_draw],
        [
            settings.number(None if lengths is None else int(lengths[row]))
            for row, settings in with_draw
        ],
    )
    drawn = torch.tensor(tokens, device=logits.device)[:, None]
    only_drawn = torch.full_like(row_logits, -torch.inf).scatter_(1, drawn.clamp(min=0), 0.0)
    logits[indices] = torch.where(drawn == NOT_FINITE, row_logits, only_drawn)
    return logits
