"""The tokens of replies as they are streamed, with the details that were requested."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from holdfast.generation.rows import RowState, TokenMass
from holdfast.models.requests import Token


def new_tokens(rows: Mapping[RowState, int]) -> dict[RowState, list[Token]]:
    """The tokens of rows, from the given number on, with their mass and log-probabilities."""
    masses = _new_masses(rows)
    return {row: _tokens(row, first, masses.get(row, [])) for row, first in rows.items()}


def _tokens(row: RowState, first: int, masses: list[TokenMass]) -> list[Token]:
    """The tokens of a row from `first` on; `masses` has one for each of them, or none."""
    tokens: list[Token] = []
    for number in range(first, len(row.token_ids)):
        mass = masses[number - first] if masses else None
        # there are as many as tokens if they were requested, and none otherwise
        drawn = row.log_probabilities[number] if row.log_probabilities else None
        token = Token(
            token_id=row.token_ids[number],
            mass=float(mass.heads.mean()) if mass else None,
            uniform=float(mass.uniform.mean()) if mass else None,
            heads=mass.heads if mass else None,
            logprob=drawn.drawn if drawn else None,
            top=drawn.top if drawn else (),
            cached=row.cached,
        )
        tokens.append(token)
    return tokens


def _new_masses(rows: Mapping[RowState, int]) -> dict[RowState, list[TokenMass]]:
    """The masses at these tokens, float32 on the CPU, for the rows that trace them."""
    traced = {
        row: slice(first, len(row.token_ids))
        for row, first in rows.items()
        if len(row.token_ids) > first and row.row.traces_span
    }
    if not traced:
        return {}
    counts = [tokens.stop - tokens.start for tokens in traced.values()]
    masses = [mass for row, tokens in traced.items() for mass in row.masses[tokens]]
    # those of all rows are copied from the device together, as each copy waits for it
    heads_by_row = torch.split(_copied([mass.heads for mass in masses]), counts)
    uniform_by_row = torch.split(_copied([mass.uniform for mass in masses]), counts)
    return {
        row: list(map(TokenMass, row_heads, row_uniform))
        for row, row_heads, row_uniform in zip(traced, heads_by_row, uniform_by_row, strict=True)
    }


def _copied(masses: list[Tensor]) -> Tensor:
    return torch.stack(masses).float().cpu()
