"""The tokenizer of a GGUF file, as transformers converts it.

A large vocabulary takes transformers a second to read, and one without merges, such as Gemma's,
seconds to convert. The result depends on the header and on the versions of the libraries only, so
it is kept in the user's cache under a name that covers these: as JSON, beside a record of its
digest and of the options of the class around it. If either file is damaged, or was not written
whole, both are made again.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ValidationError

from holdfast.errors import RecordsError
from holdfast.files import user_cache, write_whole
from holdfast.models.gguf_header import TOKENS, Header

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

_FORMAT = 2  # of the files in the cache
_LARGE = 20_000  # tokens; fewer are converted as fast as they are read


class _Record(BaseModel):
    """The file beside a tokenizer in the cache."""

    digest: str  # of the tokenizer and the options
    options: dict[str, Any]


class ConvertedTokenizer(NamedTuple):
    """A tokenizer, and the options of the class that transformers puts around it."""

    tokenizer: Tokenizer
    options: dict[str, Any]


def read_tokenizer(header: Header) -> PreTrainedTokenizerFast:
    """The tokenizer of a file; converted once if it is large."""
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    tokens = header.values.get(TOKENS)
    is_large = tokens is not None and len(tokens.raw) >= _LARGE
    tokenizer: PreTrainedTokenizerFast
    if is_large and (options := _kept_options(cache_file(header))) is not None:
        tokenizer = kind(tokenizer_file=str(cache_file(header)), **options)
        return tokenizer
    converted = convert(header)
    if is_large:
        with suppress(RecordsError):  # without a cache, it is converted again each time
            _keep(cache_file(header), converted)
    tokenizer = kind(tokenizer_object=converted.tokenizer, **converted.options)
    return tokenizer


def convert(header: Header) -> ConvertedTokenizer:
    """Has transformers read the file's vocabulary and make a tokenizer of it."""
    from transformers.integrations.gguf import convert_gguf_tokenizer, get_gguf_tokenizer

    architecture, vocabulary, options = get_gguf_tokenizer(str(header.path))
    tokenizer, more_options = convert_gguf_tokenizer(architecture, vocabulary)
    return ConvertedTokenizer(tokenizer, {**options, **more_options})


def cache_file(header: Header) -> Path:
    """Where the tokenizer of a file with this header is kept."""
    versions = [version(name) for name in ("transformers", "tokenizers")]
    with header.path.open("rb") as file:
        keys = file.read(header.table_start)
    digest = hashlib.sha256(f"{_FORMAT} {versions} ".encode() + keys).hexdigest()
    return user_cache() / "tokenizers" / f"{digest[:32]}.json"


def _keep(path: Path, converted: ConvertedTokenizer) -> None:
    """Writes a tokenizer into the cache; raises a `RecordsError` if that is impossible."""
    content, options = converted.tokenizer.to_str().encode(), converted.options
    record = _Record(digest=_digest_of(content, options), options=options)
    write_whole(path, content)
    write_whole(_record_file(path), record.model_dump_json())


def _kept_options(path: Path) -> dict[str, Any] | None:
    """The options of the tokenizer in the cache; None if it is missing or damaged."""
    try:
        content = path.read_bytes()
        record = _Record.model_validate_json(_record_file(path).read_bytes())
    except (OSError, ValidationError):
        return None
    return record.options if record.digest == _digest_of(content, record.options) else None


def _record_file(path: Path) -> Path:
    return path.with_suffix(".record.json")


def _digest_of(content: bytes, options: dict[str, Any]) -> str:
    return hashlib.sha256(content + json.dumps(options).encode()).hexdigest()
