"""Loads checkpoints with transformers, and refuses missing weights, which it would make up."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from holdfast.errors import ModelError, cut
from holdfast.models.checkpoint import DEFAULT, Source
from holdfast.plurals import count_of

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


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
    with _no_report():
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
def _no_report() -> Iterator[None]:
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
