"""Rows of every kind of cache in one batch, against each row alone without reuse."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from cache_kinds import FAMILIES, RECURRENT, TWO_EXPERTS, WINDOWED, model_in_float64
from fast_set import only_fast
from tiny import GPTJ, chat, model
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

from holdfast import Boost, Guidance, Pasta, Request, Sampling, SplitSoftmax, Spotlight
from holdfast.chat.prompt import render
from holdfast.generation import key_layers, slot_layers
from holdfast.generation.key_layers import SPARE_COLUMNS, KeyLayer, WindowLayer
from holdfast.generation.scheduler import Scheduler
from holdfast.generation.slot_layers import SLOT_LAYERS
from holdfast.generation.token_requests import TokenPrompt, TokenRequest
from holdfast.generation.transformers_runner import TransformersRunner
from holdfast.methods import compile_methods

IN_STATES = 1e-4  # recurrences run in float32 whatever the model's dtype

METHODS = {
    "none": (),
    "split-softmax": (SplitSoftmax(0.2),),
    "pasta": (Pasta(0.01, {(1, 2), (1, 0)}),),
    "boost and spotlight": (Boost(3), Spotlight(0.4)),
    "guidance": (Guidance(2.0), Boost(2)),
}
GREEDY = Sampling(temperature=0, max_new_tokens=10)


@pytest.fixture(autouse=True)
def cut_soon(monkeypatch):
    """Windowed layers keep 4 tokens beyond these small windows."""
    monkeypatch.setattr(slot_layers, "SPARE_TOKENS", 4)


# Replies

# float64 logits of large random weights; a wrong mask or state makes a difference of 1e-2 or more
ROUNDING = 1e-6

# with layers of the first Mamba, whose passes of several tokens do not read a state
READ_NO_STATE = ("jamba", "mamba")


def dialogs(tiny):
    """Dialogs that differ in length, methods, sampling and reply length."""
    steering = METHODS if tiny.steerable else {"none": (), "guidance": (Guidance(2.0),)}
    return {
        (name, index): (
            chat("always talk about cheese " * (index + 1), "the garden " * (3 * index + number)),
            methods,
            Sampling(1.0, 0.95, 4 + 5 * index) if index else GREEDY,
        )
        for number, (name, methods) in enumerate(steering.items())
        for index in range(2)
    }


def turns(session, dialogs):
    """Runs three turns of all dialogs together; each is kept, and the second is forked as well."""
    talks, replies = list(dialogs.values()), []
    for turn in range(3):
        batch = []
        for number, (talk, methods, sampling) in enumerate(talks):
            options = dict(thread=number, seed=10 * turn + number, trace=True)
            batch.append(Request(talk, methods, sampling, keep=True, **options))
            if turn == 1:
                fork = (*talk[:-1], {"role": "user", "content": "what do you hold on to?"})
                batch.append(Request(fork, methods, sampling, **options))
        answers = session.generate_batch(batch)
        replies += zip(batch, answers, strict=True)
        latest = [reply for request, reply in zip(batch, answers, strict=True) if request.keep]
        for number, (talk, methods, sampling) in enumerate(talks):
            later = chat("", "", latest[number].text, "and the old town " * (number % 3 + 1))[1:]
            talks[number] = (*talk, *later), methods, sampling
    return replies


@pytest.mark.parametrize("kind", only_fast((*WINDOWED, *RECURRENT), "gemma3_text", "lfm2"))
def test_a_mixed_batch_that_rows_join_and_leave_equals_each_row_alone(kind):
    tiny = model_in_float64(kind)
    assert tiny.reuses_cache
    assert tiny.steerable == (kind not in ("mamba", "mamba2"))
    assert tiny.runner.supports_chunked_prefill == (kind not in READ_NO_STATE)
    alone = replace(tiny, reuses_cache=False)
    talks = dialogs(tiny)
    batched = turns(replace(tiny, batch_size=5).session(), talks)
    expected = turns(alone.session(), talks)
    rounding = ROUNDING if kind in WINDOWED else IN_STATES
    for (request, reply), (_, expected_reply) in zip(batched, expected, strict=True):
        assert reply.token_ids == expected_reply.token_ids, request
        assert reply.prompt_ids == expected_reply.prompt_ids
        if tiny.steerable:
            assert torch.allclose(reply.trace.mass, expected_reply.trace.mass, atol=rounding)
    assert len({reply.token_ids for _, reply in batched}) > len(batched) // 2
    totals = [sum(reply.forwarded for _, reply in replies) for replies in (batched, expected)]
    if kind in READ_NO_STATE:
        assert totals[0] <= totals[1]
    else:
        # after a reply that methods treat separately, keys of the prompt remain and states do not
        assert totals[0] < totals[1] * (0.5 if kind in WINDOWED else 0.6)


def test_rows_of_different_length_equal_each_row_alone_if_layers_read_the_length_of_the_cache():
    """Beyond `floor_scale`, Llama 4 scales queries by a position that it reads from the cache."""
    scaled = {**WINDOWED["llama4_text"], "attn_scale": 4.0, "floor_scale": 24}
    tiny = model("llama4_text", dtype="float64", **scaled)
    talks = [(n, chat("talk about cheese", "the garden " * n)) for n in (1, 6, 3, 6)]
    requests = [Request(talk, (), GREEDY, seed) for seed, talk in talks]
    alone = replace(tiny, reuses_cache=False).generate_batch(requests)
    batched = tiny.generate_batch(requests)
    assert [reply.token_ids for reply in batched] == [reply.token_ids for reply in alone]
    plain = model("llama4_text", dtype="float64", **{**scaled, "floor_scale": 8192})
    assert plain.generate_batch(requests)[1].token_ids != alone[1].token_ids


@pytest.mark.parametrize(
    "kind", only_fast(("mistral", "gemma3_text", "gpt_oss", "llama4_text"), "gpt_oss")
)
def test_spans_inside_across_and_outside_the_windows_of_rows_that_keep_different_columns(kind):
    tiny = model_in_float64(kind)
    rows = []
    for number, (length, first, last) in enumerate(
        ((90, 80, 88), (12, 2, 9), (47, 24, 36), (61, 3, 9), (33, 18, 31), (75, 60, 75))
    ):
        prompt = torch.randint(6, 400, (length,), generator=torch.Generator().manual_seed(number))
        span = tuple(first <= place < last for place in range(length))
        for methods in METHODS["split-softmax"], METHODS["boost and spotlight"], (Boost(3),), ():
            tokens = TokenPrompt(tuple(prompt.tolist()), span, compile_methods(methods))
            most = 5 + 7 * (number % 3)
            sampling = Sampling(1.0, 0.9, most)
            rows.append(
                TokenRequest((tokens,), sampling=sampling, seed=number, keep=True, trace=True)
            )
    results = []
    for batched, batch in ((True, 9), (False, 1)):
        scheduler = Scheduler(
            TransformersRunner(tiny.hf_model, batched=batched), frozenset(), batch
        )
        handles = [scheduler.submit(row) for row in rows]
        while len(scheduler):
            scheduler.step()
        results.append(handles)
    for row, batch, alone in zip(rows, *results, strict=True):
        assert batch.token_ids == alone.token_ids, row
        assert torch.allclose(batch.trace.mass, alone.trace.mass, atol=ROUNDING)
    masses = torch.stack([alone.trace.mass[..., 0].amax() for alone in results[1]])
    assert (masses > 0.1).sum() > 12


# Scores


@pytest.mark.slow
@pytest.mark.parametrize("kind", (*WINDOWED, *RECURRENT))
def test_scores_after_a_kept_thread_equal_those_of_the_whole_chat(kind):
    tiny = model_in_float64(kind)
    talk = chat("always talk about cheese", "the old town by the river " * 3)
    replies = [["bread and music", "the garden"], ["rain"]]
    values = []
    for reuses in (True, False):
        session = replace(tiny, reuses_cache=reuses).session()
        (first,) = session.generate_batch([Request(talk, sampling=GREEDY, thread="t", keep=True)])
        longer = (*talk, *chat("", "", first.text, "and bread?")[1:])
        second = METHODS["split-softmax"] if tiny.steerable else (Guidance(2.0),)
        requests = [Request(longer, methods, thread="t") for methods in ((), second)]
        scores = session.score_batch(requests, replies)
        values.append([value for score in scores for value in score.log_probabilities])
    assert values[0] == pytest.approx(values[1], abs=1e-5 if kind in WINDOWED else 1e-3)


# Traces

TRACED = (*WINDOWED, "qwen3_next", "lfm2", "bamba", "falcon_h1", "jamba", "gptj", "gpt_neox")


@pytest.mark.parametrize("kind", only_fast(TRACED, *(FAMILIES & {*TRACED}), "gptj"))
def test_uniform_counts_the_tokens_that_each_layer_sees(kind):
    """A layer sees the tokens whose weights in transformers' own eager attention are not 0."""
    options = (WINDOWED | RECURRENT | {"gptj": GPTJ}).get(kind, {})
    tiny = model(kind, **options)
    requests = [
        Request(chat("always talk about cheese", "the garden " * n), METHODS[m], GREEDY, trace=True)
        for n, m in ((1, "none"), (12, "none"), (5, "split-softmax"))
    ]
    config = deepcopy(tiny.hf_model.config)
    plain = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    for reuses in (True, False):
        replies = replace(tiny, reuses_cache=reuses).generate_batch(requests)
        for request, reply in zip(requests, replies, strict=True):
            ids, first = torch.tensor([reply.prompt_ids + reply.token_ids]), len(reply.prompt_ids)
            weights = plain(ids, output_attentions=True, use_cache=False).attentions
            span = torch.zeros(ids.shape[1], dtype=torch.bool)
            span[:first] = torch.tensor(render(request.messages, tiny.tokenizer).span_mask)
            layers = [layer[0] for layer in weights if layer is not None]
            for layer, uniform in zip(layers, reply.trace.uniform, strict=True):
                for step in range(len(reply.token_ids)):
                    visible = layer[:, first + step - 1].sum(0) > 0
                    share = float((visible & span).sum() / visible.sum())
                    assert float(uniform[step]) == pytest.approx(share, abs=1e-6)


