"""`holdfast_llama.steering`: llama-cpp-python's own API, steered inside a block."""

from __future__ import annotations

import re
from pathlib import Path

import holdfast_llama
import llama_cpp
import numpy as np
import pytest
from conftest import CHATS, METHODS, chat
from gguf_files import bits
from holdfast_llama.weights import AttentionWeights

from holdfast.chat.prompt import render
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.requests import Request

TOKENS = 24
MASS_TOLERANCE = 2e-4  # keys and values in float16, and prompts computed in different chunks


@pytest.fixture(scope="module")
def llama(file_of):
    return llama_of(file_of)


def llama_of(file_of, **options):
    standard = {"n_ctx": 1024, "n_threads": 1, "n_threads_batch": 1, "verbose": False}
    return llama_cpp.Llama(str(file_of("F32")), **{**standard, **options})


def answer(llama, messages, **options):
    completion = llama.create_chat_completion(messages, temperature=0, max_tokens=TOKENS, **options)
    return completion["choices"][0]["message"]["content"]


@pytest.mark.parametrize("method", [method for method in METHODS if method != "hold"])
def test_a_block_replies_as_the_engine_does(llama, in_llama, local_model, method):
    plain = answer(llama, CHATS[0])
    for messages in CHATS:
        request = Request(messages, method, Sampling(0, max_new_tokens=TOKENS), trace=True)
        (expected,) = in_llama(cache="f16").generate_batch([request])
        with holdfast_llama.steering(llama, messages, method, trace=True) as block:
            assert answer(llama, messages) == expected.text
        prompt = render(messages, local_model.tokenizer)
        assert block.span == [token for token, in_span in enumerate(prompt.span_mask) if in_span]
        steps = min(block.trace.mass.shape[-1], expected.trace.mass.shape[-1])
        assert steps >= len(expected.token_ids)
        assert (block.trace.mass - expected.trace.mass)[..., :steps].abs().max() < MASS_TOLERANCE
    assert answer(llama, CHATS[0]) == plain, "steering is gone"


def test_a_second_reply_in_a_block_reuses_the_prefix_and_is_unchanged(llama, monkeypatch):
    longer = [*CHATS[1], {"role": "assistant", "content": "Music!"}]
    longer += [{"role": "user", "content": "More?"}]
    with holdfast_llama.steering(llama, CHATS[1], "boost:factor=4"):
        expected = answer(llama, longer)
    forwarded = []  # tokens of each pass
    begin = AttentionWeights.begin

    def count_tokens(self, rows, ends):
        forwarded.append(ends[0] - rows[0].start)
        begin(self, rows, ends)

    monkeypatch.setattr(AttentionWeights, "begin", count_tokens)
    with holdfast_llama.steering(llama, CHATS[1], "boost:factor=4"):
        answer(llama, CHATS[1])
        num_before = len(forwarded)
        assert answer(llama, longer) == expected
        assert forwarded[num_before] < forwarded[0], "only the new part of the prompt"


def test_the_span_can_be_given_in_tokens(llama, local_model):
    messages = CHATS[0]
    mask = render(messages, local_model.tokenizer).span_mask
    first = mask.index(True)
    last = len(mask) - mask[::-1].index(True)
    replies = []
    for hold in (messages, [(first, last)]):
        with holdfast_llama.steering(llama, hold, "split-softmax:exponent=0.3"):
            replies.append(answer(llama, messages))
    assert replies[0] == replies[1] != answer(llama, messages)


def test_a_prompt_without_the_words_is_refused_and_the_block_continues(llama):
    with holdfast_llama.steering(llama, CHATS[0], "boost:factor=4"):
        expected = answer(llama, CHATS[0])
        with pytest.raises(PromptError, match=r"uppercase letters only.* 0 times"):
            answer(llama, CHATS[1])
        assert answer(llama, CHATS[0]) == expected
    with (
        holdfast_llama.steering(llama, [(3, 400)], "boost:factor=4"),
        pytest.raises(PromptError, match=r"\(3, 400\)"),
    ):
        answer(llama, CHATS[0])


