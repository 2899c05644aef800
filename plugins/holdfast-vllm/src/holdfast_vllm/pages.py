"""Keys and values of steered rows, gathered from the pages of vLLM's CPU cache.

Its pages hold, per key head, all keys and then all values: keys by size first ([size, token]),
values by token. `is_readable` checks that by writing some.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from vllm import _custom_ops as ops


def gathered(cache: Tensor, pages: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Keys [row, page, group, size of a head, token] and values [row, page, group, token, size].

    Args:
        cache: [page, group, token, 2 * size of a head].
        pages: int64 [row * page].
        rows: as many.
    """
    _, groups, size, both = cache.shape
    chosen = cache.index_select(0, pages).view(rows, -1, groups, 2, size * both // 2)
    keys, values = chosen.unbind(3)
    return keys.unflatten(-1, (both // 2, size)), values.unflatten(-1, (size, both // 2))


def in_order(cache: Tensor, pages: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Keys and values of one row, [1, group, length, size of a head] each.

    The numbers of a head lie side by side: PyTorch's CPU kernel gives wrong log-sum-exps otherwise.
    """
    keys, values = gathered(cache, pages, 1)
    keys = keys[0].permute(1, 0, 3, 2).contiguous().flatten(1, 2)
    values = values[0].transpose(0, 1).contiguous().flatten(1, 2)
    return keys[None, :, :length], values[None, :, :length]


@lru_cache
def is_readable(isa: str, size: int, head_size: int, dtype: torch.dtype) -> bool:
    """Whether vLLM's kernels of this instruction set lay pages out so; AMX does not."""
    tokens = torch.arange(2 * size)
    key = torch.randn(len(tokens), 1, head_size).to(dtype)
    value = torch.randn(len(tokens), 1, head_size).to(dtype)
    cache = torch.zeros(2, 1, size, 2 * head_size, dtype=dtype)
    parts = cache.view(2, 1, 2 * size, head_size).chunk(2, dim=2)
    ops.cpu_attn_reshape_and_cache(
        key, value, *parts, tokens, isa, k_scale=1.0, v_scale=1.0, kv_cache_dtype="auto"
    )
    keys, values = in_order(cache, tokens[:2], len(tokens))
    return torch.equal(keys[0, 0], key[:, 0]) and torch.equal(values[0, 0], value[:, 0])
