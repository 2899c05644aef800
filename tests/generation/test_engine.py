"""The decode loop and the attention seam, against transformers' own forward and the oracles."""

import copy
import gc
import itertools
import math
import re
import weakref
from dataclasses import replace
from functools import partial

import pytest
import torch
from fast_set import only_fast
from oracles import adacad, anchoring, guidance
from tiny import DEVICE, GPTJ, chat, model, outcomes, tokenizer

import holdfast
from holdfast import Guidance, PromptStrength, Sampling, SplitSoftmax, Spotlight
from holdfast.attention import BatchSteering, steer_pass
from holdfast.chat.prompt import render
from holdfast.errors import ModelError, PromptError
from holdfast.methods import AdaCad, Anchoring, Boost, Pasta, compile_methods
from holdfast.models.requests import Request

SHORT = Sampling(max_new_tokens=24)
ROUNDING = 2e-5  # float32, three layers of large random weights
KINDS = ("llama", "qwen2", "mistral", "gpt_neox", "gemma3_text", "gemma2", "bloom", "gptj", "mamba")
SHAPES = {
    "gpt_oss": {"num_local_experts": 2, "num_experts_per_tok": 1},
    "bloom": {"n_layer": 3, "n_head": 4},
    "gptj": GPTJ,
}
NUCLEI = ((1.0, 0.9), (0.2, 0.5), (1.7, 0.99), (2.0, 1.0))


tensor = partial(torch.tensor, device=DEVICE)


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


@pytest.mark.parametrize(("temperature", "top_p"), NUCLEI)
def test_the_sampler_draws_from_the_nucleus_as_defined(temperature, top_p):
    """Against the definition in float64: the fewest likeliest tokens that reach top_p."""
    from holdfast.generation.drawing import draw, uniforms

    torch.manual_seed(3)
    logits, rows = torch.randn(1, 900) * 3, 4000
    numbers = [uniforms(seed, 1)[0] for seed in range(rows)]
    tokens = draw(logits.expand(rows, -1), [Sampling(temperature, top_p, 1)] * rows, numbers)
    shares = torch.bincount(torch.tensor(tokens), minlength=900) / rows
    probabilities, order = (logits[0].double() / temperature).softmax(-1).sort(descending=True)
    size = int((probabilities.cumsum(-1) < top_p).sum()) + 1
    expected = torch.zeros(900, dtype=torch.double)
    expected[order[:size]] = probabilities[:size] / probabilities[:size].sum()
    assert not shares[expected == 0].any()
    assert (shares - expected).abs().max() < 4 * (expected.max() / rows) ** 0.5 + 1e-3


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4097, 20_000])
def test_a_draw_inverts_the_cumulated_nucleus(size):
    """In float64, by probability and then by id; whatever blocks the vocabulary is searched in."""
    from holdfast.generation.drawing import draw

    torch.manual_seed(size)
    logits, numbers = torch.randn(32, size) * 3, torch.rand(32).tolist()
    logits[:8] = logits[:8].sort(descending=True).values  # the likeliest side by side
    logits[8:16, : size - 1] = -math.inf  # as a grammar forbids tokens
    logits[12:16, : size // 9] = 0.0
    for temperature, top_p in ((1.0, 0.9), (0.5, 1.0), (1.5, 0.4)):
        tokens = draw(logits, [Sampling(temperature, top_p)] * 32, numbers)
        exact = (logits.double() / temperature).softmax(-1)
        probabilities, order = exact.sort(descending=True, stable=True)
        before = probabilities.cumsum(-1) - probabilities
        cumulated = probabilities.masked_fill(before >= top_p, 0.0).cumsum(-1)
        at = torch.tensor(numbers, dtype=torch.float64)[:, None] * cumulated[:, -1:]
        ranks = (cumulated <= at).sum(-1, keepdim=True)
        assert tokens == order.gather(-1, ranks)[:, 0].tolist()


@pytest.mark.parametrize("top_p", [0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("spread", only_fast([0.0, 1.0, 3.0], 1.0))
def test_a_wide_nucleus_of_a_large_vocabulary_is_drawn_as_if_it_were_sorted(top_p, spread):
    """Against a stable sort of the same float32 probabilities, many of which tie."""
    from holdfast.generation.drawing import draw

    torch.manual_seed(5)
    logits = (torch.randn(6, 151_936) * spread).to(torch.bfloat16)
    numbers = [0.0, *torch.rand(4).tolist(), 0.999]
    tokens = draw(logits, [Sampling(1.0, top_p)] * 6, numbers)
    rows = logits.float()
    probabilities = (rows - rows.amax(-1, keepdim=True)).softmax(-1)
    shares, order = probabilities.double().sort(descending=True, stable=True)
    before = shares.cumsum(-1) - shares
    cumulated = shares.masked_fill(before >= top_p, 0.0).cumsum(-1)
    at = torch.tensor(numbers, dtype=torch.float64)[:, None] * cumulated[:, -1:]
    ranks = (cumulated <= at).sum(-1, keepdim=True)
    assert tokens == order.gather(-1, ranks)[:, 0].tolist()


def test_tied_tokens_are_drawn_the_same_whatever_the_other_rows():
    """Logits in bfloat16 often tie; a row with a wide nucleus makes the sampler search further."""
    from holdfast.generation.drawing import draw

    torch.manual_seed(4)
    logits = (torch.randn(40, 3000) * 2).to(torch.bfloat16)
    samplings = [Sampling(1.0, 0.5), Sampling(0.0), Sampling(1.0, 0.1), Sampling(1.0, 0.99)] * 10
    numbers = torch.rand(40).tolist()
    batched = draw(logits, samplings, numbers)
    for row, token in enumerate(batched):
        row_only = slice(row, row + 1)
        assert draw(logits[row_only], samplings[row_only], numbers[row_only]) == [token]
    assert batched[1::4] == [int((row == row.max()).nonzero()[0]) for row in logits[1::4]]


def test_logits_that_are_not_finite_end_only_their_row():
    from holdfast.generation.drawing import draw_or_error

    logits = torch.stack([torch.full((9,), value) for value in (math.nan, 0.0, -math.inf, 1.0)])
    tokens = draw_or_error(logits, [Sampling()] * 4, [0.5] * 4)
    for index in (0, 2):
        with pytest.raises(ModelError, match=r"not finite.*float32"):
            raise tokens[index]
    assert tokens[1] == tokens[3] == 4


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


def last_logits(tiny, ids, methods=(), span=()):
    span_mask = tensor([list(span) + [False] * (len(ids) - len(span))])
    steering = BatchSteering(span_mask, [compile_methods(methods)]) if methods else None
    with steer_pass(steering), torch.inference_mode():
        return tiny.hf_model(tensor([ids]), use_cache=False).logits[0, -1].double()


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


def test_keys_and_values_are_freed_with_the_call_not_when_cycles_are_collected(monkeypatch):
    """A process that answers batch after batch makes few objects for the collector to count."""
    from holdfast.generation.slots import SlotCache

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
