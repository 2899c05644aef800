"""Rotary factors that change with the length of the text: longrope (Phi-3) and dynamic NTK.

The reference is what transformers makes of one row alone, and a plain forward of the whole text at
every step.
"""

from dataclasses import replace

import pytest
import torch
from fast_set import only_fast
from tiny import DEVICE, SHAPE, answer_all, chat, model

import holdfast
from holdfast import Boost, Guidance, Request, Sampling, SplitSoftmax, Spotlight
from holdfast.attention import BatchSteering, RotaryLengths, steer_pass
from holdfast.errors import ModelError, PromptTooLong, UsageError
from holdfast.methods import compile_methods
from holdfast.models.event_loop import run_sync

SWITCH = 64  # tokens up to which texts have the short factors
HALF = SHAPE["head_dim"] // 2
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * HALF,
    "long_factor": [1.0 + 2 * n for n in range(HALF)],
    "original_max_position_embeddings": SWITCH,
}

METHODS = {
    "none": (),
    "boost": (Boost(3),),
    "split-softmax": (SplitSoftmax(0.3),),
    "spotlight": (Spotlight(0.3),),
    "guidance": (Guidance(2.0), Boost(2)),
}
GREEDY = Sampling(temperature=0, max_new_tokens=30)


class Frozen(dict):
    """A dictionary that `tiny.model` can cache."""

    def __hash__(self):
        return hash(repr(self))


def phi3(**options):
    """A random Phi-3 whose replies do not end early."""
    phi3_model = model(
        "phi3",
        dtype="float64",
        hidden_size=SHAPE["head_dim"] * SHAPE["num_attention_heads"],  # Phi-3 knows no head_dim
        rope_parameters=Frozen(LONGROPE),
        original_max_position_embeddings=SWITCH,
        **options,
    )
    return replace(phi3_model, stop_ids=frozenset())


def prompt_of(tiny, tokens, system="talk about bread"):
    """A chat whose prompt has this many tokens."""
    for length in range(tokens):
        messages = chat(system, "a" * length)
        if len(tiny.session().render(Request(messages)).prompt_ids) == tokens:
            return messages
    raise AssertionError(f"no prompt has {tokens} tokens")


def by_generate(tiny, prompt_ids, count=30):
    """The reply of transformers to this row alone."""
    ids = torch.tensor([prompt_ids], device=DEVICE)
    token_ids = tiny.hf_model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=count,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return tuple(token_ids[0, len(prompt_ids) :].tolist())


def by_whole_text(tiny, prompt_ids, count=30, span=(), methods=()):
    """The reply if every step forwards the whole text, without a cache."""
    ids = torch.tensor([prompt_ids], device=DEVICE)
    mask = torch.tensor([span], device=DEVICE)
    steering = BatchSteering(
        mask, [compile_methods(methods)], prompt_columns=[len(prompt_ids)], covers_pass=False
    )
    for _ in range(count):
        with torch.inference_mode(), steer_pass(steering if methods else None):
            logits = tiny.hf_model(input_ids=ids, use_cache=False).logits
        ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
    return tuple(ids[0, len(prompt_ids) :].tolist())


@pytest.fixture(params=only_fast((None, 16, 256), None, 16), ids=lambda width: f"window {width}")
def tiny(request):
    return phi3(sliding_window=request.param)


# Longrope: rows that cross the switch


def test_a_row_that_crosses_the_switch_is_what_transformers_makes_of_it(tiny):
    reply = tiny.generate(prompt_of(tiny, 57), (), GREEDY)
    assert len(reply.prompt_ids) == 57 and len(reply.token_ids) == 30
    assert reply.token_ids == by_generate(tiny, reply.prompt_ids)
    assert reply.token_ids == by_whole_text(tiny, reply.prompt_ids)
    # 57 tokens, 7 steps up to 64, the whole text of 65, and 21 more steps
    assert reply.forwarded == 57 + 7 + 65 + 21


@pytest.mark.parametrize(
    "lengths", only_fast([(57, 90), (30, 57, 90, 63, 64, 65, 57)], (57, 90)), ids=str
)
def test_rows_of_one_batch_are_what_each_is_alone(tiny, lengths):
    requests = [
        Request(prompt_of(tiny, length, f"talk about {'abc'[n % 3]}"), (), GREEDY)
        for n, length in enumerate(lengths)
    ]
    for reply, length in zip(tiny.generate_batch(requests), lengths, strict=True):
        assert len(reply.prompt_ids) == length
        assert reply.token_ids == by_generate(tiny, reply.prompt_ids)


