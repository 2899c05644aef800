"""A steering block checks a pass: its cache, the length of its prompt, its padding."""

import copy
import gc

import pytest
import torch
from fast_set import only_fast
from open_models import (
    BOOST,
    GREEDY,
    ROUNDING,
    SPLIT,
    apart,
    both_ways,
    hugging_face,
    logits,
    prompts,
)
from tiny import GPTJ, chat, model, tokenizer
from transformers import DynamicCache

import holdfast
from holdfast import Pasta
from holdfast.errors import PromptError, UsageError

pytestmark = pytest.mark.usefixtures("inference")

# Gemma 3 has sliding windows; GPT-J does not use the attention interface. Llama 4's base model is
# the model itself, so the hook that checks caches is on it.
CACHING = {
    "llama": {},
    "qwen3": {"attention": "eager"},
    "gemma3_text": {"sliding_window": 8},
    "gptj": {"attention": "eager", **GPTJ},
    "llama4_text": {
        "intermediate_size_mlp": 96,
        "no_rope_layers": [1, 0, 1],
        "num_local_experts": 2,
    },
}


class CachedPrompt:
    """A model and prompts whose keys are cached, to be continued by one token."""

    def __init__(self, kind):
        self.hf_model, self.ids, self.span, _, _ = both_ways(kind, **CACHING[kind])
        self.new_ids = self.ids[:, :1]
        self.longer_span = torch.nn.functional.pad(self.span, (0, 1))

    def cache(self):
        cache = DynamicCache(config=self.hf_model.config)
        self.hf_model(self.ids, past_key_values=cache)
        return cache

    def steered_cache(self):
        with holdfast.steering(self.hf_model, self.span, [SPLIT]):
            return self.cache()

    def step(self, cache):
        return self.hf_model(self.new_ids, past_key_values=cache).logits


@pytest.fixture(params=only_fast(CACHING, "llama", "gptj"))
def cached(request):
    return CachedPrompt(request.param)


# The length of the prompt


def test_a_prompt_longer_than_the_mask_is_refused():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    longer = torch.cat([ids, ids[:, :5]], 1)
    with holdfast.steering(hf_model, span, [SPLIT]):
        for forward in (
            lambda: hf_model(longer),
            lambda: hf_model.generate(longer, **GREEDY),
            lambda: hf_model.generate(longer, use_cache=False, **GREEDY),
        ):
            with pytest.raises(UsageError, match=r"20 tokens.*25"):
                forward()
        cached = hf_model.generate(ids, **GREEDY)
        assert torch.equal(hf_model.generate(ids, use_cache=False, **GREEDY), cached)
    assert hf_model.config._attn_implementation == "sdpa"


def test_without_a_cache_a_given_reply_may_follow_the_prompt():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    with holdfast.steering(hf_model, span, [Pasta(0.05)]):
        done = hf_model.generate(ids, output_logits=True, return_dict_in_generate=True, **GREEDY)
        whole = logits(hf_model, done.sequences)
    assert apart(torch.stack(done.logits, 1), whole[:, 19:25]) < ROUNDING


def test_a_mask_that_does_not_cover_the_cached_keys_is_refused():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    cache = DynamicCache(config=hf_model.config)
    with holdfast.steering(hf_model, span, []):
        hf_model(ids[:, :20], past_key_values=cache)
    with (
        holdfast.steering(hf_model, span[:, :10], []),
        pytest.raises(UsageError, match=r"10 tokens.* 21, 20 "),
    ):
        hf_model(ids[:, :1], past_key_values=cache)


# Caches


def test_a_cache_that_was_filled_outside_a_block_is_refused_in_it(cached):
    message = r"computed under no steering.*under split-softmax:exponent=0\.3; start with a new"
    with holdfast.steering(cached.hf_model, cached.span, [SPLIT]):
        with holdfast.unsteered(cached.hf_model):
            plain_cache = cached.cache()
        with pytest.raises(UsageError, match=message):
            cached.step(plain_cache)


def test_a_cache_is_refused_under_other_methods_and_on_another_span(cached):
    cache = cached.steered_cache()
    longer = cached.longer_span
    for methods, span, computed, current in (
        ([BOOST], longer, "", "boost:factor=5"),
        ([SPLIT, BOOST], longer, "", r"split-softmax:exponent=0\.3\+boost:factor=5"),
        ([], longer, "", "no steering"),
        ([SPLIT], longer.roll(1, 1), " on another span", r"split-softmax:exponent=0\.3"),
    ):
        message = rf"exponent=0\.3{computed}, but this pass.*under {current}; start"
        with holdfast.steering(cached.hf_model, span, methods):
            for same_keys in (cache, copy.deepcopy(cache)):
                with pytest.raises(UsageError, match=message):
                    cached.step(same_keys)


def test_a_cache_that_was_filled_in_a_block_is_refused_outside_it(cached):
    cache, hf_model = cached.steered_cache(), cached.hf_model
    whole = torch.cat([cached.ids, cached.new_ids], 1)
    message = (
        r"split-softmax:exponent=0\.3, but this pass of \w+ runs under no steering; start with"
    )
    for run in (
        cached.step,
        lambda cache: hf_model.base_model(cached.new_ids, past_key_values=cache),
        lambda cache: hf_model.generate(whole, past_key_values=cache, **GREEDY),
    ):
        for same_keys in (cache, copy.deepcopy(cache)):
            with pytest.raises(UsageError, match=message):
                run(same_keys)


