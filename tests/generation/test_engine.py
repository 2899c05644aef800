"""Replies of batches and dialogs, against transformers' own forward of the whole text."""

import gc
import itertools
import weakref
from functools import partial

import pytest
import torch
from tiny import DEVICE, GPTJ, chat, model, tokenizer

import holdfast
from holdfast import Guidance, Sampling, SplitSoftmax, Spotlight
from holdfast.attention import BatchSteering, steer_pass
from holdfast.chat.prompt import render
from holdfast.errors import ModelError, PromptError
from holdfast.generation.slots import SlotCache
from holdfast.methods import Boost, Pasta, compile_methods
from holdfast.models.requests import Request

SHORT = Sampling(max_new_tokens=24)
tensor = partial(torch.tensor, device=DEVICE)


# Against the full forward

KINDS = ("llama", "qwen2", "mistral", "gpt_neox", "gemma3_text", "gemma2", "bloom", "gptj", "mamba")
SHAPES = {
    "gpt_oss": {"num_local_experts": 2, "num_experts_per_tok": 1},
    "bloom": {"n_layer": 3, "n_head": 4},
    "gptj": GPTJ,
}


def greedy_by_hand(tiny, token_ids, count):
    """The simplest loop: forwards the whole text for each token, unsteered and without a cache."""
    ids = list(token_ids)
    for _ in range(count):
        logits = tiny.hf_model(tensor([ids]), use_cache=False).logits[0, -1]
        token = int(logits.argmax())
        if token in tiny.stop_ids:
            break
        ids.append(token)
    return tuple(ids[len(token_ids) :])


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_stepwise_decoding_in_a_ragged_batch_equals_the_full_forward(kind):
    tiny = model(kind, **SHAPES.get(kind, {}))
    chats = [chat("talk " * n, "the garden " * (4 - n)) for n in range(1, 4)]
    greedy = Sampling(temperature=0, max_new_tokens=12)
    replies = tiny.generate_batch([Request(talk, sampling=greedy) for talk in chats])
    for talk, reply in zip(chats, replies, strict=True):
        assert reply.token_ids == greedy_by_hand(tiny, render(talk, tiny.tokenizer).token_ids, 12)
        assert reply.prompt_ids == render(talk, tiny.tokenizer).token_ids


@pytest.mark.parametrize("kind", ("llama", "gpt_neox", "gemma3_text", "gemma2", "gpt_oss", "gptj"))
@torch.inference_mode()
def test_steered_decoding_in_a_ragged_batch_equals_the_steered_full_forward(kind):
    tiny = model(kind, **SHAPES.get(kind, {}))
    greedy = Sampling(temperature=0, max_new_tokens=8)
    heads = frozenset({(0, 1), (2, 3)})
    sets = [(SplitSoftmax(0.3),), (Pasta(0.1, heads),), (Boost(3), Pasta(0.2), Spotlight(0.4)), ()]
    chats = [chat("talk " * n, "the garden " * (5 - n)) for n in range(1, 5)]
    batch = [Request(talk, methods, greedy) for talk, methods in zip(chats, sets, strict=True)]
    replies = tiny.generate_batch(batch)
    for talk, methods, reply in zip(chats, sets, replies, strict=True):
        prompt = render(talk, tiny.tokenizer)
        ids = list(prompt.token_ids)
        with holdfast.steering(tiny.hf_model, tensor([prompt.span_mask]), list(methods)):
            for _ in range(8):
                logits = tiny.hf_model(tensor([ids]), use_cache=False).logits
                ids.append(int(logits[0, -1].argmax()))
        expected = ids[len(prompt.token_ids) :]
        generated = itertools.takewhile(lambda token: token not in tiny.stop_ids, expected)
        assert reply.token_ids == tuple(generated)


def test_models_whose_attention_cannot_be_reached_still_chat_and_refuse_steering_by_name():
    for kind in ("bloom", "mamba"):
        tiny = model(kind, **SHAPES.get(kind, {}))
        assert not tiny.steerable
        traced = Request(chat("be nice", "hello"), sampling=SHORT, trace=True)
        assert tiny.generate_batch([traced])[0].trace is None
        with pytest.raises(ModelError, match=rf"{type(tiny.hf_model).__name__}.*repetition"):
            tiny.generate(chat("be nice", "hello"), [SplitSoftmax(0.5)], SHORT)


# Batches and threads


