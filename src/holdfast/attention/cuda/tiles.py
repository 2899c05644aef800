"""Which blocks of keys hold columns of the span, of the rest, or of both: found once per pass, on
the device, and read by the prefill kernel of every layer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from holdfast.attention.cuda.arguments import Columns

REST, SPAN, MIXED, UNSEEN = range(4)  # what a tile holds; the kernel knows these numbers
_OUT_OF_SIGHT = 2  # as a member; 0 and 1 are REST and SPAN


@dataclass(frozen=True)
class Shape:
    """How a pass is cut up: a program takes `queries` queries, and `keys` keys at a time."""

    queries: int
    keys: int


@dataclass(frozen=True)
class Sight:
    """What the queries of a pass see of the columns in sight of their row.

    Args:
        causal: query i sees the columns up to `offset` + i.
        offset: int [B], the column of a row's first query; None: 0.
        mask: bool [B or 1, 1, Q, K], in place of `causal`: True where a query sees a key.
    """

    causal: bool = True
    offset: Tensor | None = None
    mask: Tensor | None = None


@dataclass(frozen=True)
class Tiles:
    """The blocks of keys of a pass, T to a row.

    Args:
        shape: the sizes of blocks.
        sight: what was asked for.
        members: uint8 [B, T * keys]: REST, SPAN, or 2 for columns out of sight.
        order: int32 [B, T], the tiles that hold nothing but the rest, then those that hold nothing
            but the span, then the mixed ones, then those out of sight, each in order.
        places: int32 [B, 3, T + 1], by kind and tile: where in `order` the tiles of that kind begin
            that do not come before the tile.
        reach: int32 [B or 1, blocks of queries, 4], by the mask: the first tile that any of the
            queries sees, the first and last-but-one of a run that all of them see, and one more
            than the last that any sees; None without a mask.
    """

    shape: Shape
    sight: Sight
    members: Tensor
    order: Tensor
    places: Tensor
    reach: Tensor | None


def cut(columns: Columns, keys: int, sight: Sight, shape: Shape) -> Tiles:
    """Cuts a pass over `keys` keys into tiles, without reading anything back to the host."""
    members = _members(columns, keys, shape.keys)
    tiles = members.reshape(len(members), -1, shape.keys)
    rest, span, unseen = ((tiles == kind).any(-1) for kind in (REST, SPAN, _OUT_OF_SIGHT))
    kinds = torch.where(span, SPAN, REST)
    kinds = torch.where((rest & span) | ((rest | span) & unseen), MIXED, kinds)
    kinds = torch.where(rest | span, kinds, UNSEEN)
    order = kinds.sort(dim=1, stable=True).indices
    own = kinds[:, None] == torch.arange(3, device=kinds.device)[:, None]
    starts = (kinds[:, None] < torch.arange(3, device=kinds.device)[:, None]).sum(-1, keepdim=True)
    places = starts + pad(own.cumsum(-1), (1, 0))
    reach = None if sight.mask is None else _reach(sight.mask, shape)
    return Tiles(shape, sight, members, order.int(), places.int(), reach)


def _members(columns: Columns, keys: int, size: int) -> Tensor:
    """uint8 [B, keys rounded up to tiles]."""
    count = -(-keys // size) * size
    column = torch.arange(count, device=columns.span.device)
    span = columns.span[:, :count]
    held = pad(span, (0, count - span.shape[1]))
    if columns.holds_generated is not None and columns.prompt is not None:
        held = held | (columns.holds_generated[:, None] & (column >= columns.prompt[:, None]))
    hidden = (column >= keys)[None]
    if columns.first is not None:
        hidden = hidden | (column < columns.first[:, None])
    if columns.length is not None:
        hidden = hidden | (column >= columns.length[:, None])
    return torch.where(hidden, _OUT_OF_SIGHT, held.to(torch.uint8)).to(torch.uint8)


def _reach(mask: Tensor, shape: Shape) -> Tensor:
    """For each block of queries the first tile that any of them sees, the run of tiles that all of
    them see, and the end of what any sees, [B or 1, blocks, 4]; empty ranges where there is none.
    """
    queries, keys = mask.shape[2:]
    beyond = 0, -keys % shape.keys, 0, -queries % shape.queries
    cut_up = len(mask), (queries + beyond[3]) // shape.queries, shape.queries, -1, shape.keys
    some = pad(mask[:, 0], beyond).reshape(cut_up).any(-1).any(2)
    every = pad(mask[:, 0], beyond, value=True).reshape(cut_up).all(-1).all(2) & some
    count = some.shape[2]
    tile = torch.arange(count, device=mask.device)
    end = torch.where(some, tile + 1, 0).amax(-1)
    begin = torch.minimum(torch.where(some, tile, count).amin(-1), end)
    first = torch.minimum(torch.where(every, tile, count).amin(-1), end)
    behind = ~every & (tile > first[..., None])
    last = torch.minimum(torch.where(behind, tile, count).amin(-1), end)
    return torch.stack([begin, first, last, end], -1).int()
