"""Explains in one sentence why a model cannot be loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from holdfast.errors import HoldfastError, ModelError, NoSuchModel
from holdfast.models.checkpoint import DEFAULT, REAL_MODELS, Source, on_one_line

_SHIPPED = ", ".join((DEFAULT, *REAL_MODELS))


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
    if kind := re.search(r"has model type `([^`]*)`", reason):
        return ModelError(
            f"{name!r} is of the type {kind[1]!r}, which this version of transformers does not"
            " know; update it, or use another model."
        )
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
        return _not_found(name, error, silence)
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


def _not_found(name: str, error: OSError, silence: str) -> ModelError:
    """The error about a hub model that cannot be downloaded, or is not there."""
    from huggingface_hub import constants

    message = str(error).lower()
    if "gated" in message:
        return ModelError(
            f"The hub gives {name!r} only to users with access; ask for access on its page, then"
            " log in with: hf auth login."
        )
    if constants.is_offline_mode():
        return NoSuchModel(
            f"There is no model {name!r}: it is neither a folder nor in the hub's cache, and"
            " HF_HUB_OFFLINE forbids asking the hub; unset it, or give a folder, a URL, or one of"
            f" {_SHIPPED}."
        )
    if silence:
        return ModelError(
            f"The hub cannot be reached ({silence}), and {name!r} is not a folder, and is"
            " incomplete or missing in the hub's cache; try again, or give a folder, a URL, or"
            " 'default'."
        )
    return NoSuchModel(
        f"There is no model {name!r}: it is not a folder, and the hub has no model of this name;"
        f" give a folder, a hub name, a URL, or one of {_SHIPPED}."
    )
