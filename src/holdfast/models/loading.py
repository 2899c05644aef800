"""Loads chat models from safetensors or GGUF, with no code but transformers' own."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from holdfast.attention import install
from holdfast.chat.templates import begin_with_bos, read_template
from holdfast.errors import ModelError, cut
from holdfast.generation.memory import release_freed_memory
from holdfast.models.checkpoint import DEFAULT, Source, find_source, hub_silence
from holdfast.models.fingerprint import Fingerprint, is_split
from holdfast.models.gguf import GGUF, megabytes
from holdfast.models.gguf_config import (
    config_of,
    read_config_fields,
    scale_positions,
    uses_newer_loader,
)
from holdfast.models.gguf_tokenizer import read_tokenizer, warning_of_split
from holdfast.models.gguf_weights import read_weights
from holdfast.models.loading_errors import explain_errors
from holdfast.models.local import LocalModel
from holdfast.models.model_properties import reuses_cache, stop_ids
from holdfast.models.packed_layers import pack_layers
from holdfast.models.placement import (
    DeviceMap,
    Placement,
    is_large,
    multiplies_bfloat16,
    placement_of,
)
from holdfast.plurals import count_of
from holdfast.validation import ranges

_LARGE_BATCH = 48  # sequences that fill the processors with a large model


def load(
    name_or_path: str | Path = DEFAULT,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    *,
    device_map: DeviceMap | None = None,
    trust_remote_code: bool = False,
    batch_size: int | None = None,
    prefix_memory: int | None = None,
    chat_template: str | None = None,
) -> LocalModel:
    """Loads a Hugging Face chat model, or a GGUF file, which is dequantised.

    Args:
        name_or_path: "default" (the model in this package), a folder, a GGUF file, a name on the
            hub, or "smollm2", "gemma-3-270m", "qwen-0.5b" or "qwen-1.5b" after `python -m
            holdfast.models.install`.
        device: where it runs; None takes CUDA if available. Weights are read directly to it if
            accelerate is installed.
        dtype: "float16", "bfloat16", "float32" or "float64". None or "auto" takes float32 for
            models of up to 50 million parameters. For larger ones it takes, on the CPU, bfloat16 if
            the processor has instructions for it, else float32; on a GPU the checkpoint's dtype, or
            bfloat16 for a quantised GGUF if the GPU supports it.
        device_map: in place of a device, "auto" or another map of transformers, for models that
            do not fit on one device; needs accelerate. On several devices a model answers one
            request at a time and its attention is not steered.
        trust_remote_code: whether code that comes with the model may run. Weights are read as
            safetensors or GGUF only.
        batch_size: the most sequences forwarded together (one per request, or two with a method
            that contrasts two prompts); halved when memory runs out. None takes 192, or 48 for a
            model of more than 50 million parameters on the CPU, which is no slower there and needs
            a quarter of the memory.
        prefix_memory: bytes of keys and values that a session keeps of its threads; None takes a
            quarter of the device's memory. Evicted ones are recomputed when needed.
        chat_template: replaces the tokenizer's template: "plain", with which a base model continues
            the messages as one text, or the path of a Jinja file.

    Raises:
        ModelError: the model is not found, cannot be read, lacks weights, has no safetensors
            weights or no fast tokenizer, is not a causal model, or does not fit on the device.
        UsageError: the device, dtype or device map is unknown or unavailable, or the chat template
            cannot be read.
        ParameterOutOfRange: `batch_size` is below 1, or `prefix_memory` below 0.
    """
    if batch_size is not None:
        ranges.whole_number("a model", "batch_size", batch_size, 1)
    if prefix_memory is not None:
        ranges.whole_number("a model", "prefix_memory", prefix_memory, 0)
    source = find_source(str(name_or_path))
    template = None if chat_template is None else read_template(chat_template)
    placement = placement_of(device, dtype, device_map)
    gguf = source.gguf
    digest = gguf.start_digest() if gguf else None
    model, tokenizer = _read_model_and_tokenizer(source, placement, template, trust_remote_code)
    with explain_errors(source, "model"):
        steerable = install(model.eval())
        usual_batch_size = _usual_batch_size(model)
        fingerprint = gguf.fingerprint(model.dtype, digest) if gguf and digest else None
        if multiplies_bfloat16() and not is_split(model):
            pack_layers(model)
        release_freed_memory()  # the weights as they were read, before they were rearranged
        return LocalModel(
            name=source.name,
            identity=Fingerprint(model, tokenizer, fingerprint),
            hf_model=model,
            tokenizer=tokenizer,
            stop_ids=stop_ids(model, tokenizer) | (gguf.stop_ids if gguf else set()),
            reuses_cache=reuses_cache(model),
            steerable=steerable,
            batch_size=batch_size or usual_batch_size,
            prefix_memory=prefix_memory,
        )


def _read_model_and_tokenizer(
    source: Source, placement: Placement, template: str | None, trust_remote_code: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Reads the model and its tokenizer, and moves the model to its device."""
    silence = "" if source.is_local else hub_silence()
    # from a silent hub, each of several files would be requested six times, for half a minute
    options = {"trust_remote_code": trust_remote_code, "local_files_only": bool(silence)}
    with explain_errors(source, "tokenizer", silence):
        tokenizer = _read_tokenizer(source, options)
        tokenizer.chat_template = template or tokenizer.chat_template
        if source.gguf is not None and source.gguf.begins_with_bos:
            tokenizer.chat_template = begin_with_bos(tokenizer)
    with explain_errors(source, "model", silence), without_weight_bars():
        if source.gguf is None:
            model = _read_model(source, options, placement)
        else:
            model = _read_gguf_model(source, source.gguf, placement)
    if silence:
        warnings.warn(
            f"The hub cannot be reached ({silence}), so {source.name!r} is taken from its cache"
            " here.",
            stacklevel=3,
        )
    return placement.move(model, source.name), tokenizer


