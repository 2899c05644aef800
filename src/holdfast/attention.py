"""The one seam to transformers: attention whose mass on a span can be read and moved.

Models are loaded with the attention function registered here under `IMPLEMENTATION`. Without a `Steering` in the calling context it
is transformers' own SDPA attention and nothing else. A `Steering` lives in a context variable, so it belongs to the call: two threads
never see each other's.

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to x', and leaves the ratios inside each
group alone; adding x' - x to the span's scores does exactly that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from holdfast.errors import ModelError
from holdfast.methods.protocols import ShiftsAttention

IMPLEMENTATION = "holdfast"
_SCORES_AT_ONCE = 2**21  # scores held at a time; more queries than that are taken in blocks, which changes no bit


@dataclass(frozen=True)
class AttentionTrace:
    """Attention mass on the span, after steering.

    Args:
        mass: float32 [layer, head, step]; step t is the query that produced the reply's token t.
    """

    mass: Tensor


@dataclass
class Steering:
    """What the attention of one forward pass does.

    Args:
        span: bool [batch, key], True on the keys to hold on to, one column per key in the cache and in this pass.
        methods: per row, the attention methods in order.
        trace: whether `seen` collects the mass at the last query.
        seen: [batch, head] of every layer of this pass, in order.
    """

    span: Tensor
    methods: Sequence[Sequence[ShiftsAttention]]
    trace: bool = False
    seen: list[Tensor] = field(default_factory=list)
    calls: int = 0

    @property
    def moves(self) -> bool:
        """Whether any row has an attention method."""
        return any(self.methods)


_STEERING: ContextVar[Steering | None] = ContextVar("holdfast_steering", default=None)


@contextmanager
def steered(steering: Steering | None) -> Iterator[None]:
    """Applies `steering` to the forward passes of this thread until the block is left, by an exception too.

    Raises:
        ModelError: a pass inside the block never reached the attention registered here.
    """
    token = _STEERING.set(steering)
    try:
        yield
    finally:
        _STEERING.reset(token)
    if steering is not None and not steering.calls:
        raise ModelError(
            "This model's attention does not go through transformers' attention interface, so its mass on the prompt "
            "can be neither read nor moved; use prompt methods such as repetition."
        )


def holdfast_attention(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs
) -> tuple[Tensor, None]:
    """transformers' attention interface: query [B, H, Q, D], key and value [B, G, K, D], output [B, Q, H, D]."""
    for refused in ("s_aux", "softcap", "position_bias"):  # SDPA would drop sinks without a word, so unsteered passes refuse too
        if kwargs.get(refused) is not None:
            raise ModelError(f"Attention with {refused} cannot be steered yet; use prompt methods such as repetition.")
    steering = _STEERING.get()
    if steering is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    steering.calls += 1
    span = steering.span[:, -key.shape[2] :]  # a sliding cache holds the last keys only
    scaling = kwargs.get("scaling") or query.shape[-1] ** -0.5
    grouped = query.unflatten(1, (key.shape[1], -1)) * scaling
    if not steering.moves:
        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
        weights = _scores(grouped[..., -1:, :], key, attention_mask, query.shape[2] - 1, query.shape[2])[:, :, 0].softmax(-1)
        steering.seen.append((weights * span[:, None]).sum(-1))
        return output, None
    blocks = []
    block = max(1, _SCORES_AT_ONCE // (query.shape[0] * query.shape[1] * key.shape[2]))
    for start in range(0, query.shape[2], block):
        scores = _scores(grouped[..., start : start + block, :], key, attention_mask, start, query.shape[2])
        log_odds = _log_odds(scores, span)
        shifted = _shift(steering, log_odds, module.layer_idx)
        change = torch.where(log_odds.isfinite(), shifted - log_odds, 0.0)
        weights = (scores + change.unsqueeze(-1) * span[:, None, None]).softmax(-1)
        weights = weights.nan_to_num(0.0).to(value.dtype)  # the queries of padding may see nothing
        mixed = weights.unflatten(1, (key.shape[1], -1)).flatten(2, 3) @ value
        blocks.append(mixed.unflatten(2, (-1, scores.shape[2])).flatten(1, 2))
    if steering.trace:
        steering.seen.append(shifted[..., -1].sigmoid())
    return torch.cat(blocks, 2).transpose(1, 2), None


def _scores(grouped: Tensor, key: Tensor, mask: Tensor | None, start: int, queries: int) -> Tensor:
    """Masked scores, float32 [B, H, q, K], of the queries from `start` on; `grouped` is [B, G, H/G, q, D], scaled."""
    count = grouped.shape[3]
    scores = (grouped.flatten(2, 3) @ key.transpose(-1, -2)).float()
    scores = scores.unflatten(2, (-1, count)).flatten(1, 2)
    if mask is not None:
        mask = mask[:, :, start : start + count, : key.shape[2]]
        return scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if queries > 1:  # a plain causal prefill comes without a mask
        places = torch.arange(start, start + count, device=key.device) + key.shape[2] - queries
        scores = scores.masked_fill(torch.arange(key.shape[2], device=key.device) > places[:, None], -torch.inf)
    return scores


def _log_odds(scores: Tensor, span: Tensor) -> Tensor:
    """lse over the span less lse over the rest, [B, H, q]; -inf where the span is not in sight."""
    span = span[:, None, None]
    on_span = scores.masked_fill(~span, -torch.inf).logsumexp(-1)
    return on_span - scores.masked_fill(span, -torch.inf).logsumexp(-1)


def _shift(steering: Steering, log_odds: Tensor, layer: int) -> Tensor:
    """Applies each row's methods to its log-odds; rows that share their methods are moved together."""
    groups: dict[tuple, list[int]] = {}
    for row, methods in enumerate(steering.methods):
        groups.setdefault(tuple(methods), []).append(row)
    shifted = log_odds.clone()
    for methods, rows in groups.items():
        moved = log_odds[rows]
        for method in methods:
            moved = method.shift(moved, layer)
        shifted[rows] = moved
    return shifted


AttentionInterface.register(IMPLEMENTATION, holdfast_attention)
AttentionMaskInterface.register(IMPLEMENTATION, sdpa_mask)
