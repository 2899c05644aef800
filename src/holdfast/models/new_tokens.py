"""The tokens of running replies that were not reported yet, with mass and log-probabilities.

For example:

    a reply of 5 tokens, of which 3 were reported -> new_tokens: its tokens 4 and 5
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import torch
from torch import Tensor

from holdfast.generation.token_requests import RequestState, TokenMass
from holdfast.models.requests import Token


def new_tokens(num_reported: Mapping[RequestState, int]) -> dict[RequestState, list[Token]]:
    """The tokens of each reply that were not reported, with their mass and log-probabilities."""
    masses = _new_masses(num_reported)
    return {
        state: _tokens_after(state, number, masses.get(state))
        for state, number in num_reported.items()
    }


def _tokens_after(
    state: RequestState, num_reported: int, masses: list[TokenMass] | None
) -> list[Token]:
    """The tokens of a reply after those that were reported.

    Args:
        masses: one for each of these tokens; None if they were not traced.
    """
    tokens: list[Token] = []
    for index in range(num_reported, len(state.token_ids)):
        mass = masses[index - num_reported] if masses is not None else None
        # the list is empty unless log-probabilities were requested
        drawn = state.log_probabilities[index] if state.log_probabilities else None
        token = Token(
            token_id=state.token_ids[index],
            mass=float(mass.heads.mean()) if mass else None,
            uniform=float(mass.uniform.mean()) if mass else None,
            heads=mass.heads if mass else None,
            logprob=drawn.drawn if drawn else None,
            top=drawn.top if drawn else (),
            cached=state.cached,
        )
        tokens.append(token)
    return tokens


def _new_masses(num_reported: Mapping[RequestState, int]) -> dict[RequestState, list[TokenMass]]:
    """The masses at the tokens of each reply that were not reported, float32 on the CPU.

    Requests without a trace are left out.
    """
    traced = {
        state: state.masses[number : len(state.token_ids)]
        for state, number in num_reported.items()
        if len(state.token_ids) > number and state.request.traces_span
    }
    if not traced:
        return {}
    counts = [len(masses) for masses in traced.values()]
    all_masses = list(chain(*traced.values()))
    # one copy for all requests, because each copy waits for the device
    heads_of = torch.split(_copy_to_cpu([mass.heads for mass in all_masses]), counts)
    uniform_of = torch.split(_copy_to_cpu([mass.uniform for mass in all_masses]), counts)
    return {
        state: list(map(TokenMass, heads, uniform))
        for state, heads, uniform in zip(traced, heads_of, uniform_of, strict=True)
    }


def _copy_to_cpu(masses: list[Tensor]) -> Tensor:
    return torch.stack(masses).float().cpu()
