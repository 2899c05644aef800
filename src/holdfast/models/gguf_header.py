"""Reads the values and the tensors that the header of a GGUF file lists.

For example:

    a string key and its value     -> Value(kind=8, raw=b"llama"), with the content "llama"
    the entry of a tensor          -> TensorInfo("blk.0.attn_q.weight", shape=(960, 960), ...)

The format is documented at https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. With a
vocabulary of 150,000 tokens, a header has 300,000 strings. `gguf.GGUFReader` makes several arrays
of each, which takes ten seconds; here they are slices of the mapped file.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gguf import GGMLQuantizationType

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
_LENGTH = struct.Struct("<Q")  # of a string, before its bytes
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


class HeaderReader:
    """Reads numbers and strings from a mapped file, from front to back.

    Attributes:
        position: the byte at which the next one begins.
    """

    def __init__(self, content: mmap.mmap, position: int):
        self.position = position
        self._content = content
        self._size = len(content)

    def read_numbers(self, form: str) -> tuple[Any, ...]:
        """Reads numbers in a format of `struct`; raises `struct.error` at the end of the file."""
        little_endian = f"<{form}"
        numbers = struct.unpack_from(little_endian, self._content, self.position)
        self.position += struct.calcsize(little_endian)
        return numbers

    def read_string(self) -> bytes:
        """Reads the length of a string and its bytes."""
        (length,) = _LENGTH.unpack_from(self._content, self.position)
        start = self.position + _LENGTH.size
        end = start + length
        if end > self._size:
            raise ValueError(
                f"a text of {length} bytes at byte {self.position} ends after the end of the file"
            )
        self.position = end
        return self._content[start:end]


def read_tensor_info(reader: HeaderReader, path: Path) -> TensorInfo:
    """Reads an entry of the table of tensors; its `start` is counted from where the data begin."""
    name = reader.read_string().decode()
    (num_dimensions,) = reader.read_numbers("I")
    *shape, kind, start = reader.read_numbers(f"{num_dimensions}QIQ")
    return TensorInfo(name, tuple(reversed(shape)), kind, start, path)


def read_value(reader: HeaderReader) -> Value:
    """Reads the type of a value and the value."""
    (kind,) = reader.read_numbers("I")
    if kind == STRING:
        return Value(kind, reader.read_string(), is_array=False)
    if kind != ARRAY:
        (number,) = reader.read_numbers(_format_of(kind))
        return Value(kind, number, is_array=False)
    kind, count = reader.read_numbers("IQ")
    if kind == STRING:
        return Value(kind, [reader.read_string() for _ in range(count)], is_array=True)
    return Value(kind, reader.read_numbers(f"{count}{_format_of(kind)}"), is_array=True)


def _format_of(kind: int) -> str:
    if kind not in _FORMATS:
        raise ValueError(f"a value of the unknown type {kind}")
    return _FORMATS[kind]
