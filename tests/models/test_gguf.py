"""GGUF files: read on their own, as transformers reads them, or refused in one sentence."""

import hashlib
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gguf_files import SHAPE, load_gguf, write_gguf
from tiny import TEMPLATE, chat, model, tokenizer

import holdfast
from holdfast.chat.templates import render_text
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models import gguf
from holdfast.models.checkpoint import find_source

gguf_package = pytest.importorskip("gguf")
GREEDY = Sampling(temperature=0, max_new_tokens=12)
CHAT = chat("be nice", "hello there")
WAYS_OUT = ("llama-server", "Ollama", "URL", "safetensors")


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


def refusal(path: Path | str) -> str:
    with pytest.raises(ModelError) as excinfo:
        find_source(str(path))
    message = str(excinfo.value)
    assert (
        "\n" not in message
        and len(message) < 400
        and message[-1] == "."
        and Path(path).name in message
    )
    return message


# Replies


WITHOUT_BOS = TEMPLATE.replace("<s>", "", 1)


@pytest.mark.parametrize(
    ("add_bos", "template", "count"),
    [(False, TEMPLATE, 1), (True, TEMPLATE, 1), (True, WITHOUT_BOS, 1), (False, WITHOUT_BOS, 0)],
    ids=["template", "both", "tokenizer", "neither"],
)
def test_a_chat_begins_with_one_bos_where_the_tokenizer_or_the_template_says_so(
    tmp_path, monkeypatch, add_bos, template, count
):
    add = gguf_package.GGUFWriter.add_add_bos_token
    monkeypatch.setattr(
        gguf_package.GGUFWriter, "add_add_bos_token", lambda self, _: add(self, add_bos)
    )
    loaded = load_gguf(write_gguf(tmp_path / "tiny.gguf", template=template))
    encoded = holdfast.encode_chats([CHAT], loaded.tokenizer)
    ids = encoded.inputs["input_ids"][0].tolist()
    assert ids.count(1) == count and (ids[0] == 1) is bool(count)
    assert loaded.tokenizer.decode([t for t, m in zip(ids, encoded.span_mask[0], strict=True) if m])
    reply = loaded.generate(CHAT, (), GREEDY)
    assert list(reply.prompt_ids) == ids
    if count:
        assert reply.token_ids == model(**SHAPE).generate(CHAT, (), GREEDY).token_ids
    plain_reply = load_gguf(tmp_path / "tiny.gguf", chat_template="plain").generate(
        CHAT, (), GREEDY
    )
    assert list(plain_reply.prompt_ids).count(1) == 1


@pytest.mark.parametrize("method", ("none", "boost:factor=8", "guidance:scale=2"))
def test_a_file_answers_like_the_model_it_was_made_from(whole, method):
    loaded, original = load_gguf(whole), model(**SHAPE)
    assert loaded.steerable and loaded.reuses_cache
    reply = loaded.generate(CHAT, method, sampling=GREEDY)
    assert reply == original.generate(CHAT, method, sampling=GREEDY)
    ids = torch.tensor([reply.prompt_ids])
    with torch.inference_mode():
        logits = [chat_model.hf_model(ids).logits for chat_model in (loaded, original)]
    assert torch.equal(*logits)  # the same bits


def test_quantised_weights_match_those_that_transformers_loads(tmp_path):
    from transformers import AutoModelForCausalLM

    path = write_gguf(tmp_path / "tiny.gguf", kind="Q8_0")
    loaded = load_gguf(path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name)
    ids = torch.arange(1, 40)[None]
    with torch.inference_mode():
        assert torch.equal(loaded.hf_model(ids).logits, plain(ids).logits)
        exact = model(**SHAPE).hf_model(ids).logits
        assert not torch.equal(loaded.hf_model(ids).logits, exact), "it was quantised"
    loaded.hf_model.save_pretrained(tmp_path / "saved")  # an ordinary model, once dequantised


