"""Explains in one sentence why a model cannot be loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from holdfast.errors import HoldfastError, ModelError
from holdfast.models.checkpoint import DEFAULT, Source, not_on_hub, on_one_line

ModelPart = Literal["model", "tokenizer"]


@contextmanager
def explain_errors(source: Source, part: ModelPart, silence: str = "") -> Iterator[None]:
    """Turns any error in loading a part of a model into a `ModelError` of one sentence.

    Args:
        source: where the model comes from.
        part: the part that is loaded.
        silence: why the hub cannot be reached; "" if it can, or is not needed.
    """
    try:
        yield
    except HoldfastError:
        raise
    # for a broken file, libraries raise any kind of exception, even `Exception` itself
    except Exception as error:
        if source.gguf is not None:
            raise source.gguf.cannot_read(on_one_line(error)) from error
        raise _loading_failed(source, part, error, silence) from error


def _loading_failed(source: Source, part: ModelPart, error: Exception, silence: str) -> ModelError:
    """Explains an error by the words that transformers puts into it."""
    reason = str(error)
    name = source.name
    # "The checkpoint ... has model type `qwen9` but Transformers does not recognize it"
    if kind := re.search(r"has model type `([^`]*)`", reason):
        return ModelError(
            f"{name!r} is of the type {kind[1]!r}, which this version of transformers does not"
            " know; update it, or use another model."
        )
    # "Unrecognized configuration class <class 'transformers.models.bert.BertConfig'> for this kind"
    if kind := re.search(r"Unrecognized configuration class <class '[\w.]*?(\w+)'>", reason):
        return ModelError(f"{name!r} is no causal language model ({kind[1]}); use a chat model.")
    if "trust_remote_code" in reason:
        return ModelError(
            f"{name!r} needs code that comes with it; if you trust that code, allow it"
            " (trust_remote_code=True in Python, or `--trust-remote-code`)."
        )
    if source.is_local:
        return _folder_failed(name, part, error)
    if "safetensors" in reason and isinstance(error, OSError):
        return ModelError(
            f"The hub model {name!r} has no safetensors weights; pickled ones can run code, so"
            " convert them first."
        )
    if isinstance(error, OSError):
        return not_on_hub(name, error, silence)
    return ModelError(
        f"Cannot load {name!r} ({on_one_line(error)}); delete it from the hub's cache and try"
        " again."
    )


def _folder_failed(name: str, part: ModelPart, error: Exception) -> ModelError:
    """The error about a model in a folder."""
    if part == "model":
        return ModelError(
            f"Cannot load {name!r} ({on_one_line(error)}); check config.json and the weights in"
            " that folder."
        )
    if name != DEFAULT and not (Path(name) / "tokenizer.json").exists():
        return ModelError(
            f"The folder {name!r} has no tokenizer.json; put that of the model beside its"
            " config.json."
        )
    return ModelError(
        f"Cannot load {name!r} ({on_one_line(error)}); check config.json and the files of the"
        " tokenizer in that folder."
    )
