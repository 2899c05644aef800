"""From the outputs of a pass to the logits that tokens are drawn from.

Processors combine a request's logits with a second stream of logits, those of its second prompt;
then its penalties and its grammar constrain the next token.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def process(step: StepOutputs) -> EditedLogits:
    """Applies each request's processors, in order, to its logits.

    Requests that share a processor are processed together. A request whose processor fails gets an
    error.
    """
    logits = step.logits
    errors = dict[int, Exception]()
    paired = [i for i, state in enumerate(step.requests) if len(state.sequences) > 1]
    second_of = {i: second for second, i in enumerate(paired)}
    for turn in range(max(len(state.request.processors) for state in step.requests)):
        indices_of: dict[EditsLogits, list[int]] = {}
        for i, state in enumerate(step.requests):
            if turn < len(state.request.processors) and i not in errors:
                indices_of.setdefault(state.request.processors[turn], []).append(i)
        for processor, indices in indices_of.items():
            second = step.second_logits[[second_of[i] for i in indices]]
            try:
                combined = processor.combine_logits(logits[indices].float(), second)
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
    penalised = [(i, state) for i, state in enumerate(requests) if state.request.penalties]
    matchers = {i: state.matcher for i, state in enumerate(requests) if state.matcher is not None}
    if not penalised and not matchers:
        return EditedLogits(logits, {})
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    if penalised:
        _penalise(penalised, logits)
    errors = dict[int, Exception]()
    masks = list[Tensor]()
    width = logits.shape[-1]
    for i, matcher in matchers.items():
        forbidden = torch.ones(width, dtype=torch.bool)
        try:
            allowed = matcher.allowed(requests[i].token_ids)[:width]
        except Exception as error:
            errors[i] = error
        else:
            # logits beyond the tokenizer's vocabulary stay forbidden: they belong to no token
            torch.logical_not(allowed, out=forbidden[: len(allowed)])
        masks.append(forbidden)
    if matchers:
        matched = list(matchers)
        mask = torch.stack(masks).to(logits.device)
        logits[matched] = logits[matched].masked_fill(mask, -torch.inf)
    return EditedLogits(logits, errors)


def _penalise(penalised: Sequence[tuple[int, RequestState]], logits: Tensor) -> None:
    """Subtracts the penalties of OpenAI's API from logits [request, vocabulary], in place.

    Each token that a reply already has `count` > 0 times loses `frequency * count + presence`.

    Args:
        penalised: the requests with penalties, each after its index.
        logits: of all requests.
    """
    indices = list[int]()
    token_ids = list[int]()
    amounts = list[Tensor]()
    for i, state in penalised:
        penalties = state.request.penalties
        counts = torch.tensor([*state.token_counts.values()], dtype=torch.float64)
        indices += [i] * len(counts)
        token_ids += state.token_counts
        amounts.append(penalties.frequency * counts + penalties.presence)
    where = torch.tensor([indices, token_ids], dtype=torch.long).to(logits.device)
    logits[where[0], where[1]] -= torch.cat(amounts).to(logits.device, logits.dtype)
