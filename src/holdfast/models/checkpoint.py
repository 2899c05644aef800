"""Finds a chat model's files, and explains in one sentence what is broken or missing."""

from __future__ import annotations

import difflib
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from holdfast.common.files import user_cache
from holdfast.common.model_names import endpoint_meant, is_url
from holdfast.errors import HoldfastError, ModelError, NoSuchModel, cut
from holdfast.models.gguf import GGUF, read_gguf
from holdfast.models.gguf_stand_in import standing_in

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

DEFAULT = "default"
DEFAULT_FOLDER = Path(__file__).parents[1] / "assets" / "model"
# Real chat models that holdfast/models/install.py downloads: names and files.
REAL_MODELS = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma-3-270m": "gemma-3-270m-q4_k_m.gguf",
    "qwen-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "qwen-1.5b": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
}
_HUB_WAIT = 10.0  # seconds for the hub to answer at all


@dataclass(frozen=True)
class Source:
    """Where a model's weights come from."""

    name: str  # as the user wrote it
    location: str  # a folder, a GGUF file, or a name on the hub
    gguf: GGUF | None = None  # the header of a GGUF file; None for other sources

    @property
    def is_local(self) -> bool:
        """Whether the weights are in files here, not on the hub."""
        return os.path.exists(self.location)

    @contextmanager
    def opened(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Location and options for `from_pretrained`; a GGUF file's location is an empty folder."""
        if self.gguf is None:
            yield self.location, {}
        else:
            with TemporaryDirectory() as empty, standing_in(self.gguf.header):
                yield empty, {"gguf_file": str(self.gguf.path.absolute())}


def find_source(name: str) -> Source:
    """Where the model of this name is; raises a `ModelError` if nothing readable is there."""
    if name == DEFAULT:
        return Source(name, str(DEFAULT_FOLDER))
    location = name
    if name in REAL_MODELS and not os.path.isdir(name):
        location = str(real_models_folder() / REAL_MODELS[name])
        if not os.path.exists(location):
            raise NoSuchModel(
                f"{name!r} is not installed; `python -m holdfast.models.install {name}` downloads"
                f" it to {real_models_folder()}.",
                option="model",
                value=name,
                allowed=list(REAL_MODELS),
            )
    if location.lower().endswith(".gguf") or _begins_as_gguf(location):
        return Source(name, location, read_gguf(location))
    near = difflib.get_close_matches(name, (DEFAULT, *REAL_MODELS), 1, 0.8)
    if near and not os.path.exists(location):
        raise NoSuchModel(
            f"There is no model {name!r}; did you mean {near[0]!r}?",
            option="model",
            value=name,
            allowed=near,
        )
    _check_folder(location)
    return Source(name, location)


def real_models_folder() -> Path:
    """Where `python -m holdfast.models.install` puts models: a folder in the user's cache."""
    return user_cache() / "models"


def _begins_as_gguf(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"GGUF"


def _check_folder(source: str) -> None:
    folder = Path(source)
    if not os.path.exists(folder):  # unlike Path.exists, never raises, however long the name
        return _check_hub_name(source)
    if not folder.is_dir():
        raise NoSuchModel(
            f"{source!r} is a file; give a GGUF file, or the folder that holds config.json and the"
            " safetensors weights."
        )
    if files := sorted(folder.glob("*.gguf")) * (not any(folder.glob("*.safetensors"))):
        raise NoSuchModel(
            f"The folder {source!r} has its weights in GGUF; give the file {str(files[0])!r}."
        )
    if not (folder / "config.json").exists():
        raise NoSuchModel(
            f"The folder {source!r} has no config.json; give the folder of a Hugging Face model."
        )
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        pickled = sorted(
            path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern)
        )
        if pickled:
            raise ModelError(
                f"The folder {source!r} has pickled weights only ({pickled[0]}), which can run code"
                " when read; convert them to safetensors."
            )
        raise NoSuchModel(
            f"The folder {source!r} has no weights; put model.safetensors beside its config.json."
        )
    for name in (
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "model.safetensors.index.json",
    ):
        _check_json(folder / name)
    for path in weights:
        _check_header(path)


def _check_hub_name(name: str) -> None:
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    if is_url(name):
        raise NoSuchModel(
            f"{cut(name, 100)} is an endpoint, and holdfast.load loads a model into this process;"
            f" use holdfast.connect({name!r})."
        )
    if meant := endpoint_meant(name):
        arguments = f"{meant.url!r}, {meant.model!r}" if meant.model else repr(meant.url)
        raise NoSuchModel(
            f"{cut(name, 100)!r} names a model behind an endpoint, and there is no folder of that"
            f" name; did you mean holdfast.connect({arguments})?"
        )
    if "://" in name:
        raise NoSuchModel(
            f"{cut(name, 100)} is a URL of another scheme than http or https; give one of those."
        )
    if name.startswith((".", "/", "~")):
        raise NoSuchModel(
            f"There is no folder {name!r}; give a folder, a hub name, a URL, or 'default'."
        )
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise NoSuchModel(
            f"There is no folder {cut(name, 100)!r}, and a model on the hub cannot be called so;"
            " give a folder, a hub name such as owner/name, a URL, or 'default'."
        ) from None


def hub_silence() -> str:
    """Why the hub cannot be reached, in a few words; "" if it answers, or may not be asked."""
    import httpx2
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.is_offline_mode():
        return ""
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_WAIT)
    except httpx2.TransportError as error:
        return shorten(error)
    return ""


def _check_json(path: Path) -> None:
    """Refuses a file that is not a JSON object; transformers silently ignores some of them."""
    if not path.exists():
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"Cannot read {str(path)!r} ({shorten(error)}); download it again."
        ) from None
    if not isinstance(content, dict):
        raise ModelError(
            f"{str(path)!r} holds no JSON object but {cut(repr(content), 60)}; download it again."
        )


