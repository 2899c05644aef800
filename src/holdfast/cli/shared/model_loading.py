"""Loads the models of --model and --user-model: here, in another engine, on Ray or behind a URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from holdfast.chat.templates import read_template
from holdfast.cli.shared.command import Options, option_of
from holdfast.cli.shared.endpoint_options import (
    check_endpoint_options,
    check_name,
    connect_endpoint,
)
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import (
    BenchmarkOptions,
    DrawOptions,
    LocalModelOptions,
    ModelOptions,
    RayOptions,
)
from holdfast.errors import NoSuchModel, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.integrations.ray import Specification, connect
from holdfast.methods import Method, parse, spec_of
from holdfast.models.capabilities import require_layers
from holdfast.models.checkpoint import check_dtype, find_source, require_on_hub
from holdfast.models.engine_choice import EngineNeeds, choose_engine, read_engine
from holdfast.models.engine_plugins import load_in_engine, read_options
from holdfast.models.model_names import engine_in, guess_endpoint, is_url
from holdfast.models.protocol import ChatModel
from holdfast.validation.ranges import whole_number

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_SEQUENCES_OF_A_CHAT = 2  # guidance generates one reply in two sequences
# options that only our own engine takes
_OWN_ENGINE_OPTIONS = ("device", "device_map", "dtype", "chat_template", "fitted")


def load_model(arguments: ModelOptions, name: str | None = None) -> ChatModel:
    """Loads the model of `--model`, or the model `name` with the same options."""
    check_endpoint_options(arguments)
    if name is not None:
        arguments = arguments.model_copy(update={"model": name})
    return _load_checked(arguments)


def load_layered_model(arguments: ModelOptions, needed: str, name: str | None = None) -> LocalModel:
    """As `load_model`, but refuses a model whose layers cannot be read.

    Args:
        needed: what is read in the layers, for the message: "hidden states".
    """
    model = load_model(arguments, name)
    require_layers(model, needed)
    return cast("LocalModel", model)  # the only kind of model whose layers can be read


def load_both(
    arguments: BenchmarkOptions, endpoint: ChatModel | None = None
) -> tuple[ChatModel, ChatModel | None]:
    """Loads the models of `--model` and `--user-model`; the second is None if it is not given.

    Args:
        endpoint: the model of `--model`, if it is an endpoint that is connected already.

    Raises:
        UsageError, ModelError: as far as possible, what is wrong with the user model or its options
            is refused before the model of `--model` is loaded.
    """
    _check_user_model(arguments)
    if endpoint is None and is_url(arguments.user_model):
        check_endpoint_options(arguments)
        # the endpoint comes first, so that a wrong address is refused before a model is loaded
        user_model = load_user_model(arguments)
        return load_model(arguments), user_model
    return endpoint or load_model(arguments), load_user_model(arguments)


def _check_user_model(arguments: BenchmarkOptions) -> None:
    """Refuses a user model that does not exist, and options that do not suit it."""
    if not is_url(arguments.user_model):
        user_model = arguments.user_model or "not given"
        why = f"is for a user model behind a URL, and --user-model is {user_model}; leave it out"
        arguments.refuse(["user_endpoint_model", "user_api_key_env"], why)
    if arguments.user_model is not None:
        check_name(arguments, "user_model")
        check_model_exists(arguments.user_model)


def check_model_exists(model: str) -> None:
    """Refuses a name under which there is no model, before torch is imported or a model loaded."""
    if not is_url(model) and not engine_in(model):
        require_on_hub(find_source(model))


def check_layered_model(model: str, layers: str) -> None:
    """Refuses a model whose layers cannot be read, or that is not there, without importing torch.

    Args:
        layers: what is read in the layers, for the message: "hidden states".
    """
    if is_url(model):
        raise UsageError(
            f"--model {model} is an endpoint, whose {layers} cannot be read; give a folder or a"
            " name on the hub."
        )
    _refuse_vendors_name(model)
    check_model_exists(model)


def _refuse_vendors_name(model: str) -> None:
    """Refuses an address without its scheme, and the name of a vendor's model."""
    if guess_endpoint(model):
        raise NoSuchModel(
            f"--model {model} is not a folder, and this command takes no model behind an endpoint;"
            " give a folder, a name on the hub, or default."
        )


