"""Rows of every kind of cache in one batch, against each row alone with the cache that its model
makes, which encodes the whole history again at every turn.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tiny import chat, model

from holdfast import Boost, Gate, Guidance, Pasta, Request, Sampling, SplitSoftmax, Spotlight
from holdfast.engine.cache import HELD
from holdfast.models.loading import reuses_cache

# float64 logits of large random weights; what a wrong mask or state moves is 1e-2 and more
ROUNDING = 1e-6
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
SHARED = {
    "num_hidden_layers": 4,
    "num_kv_shared_layers": 2,
    "layer_types": ("sliding_attention", "full_attention") * 2,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 400,
}
# windows and chunks of 16 tokens, where a first turn has about 30
KINDS = {
    "mistral": {"sliding_window": 16},
    "phi3": {"sliding_window": 16},
    "qwen3": {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1},
    "smollm3": {"sliding_window": 16, "use_sliding_window": True, "no_rope_layers": (1, 0, 1)},
    "gemma2": {"sliding_window": 16},
    "gemma3_text": {"sliding_window": 16},
    "cohere2": {"sliding_window": 16, "layer_types": ("sliding_attention", "full_attention") * 2},
    "olmo3": {"sliding_window": 16},
    "gpt_oss": {"sliding_window": 16, "experts_implementation": "eager", **EXPERTS},
    "llama4_text": {
        "attention_chunk_size": 16,
        "intermediate_size_mlp": 96,
        "no_rope_layers": (1, 0, 1),
        **EXPERTS,
    },
    "gemma3n_text": {
        "sliding_window": 16,
        "laurel_rank": 8,
        "activation_sparsity_pattern": (0.0,) * 4,
        **SHARED,
    },
    "gemma4_text": {"sliding_window": 16, **SHARED},
}
KINDS["cohere2"]["num_hidden_layers"] = 4
METHODS = {
    "none": (),
    "split-softmax": (SplitSoftmax(0.2),),
    "pasta": (Pasta(0.01, {(0, 1), (1, 2), (2, 0)}),),
    "boost and spotlight": (Boost(3), Spotlight(0.4)),
    "guidance": (Guidance(2.0), Boost(2)),
}
GREEDY = Sampling(temperature=0, max_new_tokens=10)


def double(kind):
    """A model in float64, by which a row alone and in a batch draw the same tokens."""
    return model(kind, dtype="float64", **KINDS[kind])


def turns(session, dialogs):
    """Three turns of dialogs, all together: each is kept, and the second is forked as well."""
    talks, replies = list(dialogs.values()), []
    for turn in range(3):
        asked = []
        for number, (talk, methods, sampling) in enumerate(talks):
            given = dict(thread=number, seed=10 * turn + number, trace=True)
            asked.append(Request(talk, methods, sampling, keep=True, **given))
            if turn == 1:
                fork = (*talk[:-1], {"role": "user", "content": "what do you hold on to?"})
                asked.append(Request(fork, methods, sampling, **given))
        answers = session.generate_batch(asked)
        replies += zip(asked, answers, strict=True)
        kept = [reply for request, reply in zip(asked, answers, strict=True) if request.keep]
        for number, (talk, methods, sampling) in enumerate(talks):
            later = chat("", "", kept[number].text, "and the old town " * (number % 3 + 1))[1:]
            talks[number] = (*talk, *later), methods, sampling
    return replies


def dialogs():
    """Dialogs of different length, methods, sampling and length of reply."""
    return {
        (name, place): (
            chat("always talk about cheese " * (place + 1), "the garden " * (3 * place + number)),
            methods,
            Sampling(1.0, 0.95, 4 + 5 * place) if place else GREEDY,
        )
        for number, (name, methods) in enumerate(METHODS.items())
        for place in range(2)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_mixed_batch_that_rows_join_and_leave_equals_each_row_alone(kind):
    tiny = double(kind)
    assert tiny.steerable and tiny.reuses_cache
    alone = replace(tiny, reuses_cache=False)
    talks = dialogs()
    together = turns(replace(tiny, batch_size=5).session(), talks)
    expected = turns(alone.session(), talks)
    for (request, reply), (_, wanted) in zip(together, expected, strict=True):
        assert reply.token_ids == wanted.token_ids, request
        assert reply.prompt_ids == wanted.prompt_ids
        assert torch.allclose(reply.trace.mass, wanted.trace.mass, atol=ROUNDING)
    assert len({reply.token_ids for _, reply in together}) > len(together) // 2
    forwarded = [sum(reply.forwarded for _, reply in each) for each in (together, expected)]
    assert forwarded[0] < forwarded[1] / 2


@pytest.mark.parametrize("kind", KINDS)
def test_scores_behind_a_kept_thread_equal_those_of_the_whole_chat(kind):
    tiny = double(kind)
    talk = chat("always talk about cheese", "the old town by the river " * 3)
    replies = [["bread and music", "the garden"], ["rain"]]
    each = []
    for reuses in (True, False):
        session = replace(tiny, reuses_cache=reuses).session()
        first = session.generate(Request(talk, sampling=GREEDY, thread="t", keep=True))
        longer = (*talk, *chat("", "", first.text, "and bread?")[1:])
        asked = [Request(longer, methods, thread="t") for methods in ((), METHODS["split-softmax"])]
        scored = session.score(asked, replies)
        each.append([value for score in scored for value in score.log_probabilities])
    assert each[0] == pytest.approx(each[1], abs=1e-5)


@pytest.mark.parametrize("kind", ("mistral", "gemma3_text", "llama4_text"))
def test_a_gate_takes_the_same_tokens_in_a_batch_and_alone(kind):
    tiny, gate = double(kind), Gate((SplitSoftmax(0.05),), 0.3)
    asked = [
        Request(chat("talk about cheese", "the garden " * n), (gate,), GREEDY, n) for n in (1, 6, 3)
    ]
    together = [reply.token_ids for reply in tiny.generate_batch(asked)]
    assert together == [tiny.generate_batch([each])[0].token_ids for each in asked]


def test_what_a_cache_is_made_of_and_where_masks_come_from_decide_who_shares_a_pass():
    from transformers.cache_utils import DynamicCache

    for kind in KINDS:
        layers = DynamicCache(config=double(kind).hf_model.config).layers
        assert {type(layer) for layer in layers} <= HELD
    small = {"n_layer": 2, "n_head": 4}
    assert not model("bloom", **small).reuses_cache  # it asks for no masks of ours
    with_scales = {**KINDS["llama4_text"], "floor_scale": 64}
    assert not reuses_cache(model("llama4_text", **with_scales).hf_model)
