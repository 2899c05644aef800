"""Finds a chat model's files, and refuses broken or missing ones before they are read."""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open

from holdfast.errors import ModelError, NoSuchModel, UnknownName, cut
from holdfast.files import user_cache
from holdfast.models.gguf import GGUF, read_gguf
from holdfast.models.model_names import guess_endpoint, is_url

DEFAULT = "default"
DEFAULT_FOLDER = Path(__file__).parents[1] / "assets" / "model"
# The files of the real chat models that holdfast/models/install.py downloads, by name.
REAL_MODELS = {
    "smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gemma-3-270m": "gemma-3-270m-q4_k_m.gguf",
    "qwen-0.5b": "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    "qwen-1.5b": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
}
DTYPES = ("auto", "float16", "bfloat16", "float32", "float64")  # that weights can have
SHIPPED = ", ".join((DEFAULT, *REAL_MODELS))  # names for messages
_HUB_WAIT = 10.0  # seconds that the hub has to answer


@dataclass(frozen=True)
class Source:
    """Where a model's weights come from."""

    name: str  # as the user wrote it
    location: str  # a folder, a GGUF file, or a name on the hub
    gguf: GGUF | None = None  # the header of a GGUF file; None for other sources

    @property
    def is_local(self) -> bool:
        """Whether the weights are in files on this machine, not on the hub."""
        return os.path.exists(self.location)


def find_source(name: str) -> Source:
    """Finds the weights of the model with this name.

    Raises:
        NoSuchModel: there is no model of this name.
        ModelError: a file of the model cannot be read.
    """
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
    """The folder into which `python -m holdfast.models.install` puts models."""
    return user_cache() / "models"