def test_a_cache_continues_under_the_same_steering_and_may_be_read_under_none(cached):
    hf_model = cached.hf_model
    with holdfast.steering(hf_model, cached.span, [SPLIT]):
        expected, cache = cached.step(cached.cache()), cached.cache()
    with holdfast.steering(hf_model, cached.longer_span, [SPLIT]):
        assert apart(cached.step(cache), expected) < ROUNDING
    plain = cached.step(cached.cache())
    plain_cache = cached.cache()
    with holdfast.steering(hf_model, cached.longer_span, []):  # which reads the mass alone
        assert apart(cached.step(plain_cache), plain) < ROUNDING
    cached.step(plain_cache)  # and it goes on outside


def test_caches_are_checked_only_as_long_as_a_steered_one_is_alive(cached):
    cache = cached.steered_cache()
    assert cached.hf_model.base_model._forward_pre_hooks
    del cache
    gc.collect()
    assert not cached.hf_model.base_model._forward_pre_hooks


def test_a_cache_that_was_emptied_is_fresh():
    hf_model, (ids, mask, span) = hugging_face(), prompts()
    static = {"cache_implementation": "static", "disable_compile": True, **GREEDY}
    plain = hf_model.generate(ids, attention_mask=mask, **static)
    replies = []
    for methods in ([SPLIT], [BOOST]):
        with holdfast.steering(hf_model, span, methods):
            replies.append(hf_model.generate(ids, attention_mask=mask, **static))
            assert torch.equal(hf_model.generate(ids, attention_mask=mask, **GREEDY), replies[-1])
    assert torch.equal(hf_model.generate(ids, attention_mask=mask, **static), plain)
    assert not torch.equal(replies[0], replies[1])


# Padding


def test_a_span_on_padding_is_refused():
    hf_model, (ids, mask, span) = hugging_face(), prompts()
    for options in ({}, {"cache_implementation": "static", "disable_compile": True}):
        with holdfast.steering(hf_model, span.roll(-5, 1), [SPLIT]):
            with pytest.raises(UsageError) as excinfo:
                hf_model.generate(ids, attention_mask=mask, **GREEDY, **options)
            assert excinfo.value.value == (0, 1), "the row and its token"
            with pytest.raises(UsageError) as excinfo:
                hf_model(ids, attention_mask=mask)
            assert excinfo.value.value == (0, 1), "the row and its token"


@pytest.mark.parametrize(
    ("kind", "options"), [("llama", {}), ("gemma2", {"sliding_window": 64}), ("gptj", GPTJ)]
)
@pytest.mark.parametrize(
    "method", [SPLIT, None, Pasta(0.05, {(0, 1), (2, 3)})], ids=["split", "none", "heads"]
)
def test_the_trace_of_a_right_padded_row_is_of_its_last_token(kind, options, method):
    hf_model, (ids, _, span) = hugging_face(kind, "eager", **options), prompts()
    methods = [] if method is None else [method]
    mask = torch.ones_like(ids)
    mask[0, 14:] = 0
    with holdfast.steering(hf_model, span, methods, trace=True) as padded:
        logits(hf_model, ids, attention_mask=mask)
    for row, length in ((0, 14), (1, 20)):
        with holdfast.steering(
            hf_model, span[row : row + 1, :length], methods, trace=True
        ) as alone:
            logits(hf_model, ids[row : row + 1, :length])
        assert apart(padded.traces[row].mass, alone.traces[0].mass) < ROUNDING


def test_a_batch_of_chats_is_padded_on_the_left_with_its_span():
    local = model()
    messages = [chat("always talk about cheese", "hello " * count) for count in (1, 9)]
    chats = holdfast.encode_chats(messages, local.tokenizer)
    assert chats.attention_mask[0, 0] == 0 and chats.attention_mask[:, -1].all()
    assert chats.span_mask.dtype == torch.bool
    with holdfast.steering(local, chats.span_mask, [SPLIT]):
        batched = local.hf_model.generate(**chats.inputs, **GREEDY)[:, chats.input_ids.shape[1] :]
    for row, talk in enumerate(messages):
        alone = local.generate(talk, [SPLIT], holdfast.Sampling(temperature=0, max_new_tokens=6))
        assert batched[row, : len(alone.token_ids)].tolist() == list(alone.token_ids)
    words = holdfast.encode_chats(messages, local.tokenizer, emphasis=[("cheese",), ()])
    marked = [
        tokenizer().decode(ids[span])
        for ids, span in zip(words.input_ids, words.span_mask, strict=True)
    ]
    assert "cheese" in marked[0] and "always" not in marked[0] and "always" in marked[1]
    with pytest.raises(UsageError, match="0 chats"):
        holdfast.encode_chats([], local.tokenizer)
    with pytest.raises(UsageError) as excinfo:
        holdfast.encode_chats(messages, local.tokenizer, emphasis=[()])
    assert (excinfo.value.option, excinfo.value.value, excinfo.value.allowed) == ("emphasis", 1, 2)
    with pytest.raises((UsageError, PromptError), match="not a list of messages"):
        holdfast.encode_chats(["hello"], local.tokenizer)
