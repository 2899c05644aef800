"""Bit for bit: unsteered replies are those of stock llama.cpp, and no row depends on another."""

from __future__ import annotations

import llama_cpp
import numpy as np
import pytest
from conftest import CHATS
from gguf_files import bits
from holdfast_llama.native import NativeContext
from holdfast_llama.steered_rows import SteeredRow
from holdfast_llama.weights import AttentionWeights

from holdfast.chat.prompt import render
from holdfast.methods import parse


@pytest.fixture(scope="module")
def prompts(local_model):
    return [render(messages, local_model.tokenizer) for messages in CHATS]


def context_of(model, rows=4, **options):
    standard = {"steers": True, "cache": model.runner.pool.cache}
    return NativeContext(model.runner.pool.model, rows, 1024, 1, **{**standard, **options})


def forward(context, stream, prompt, spec="none", trace=False, follow=()):
    """The logits after a prompt, and after each token of `follow`."""
    methods = parse(spec)
    logits = []
    row = SteeredRow(stream, 0, prompt.span_mask, methods, trace)
    count = len(prompt.token_ids)  # all of them: rounding depends on the rows of the product
    logits.append(context.decode([row], [prompt.token_ids], count).logits[0, -1])
    for position, token in enumerate(follow, count):
        row = SteeredRow(stream, position, prompt.span_mask, methods, trace)
        logits.append(context.decode([row], [[token]]).logits[0, 0])
    return np.stack(logits)


def stock_logits(path, prompt, follow, flash):
    """The same logits from llama-cpp-python's own model."""
    llama = llama_cpp.Llama(
        str(path), n_ctx=1024, n_batch=512, n_threads=1, n_threads_batch=1, logits_all=True,
        flash_attn=flash, verbose=False,
    )  # fmt: skip
    llama.eval(list(prompt.token_ids))
    for token in follow:
        llama.eval([token])
    return llama.scores[len(prompt.token_ids) - 1 : llama.n_tokens].copy()


@pytest.mark.parametrize("kind", ("Q8_0", "Q4_1", "BF16"))
def test_neutral_methods_are_bit_identical_to_stock(in_llama, file_of, prompts, kind):
    """With and without a trace; and, in a context that does not steer, with flash attention."""
    model = in_llama(kind)
    prompt = prompts[2]
    follow = (70, 80, 90)
    expected = stock_logits(file_of(kind), prompt, follow, flash=False)
    context = context_of(model)
    for spec, trace in (("none", False), ("none", True), ("boost:factor=1", True)):
        assert bits(forward(context, 0, prompt, spec, trace, follow)) == bits(expected)
        context.crop(0, 0)
    flash_context = context_of(model, steers=False)
    expected = stock_logits(file_of(kind), prompt, follow, flash=True)
    assert bits(forward(flash_context, 0, prompt, follow=follow)) == bits(expected)


def test_a_row_is_bit_identical_alone_and_in_a_batch(in_llama, prompts):
    context = context_of(in_llama("Q8_0"), 3)
    follow = (70, 80, 90, 100)
    specs = ("boost:factor=4", "none", "split-softmax:exponent=0.5,heads=1.2")
    alone = []
    for prompt, spec in zip(prompts, specs, strict=True):
        alone.append(forward(context, 0, prompt, spec, True, follow))
        context.crop(0, 0)
    for stream, (prompt, spec) in enumerate(zip(prompts, specs, strict=True)):
        forward(context, stream, prompt, spec, True)
    for step, token in enumerate(follow):
        rows = [
            SteeredRow(stream, len(prompt.token_ids) + step, prompt.span_mask, parse(spec), True)
            for stream, (prompt, spec) in enumerate(zip(prompts, specs, strict=True))
        ]
        batched = context.decode(rows, [[token]] * 3).logits[:, 0]
        assert bits(batched) == bits(np.stack([row[step + 1] for row in alone]))


def test_a_restored_stream_continues_bit_for_bit(in_llama, prompts):
    context = context_of(in_llama("Q8_0"))
    prompt = prompts[1]
    follow = (70, 80, 90)
    expected = forward(context, 0, prompt, "boost:factor=4", follow=follow)
    context.crop(0, len(prompt.token_ids))
    saved = context.save(0)
    for stream in (0, 3):
        context.crop(stream, 0)
        forward(context, stream, prompts[2])  # its earlier contents play no part
        context.restore(stream, saved)
        for step, token in enumerate(follow):
            position = len(prompt.token_ids) + step
            row = SteeredRow(stream, position, prompt.span_mask, parse("boost:factor=4"))
            assert bits(context.decode([row], [[token]]).logits) == bits(expected[step + 1])


def test_copied_weights_give_bit_identical_results(in_llama, prompts):
    """Weights that are copied to the host and back, as on a GPU."""
    context = context_of(in_llama("Q8_0"))
    copied = context_of(in_llama("Q8_0"))
    copied.weights.on_host = False
    outputs = [
        forward(ctx, 0, prompts[0], "boost:factor=4", True, (70,)) for ctx in (context, copied)
    ]
    assert bits(outputs[0]) == bits(outputs[1])
    assert bits(context.weights.mass) == bits(copied.weights.mass)


def test_an_error_in_the_callback_reaches_the_caller_and_the_context_survives(
    in_llama, prompts, monkeypatch
):
    context = context_of(in_llama("Q8_0"))
    prompt = prompts[0]
    expected = forward(context, 0, prompt, "boost:factor=4", follow=(70, 80))
    context.crop(0, 0)
    forward(context, 0, prompt, "boost:factor=4", follow=(70,))
    calls = []

    def fail(self, *arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt("in the third layer")
        return steer(self, *arguments)

    steer = AttentionWeights._steer
    position = len(prompt.token_ids) + 1
    row = SteeredRow(0, position, prompt.span_mask, parse("boost:factor=4"))
    with monkeypatch.context() as patched:
        patched.setattr(AttentionWeights, "_steer", fail)
        with pytest.raises(KeyboardInterrupt, match="third layer"):
            context.decode([row], [[80]])
    assert len(calls) == 3
    assert bits(context.decode([row], [[80]]).logits) == bits(expected[2])