def test_a_row_is_traced_in_a_pass_of_its_own_beside_one_that_is_not():
    # has states, so prompts of different lengths get separate passes
    tiny = model_in_float64("lfm2")
    traced = Request(chat("be kind", "hello there my friend"), (), GREEDY, trace=True)
    plain = Request(chat("be kind", "hi"), (), GREEDY)
    for requests in ([traced, plain], [plain, traced]):
        replies = tiny.generate_batch(requests)
        assert [reply.trace is not None for reply in replies] == [r.trace for r in requests]
        (alone,) = tiny.generate_batch([traced])
        trace = replies[requests.index(traced)].trace
        torch.testing.assert_close(trace.mass, alone.trace.mass, atol=IN_STATES, rtol=0)
        torch.testing.assert_close(trace.uniform, alone.trace.uniform, atol=1e-6, rtol=0)


# Windows


def columns_of_windows(slots):
    """The numbers of columns that windowed layers allocate for all rows."""
    assert {type(layer) for layer in slots.layers} == {KeyLayer, WindowLayer}
    return {layer.store[0].shape[2] for layer in slots.layers if type(layer) is WindowLayer}


def test_windowed_layers_keep_only_what_the_window_can_see_of_a_much_longer_dialog(monkeypatch):
    # a mapped store has many columns, of which only those that are written take memory
    monkeypatch.setattr(key_layers, "can_map", lambda device: False)
    tiny, window = model_in_float64("gemma2"), 16
    scheduler = Scheduler(tiny.runner, frozenset(), 8)
    decoder = scheduler.decoder
    for length in (20, 300, 150):
        prompt = TokenPrompt(tuple(range(6, 6 + length)), (True,) * 3 + (False,) * (length - 3))
        scheduler.submit(TokenRequest((prompt,), sampling=Sampling(1.0, 0.9, 100), keep=True))
    widest, caches = 0, []
    while len(scheduler):
        caches += [handle.kv[0] for handle in scheduler.step()]
        slots = decoder.slots
        widest = max(widest, *columns_of_windows(slots))
        first_kept = slots._shared.window.first_kept
        for length, first in zip(slots.lengths, first_kept, strict=True):
            assert first <= max(0, length - window)
            assert length - first <= window + window // 4
    assert widest <= window + window // 4 + 1 + SPARE_COLUMNS
    for cache in caches:
        for layer, (keys, _) in zip(slots.layers, cache.layers, strict=True):
            if type(layer) is KeyLayer:
                assert keys.shape[1] == cache.tokens > 100
            else:
                assert keys.shape[1] <= window + window // 4


