"""The header of a GGUF file is read as the package `gguf` reads it."""

import struct

import numpy as np
import pytest

from holdfast.models.gguf import read_header

gguf = pytest.importorskip("gguf")
QUANTISED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0")  # those that the package can write


@pytest.fixture
def path(tmp_path):
    """A file with every type of value and several types of tensor."""
    path = tmp_path / "all.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    for kind in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"):
        getattr(writer, f"add_{kind}")(f"test.{kind}", 7)
    writer.add_float32("test.float32", 0.1)
    writer.add_float64("test.float64", 0.1)
    writer.add_bool("test.bool", True)
    writer.add_string("test.empty", "")
    writer.add_string("test.text", "Grüße, 世界")
    writer.add_array("test.numbers", [0, 8, 0])
    writer.add_array("test.floats", [0.5, 1.5])
    writer.add_array("test.texts", ["a", "", "ü"])
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c"])
    writer.add_array("tokenizer.ggml.merges", ["a b"])
    weights = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    writer.add_tensor("plain", weights)
    writer.add_tensor("half", weights.astype(np.float16))
    writer.add_tensor("line", weights[0])
    for name in QUANTISED:
        kind = gguf.GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_every_key_has_the_value_that_the_package_reads(path):
    header, reader = read_header(path), gguf.GGUFReader(path)
    expected = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
    assert {key: value.content for key, value in header.values.items()} == expected
    assert expected["test.texts"] == ["a", "", "ü"] and expected["test.bool"] is True


def test_every_tensor_has_the_bytes_that_the_package_reads(path):
    header, reader = read_header(path), gguf.GGUFReader(path)
    assert [tensor.name for tensor in header.tensors] == [t.name for t in reader.tensors]
    for a, b in zip(header.tensors, reader.tensors, strict=True):
        assert a.tensor_type == b.tensor_type and a.n_elements == b.n_elements
        assert a.n_bytes == b.n_bytes
        assert a.data.dtype == b.data.dtype and np.array_equal(a.data, b.data)


def test_a_file_that_is_cut_anywhere_is_refused(path, tmp_path):
    content = path.read_bytes()
    last = read_header(path).tensors[-1]
    for length in [*range(24, 1200, 37), last.start + last.n_bytes - 1]:
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(content[:length])
        with pytest.raises((ValueError, struct.error)):
            read_header(cut)


def test_other_versions_and_byte_orders_are_refused(path, tmp_path):
    content = path.read_bytes()
    for version in (struct.pack("<I", 1), struct.pack("<I", 4), struct.pack(">I", 3)):
        path_of_other = tmp_path / "other.gguf"
        path_of_other.write_bytes(content[:4] + version + content[8:])
        with pytest.raises(ValueError, match="version"):
            read_header(path_of_other)
