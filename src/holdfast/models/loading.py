"""Loading chat models: only safetensors, no code but transformers' own, and one sentence where it
cannot be done.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open

from holdfast import knobs
from holdfast.attention import adopt
from holdfast.errors import HoldfastError, ModelError, UnknownName, UsageError
from holdfast.models.local import LocalModel

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

DEFAULT = "default"
DEFAULT_FOLDER = Path(__file__).parents[1] / "assets" / "model"
_HUB_WAIT = 10.0  # seconds for the hub to answer at all
DTYPES = ("float16", "bfloat16", "float32", "float64")


def load(
    name_or_path: str = DEFAULT,
    device: str | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    trust_remote_code: bool = False,
    batch_size: int = LocalModel.batch_size,
) -> LocalModel:
    """Loads a Hugging Face chat model.

    Args:
        name_or_path: "default" (the model in this package), a folder, or a name on the hub.
        device: where it runs; None takes CUDA if there is one.
        dtype: "float16", "bfloat16", "float32" or "float64"; None takes float32 on the CPU and the
            checkpoint's own elsewhere.
        trust_remote_code: whether code that comes with the model may run. Weights are read as
            safetensors only.
        batch_size: rows forwarded together at most; where memory runs out, half as many are.

    Raises:
        ModelError: the model is not found, has a file that cannot be read, lacks weights, has no
            safetensors weights or no fast tokenizer, is no causal model, or does not fit on the
            device.
        UsageError: an unknown device or dtype, or one that is not there.
        KnobOutOfRange: `batch_size` is below 1.
    """
    knobs.whole_number("a model", "batch_size", batch_size, 1)
    if not isinstance(name_or_path, (str, Path)):
        raise UsageError(
            f"A model is loaded by the name or path of its folder, not from {_kind(name_or_path)}; "
            "to steer a model that is loaded already, use holdfast.steering."
        )
    name_or_path = str(name_or_path)
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = str(DEFAULT_FOLDER) if name_or_path == DEFAULT else name_or_path
    _check_folder(source)
    device, dtype = _place(device, dtype)
    silence = "" if os.path.exists(source) else _hub_silence()
    # else each of several files is asked for six times, half a minute long
    options = {"trust_remote_code": trust_remote_code, "local_files_only": bool(silence)}
    with _explained(name_or_path, "tokenizer", silence):
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
    if not tokenizer.is_fast:
        raise ModelError(
            f"{name_or_path} has no fast tokenizer, which finding spans needs; convert it to"
            " tokenizer.json."
        )
    with _explained(name_or_path, "model", silence):
        config = AutoConfig.from_pretrained(source, **options)
        _check_kind(name_or_path, config)
        # a config.json may name a kernel on a hub, which is code: what attends is ours to say
        config._attn_implementation = config._experts_implementation = None
        options |= {"dtype": dtype, "use_safetensors": True}
        model = _load_whole(source, AutoModelForCausalLM, config=config, **options)
    if silence:
        warnings.warn(
            f"The hub cannot be reached ({silence}), so {name_or_path!r} is taken from its cache"
            " here.",
            stacklevel=2,
        )
    model = _move(model, device, name_or_path).eval()
    with _explained(name_or_path, "model", silence):
        steerable = adopt(model)
    return LocalModel(
        name=name_or_path,
        fingerprint=fingerprint_of(model, tokenizer),
        hf_model=model,
        tokenizer=tokenizer,
        stop_ids=stop_ids(model, tokenizer),
        reuses_cache=reuses_cache(model),
        steerable=steerable,
        batch_size=batch_size,
    )


def _check_kind(name: str, config: PreTrainedConfig) -> None:
    """Refuses models that read a prompt otherwise than they write."""
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{name!r} is no causal language model ({type(config).__name__} has an encoder beside "
            "the decoder); use a chat model."
        )


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _check_folder(source: str) -> None:
    """Refuses by name what would otherwise fail far from its cause."""
    folder = Path(source)
    if not os.path.exists(folder):  # unlike Path.exists, never raises, however long the name
        return _check_hub_name(source)
    if not folder.is_dir():
        raise ModelError(
            f"{source!r} is a file; give the folder that holds config.json and the safetensors"
            " weights."
        )
    if not (folder / "config.json").exists():
        raise ModelError(
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
        raise ModelError(
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

    if name.startswith((".", "/", "~")):
        raise ModelError(
            f"There is no folder {name!r}; give a folder, a hub name, a URL, or 'default'."
        )
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise ModelError(
            f"There is no folder {_cut(name, 100)!r}, and a model on the hub cannot be called so;"
            " give a folder, a hub name such as owner/name, a URL, or 'default'."
        ) from None


def _hub_silence() -> str:
    """Why the hub cannot be reached, in a few words; "" where it answers, or may not be asked."""
    import httpx2
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    if constants.is_offline_mode():
        return ""
    try:
        get_session().head(constants.ENDPOINT, timeout=_HUB_WAIT)
    except httpx2.TransportError as error:
        return _shorten(error)
    return ""


def _check_json(path: Path) -> None:
    """Refuses a file that is no JSON object; transformers reads over some of them without a
    word.
    """
    if not path.exists():
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            f"Cannot read {str(path)!r} ({_shorten(error)}); get the file anew."
        ) from None
    if not isinstance(content, dict):
        raise ModelError(
            f"{str(path)!r} holds no JSON object but {_cut(repr(content), 60)}; get the file anew."
        )


def _check_header(path: Path) -> None:
    """Refuses a file of weights that is cut off or none at all; the weights themselves are not
    read.
    """
    try:
        with safe_open(path, "pt"):
            pass
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"The weights {str(path)!r} are cut off or damaged ({_shorten(error)}); get the file"
            " anew."
        ) from None


def _load_whole(source: str, loader, **options) -> PreTrainedModel:
    """A model of which every weight comes from the checkpoint; transformers draws missing ones at
    random.
    """
    with _no_report():
        model, found = loader.from_pretrained(
            source, output_loading_info=True, ignore_mismatched_sizes=True, **options
        )
    name = "The default model" if source == str(DEFAULT_FOLDER) else repr(source)
    missing = sorted(found["missing_keys"])
    if missing and all(re.match(r"(lm_head|embed_out|output)\b", weight) for weight in missing):
        raise ModelError(
            f"{name} has no head to write with ({_cut(', '.join(missing), 120)} is missing), as a "
            "base model saved without one; get the checkpoint for causal language modelling."
        )
    if missing:
        raise ModelError(
            f"{name} lacks {len(missing)} of the weights its config.json asks for"
            f" ({_cut(', '.join(missing), 120)}); get the whole checkpoint, or the config.json that"
            " belongs to it."
        )
    if mismatched := sorted(found["mismatched_keys"]):
        weight, there, wanted = mismatched[0]
        raise ModelError(
            f"{name} has {len(mismatched)} weights of another size than its config.json asks for"
            f" ({weight} is {tuple(there)}, not {tuple(wanted)}); get the config.json that belongs"
            " to the weights."
        )
    return model


@contextmanager
def _no_report() -> Iterator[None]:
    """Keeps back transformers' table of weights that are missing or left over: what matters in it
    becomes an error.
    """
    logger = logging.getLogger("transformers.modeling_utils")

    def wanted(record: logging.LogRecord) -> bool:
        said = record.getMessage()
        return "LOAD REPORT" not in said or "CONVERSION" in said

    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


def _place(
    device: str | None, dtype: str | torch.dtype | None
) -> tuple[torch.device, torch.dtype | str]:
    if dtype is not None:
        named = str(dtype).removeprefix("torch.")
        if named not in DTYPES:
            raise UnknownName("dtype", named, DTYPES)
        dtype = getattr(torch, named)
    chosen = _find_device(device)
    return chosen, dtype or (torch.float32 if chosen.type == "cpu" else "auto")


def _find_device(device: str | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        raise UsageError(f"There is no device {device!r}; use cpu, cuda or cuda:0.") from None
    try:
        usable = torch.zeros(1, device=chosen).item() == 0 and not (
            chosen.type == "cpu" and chosen.index
        )
    except Exception:  # each kind of device has its own error for not being there
        usable = False
    if not usable:
        there = "cuda" if torch.cuda.is_available() else "cpu"
        raise UsageError(f"Device {str(device)!r} is not available here; use {there}.")
    return chosen


def _move(model: PreTrainedModel, device: torch.device, name: str) -> PreTrainedModel:
    try:
        return model.to(device)
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        raise ModelError(
            f"Cannot move {name!r} to {device} ({_shorten(error)}); use a smaller dtype such as"
            " bfloat16, or the cpu."
        ) from error


@contextmanager
def _explained(name: str, part: str, silence: str = "") -> Iterator[None]:
    """Turns whatever the loading of a part raises into one sentence."""
    try:
        yield
    except HoldfastError:
        raise
    # the libraries below raise every kind of exception on a broken file, even a plain one
    except Exception as error:
        raise ModelError(_loading_failed(name, part, error, silence)) from error


def _loading_failed(name: str, part: str, error: Exception, silence: str) -> str:
    reason, here = str(error), name == DEFAULT or Path(name).is_dir()
    if kind := re.search(r"has model type `([^`]*)`", reason):
        return (
            f"{name!r} is of the type {kind[1]!r}, which this version of transformers does not"
            " know; update it, or use another model."
        )
    if kind := re.search(r"Unrecognized configuration class <class '[\w.]*?(\w+)'>", reason):
        return f"{name!r} is no causal language model ({kind[1]}); use a chat model."
    if "trust_remote_code" in reason:
        return (
            f"{name!r} needs code that comes with it; if you trust that code, allow it"
            " (trust_remote_code=True)."
        )
    if here:
        files = (
            f"config.json and the {'files of the tokenizer' if part == 'tokenizer' else 'weights'}"
        )
        if part == "tokenizer" and name != DEFAULT and not (Path(name) / "tokenizer.json").exists():
            return (
                f"The folder {name!r} has no tokenizer.json; put that of the model beside its"
                " config.json."
            )
        return f"Cannot load {name!r} ({_shorten(error)}); check {files} in that folder."
    if "safetensors" in reason and isinstance(error, OSError):
        return (
            f"The hub model {name!r} has no safetensors weights; pickled ones can run code, so"
            " convert them first."
        )
    if isinstance(error, OSError):
        return _not_found(name, error, silence)
    return (
        f"Cannot load {name!r} ({_shorten(error)}); delete it from the hub's cache and try again."
    )


def _not_found(name: str, error: OSError, silence: str) -> str:
    from huggingface_hub import constants

    said = str(error).lower()
    if "gated" in said:
        return (
            f"The hub gives {name!r} only to those it let in; ask for access on its page, then log"
            " in with: hf auth login."
        )
    if constants.is_offline_mode():
        return (
            f"There is no model {name!r}: it is no folder here and not in the hub's cache, and"
            " HF_HUB_OFFLINE forbids to ask the hub; unset it, or give a folder, a URL, or"
            " 'default'."
        )
    if silence:
        return (
            f"The hub cannot be reached ({silence}), and {name!r} is no folder here and not whole"
            " in the hub's cache; try again, or give a folder, a URL, or 'default'."
        )
    return (
        f"There is no model {name!r}: it is no folder here, and the hub does not have it;"
        " give a folder, a hub name, a URL, or 'default'."
    )


def _shorten(error: Exception) -> str:
    """What an error says, on one line; with its kind where it says but a word."""
    said = " ".join(str(error).split()).rstrip(".;")
    return _cut(said if " " in said else f"{type(error).__name__}: {said}", 200)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    ids = {tokenizer.eos_token_id}
    for config in (model.generation_config, model.config.get_text_config()):
        eos = getattr(config, "eos_token_id", None)
        ids.update(eos if isinstance(eos, (list, tuple)) else [eos])
    return frozenset(token for token in ids if token is not None)


def reuses_cache(model: PreTrainedModel) -> bool:
    """Whether every layer keeps plain keys and values of all tokens, and rows of different length
    fit into one batch.
    """
    from transformers.cache_utils import DynamicCache, DynamicLayer

    if model._is_stateful or not model._supports_attention_backend:
        return False
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return False  # positions count padding, so rows cannot be padded in the middle
    layers = DynamicCache(config=model.config).layers
    config = model.config.get_text_config()
    plain = all(type(layer) is DynamicLayer for layer in layers)
    return plain and bool(layers) and not getattr(config, "num_kv_shared_layers", 0)


def fingerprint_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> str:
    """A digest of the configuration, the chat template, and every parameter's shape and a sample of
    its values.
    """
    digest = hashlib.sha256()
    config = {
        k: v
        for k, v in model.config.to_dict().items()
        if not k.startswith("_") and k != "transformers_version"
    }
    digest.update(repr(sorted(config.items(), key=lambda item: item[0])).encode())
    digest.update(repr(tokenizer.chat_template).encode())
    for name, parameter in sorted(model.state_dict().items()):
        flat = parameter.detach().flatten()
        sample = flat[:: max(1, flat.numel() // 256)].float().cpu().numpy().tobytes()
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode() + sample)
    return digest.hexdigest()[:32]
