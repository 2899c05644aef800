"""The attention mask of a layer in the current pass, registered with transformers as "holdfast"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from holdfast.attention.key_groups import Starts
from holdfast.attention.passes import PASS, Pass
from holdfast.attention.plain_attention import IMPLEMENTATION, plain_name


@torch.compiler.disable  # type: ignore[untyped-decorator]
def holdfast_mask(**kwargs: Any) -> Tensor | None:
    """Implements transformers' mask interface.

    Returns SDPA's mask in a steered pass, and otherwise the mask of the model's own attention. It
    also reports the columns of the keys to a steered pass.
    """
    current = PASS.get()
    config = kwargs.get("config")
    if current is not None and current.model is not None and not current.model.has_config(config):
        current = None  # the mask is for another model, which runs inside that pass
    name = plain_name(config)
    if current is not None and current.state is not None:
        name = "sdpa"
        if "allow_is_bidirectional_skip" not in kwargs:  # with it, the keys come from an encoder
            q_length = int(kwargs.get("q_length", 0))
            kv_length = int(kwargs.get("kv_length", 0))
            first = _starts_of(current, kv_length) or int(kwargs.get("kv_offset", 0))
            current.state.report_keys(kwargs.get("q_offset", 0), q_length, first, kv_length)
    if current is not None and current.positions is not None:
        return _mask_by_positions(current, name, **kwargs)
    return ALL_MASK_ATTENTION_FUNCTIONS[name](**kwargs)  # type: ignore[no-any-return]


def _starts_of(current: Pass, keys: int) -> Starts | None:
    """Returns where this number of keys begins, if rows differ in it; otherwise None."""
    return current.starts if current.starts is not None and current.starts.keys == keys else None


def _mask_by_positions(
    current: Pass,
    plain: str,
    *,
    mask_function: Callable[..., Tensor],
    kv_length: int,
    kv_offset: int = 0,
    dtype: torch.dtype = torch.float32,
    **_: Any,
) -> Tensor:
    """Makes the mask of the model's own rule, [row, 1, query, key], in the format of `plain`.

    Queries are identified by their position, keys by their column.
    """
    positions = current.positions
    starts = _starts_of(current, kv_length)
    assert positions is not None
    rows = torch.arange(len(positions), device=positions.device)[:, None, None, None]
    first = kv_offset if starts is None else starts.on_device[:, :, None, None]
    keys = torch.arange(kv_length, device=positions.device)[None, None, None] + first
    seen = mask_function(rows, rows.new_zeros(()), positions[:, None, :, None], keys)
    seen = seen.expand(len(positions), 1, positions.shape[1], kv_length)
    if plain != "eager":
        return seen
    return torch.zeros_like(seen, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)


AttentionMaskInterface.register(IMPLEMENTATION, holdfast_mask)