def test_a_dialog_cut_by_its_window_is_reused_for_late_forks_and_recomputed_for_early_ones():
    tiny = model_in_float64("gemma3_text")
    session, alone = tiny.session(), replace(tiny, reuses_cache=False).session()
    talk = chat("talk about cheese", "the old town by the river " * 8)
    (first,), _ = (
        chat_session.generate_batch([Request(talk, (), GREEDY, thread="t", keep=True)])
        for chat_session in (session, alone)
    )
    cache = session.threads.use("t")[0].kv
    assert cache.cut > 0
    assert cache.tokens > cache.min_prefix_len > cache.cut
    late = (*talk, *chat("", "", first.text, "and bread?")[1:])
    early = (talk[0], {"role": "user", "content": "the old town and the garden"})
    for fork, reuses in ((late, True), (early, False)):
        (reply,), (expected,) = (
            chat_session.generate_batch([Request(fork, (), GREEDY, thread="t")])
            for chat_session in (session, alone)
        )
        assert (reply.prompt_ids, reply.token_ids) == (expected.prompt_ids, expected.token_ids)
        token_count = len(reply.prompt_ids) + len(reply.token_ids) - 1
        assert (reply.forwarded < token_count) == reuses


# Models that reuse their cache


def test_the_kinds_of_cache_and_masks_decide_whether_a_model_reuses_its_cache():
    for kind in (*WINDOWED, *RECURRENT):
        layers = DynamicCache(config=model_in_float64(kind).hf_model.config).layers
        assert {type(layer) for layer in layers} <= SLOT_LAYERS.keys()
    assert not model("bloom", n_layer=2, n_head=4).reuses_cache  # it does not ask for our masks
    config = {
        "layer_types": ("linear_attention", "full_attention", "linear_attention"),
        **TWO_EXPERTS,
    }
    assert not model("minimax", **config).reuses_cache  # it makes its own cache
    assert not model("bert").reuses_cache  # an encoder keeps nothing
    assert model("bert", is_decoder=True).reuses_cache
