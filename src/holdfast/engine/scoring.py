"""Log-probabilities of given replies, without generating: the chat is forwarded once, and every
reply behind its keys and values.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from holdfast.attention import Steering, steered
from holdfast.engine.cache import KeysValues, row_of, stack
from holdfast.engine.decoder import Row, Stream, prefill_inputs
from holdfast.methods import EditsLogits

_PASS = 16_384  # tokens of one pass, padding included, unless a single row has more
_WHOLE = 2_048  # the same where every token's logits are wanted

T = TypeVar("T")


@dataclass(frozen=True)
class Scored:
    """What a model thinks of given replies to one chat.

    Args:
        log_probabilities: one per reply, the sum over its tokens, natural logarithm, at temperature
            1; the end of the reply is not in it.
        tokens: how many tokens each reply has.
        forwarded: tokens that went through the model.
    """

    log_probabilities: tuple[float, ...]
    tokens: tuple[int, ...]
    forwarded: int


@torch.inference_mode()
def score_rows(
    model,
    rows: Sequence[Row],
    replies: Sequence[Sequence[tuple[int, ...]]],
    batch_size: int,
    *,
    reuse: bool = True,
) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
    """Scores several replies to each of several chats.

    Args:
        model: a Hugging Face causal language model; to steer, its attention must be
            `holdfast.attention`'s.
        rows: the chats, with what is computed of them; no gates.
        replies: per row, the token ids of each reply, at least one token each.
        batch_size: rows of one pass at most.
        reuse: False for models whose cache cannot be taken apart: every chat is forwarded with
            every reply, alone.

    Returns:
        The scores, and per row the keys and values of each stream's prompt, () without `reuse`.
    """
    if not reuse:
        return [
            _score_alone(model, row, wanted) for row, wanted in zip(rows, replies, strict=True)
        ], [()] * len(rows)
    prompts = [stream for row in rows for stream in row.streams]
    read = list(_read(model, prompts, batch_size, _PASS, 1))
    behind = [  # the last token of a reply has nothing to foretell
        (place, number, reply)
        for place, (row, wanted) in enumerate(zip(rows, replies, strict=True))
        for number, reply in enumerate(wanted)
        if len(reply) > 1
    ]
    first = [sum(len(row.streams) for row in rows[:place]) for place in range(len(rows))]
    continued = [
        replace(
            stream,
            token_ids=stream.token_ids + reply[:-1],
            span=stream.span + (False,) * (len(reply) - 1),
            computed=read[first[place] + number][1],
        )
        for place, _, reply in behind
        for number, stream in enumerate(rows[place].streams)
    ]
    later = _read(model, continued, batch_size, _WHOLE, None)
    totals = [[0.0] * len(wanted) for wanted in replies]
    forwarded = [
        sum(len(stream.token_ids) - stream.cached for stream in row.streams) for row in rows
    ]
    for place, row in enumerate(rows):
        start = _distribution(
            [read[first[place] + number][0] for number in range(len(row.streams))], row.guidance
        )[0]
        for number, reply in enumerate(replies[place]):
            totals[place][number] = float(start[reply[0]])
    for place, number, reply in behind:
        logits = [next(later)[0] for _ in rows[place].streams]
        totals[place][number] += _sum(_distribution(logits, rows[place].guidance), reply[1:])
        forwarded[place] += (len(reply) - 1) * len(logits)
    scored = [
        Scored(tuple(values), tuple(map(len, wanted)), count)
        for values, wanted, count in zip(totals, replies, forwarded, strict=True)
    ]
    return scored, [
        tuple(read[start + number][1] for number in range(len(row.streams)))
        for start, row in zip(first, rows, strict=True)
    ]


def _score_alone(model, row: Row, wanted: Sequence[tuple[int, ...]]) -> Scored:
    values, forwarded = [], 0
    for reply in wanted:
        logits = []
        for stream in row.streams:
            ids = stream.token_ids + reply[:-1]
            span = torch.tensor([stream.span + (False,) * (len(reply) - 1)])
            places = torch.arange(len(ids))[None]
            output = _forward(
                model,
                [stream],
                torch.tensor([ids]),
                places,
                torch.ones_like(span),
                span,
                len(stream.token_ids),
                None,
                len(reply),
            )
            logits.append(output[0, -len(reply) :])
            forwarded += len(ids)
        values.append(_sum(_distribution(logits, row.guidance), reply))
    return Scored(tuple(values), tuple(map(len, wanted)), forwarded)


def _read(
    model, streams: Sequence[Stream], batch_size: int, limit: int, last: int | None
) -> Iterator[tuple[Tensor, KeysValues | None]]:
    """Per stream, the logits [token, vocabulary] of its `last` tokens (None: all that are new),
    and, with `last`, its keys and values.
    """
    for some in _groups(streams, batch_size, limit):
        past = max(stream.cached for stream in some)
        ids, positions, mask, span = prefill_inputs(some, past)
        cache = stack(
            [stream.computed for stream in some],
            past,
            model.config.get_text_config().num_hidden_layers,
        )
        # a prompt ends with its pass; a reply begins where what is computed ends
        begins = mask.shape[1] if last else past
        logits = _forward(
            model, some, ids, positions, mask, span, begins, cache, last or ids.shape[1]
        )
        for index, stream in enumerate(some):
            wanted = last or len(stream.token_ids) - stream.cached
            yield (
                logits[index, -wanted:],
                (
                    row_of(cache, index, mask[index].nonzero()[:, 0].to(model.device))
                    if last
                    else None
                ),
            )


def _groups(streams: Sequence[Stream], batch_size: int, limit: int) -> Iterator[list[Stream]]:
    """The streams in order, as many at a time as the padded pass has room for."""
    group: list[Stream] = []
    longest = 0
    for stream in streams:
        longest = max(longest, len(stream.token_ids) - stream.cached)
        if group and (len(group) >= batch_size or longest * (len(group) + 1) > limit):
            yield group
            group, longest = [], len(stream.token_ids) - stream.cached
        group.append(stream)
    if group:
        yield group


def _forward(
    model,
    streams: Sequence[Stream],
    ids: Tensor,
    positions: Tensor,
    mask: Tensor,
    span: Tensor,
    begins: int,
    cache,
    last: int,
) -> Tensor:
    """One pass over rows whose replies begin at the column `begins`: logits [row, token,
    vocabulary], of the `last` tokens at least.
    """
    takes = inspect.signature(model.forward).parameters
    methods = [stream.methods for stream in streams]
    with steered(
        Steering(span.to(model.device), methods, False, [begins] * len(streams))
        if any(methods)
        else None
    ):
        output = model(
            input_ids=ids.to(model.device),
            attention_mask=None if mask.all() else mask.to(model.device),
            use_cache=cache is not None,
            **({} if cache is None else {"past_key_values": cache}),
            **({"position_ids": positions.to(model.device)} if "position_ids" in takes else {}),
            **({"logits_to_keep": last} if "logits_to_keep" in takes else {}),
        )
    return output.logits


def _distribution(logits: Sequence[Tensor], guidance: EditsLogits | None) -> Tensor:
    """Log-probabilities, float32 [token, vocabulary], that one or two streams make together."""
    if guidance is not None:
        logits = [
            torch.stack([guidance.guide(one, other) for one, other in zip(*logits, strict=True)])
        ]
    return logits[0].float().log_softmax(-1)


def _sum(distributions: Tensor, reply: Sequence[int]) -> float:
    return float(
        distributions.gather(-1, torch.tensor(reply, device=distributions.device)[:, None])
        .double()
        .sum()
    )