def _begins_as_gguf(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"GGUF"


def _check_folder(source: str) -> None:
    """Refuses a folder that lacks a file of a model, or that has a broken one.

    A name that is no folder has to be one on the hub.
    """
    folder = Path(source)
    if not os.path.exists(folder):  # unlike Path.exists, never raises, however long the name
        return _check_hub_name(source)
    if not folder.is_dir():
        raise NoSuchModel(
            f"{source!r} is a file; give a GGUF file, or the folder with config.json and the"
            " safetensors weights."
        )
    weights = sorted(folder.glob("*.safetensors"))
    gguf_files = sorted(folder.glob("*.gguf"))
    if gguf_files and not weights:
        raise NoSuchModel(
            f"The folder {source!r} has its weights in GGUF; give the file {str(gguf_files[0])!r}."
        )
    if not (folder / "config.json").exists():
        raise NoSuchModel(
            f"The folder {source!r} has no config.json; give the folder of a Hugging Face model."
        )
    if not weights:
        raise _no_safetensors(source)
    for name in (
        "config.json",
        "generation_config.json",
        "tokenizer_config.json",
        "model.safetensors.index.json",
    ):
        _check_json(folder / name)
    for path in weights:
        _check_header(path)


def _no_safetensors(folder: str) -> ModelError:
    """The error for a folder without safetensors weights."""
    pickled: list[str] = []
    for pattern in ("*.bin", "*.pt", "*.pth"):
        pickled += [path.name for path in Path(folder).glob(pattern)]
    if pickled:
        return ModelError(
            f"The folder {folder!r} has pickled weights only ({min(pickled)}), which can run code"
            " when read; convert them to safetensors."
        )
    return NoSuchModel(
        f"The folder {folder!r} has no weights; put model.safetensors beside its config.json."
    )


def _check_hub_name(name: str) -> None:
    """Refuses a name that no model on the hub can have."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    if is_url(name):
        raise NoSuchModel(
            f"{cut(name, 100)} is an endpoint, and holdfast.load loads a model into this process;"
            f" use holdfast.connect({name!r})."
        )
    if meant := guess_endpoint(name):
        arguments = f"{meant.url!r}, {meant.model!r}" if meant.model else repr(meant.url)
        raise NoSuchModel(
            f"{cut(name, 100)!r} names a model behind an endpoint, and there is no folder of that"
            f" name; did you mean holdfast.connect({arguments})?"
        )
    if "://" in name:
        raise NoSuchModel(
            f"{cut(name, 100)} is a URL whose scheme is neither http nor https; use one of these."
        )
    if name.startswith((".", "/", "~")):
        raise NoSuchModel(
            f"There is no folder {name!r}; give a folder, a hub name, a URL, or 'default'."
        )
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise NoSuchModel(
            f"There is no folder {cut(name, 100)!r}, and no model on the hub can have this name;"
            " give a folder, a hub name such as owner/name, a URL, or 'default'."
        ) from None


def hub_silence() -> str:
    """Why the hub cannot be reached, in a few words; "" if it answers or is not to be contacted."""
    import httpx2
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.is_offline_mode():
        return ""
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_WAIT)
    except httpx2.TransportError as error:
        return on_one_line(error)
    return ""


def require_on_hub(source: Source) -> None:
    """Refuses a name that is neither in the hub's cache nor on the hub, without importing torch.

    Raises:
        NoSuchModel: there is no such model, or no weights of it that transformers can read.
        ModelError: the hub cannot be reached, or gives the model only to some users.
    """
    if source.is_local:
        return
    import httpx2
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    if isinstance(try_to_load_from_cache(source.location, "config.json"), str):
        return
    try:
        get_hf_file_metadata(hf_hub_url(source.location, "config.json"), timeout=_HUB_WAIT)
    except EntryNotFoundError as error:
        raise NoSuchModel(
            f"The hub model {source.name!r} has no config.json, so transformers cannot read it; if"
            " it has a GGUF file, download that and give its path."
        ) from error
    except (OfflineModeIsEnabled, RepositoryNotFoundError) as error:
        raise not_on_hub(source.name, error) from error
    except httpx2.TransportError as error:
        raise not_on_hub(source.name, error, on_one_line(error)) from error
    except HfHubHTTPError:  # the hub fails for now; loading asks it again
        return


def not_on_hub(name: str, error: Exception, silence: str = "") -> ModelError:
    """The error about a hub model that cannot be downloaded, or is not there.

    Args:
        silence: why the hub cannot be reached; "" if it answered or is not to be contacted.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError

    # transformers wraps the hub's error; that of a missing model says "private or gated"
    if isinstance(error, GatedRepoError) or "a gated repo" in str(error):
        return ModelError(
            f"The hub gives {name!r} only to users with access; ask for access on its page, then"
            " log in with: hf auth login."
        )
    if constants.is_offline_mode():
        return NoSuchModel(
            f"There is no model {name!r}: it is neither a folder nor in the hub's cache, and"
            " HF_HUB_OFFLINE forbids asking the hub; unset it, or give a folder, a URL, or one of"
            f" {SHIPPED}."
        )
    if silence:
        return ModelError(
            f"The hub cannot be reached ({silence}), and {name!r} is not a folder, and is"
            " incomplete or missing in the hub's cache; try again, or give a folder, a URL, or"
            " 'default'."
        )
    return NoSuchModel(
        f"There is no model {name!r}: it is not a folder, and the hub has no model of this name;"
        f" give a folder, a hub name, a URL, or one of {SHIPPED}."
    )


def _check_json(path: Path) -> None:
    """Refuses a file that is not a JSON object; transformers silently ignores some of them."""
    if not path.exists():
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"Cannot read {str(path)!r} ({on_one_line(error)}); download it again."
        ) from None
    if not isinstance(content, dict):
        raise ModelError(
            f"{str(path)!r} is not a JSON object but {cut(repr(content), 60)}; download it again."
        )


def _check_header(path: Path) -> None:
    """Refuses weights that are cut off or damaged, judging by their header only."""
    try:
        with safe_open(path, "pt"):
            pass
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"The weights {str(path)!r} are cut off or damaged ({on_one_line(error)}); download"
            " them again.",
            option="model",
            value=str(path),
        ) from None


def on_one_line(error: Exception) -> str:
    """The message of an error on one line, preceded by the error's type if it is a single word."""
    message = " ".join(str(error).split()).rstrip(".;")
    return cut(message if " " in message else f"{type(error).__name__}: {message}", 200)


def check_dtype(name: str) -> None:
    """Refuses a name that is no dtype of weights."""
    if name not in DTYPES:
        raise UnknownName("dtype", name, DTYPES)
