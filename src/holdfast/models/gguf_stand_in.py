"""Gives transformers what was read of a GGUF file, which it would read again and more slowly.

transformers offers no way to pass it a header or weights. While `standing_in` is open, the
functions by which it reads a file give, for this one, what Holdfast has read:

- `gguf.GGUFReader`, from which the older of its two loaders takes the configuration;
- `_read_metadata`, from which the newer one and the tokenizer are made;
- `convert_gguf_tokenizer`, which makes the tokenizer;
- `load_gguf_checkpoint`, which dequantises the weights for the older loader.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from holdfast.models.gguf_header import ARRAY, STRING, Header, Value
from holdfast.models.gguf_tokenizer import kept_in_cache

_TOKENS = "tokenizer.ggml.tokens"
_PATCHING = threading.Lock()


@contextlib.contextmanager
def standing_in(header: Header) -> Iterator[None]:
    """Within this context, transformers reads this file by Holdfast's functions.

    They replace transformers' for the whole process, which give other files what they did, so one
    thread at a time is in such a context.
    """
    import gguf
    from transformers import modeling_gguf_pytorch_utils as older
    from transformers.integrations import gguf as tokenizers
    from transformers.integrations.gguf import reader as newer

    from holdfast.models.gguf_weights import read_weights

    def reader(path: str | Path, *arguments: Any) -> Any:
        """In place of `gguf.GGUFReader`."""
        return _Reader(header) if header.path.samefile(path) else read(path, *arguments)

    def metadata(content: np.ndarray, path: str, whole: Container[str] = ()) -> Any:
        """In place of `_read_metadata`: the keys, the number of tensors, and where they begin."""
        if not header.path.samefile(path):
            return read_metadata(content, path, whole)
        return _metadata(header, whole), len(header.tensors), header.table_start

    def checkpoint(
        path: str, return_tensors: bool = False, model_to_load: Any = None, torch_dtype: Any = None
    ) -> dict[str, Any]:
        """In place of `load_gguf_checkpoint`: the configuration and, if wanted, the weights."""
        is_ours = header.path.samefile(path)
        parsed: dict[str, Any] = (
            load(path) if is_ours else load(path, return_tensors, model_to_load, torch_dtype)
        )
        if is_ours and return_tensors:
            config = parsed["config"]
            parsed["tensors"] = read_weights(header, model_to_load, config, torch_dtype)
        return parsed

    with _PATCHING:
        read, read_metadata = gguf.GGUFReader, newer._read_metadata
        load: Any = older.load_gguf_checkpoint
        convert = kept_in_cache(header, tokenizers.convert_gguf_tokenizer)
        with (
            patch.object(gguf, "GGUFReader", reader),
            patch.object(newer, "_read_metadata", metadata),
            patch.object(tokenizers, "convert_gguf_tokenizer", convert),
            patch.object(older, "load_gguf_checkpoint", checkpoint),
        ):
            yield


def _metadata(header: Header, whole: Container[str]) -> dict[str, Any]:
    """The keys as transformers reads them.

    Args:
        header: the file's.
        whole: keys of lists of strings that are read; of others, transformers wants the length.
    """
    return {
        key: len(value.raw) if _is_list_of_strings(value) and key not in whole else value.content
        for key, value in header.values.items()
    }


def _is_list_of_strings(value: Value) -> bool:
    return value.is_array and value.kind == STRING


class _Reader:
    """A header in the form of `gguf.GGUFReader`, as far as transformers reads it.

    Of the lists of the vocabulary it has the tokens alone, and of these the number: transformers
    reads them for the tokenizer elsewhere, and here takes from them the size of the vocabulary.
    """

    def __init__(self, header: Header):
        self.tensors = header.tensors
        self.fields = {
            key: _Field.of(key, value)
            for key, value in header.values.items()
            if key == _TOKENS or not (value.is_array and key.startswith("tokenizer."))
        }


@dataclass(frozen=True)
class _Field:
    """A key in the form of `gguf.ReaderField`.

    Attributes:
        parts: its values, each as an array or as the bytes of a text.
        data: the indices of the values in `parts`.
        types: its type; of an array, followed by that of the elements.
    """

    parts: Sequence[Any]
    data: Sequence[int]
    types: Sequence[int]

    @classmethod
    def of(cls, key: str, value: Value) -> _Field:
        if key == _TOKENS:
            return cls([[0]] * len(value.raw), range(len(value.raw)), [0])
        parts = value.raw if value.is_array else [value.raw]
        if value.kind != STRING:
            parts = [np.array([number]) for number in parts]
        types = [ARRAY, value.kind] if value.is_array else [value.kind]
        return cls(parts, range(len(parts)), types)
