"""A model behind a URL: its options, and the connection."""

from holdfast.cli.options import EndpointOptions, Options, option_of
from holdfast.cli.progress import note
from holdfast.errors import NoSuchModel, UsageError
from holdfast.models.connecting import connect_all
from holdfast.models.endpoint import EndpointModel
from holdfast.models.model_names import endpoint_meant, is_url


def check_endpoint_options(arguments: EndpointOptions) -> None:
    """Refuses options of endpoints if no model of the command is behind a URL."""
    given = dict(arguments)
    for name, option in EndpointOptions.model_fields.items():
        # the user model shares the options of --model but for its name on the server
        models = ["model", "endpoint"] + ["user_model"] * (name != "endpoint_model")
        if given[name] == option.default or any(is_url(given.get(role)) for role in models):
            continue
        if is_url(given.get("user_model")):
            raise UsageError(
                f"{option_of(name)} {given[name]} is for a model behind a URL, which"
                f" {given['model']} is not; write --user-endpoint-model {given[name]}, or leave it"
                " out."
            )
        # a command with --endpoint takes no URL as --model
        roles = [role for role in models if role in given][1 if "endpoint" in given else 0 :]
        which = f", which {given['model']} is not" if given["model"] else ""
        raise UsageError(
            f"{option_of(name)} {given[name]} is for a model behind a URL{which}; give a URL as"
            f" {' or '.join(map(option_of, roles))}, or leave it out."
        )


def check_name(arguments: Options, role: str) -> None:
    """Refuses the name of a model behind an endpoint that is given without the endpoint's URL."""
    name = getattr(arguments, role)
    endpoint = endpoint_meant(name)
    if endpoint is None:
        return
    words = f"{option_of(role)} {endpoint.url}"
    prefix = "user_" if role == "user_model" else ""
    if endpoint.model:
        words += f" {option_of(f'{prefix}endpoint_model')} {endpoint.model}"
    if endpoint.key not in ("", EndpointOptions.model_fields["api_key_env"].default):
        words += f" {option_of(f'{prefix}api_key_env')} {endpoint.key}"
    raise NoSuchModel(
        f"{option_of(role)} {name} is neither a folder here nor a URL; did you mean {words}?"
    )


def connect_endpoint(model: str, arguments: EndpointOptions) -> EndpointModel:
    # retrying a server that does not answer takes seconds
    note(f"connecting to {model} ...")
    return connect_all(
        model.split(","),
        arguments.endpoint_model,
        arguments.api_key_env,
        concurrency=arguments.concurrency,
        timeout=arguments.timeout,
        requests_per_minute=arguments.requests_per_minute,
    )