@pytest.mark.parametrize(
    "name", only_fast([name for name in METHODS if name != "guidance"], "none", "split-softmax")
)
def test_steering_is_the_same_on_both_sides_of_the_switch(name):
    tiny = phi3(sliding_window=None)
    request = Request(prompt_of(tiny, 57), METHODS[name], GREEDY)
    prompt = tiny.session().render(request).token_request.prompts[0]
    expected = by_whole_text(tiny, prompt.token_ids, 30, prompt.span, METHODS[name])
    assert tiny.generate_batch([request])[0].token_ids == expected
    long = Request(prompt_of(tiny, 90), METHODS[name], GREEDY)
    assert tiny.generate_batch([long, request])[1].token_ids == expected


@pytest.mark.parametrize("name", METHODS)
def test_rows_without_a_shared_cache_cross_the_switch_too(name):
    tiny = phi3(sliding_window=None)
    request = Request(prompt_of(tiny, 57), METHODS[name], GREEDY)
    alone = replace(tiny, reuses_cache=False)
    assert (
        alone.generate_batch([request])[0].token_ids == tiny.generate_batch([request])[0].token_ids
    )


def test_below_the_switch_rows_share_passes_and_prefixes(tiny):
    session, talk, sampling = tiny.session(), chat("be nice", "hi"), Sampling(0, 1, 4)
    first = session.generate_batch([Request(talk, (), sampling, thread="t", keep=True)])[0]
    talk = (*talk, *chat("", "", first.text, "why?")[1:])
    second = session.generate_batch([Request(talk, (), sampling, thread="t", keep=True)])[0]
    assert len(second.prompt_ids) < SWITCH and second.forwarded < len(second.prompt_ids)
    assert second.token_ids == by_generate(tiny, second.prompt_ids, 4)


# Longrope: what is reused


@pytest.mark.parametrize("name", [name for name in METHODS if name != "guidance"])
def test_a_dialog_reuses_only_keys_with_its_own_factors(tiny, name):
    methods, session, talk = METHODS[name], tiny.session(), prompt_of(tiny, 40)
    for turn in range(3):  # of 40, then more than 64, then still more tokens
        sampling = replace(GREEDY, max_new_tokens=8)
        request = Request(talk, methods, sampling, thread="t", keep=True)
        prompt = session.render(request).token_request.prompts[0]
        (reply,) = session.generate_batch([request])
        expected = by_whole_text(tiny, prompt.token_ids, 8, prompt.span, methods)
        assert reply.token_ids == expected
        if name == "none":
            assert expected == by_generate(tiny, reply.prompt_ids, 8)
        if turn == 1:  # nothing of the first turn could be used
            assert reply.forwarded >= len(reply.prompt_ids) > SWITCH
        if turn == 2:
            assert reply.forwarded < len(reply.prompt_ids)
        talk = (*talk, *chat("", "", reply.text, "and the old town?" * 3)[1:])


@pytest.mark.parametrize(
    "lengths", only_fast([(57, 90, 57, 91), (90, 57, 91, 40)], (57, 90, 57, 91)), ids=str
)
def test_shared_prefixes_are_kept_apart_by_factors(tiny, lengths):
    session = tiny.session(long_lived=True)
    for length in lengths:
        (answer,) = answer_all(session, [Request(prompt_of(tiny, length), (), GREEDY)])
        reply = answer.outcome
        assert reply.token_ids == by_generate(tiny, reply.prompt_ids)
        assert answer.state.cached < max(1, length)


def test_a_reply_is_scored_as_it_would_be_generated(tiny):
    messages = prompt_of(tiny, 57)
    reply = tiny.generate(messages, (), GREEDY)
    requests = [Request(messages), Request(prompt_of(tiny, 90))]
    text = tiny.tokenizer.decode(reply.token_ids)
    score_input, _ = run_sync(tiny.session().score_inputs(requests, [[text], ["bread"]]))
    prompt, (ids,) = score_input.prompt, score_input.replies
    score = tiny.session().score_batch(requests, [[text], ["bread"]])[0]
    alone = (
        replace(tiny, reuses_cache=False).session().score_batch(requests, [[text], ["bread"]])[0]
    )
    expected, whole = 0.0, torch.tensor([prompt.token_ids], device=DEVICE)
    for token in ids:
        with torch.inference_mode():
            logits = tiny.hf_model(input_ids=whole, use_cache=False).logits[0, -1]
        expected += float(logits.double().log_softmax(-1)[token])
        whole = torch.cat([whole, torch.tensor([[token]], device=DEVICE)], 1)
    assert len(prompt.token_ids) + len(ids) > SWITCH + 1
    assert score.log_probabilities == pytest.approx([expected], abs=1e-4)
    assert alone.log_probabilities == pytest.approx([expected], abs=1e-4)


