"""From the outputs of a pass to the logits that tokens are drawn from.

Processors combine a request's logits with a second stream of logits, those of its second prompt;
then its penalties and its grammar constrain the next token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.token_requests import RequestState
from holdfast.methods.protocols import EditsLogits


@dataclass(frozen=True)
class StepOutputs:
    """The outputs of a pass, by request."""

    requests: Sequence[RequestState]  # those that draw a token
    logits: Tensor  # after the first prompt and the reply, [request, vocabulary]
    second_logits: Tensor  # after the second prompt, [request with two prompts, vocabulary]
    mass: Tensor | None  # mass on the span, [request, layer, head]; None unless traced
    uniform: Tensor | None  # mass under uniform attention, [request, layer]; None unless traced


class EditedLogits(NamedTuple):
    """Logits to draw tokens from, [request, vocabulary]."""

    logits: Tensor
    errors: dict[int, Exception]  # by the index of a request that cannot continue


def apply_processors(outputs: StepOutputs) -> EditedLogits:
    """Applies each request's processors, in order, to its logits.

    Requests that share a processor are processed together. A request whose processor fails gets an
    error.
    """
    logits = outputs.logits
    requests = outputs.requests
    errors = dict[int, Exception]()
    paired = [index for index, state in enumerate(requests) if len(state.sequences) > 1]
    second_row_of = {index: row for row, index in enumerate(paired)}
    for stage in range(max(len(state.request.processors) for state in requests)):
        indices_of: dict[EditsLogits, list[int]] = {}
        for index, state in enumerate(requests):
            if stage < len(state.request.processors) and index not in errors:
                indices_of.setdefault(state.request.processors[stage], []).append(index)
        for processor, indices in indices_of.items():
            second_logits = outputs.second_logits[[second_row_of[index] for index in indices]]
            try:
                combined = processor.combine_logits(logits[indices].float(), second_logits)
            except Exception as error:
                if ran_out_of_memory(error):
                    raise
                errors |= dict.fromkeys(indices, error)
            else:
                wide = torch.promote_types(logits.dtype, combined.dtype)
                logits = logits.to(wide, copy=True)
                logits[indices] = combined.to(wide)
    return EditedLogits(logits, errors)


def constrain(requests: Sequence[RequestState], logits: Tensor) -> EditedLogits:
    """Applies the requests' penalties and grammars to their logits, [request, vocabulary].

    A request whose grammar cannot continue gets an error.
    """
    penalised = {index: state for index, state in enumerate(requests) if state.request.penalties}
    restricted = {index: state for index, state in enumerate(requests) if state.matcher is not None}
    if not penalised and not restricted:
        return EditedLogits(logits, {})
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    if penalised:
        _subtract_penalties(penalised, logits)
    errors = _forbid_tokens(restricted, logits) if restricted else {}
    return EditedLogits(logits, errors)


def _subtract_penalties(penalised: Mapping[int, RequestState], logits: Tensor) -> None:
    """Subtracts the penalties of OpenAI's API from logits [request, vocabulary], in place.

    Each token that a reply already has `count` > 0 times loses `frequency * count + presence`.

    Args:
        penalised: the requests with penalties, by index.
        logits: of all requests.
    """
    indices = list[int]()
    token_ids = list[int]()
    amounts = list[Tensor]()
    for index, state in penalised.items():
        penalties = state.request.penalties
        counts = torch.tensor([*state.token_counts.values()], dtype=torch.float64)
        indices += [index] * len(counts)
        token_ids += state.token_counts
        amounts.append(penalties.frequency * counts + penalties.presence)
    where = torch.tensor([indices, token_ids], dtype=torch.long).to(logits.device)
    logits[where[0], where[1]] -= torch.cat(amounts).to(logits.device, logits.dtype)


def _forbid_tokens(restricted: Mapping[int, RequestState], logits: Tensor) -> dict[int, Exception]:
    """Sets the logits of tokens that a reply's grammar forbids to -inf, in place.

    Args:
        restricted: the requests with a grammar, by index.
        logits: of all requests, [request, vocabulary].

    Returns:
        The errors of requests that cannot continue, by index.
    """
    errors = dict[int, Exception]()
    masks = list[Tensor]()
    width = logits.shape[-1]
    for index, state in restricted.items():
        assert state.matcher is not None, "it has a grammar"
        forbidden = torch.ones(width, dtype=torch.bool)
        try:
            allowed = state.matcher.allowed(state.token_ids)[:width]
        except Exception as error:
            errors[index] = error
        else:
            # logits beyond the tokenizer's vocabulary stay forbidden: they belong to no token
            torch.logical_not(allowed, out=forbidden[: len(allowed)])
        masks.append(forbidden)
    indices = list(restricted)
    mask = torch.stack(masks).to(logits.device)
    logits[indices] = logits[indices].masked_fill(mask, -torch.inf)
    return errors
