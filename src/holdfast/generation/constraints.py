"""Constraints on the next token of a row: penalties on what it has drawn, and a grammar's mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Matcher(Protocol):
    """Follows one reply, and says which tokens a grammar allows next."""

    def prepare(self, token_ids: Sequence[int]) -> None:
        """Begins to compute what may come after these tokens, while the model makes its pass."""

    def allowed(self, token_ids: Sequence[int]) -> Tensor:
        """Whether each token may come after these, bool [vocabulary of the tokenizer], on the host.

        Raises:
            ModelError: the grammar cannot go on.
        """


class TokenGrammar(Protocol):
    """The texts that a reply may be."""

    def matcher(self) -> Matcher:
        """A matcher at the beginning of a reply."""


class DrawsTokens(Protocol):
    """The part of a row's state that its constraints read."""

    @property
    def token_ids(self) -> list[int]: ...
    @property
    def token_counts(self) -> Mapping[int, int]: ...
    @property
    def penalties(self) -> tuple[float, float]: ...
    @property
    def matcher(self) -> Matcher | None: ...


class EditedLogits(NamedTuple):
    """Logits to draw tokens from, [row, vocabulary]."""

    logits: Tensor
    errors: dict[int, Exception]  # of rows that cannot go on, by number


def constrain(rows: Sequence[DrawsTokens], logits: Tensor) -> EditedLogits:
    """Applies the constraints of rows to their logits, [row, vocabulary]; others stay as they are.
    A row whose grammar cannot go on has an error.
    """
    penalised = [number for number, state in enumerate(rows) if any(state.penalties)]
    matched = [number for number, state in enumerate(rows) if state.matcher is not None]
    if not penalised and not matched:
        return EditedLogits(logits, {})
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    if penalised:
        _penalise([(number, rows[number]) for number in penalised], logits)
    errors = dict[int, Exception]()
    masks = list[Tensor]()
    for number in matched:
        state = rows[number]
        width = logits.shape[-1]
        forbidden = torch.ones(width, dtype=torch.bool)
        try:
            assert state.matcher is not None
            allowed = state.matcher.allowed(state.token_ids)[:width]
        except Exception as error:
            errors[number] = error
        else:
            # logits beyond the tokenizer's vocabulary belong to no token
            torch.logical_not(allowed, out=forbidden[: len(allowed)])
        masks.append(forbidden)
    if matched:
        mask = torch.stack(masks).to(logits.device)
        logits[matched] = logits[matched].masked_fill(mask, -torch.inf)
    return EditedLogits(logits, errors)


def _penalise(rows: Sequence[tuple[int, DrawsTokens]], logits: Tensor) -> None:
    """Subtracts the penalties of OpenAI's API from logits [row, vocabulary], in place.

    `frequency * count + presence`, for each token that the row has drawn `count` > 0 times.
    """
    numbers = list[int]()
    ids = list[int]()
    amounts = list[Tensor]()
    for number, state in rows:
        frequency, presence = state.penalties
        counts = torch.tensor([*state.token_counts.values()], dtype=torch.float64)
        numbers += [number] * len(counts)
        ids += state.token_counts
        amounts.append(frequency * counts + presence)
    where = torch.tensor([numbers, ids], dtype=torch.long).to(logits.device)
    logits[where[0], where[1]] -= torch.cat(amounts).to(logits.device, logits.dtype)
