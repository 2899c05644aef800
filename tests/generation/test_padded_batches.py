"""Blocks around `generate`: padded batches, and kinds of cache, against each row alone."""

import pytest
from cache_kinds import WINDOWED
from fast_set import only_fast
from tiny import chat, model

import holdfast

CACHES = {
    "padded": {},
    "static": {"cache_implementation": "static", "disable_compile": True},
    "none": {"use_cache": False},
}


@pytest.mark.parametrize("method", ["boost:factor=4", "split-softmax:exponent=0.5"])
@pytest.mark.parametrize(
    "kind", only_fast(["llama", "mistral", "gemma2", "gpt_oss", "qwen3"], "llama", "gpt_oss")
)
def test_rows_of_a_padded_batch_are_steered_as_each_alone_whatever_the_cache(kind, method):
    tiny = model(kind, dtype="float64", **WINDOWED.get(kind, {}))
    greedy = {"max_new_tokens": 10, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}

    def replies(chats, **options):
        encoded = holdfast.encode_chats(chats, tiny.tokenizer)
        with holdfast.steering(tiny.hf_model, encoded.span_mask, method):
            token_ids = tiny.hf_model.generate(**encoded.inputs, **greedy, **options)
        return token_ids[:, encoded.inputs["input_ids"].shape[1] :].tolist()

    short = chat("be nice", "hello there how is the town")
    long = chat("talk about the garden and bread", "the town", "is old", "and people talk of rain")
    alone = [replies([talk])[0] for talk in (short, long)]
    for options in CACHES.values():
        assert replies([short, long], **options) == alone
    inputs = [holdfast.encode_chats([talk], tiny.tokenizer).inputs for talk in (short, long)]
    unsteered = [tiny.hf_model.generate(**row, **greedy)[0, -10:].tolist() for row in inputs]
    assert unsteered != alone
