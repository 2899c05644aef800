"""The dtype, the device and the batch size of a loaded model."""

import shutil
from pathlib import Path

import pytest
import torch
from tiny import chat, model

from holdfast.errors import ModelError, ParameterOutOfRange, UnknownName, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Guidance, SplitSoftmax
from holdfast.models import placement
from holdfast.models.loading import load
from holdfast.models.placement import placement_of


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


# Dtypes


@pytest.mark.parametrize(
    ("dtype", "name", "suggestion"),
    (
        ("int8", "int8", None),
        ("float8_e4m3fn", "float8_e4m3fn", "float64"),
        (torch.int8, "int8", None),
        ("", "", None),
    ),
)
def test_an_unsupported_dtype_is_refused(folder, dtype, name, suggestion):
    with pytest.raises(UnknownName) as excinfo:
        load(str(folder), dtype=dtype)
    assert (excinfo.value.kind, excinfo.value.name) == ("dtype", name)
    assert excinfo.value.suggestion == suggestion and "bfloat16" in excinfo.value.known


@pytest.mark.parametrize(
    ("instructions", "dtype", "why"),
    [
        (True, torch.bfloat16, "runs in bfloat16: this processor has bfloat16 instructions"),
        (False, torch.float32, "runs in float32: this processor has no bfloat16 instructions"),
    ],
)
def test_a_large_model_gets_a_dtype_that_suits_the_processor(
    folder, monkeypatch, instructions, dtype, why
):
    small = load(str(folder), "cpu", "auto").hf_model  # warnings are errors
    assert small.dtype == torch.float32
    monkeypatch.setattr(placement, "_LARGE", small.num_parameters() - 1)
    monkeypatch.setattr(placement, "multiplies_bfloat16", lambda: instructions)
    with pytest.warns(UserWarning, match=why):
        assert load(str(folder), "cpu").hf_model.dtype == dtype
    assert load(str(folder), "cpu", "float64").hf_model.dtype == torch.float64


@pytest.mark.parametrize("dtype", ("float64", "torch.bfloat16", torch.float16))
def test_a_dtype_may_be_a_name_or_a_torch_dtype(folder, dtype):
    name = str(dtype).removeprefix("torch.")
    assert str(load(str(folder), dtype=dtype).hf_model.dtype).endswith(name)


# Devices and device maps


GREEDY = Sampling(temperature=0, max_new_tokens=8)
TALK = chat("be nice", "hello")


@pytest.mark.parametrize("device", ("banana", "", 1.5, "cuda:99", "cpu:7", "meta", "mps", "xpu"))
def test_an_unknown_or_unavailable_device_is_refused(folder, device):
    message = f"There is no device {device!r}; use cpu"
    if device not in ("banana", "", 1.5):
        message = f"Device {device!r} is not available here; use c"
    assert message in refusal(folder, UsageError, device=device)


def test_auto_on_one_device_equals_naming_the_device(folder):
    plain, mapped = load(str(folder), device="cpu"), load(str(folder), device_map="auto")
    assert mapped.steerable and mapped.reuses_cache
    assert mapped.fingerprint == plain.fingerprint
    assert mapped.hf_model.dtype == torch.float32 or torch.accelerator.is_available()
    steering = [SplitSoftmax(0.3)]
    assert mapped.generate(TALK, steering, GREEDY) == plain.generate(TALK, steering, GREEDY)


@pytest.mark.filterwarnings("ignore:Some parameters are on the meta device")
def test_a_model_split_between_cpu_and_disk_chats_and_says_why_it_is_not_steered(folder):
    layers = model().hf_model.config.num_hidden_layers
    split = {f"model.layers.{layer}": "disk" if layer else "cpu" for layer in range(layers)}
    split |= {"model.embed_tokens": "cpu", "model.norm": "cpu", "lm_head": "cpu"}
    plain = load(str(folder), device="cpu")
    spread = load(str(folder), device_map=split | {"model.rotary_emb": "cpu"})
    assert spread.fingerprint == plain.fingerprint
    assert not spread.steerable and not spread.reuses_cache
    assert spread.generate(TALK, sampling=GREEDY).text == plain.generate(TALK, sampling=GREEDY).text
    guided = [Guidance(2.0)]
    replies = [which.generate(TALK, guided, GREEDY).text for which in (spread, plain)]
    assert replies[0] == replies[1]
    with pytest.raises(ModelError, match="partly offloaded"):
        spread.generate(TALK, [SplitSoftmax(0.3)], GREEDY)


def test_weights_go_straight_to_the_requested_device(monkeypatch):
    accelerator = torch.device("cuda", 0)
    monkeypatch.setattr(placement, "_find_device", lambda device: accelerator)
    placed = placement_of("cuda:0", None, None)
    assert placed.options() == {"dtype": None, "device_map": {"": accelerator}}
    for parameters, dtype in ((10**6, torch.float32), (10**9, "auto")):
        assert placed.for_size(parameters, "it").dtype == dtype
    monkeypatch.setattr(placement, "_has_accelerate", lambda: False)
    assert placement_of("cuda:0", "bfloat16", None).options() == {"dtype": torch.bfloat16}


@pytest.mark.parametrize(
    ("options", "message"),
    (
        ({"device_map": "atuo"}, "There is no device map 'atuo'; did you mean 'auto'?"),
        ({"device_map": "auto", "device": "cpu"}, "not both ('cpu' and 'auto'); leave one out"),
    ),
)
def test_an_invalid_device_map_is_refused(folder, options, message):
    assert message in refusal(folder, UsageError, **options)


def test_a_device_map_without_accelerate_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(placement, "_has_accelerate", lambda: False)
    message = refusal(folder, UsageError, device_map="auto")
    assert "'auto' needs accelerate" in message and "pip install accelerate" in message


@pytest.mark.filterwarnings("ignore:Some parameters are on the meta device")
def test_a_map_that_leaves_the_embeddings_on_disk_is_refused(folder):
    message = refusal(folder, device_map={"model": "disk", "lm_head": "cpu"})
    assert "on disk" in message


# Memory and batches


def test_memory_for_dialogs_is_given_in_bytes():
    assert load(prefix_memory=10**6).prefix_bytes == 10**6
    assert load().prefix_bytes > 10**8
    with pytest.raises(ParameterOutOfRange, match=r"prefix_memory.*-1"):
        load(prefix_memory=-1)


def test_a_model_that_does_not_fit_is_refused(folder, monkeypatch):
    import transformers

    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    with monkeypatch.context() as moving:
        moving.setattr(transformers.PreTrainedModel, "to", full)
        message = refusal(folder, device="cpu")
        assert "out of memory" in message and "cpu" in message and str(folder) in message
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", full)
    assert "out of memory" in refusal(folder, device_map="auto")


@pytest.mark.parametrize("size", (0, -1, 2.5, "8"))
def test_a_batch_size_is_a_whole_number_from_1(size):
    with pytest.raises(ParameterOutOfRange, match=f"batch_size.*{size}"):
        load(batch_size=size)


def test_a_large_model_on_the_cpu_has_smaller_batches(folder, monkeypatch):
    monkeypatch.setattr("holdfast.models.placement._LARGE", 0)
    assert load(str(folder), "cpu", "float32").batch_size == 48
