"""GGUF files: a header that is read and checked here, weights that transformers dequantises.

Reading the header takes neither torch nor transformers, so a file that cannot be used is refused at
once. Nothing in a file is executed; its chat template runs in the sandbox of transformers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from holdfast.errors import ModelError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = ("B", "b", "H", "h", "I", "i", "f", "?", None, None, "Q", "q", "d")  # by type number
_STRING, _ARRAY = 8, 9
_MOST_DIMENSIONS = 8
# Byte-level vocabularies are split by a regular expression that the file only names. transformers
# knows some of the names and takes GPT-2's for the others, which is right for these two; "smollm"
# sets digits apart besides, but its vocabulary has no token that joins one to anything.
_SPLIT_AS_GPT2 = ("gpt-2", "smollm")
_WAYS_OUT = (
    "run it in llama-server or Ollama and give the server's URL as the model, or use the model's"
    " safetensors repository."
)


class Tensor(NamedTuple):
    """Where a tensor lies in the file."""

    name: str
    type: str  # as in "Q4_K"
    size: int  # elements
    start: int
    end: int


@dataclass(frozen=True)
class GGUF:
    """A GGUF file's header.

    Args:
        path: of the file.
        metadata: its numbers and texts; of an array, the length.
        tensors: in the order of the file.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: tuple[Tensor, ...]

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a turn."""
        keys = (f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))
        return frozenset(self.metadata[key] for key in keys if key in self.metadata)

    @property
    def dtype(self) -> torch.dtype:
        """The file's own dtype; float32 if it is quantised."""
        import torch

        types = {tensor.type for tensor in self.tensors}
        floats = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
        if not types <= floats.keys():
            return torch.float32
        return next(dtype for name, dtype in floats.items() if name in types)

    def size_line(self, dtype: torch.dtype) -> str:
        """The size on disk and in memory."""
        size = dtype.itemsize * sum(tensor.size for tensor in self.tensors)
        on_disk, name = _megabytes(self.path.stat().st_size), str(dtype).removeprefix("torch.")
        return f"{self.path.name}: {on_disk}, {_megabytes(size)} once dequantised to {name}."

    def fingerprint(self, dtype: torch.dtype) -> str:
        """A digest of every byte of the file, and of the dtype.

        A sample would be quicker, but all of it is read anyway to be dequantised, and so two files
        that differ anywhere, be it in the tokenizer, never pass for the same model.
        """
        with self.path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        return hashlib.sha256(f"{content} {dtype}".encode()).hexdigest()[:32]

    @property
    def unknown_split(self) -> str:
        """A sentence if transformers may cut text into other tokens than llama.cpp; else ""."""
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

        split = self.metadata.get("tokenizer.ggml.pre", "")
        known = {*GGUF_PRE_TOKENIZER_SPLITS, *_SPLIT_AS_GPT2}
        if self.metadata.get("tokenizer.ggml.model") != "gpt2" or split in known:
            return ""
        return (
            f"{self.path.name} splits text as {split!r}, which transformers does not know: it"
            " splits as GPT-2 does, so tokens may differ from llama.cpp's; the model's safetensors"
            " repository has the right tokenizer."
        )

    def scale_positions(self, config: PreTrainedConfig) -> None:
        """Puts the factors of the rotary frequencies (Llama 3.1 and later) into a configuration, as
        transformers leaves them out.
        """
        factors = next((t for t in self.tensors if t.name == "rope_freqs.weight"), None)
        if factors is None:
            return
        with self.path.open("rb") as file:
            file.seek(factors.start)
            values = struct.unpack(f"<{factors.size}f", file.read(factors.end - factors.start))
        config.rope_parameters = {
            **config.rope_parameters,
            "rope_type": "longrope",  # divides each frequency by a factor of its own
            "short_factor": list(values),
            "long_factor": list(values),
            "factor": 1.0,
            "attention_factor": 1.0,
            "original_max_position_embeddings": config.max_position_embeddings,
        }

    def cannot_read(self, why: str) -> ModelError:
        """The refusal of a file that transformers cannot read."""
        return ModelError(f"transformers cannot read {str(self.path)!r} ({why}); {_WAYS_OUT}")


