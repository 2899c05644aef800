"""Loads a model in this process: in our engine, or in another, such as vLLM or llama.cpp.

For example, `--model bot.gguf` runs in our engine or in llama.cpp, as `--engine` and the machine's
memory decide (`models.engine_choice`), and `--model vllm:NAME` always runs in vLLM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.chat.templates import read_template
from holdfast.cli.shared.command import Options, option_of
from holdfast.cli.shared.model_checks import check_model_exists, refuse_vendors_name
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import DrawOptions, LocalModelOptions, ModelOptions
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import parse
from holdfast.models.checkpoint import check_dtype, find_source
from holdfast.models.engine_choice import EngineNeeds, choose_engine, read_engine
from holdfast.models.engine_plugins import load_in_engine, read_options
from holdfast.models.model_names import engine_in, guess_endpoint
from holdfast.models.protocol import ChatModel

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

InProcessOptions = LocalModelOptions | ModelOptions
_SEQUENCES_OF_A_CHAT = 2  # guidance generates one reply in two sequences
# options that only our own engine takes
_OWN_ENGINE_OPTIONS = ("device", "device_map", "dtype", "chat_template", "fitted")


def load_in_process(
    arguments: InProcessOptions,
    *,
    batch_size: int | None,
    chat_template: str | None,
    prefix_memory: int | None = None,
) -> ChatModel:
    """Loads a model in this process: in the engine of its name, or the one that --engine chooses.

    Args:
        batch_size: the most sequences forwarded together; None for the engine's default.
        chat_template: in place of the model's own, if it runs in our engine.
        prefix_memory: bytes for shared prefixes; None for the engine's default.
    """
    engine, engine_options = read_engine(arguments.values_of("engine"))
    if engine_in(arguments.model):
        _refuse_second_engine(arguments.model, engine)
    elif _chosen_engine(arguments, engine) == "llama":
        arguments = arguments.model_copy(update={"model": f"llama:{arguments.model}"})
        if batch_size is None and arguments.work == "chat":
            batch_size = _SEQUENCES_OF_A_CHAT
    if engine_in(arguments.model):
        return _load_in_other_engine(arguments, engine_options, batch_size, prefix_memory)
    _refuse_options_of_others(arguments.model, engine_options)
    begin_loading(arguments, chat_template)
    return load_local(
        arguments,
        batch_size=batch_size,
        chat_template=chat_template,
        prefix_memory=prefix_memory,
    )


def _chosen_engine(arguments: InProcessOptions, engine: str) -> str:
    """Chooses the engine of a model whose name has none: "torch" or "llama"; prints the reason.

    Args:
        engine: the choice of the user, as `read_engine` returns it.

    Raises:
        UsageError, ModelError: the engine that the user chose cannot run it.
    """
    if guess_endpoint(arguments.model):
        return "torch"  # the loader refuses such a name
    gguf = find_source(arguments.model).gguf
    values_by_name = {name: arguments.values_of(name) for name in _OWN_ENGINE_OPTIONS}
    options = {option_of(name): values[0] for name, values in values_by_name.items() if values}
    methods = [*arguments.values_of("method"), *arguments.values_of("default_method")]
    needs = EngineNeeds(
        arguments.work,
        [parse(spec) for spec in methods if gguf],
        arguments.abilities,
        options,
    )
    choice = choose_engine(arguments.model, gguf, engine, needs)
    if choice.sentence:
        note(choice.sentence)
    return choice.engine


def _refuse_second_engine(model: str, engine: str) -> None:
    """Refuses to choose an engine for a model whose name already has one."""
    if engine != "auto":
        raise UsageError(
            f"--engine {engine} chooses for a GGUF file, and {model} has its engine in its name;"
            " leave one of them out."
        )


def _refuse_options_of_others(model: str, options: Sequence[str]) -> None:
    """Refuses options of vLLM or llama.cpp for a model that runs in our engine."""
    if options:
        raise UsageError(
            f"--engine {options[0]} is for a model in another engine, such as vllm:MODEL, and"
            f" {model} is not in one; leave it out."
        )


# --- Our engine


def begin_loading(arguments: InProcessOptions, chat_template: str | None = None) -> None:
    """Says that a model is being loaded. Unless a device is given, torch is not imported yet.

    Raises:
        NoSuchModel: there is no such model.
        UsageError: the dtype or the device is unknown or unavailable, or the chat template cannot
            be read.
    """
    model = arguments.model
    if chat_template is not None:
        read_template(chat_template)
    refuse_vendors_name(model)
    check_model_exists(model)
    _check_placement(arguments)
    note(f"loading {model} ...")


def _check_placement(arguments: InProcessOptions) -> None:
    """Refuses a dtype, a device or a device map that the model would be refused with later."""
    if arguments.dtype is not None:
        check_dtype(arguments.dtype)
    if arguments.device is not None or arguments.device_map is not None:
        from holdfast.models.placement import placement_of

        placement_of(arguments.device, arguments.dtype, arguments.device_map)


def load_local(
    arguments: InProcessOptions,
    *,
    batch_size: int | None = None,
    chat_template: str | None = None,
    prefix_memory: int | None = None,
) -> LocalModel:
    """Loads a model in our engine."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()  # the terminal shows our own
    from holdfast.models.loading import load

    model = load(
        arguments.model,
        arguments.device,
        arguments.dtype,
        device_map=arguments.device_map,
        trust_remote_code=arguments.trust_remote_code,
        batch_size=batch_size,
        chat_template=chat_template,
        prefix_memory=prefix_memory,
    )
    _warn_of_short_context(arguments, model)
    return model


# --- Other engines


def _load_in_other_engine(
    arguments: InProcessOptions,
    engine_options: Sequence[str],
    batch_size: int | None,
    prefix_memory: int | None,
) -> ChatModel:
    """Loads a model that runs in another engine, such as `vllm:MODEL`."""
    engine = engine_in(arguments.model)
    refuse_chat_template(arguments)
    why = f"is for models that Holdfast places, and {engine} places its own; leave it out"
    arguments.refuse(["device", "device_map", "ray", "replicas"], why)
    if engine == "llama":
        why = (
            "is for models in Holdfast's own engine, and llama.cpp uses the weights as they are in"
            " the file; leave it out, or give a file of that type"
        )
        arguments.refuse(["dtype"], why)
    if arguments.dtype is not None:
        check_dtype(arguments.dtype)
    options = dict(read_options(engine_options))
    if arguments.work == "server":
        options |= {"to_serve": True, "prefix_memory": prefix_memory}
    note(f"loading {arguments.model} ...")
    model = load_in_engine(
        arguments.model,
        dtype=arguments.dtype,
        batch_size=batch_size,
        trust_remote_code=arguments.trust_remote_code,
        **options,
    )
    _warn_of_short_context(arguments, model)
    return model


def refuse_chat_template(arguments: InProcessOptions) -> None:
    """Refuses --chat-template for a model that our engine does not run in this process."""
    why = f"is for a model loaded in this process, and {arguments.model} is not; leave it out"
    arguments.refuse(["chat_template"], why)


def _warn_of_short_context(arguments: Options, model: ChatModel) -> None:
    """Warns if replies cannot become as long as --max-new-tokens allows."""
    if not isinstance(arguments, DrawOptions):
        return
    limit = arguments.max_new_tokens
    context = getattr(model, "context", None)
    if context and limit > context and limit != Sampling.max_new_tokens:
        note(
            f"--max-new-tokens {limit} exceeds {model.name}'s context of {context:,} tokens;"
            " replies end when it is full."
        )