def test_draws_depend_on_the_reply_and_not_on_the_batch():
    tiny = model()
    talks = [chat("be nice", "hello " * (n % 5 + 1)) for n in range(9)]
    requests = [Request(talk, sampling=SHORT, seed=n) for n, talk in enumerate(talks)]
    batched = tiny.generate_batch(requests)
    alone = [tiny.generate_batch([request])[0] for request in requests]
    assert [reply.token_ids for reply in batched] == [reply.token_ids for reply in alone]
    assert len({reply.token_ids for reply in batched}) > 5
    other_seed = tiny.generate(requests[0].messages, sampling=SHORT, seed=1000)
    assert other_seed.token_ids != alone[0].token_ids


ROUNDING = 2e-5  # float32, three layers of large random weights


def test_a_thread_forwards_only_what_is_new_and_a_fork_leaves_no_trace():
    tiny, session = model(), model().session()
    messages = chat("remember the river", "hello there")
    opening = Request(messages, sampling=SHORT, seed=1, thread="t", keep=True, trace=True)
    (first,) = session.generate_batch([opening])
    cut = first.stop_reason == "length"
    assert first.forwarded == len(first.prompt_ids) + len(first.token_ids) - cut
    longer = (*messages, *chat("", "", first.text, "and the old town?")[1:])
    fork = Request(longer, sampling=SHORT, seed=2, thread="t", trace=True)
    keep = Request(longer, sampling=SHORT, seed=3, thread="t", keep=True, trace=True)
    forks = [session.generate_batch([fork])[0] for _ in range(2)]
    pair = session.generate_batch([fork, keep])
    assert forks[0].token_ids == forks[1].token_ids == pair[0].token_ids
    new = len(pair[1].prompt_ids) - len(first.prompt_ids) - len(first.token_ids) + cut
    assert pair[1].forwarded == new + len(pair[1].token_ids) - (pair[1].stop_reason == "length")
    # The same tokens from scratch: the logits, hence greedy replies and the mass, must be the same.
    whole = tensor([pair[1].prompt_ids + pair[1].token_ids])
    span_mask = render(messages, tiny.tokenizer).span_mask
    span = tensor([[*span_mask, *[False] * (whole.shape[1] - len(span_mask))]])
    last = len(pair[1].prompt_ids) + 3
    steering = BatchSteering(span[:, :last], [compile_methods(())], trace=True)
    with steer_pass(steering) as state, torch.inference_mode():
        tiny.hf_model(whole[:, :last], use_cache=False)
    masses = torch.stack([layer[0] for layer in state.masses]).cpu()
    assert torch.allclose(masses, pair[1].trace.mass[:, :, 3], atol=ROUNDING)


def test_keys_and_values_are_freed_with_the_call_not_when_cycles_are_collected(monkeypatch):
    """A process that answers batch after batch makes few objects for the collector to count."""
    alive, make = [], SlotCache.__init__

    def note_object(self, *arguments):
        make(self, *arguments)
        alive.append(weakref.ref(self))

    monkeypatch.setattr(SlotCache, "__init__", note_object)
    gc.collect()
    gc.disable()
    try:
        method_sets = ((), (Guidance(2.0),), (SplitSoftmax(0.5),))
        model().generate_batch([Request(chat("be nice", "hello"), m, SHORT) for m in method_sets])
        assert len(alive) == 1 and alive[0]() is None
    finally:
        gc.enable()


# Chats that cannot be answered, or not in full

TRIMS = "{% for m in messages %}{{ '<user>' + m['content'] | upper }}{% endfor %}"
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('System role not"
    " supported') }}{% endif %}{{ m['content'] }}{% endfor %}"
)


@pytest.mark.parametrize(
    ("template", "message"),
    ((TRIMS, "first-user"), (NO_SYSTEM, "no system role.*first-user"), (None, "no chat template")),
)
def test_chats_that_cannot_be_rendered_are_refused_with_the_cure(template, message):
    with pytest.raises(PromptError, match=message):
        render(chat("be kind", "hello"), tokenizer(template))


def test_a_chat_beyond_the_context_is_refused():
    with pytest.raises(PromptError, match=r"512 tokens.*shorter"):
        model().generate(chat("be kind", "hello " * 300), sampling=SHORT)


def test_a_reply_ends_where_the_context_does():
    tiny = model()
    talks = [chat("be kind", "hello " * n) for n in range(300)]
    lengths = [len(render(talk, tiny.tokenizer).token_ids) for talk in talks]
    count = next(n for n, length in enumerate(lengths) if length >= 500)
    room, messages = 512 - lengths[count], talks[count]
    batch = [Request(messages, sampling=Sampling(2.0, 1.0, 100), seed=seed) for seed in range(20)]
    cut = [reply for reply in tiny.generate_batch(batch) if reply.stop_reason == "length"]
    assert cut and all(len(reply.token_ids) == room for reply in cut)
