"""GGUF files: the header is read and checked here; transformers dequantises the weights.

Reading the header needs neither torch nor transformers, so an unusable file is refused at once.
Nothing in a file is executed; its chat template runs in the sandbox of transformers.
"""

from __future__ import annotations

import hashlib
import importlib.util
import struct
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import ModelError, NoSuchModel
from holdfast.models.gguf_header import ROTARY_FACTORS, Header, read_header

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig

_MAGIC = b"GGUF"
# Text for a byte-level vocabulary is split by a regular expression, which the file only names.
# transformers knows some of the names and uses GPT-2's expression for all others. This is right for
# these two: "smollm" also separates digits, but none of its tokens joins a digit to anything.
_SPLIT_AS_GPT2 = ("gpt-2", "smollm")
_WAYS_OUT = (
    "run it in llama-server or Ollama and give the server's URL as the model, or use the model's"
    " safetensors repository."
)


@dataclass(frozen=True)
class GGUF:
    """A GGUF file and its header."""

    path: Path
    header: Header

    def value(self, key: str, default: Any = None) -> Any:
        """A value of the header by its key; `default` if the header lacks it."""
        value = self.header.values.get(key)
        return default if value is None else value.content

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

        types = {tensor.tensor_type.name for tensor in self.header.tensors}
        floats = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
        if not types <= floats.keys():
            return None
        return next(dtype for name, dtype in floats.items() if name in types)

    def size_line(self, dtype: torch.dtype) -> str:
        """A line on the size of the file, and of the weights once dequantised to `dtype`."""
        size = dtype.itemsize * sum(int(tensor.n_elements) for tensor in self.header.tensors)
        on_disk = megabytes(self.path.stat().st_size)
        name = str(dtype).removeprefix("torch.")
        return f"{self.path.name}: {on_disk}, {megabytes(size)} once dequantised to {name}."

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

    def fingerprint(self, dtype: torch.dtype, digest: Future[str] | None = None) -> str:
        """A digest of every byte of the file and of the dtype.

        Waits for the digest of the bytes that `start_digest` has begun, or begins one.
        """
        content = (digest or self.start_digest()).result()
        return hashlib.sha256(f"{content} {dtype}".encode()).hexdigest()[:32]

    @property
    def unknown_split(self) -> str | None:
        """A warning that transformers may split text into other tokens than llama.cpp does; None
        if it does not.
        """
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

        split = self.value("tokenizer.ggml.pre", "")
        known_splits = {*GGUF_PRE_TOKENIZER_SPLITS, *_SPLIT_AS_GPT2}
        if self.value("tokenizer.ggml.model") != "gpt2" or split in known_splits:
            return None
        return (
            f"{self.path.name} splits text as {split!r}, which transformers does not know: it"
            " splits as GPT-2 does, so tokens may differ from llama.cpp's; the model's safetensors"
            " repository has the right tokenizer."
        )

    def scale_positions(self, config: PreTrainedConfig) -> None:
        """Adds the file's factors of the rotary frequencies, if any, which transformers ignores."""
        tensors = self.header.tensors
        factors = next((t.data.tolist() for t in tensors if t.name == ROTARY_FACTORS), None)
        if factors is None:
            return
        config.rope_parameters = {
            **config.rope_parameters,
            "rope_type": "longrope",  # divides each frequency by its own factor
            "short_factor": factors,
            "long_factor": factors,
            "factor": 1.0,
            "attention_factor": 1.0,
            "original_max_position_embeddings": config.max_position_embeddings,
        }

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
        if file.read(4) != _MAGIC:
            raise ModelError(
                f"{source!r} is not a GGUF file (it does not begin with {_MAGIC.decode()!r});"
                " download it again, or give the folder of a safetensors model."
            )
    try:
        header = read_header(path)
    except (ValueError, struct.error) as error:
        raise ModelError(
            f"{source!r} is cut off or damaged ({error}); download it again."
        ) from None
    gguf = GGUF(path, header)
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
    if not architecture or not gguf.header.tensors:
        lacking = "weights" if architecture else "general.architecture in its header"
        raise ModelError(f"{source!r} has no {lacking}, so it is not a model; {_WAYS_OUT}")
    if architecture == "gpt-oss":  # its scaling is read by `gguf_config`
        return
    # transformers would silently ignore the scaling of positions, and misread every long chat
    scalings = [t.name for t in gguf.header.tensors if t.name.startswith("rope_factors_")]
    scaling_type = f"{architecture}.rope.scaling.type"
    if gguf.value(scaling_type, "none") not in ("none", "gpt-oss"):
        scalings.insert(0, scaling_type)
    if scalings:
        raise gguf.cannot_read(f"it leaves out {scalings[0]}, which scales the positions")


def megabytes(size: int) -> str:
    """A number of bytes in MB or GB."""
    return f"{size / 1e6:.3g} MB" if size < 999.5e6 else f"{size / 1e9:.3g} GB"
