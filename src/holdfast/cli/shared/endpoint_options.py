"""Checks the options of models behind a URL, and connects to them."""

from holdfast.cli.shared.command import Options, option_of
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import EndpointOptions
from holdfast.errors import NoSuchModel, UsageError
from holdfast.models.connecting import connect_all
from holdfast.models.endpoint import EndpointModel
from holdfast.models.model_names import guess_endpoint, is_url


def check_endpoint_options(arguments: EndpointOptions) -> None:
    """Refuses options of endpoints if no model of the command is behind a URL."""
    values = dict(arguments)
    for name, option in EndpointOptions.model_fields.items():
        roles = ["model", "endpoint"]
        if name != "endpoint_model":  # the user model has its own: --user-endpoint-model
            roles.append("user_model")
        if values[name] == option.default or any(is_url(values.get(role)) for role in roles):
            continue
        typed = f"{option_of(name)} {values[name]}"
        problem = f"{typed} is for a model behind a URL"
        if model := values["model"]:
            problem = f"{problem}, which {model} is not"
        if is_url(values.get("user_model")):
            raise UsageError(
                f"{problem}; write --user-endpoint-model {values[name]}, or leave it out."
            )
        if "endpoint" in values:  # such a command takes no URL as --model
            roles.remove("model")
        takers = [option_of(role) for role in roles if role in values]
        raise UsageError(f"{problem}; give a URL as {' or '.join(takers)}, or leave it out.")


def refuse_name_without_url(arguments: Options, role: str) -> None:
    """Refuses the name of an endpoint's model where the endpoint's URL is needed.

    Args:
        role: the field of the option, such as "user_model".
    """
    name = getattr(arguments, role)
    endpoint = guess_endpoint(name)
    if endpoint is None:
        return
    words = [option_of(role), endpoint.url]
    prefix = "user_" if role == "user_model" else ""
    if endpoint.model:
        words += [option_of(f"{prefix}endpoint_model"), endpoint.model]
    if endpoint.key not in ("", EndpointOptions.model_fields["api_key_env"].default):
        words += [option_of(f"{prefix}api_key_env"), endpoint.key]
    raise NoSuchModel(
        f"{option_of(role)} {name} is neither a folder here nor a URL; did you mean "
        f"{' '.join(words)}?"
    )


def connect_endpoint(model: str, arguments: EndpointOptions) -> EndpointModel:
    """Connects to the endpoint at a URL, or to the endpoints at several URLs joined by commas."""
    note(f"connecting to {model} ...")  # a server that does not answer is tried for seconds
    return connect_all(
        model.split(","),
        arguments.endpoint_model,
        arguments.api_key_env,
        concurrency=arguments.concurrency,
        timeout=arguments.timeout,
        requests_per_minute=arguments.requests_per_minute,
    )
