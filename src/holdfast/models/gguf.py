"""GGUF files: reads the header once and fast, and refuses files that transformers cannot read.

Reading the header needs neither torch nor transformers, so an unusable file is refused at once.
Nothing in a file is executed; its chat template runs in the sandbox of transformers. The model's
configuration (`gguf_config`), tokenizer (`gguf_tokenizer`) and weights (`gguf_weights`) are made of
the header, each with the help of transformers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import mmap
import struct
import threading
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import ModelError, NoSuchModel
from holdfast.models.gguf_header import (
    HeaderReader,
    TensorInfo,
    Value,
    read_tensor_info,
    read_value,
)

if TYPE_CHECKING:
    import torch

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
TOKENS = "tokenizer.ggml.tokens"
ROTARY_FACTORS = "rope_freqs.weight"  # a tensor that is not a weight of the model
_DEFAULT_ALIGNMENT = 32
_WAYS_OUT = (
    "run it in llama-server or Ollama and give the server's URL as the model, or use the model's"
    " safetensors repository."
)


@dataclass(frozen=True)
class GGUF:
    """A GGUF file, described by its header."""

    path: Path
    values: dict[str, Value]  # by key
    tensors: tuple[TensorInfo, ...]
    table_start: int  # the byte of the file at which the table of tensors begins, after the keys

    def value(self, key: str, default: Any = None) -> Any:
        """The content of a key; `default` if the header lacks it."""
        value = self.values.get(key)
        return default if value is None else value.content

    @property
    def architecture(self) -> str:
        """The name of the model's architecture in llama.cpp."""
        name: str = self.values["general.architecture"].content
        return name

    @property
    def num_weights(self) -> int:
        """The number of weights, of all tensors together."""
        return sum(tensor.n_elements for tensor in self.tensors)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a reply, according to the header."""
        keys = (f"tokenizer.ggml.{name}_token_id" for name in ("eos", "eot", "eom"))
        return frozenset(token for key in keys if (token := self.value(key)) is not None)

    @property
    def begins_with_bos(self) -> bool:
        """Whether llama.cpp begins every text with the token for the beginning of a text."""
        return bool(self.value("tokenizer.ggml.add_bos_token", False))

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype of the file's weights; None if they are quantised."""
        import torch

        types = {tensor.tensor_type.name for tensor in self.tensors}
        floats = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
        if not types <= floats.keys():
            return None
        return next(dtype for name, dtype in floats.items() if name in types)

    def start_digest(self) -> Future[str]:
        """Begins to digest every byte of the file in a thread, while loading reads them anyway."""
        digest = Future[str]()

        def run() -> None:
            try:
                with self.path.open("rb") as file:
                    digest.set_result(hashlib.file_digest(file, "sha256").hexdigest())
            except OSError as error:
                digest.set_exception(error)

        # a daemon, so that a load that fails does not wait for it
        threading.Thread(target=run, daemon=True).start()
        return digest

    def fingerprint(self, dtype: torch.dtype, digest: Future[str]) -> str:
        """A digest of every byte of the file, which `start_digest` has begun, and of the dtype."""
        return hashlib.sha256(f"{digest.result()} {dtype}".encode()).hexdigest()[:32]

    def cannot_read(self, why: str) -> ModelError:
        """The error for a file that transformers cannot read."""
        return ModelError(f"transformers cannot read {str(self.path)!r} ({why}); {_WAYS_OUT}")


def read_gguf(source: str) -> GGUF:
    """Reads and checks the header of a GGUF file; raises a `ModelError` if it is unusable."""
    path = Path(source)
    if not path.is_file():
        raise NoSuchModel(f"There is no file {source!r}; give the path of a GGUF file.")
    if missing := [name for name in ("gguf", "accelerate") if not importlib.util.find_spec(name)]:
        raise ModelError(
            f"Reading {source!r} needs {' and '.join(missing)}, not installed here; pip install"
            " 'holdfast-llm[gguf]'."
        )
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ModelError(
                f"{source!r} is not a GGUF file (it does not begin with {_MAGIC.decode()!r});"
                " download it again, or give the folder of a safetensors model."
            )
    try:
        gguf = read_header(path)
    except (ValueError, struct.error) as error:
        raise ModelError(
            f"{source!r} is cut off or damaged ({error}); download it again."
        ) from None
    _check_readable(gguf)
    return gguf


def _check_readable(gguf: GGUF) -> None:
    """Refuses a file that transformers cannot read, or would misread."""
    source = str(gguf.path)
    parts = gguf.value("split.count", 1)
    if parts > 1:
        raise ModelError(
            f"{source!r} is one of {parts} files of a split GGUF, which transformers cannot read;"
            f" {_WAYS_OUT}"
        )
    architecture = gguf.value("general.architecture")
    if not architecture or not gguf.tensors:
        lacking = "weights" if architecture else "general.architecture in its header"
        raise ModelError(f"{source!r} has no {lacking}, so it is not a model; {_WAYS_OUT}")
    if architecture == "gpt-oss":  # its scaling is read by `gguf_config`
        return
    # transformers would silently ignore the scaling of positions, and misread every long chat
    scalings = [t.name for t in gguf.tensors if t.name.startswith("rope_factors_")]
    scaling_type = f"{architecture}.rope.scaling.type"
    if gguf.value(scaling_type, "none") not in ("none", "gpt-oss"):
        scalings.insert(0, scaling_type)
    if scalings:
        raise gguf.cannot_read(f"it leaves out {scalings[0]}, which scales the positions")


def megabytes(size: int) -> str:
    """A number of bytes in MB or GB."""
    return f"{size / 1e6:.3g} MB" if size < 999.5e6 else f"{size / 1e9:.3g} GB"


def read_header(path: Path) -> GGUF:
    """Reads the header of a GGUF file, whose use is not checked yet; see `read_gguf`.

    Raises:
        ValueError, struct.error, UnicodeDecodeError: the file is cut off or damaged, or has a
            version other than 2 or 3.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        reader = HeaderReader(content, position=len(_MAGIC))
        version, num_tensors, num_keys = reader.read_numbers("IQQ")
        if version not in _VERSIONS:
            raise ValueError(f"it has version {version}, and only versions 2 and 3 can be read")
        values: dict[str, Value] = {}
        for _ in range(num_keys):
            key = reader.read_string().decode()
            values[key] = read_value(reader)
        table_start = reader.position
        tensors = [read_tensor_info(reader, path) for _ in range(num_tensors)]
        alignment = _DEFAULT_ALIGNMENT
        if "general.alignment" in values:
            alignment = values["general.alignment"].raw or _DEFAULT_ALIGNMENT
        data_start = math.ceil(reader.position / alignment) * alignment
        size = len(content)
    located = tuple(replace(tensor, start=data_start + tensor.start) for tensor in tensors)
    if len({tensor.name for tensor in located}) < len(located):
        raise ValueError("two tensors have the same name")
    for tensor in located:
        if tensor.start + tensor.n_bytes > size:
            raise ValueError(f"the tensor {tensor.name!r} ends after the end of the file")
    return GGUF(path, values, located, table_start)
