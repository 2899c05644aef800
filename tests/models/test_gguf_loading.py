"""GGUF files load to the bits and the tokens of transformers' own loader, only faster."""

import hashlib
import threading

import numpy as np
import pytest
import torch
from fast_set import only_fast
from gguf_files import load_gguf, write_gguf
from tiny import chat
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, PreTrainedConfig
from transformers.integrations.gguf import get_gguf_tokenizer
from transformers.modeling_gguf_pytorch_utils import (
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
)

from holdfast.models import gguf_tokenizer
from holdfast.models.checkpoint import find_source
from holdfast.models.gguf import read_header
from holdfast.models.gguf_config import config_of, read_config_fields
from holdfast.models.gguf_weights import names_of

gguf = pytest.importorskip("gguf")
blocks = pytest.importorskip("holdfast.models.gguf_weights")
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def random_blocks(kind: str, rows: int, row: int) -> np.ndarray:
    """Rows of `row` blocks with random quants and finite scales."""
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    values = np.random.default_rng(0).integers(0, 256, (rows * row, size), dtype=np.uint8)
    for high in (209,) if kind == "Q6_K" else (1, 3):  # the high bytes of the float16s
        values[:, high] &= 0xBF
    return values.reshape(rows, -1)


@pytest.mark.parametrize("kind", blocks.UNPACK)
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_have_the_bits_of_the_package(kind, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "_CHUNK", 1024)  # several chunks, the last one a single block
    packed = random_blocks(kind, 11, 3)
    values = blocks.dequantise(torch.from_numpy(packed), kind, dtype)
    expected = torch.from_numpy(gguf.dequantize(packed, gguf.GGMLQuantizationType[kind]))
    assert values.shape == expected.shape
    assert torch.equal(bits(values), bits(expected.to(dtype)))


def q5_0(block: np.ndarray) -> list[float]:
    """The definition: (quant - 16) * scale, whose fifth bits are in bytes 2 to 5."""
    scale = float(block[:2].view(np.float16)[0])
    fifth = int.from_bytes(block[2:6].tobytes(), "little")
    low = [int(byte) & 15 for byte in block[6:]] + [int(byte) >> 4 for byte in block[6:]]
    return [scale * (low[at] + 16 * (fifth >> at & 1) - 16) for at in range(32)]


