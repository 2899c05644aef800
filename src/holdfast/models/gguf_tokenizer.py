"""Makes the tokenizer of a GGUF file, with the help of transformers.

transformers takes seconds to read a large vocabulary, so it is given the one that `gguf.py` has
read. It also takes seconds to convert a vocabulary without merges, such as Gemma's. The result
depends only on the header and on the versions of the libraries, so it is kept in the user's cache
under a digest of these: as JSON, beside a record with the options of the class around the tokenizer
and a digest of both. If either file is damaged or incomplete, both are made again.
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
from holdfast.models.gguf import GGUF, TOKENS

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

_FORMAT = 2  # the version of the files in the cache
_LARGE = 20_000  # tokens; a smaller vocabulary is converted as fast as it is read from the cache
# Text for a byte-level vocabulary is split by a regular expression, which the file only names.
# transformers knows some of the names and uses GPT-2's expression for all others. This is right for
# these two: "smollm" also separates digits, but none of its tokens joins a digit to anything.
_SPLIT_AS_GPT2 = ("gpt-2", "smollm")
_SPECIAL_TOKENS = {
    "bos_token": "bos",
    "eos_token": "eos",
    "unk_token": "unknown",
    "pad_token": "padding",
}


class _Record(BaseModel):
    """The file beside a tokenizer in the cache."""

    digest: str  # of the tokenizer and the options
    options: dict[str, Any]


class ConvertedTokenizer(NamedTuple):
    """A tokenizer, and the options of the class that transformers puts around it."""

    tokenizer: Tokenizer
    options: dict[str, Any]


def read_tokenizer(gguf: GGUF) -> PreTrainedTokenizerFast:
    """Makes the tokenizer of a file; a large one comes from the cache if it is there."""
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    tokens = gguf.values.get(TOKENS)
    is_large = tokens is not None and len(tokens.raw) >= _LARGE
    tokenizer: PreTrainedTokenizerFast
    if is_large and (options := _read_cached_options(cache_file(gguf))) is not None:
        tokenizer = kind(tokenizer_file=str(cache_file(gguf)), **options)
        return tokenizer
    converted = _convert(gguf)
    if is_large:
        with suppress(RecordsError):  # without a cache, it is converted each time
            _write_cache(cache_file(gguf), converted)
    tokenizer = kind(tokenizer_object=converted.tokenizer, **converted.options)
    return tokenizer


def _convert(gguf: GGUF) -> ConvertedTokenizer:
    """Has transformers make a tokenizer of the file's vocabulary."""
    from transformers.integrations.gguf import convert_gguf_tokenizer

    vocabulary = vocabulary_of(gguf)
    tokenizer, more_options = convert_gguf_tokenizer(gguf.architecture, vocabulary)
    return ConvertedTokenizer(tokenizer, {**options_of(gguf), **more_options})


def warning_of_split(gguf: GGUF) -> str | None:
    """A warning that transformers may split text into other tokens than llama.cpp does.

    None if it does not.
    """
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    split = gguf.value("tokenizer.ggml.pre", "")
    known_splits = {*GGUF_PRE_TOKENIZER_SPLITS, *_SPLIT_AS_GPT2}
    if gguf.value("tokenizer.ggml.model") != "gpt2" or split in known_splits:
        return None
    return (
        f"{gguf.path.name} splits text as {split!r}, which transformers does not know: it"
        " splits as GPT-2 does, so tokens may differ from llama.cpp's; the model's safetensors"
        " repository has the right tokenizer."
    )


def vocabulary_of(gguf: GGUF) -> dict[str, Any]:
    """The parts of the vocabulary, under their names in transformers.

    Together with `options_of`, the same as `get_gguf_tokenizer` of transformers reads from the
    file; a test compares them.
    """
    return _rename_keys(gguf, "tokenizer")


def options_of(gguf: GGUF) -> dict[str, Any]:
    """The options of the class around the tokenizer: its template and its special tokens."""
    options = _rename_keys(gguf, "tokenizer_config")
    kind = gguf.value("tokenizer.ggml.model")
    if kind == "llama":  # older files lack this option
        options.setdefault("add_bos_token", True)
    elif kind == "gemma4":  # the template writes the token itself
        options["add_bos_token"] = False
    tokens = gguf.value(TOKENS)
    for name, key in _SPECIAL_TOKENS.items():
        number = gguf.value(f"tokenizer.ggml.{key}_token_id")
        options[name] = None if number is None else tokens[number]
    return options


def _rename_keys(gguf: GGUF, group: str) -> dict[str, Any]:
    """The values of a group of keys, under their names in transformers."""
    from transformers.integrations.gguf import GGUF_TOKENIZER_MAPPING

    values: dict[str, Any] = {}
    for key, name in GGUF_TOKENIZER_MAPPING[group].items():
        if (value := gguf.value(f"tokenizer.{key}")) is not None:
            values[name] = value
    return values


def cache_file(gguf: GGUF) -> Path:
    """The cache's file for the tokenizer of a file with this header."""
    versions = [version(name) for name in ("transformers", "tokenizers")]
    with gguf.path.open("rb") as file:
        keys = file.read(gguf.table_start)
    digest = hashlib.sha256(f"{_FORMAT} {versions} ".encode() + keys).hexdigest()
    return user_cache() / "tokenizers" / f"{digest[:32]}.json"


def _write_cache(path: Path, converted: ConvertedTokenizer) -> None:
    """Writes a tokenizer into the cache; raises a `RecordsError` if that is impossible."""
    content = converted.tokenizer.to_str().encode()
    options = converted.options
    record = _Record(digest=_digest_of(content, options), options=options)
    write_whole(path, content)
    write_whole(_record_file(path), record.model_dump_json())


def _read_cached_options(path: Path) -> dict[str, Any] | None:
    """Reads the options of a tokenizer in the cache; None if it is missing or damaged."""
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
