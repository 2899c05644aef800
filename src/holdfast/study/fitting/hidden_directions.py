"""Learns directions of hidden states: differences of their means over two kinds of replies.

The model replies to each question with a system prompt ("prompted") and without it ("plain"), and
then reads its own replies. Persona vectors (arXiv 2507.21509) are the difference of the two means.
Capping (arXiv 2601.10387) uses its unit vector, and percentiles of projections onto that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.chat.messages import Message
from holdfast.drift.progress import Progress
from holdfast.errors import ModelError, option
from holdfast.generation.batch import SequenceGroup, batch_of
from holdfast.generation.sampling import Sampling
from holdfast.generation.token_requests import TokenPrompt, TokenSequence
from holdfast.methods import UNSTEERED
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.states import Site, sites_of, watch_states
from holdfast.study.fitting.examples import Contrast, FitResult

_SAMPLING = Sampling(temperature=1.0, top_p=0.9, max_new_tokens=48)
# The layers to cap, as shares of the depth: the authors cap layers 56-71 of 80, and 46-53 of 64.
_CAPPED_DEPTHS = (0.7, 0.9)


@dataclass(frozen=True)
class _AnsweredChat:
    """A rendered chat with the reply of the model."""

    prompt: TokenPrompt
    reply: tuple[int, ...]  # token ids


class _ReplyStates(NamedTuple):
    """The hidden states of the tokens of every reply, each [layer, token, size]."""

    layers: tuple[int, ...]
    prompted: list[Tensor]
    plain: list[Tensor]


def learn_vector(model: LocalModel, examples: Sequence[Contrast], progress: Progress) -> FitResult:
    """Learns the difference of the means, [layer, size], and the layer that separates prompted from
    plain replies best.

    To choose the layer, a direction is learned on every other reply and tested on the rest, or on
    the same reply if there is only one.
    """
    states = _read_replies(model, examples, progress)
    layers = states.layers
    prompted = states.prompted
    plain = states.plain
    half_difference = _means(prompted[::2]) - _means(plain[::2])
    separation = _separation(half_difference, prompted[1::2] or prompted, plain[1::2] or plain)
    best = layers[int(separation.argmax())]
    facts = {"separation": [round(float(value), 3) for value in separation]}  # by layer
    difference = _means(prompted) - _means(plain)
    return FitResult({"difference": difference.float()}, layers, (best,), facts=facts)


def learn_capping(model: LocalModel, examples: Sequence[Contrast], progress: Progress) -> FitResult:
    """Learns the unit vector that points away from prompted replies, [layer, size], and percentiles
    0 to 100 of their tokens' projections onto it, [layer, 101].
    """
    states = _read_replies(model, examples, progress)
    away = _means(states.plain) - _means(states.prompted)
    direction = away / away.norm(dim=-1, keepdim=True)
    tokens = torch.cat(states.prompted, 1)  # [layer, token, size]
    projections = torch.einsum("lti,li->lt", tokens, direction)
    percents = torch.linspace(0, 1, 101, dtype=projections.dtype)
    percentiles = torch.quantile(projections, percents, dim=1).T
    tensors = {"direction": direction.float(), "percentiles": percentiles.float()}
    return FitResult(tensors, states.layers, _layers_to_cap(states.layers))


def _layers_to_cap(layers: Sequence[int]) -> tuple[int, ...]:
    """Returns the layers in the range `_CAPPED_DEPTHS`, at least one."""
    first, last = (round(share * len(layers)) for share in _CAPPED_DEPTHS)
    return tuple(layers[min(first, len(layers) - 1) : max(last, first + 1)])


def _read_replies(
    model: LocalModel, examples: Sequence[Contrast], progress: Progress
) -> _ReplyStates:
    """Samples replies to both chats of the examples, and reads their hidden states."""
    layers = tuple(sorted(sites_of(model.hf_model).points[Site.HIDDEN]))
    if not layers:
        raise ModelError(
            f"{model.name} ({type(model.hf_model).__name__}) gives no hidden states behind its"
            " layers, so nothing can be fitted on them; use a method of another kind.",
            option="model",
            value=model.name,
        )

    def states_of_replies(chats: Sequence[tuple[Message, ...]]) -> list[Tensor]:
        replies: list[Tensor] = []
        for chat in _sample_replies(model, chats):
            hidden = _hidden_states(model, chat)
            states = torch.stack([hidden[layer][0].double().cpu() for layer in layers])
            replies.append(states[:, -len(chat.reply) :])
            progress(1)
        return replies

    prompted = states_of_replies([example.prompted for example in examples])
    plain = states_of_replies([_without_default(example.plain) for example in examples])
    if not prompted or not plain:
        raise ModelError(
            f"No reply has a token to learn from; give other chats with {option('data')}."
        )
    return _ReplyStates(layers, prompted, plain)


def _without_default(chat: tuple[Message, ...]) -> tuple[Message, ...]:
    """Gives a chat without a system message an empty one, so that no default is inserted."""
    has_system = any(message["role"] == "system" for message in chat)
    return chat if has_system else ({"role": "system", "content": ""}, *chat)


def _means(replies: Sequence[Tensor]) -> Tensor:
    """Averages each reply over its tokens, and then over replies, [layer, size]."""
    return torch.stack([states.mean(1) for states in replies]).mean(0)


def _separation(directions: Tensor, prompted: Sequence[Tensor], plain: Sequence[Tensor]) -> Tensor:
    """Returns how far apart prompted and plain replies lie along a direction, in units of their
    spread, [layer].
    """

    def project(replies: Sequence[Tensor]) -> Tensor:
        """Projects the mean of each reply, [reply, layer]."""
        return torch.stack([(states.mean(1) * directions).sum(-1) for states in replies])

    on_prompted = project(prompted)
    on_plain = project(plain)
    spread = (on_prompted.var(0, correction=0) + on_plain.var(0, correction=0)).sqrt()
    return (on_prompted.mean(0) - on_plain.mean(0)) / spread.clamp(min=1e-12)


def _sample_replies(
    model: LocalModel, chats: Sequence[tuple[Message, ...]]
) -> Iterator[_AnsweredChat]:
    """Generates replies to chats, the same every time, without those that have no token."""
    requests = [Request(chat, (), _SAMPLING, seed) for seed, chat in enumerate(chats)]
    replies = model.generate_batch(requests)
    for request, reply in zip(requests, replies, strict=True):
        if reply.token_ids:
            rendered = model.session().render(request)
            yield _AnsweredChat(rendered.token_request.prompts[0], reply.token_ids)


@torch.inference_mode()
def _hidden_states(model: LocalModel, chat: _AnsweredChat) -> dict[int, Tensor]:
    """Returns the unsteered hidden states after each layer, [1, token, size]."""
    sequence = TokenSequence(replace(chat.prompt, pass_methods=UNSTEERED), list(chat.reply))
    batch = batch_of(SequenceGroup([sequence], model.runner.device), [0])
    with watch_states(model.hf_model, (Site.HIDDEN,)) as states:
        model.runner.forward(batch)
    return states[Site.HIDDEN]