def read_gguf(source: str) -> GGUF:
    """Reads and checks the header of a GGUF file.

    Raises:
        ModelError: there is no such file, it is no GGUF file, is cut off or one part of several,
            or the packages that read its weights are not installed.
    """
    path = Path(source)
    if not path.is_file():
        raise ModelError(f"There is no file {source!r}; give the path of a GGUF file.")
    if missing := [name for name in ("gguf", "accelerate") if not importlib.util.find_spec(name)]:
        raise ModelError(
            f"{source!r} is read with {' and '.join(missing)}, not installed here; pip install"
            " 'holdfast[gguf]'."
        )
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise ModelError(
                f"{source!r} is no GGUF file (it does not begin with {_MAGIC.decode()!r}); get the"
                " file anew, or give the folder of a safetensors model."
            )
        try:
            header = _Cursor(file, path.stat().st_size).header(path)
        except (ValueError, OverflowError) as error:
            raise ModelError(
                f"The header of {source!r} is cut off or damaged ({error}); get the file anew."
            ) from None
    return _checked(header)


def _checked(header: GGUF) -> GGUF:
    source, parts = str(header.path), header.metadata.get("split.count", 1)
    if parts > 1:
        raise ModelError(
            f"{source!r} is one of {parts} files of a split GGUF, which transformers cannot read;"
            f" {_WAYS_OUT}"
        )
    there = header.path.stat().st_size
    if (needed := max((tensor.end for tensor in header.tensors), default=0)) > there:
        raise ModelError(
            f"{source!r} is cut off: it has {there:,} of at least {needed:,} bytes; get the file"
            " anew."
        )
    architecture = header.metadata.get("general.architecture")
    if not architecture or not header.tensors:
        lacking = "weights" if architecture else "general.architecture in its header"
        raise ModelError(f"{source!r} has no {lacking}, so it is no model; {_WAYS_OUT}")
    # what scales positions would be left out without a word, and every long chat be misread
    scaling = f"{architecture}.rope.scaling.type"
    scaled = [scaling] * (header.metadata.get(scaling, "none") not in ("none", "gpt-oss"))
    scaled += [t.name for t in header.tensors if t.name.startswith("rope_factors_")]
    if scaled and architecture != "gpt-oss":
        raise header.cannot_read(f"it leaves out {scaled[0]}, which scales the positions")
    return header


class _Cursor:
    """Reads an open file's header, behind its first four bytes."""

    def __init__(self, file: BinaryIO, size: int):
        self.file, self.size = file, size

    def header(self, path: Path) -> GGUF:
        (version,) = self.numbers("I")
        if version not in _VERSIONS:
            raise ValueError(f"version {version}, not {' or '.join(map(str, _VERSIONS))}")
        tensors, entries = self.numbers("QQ")
        metadata = dict(self.entry() for _ in range(entries))
        tensors_read = [self.tensor() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        start = -(-self.file.tell() // alignment) * alignment
        placed = (t._replace(start=start + t.start, end=start + t.end) for t in tensors_read)
        return GGUF(path, metadata, tuple(placed))

    def numbers(self, kinds: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{kinds}", self.read(struct.calcsize(f"<{kinds}")))

    def read(self, length: int) -> bytes:
        self.check_room(length)
        return self.file.read(length)

    def skip(self, length: int) -> None:
        self.check_room(length)
        self.file.seek(length, 1)

    def check_room(self, length: int) -> None:
        if self.file.tell() + length > self.size:
            raise ValueError("it ends within it")

    def text(self) -> str:
        return self.read(*self.numbers("Q")).decode()

    def entry(self) -> tuple[str, Any]:
        key = self.text()
        return key, self.value(*self.numbers("I"))

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.numbers(self.scalar(kind))[0]
        kind, count = self.numbers("IQ")
        if kind == _STRING:
            for _ in range(count):
                self.skip(*self.numbers("Q"))
        else:
            self.skip(count * struct.calcsize(self.scalar(kind)))
        return count

    def scalar(self, kind: int) -> str:
        known = _SCALARS[kind] if kind < len(_SCALARS) else None
        if known is None:
            raise ValueError(f"a value of the unknown type {kind}")
        return known

    def tensor(self) -> Tensor:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        name, (dimensions,) = self.text(), self.numbers("I")
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"{name!r} has {dimensions} dimensions")
        shape = self.numbers("Q" * dimensions)
        number, start = self.numbers("IQ")
        kind = GGMLQuantizationType(number)  # raises ValueError for one that gguf does not know
        block, block_bytes = GGML_QUANT_SIZES[kind]
        size = math.prod(shape)
        return Tensor(name, kind.name, size, start, start + size // block * block_bytes)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.3g} MB" if size < 999.5e6 else f"{size / 1e9:.3g} GB"
