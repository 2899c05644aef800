"""Tokens drawn as Holdfast's own engine draws them, of the rows that name their draw.

The draw belongs to the reply's seed and to the place of the token in it, so neither the batch nor
the runner changes it. All other logits of such a row become -inf, and vLLM's sampler, which is told
to take the likeliest token, has one to take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.common.sampling import Sampling
from holdfast.engine.drawing import NOT_FINITE, draw, uniforms
from holdfast_vllm.rows import Rows
from holdfast_vllm.wire import Admitted


@dataclass(frozen=True, eq=False)
class Draw:
    """How the tokens of one reply are drawn.

    Args:
        sampling: temperature and nucleus.
        numbers: in [0, 1), for each token of the reply.
        prompt: tokens of its prompt.
        generated: the reply so far, which the old runner goes on writing; None of the new one,
            which tells the length of each context at each pass.
    """

    sampling: Sampling
    numbers: list[float]
    prompt: int
    generated: Sequence[int] | None = None

    def number(self, length: int | None) -> float:
        """Of the token to be drawn, where the context has `length` tokens.

        A chunk of a prompt draws a token that is thrown away.
        """
        drawn = len(self.generated or ()) if length is None else length - self.prompt
        return self.numbers[min(max(drawn, 0), len(self.numbers) - 1)]


def draw_of(admitted: Admitted | None, generated: Sequence[int] | None = None) -> Draw | None:
    """How a request draws; None where it leaves that to vLLM."""
    if admitted is None or admitted.drawing is None:
        return None
    asked = admitted.drawing
    sampling = Sampling(asked.temperature, asked.top_p, asked.tokens)
    return Draw(sampling, uniforms(asked.seed, asked.tokens), admitted.prompt, generated)


def draw_rows(
    logits: Tensor, rows: Rows[Draw], numbers: Sequence[int], lengths: Sequence[int] | None
) -> Tensor:
    """The logits, with one token left in each row that names its draw.

    A row whose logits are not finite is left to vLLM.

    Args:
        logits: float32 [row, vocabulary]; written to.
        rows: of the engine.
        numbers: the runner's number of each row.
        lengths: tokens of each row's context; None where the old runner's lists tell the reply.
    """
    drawn = rows.of(numbers)
    if drawn is None:
        return logits
    chosen = [(row, each) for row, each in enumerate(drawn) if each is not None]
    places = torch.tensor([row for row, _ in chosen], device=logits.device)
    own = logits[places]
    tokens = draw(
        own,
        [each.sampling for _, each in chosen],
        [each.number(None if lengths is None else int(lengths[row])) for row, each in chosen],
    )
    taken = torch.tensor(tokens, device=logits.device)[:, None]
    alone = torch.full_like(own, -torch.inf).scatter_(1, taken.clamp(min=0), 0.0)
    logits[places] = torch.where(taken == NOT_FINITE, own, alone)
    return logits
