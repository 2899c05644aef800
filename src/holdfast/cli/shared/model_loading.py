"""Loads the models of --model and --user-model: in this process, on Ray, or behind a URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from holdfast.cli.shared.endpoint_options import (
    check_endpoint_options,
    connect_endpoint,
    refuse_name_without_url,
)
from holdfast.cli.shared.local_loading import load_in_process, refuse_chat_template
from holdfast.cli.shared.model_checks import check_model_exists
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import BenchmarkOptions, ModelOptions, RayOptions
from holdfast.errors import UsageError
from holdfast.integrations.ray import Specification, connect
from holdfast.models.capabilities import require_layers
from holdfast.models.checkpoint import check_dtype, find_source
from holdfast.models.model_names import engine_in, is_url
from holdfast.models.protocol import ChatModel
from holdfast.validation.ranges import whole_number

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


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


def _load_checked(arguments: ModelOptions) -> ChatModel:
    """Loads the model of `--model`, once the options of endpoints have been checked."""
    for name in ("batch_size", "replicas"):
        if (value := getattr(arguments, name, None)) is not None:
            whole_number("a run", name, value, 1)
    if not engine_in(arguments.model):  # else --ray and --replicas are refused with the engine
        if isinstance(arguments, RayOptions) and arguments.ray is not None:
            return _load_on_ray(arguments, arguments)
        if is_url(arguments.model):
            _refuse_options_of_loading(arguments)
        refuse_name_without_url(arguments, "model")
        arguments.refuse(["replicas"], "is for a run on Ray; give --ray too, or leave it out")
        if is_url(arguments.model):
            return connect_endpoint(arguments.model, arguments)
    return load_in_process(
        arguments, batch_size=arguments.batch_size, chat_template=arguments.chat_template
    )


def _refuse_options_of_loading(arguments: ModelOptions) -> None:
    """Refuses options of a model in this process for one that is elsewhere."""
    refuse_chat_template(arguments)
    arguments.refuse(["engine"], "is for a model in this process; leave it out")


def _load_on_ray(arguments: ModelOptions, ray: RayOptions) -> ChatModel:
    """Loads a model in actors on Ray, which may be on other machines."""
    _refuse_options_of_loading(arguments)
    if is_url(arguments.model):
        raise UsageError(
            f"--ray is for models that are loaded, and {arguments.model} is a server; to spread"
            " conversations over several servers, give --model URL,URL."
        )
    refuse_name_without_url(arguments, "model")
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


# --- The user model


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
        refuse_name_without_url(arguments, "user_model")
        check_model_exists(arguments.user_model)


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
