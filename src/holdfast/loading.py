"""Loading chat models: only safetensors, no code but transformers' own, and one sentence where it cannot be done."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from holdfast.attention import IMPLEMENTATION, Steering, steered
from holdfast.errors import ModelError, UsageError
from holdfast.model import LocalModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

DEFAULT = "default"
DEFAULT_FOLDER = Path(__file__).parent / "assets" / "model"


def load(
    name_or_path: str = DEFAULT,
    device: str | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    trust_remote_code: bool = False,
) -> LocalModel:
    """Loads a Hugging Face chat model.

    Args:
        name_or_path: "default" (the model in this package), a folder, or a name on the hub.
        device: where it runs; None takes CUDA if there is one.
        dtype: "float32", "bfloat16", ...; None takes float32 on the CPU and the checkpoint's own elsewhere.
        trust_remote_code: whether code that comes with the model may run. Weights are read as safetensors only.

    Raises:
        ModelError: the model is not found, has no safetensors weights or no fast tokenizer, or is no causal model.
        UsageError: an unknown device or dtype.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = str(DEFAULT_FOLDER) if name_or_path == DEFAULT else name_or_path
    _check_folder(source)
    device, dtype = _place(device, dtype)
    options = {"dtype": dtype, "use_safetensors": True, "trust_remote_code": trust_remote_code}
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code)
        model, steerable = _load_steerable(source, options, AutoModelForCausalLM)
    except (OSError, ValueError, ImportError) as error:
        raise ModelError(_loading_failed(name_or_path, error)) from error
    if not tokenizer.is_fast:
        raise ModelError(f"{name_or_path} has no fast tokenizer, which finding spans needs; convert it to tokenizer.json.")
    model = model.to(device).eval()
    return LocalModel(
        name=name_or_path,
        fingerprint=fingerprint_of(model, tokenizer),
        hf_model=model,
        tokenizer=tokenizer,
        stop_ids=stop_ids(model, tokenizer),
        reuses_cache=reuses_cache(model),
        steerable=steerable,
    )


def _check_folder(source: str) -> None:
    """Refuses by name what would otherwise fail far from its cause."""
    folder = Path(source)
    if not folder.exists():
        if source.startswith((".", "/", "~")):
            raise ModelError(f"There is no folder {source!r}; give a folder, a hub name, a URL, or 'default'.")
        return
    if not folder.is_dir():
        raise ModelError(f"{source!r} is a file; give the folder that holds config.json and the safetensors weights.")
    if not (folder / "config.json").exists():
        raise ModelError(f"The folder {source!r} has no config.json; give the folder of a Hugging Face model.")
    if not list(folder.glob("*.safetensors")):
        pickled = sorted(path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in folder.glob(pattern))
        if pickled:
            raise ModelError(
                f"The folder {source!r} has pickled weights only ({pickled[0]}), which can run code when read; "
                "convert them to safetensors."
            )
        raise ModelError(f"The folder {source!r} has no weights; put model.safetensors beside its config.json.")


def _load_steerable(source: str, options: dict, loader) -> tuple[PreTrainedModel, bool]:
    """The model with our attention if its class takes it, else with its own; and whether ours is reached."""
    try:
        model = loader.from_pretrained(source, attn_implementation=IMPLEMENTATION, **options)
    except (ValueError, KeyError) as error:  # a class without transformers' attention interface says so
        if IMPLEMENTATION not in str(error) and "attn_implementation" not in str(error):
            raise
        return loader.from_pretrained(source, **options), False
    steerable, runs = try_attention(model)
    return (model if runs else loader.from_pretrained(source, attn_implementation="eager", **options)), steerable


@torch.inference_mode()
def try_attention(model: PreTrainedModel) -> tuple[bool, bool]:
    """Forwards two tokens: whether our attention can read a span's mass in the model, and whether the model runs at all with it."""
    ids = torch.tensor([[0, 1]], device=model.device)
    try:
        model(ids)
    except (ValueError, KeyError, ModelError):  # logit soft-capping, attention sinks: the class's own attention has them
        return False, False
    try:
        with steered(Steering(torch.tensor([[True, False]], device=model.device), [()], trace=True)):
            model(ids)
    except ModelError:
        return False, True
    return True, True


def _place(device: str | None, dtype: str | torch.dtype | None) -> tuple[torch.device, torch.dtype | str]:
    try:
        chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise UsageError(f"There is no device {device!r}; use cpu, cuda or cuda:0.") from None
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(f"Device {device!r} is not available here; use cpu.")
    if isinstance(dtype, str):
        named = getattr(torch, dtype, None)
        if not isinstance(named, torch.dtype) or not named.is_floating_point:
            raise UsageError(f"There is no dtype {dtype!r}; use float32, bfloat16 or float16.")
        dtype = named
    return chosen, dtype or (torch.float32 if chosen.type == "cpu" else "auto")


def _loading_failed(name: str, error: Exception) -> str:
    reason = str(error)
    if Path(name).is_dir() or name == DEFAULT:
        return f"Cannot load {name!r}: {' '.join(reason.split())[:300]}; check the files in that folder."
    if "safetensors" in reason:
        return f"The hub model {name!r} has no safetensors weights; pickled ones can run code, so convert them first."
    return (
        f"There is no model {name!r}: it is no folder here, and the hub does not have it or cannot be reached; "
        "give a folder, a hub name, a URL, or 'default'."
    )


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    ids = {tokenizer.eos_token_id}
    for config in (model.generation_config, model.config.get_text_config()):
        eos = getattr(config, "eos_token_id", None)
        ids.update(eos if isinstance(eos, (list, tuple)) else [eos])
    return frozenset(token for token in ids if token is not None)


def reuses_cache(model: PreTrainedModel) -> bool:
    """Whether every layer keeps plain keys and values of all tokens, and rows of different length fit into one batch."""
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
    """A digest of the configuration, the chat template, and every parameter's shape and a sample of its values."""
    digest = hashlib.sha256()
    config = {k: v for k, v in model.config.to_dict().items() if not k.startswith("_") and k != "transformers_version"}
    digest.update(repr(sorted(config.items(), key=lambda item: item[0])).encode())
    digest.update(repr(tokenizer.chat_template).encode())
    for name, parameter in sorted(model.state_dict().items()):
        flat = parameter.detach().flatten()
        sample = flat[:: max(1, flat.numel() // 256)].float().cpu().numpy().tobytes()
        digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode() + sample)
    return digest.hexdigest()[:32]
