"""Keeps the tokenizers that transformers makes from GGUF files, in the user's cache.

A vocabulary without merges, such as Gemma's, takes transformers seconds to convert. The result
depends on the header and on the versions of the libraries only, which its name in the cache covers.
It is kept as JSON with a digest: a file that is damaged, or was not written whole, is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import RecordsError
from holdfast.files import user_cache, write_whole
from holdfast.models.gguf_header import Header

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FORMAT = 1  # of the files in the cache
_TOKENS = "tokenizer.ggml.tokens"
_LARGE = 20_000  # tokens; fewer are converted as fast as they are read
_Convert = Callable[[str, dict[str, Any]], "tuple[Tokenizer, dict[str, Any]]"]


def kept_in_cache(header: Header, convert: _Convert) -> _Convert:
    """A function like `convert` that converts the tokenizer of a file once, and keeps it.

    Args:
        header: the file's.
        convert: `convert_gguf_tokenizer` of transformers, which takes an architecture and the
            vocabulary, and returns a tokenizer, and options for the class around it; a tokenizer
            with options is not kept.
    """

    def converted(architecture: str, vocabulary: dict[str, Any]) -> Any:
        tokens = vocabulary["tokens"]
        # another thread may be converting the tokenizer of another file
        if len(tokens) < _LARGE or tokens != header.values[_TOKENS].content:
            return convert(architecture, vocabulary)
        path = cache_file(header)
        if (kept := _read(path)) is not None:
            return kept, {}
        tokenizer, options = convert(architecture, vocabulary)
        if not options:
            with suppress(RecordsError):  # without a cache, it is converted again each time
                write_whole(path, _with_digest(tokenizer.to_str()))
        return tokenizer, options

    return converted


def cache_file(header: Header) -> Path:
    """Where the tokenizer of a file with this header is kept."""
    versions = [version(name) for name in ("transformers", "tokenizers")]
    with header.path.open("rb") as file:
        keys = file.read(header.table_start)
    digest = hashlib.sha256(f"{_FORMAT} {versions} ".encode() + keys).hexdigest()
    return user_cache() / "tokenizers" / f"{digest[:32]}.json"


def _read(path: Path) -> Tokenizer | None:
    """The tokenizer in a file; None if the file is missing or damaged."""
    from tokenizers import Tokenizer

    try:
        content = path.read_bytes()
    except OSError:
        return None
    text = content.partition(b"\n")[2].decode("utf-8", "replace")
    return Tokenizer.from_str(text) if content == _with_digest(text) else None


def _with_digest(text: str) -> bytes:
    """The content of a file in the cache: a digest of the text, and the text on the next line."""
    content = text.encode()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content
