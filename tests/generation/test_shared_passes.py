"""Classes of the census whose rows share a pass, against each row alone without a cache; and those
whose rows run one by one, against transformers' `generate`.
"""

import sys

import pytest
import torch
from paths import ROOT

from holdfast import Boost, Sampling, steering
from holdfast.attention import install
from holdfast.errors import ModelError
from holdfast.generation.batch import SequenceGroup
from holdfast.generation.scheduler import Scheduler
from holdfast.generation.slot_layers import layers_like
from holdfast.generation.slot_state import SlotState
from holdfast.generation.token_requests import TokenPrompt, TokenRequest, TokenSequence
from holdfast.generation.transformers_runner import TransformersRunner
from holdfast.methods import compile_methods
from holdfast.models.model_properties import reuses_cache

sys.path.insert(0, str(ROOT / "benchmarks"))

# float32 logits relative to their largest; a wrong mask or state moves them by 1e-3 or more
TOLERANCE = 1e-4
LENGTHS, STEPS = (5, 13, 22), 4
SHARING = (
    "afmoe bailing_hybrid cohere2 deepseek_v3 diffllama doge exaone4 gemma2 gemma3_text "
    "gemma4_text gpt2 gpt_bigcode gpt_oss gptj granite_swa jamba "
    "lfm3 llama llama4_text mamba mimo_v2_flash mistral mllama modernbert-decoder nemotron_h "
    "olmo3 olmo_hybrid phi3 qwen3_5_text qwen3_next"
).split()
ALONE = ("bart", "bloom", "deepseek_v4", "gpt_neo", "recurrent_gemma", "rwkv", "xlstm")


def build(kind):
    import census

    model = census.build(kind).float()
    install(model)
    return model


@pytest.mark.parametrize("kind", [*SHARING, pytest.param("kimi_linear", marks=pytest.mark.slow)])
@torch.inference_mode()
def test_rows_of_different_lengths_get_the_same_logits_as_each_alone(kind):
    model = build(kind)
    assert reuses_cache(model)
    runner, slots = TransformersRunner(model), TransformersRunner(model).slots()
    torch.manual_seed(1)
    rows = [torch.randint(3, 99, (length + STEPS,)).tolist() for length in LENGTHS]
    row_lengths = zip(rows, LENGTHS, strict=True)
    prompts = [TokenPrompt(tuple(row[:length]), (False,) * length) for row, length in row_lengths]

    def forward(slots, sequences):
        ends, every = [len(sequence) for sequence in sequences], range(len(sequences))
        output = runner.forward_slots(slots, every, SequenceGroup(sequences, runner.device))
        slots.commit(every, ends)
        return output.logits[:, -1]

    for _ in rows:
        slots.open(None)
    step_logits = [forward(slots, [TokenSequence(prompt) for prompt in prompts])]
    caches = [slots.copy_kv(slot) for slot in range(3)]
    for step in range(1, STEPS + 1):
        sequences = [
            TokenSequence(prompt, row[len(prompt.token_ids) : length + step])
            for prompt, row, length in zip(prompts, rows, LENGTHS, strict=True)
        ]
        step_logits.append(forward(slots, sequences))
    whole = [model(input_ids=torch.tensor([row]), use_cache=False).logits[0] for row in rows]
    expected = torch.stack([logits[-STEPS - 1 :] for logits in whole], 1)
    size = expected.abs().max()
    assert (torch.stack(step_logits) - expected).abs().max() / size < TOLERANCE
    if runner.supports_chunked_prefill:
        forks = runner.slots()
        for slot in (2, 0):  # other rows in other slots
            forks.open(caches[slot])
        whole = [TokenPrompt(tuple(rows[slot]), (False,) * len(rows[slot])) for slot in (2, 0)]
        sequences = [TokenSequence(prompt) for prompt in whole]
        apart = forward(forks, sequences) - expected[-1, [2, 0]]
        assert apart.abs().max() / size < TOLERANCE


@pytest.mark.parametrize("kind", ALONE)
def test_models_whose_rows_cannot_share_a_pass_are_recognised(kind):
    assert not reuses_cache(build(kind))


# cache layers that have no slots: sparse attention with an index of its keys
@pytest.mark.parametrize("kind", ["deepseek_v32", "glm_moe_dsa"])
@torch.inference_mode()
def test_rows_whose_cache_is_of_an_unknown_kind_run_one_by_one(kind):
    model = build(kind)
    assert not reuses_cache(model)
    with pytest.raises(ModelError, match="DynamicIndexedLayer"):
        layers_like(TransformersRunner(model)._new_cache().layers, SlotState())
    rows = [torch.randint(3, 60, (1, length)) for length in LENGTHS]
    span = torch.zeros(1, max(LENGTHS), dtype=torch.bool)
    span[:, 2:5] = True
    for methods in ((), (Boost(3),)):
        scheduler = Scheduler(TransformersRunner(model, batched=False), frozenset(), batch_size=8)
        handles = []
        for ids in rows:
            mask = tuple(span[0, : ids.shape[1]].tolist())
            prompt = TokenPrompt(tuple(ids[0].tolist()), mask, compile_methods(methods))
            handles.append(scheduler.submit(TokenRequest((prompt,), sampling=Sampling(0, 1, 6))))
        while len(scheduler):
            scheduler.step()
        for handle, ids in zip(handles, rows, strict=True):
            with steering(model, span[:, : ids.shape[1]], [Boost(3 if methods else 1)]):
                expected = model.generate(
                    ids, max_new_tokens=6, do_sample=False, eos_token_id=None, pad_token_id=0
                )
            assert handle.token_ids == expected[0, ids.shape[1] :].tolist()


@torch.inference_mode()
def test_a_class_that_cannot_continue_after_its_cache_reads_the_whole_text_at_every_step():
    model = build("cpmant")
    ids = torch.randint(3, 60, (1, 9))
    runner = TransformersRunner(model, batched=False)
    scheduler = Scheduler(runner, frozenset(), batch_size=8)
    prompt = TokenPrompt(tuple(ids[0].tolist()), (False,) * 9)
    handle = scheduler.submit(TokenRequest((prompt,), sampling=Sampling(0, 1, 4)))
    while len(scheduler):
        scheduler.step()
    expected = model.generate(
        ids, max_new_tokens=4, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    assert handle.token_ids == expected[0, 9:].tolist()
    assert handle.forwarded == 9 + 10 + 11 + 12
