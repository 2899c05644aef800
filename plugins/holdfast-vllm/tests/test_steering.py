"""Steered replies against Holdfast's own log-probabilities at the same token ids."""

import pytest
import torch
from conftest import (
    BFLOAT16_TOLERANCE,
    CHATS,
    FLOAT32_TOLERANCE,
    MIN_MOVED,
    STOCK,
    answer,
    compare,
    engine,
    finish,
    logprobs_of,
    reference,
    sampling,
    span_of,
    submit,
)

METHODS = [
    "split-softmax:exponent=0.5",
    "split-softmax:exponent=0",
    "boost:factor=4",
    "pasta:alpha=0.01",
    "pasta:alpha=0.01,generated=scale",
    "spotlight:target=0.3",
    "boost:factor=8,heads=1.2/1.5/2.3/3.0",
    "pasta:alpha=0.01,heads=0.0/1.2/1.5/2.3/3.0",
    "spotlight:target=0.2+split-softmax:exponent=0.6",
    "split-softmax:exponent=0.5+boost:factor=2",
    "boost:factor=2+pasta:alpha=0.1",
]


@pytest.mark.parametrize("spec", METHODS)
def test_methods_match_holdfast(spec):
    outputs = answer(engine(), CHATS, [sampling({"holdfast": spec})] * len(CHATS))
    compared = [
        compare(output, span_of(messages), spec)
        for output, messages in zip(outputs, CHATS, strict=True)
    ]
    assert max(differences.from_holdfast for differences in compared) < FLOAT32_TOLERANCE
    assert max(differences.by_steering for differences in compared) > MIN_MOVED


def test_unsteered_replies_are_bit_identical_to_stock():
    ours = answer(engine(), CHATS, [sampling(None)] * len(CHATS))
    stock = answer(engine(STOCK), CHATS, [sampling(None)] * len(CHATS))
    for output, stock_output in zip(ours, stock, strict=True):
        assert output.outputs[0].token_ids == stock_output.outputs[0].token_ids
        assert logprobs_of(output) == logprobs_of(stock_output)


def test_rows_of_a_mixed_batch_match_holdfast():
    """Two methods in one row, a span of two parts, a span by its text, and an unsteered row."""
    chats = [CHATS[0], CHATS[1], CHATS[2], CHATS[1]]
    parts = [4, 7, 9, 14]
    parameters = [
        sampling({"holdfast": "boost:factor=4", "holdfast_span": parts}),
        sampling({"holdfast": "pasta:alpha=0.05", "holdfast_text": "Speak of music."}),
        sampling(None),
        sampling({"holdfast": "split-softmax:exponent=0.4+pasta:alpha=0.3"}),
    ]
    outputs = answer(engine(), chats, parameters)
    stock = answer(engine(STOCK), chats, [sampling(None)] * 4)
    words = span_of(CHATS[1], ["Speak of music."])
    ranges = [((4, 7), (9, 14)), words, (), span_of(CHATS[1])]
    for output, span, params in zip(outputs, ranges, parameters, strict=True):
        if span:
            differences = compare(output, span, params.extra_args["holdfast"])
            assert differences.from_holdfast < FLOAT32_TOLERANCE
            assert differences.by_steering > MIN_MOVED / 4
    assert logprobs_of(outputs[2]) == logprobs_of(stock[2])


@pytest.mark.parametrize("spec", ["split-softmax:exponent=0.5", "pasta:alpha=0.05", METHODS[-1]])
def test_chunked_prefill_matches_holdfast(spec):
    """Chunks of 16 tokens over pages of 32; the longest span covers whole chunks and pages."""
    llm = engine(
        max_num_batched_tokens=16, max_num_seqs=8, block_size=32, enable_chunked_prefill=True
    )
    outputs = answer(llm, CHATS, [sampling({"holdfast": spec})] * len(CHATS))
    first, last = span_of(CHATS[2])[0]
    assert first < 32 and last > 64
    for output, messages in zip(outputs, CHATS, strict=True):
        assert compare(output, span_of(messages), spec).from_holdfast < FLOAT32_TOLERANCE


def test_preempted_rows_match_holdfast():
    """A cache that is too small for the batch: rows are preempted and recomputed."""
    llm = engine(num_gpu_blocks_override=10, block_size=32, max_model_len=256, max_num_seqs=8)
    specs = ["split-softmax:exponent=0.5", "pasta:alpha=0.05", "boost:factor=4"]
    parameters = [sampling({"holdfast": spec}, 60, prompt_logprobs=None) for spec in specs * 2]
    outputs = answer(llm, [CHATS[0]] * 6, parameters)
    preempted = next(
        metric.value for metric in llm.get_metrics() if metric.name == "vllm:num_preemptions"
    )
    assert preempted > 0
    for output, params in zip(outputs, parameters, strict=True):
        spec = params.extra_args["holdfast"]
        assert compare(output, span_of(CHATS[0]), spec).from_holdfast < FLOAT32_TOLERANCE


def test_bfloat16_matches_holdfast_within_its_rounding():
    llm = engine(dtype="bfloat16")
    for spec in ("split-softmax:exponent=0.5", "boost:factor=4"):
        outputs = answer(llm, CHATS, [sampling({"holdfast": spec})] * len(CHATS))
        for output, messages in zip(outputs, CHATS, strict=True):
            differences = compare(output, span_of(messages), spec)
            assert differences.from_holdfast < BFLOAT16_TOLERANCE
        assert differences.by_steering > 2 * BFLOAT16_TOLERANCE


@pytest.mark.parametrize("spec", ["none", "split-softmax:exponent=0.5", "pasta:alpha=0.05"])
def test_mass_matches_holdfast(spec):
    llm = engine()
    name = f"traced {spec}"
    submit(llm, name, CHATS[0], sampling({"holdfast": spec, "holdfast_trace": 1}))
    output = finish(llm)[name]
    record = llm.collective_rpc("holdfast_mass", args=(name,))[0]
    ids = [*output.prompt_token_ids, *output.outputs[0].token_ids[:-1]]
    _, masses = reference(ids, len(output.prompt_token_ids), span_of(CHATS[0]), spec)
    expected = torch.stack(masses)  # [token, layer, head]
    torch.testing.assert_close(
        torch.tensor(record["mass"]), expected.mean((1, 2)), rtol=0, atol=1e-5
    )
    torch.testing.assert_close(
        torch.tensor(record["layers"]), expected.mean((0, 2)), rtol=0, atol=1e-5
    )
    if spec == "none":
        plain = llm.chat([CHATS[0]], sampling(None), use_tqdm=False)[0]
        assert logprobs_of(output) == logprobs_of(plain)
