"""Methods that contrast two streams of logits: guidance, anchoring, AdaCAD and prompt strength."""

import copy
import math
import re
from dataclasses import replace
from functools import partial

import pytest
import torch
from fast_set import only_fast
from oracles import adacad, anchoring, guidance
from tiny import DEVICE, chat, model, outcomes, tokenizer

from holdfast import Guidance, PromptStrength, Sampling
from holdfast.attention import BatchSteering, steer_pass
from holdfast.chat.prompt import render
from holdfast.errors import PromptError
from holdfast.methods import AdaCad, Anchoring, compile_methods
from holdfast.models.requests import Request

tensor = partial(torch.tensor, device=DEVICE)


def last_logits(tiny, ids, methods=(), span=()):
    span_mask = tensor([list(span) + [False] * (len(ids) - len(span))])
    steering = BatchSteering(span_mask, [compile_methods(methods)]) if methods else None
    with steer_pass(steering), torch.inference_mode():
        return tiny.hf_model(tensor([ids]), use_cache=False).logits[0, -1].double()


# Against the equations


@torch.inference_mode()
def by_hand(tiny, messages, next_logits, count):
    """Greedy tokens of `next_logits(ids, ids without the system prompt)`, without a cache."""
    without = [message for message in messages if message["role"] != "system"]
    streams = [list(render(talk, tiny.tokenizer).token_ids) for talk in (messages, without)]
    tokens = []
    while len(tokens) < count:
        token = int(next_logits(*streams).argmax())
        if token in tiny.stop_ids:
            break
        tokens.append(token)
        streams = [[*ids, token] for ids in streams]
    return tuple(tokens)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("llama", "gemma3_text"))
def test_guidance_equals_the_equation_whatever_else_is_in_the_batch(kind):
    tiny, greedy = model(kind), Sampling(temperature=0, max_new_tokens=12)
    chats = [chat("always talk about cheese", "the old town " * n) for n in (1, 3, 5)]
    for guide in (Guidance(2.5), Guidance(4.0, plausibility=0.3), Guidance(0.0), Guidance(1.0)):

        def guided(ids, without, guide=guide):
            logits = last_logits(tiny, ids).tolist(), last_logits(tiny, without).tolist()
            return torch.tensor(guidance(guide, *logits))

        requests = [Request(talk, (guide,), greedy) for talk in chats]
        replies = tiny.generate_batch([*requests, Request(chats[0], sampling=greedy)])
        for talk, reply in zip(chats, replies, strict=False):
            assert reply.token_ids == by_hand(tiny, talk, guided, 12)
        plain = by_hand(tiny, chats[0], lambda ids, _: last_logits(tiny, ids), 12)
        assert replies[3].token_ids == plain
        if guide.scale == 1:
            assert replies[0].token_ids == replies[3].token_ids


@pytest.mark.parametrize("kind", only_fast(("llama", "gemma3_text"), "llama"))
def test_anchoring_equals_the_equation_with_every_span_token_masked(kind):
    tiny, greedy = model(kind), Sampling(temperature=0, max_new_tokens=12)
    chats = [chat("always talk about cheese", "the old town " * n) for n in (1, 3, 5)]
    for method in (Anchoring(2.5), Anchoring(0.0), Anchoring(1.0)):
        requests = [Request(talk, (method,), greedy) for talk in chats]
        replies = tiny.generate_batch([*requests, Request(chats[0], (), greedy)])
        for messages, reply in zip(chats, replies, strict=False):
            prompt = render(messages, tiny.tokenizer)
            assert sum(prompt.span_mask) > 3
            tokens = list(prompt.token_ids)
            pairs = zip(tokens, prompt.span_mask, strict=True)
            masked = [tiny.tokenizer.pad_token_id if inside else token for token, inside in pairs]
            for token in reply.token_ids:
                logits = last_logits(tiny, tokens).tolist(), last_logits(tiny, masked).tolist()
                expected = torch.tensor(anchoring(method, *logits))
                assert int(expected.argmax()) == token
                tokens, masked = [*tokens, token], [*masked, token]
        is_unchanged = replies[0].token_ids == replies[3].token_ids
        assert is_unchanged == (method.strength == 1)


def test_adacad_equals_its_formula_and_changes_nothing_where_its_streams_agree():
    torch.manual_seed(0)
    first, second = torch.randn(2, 3, 40) * 4
    plain = first.log_softmax(-1)
    for strength in (1.0, 2.5):
        rows = zip(first.tolist(), second.tolist(), strict=True)
        expected = torch.tensor([adacad(AdaCad(strength), *row) for row in rows])
        combined = AdaCad(strength).combine_logits(first, second).softmax(-1)
        assert torch.allclose(combined, expected, atol=1e-5)
    assert torch.equal(AdaCad(0).combine_logits(first, second), plain)
    assert torch.allclose(AdaCad(3).combine_logits(first, first), plain, atol=1e-5)
    first[:, 7] = second[:, 7] = -math.inf
    chances = AdaCad().combine_logits(first, second).softmax(-1)
    assert chances.isfinite().all() and not chances[:, 7].any()


