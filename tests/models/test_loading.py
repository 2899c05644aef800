"""Loading models: what is broken, missing or unknown is refused in one sentence that names it."""

import json
import shutil
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import chat, model, tokenizer

from holdfast.errors import ModelError, NoSuchModel, ParameterOutOfRange, UnknownName, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Guidance, SplitSoftmax
from holdfast.models import placement
from holdfast.models.checkpoint import Source, require_on_hub
from holdfast.models.loading import load
from holdfast.models.placement import placement_of

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


def test_memory_for_dialogs_is_given_in_bytes():
    assert load(prefix_memory=10**6).prefix_bytes == 10**6
    assert load().prefix_bytes > 10**8
    with pytest.raises(ParameterOutOfRange, match=r"prefix_memory.*-1"):
        load(prefix_memory=-1)


def test_an_intact_folder_loads_and_generates(folder):
    greedy = Sampling(temperature=0, max_new_tokens=8)
    loaded, talk = load(str(folder)), chat("be nice", "hello")
    assert loaded.steerable
    assert loaded.generate(talk, sampling=greedy) == model().generate(talk, sampling=greedy)


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


@pytest.mark.parametrize("name", ("bad name!!", "a/b/c", " ", "a--b", "-a", "x" * 5000))
def test_a_name_that_the_hub_cannot_have_is_refused(name):
    message = refusal(name)
    assert name[:90] in message and "owner/name" in message


@pytest.mark.parametrize("offline", (True, False))
def test_a_model_that_cannot_be_found_is_named(monkeypatch, offline):
    import huggingface_hub.constants
    import transformers

    def unreachable(*_, **__):
        raise OSError("We couldn't connect to 'https://huggingface.co'")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", unreachable)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", offline)
    monkeypatch.setattr("holdfast.models.loading.hub_silence", str)
    message = refusal("no/such-model")
    assert "'no/such-model'" in message and ("HF_HUB_OFFLINE" in message) == offline


@pytest.fixture
def unreachable_hub(monkeypatch, tmp_path):
    """A hub at a closed port, and an empty cache."""
    import huggingface_hub.constants

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", url)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def test_an_unreachable_hub_is_reported_once(unreachable_hub, caplog, capfd):
    started = time.monotonic()
    message = refusal("some/model")
    assert time.monotonic() - started < 15  # the client's own retries take a minute
    assert "hub" in message and "'some/model'" in message
    assert "refused" in message.lower()
    assert "Retrying" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.slow
def test_a_model_in_the_cache_is_loaded_without_the_hub(folder, unreachable_hub, tmp_path):
    repo = tmp_path / "cache" / "models--some--model"
    shutil.copytree(folder, repo / "snapshots" / "0123")
    (repo / "refs").mkdir()
    (repo / "refs" / "main").write_text("0123")
    with pytest.warns(UserWarning, match=r"'some/model' .*cache") as warned:
        assert load("some/model", device="cpu").name == "some/model"
    assert sum("cache" in str(warning.message) for warning in warned) == 1


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """hub(status, code): a stand-in for the hub, which gives this answer about every file."""
    import huggingface_hub.constants as constants

    servers = []

    def start(status, code):
        class Hub(BaseHTTPRequestHandler):
            def do_HEAD(self):
                self.send_response(status)
                self.send_header("X-Error-Code", code)
                self.send_header("X-Error-Message", "gated" if code == "GatedRepo" else code)
                self.send_header("ETag", "1")
                self.send_header("X-Repo-Commit", "0123")
                self.send_header("Content-Length", "2")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        files = "{repo_id}/resolve/{revision}/{filename}"
        url = f"http://127.0.0.1:{server.server_port}/{files}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "code", "error", "words"),
    [
        (404, "RepoNotFound", NoSuchModel, "the hub has no model of this name"),
        (401, "RepoNotFound", NoSuchModel, "the hub has no model of this name"),
        (404, "EntryNotFound", NoSuchModel, "has no config.json"),
        (403, "GatedRepo", ModelError, "hf auth login"),
    ],
)
def test_a_name_that_the_hub_refuses_is_refused_before_anything_is_loaded(
    hub, status, code, error, words
):
    hub(status, code)
    with pytest.raises(error, match="some/model") as caught:
        require_on_hub(Source("some/model", "some/model"))
    assert words in str(caught.value)


@pytest.mark.parametrize("status", [200, 503])
def test_a_name_that_the_hub_knows_or_cannot_answer_for_is_left_to_the_loader(hub, status):
    hub(status, "")
    require_on_hub(Source("some/model", "some/model"))  # raises nothing


def test_a_gated_model_says_how_to_log_in(monkeypatch):
    import transformers

    def gated(*_, **__):
        raise OSError("You are trying to access a gated repo.\nMake sure to have access to it")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", gated)
    assert "hf auth login" in refusal("some/model")


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


@pytest.mark.parametrize("device", ("banana", "", 1.5, "cuda:99", "cpu:7", "meta", "mps", "xpu"))
def test_an_unknown_or_unavailable_device_is_refused(folder, device):
    message = f"There is no device {device!r}; use cpu"
    if device not in ("banana", "", 1.5):
        message = f"Device {device!r} is not available here; use c"
    assert message in refusal(folder, UsageError, device=device)


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


GREEDY = Sampling(temperature=0, max_new_tokens=8)
TALK = chat("be nice", "hello")


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


def test_a_base_model_without_a_head_is_refused_as_such(tmp_path):
    model().hf_model.model.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    message = refusal(tmp_path)
    assert "lm_head.weight is missing" in message


@pytest.mark.parametrize("size", (0, -1, 2.5, "8"))
def test_a_batch_size_is_a_whole_number_from_1(size):
    with pytest.raises(ParameterOutOfRange, match=f"batch_size.*{size}"):
        load(batch_size=size)


def test_a_large_model_on_the_cpu_has_smaller_batches(folder, monkeypatch):
    monkeypatch.setattr("holdfast.models.placement._LARGE", 0)
    assert load(str(folder), "cpu", "float32").batch_size == 48


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