def load_user_model(arguments: BenchmarkOptions) -> ChatModel | None:
    """Loads the model of `--user-model`, with the options of `--model`; None if it is not given.

    With `--ray`, it runs in this process.
    """
    if arguments.user_model is None:
        return None
    is_loaded_here = not engine_in(arguments.user_model) and not is_url(arguments.user_model)
    user_options = {
        "model": arguments.user_model,
        "endpoint_model": arguments.user_endpoint_model,
        "api_key_env": arguments.user_api_key_env or arguments.api_key_env,
        "engine": _engine_for_user(arguments.user_model, arguments.engine),
        "method": None,  # only the agent is steered
        "ray": None,
        "replicas": None,
        "chat_template": arguments.chat_template if is_loaded_here else None,
    }
    return _load_checked(arguments.model_copy(update=user_options))


def _engine_for_user(model: str, values: Sequence[str] | None) -> list[str]:
    """The values of --engine that concern the user model.

    These are the engine's options if the model's name has its engine, and the choice of an engine
    if the model is a GGUF file.
    """
    if engine_in(model):
        return [value for value in values or () if "=" in value]
    if is_url(model) or find_source(model).gguf is None:
        return []
    return [value for value in values or () if "=" not in value]


def _load_checked(arguments: ModelOptions) -> ChatModel:
    """Loads the model of `--model`, once the options of endpoints have been checked."""
    for name in ("batch_size", "replicas"):
        if (value := getattr(arguments, name, None)) is not None:
            whole_number("a run", name, value, 1)
    model = arguments.model
    ray = arguments if isinstance(arguments, RayOptions) and arguments.ray is not None else None
    if engine_in(model):
        return _load_here(arguments)
    if ray is not None or is_url(model):
        _refuse_chat_template(arguments)
        arguments.refuse(["engine"], "is for a model in this process; leave it out")
    if ray and is_url(model):
        raise UsageError(
            f"--ray is for models that are loaded, and {model} is a server; to spread"
            " conversations over several servers, give --model URL,URL."
        )
    check_name(arguments, "model")
    if ray:
        return _load_on_ray(arguments, ray)
    why = "is for a run on Ray; give --ray too, or leave it out"
    arguments.refuse(["replicas"], why)
    if is_url(model):
        return connect_endpoint(model, arguments)
    return _load_here(arguments)


def _load_here(arguments: ModelOptions) -> ChatModel:
    return load_in_process(
        arguments, batch_size=arguments.batch_size, chat_template=arguments.chat_template
    )


def load_in_process(
    arguments: LocalModelOptions | ModelOptions,
    *,
    batch_size: int | None,
    chat_template: str | None,
    prefix_memory: int | None = None,
) -> ChatModel:
    """Loads a model in this process: in the engine of its name, or the one that --engine chooses.

    Args:
        batch_size: the most sequences forwarded together; None takes the engine's default.
        chat_template: in place of the model's own, if it runs in our engine.
        prefix_memory: bytes for shared prefixes; None takes the engine's default.
    """
    engine, engine_options = read_engine(arguments.values_of("engine"))
    if engine_in(arguments.model):
        _refuse_engine(arguments.model, engine)
    elif _chosen_engine(arguments, engine) == "llama":
        arguments = arguments.model_copy(update={"model": f"llama:{arguments.model}"})
        if batch_size is None and arguments.work == "chat":
            batch_size = _SEQUENCES_OF_A_CHAT
    if engine_in(arguments.model):
        return _load_on_engine(arguments, engine_options, batch_size, prefix_memory)
    _refuse_engine_options(arguments.model, engine_options)
    begin_loading(arguments, chat_template)
    return load_local(
        arguments,
        batch_size=batch_size,
        chat_template=chat_template,
        prefix_memory=prefix_memory,
    )


