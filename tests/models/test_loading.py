"""Model folders that are broken, incomplete or unsuitable are refused in one sentence."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import chat, model, tokenizer

from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling
from holdfast.models.loading import load

WEIGHT = "model.layers.1.mlp.up_proj.weight"
OWN = {"auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Own"}}


@pytest.fixture
def folder(folder, tmp_path) -> Path:
    """A copy of the tiny model to break."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def refusal(name: str | Path, error: type[Exception] = ModelError, **options) -> str:
    with pytest.raises(error) as excinfo:
        load(str(name), **options)
    message = str(excinfo.value)
    assert "\n" not in message and len(message) < 500 and message[-1] in ".?", message
    return message


def configure(folder: Path, **changes) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def reweigh(folder: Path, change) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_an_intact_folder_loads_and_generates(folder):
    greedy = Sampling(temperature=0, max_new_tokens=8)
    loaded, talk = load(str(folder)), chat("be nice", "hello")
    assert loaded.steerable
    assert loaded.generate(talk, sampling=greedy) == model().generate(talk, sampling=greedy)


# Weights


def test_missing_weights_are_never_initialised_at_random(folder, capfd):
    reweigh(folder, lambda weights: weights.pop(WEIGHT))
    message = refusal(folder)
    assert "lacks 1 weight" in message and WEIGHT in message and "config.json" in message
    assert "MISSING" not in capfd.readouterr().err


def test_weights_of_another_size_are_named_with_both_sizes(folder):
    configure(folder, intermediate_size=64)
    message = refusal(folder)
    assert "9 weights" in message and "(48, 96), not (48, 64)" in message


def test_unexpected_weights_are_ignored(folder, capfd):
    unknown = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(6)}
    reweigh(folder, lambda weights: weights.update(unknown))
    assert load(str(folder)).steerable
    assert "UNEXPECTED" not in capfd.readouterr().err


def test_tied_weights_are_not_missing(tmp_path):
    model(tie_word_embeddings=True).hf_model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    assert load(str(tmp_path)).steerable


@pytest.mark.parametrize("length", (0, 4, 5000))
def test_truncated_weights_are_named(folder, length):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    assert f"{str(path)!r} are cut off" in refusal(folder)


def test_a_missing_shard_is_named(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    index = {"metadata": {}, "weight_map": {WEIGHT: "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model-00002-of-00002.safetensors" in refusal(folder)


# Configurations and tokenizers


@pytest.mark.parametrize("name", ("config.json", "generation_config.json", "tokenizer_config.json"))
@pytest.mark.parametrize("text", ("", "[]", "\x00"))
def test_a_malformed_file_is_named(folder, name, text):
    (folder / name).write_text(text)
    message = refusal(folder)
    assert str(folder / name) in message


@pytest.mark.parametrize("text", ("", "{}", "[]", '{"model": 7}'))
def test_a_malformed_tokenizer_is_named(folder, text):
    (folder / "tokenizer.json").write_text(text)
    message = refusal(folder)
    assert str(folder) in message and "tokenizer" in message


def test_a_missing_tokenizer_is_named(folder):
    (folder / "tokenizer.json").unlink()
    assert "has no tokenizer.json" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    (
        ({"model_type": "banana"}, ["'banana'", "transformers does not know"]),
        ({"model_type": "t5"}, ["no causal language model", "T5Config"]),
        ({"hidden_size": "wide"}, ["hidden_size", "config.json"]),
        ({"num_attention_heads": 0}, ["config.json"]),
        ({**OWN, "model_type": "own"}, ["trust_remote_code=True"]),
    ),
)
def test_a_configuration_that_cannot_be_used_is_explained(folder, changes, words):
    configure(folder, **changes)
    message = refusal(folder)
    assert all(word in message for word in [str(folder), *words]), message


def test_a_base_model_without_a_head_is_refused_as_such(tmp_path):
    model().hf_model.model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    message = refusal(tmp_path)
    assert "lm_head.weight is missing" in message


@pytest.mark.parametrize(
    "hostile",
    (
        {"attn_implementation": "hostile/kernel"},
        {"_attn_implementation": "hostile/kernel:attend"},
        {"_attn_implementation_internal": "hostile/kernel"},
        {"attn_implementation": {"": "hostile/kernel"}},
        {"attn_implementation": "flash_attention_2"},
        {"experts_implementation": "hostile/kernel"},
        {"_experts_implementation": "hostile/kernel"},
    ),
    ids=str,
)
def test_a_configuration_cannot_choose_a_kernel(folder, hostile, monkeypatch):
    from transformers import PreTrainedModel, modeling_utils

    implementations, check = [], PreTrainedModel._check_and_adjust_attn_implementation

    def watch(self, implementation, *arguments, **options):
        implementations.append(implementation)
        return check(self, implementation, *arguments, **options)

    def never(*arguments, **options):
        raise AssertionError(f"a kernel was fetched: {arguments}")

    monkeypatch.setattr(PreTrainedModel, "_check_and_adjust_attn_implementation", watch)
    monkeypatch.setattr(modeling_utils, "lazy_import_flash_attention", never)
    plain = load(str(folder))
    configure(folder, **hostile)
    loaded = load(str(folder))
    assert implementations and not any(
        name and ("hostile" in name or "flash" in name) for name in implementations
    )
    assert loaded.steerable and loaded.fingerprint == plain.fingerprint
