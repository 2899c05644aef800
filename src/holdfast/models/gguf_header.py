"""Reads the header of a GGUF file, once and fast.

The format is documented at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. With a
vocabulary of 150,000 tokens, a header has 300,000 strings. `gguf.GGUFReader` makes several arrays
of each, which takes ten seconds; here they are slices of the mapped file.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gguf import GGMLQuantizationType

_VERSIONS = (2, 3)
_FORMATS = {  # of `struct`, by the number of a type
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING = 8
ARRAY = 9
TOKENS = "tokenizer.ggml.tokens"
ROTARY_FACTORS = "rope_freqs.weight"  # a tensor that is not a weight of the model
_DEFAULT_ALIGNMENT = 32
_COUNT = struct.Struct("<Q")
_UNQUANTISED: dict[str, type[np.generic]] = {
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "I8": np.int8,
    "I16": np.int16,
    "I32": np.int32,
    "I64": np.int64,
}


@dataclass(frozen=True)
class Value:
    """The value of a key.

    Attributes:
        kind: the number of its type in the format; for an array, the number of its elements' type.
        raw: a number, the bytes of a string, or a list of numbers or bytes.
        is_array: whether `raw` is a list.
    """

    kind: int
    raw: Any
    is_array: bool

    @property
    def content(self) -> Any:
        """A number, a string, or a list of numbers or strings."""
        if self.kind != STRING:
            return list(self.raw) if self.is_array else self.raw
        return [text.decode() for text in self.raw] if self.is_array else self.raw.decode()


@dataclass(frozen=True)
class TensorInfo:
    """A tensor, and where it is in the file."""

    name: str
    shape: tuple[int, ...]  # as in torch, the slowest dimension first
    kind: int  # the number of its type in the format
    start: int  # the byte of the file at which its data begin
    path: Path

    @property
    def n_elements(self) -> int:
        """The number of its values."""
        return math.prod(self.shape)

    @cached_property
    def tensor_type(self) -> GGMLQuantizationType:
        """How the numbers are stored; raises ValueError if the type is unknown."""
        from gguf import GGMLQuantizationType

        return GGMLQuantizationType(self.kind)

    @property
    def n_bytes(self) -> int:
        """The size of the data."""
        from gguf import GGML_QUANT_SIZES

        elements, size = GGML_QUANT_SIZES[self.tensor_type]
        return self.n_elements // elements * size

    @property
    def data(self) -> np.ndarray:
        """The data as `gguf.dequantize` takes it: numbers in the tensor's shape or, if it is
        quantised, uint8 whose last dimension has the bytes of the blocks.
        """
        from gguf.quants import quant_shape_to_byte_shape

        kind = self.tensor_type
        shape = self.shape
        if kind.name not in _UNQUANTISED:
            shape = quant_shape_to_byte_shape(shape, kind)
        dtype = np.dtype(_UNQUANTISED.get(kind.name, np.uint8))
        # copy-on-write, as torch warns of read-only arrays; nothing reaches the file
        return np.memmap(self.path, dtype, "c", self.start, shape)


@dataclass(frozen=True)
class Header:
    """The keys and the tensors of a GGUF file."""

    path: Path
    values: dict[str, Value]
    tensors: tuple[TensorInfo, ...]
    table_start: int  # the byte of the file at which the table of tensors begins, after the keys

    @property
    def architecture(self) -> str:
        """The name of the model's architecture in llama.cpp."""
        name: str = self.values["general.architecture"].content
        return name


def read_header(path: Path) -> Header:
    """Reads the header of a GGUF file.

    Raises:
        ValueError, struct.error, UnicodeDecodeError: the file is cut off or damaged, or has a
            version other than 2 or 3.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        version, num_tensors, num_keys = struct.unpack_from("<IQQ", content, 4)
        if version not in _VERSIONS:
            raise ValueError(f"it has version {version}, and only versions 2 and 3 can be read")
        position = 24
        values = {}
        for _ in range(num_keys):
            key, position = _read_string(content, position)
            (kind,) = struct.unpack_from("<I", content, position)
            values[key.decode()], position = _read_value(content, position + 4, kind)
        table_start = position
        tensors = list[TensorInfo]()
        for _ in range(num_tensors):
            tensor, position = _read_tensor_info(content, position, path)
            tensors.append(tensor)
        alignment = values["general.alignment"].raw if "general.alignment" in values else 0
        alignment = alignment or _DEFAULT_ALIGNMENT
        data_start = -(-position // alignment) * alignment
        size = len(content)
    located = tuple(replace(tensor, start=data_start + tensor.start) for tensor in tensors)
    if len({tensor.name for tensor in located}) < len(located):
        raise ValueError("two tensors have the same name")
    for tensor in located:
        if tensor.start + tensor.n_bytes > size:
            raise ValueError(f"the tensor {tensor.name!r} ends after the end of the file")
    return Header(path, values, located, table_start)


# Each of these functions reads at a position, and returns the position after what it has read.


def _read_string(content: mmap.mmap, position: int) -> tuple[bytes, int]:
    (length,) = _COUNT.unpack_from(content, position)
    start = position + 8
    end = position + 8 + length
    if end > len(content):
        raise ValueError(
            f"a text of {length} bytes at byte {position} ends after the end of the file"
        )
    return content[start:end], end


def _read_tensor_info(content: mmap.mmap, position: int, path: Path) -> tuple[TensorInfo, int]:
    """Reads an entry of the table of tensors; its `start` is counted from where the data begin."""
    name, position = _read_string(content, position)
    (dimensions,) = struct.unpack_from("<I", content, position)
    *shape, kind, start = struct.unpack_from(f"<{dimensions}QIQ", content, position + 4)
    tensor = TensorInfo(name.decode(), tuple(reversed(shape)), kind, start, path)
    return tensor, position + 16 + 8 * dimensions


def _read_value(content: mmap.mmap, position: int, kind: int) -> tuple[Value, int]:
    if kind == STRING:
        text, position = _read_string(content, position)
        return Value(kind, text, False), position
    if kind != ARRAY:
        form = struct.Struct(f"<{_format_of(kind)}")
        return Value(kind, form.unpack_from(content, position)[0], False), position + form.size
    kind, count = struct.unpack_from("<IQ", content, position)
    position += 12
    if kind != STRING:
        form = struct.Struct(f"<{count}{_format_of(kind)}")
        return Value(kind, form.unpack_from(content, position), True), position + form.size
    texts = []
    for _ in range(count):
        text, position = _read_string(content, position)
        texts.append(text)
    return Value(kind, texts, True), position


def _format_of(kind: int) -> str:
    if kind not in _FORMATS:
        raise ValueError(f"a value of the unknown type {kind}")
    return _FORMATS[kind]
