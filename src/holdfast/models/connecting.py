"""Connects to OpenAI-compatible endpoints: reads address and key, and finds the model's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from urllib.parse import urlsplit

from holdfast.chat.chat_completions import MalformedResponse
from holdfast.errors import ModelError, Unreachable, UsageError
from holdfast.models.endpoint import EndpointModel, warn_of_loss
from holdfast.models.endpoint_address import is_this_machine, read_address, read_key
from holdfast.models.endpoint_answers import read_models
from holdfast.models.endpoint_errors import Endpoint, failure_of, list_models
from holdfast.models.endpoint_server import Server
from holdfast.models.event_loop import run_sync
from holdfast.models.offered_steering import ask_steering, await_steering
from holdfast.validation import ranges

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_KEY = "OPENAI_API_KEY"  # the environment variable of the official client


class ConnectOptions(TypedDict, total=False):
    """Options of `connect` that are the same for several endpoints."""

    concurrency: int
    timeout: float
    max_retries: int
    requests_per_minute: float | None


def connect(
    base_url: str,
    model: str | None = None,
    api_key_env: str = OPENAI_KEY,
    *,
    concurrency: int = 8,
    timeout: float = 120.0,
    max_retries: int = 5,
    requests_per_minute: float | None = None,
) -> EndpointModel:
    """Prepares a model behind an OpenAI-compatible endpoint.

    The server is asked once whether it steers. If it does, as `holdfast serve` and vLLM with our
    plug-in do, it is sent attention methods, emphasis and requests for traces; any other server is
    an ordinary endpoint. A server that does not answer is not an error here.

    The official client retries connection failures, timeouts, 408, 409, 429 and 5xx; only once
    until the server has answered for the first time. Between retries it waits as long as the server
    asks for (Retry-After, up to a minute), or exponentially longer. Malformed answers are requested
    again.

    Args:
        base_url: such as https://api.openai.com/v1 or http://localhost:8000/v1.
        model: the model's name at the endpoint; None takes the only model that it lists.
        api_key_env: the environment variable that holds the key; for a server on this machine,
            `OPENAI_API_KEY` may be unset.
        concurrency: requests under way at once, at least 1.
        timeout: seconds that a server may stay silent while an answer is awaited; a connection must
            be accepted within this time and within 10 seconds, the first one within 2.5.
        max_retries: retries per request, at least 0.
        requests_per_minute: spaces requests evenly, retries included; None for no limit.

    Raises:
        UsageError: `base_url` is not a web address, or a number lies outside its range.
        ModelError: the environment variable holds no usable key, or the model has to be named.
    """
    server = _prepare(
        base_url,
        model,
        api_key_env,
        concurrency=concurrency,
        timeout=timeout,
        max_retries=max_retries,
        requests_per_minute=requests_per_minute,
    )
    run_sync(_ask_server(server, finds_model=model is None, waits=False))
    return EndpointModel((server,), server.endpoint.url)


def _prepare(
    base_url: str,
    model: str | None,
    api_key_env: str,
    *,
    concurrency: int = 8,
    timeout: float = 120.0,
    max_retries: int = 5,
    requests_per_minute: float | None = None,
) -> Server:
    """Reads the address, the key and the options of an endpoint, without contacting it."""
    ranges.whole_number("an endpoint", "concurrency", concurrency, 1)
    ranges.whole_number("an endpoint", "max_retries", max_retries, 0)
    timeout = ranges.Range(0, above_low=True).check("an endpoint", "timeout", timeout)
    interval = 0.0
    if requests_per_minute is not None:
        rate = ranges.Range(0, above_low=True).check(
            "an endpoint", "requests_per_minute", requests_per_minute
        )
        interval = 60 / rate
    address = read_address(base_url)
    is_local = is_this_machine(address.hostname or "")
    needs_key = not is_local or api_key_env != OPENAI_KEY  # the user chose this variable
    key = read_key(api_key_env, address, needed=needs_key)
    return Server(
        Endpoint(
            url=address.geturl().rstrip("/"),
            model=model or "",
            key_variable=api_key_env,
            timeout=timeout,
            max_retries=max_retries,
            concurrency=concurrency,
            interval=interval,
            is_direct=is_local,
            key=key,
        )
    )


async def _ask_server(server: Server, *, finds_model: bool, waits: bool) -> None:
    """Asks a server for the steering that it offers and, on request, for its model's name.

    Args:
        waits: whether the answer is awaited as long as that of any other request, and a server
            without a connection is an error.
    """
    async with server.open_client() as client:
        if finds_model:
            model = await _find_model(client, server.endpoint)
            server.endpoint = replace(server.endpoint, model=model)
        ask = await_steering if waits else ask_steering
        server.offered = await ask(client, server.endpoint)


def connect_all(
    urls: Sequence[str],
    model: str | None = None,
    api_key_env: str = OPENAI_KEY,
    **options: Unpack[ConnectOptions],
) -> EndpointModel:
    """Connects to several endpoints of the same model, at least one of which must answer now.

    Args:
        urls: the addresses, each once. The first one identifies a run if the servers do not report
            their weights.
        model: the model's name at each endpoint; None takes the only model that it lists.
        api_key_env: the environment variable that holds the key of each endpoint.
        options: of each endpoint: `concurrency`, `timeout`, `max_retries` and
            `requests_per_minute` of `connect`.

    Raises:
        UsageError: there is no address, one is given twice, a string is given in place of the list,
            an address is not a web address, or a number lies outside its range.
        Unreachable: no endpoint answers; if only some do, a warning names the others.
        ModelError: the endpoints do not serve the same model, the environment variable holds no
            usable key, or the model has to be named.
    """
    if isinstance(urls, str):  # a string is a sequence of strings, too
        raise UsageError(
            f"Give the addresses of endpoints as a list: [{urls!r}].", option="urls", value=urls
        )
    addresses = [url.rstrip("/") for url in urls]
    if not addresses:
        raise UsageError("Give the address of at least one endpoint.", option="urls", value=[])
    if len(set(addresses)) < len(addresses):
        raise UsageError(
            f"An endpoint is given twice in {', '.join(urls)}; give each address once.",
            option="urls",
            value=list(urls),
        )
    servers = list[Server]()
    failures = list[Unreachable]()  # of servers that do not answer
    for url in addresses:
        try:
            server = _prepare(url, model, api_key_env, **options)
            run_sync(_ask_server(server, finds_model=model is None, waits=True))
            servers.append(server)
        except Unreachable as error:
            failures.append(error)
    if not servers:
        raise failures[0]
    for failure in failures:
        warn_of_loss(failure)
    for other in servers[1:]:
        _check_same(servers[0], other)
    return EndpointModel(tuple(servers), addresses[0])


def _check_same(first: Server, other: Server) -> None:
    """Refuses a server whose model or steering differs from that of the first."""
    urls = f"{first.endpoint.url} and {other.endpoint.url}"
    model = first.endpoint.model
    other_model = other.endpoint.model
    if model != other_model:
        raise ModelError(
            f"{urls} serve different models ({model} and {other_model}); spread a run only over"
            " servers of the same model.",
            option="model",
            value=other_model,
            allowed=model,
        )
    fingerprint = first.offered.fingerprint
    other_fingerprint = other.offered.fingerprint
    if fingerprint != other_fingerprint:
        raise ModelError(
            f"{urls} report different fingerprints of their models ({fingerprint or 'none'} and"
            f" {other_fingerprint or 'none'}); spread a run only over servers of the same model.",
            option="fingerprint",
            value=other_fingerprint,
            allowed=fingerprint,
        )
    methods = ", ".join(first.offered.methods) or "none"
    other_methods = ", ".join(other.offered.methods) or "none"
    if methods != other_methods:
        raise ModelError(
            f"{urls} offer different steering ({methods} and {other_methods}); spread a run only"
            " over servers that steer alike.",
            option="steering",
            value=other_methods,
            allowed=methods,
        )


async def _find_model(client: AsyncOpenAI, endpoint: Endpoint) -> str:
    """Returns the name of the only model that a server lists.

    Raises:
        ModelError: the server lists none, or several.
    """
    import openai

    list_raw: Any = client.models.with_raw_response.list
    answer = "lists no model"
    names = list[str]()
    try:
        names = read_models(str((await list_raw()).http_response.text))
    except openai.NotFoundError:
        answer = "answers 404, not found"
    except MalformedResponse:
        pass
    except openai.OpenAIError as error:
        raise failure_of(error, endpoint) from None
    if len(names) == 1:
        return names[0]
    if names:
        raise ModelError(
            f"{endpoint.url} has {len(names)} models ({list_models(names, endpoint)}); name the one"
            " to use (model= in Python, or `--endpoint-model`).",
            option="model",
        )
    raise _no_model(endpoint.url, answer)


def _no_model(url: str, answer: str) -> ModelError:
    """The error for a server that lists no model; `answer` says how it answers instead."""
    if urlsplit(url).path.rstrip("/").endswith("/v1"):
        return ModelError(
            f"{url}/models {answer}; name the model to use (model= in Python, or"
            " `--endpoint-model`).",
            option="model",
        )
    base = urlsplit(url)._replace(path="/v1").geturl()
    return ModelError(
        f"{url}/models {answer}; give {base} if that is the endpoint's address, or name the model"
        " to use (model= in Python, or `--endpoint-model`).",
        option="model",
    )