def test_files_next_to_it_are_not_read(whole, tmp_path):
    path = tmp_path / whole.name
    path.write_bytes(whole.read_bytes())
    tokenizer().save_pretrained(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("another template")
    (tmp_path / "tokenizer.json").write_text("no JSON")
    (tmp_path / "config.json").write_text("no JSON")
    assert load_gguf(path).tokenizer.chat_template == TEMPLATE


def test_every_end_of_turn_token_stops_a_reply(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", tokenizer__ggml__eot_token_id=4)
    assert load_gguf(path).stop_ids == {4, 5}


def test_a_file_without_a_template_answers_no_chat(tmp_path):
    loaded = load_gguf(write_gguf(tmp_path / "base.gguf", template=None))
    with pytest.raises(PromptError, match=r"base\.gguf has"):
        loaded.generate(CHAT)


def test_a_base_model_continues_the_messages_as_one_text(tmp_path):
    path = write_gguf(tmp_path / "base.gguf", template=None)
    loaded, file = load_gguf(path, chat_template="plain"), tmp_path / "mine.jinja"
    chat = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert render_text([*chat, chat[0]], loaded.tokenizer).endswith("a\n\nb\n\na")
    file.write_text("{{ messages[-1]['content'] }}!")
    assert render_text(chat[:1], load_gguf(path, chat_template=str(file)).tokenizer) == "a!"
    with pytest.raises(UsageError, match=r"'nowhere\.jinja' .*plain"):
        holdfast.load(path, chat_template="nowhere.jinja")


def test_a_template_cannot_escape_its_sandbox(tmp_path):
    template = "{{ messages.__class__.__mro__[1].__subclasses__() }}"
    loaded = load_gguf(write_gguf(tmp_path / "evil.gguf", template=template))
    with pytest.raises(PromptError, match="refuses this chat"):
        loaded.generate(CHAT)


def test_the_factors_of_llama_3_scale_its_positions(tmp_path):
    from transformers import AutoConfig, AutoModelForCausalLM

    scaled = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
    scaled |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    config = AutoConfig.for_model(**model(**SHAPE).hf_model.config.to_dict())
    plain = AutoModelForCausalLM.from_config(config).model.rotary_emb.inv_freq
    config.rope_parameters = {**config.rope_parameters, **scaled}
    right = AutoModelForCausalLM.from_config(config).eval()
    right.load_state_dict(model(**SHAPE).hf_model.state_dict())
    factors = plain / right.model.rotary_emb.inv_freq
    assert factors.max() == 8

    ids = torch.arange(1, 300)[None]
    with torch.inference_mode():
        logits = (
            load_gguf(write_gguf(tmp_path / "llama3.gguf", factors=factors)).hf_model(ids).logits
        )
        unscaled = load_gguf(write_gguf(tmp_path / "tiny.gguf")).hf_model(ids).logits
        assert (logits - right(ids).logits).abs().max() < 1e-4  # one rounding of each frequency
        assert (logits - unscaled).abs().max() > 0.1


# Size, dtype and fingerprint


KINDS = (("F32", "float32", 4), ("Q8_0", "bfloat16", 2))


@pytest.mark.parametrize(("kind", "dtype", "width"), KINDS)
def test_the_size_in_memory_is_reported_before_loading(tmp_path, monkeypatch, kind, dtype, width):
    path = write_gguf(tmp_path / "tiny.gguf", kind=kind)
    elements = sum(p.numel() for p in model(**SHAPE).hf_model.parameters())

    def unread(*_, **__):
        raise AssertionError("the weights are read")

    monkeypatch.setattr("holdfast.models.loading.load_whole", unread)
    on_disk, size = (f"{n / 1e6:.3g} MB" for n in (path.stat().st_size, elements * width))
    message = f"tiny.gguf: {on_disk}, {size} once dequantised to {dtype}."
    warning = pytest.warns(UserWarning, match=message.replace(".", r"\."))
    with warning, pytest.raises(ModelError, match="weights"):
        holdfast.load(path, dtype=dtype)


def test_the_dtype_is_that_of_the_file_or_none_if_quantised(tmp_path):
    for kind, dtype in (("F32", "float32"), ("F16", "float16"), ("Q8_0", None)):
        header = gguf.read_gguf(str(write_gguf(tmp_path / f"{kind}.gguf", kind=kind)))
        assert header.dtype == (dtype and getattr(torch, dtype))


def test_the_fingerprint_covers_every_byte_of_the_file_and_the_dtype(whole, tmp_path):
    renamed_file = tmp_path / "renamed.gguf"
    renamed_file.write_bytes(whole.read_bytes())
    first, changed_file = bytearray(whole.read_bytes()), tmp_path / "other.gguf"
    at = first.rindex(b"</s>")  # in the template: no weight changes
    first[at : at + 4] = b"<s> "
    changed_file.write_bytes(first)
    prints = [load_gguf(path).fingerprint for path in (whole, renamed_file, changed_file)]
    assert prints[0] == prints[1] != prints[2]
    content = hashlib.sha256(whole.read_bytes()).hexdigest()
    assert prints[0] == hashlib.sha256(f"{content} torch.float32".encode()).hexdigest()[:32]
    assert load_gguf(whole, dtype="bfloat16").fingerprint not in prints


def test_a_header_is_read_without_importing_torch(whole, tmp_path):
    script = (
        "import sys; from holdfast.models.checkpoint import find_source;"
        f" assert find_source({str(whole)!r}).gguf; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# Refusals


@pytest.mark.parametrize("length", (5, 30, 200, 9000, -1))
def test_a_file_that_is_cut_off_is_named(whole, tmp_path, length):
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole.read_bytes()[:length])
    message = refusal(path)
    assert "cut off" in message and str(path) in message


@pytest.mark.parametrize("content", (b"", b"GGU", b"PK\3\4 a zip", b"version https://git-lfs"))
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    assert "not a GGUF" in refusal(path)


def test_a_damaged_header_is_refused(whole, tmp_path):
    path, content = tmp_path / "damaged.gguf", bytearray(whole.read_bytes())
    content[4:8] = struct.pack(">I", 3)
    path.write_bytes(content)
    assert "damaged" in refusal(path)
    content[4:24] = struct.pack("<IQQ", 3, 1, 2**60)
    path.write_bytes(content)
    assert "damaged" in refusal(path)


@pytest.mark.parametrize(
    ("header", "words"),
    (
        ({"split__count": 3}, "is one of 3 files of a split GGUF"),
        ({"llama__rope__scaling__type": "yarn"}, "leaves out llama.rope.scaling.type"),
    ),
)
def test_files_transformers_would_misread_are_refused_with_alternatives(tmp_path, header, words):
    message = refusal(write_gguf(tmp_path / "tiny-00001-of-00003.gguf", **header))
    assert words in message and all(way in message for way in WAYS_OUT)


def test_an_architecture_that_transformers_cannot_read_is_refused_with_alternatives(tmp_path):
    path, content = tmp_path / "new.gguf", write_gguf(tmp_path / "tiny.gguf").read_bytes()
    path.write_bytes(content.replace(b"llama", b"lamma"))
    with pytest.raises(ModelError, match="lamma") as excinfo:
        holdfast.load(path)
    assert all(way in str(excinfo.value) for way in WAYS_OUT)


def test_a_missing_weight_is_never_initialised_at_random(tmp_path):
    path, content = tmp_path / "lacking.gguf", write_gguf(tmp_path / "tiny.gguf").read_bytes()
    path.write_bytes(content.replace(b"blk.1.ffn_up", b"blk.1.ffn_uq"))
    lacking = pytest.raises(ModelError, match=r"lacks 1 .*layers\.1\.mlp\.up_proj")
    with pytest.warns(UserWarning, match="once dequantised"), lacking:
        holdfast.load(path)


def test_a_pre_tokenizer_that_transformers_does_not_know_is_reported(whole, tmp_path):
    path = tmp_path / "split.gguf"
    path.write_bytes(whole.read_bytes().replace(b"gpt-2", b"gpt-9"))
    with pytest.warns(UserWarning, match=r"split\.gguf .*'gpt-9'"):
        load_gguf(path)


def test_without_its_packages_the_command_that_installs_them_is_named(whole, monkeypatch):
    monkeypatch.setattr(gguf.importlib.util, "find_spec", lambda name: None)
    message = refusal(whole)
    assert "gguf and accelerate" in message and "pip install 'holdfast-llm[gguf]'" in message


def test_a_folder_of_gguf_files_names_the_file(whole, tmp_path):
    with pytest.raises(ModelError) as excinfo:
        find_source(str(whole.parent))
    assert f"give the file {str(whole)!r}" in str(excinfo.value)
    (tmp_path / "model.txt").write_text("text")
    with pytest.raises(ModelError, match=r"model\.txt'"):
        find_source(str(tmp_path / "model.txt"))