def test_prompt_strength_contrasts_with_its_default_prompt():
    tiny, greedy = model(), Sampling(temperature=0, max_new_tokens=12)
    messages = chat("always talk about cheese", "the old town by the river")
    method = PromptStrength(2.5, "the river is cold")
    (reply,) = tiny.generate_batch([Request(messages, (method,), greedy)])
    tokens = list(render(messages, tiny.tokenizer).token_ids)
    contrast = chat("the river is cold", messages[1]["content"])
    contrast_tokens = list(render(contrast, tiny.tokenizer).token_ids)
    for token in reply.token_ids:
        logits = last_logits(tiny, tokens).tolist(), last_logits(tiny, contrast_tokens).tolist()
        assert int(torch.tensor(guidance(method, *logits)).argmax()) == token
        tokens, contrast_tokens = [*tokens, token], [*contrast_tokens, token]
    # no prompt, so nothing to contrast
    assert method.second_chat(messages[1:]) == tuple(messages[1:])
    with_two_prompts = ({"role": "system", "content": "be kind"}, *messages)
    assert method.second_chat(with_two_prompts) == method.second_chat(messages)


# The second stream


@pytest.mark.parametrize("method", [Guidance(s) for s in (0.0, 0.5, 1.0, 2.5)] + [AdaCad(2.0)])
def test_a_token_that_only_one_stream_finds_impossible_yields_no_nan(method):
    torch.manual_seed(1)
    first, second = torch.randn(2, 1, 12)
    first[:, 3] = second[:, 5] = -math.inf
    guided = method.combine_logits(first, second)
    assert not guided.isnan().any() and guided[0, 3] == -math.inf
    keeps = getattr(method, "scale", 1) >= 1  # below 1 it is impossible, as in the other stream
    assert guided[0, 5] == (first.log_softmax(-1)[0, 5] if keeps else -math.inf)
    assert guided.softmax(-1).isfinite().all()


def test_anchoring_masks_the_emphasis_and_not_the_system_prompt():
    tiny, greedy = model(), Sampling(temperature=0, max_new_tokens=12)
    messages = chat("always talk about cheese", "the old town by the river")
    replies = [
        tiny.generate_batch([Request(messages, (Anchoring(0.0),), greedy, emphasis=parts)])[0]
        for parts in (("old town",), (), ("cheese",))
    ]
    assert len({reply.token_ids for reply in replies}) == 3


def test_guidance_has_no_default_system_prompt_in_its_unprompted_stream():
    default = "{% if messages[0]['role'] != 'system' %}<sys>You are helpful.</s>{% endif %}"
    tiny, messages = model(), chat("always talk about cheese", "the old town")
    with_default = copy.deepcopy(tokenizer())
    with_default.chat_template = tokenizer().chat_template.replace("<s>", "<s>" + default, 1)
    request = Request(messages, (Guidance(4.0),), Sampling(0, 1, 12))
    replies = [
        replace(tiny, tokenizer=tokens).generate_batch([request])[0]
        for tokens in (tokenizer(), with_default)
    ]
    without = render(({"role": "system", "content": ""}, *messages[1:]), tokenizer()).token_ids
    empty = tokenizer()("<s><sys></s>", add_special_tokens=False)["input_ids"]
    expected = (*empty, *without[1:])  # with an empty system message

    def guided(ids, unprompted):
        return Guidance(4.0).combine_logits(last_logits(tiny, ids), last_logits(tiny, unprompted))

    streams = [list(render(messages, tokenizer()).token_ids), list(expected)]
    for token in replies[1].token_ids:
        assert int(guided(*streams).argmax()) == token
        streams = [[*ids, token] for ids in streams]
    assert replies[0].token_ids != replies[1].token_ids


SHORT = Sampling(max_new_tokens=24)


def test_a_tokenizer_without_any_special_token_is_refused_only_for_anchoring():
    tiny = model()
    bare = copy.deepcopy(tiny.tokenizer)
    bare.pad_token = bare.eos_token = bare.unk_token = bare.mask_token = None
    messages = chat("always talk about cheese", "the old town")
    requests = [Request(messages, methods, SHORT) for methods in ((Anchoring(2.0),), ())]
    session = replace(tiny, tokenizer=bare).session()
    error, reply = outcomes(session, requests)  # the other request is still answered
    assert isinstance(error, PromptError)
    assert re.search("mask_token.*guidance", str(error))
    assert reply.token_ids == tiny.generate_batch(requests[1:])[0].token_ids