def _read_tokenizer(source: Source, options: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Reads the tokenizer; refuses one that cannot find spans."""
    from transformers import AutoTokenizer

    if source.gguf is None:
        tokenizer: Any = AutoTokenizer.from_pretrained(source.location, **options)
    else:
        tokenizer = read_tokenizer(source.gguf)
        tokenizer.name_or_path = source.name
        if (warning := warning_of_split(source.gguf)) is not None:
            warnings.warn(warning, stacklevel=4)
    if not tokenizer.is_fast:
        raise ModelError(
            f"{source.name} has no fast tokenizer, without which spans cannot be found; convert it"
            " to tokenizer.json."
        )
    fast_tokenizer: PreTrainedTokenizerFast = tokenizer
    return fast_tokenizer


def _read_model(source: Source, options: dict[str, Any], placement: Placement) -> PreTrainedModel:
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(source.location, **options)
    _prepare(config, source.name)
    if placement.dtype is None:
        code = {"trust_remote_code": options["trust_remote_code"]}
        parameters = _without_weights(config, **code).num_parameters()
        placement = placement.for_size(parameters, source.name)
    options = {**options, "config": config}
    return _load_to_device(source, placement, AutoModelForCausalLM, source.location, options)


def _read_gguf_model(source: Source, gguf: GGUF, placement: Placement) -> PreTrainedModel:
    """Reads a GGUF file into a model of transformers, in the dtype that suits it."""
    from transformers import AutoModelForCausalLM, GgufConfig

    fields = read_config_fields(gguf)
    config = config_of(fields)
    _prepare(config, source.name)
    without_weights = _without_weights(config)
    placement = placement.for_size(without_weights.num_parameters(), source.name)
    dtype = _dequantised_dtype(gguf, placement)
    placement = replace(placement, dtype=dtype)
    scale_positions(config, gguf)
    if uses_newer_loader(gguf):
        options = {
            "gguf_file": str(gguf.path.absolute()),
            "quantization_config": GgufConfig(dequantize=True),
            "config": config,
        }
        with TemporaryDirectory() as empty:  # so that no file beside the GGUF file is read
            return _load_to_device(source, placement, AutoModelForCausalLM, empty, options)
    weights = read_weights(gguf, without_weights, fields, dtype)
    options = {"config": config, "state_dict": weights}
    # by the class itself, because the automatic one needs a location
    return _load_to_device(source, placement, type(without_weights), None, options)


def _dequantised_dtype(gguf: GGUF, placement: Placement) -> torch.dtype:
    """The dtype of a GGUF file's weights once they are dequantised; reports how large they are."""
    dtype = placement.dtype
    if not isinstance(dtype, torch.dtype):
        has_bfloat16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported(False)
        dtype = gguf.dtype or (torch.bfloat16 if has_bfloat16 else torch.float32)
    on_disk = megabytes(gguf.path.stat().st_size)
    size = megabytes(dtype.itemsize * gguf.num_weights)
    name = str(dtype).removeprefix("torch.")
    warnings.warn(
        f"{gguf.path.name}: {on_disk}, {size} once dequantised to {name}.",
        stacklevel=5,  # the line that calls `load`
    )
    return dtype


def _prepare(config: PreTrainedConfig, name: str) -> None:
    """Refuses a model of another kind; removes the implementations that its configuration names."""
    check_kind(name, config)
    # a kernel on a hub is code, so the configuration does not choose the implementations
    config._attn_implementation = config._experts_implementation = None


def _without_weights(config: PreTrainedConfig, **options: bool) -> PreTrainedModel:
    """Makes the model on the meta device."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, **options)
    return model


def _load_to_device(
    source: Source,
    placement: Placement,
    model_class: Any,
    location: str | None,
    options: dict[str, Any],
) -> PreTrainedModel:
    """Loads a model to its device; see `load_whole`."""
    try:
        model = load_whole(source, model_class, location, **options, **placement.options())
    except torch.OutOfMemoryError as error:
        raise placement.out_of_memory(source.name, error) from error
    if model.device.type == "meta":
        raise ModelError(
            f"The device map {placement.device_map!r} leaves the first weights of"
            f" {source.name!r} on disk; keep its embeddings on a device."
        )
    return model


def check_kind(name: str, config: PreTrainedConfig) -> None:
    """Refuses encoder-decoder models."""
    if getattr(config, "is_encoder_decoder", False):
        raise ModelError(
            f"{name!r} is no causal language model ({type(config).__name__} has an encoder beside "
            "the decoder); use a chat model."
        )


def load_whole(
    source: Source, model_class: Any, location: str | None, **options: Any
) -> PreTrainedModel:
    """Loads a model; refuses missing weights, which transformers would initialise at random.

    Args:
        source: names the model in errors.
        model_class: the class of transformers whose `from_pretrained` loads the model.
        location: the location of the checkpoint; None if `options` have its `state_dict`.
        options: more arguments of `from_pretrained`.

    Raises:
        ModelError: weights are missing, or have another shape than the configuration says.
    """
    with _without_report():
        loaded: Any = model_class.from_pretrained(
            location,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            use_safetensors=True,
            **options,
        )
    model: PreTrainedModel
    model, report = loaded
    name = "The default model" if source.name == DEFAULT else repr(source.name)
    _check_report(name, report)
    return model


def _check_report(name: str, report: Mapping[str, Any]) -> None:
    """Refuses a model if the report of `from_pretrained` names missing or mismatched weights."""
    missing = sorted(report["missing_keys"])
    if missing and all(re.match(r"(lm_head|embed_out|output)\b", weight) for weight in missing):
        raise ModelError(
            f"{name} has no language-modelling head ({cut(', '.join(missing), 120)} is missing), as"
            " if it was saved without one; get the checkpoint for causal language modelling.",
            option="model",
            value=missing,
        )
    if missing:
        raise ModelError(
            f"{name} lacks {count_of(len(missing), 'weight')} that its config.json asks for"
            f" ({cut(', '.join(missing), 120)}); get the whole checkpoint, or the config.json that"
            " belongs to it.",
            option="model",
            value=missing,
        )
    if mismatched := sorted(report["mismatched_keys"]):
        weight, stored, configured = mismatched[0]
        raise ModelError(
            f"{name} has {count_of(len(mismatched), 'weight')} of another shape than its"
            f" config.json says ({weight} is {tuple(stored)}, not {tuple(configured)}); get the"
            " config.json that belongs to the weights.",
            option="model",
            value=tuple(stored),
            allowed=tuple(configured),
        )


@contextmanager
def _without_report() -> Iterator[None]:
    """Suppresses transformers' report of missing weights, which becomes an error here."""
    logger = logging.getLogger("transformers.modeling_utils")

    def is_logged(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        return "LOAD REPORT" not in message or "CONVERSION" in message

    logger.addFilter(is_logged)
    try:
        yield
    finally:
        logger.removeFilter(is_logged)


@contextmanager
def without_weight_bars() -> Iterator[None]:
    """Hides transformers' progress bars for reading weights; those for downloads stay."""
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


def _usual_batch_size(model: PreTrainedModel) -> int:
    large = model.device.type == "cpu" and is_large(model.num_parameters())
    return _LARGE_BATCH if large else LocalModel.batch_size