def _check_header(path: Path) -> None:
    """Refuses weights that are cut off or damaged, judging by their header only."""
    try:
        with safe_open(path, "pt"):
            pass
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"The weights {str(path)!r} are cut off or damaged ({shorten(error)}); download"
            " it again.",
            option="model",
            value=str(path),
        ) from None


def check_kind(name: str, config: PreTrainedConfig) -> None:
    """Refuses encoder-decoder models."""
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{name!r} is no causal language model ({type(config).__name__} has an encoder beside "
            "the decoder); use a chat model."
        )


def load_whole(source: Source, location: str, **options: Any) -> PreTrainedModel:
    """Loads a model; refuses missing weights, which transformers would initialise at random."""
    from transformers import AutoModelForCausalLM

    with _no_report():
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            location,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            use_safetensors=True,
            **options,
        )
    model: PreTrainedModel
    model, report = loaded
    name = "The default model" if source.name == DEFAULT else repr(source.name)
    missing = sorted(report["missing_keys"])
    if missing and all(re.match(r"(lm_head|embed_out|output)\b", weight) for weight in missing):
        raise ModelError(
            f"{name} has no head to write with ({cut(', '.join(missing), 120)} is missing), as a "
            "base model saved without one; get the checkpoint for causal language modelling.",
            option="model",
            value=missing,
        )
    if missing:
        raise ModelError(
            f"{name} lacks {len(missing)} of the weights its config.json asks for"
            f" ({cut(', '.join(missing), 120)}); get the whole checkpoint, or the config.json that"
            " belongs to it.",
            option="model",
            value=missing,
        )
    if mismatched := sorted(report["mismatched_keys"]):
        weight, stored, configured = mismatched[0]
        raise ModelError(
            f"{name} has {len(mismatched)} weights of another size than its config.json asks for"
            f" ({weight} is {tuple(stored)}, not {tuple(configured)}); get the config.json that"
            " belongs to the weights.",
            option="model",
            value=tuple(stored),
            allowed=tuple(configured),
        )
    return model


@contextmanager
def _no_report() -> Iterator[None]:
    """Suppresses transformers' report of missing weights: what matters in it becomes an error."""
    logger = logging.getLogger("transformers.modeling_utils")

    def wanted(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return "LOAD REPORT" not in message or "CONVERSION" in message

    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


@contextmanager
def without_weight_bars() -> Iterator[None]:
    """Hides transformers' bars of weights that are read; those of a download stay."""
    from huggingface_hub.utils import are_progress_bars_disabled, enable_progress_bars
    from transformers.utils import logging

    if not logging.is_progress_bar_enabled():
        yield
        return
    has_download_bars = not are_progress_bars_disabled()
    logging.disable_progress_bar()  # the hub's too
    if has_download_bars:
        enable_progress_bars()
    try:
        yield
    finally:
        logging.enable_progress_bar()


@contextmanager
def explained(source: Source, part: str, silence: str = "") -> Iterator[None]:
    """Turns any error in loading a part into one sentence."""
    try:
        yield
    except HoldfastError:
        raise
    # on a broken file, the libraries below raise any kind of exception, even a plain one
    except Exception as error:
        if source.gguf is not None:
            raise source.gguf.cannot_read(shorten(error)) from error
        raise _loading_failed(source, part, error, silence) from error


def _loading_failed(source: Source, part: str, error: Exception, silence: str) -> ModelError:
    reason, name = str(error), source.name
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
            " (trust_remote_code=True)."
        )
    if source.is_local:
        files = (
            f"config.json and the {'files of the tokenizer' if part == 'tokenizer' else 'weights'}"
        )
        if part == "tokenizer" and name != DEFAULT and not (Path(name) / "tokenizer.json").exists():
            return ModelError(
                f"The folder {name!r} has no tokenizer.json; put that of the model beside its"
                " config.json."
            )
        return ModelError(f"Cannot load {name!r} ({shorten(error)}); check {files} in that folder.")
    if "safetensors" in reason and isinstance(error, OSError):
        return ModelError(
            f"The hub model {name!r} has no safetensors weights; pickled ones can run code, so"
            " convert them first."
        )
    if isinstance(error, OSError):
        return _not_found(name, error, silence)
    return ModelError(
        f"Cannot load {name!r} ({shorten(error)}); delete it from the hub's cache and try again."
    )


def _not_found(name: str, error: OSError, silence: str) -> ModelError:
    from huggingface_hub import constants

    message = str(error).lower()
    if "gated" in message:
        return ModelError(
            f"The hub gives {name!r} only to those it let in; ask for access on its page, then log"
            " in with: hf auth login."
        )
    if constants.is_offline_mode():
        return NoSuchModel(
            f"There is no model {name!r}: it is no folder here and not in the hub's cache, and"
            " HF_HUB_OFFLINE keeps it from asking the hub; unset it, or give a folder, a URL, or"
            " 'default'."
        )
    if silence:
        return ModelError(
            f"The hub cannot be reached ({silence}), and {name!r} is no folder here and not whole"
            " in the hub's cache; try again, or give a folder, a URL, or 'default'."
        )
    return NoSuchModel(
        f"There is no model {name!r}: it is no folder here, and the hub does not have it;"
        " give a folder, a hub name, a URL, or 'default'."
    )


def shorten(error: Exception) -> str:
    """The message of an error on one line; with its type if it is only one word."""
    message = " ".join(str(error).split()).rstrip(".;")
    return cut(message if " " in message else f"{type(error).__name__}: {message}", 200)
