"""Constraints on the next token of a row: penalties on tokens already drawn, and a grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class Matcher(Protocol):
    """Follows one reply, and says which tokens its grammar allows next."""

    def prepare(self, token_ids: Sequence[int]) -> None:
        """Starts computing which tokens may follow these, in parallel with the model's pass."""

    def allowed(self, token_ids: Sequence[int]) -> Tensor:
        """Whether each token may follow these, bool [vocabulary of the tokenizer], on the host.

        Raises:
            ModelError: no token can continue the reply.
        """


class TokenGrammar(Protocol):
    """A grammar that restricts the text of a reply."""

    def matcher(self) -> Matcher:
        """Returns a new matcher, positioned at the beginning of a reply."""


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
    errors: dict[int, Exception]  # by number of the row, for rows that cannot continue


def constrain(rows: Sequence[DrawsTokens], logits: Tensor) -> EditedLogits:
    """Applies the rows' constraints to their logits, [row, vocabulary].

    Rows without constraints keep their logits. A row whose grammar cannot continue gets an error.
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
            # logits beyond the tokenizer's vocabulary stay forbidden: they belong to no token
            torch.logical_not(allowed, out=forbidden[: len(allowed)])
        masks.append(forbidden)
    if matched:
        mask = torch.stack(masks).to(logits.device)
        logits[matched] = logits[matched].masked_fill(mask, -torch.inf)
    return EditedLogits(logits, errors)


def _penalise(rows: Sequence[tuple[int, DrawsTokens]], logits: Tensor) -> None:
    """Subtracts the penalties of OpenAI's API from logits [row, vocabulary], in place.

    Each token that the row has drawn `count` > 0 times loses `frequency * count + presence`.
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
