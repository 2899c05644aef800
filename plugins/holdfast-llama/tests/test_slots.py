"""Rows of llama.cpp: together in one pass, in consecutive streams, in contexts that grow."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from conftest import CHATS
from gguf_files import bits
from holdfast_llama.model import load
from holdfast_llama.native import NativeContext
from holdfast_llama.steered_rows import SteeredRow

from holdfast.chat.prompt import render
from holdfast.generation.sampling import Sampling
from holdfast.methods import parse
from holdfast.models.requests import Request


@pytest.fixture
def model(file_of):
    return load(str(file_of("F32")), cache="f32", context=1024, threads=1, batch_size=8)


@pytest.fixture
def passes(monkeypatch):
    """The rows and the longest new tokens of each pass."""
    sizes = []
    decode = NativeContext.decode

    def count_pass(self, rows, tokens, logits=1):
        sizes.append((len(rows), max(map(len, tokens))))
        return decode(self, rows, tokens, logits)

    monkeypatch.setattr(NativeContext, "decode", count_pass)
    return sizes


def requests(lengths):
    """A request per length of its reply, steered and traced in turn."""
    kinds = itertools.cycle(
        [("none", False), ("boost:factor=4", False), ("none", True), ("boost:factor=2", True)]
    )
    return [
        Request(CHATS[number % 3], spec, Sampling(1.0, 0.9, length), seed=number, trace=trace)
        for number, (length, (spec, trace)) in enumerate(zip(lengths, kinds, strict=False))
    ]


def test_rows_that_remain_share_every_pass(model, passes):
    """Rows that end leave no gap that would split the others' passes; steered, traced and plain
    rows share a context.
    """
    lengths = (3, 30, 5, 30, 9, 30, 30)
    replies = model.session().generate_batch(requests(lengths))
    steps = Counter(rows for rows, longest in passes if longest == 1)
    longest = max(len(reply.token_ids) for reply in replies)
    assert sum(steps.values()) <= longest and min(steps) <= 4 < max(steps)
    assert len(model.runner.pool._contexts[True]) == 1 and not model.runner.pool._contexts[False]


def test_replies_in_a_batch_are_those_alone(model, local_model):
    batch = requests((4, 20, 7, 20, 11, 20, 2, 20, 20, 13))
    replies = model.session().generate_batch(batch)
    for request, reply in zip(batch, replies, strict=True):
        (alone,) = model.session().generate_batch([request])
        (local,) = local_model.generate_batch([request])
        assert reply.token_ids == alone.token_ids == local.token_ids
        if request.trace:
            assert (reply.trace.mass - local.trace.mass).abs().max() < 1e-5


def test_prompts_of_similar_length_share_a_padded_pass(model, passes):
    chats = [[{"role": "user", "content": "Tell me" + " more" * count}] for count in (0, 3, 5, 1)]
    batch = [Request(chat, sampling=Sampling(0, max_new_tokens=4)) for chat in chats]
    replies = model.session().generate_batch(batch)
    assert passes[0][0] == 4 and passes[0][1] > 1
    alone = [model.session().generate_batch([request])[0] for request in batch]
    assert [reply.token_ids for reply in replies] == [reply.token_ids for reply in alone]


def test_padding_changes_no_row(model, local_model):
    """Logits and masses of padded rows are those of the rows alone, up to rounding."""
    prompts = [render(messages, local_model.tokenizer) for messages in CHATS[:2]]
    shortest = min(len(prompt.token_ids) for prompt in prompts)
    tokens = [
        list(prompt.token_ids)[: shortest - 5 * stream] for stream, prompt in enumerate(prompts)
    ]
    context = NativeContext(model.runner.pool.model, 2, 512, 1, steers=True, cache="f32")

    def row(stream, start=0):
        methods = parse("boost:factor=4")
        return SteeredRow(stream, start, prompts[stream].span_mask, methods, True)

    alone = [context.decode([row(stream)], [tokens[stream]]) for stream in range(2)]
    after = [
        context.decode([row(stream, len(tokens[stream]))], [[70]]).logits for stream in range(2)
    ]
    for stream in range(2):
        context.crop(stream, 0)
    batched = context.decode([row(0), row(1)], tokens)
    for stream in range(2):
        assert np.abs(batched.logits[stream] - alone[stream].logits[0]).max() < 1e-4
        assert np.abs(batched.mass[stream] - alone[stream].mass[0]).max() < 1e-6
        follow = context.decode([row(stream, len(tokens[stream]))], [[70]]).logits
        assert np.abs(follow - after[stream]).max() < 1e-4


def test_a_context_grows_and_keeps_its_rows(model):
    """Saved states fit into the longer context, bit for bit."""
    pool = model.runner.pool
    first = pool.take(steers=True, columns=100)
    assert first.context.columns == 512 and first.context.max_sequences == 8
    first.context.decode([SteeredRow(first.stream, 0, (True,) * 9)], [list(range(10, 19))])
    before = first.context
    saved = first.context.save(first.stream)
    second = pool.take(steers=True, columns=700)
    assert second.context is first.context is not before and second.context.columns == 1024
    assert bits(first.context.save(first.stream)) == bits(saved)
    pool.give_back([first])
    pool.settle()
    assert second.stream == 0
    pool.give_back([second])
    pool.settle()


def test_more_rows_than_streams_take_another_context(model):
    pool = model.runner.pool
    streams = [pool.take(steers=True, columns=10) for _ in range(9)]
    assert len({id(native.context) for native in streams}) == 2
    pool.give_back(streams)
    pool.settle()
    assert not any(context.used for context in pool._contexts[True])
