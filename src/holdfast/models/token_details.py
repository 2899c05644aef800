"""The tokens of replies as they are streamed, with the details that were requested."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

import torch
from torch import Tensor

from holdfast.engine.rows import RowState
from holdfast.models.requests import Token


def new_tokens(rows: Mapping[RowState, int]) -> dict[RowState, list[Token]]:
    """The tokens of rows, from the given number on, with their mass and log-probabilities."""
    masses = _new_masses(rows)
    tokens_of = dict[RowState, list[Token]]()
    for row, first in rows.items():
        tokens, details = list[Token](), row.log_probabilities[first : len(row.token_ids)]
        for token_id, mass, drawn in zip_longest(
            row.token_ids[first:], masses.get(row, ()), details
        ):
            logprob, top = (None, ()) if drawn is None else (drawn.drawn, drawn.top)
            mean = uniform = heads = None
            if mass is not None:
                heads = mass[:, :-1]
                mean, uniform = float(heads.mean()), float(mass[:, -1].mean())
            tokens.append(Token(token_id, mean, uniform, heads, logprob, top, row.cached))
        tokens_of[row] = tokens
    return tokens_of


def _new_masses(rows: Mapping[RowState, int]) -> dict[RowState, list[Tensor]]:
    """The masses on the span of these tokens, for the rows that trace them.

    Each is float32 [layer, head], with that of uniform attention as an extra column; all are copied
    from the device together.
    """
    wanted = dict[RowState, list[Tensor]]()
    for row, first in rows.items():
        if len(row.token_ids) > first and row.row.trace and any(row.row.streams[0].span):
            new = slice(first, len(row.token_ids))
            pairs = zip(row.masses[new], row.uniform_masses[new], strict=True)
            wanted[row] = [torch.column_stack(pair) for pair in pairs]
    new_masses = [mass for masses in wanted.values() for mass in masses]
    if not new_masses:
        return {}
    copied = iter(torch.stack(new_masses).float().cpu())
    return {row: [next(copied) for _ in masses] for row, masses in wanted.items()}