def _load_on_ray(arguments: ModelOptions, ray: RayOptions) -> ChatModel:
    """Loads a model in actors on Ray, which may be on other machines."""
    why = "spreads a model over several devices, and an actor on Ray has one; leave it out"
    arguments.refuse(["device_map"], why)
    if arguments.dtype is not None:
        check_dtype(arguments.dtype)
    if arguments.device is not None:
        from holdfast.models.placement import read_device

        read_device(arguments.device)  # whether a machine has it is known to its actors
    note(f"loading {arguments.model} ...")
    specification = Specification(
        arguments.model,
        arguments.device,
        arguments.dtype,
        arguments.trust_remote_code,
        arguments.batch_size,
    )
    model = connect(specification, ray.ray or "", ray.replicas)
    note(f"{model}.")
    return model


def _chosen_engine(arguments: LocalModelOptions | ModelOptions, engine: str) -> str:
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


def _refuse_engine(model: str, engine: str) -> None:
    """Refuses to choose an engine for a model whose name already has one."""
    if engine != "auto":
        raise UsageError(
            f"--engine {engine} chooses for a GGUF file, and {model} has its engine in its name;"
            " leave one of them out."
        )


def _refuse_engine_options(model: str, options: Sequence[str]) -> None:
    """Refuses options of vLLM or llama.cpp for a model that runs in our engine."""
    if options:
        raise UsageError(
            f"--engine {options[0]} is for a model in another engine, such as vllm:MODEL, and"
            f" {model} is not in one; leave it out."
        )


def _refuse_chat_template(arguments: LocalModelOptions | ModelOptions) -> None:
    why = f"is for a model loaded in this process, and {arguments.model} is not; leave it out"
    arguments.refuse(["chat_template"], why)


def _load_on_engine(
    arguments: LocalModelOptions | ModelOptions,
    engine_options: Sequence[str],
    batch_size: int | None,
    prefix_memory: int | None,
) -> ChatModel:
    """Loads a model that runs in another engine, such as `vllm:MODEL`."""
    engine = engine_in(arguments.model)
    _refuse_chat_template(arguments)
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


def refuse_engine_in_name(model: str) -> None:
    """Refuses a model that runs in another engine, such as `vllm:MODEL`."""
    if engine := engine_in(model):
        raise UsageError(
            f"{model} runs in {engine}, and this command needs a model that is loaded here; give a"
            " folder or a name on the hub."
        )


def begin_loading(
    arguments: LocalModelOptions | ModelOptions, chat_template: str | None = None
) -> None:
    """Says that a model is being loaded. Unless a device is given, torch is not imported yet.

    Raises:
        NoSuchModel: there is no such model.
        UsageError: the dtype or the device is unknown or unavailable, or the chat template cannot
            be read.
    """
    model = arguments.model
    if chat_template is not None:
        read_template(chat_template)
    _refuse_vendors_name(model)
    check_model_exists(model)
    _check_placement(arguments)
    note(f"loading {model} ...")


def _check_placement(arguments: LocalModelOptions | ModelOptions) -> None:
    """Refuses a dtype, a device or a device map that the model would be refused with later."""
    if arguments.dtype is not None:
        check_dtype(arguments.dtype)
    if arguments.device is not None or arguments.device_map is not None:
        from holdfast.models.placement import placement_of

        placement_of(arguments.device, arguments.dtype, arguments.device_map)


def load_local(
    arguments: LocalModelOptions | ModelOptions,
    *,
    batch_size: int | None = None,
    chat_template: str | None = None,
    prefix_memory: int | None = None,
) -> LocalModel:
    """Loads a model in this process."""
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


def warn_of_small_model(model: str, suite: str) -> None:
    """Warns that the default model shows little under prompts that it was not trained on."""
    if model == "default" and suite not in ("starter", "bot"):
        note(
            "the default model follows only a few prompts (those of --suite starter and bot); with"
            " others it only shows how the command works. For your bot, give --model."
        )


def warn_of_default_steering(model: ChatModel, steerings: Sequence[Sequence[Method]]) -> None:
    """Warns if a server steers by default, and no method of the command is that default."""
    default = getattr(model, "default_steering", "")
    if default and default not in map(spec_of, steerings):
        note(
            f"{model.name} is served with {default} by default, which this command switches off;"
            f" --method {default} measures it."
        )


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
