"""Log-probabilities of given replies.

Each chat is forwarded once, and its keys and values are reused for every reply to it. For example,
"Yes" (one token) and "No, it" (three) are scored in two passes:

    the chat                          -> the logits of "Yes" and "No"; its keys and values
    "No" and "," after these          -> the logits of "," and " it"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.attention import RotaryLengths
from holdfast.generation.batch import SequenceGroup, batch_of
from holdfast.generation.memory import compute_with_halving
from holdfast.generation.model_runner import ModelRunner
from holdfast.generation.saved_kv import CachedPrefix, SavedKV
from holdfast.generation.token_requests import TokenPrompt, TokenRequest, TokenSequence
from holdfast.generation.transformers_runner import TransformersRunner

# tokens of one pass, padding included; a single sequence may have more
_MAX_PASS_TOKENS = 16_384
_MAX_PASS_TOKENS_WITH_LOGITS = 2_048  # likewise, if every token gets logits
_MAX_PROMPT_TOKENS = 65_536  # prompt tokens whose keys and values are in memory at once

TokenIds = tuple[int, ...]


@dataclass(frozen=True)
class Scored:
    """Scores of given replies to one chat.

    Args:
        log_probabilities: per reply, the sum over its tokens, natural logarithm, at temperature 1;
            the token that ends the reply is not included.
        tokens: per reply, how many tokens it has.
        forwarded: how many tokens the model read in all, the chat included.
        greedy: per reply, whether each token is the likeliest one, so that the model would generate
            it at temperature 0.
    """

    log_probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    forwarded: int
    greedy: tuple[bool, ...]


@dataclass(frozen=True)
class ScoredRequest:
    """The scores of the replies to a request, and the keys and values of its prompts."""

    scored: Scored
    # one per prompt; () unless the request keeps them, or if the model gives none
    kv: tuple[SavedKV, ...] = ()


def score_requests(
    runner: ModelRunner,
    requests: Sequence[TokenRequest],
    replies: Sequence[Sequence[TokenIds]],
    batch_size: int,
) -> list[ScoredRequest]:
    """Scores several replies to each of several chats; halves the batch whenever memory runs out.

    Args:
        runner: the model.
        requests: the chats; their sampling is ignored.
        replies: per chat, the token ids of its replies.
        batch_size: the most chats, or replies, forwarded together.
    """
    count = max(len(requests), max(map(len, replies)))
    return compute_with_halving(
        lambda size: _score_requests(runner, requests, replies, size),
        batch_size,
        count,
        runner.name,
    )


@torch.inference_mode()
def _score_requests(
    runner: ModelRunner,
    requests: Sequence[TokenRequest],
    replies: Sequence[Sequence[TokenIds]],
    batch_size: int,
) -> list[ScoredRequest]:
    """Scores replies as `score_requests` does, in groups whose prompts fit into memory together."""
    continues = runner.batched and runner.supports_chunked_prefill
    if isinstance(runner, TransformersRunner) and not continues:
        return [
            _score_without_reuse(runner, request, request_replies)
            for request, request_replies in zip(requests, replies, strict=True)
        ]
    scored: list[ScoredRequest] = []
    prompt_lens = [sum(len(prompt.token_ids) for prompt in request.prompts) for request in requests]
    start = 0
    for end in range(1, len(requests) + 1):
        if end == len(requests) or sum(prompt_lens[start : end + 1]) > _MAX_PROMPT_TOKENS:
            scored += _score_together(runner, requests[start:end], replies[start:end], batch_size)
            start = end
    return scored


@dataclass(frozen=True)
class _PassOutput:
    """The output of a pass for one of its sequences."""

    logits: Tensor  # of its last tokens, [token, vocabulary]
    kv: SavedKV | None  # its keys and values; None if they are not kept


class _Score(NamedTuple):
    """The score of some tokens of a reply."""

    log_probability: float  # summed over the tokens
    greedy: bool  # whether each token is the likeliest one at its position

    def plus(self, later: _Score) -> _Score:
        """Returns the score of these tokens followed by later ones."""
        total = self.log_probability + later.log_probability
        return _Score(total, self.greedy and later.greedy)


@dataclass(frozen=True)
class _ReplyPass:
    """A pass over a prompt and the first part of a reply, whose last logits are read."""

    sequence: TokenSequence
    num_logits: int  # how many last tokens' logits are read
    forwarded: int  # how many tokens the pass forwards


@dataclass(frozen=True)
class _ReplyPlan:
    """A reply, and the passes that predict its tokens after the first one.

    The first token is predicted by the last logits of the prompts.
    """

    reply: TokenIds
    passes: Sequence[Sequence[_ReplyPass]]  # per prompt; () for a reply of one token

    def score(self, start: Tensor, request: TokenRequest, outputs: Iterator[_PassOutput]) -> _Score:
        """Scores the reply.

        Args:
            start: the log-probabilities of its first token, [1, vocabulary].
            request: the request that it answers.
            outputs: the outputs of its passes, in order; only these are taken from the iterator.
        """
        score = _score_tokens(start, self.reply[:1])
        if not self.passes:
            return score
        logits = [
            _concatenate([next(outputs).logits[-step.num_logits :] for step in steps])
            for steps in self.passes
        ]
        return score.plus(_score_tokens(_log_probabilities(logits, request), self.reply[1:]))


@dataclass(frozen=True)
class _RequestPlan:
    """A request whose prompts were forwarded, and the passes that are left to score its replies."""

    request: TokenRequest
    prompt_outputs: Sequence[_PassOutput]
    plans: Sequence[_ReplyPlan]  # one per reply

    @property
    def passes(self) -> list[_ReplyPass]:
        """The passes of all replies, in order."""
        return list(chain(*chain(*(plan.passes for plan in self.plans))))

    def score(self, outputs: Iterator[_PassOutput]) -> ScoredRequest:
        """Scores the replies.

        Args:
            outputs: the outputs of `passes`, in order; only these are taken from the iterator.
        """
        start = _log_probabilities([output.logits for output in self.prompt_outputs], self.request)
        scores = [plan.score(start, self.request, outputs) for plan in self.plans]
        forwarded = sum(len(prompt.token_ids) - prompt.cached for prompt in self.request.prompts)
        forwarded += sum(reply_pass.forwarded for reply_pass in self.passes)
        kv: list[SavedKV] = []
        if self.request.keep:
            kv += [output.kv for output in self.prompt_outputs if output.kv is not None]
        replies = [plan.reply for plan in self.plans]
        return ScoredRequest(_collect_scores(replies, scores, forwarded), tuple(kv))


def _score_together(
    runner: ModelRunner,
    requests: Sequence[TokenRequest],
    replies: Sequence[Sequence[TokenIds]],
    batch_size: int,
) -> list[ScoredRequest]:
    """Scores the replies to requests whose prompts fit into memory together."""
    prompts = [TokenSequence(prompt) for request in requests for prompt in request.prompts]
    outputs = iter(list(_forward_all(runner, prompts, batch_size, _MAX_PASS_TOKENS, keep=True)))
    plans: list[_RequestPlan] = []
    for request, request_replies in zip(requests, replies, strict=True):
        prompt_outputs = [next(outputs) for _ in request.prompts]
        plans.append(_plan_request(request, request_replies, prompt_outputs, runner.rotary))
    reply_outputs = _forward_all(
        runner,
        [reply_pass.sequence for plan in plans for reply_pass in plan.passes],
        batch_size,
        _MAX_PASS_TOKENS_WITH_LOGITS,
        keep=False,
    )
    # the passes run while their outputs are read, so that only one pass's logits are in memory
    return [plan.score(reply_outputs) for plan in plans]


def _plan_request(
    request: TokenRequest,
    replies: Sequence[TokenIds],
    outputs: Sequence[_PassOutput],
    rotary: RotaryLengths,
) -> _RequestPlan:
    """Plans the passes of each reply to a request, whose prompts have these outputs."""
    prompts = []
    for prompt, output in zip(request.prompts, outputs, strict=True):
        prefix = CachedPrefix(prompt.token_ids, prompt.span, prompt.pass_methods, output.kv)
        prompts.append(replace(prompt, prefix=prefix, num_shared=len(prompt.token_ids)))
    plans = []
    for reply in replies:
        passes = [_plan_passes(rotary, prompt, reply, 1) for prompt in prompts]
        plans.append(_ReplyPlan(reply, passes if len(reply) > 1 else ()))
    return _RequestPlan(request, outputs, plans)


def _plan_passes(
    rotary: RotaryLengths, prompt: TokenPrompt, reply: TokenIds, first: int
) -> list[_ReplyPass]:
    """Plans the passes that predict a reply's tokens from number `first` on.

    Token `first` is predicted by the logits of the token before it, which for 0 is the last token
    of the prompt. One pass is enough, unless the reply crosses a length at which the rotary factors
    change: then each pass covers the tokens with the same factors.
    """
    prompt_len = len(prompt.token_ids)
    passes = list[_ReplyPass]()
    start = prompt_len + first
    last = prompt_len + len(reply) - 1
    while start <= last:
        end = min(last, rotary.lengths_like(start)[-1])
        cached = prompt.cached if end in rotary.lengths_like(prompt_len) else 0
        sequence = TokenSequence(prompt, list(reply[: end - prompt_len]))
        passes.append(_ReplyPass(sequence, end - start + 1, end - cached))
        start = end + 1
    return passes


def _concatenate(logits: Sequence[Tensor]) -> Tensor:
    """Concatenates the logits of successive passes; a single one is not copied."""
    return logits[0] if len(logits) == 1 else torch.cat(list(logits))


def _score_without_reuse(
    runner: TransformersRunner, request: TokenRequest, replies: Sequence[TokenIds]
) -> ScoredRequest:
    """Scores the replies to a request by forwarding its prompts with each, for a model that cannot
    reuse keys and values.
    """
    scores = list[_Score]()
    forwarded = 0
    for reply in replies:
        passes = [_plan_passes(runner.rotary, prompt, reply, 0) for prompt in request.prompts]
        logits = [
            _concatenate([_forward_whole(runner, step.sequence, step.num_logits) for step in steps])
            for steps in passes
        ]
        forwarded += sum(len(step.sequence) for step in chain(*passes))
        scores.append(_score_tokens(_log_probabilities(logits, request), reply))
    return ScoredRequest(_collect_scores(replies, scores, forwarded))


def _forward_whole(runner: TransformersRunner, sequence: TokenSequence, num_logits: int) -> Tensor:
    """Forwards a sequence alone; returns its last `num_logits` logits, [token, vocabulary]."""
    batch = batch_of(SequenceGroup([sequence], runner.device), [0], num_logits=num_logits)
    return runner.forward(batch).logits[0]


def _forward_all(
    runner: ModelRunner,
    sequences: Sequence[TokenSequence],
    batch_size: int,
    max_tokens: int,
    *,
    keep: bool,
) -> Iterator[_PassOutput]:
    """Forwards sequences in passes of at most `max_tokens`; yields the outputs of each in order.

    With `keep`, these are the logits of the last token, and the keys and values; otherwise, the
    logits of all new tokens.
    """
    for members in _split_into_passes(sequences, batch_size, max_tokens):
        slots = runner.slots()
        for sequence in members:
            slots.open(sequence.prompt.cached_kv)
        slot_numbers = range(len(members))
        starts = list(slots.lengths)
        ends = [len(sequence) for sequence in members]
        num_new_tokens = [end - start for start, end in zip(starts, ends, strict=True)]
        num_logits = 1 if keep else max(num_new_tokens)
        group = SequenceGroup(members, runner.device)
        logits = runner.forward_slots(slots, slot_numbers, group, num_logits).logits
        slots.commit(slot_numbers, ends)
        for slot, count in enumerate(num_new_tokens):
            if keep:
                yield _PassOutput(logits[slot, -1:], slots.copy_kv(slot))
            else:
                yield _PassOutput(logits[slot, -count:], None)


def _split_into_passes(
    sequences: Sequence[TokenSequence], batch_size: int, max_tokens: int
) -> Iterator[list[TokenSequence]]:
    """Splits sequences, in order, into groups that fit into a padded pass of `max_tokens`."""
    group: list[TokenSequence] = []
    longest = 0
    for sequence in sequences:
        num_new = len(sequence) - sequence.prompt.cached
        longest = max(longest, num_new)
        if group and (len(group) >= batch_size or longest * (len(group) + 1) > max_tokens):
            yield group
            group = []
            longest = num_new
        group.append(sequence)
    if group:
        yield group


def _log_probabilities(logits: Sequence[Tensor], request: TokenRequest) -> Tensor:
    """Combines the logits after a request's prompts into log-probabilities, float32 [token,
    vocabulary].

    Args:
        logits: per prompt, [token, vocabulary].
        request: its processors combine them.
    """
    combined = logits[0]
    for processor in request.processors:
        combined = processor.combine_logits(combined, logits[1])
    return combined.float().log_softmax(-1)


def _score_tokens(log_probs: Tensor, token_ids: Sequence[int]) -> _Score:
    """Scores tokens, given the log-probabilities in their places, [token, vocabulary]."""
    ids = torch.tensor(token_ids, device=log_probs.device)[:, None]
    total = float(log_probs.gather(-1, ids).double().sum())
    return _Score(total, log_probs.argmax(-1).tolist() == list(token_ids))


def _collect_scores(
    replies: Sequence[TokenIds], scores: Sequence[_Score], forwarded: int
) -> Scored:
    """Collects the scores of a request's replies; `forwarded` tokens were read for them."""
    return Scored(
        tuple(score.log_probability for score in scores),
        tuple(map(len, replies)),
        forwarded,
        tuple(score.greedy for score in scores),
    )