# Longrope: blocks


@pytest.mark.parametrize("methods", [(Boost(3),), (Spotlight(0.3),)], ids=lambda m: m[0].name)
def test_a_block_steers_the_pass_in_which_generate_computes_the_cache_anew(methods):
    tiny = phi3(sliding_window=None)
    request = Request(prompt_of(tiny, 57), methods, GREEDY)
    prompt = tiny.session().render(request).token_request.prompts[0]
    ids, span = (
        torch.tensor([values], device=DEVICE) for values in (prompt.token_ids, prompt.span)
    )
    options = {"max_new_tokens": 30, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    with holdfast.steering(tiny.hf_model, span, methods):
        token_ids = tiny.hf_model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    assert tuple(token_ids[0, 57:].tolist()) == tiny.generate_batch([request])[0].token_ids


def test_a_block_refuses_rows_on_both_sides_of_the_switch():
    tiny = phi3(sliding_window=None)
    ids = torch.full((2, 70), 50, device=DEVICE)
    mask, span = torch.ones_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    mask[0, :20], span[:, 25:30] = 0, True
    with holdfast.steering(tiny.hf_model, span, [Boost(2)]):
        with pytest.raises(ModelError, match=r"50 to 70 tokens.*Phi3ForCausalLM \(longrope\).* 64"):
            tiny.hf_model.generate(ids, attention_mask=mask, max_new_tokens=2)
        mask[0, :20], mask[0, :2] = 1, 0
        tiny.hf_model.generate(ids, attention_mask=mask, max_new_tokens=2, pad_token_id=0)


def test_a_prompt_longer_than_the_mask_is_still_refused_in_a_block():
    tiny = phi3(sliding_window=None)
    span = torch.zeros(1, 57, dtype=torch.bool, device=DEVICE)
    span[:, 5:9] = True
    with (
        holdfast.steering(tiny.hf_model, span, [Boost(2)]),
        pytest.raises(UsageError, match=r"57 tokens.*70"),
    ):
        tiny.hf_model.generate(torch.full((1, 70), 50, device=DEVICE), max_new_tokens=2)


# The switch


def test_only_a_length_at_which_something_changes_is_a_switch():
    of = RotaryLengths.of
    config = model().hf_model.config
    equal_factors = {**LONGROPE, "long_factor": LONGROPE["short_factor"]}
    for parameters, switch in (
        (LONGROPE, SWITCH),
        (equal_factors, None),
        ({**equal_factors, "short_mscale": 1.0, "long_mscale": 1.2}, SWITCH),
        ({"full_attention": LONGROPE, "sliding_attention": {"rope_type": "default"}}, SWITCH),
        ({"rope_type": "yarn", "original_max_position_embeddings": SWITCH}, None),
        (None, None),
    ):
        switching_config = type(config)(max_position_embeddings=512)
        switching_config.rope_parameters = parameters
        assert of(switching_config).switch == switch


# Dynamic NTK

DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}


def test_dynamic_factors_are_exact_up_to_the_context_and_refused_beyond_it():
    options = {"rope_parameters": Frozen(DYNAMIC), "max_position_embeddings": SWITCH}
    tiny = replace(model("llama", dtype="float64", **options), stop_ids=frozenset())
    assert tiny.runner.rotary == RotaryLengths(SWITCH, grows=True)
    # transformers keeps the factors of the longest text that it has seen until it sees a shorter
    by_generate(tiny, tuple(range(50, 100)), 30)
    requests = [Request(prompt_of(tiny, length), (), GREEDY) for length in (57, 40, 63)]
    for reply in tiny.generate_batch(requests):
        count = SWITCH - len(reply.prompt_ids)
        expected = by_whole_text(tiny, reply.prompt_ids, count)
        assert reply.token_ids == expected[:30] == by_generate(tiny, reply.prompt_ids, count)[:30]
    with pytest.raises(PromptTooLong, match="64 tokens"):
        tiny.generate(prompt_of(tiny, 64), (), GREEDY)


def test_a_block_refuses_rows_with_different_dynamic_factors():
    options = {"rope_parameters": Frozen(DYNAMIC), "max_position_embeddings": SWITCH}
    tiny = model("llama", dtype="float64", **options)
    ids = torch.full((2, 70), 50, device=DEVICE)
    mask, span = torch.ones_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    mask[0, :2], span[:, 25:30] = 0, True
    with (
        holdfast.steering(tiny.hf_model, span, [Boost(2)]),
        pytest.raises(ModelError, match=r"68 to 70 tokens.*dynamic NTK.* 64"),
    ):
        tiny.hf_model(ids, attention_mask=mask)