def q4_k(block: np.ndarray) -> list[float]:
    """The definition: scale * quant - minimum, whose six bits are in bytes 4 to 15."""
    scale, minimum = (float(half) for half in block[:4].view(np.float16))
    packed = [int(byte) for byte in block[4:16]]
    values = []
    for run in range(8):
        if run < 4:
            scales, minima = packed[run] & 63, packed[run + 4] & 63
        else:
            scales = packed[run + 4] & 15 | packed[run - 4] >> 6 << 4
            minima = packed[run + 4] >> 4 | packed[run] >> 6 << 4
        quants = block[16 + run // 2 * 32 :][:32] >> 4 * (run % 2) & 15
        values += [scale * scales * int(quant) - minimum * minima for quant in quants]
    return values


@pytest.mark.parametrize(("kind", "formula"), [("Q5_0", q5_0), ("Q4_K", q4_k)])
def test_blocks_match_the_formula_in_float64(kind, formula):
    packed = random_blocks(kind, 4, 1)
    values = blocks.dequantise(torch.from_numpy(packed), kind, torch.float64).numpy()
    exact = np.array([formula(row) for row in packed])
    spread = np.abs(exact).max(axis=1, keepdims=True)  # a difference cancels
    assert (np.abs(values - exact) <= 4 * np.finfo(np.float32).eps * spread).all()
    assert np.unique(exact).size > 50


@pytest.mark.parametrize("kind", ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q5_1"))
@pytest.mark.parametrize("dtype", only_fast(("float32", "bfloat16", "float64"), "bfloat16"))
def test_a_file_has_the_bits_and_the_tokens_that_transformers_loads(tmp_path, kind, dtype):
    from transformers import PreTrainedTokenizerFast

    path = write_gguf(
        tmp_path / "tiny.gguf", kind=kind
    )  # a Llama, whose rotated pairs are reordered
    ours = load_gguf(path, dtype=dtype)
    peer = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=path.name, dtype=getattr(torch, dtype)
    )
    weights, expected = ours.hf_model.state_dict(), peer.state_dict()
    assert weights.keys() == expected.keys()
    for name, weight in weights.items():
        assert weight.dtype == expected[name].dtype, name
        assert torch.equal(bits(weight), bits(expected[name])), name
    tokenizer = PreTrainedTokenizerFast.from_pretrained(tmp_path, gguf_file=path.name)
    assert ours.tokenizer.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    assert ours.tokenizer.special_tokens_map == tokenizer.special_tokens_map
    assert ours.tokenizer.chat_template == tokenizer.chat_template


@pytest.mark.parametrize("key", ["vocab_size", "vocab_sizf"])  # without it, tokens are counted
def test_the_configuration_is_what_transformers_reads_from_the_file(tmp_path, key):
    path, content = tmp_path / "tiny.gguf", write_gguf(tmp_path / "made.gguf").read_bytes()
    path.write_bytes(content.replace(b"llama.vocab_size", f"llama.{key}".encode()))
    expected, _ = PreTrainedConfig.get_config_dict(tmp_path, gguf_file=path.name)
    fields = read_config_fields(read_header(path))
    assert fields == expected and fields["vocab_size"] > 100
    assert config_of(fields).to_dict() == LlamaConfig.from_dict(expected).to_dict()


def test_the_scaling_of_gpt_oss_is_read(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "oss.gguf", "gpt-oss")
    writer.add_uint32("gpt-oss.block_count", 2)
    writer.add_string("gpt-oss.rope.scaling.type", "yarn")
    writer.add_float32("gpt-oss.rope.scaling.factor", 32.0)
    writer.add_uint32("gpt-oss.rope.scaling.original_context_length", 4096)
    writer.add_token_list(["a", "b", "c"])
    writer.add_tensor("output.weight", np.zeros((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    fields = read_config_fields(read_header(tmp_path / "oss.gguf"))
    scaling = {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096}
    assert fields["rope_scaling"] == scaling
    assert fields["model_type"] == "gpt_oss" and fields["vocab_size"] == 3
    assert fields["num_hidden_layers"] == 2 and fields["tie_word_embeddings"] is False


@pytest.mark.parametrize(
    "kind", ("llama", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt2", "starcoder2")
)
def test_weights_have_the_names_that_transformers_gives_them(kind, monkeypatch):
    config = AutoConfig.for_model(kind, num_hidden_layers=2)
    with torch.device("meta"):
        hf_model = AutoModelForCausalLM.from_config(config)
    processor = TENSOR_PROCESSORS.get(kind, TensorProcessor)(config=config.to_dict())
    expected = get_gguf_hf_weights_map(hf_model, processor)
    tables, build = [], gguf.get_tensor_name_map
    monkeypatch.setattr(gguf, "get_tensor_name_map", lambda *of: tables.append(of) or build(*of))
    names = names_of(hf_model, processor, [*expected, "rope_freqs.weight"])
    assert names == expected and "blk.1.attn_output.weight" in expected
    assert len(tables) == 1  # which takes milliseconds, and there are hundreds of modules


def test_a_digest_that_cannot_be_made_fails_where_it_is_needed(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf")
    source_file = find_source(str(path)).gguf
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    assert source_file.start_digest().result() == content
    path.unlink()
    with pytest.raises(FileNotFoundError):
        source_file.fingerprint(torch.float32, source_file.start_digest())


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma4"])
def test_the_vocabulary_is_what_transformers_reads_from_the_file(tmp_path, kind):
    path = tmp_path / "vocabulary.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(["<s>", "</s>", "a", "b", "ab"])
    writer.add_token_scores([0.0, 0.0, -1.0, -2.0, -3.0])
    writer.add_token_types([3, 3, 1, 1, 1])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_space_prefix(False)
    writer.add_chat_template("{{ messages }}")
    writer.add_tensor("output.weight", np.zeros((2, 2), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    architecture, vocabulary, options = get_gguf_tokenizer(str(path))
    header = read_header(path)
    assert header.architecture == architecture
    assert gguf_tokenizer.vocabulary_of(header) == vocabulary
    assert gguf_tokenizer.options_of(header) == options


@pytest.fixture
def cached_file(tmp_path, monkeypatch):
    """A file whose tokenizer is kept in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gguf_tokenizer, "_LARGE", 1)
    return write_gguf(tmp_path / "tiny.gguf")


def text_of(loaded) -> str:
    return loaded.tokenizer.backend_tokenizer.to_str()


def fail_on_conversion(*_):
    raise AssertionError("the tokenizer is converted")


def forbid_conversion(monkeypatch):
    monkeypatch.setattr("transformers.integrations.gguf.convert_gguf_tokenizer", fail_on_conversion)


def test_a_tokenizer_is_converted_once(cached_file, monkeypatch):
    first = load_gguf(cached_file)
    forbid_conversion(monkeypatch)
    second = load_gguf(cached_file)
    assert text_of(second) == text_of(first)
    messages = chat("be nice", "hello <s> there")
    ids = [item.tokenizer.apply_chat_template(messages)["input_ids"] for item in (first, second)]
    assert ids[0] == ids[1]
    assert second.tokenizer.special_tokens_map == first.tokenizer.special_tokens_map


@pytest.mark.parametrize("damage", ("cut", "changed", "empty", "binary", "a folder"))
def test_a_damaged_cache_is_made_again(cached_file, damage):
    right = text_of(load_gguf(cached_file))
    path = gguf_tokenizer.cache_file(read_header(cached_file))
    content = path.read_bytes()
    if damage == "a folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(
            {
                "cut": content[:-40],
                "changed": content.replace(b"hello", b"hallo").replace(b'"id":1', b'"id":2'),
                "empty": b"",
                "binary": bytes(range(256)),
            }[damage]
        )
        assert path.read_bytes() != content
    assert text_of(load_gguf(cached_file)) == right
    if damage != "a folder":
        assert path.read_bytes() == content


def test_other_versions_and_headers_have_other_places(cached_file, monkeypatch):
    header = read_header(cached_file)
    cache_files = [gguf_tokenizer.cache_file(header)]
    other_file = write_gguf(cached_file.with_name("other.gguf"), template=None)
    cache_files.append(gguf_tokenizer.cache_file(read_header(other_file)))
    monkeypatch.setattr(gguf_tokenizer, "version", lambda name: "0")
    cache_files.append(gguf_tokenizer.cache_file(header))
    assert len(set(cache_files)) == 3


def test_loads_at_the_same_time_share_the_cache(cached_file):
    texts, header = [], read_header(cached_file)

    def run():
        texts.append(gguf_tokenizer.read_tokenizer(header).backend_tokenizer.to_str())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 8 and len(set(texts)) == 1
    cache = gguf_tokenizer.cache_file(header)
    assert sorted(path.name for path in cache.parent.iterdir()) == sorted(
        [cache.name, f"{cache.stem}.record.json"]
    )


def test_a_small_vocabulary_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    load_gguf(write_gguf(tmp_path / "tiny.gguf"))
    assert not (tmp_path / "cache").exists()