def test_a_stream_that_is_read_after_its_block_is_refused(llama):
    for steps in (0, 3):
        with holdfast_llama.steering(llama, CHATS[0], "boost:factor=4"):
            pieces = llama.create_chat_completion(CHATS[0], stream=True, max_tokens=TOKENS)
            for _ in range(steps):
                next(pieces)
        with pytest.raises(UsageError, match="boost:factor=4"):
            list(pieces)
    with holdfast_llama.steering(llama, CHATS[0], "boost:factor=4"):
        pieces = llama.create_chat_completion(
            CHATS[0], stream=True, max_tokens=TOKENS, temperature=0
        )
        text = "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces)
        assert text == answer(llama, CHATS[0])


def test_an_error_reaches_the_caller_and_leaves_the_model_intact(llama, monkeypatch):
    expected = answer(llama, CHATS[0])

    def fail(self, *arguments):
        raise RuntimeError("no more")

    with holdfast_llama.steering(llama, CHATS[0], "boost:factor=4"):
        steered = answer(llama, CHATS[0])
        with monkeypatch.context() as patched:
            patched.setattr(AttentionWeights, "_steer", fail)
            with pytest.raises(RuntimeError, match="no more"):
                answer(llama, chat(CHATS[0][0]["content"], "Something else."))
        assert answer(llama, CHATS[0]) == steered
    assert answer(llama, CHATS[0]) == expected


@pytest.mark.parametrize(
    ("hold", "method", "words"),
    [
        (CHATS[0], "repetition:probability=0.5", "Repetition"),
        (CHATS[0], "guidance:scale=1.5", "Guidance"),
        (CHATS[0], "attenuate:factor=0.1", "earlier replies"),
        (CHATS[0], "boost:factor=2,heads=9.0", "layer 9, but the model has 4 layers"),
        (CHATS[0][1:], "boost:factor=2", "no system prompt"),
        ("words", "boost:factor=2", "not 'words'"),
        (CHATS[0], "split-softmax:exponent=0.5+boost:factor=2", "three numbers"),
    ],
)
def test_unsupported_steering_is_refused_by_name(llama, hold, method, words):
    with (
        pytest.raises(UsageError, match=words),
        holdfast_llama.steering(llama, hold, method),
    ):
        pass


def test_a_second_block_is_refused(llama):
    block = holdfast_llama.steering(llama, CHATS[0], "boost:factor=2")
    second = holdfast_llama.steering(llama, CHATS[0], "boost:factor=2")
    with block, pytest.raises(UsageError, match="another block"), second:
        pass


def test_a_quantised_cache_is_refused(file_of):
    quantised = llama_of(file_of, type_v=llama_cpp.GGML_TYPE_Q8_0, flash_attn=True)
    block = holdfast_llama.steering(quantised, CHATS[0], "boost:factor=2")
    with pytest.raises(ModelError, match="type 8"), block:
        pass


def test_flash_attention_is_restored_after_the_block(file_of):
    llama = llama_of(file_of, flash_attn=True, logits_all=True)
    tokens = llama.tokenize(b"Hello there, what is new?", add_bos=False)
    llama.eval(tokens)
    expected = llama.scores[: llama.n_tokens].copy()
    with holdfast_llama.steering(llama, [(0, 2)], "boost:factor=4"):
        llama.eval(tokens)
        assert np.abs(llama.scores[: llama.n_tokens] - expected).max() > 0.01
    llama.eval(tokens)
    assert bits(llama.scores[: llama.n_tokens]) == bits(expected)


def test_the_code_of_the_documentation_page_runs(file_of, capsys):
    page = Path(__file__).parents[3] / "docs" / "llama.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names = {"messages": CHATS[0]}
    exec(code.replace('"model.gguf"', repr(str(file_of("Q8_0")))), names)
    mass = names["block"].trace.mass
    assert mass.shape[:2] == (4, 8) and (mass > 0).any()
