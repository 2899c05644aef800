"""Fingerprints follow the weights, so records always name the weights that answered."""

import asyncio
from dataclasses import replace

import peft
import pytest
import torch
from fast_set import only_fast
from tiny import DEVICE, chat

import holdfast
from holdfast.drift import Settings
from holdfast.errors import ModelError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.fingerprint import fingerprint_of
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request

GREEDY = Sampling(temperature=0, max_new_tokens=6)
CHAT = chat("Always reply in French.", "Do you like the garden?")
LORA = {"r": 4, "target_modules": ["q_proj", "v_proj"], "init_lora_weights": False}


# in bfloat16, the layers may be packed
@pytest.fixture(params=only_fast(["float32", "bfloat16"], "bfloat16"))
def model(request) -> LocalModel:
    """The default model, freshly loaded, so that tests can change it."""
    return holdfast.load("default", dtype=request.param)


def with_adapter(model: LocalModel) -> peft.PeftModel:
    torch.manual_seed(0)
    return peft.get_peft_model(model.hf_model, peft.LoraConfig(**LORA))


def in_place(model: LocalModel) -> None:
    with torch.no_grad():  # one value, not in any sample
        model.hf_model.get_parameter("model.layers.1.mlp.up_proj.weight")[3, 5] += 1


def through_data(model: LocalModel) -> None:
    model.hf_model.get_parameter("model.layers.1.mlp.up_proj.weight").data.mul_(1.5)


def replaced(model: LocalModel) -> None:
    layer = model.hf_model.get_submodule("model.layers.0.mlp.up_proj")
    layer.weight = torch.nn.Parameter(layer.weight.flip(0))


def another_template(model: LocalModel) -> None:
    model.tokenizer.chat_template += " "


def another_configuration(model: LocalModel) -> None:
    model.hf_model.config.rms_norm_eps *= 2


CHANGES = (
    with_adapter,
    in_place,
    through_data,
    replaced,
    another_template,
    another_configuration,
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_fingerprint_follows_a_change_and_an_open_session_refuses_it(model, change):
    before, session = model.fingerprint, model.session()
    session.generate_batch([Request(CHAT, sampling=GREEDY, thread="talk", keep=True)])
    assert before == model.fingerprint == fingerprint_of(model.hf_model, model.tokenizer)
    change(model)
    after = model.fingerprint
    assert after != before
    reply = {"role": "assistant", "content": "Yes."}
    longer = (*CHAT, reply, {"role": "user", "content": "And the river?"})
    for use in (
        lambda: session.generate_batch([Request(longer, sampling=GREEDY, thread="talk")]),
        lambda: session.render(Request(CHAT)),
        lambda: session.score_batch([Request(CHAT)], [["Oui."]]),
        lambda: asyncio.run(session.generate(Request(CHAT))),
    ):
        with pytest.raises(ModelError, match=f"changed since .*{before[:12]}, now {after[:12]}"):
            use()
    assert model.generate(CHAT, "boost:factor=2", sampling=GREEDY)
    assert model.fingerprint == after


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_the_same_change_has_the_same_fingerprint_in_another_process(model, change):
    change(model)
    second = holdfast.load("default", dtype=model.hf_model.dtype)
    change(second)
    assert model.fingerprint == second.fingerprint


def test_disabling_or_merging_an_adapter_changes_the_fingerprint(model):
    adapted = with_adapter(model)
    prints = [model.fingerprint]
    with adapted.disable_adapter():
        prints.append(model.fingerprint)
    assert model.fingerprint == prints[0]
    adapted.merge_adapter()  # writes through .data
    prints.append(model.fingerprint)
    assert len(set(prints)) == 3


def test_using_a_model_changes_nothing(model):
    before = model.fingerprint
    for method in ("none", "boost:factor=2", "guidance:scale=2", "hold"):
        model.generate(CHAT, method, sampling=GREEDY)
    model.score(CHAT, ["Oui."])
    model.hf_model(torch.ones(1, 4, dtype=torch.long, device=DEVICE))
    with holdfast.steering(model.hf_model, torch.ones(1, 4, dtype=torch.bool), ["boost:factor=2"]):
        model.hf_model(torch.ones(1, 4, dtype=torch.long, device=DEVICE))
    assert model.fingerprint == before == replace(model, batch_size=2).fingerprint


def test_a_run_is_not_continued_with_other_weights(model, tmp_path):
    settings = Settings(rounds=1, conversations=2)
    run = holdfast.drift.run(model, "starter", out=tmp_path / "run", settings=settings)
    assert run.manifest.identity.to_json()["model_fingerprint"] == model.fingerprint
    in_place(model)
    with pytest.raises(UsageError, match="'default' has changed"):
        holdfast.drift.run(model, "starter", out=tmp_path / "run", settings=settings)
