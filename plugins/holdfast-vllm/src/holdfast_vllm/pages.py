"""Reads keys and values of steered rows from the pages of vLLM's CPU cache.

For each key head, a page has all keys and then all values: keys as [size, token], values as
[token, size]. `is_readable` verifies this layout by writing a few tokens.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor
from vllm import _custom_ops as ops


def read_pages(cache: Tensor, pages: Tensor) -> tuple[Tensor, Tensor]:
    """Reads the keys and values of all tokens in pages: [row, group, token, size of a head] each.

    Both are contiguous within a head, because PyTorch's CPU kernel otherwise returns wrong
    log-sum-exps.

    Args:
        cache: [page, group, token, 2 * size of a head].
        pages: int64 [row, page].
    """
    _, groups, page_size, double_size = cache.shape
    head_size = double_size // 2
    shape = *pages.shape, groups, 2, page_size * head_size
    keys, values = cache.index_select(0, pages.flatten()).view(shape).unbind(3)
    keys = keys.unflatten(-1, (head_size, page_size)).permute(0, 2, 1, 4, 3)
    values = values.unflatten(-1, (page_size, head_size)).transpose(1, 2)
    return keys.contiguous().flatten(2, 3), values.contiguous().flatten(2, 3)


@lru_cache
def is_readable(isa: str, page_size: int, head_size: int, dtype: torch.dtype) -> bool:
    """Whether vLLM's kernels for an instruction set use this page layout; those for AMX do not."""
    tokens = torch.arange(2 * page_size)
    key = torch.randn(len(tokens), 1, head_size).to(dtype)
    value = torch.randn(len(tokens), 1, head_size).to(dtype)
    cache = torch.zeros(2, 1, page_size, 2 * head_size, dtype=dtype)
    keys_and_values = cache.view(2, 1, 2 * page_size, head_size).chunk(2, dim=2)
    ops.cpu_attn_reshape_and_cache(
        key, value, *keys_and_values, tokens, isa, k_scale=1.0, v_scale=1.0, kv_cache_dtype="auto"
    )
    keys, values = read_pages(cache, tokens[None, :2])
    return torch.equal(keys[0, 0], key[:, 0]) and torch.equal(values[0, 0], value[:, 0])
