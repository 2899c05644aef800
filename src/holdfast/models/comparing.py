"""The divergence of replies between two chats, from requests to what the engine reads."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.engine.divergence import Pair, part_in_memory
from holdfast.engine.rows import Row, Stream
from holdfast.engine.runner import Runner
from holdfast.models.compared import Compared, Divergence
from holdfast.models.rendering import Known, Rendered, all_rendered, render
from holdfast.models.requests import Reply
from holdfast.models.spelled import known_replies
from holdfast.models.spelling import spell_replies

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def diverge(
    runner: Runner,
    tokenizer: PreTrainedTokenizerFast,
    compared: Sequence[Compared],
    known_of: Callable[[Hashable], tuple[Known, ...]],
    batch_size: int,
) -> list[Divergence | None]:
    """As `LocalSession.diverge`, of methods that are checked.

    Args:
        runner, tokenizer: of the model.
        compared: the replies.
        known_of: what is known of a thread.
        batch_size: streams of one pass at most.
    """
    pairs = _pairs_of(compared, known_of, tokenizer)
    told: list[Divergence | None] = [None] * len(pairs)
    read = []
    for number, (each, pair) in enumerate(zip(compared, pairs, strict=True)):
        if each.alike and pair.tokens:
            told[number] = Divergence((0.0,) * pair.tokens)
        elif pair.tokens and not (runner.context and pair.longest > runner.context):
            read.append(number)
    parted = part_in_memory(runner, [pairs[number] for number in read], batch_size)
    for number, own in zip(read, parted, strict=True):
        told[number] = Divergence(own.nats, own.forwarded)
    return told


def _pairs_of(
    compared: Sequence[Compared],
    known_of: Callable[[Hashable], tuple[Known, ...]],
    tokenizer: PreTrainedTokenizerFast,
) -> list[Pair]:
    """The replies as the engine reads them.

    Each dialog is rendered turn by turn, so that its replies keep the tokens that they were
    generated with.

    Args:
        compared: the turns of a thread in their order.
        known_of: what is known of a thread.
        tokenizer: of the model.

    Raises:
        PromptError: a chat cannot be rendered.
    """
    references = all_rendered(
        render(
            [each.reference for each in compared],
            [""] * len(compared),
            [()] * len(compared),
            tokenizer,
            traces=False,
        )
    )
    dialogs: dict[Hashable, tuple[Known, ...]] = {}  # as far as they are rendered
    pairs = []
    for each, reference in zip(compared, references, strict=True):
        thread = each.request.thread
        before = (
            known_replies(each.request, tokenizer) if thread is None else dialogs.get(thread, ())
        )
        (asked,) = all_rendered(render([each.request], [""], [before], tokenizer, traces=False))
        token_ids = _tokens_of(asked, each.reply, tokenizer)
        if thread is not None and each.reply.token_ids is not None:
            dialogs[thread] = asked.known((), token_ids, each.reply.text)
        known = () if thread is None else known_of(thread)
        pairs.append(Pair(_behind(asked, known), _behind(reference, known), token_ids, each.ended))
    return pairs


def _tokens_of(
    asked: Rendered, reply: Reply, tokenizer: PreTrainedTokenizerFast
) -> tuple[int, ...]:
    """A reply's own tokens, or those of its text behind its chat."""
    if reply.token_ids is not None:
        return reply.token_ids
    return spell_replies([asked], [[reply.text]], tokenizer)[0][0] if reply.text else ()


def _behind(rendered: Rendered, known: Sequence[Known]) -> Row:
    """A chat as a row whose streams take over what they can of a thread."""
    streams = list(rendered.row.streams)
    for number, (stream, dialog) in enumerate(zip(streams, known, strict=False)):
        streams[number] = Stream.behind(
            dialog.prefix, stream.token_ids, stream.span, stream.methods
        )
    return replace(rendered.row, streams=tuple(streams))
