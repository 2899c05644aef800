"""`holdfast serve`: an OpenAI-compatible server with steering per request."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, cast
from urllib.parse import urlsplit

from holdfast.cli.serve.served_url import local_names, url_of
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.interrupts import exiting_on_sigterm
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.local_loading import load_in_process
from holdfast.cli.shared.notes import note
from holdfast.drift.suites import load_suite
from holdfast.errors import UsageError
from holdfast.extras import check_extra
from holdfast.generation.sampling import MAX_NEW_TOKENS_ALLOWED
from holdfast.methods import compile_methods, parse, spec_of
from holdfast.methods.fitted import read_any_fitted
from holdfast.models.engine_choice import Work
from holdfast.models.model_names import is_url
from holdfast.validation.ranges import Range, whole_number
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel
    from holdfast.serve.service import Service

EXAMPLES = """examples:
  holdfast serve
  holdfast serve --model Qwen/Qwen2.5-0.5B-Instruct --default-method boost:factor=2
  HOLDFAST_KEY=... holdfast serve --host 0.0.0.0 --api-key-env HOLDFAST_KEY"""

TRY = """Open that address in a browser for the playground, or ask:
  curl {url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d \\
    '{{"messages": [{{"role": "system", "content": "Always reply in French."}},
      {{"role": "user", "content": "Do you like the garden?"}}], "steering": "boost:factor=2"}}'"""

DESCRIPTION = (
    "Serves a chat model to OpenAI's clients; each request chooses its steering (see `holdfast"
    " docs serving`).\nAfter the first SIGTERM or Ctrl-C, running requests finish; the"
    " second ends them."
)

_PACKAGES = ("fastapi", "uvicorn", "prometheus_client")
_MAX_PROMPTS = 12  # prompts of a suite that the playground offers
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def _parse_bytes(text: str) -> int:
    """Reads a size such as "2G", "512M" or "1000"."""
    if match := re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text.strip()):
        return int(match[1]) * _UNITS[match[2]]
    raise argparse.ArgumentTypeError(f"expected a number of bytes, such as 2G, not {text!r}")


class ServeArguments(options.LocalModelOptions):
    work: ClassVar[Work] = "server"

    engine: options.EngineOptions = None
    """with llama:FILE.gguf: an option of llama.cpp, such as context=8192; repeatable"""
    chat_template: Annotated[str | None, Arg("plain|FILE")] = None
    """in place of the model's own: a Jinja file, or plain, for base models"""
    host: str = "127.0.0.1"
    """address to listen on; an address that other machines can reach requires a key"""
    port: int = 8000
    """0 picks a free port"""
    api_key_env: Annotated[str | None, Arg("VAR")] = None
    """the environment variable with the key that requests must send (default: no key)"""
    default_method: options.Spec = "none"
    """steering for requests that do not specify any: boost:factor=2, ..., or the method.json
    of `holdfast calibrate`"""
    suite: Annotated[str | None, Arg("FILE.yaml|NAME")] = None
    """a suite whose prompts the playground offers (default: a few examples)"""
    fitted: Annotated[list[Path] | None, Arg("FILE.safetensors")] = None
    """a file from `holdfast fit`, for requests that name it by its digest; repeatable"""
    batch_size: Annotated[int | None, Arg(option="--max-batch")] = None
    """the most sequences forwarded together; a reply is one, or two under guidance (default: 192;
    48 for models of more than 50 million parameters on the CPU)"""
    queue: Annotated[int, Arg("REQUESTS")] = 64
    """the most requests that may wait for their turn; any more get status 429"""
    max_tokens: Annotated[int, Arg("TOKENS")] = 4096
    """the most tokens of one reply"""
    timeout: Annotated[float, Arg("SECONDS")] = 600.0
    """the time limit of a whole request"""
    prefix_memory: Annotated[int | None, Arg("BYTES", type=_parse_bytes)] = None
    """memory for shared prefixes, such as 2G (default: a quarter of the device's memory)"""
    watch: int = 8
    """trace one request in N for the metrics; 0 traces none"""
    allow_origin: Annotated[list[str] | None, Arg("ORIGIN")] = None
    """a site whose pages may send requests: https://example.org; repeatable (default: none)"""


def run(arguments: ServeArguments) -> None:
    check_extra("serve", "serve", _PACKAGES)
    key = _read_key(arguments.api_key_env)
    from holdfast.serve import server

    if not key and not server.is_loopback(arguments.host):
        raise UsageError(
            f"--host {arguments.host} lets everyone who reaches this machine use the model; name"
            " the environment variable of a key with --api-key-env, or listen on 127.0.0.1."
        )
    whole_number("serve", "port", arguments.port, 0, 65_535)
    for origin in arguments.allow_origin or ():
        check_origin(origin)
    with server.bind(arguments.host, arguments.port) as bound:
        with exiting_on_sigterm():
            service = _service(arguments)
            from holdfast.serve.access import AccessRules
            from holdfast.serve.app import application
            from holdfast.serve.connections import configuration
        server.listen(bound)
        access = AccessRules(key, hosts=() if key else local_names(arguments.host))
        app = application(service, access, arguments.allow_origin or ())
        _announce(service, url_of(arguments.host, bound), arguments.api_key_env)
        config = configuration(app, service.limits)
        server.run(config, service.engine, bound, lambda line: print(line, flush=True))


def _announce(service: Service, url: str, key_variable: str | None) -> None:
    """Prints the address of the server, and how to ask it."""
    served = service.name
    if service.default:
        served = f"{served}, with {spec_of(service.default)} by default,"
    bearer = f' -H "Authorization: Bearer ${key_variable}"' if key_variable else ""
    print(f"Holdfast serves {served} at {url}", flush=True)
    print(TRY.format(url=url, key=bearer), flush=True)
    write_document({"url": f"{url}/v1", "model": service.name, "playground": url})


def check_origin(origin: str) -> None:
    """Refuses an origin that no browser sends, such as a host without a scheme, or with a path."""
    parts = urlsplit(origin)
    is_origin = parts.scheme and parts.netloc and origin == f"{parts.scheme}://{parts.netloc}"
    if origin not in ("*", "null") and not is_origin:
        raise UsageError(
            f"--allow-origin {origin} is not a site; give the site's scheme and host, such as"
            " https://example.org."
        )


def _service(arguments: ServeArguments) -> Service:
    """Loads the model, once all options have been checked, and builds the service around it."""
    _check_numbers(arguments)
    fitted = _read_fitted(arguments.fitted or ())
    default = parse(arguments.default_method)
    compile_methods(default).refuse_without_suite()
    # the page's own examples are those that the default model was trained to follow
    suite = arguments.suite or ("" if arguments.model == "default" else "bots")
    prompts = playground_prompts(suite) if suite else ()
    model = _load(arguments)
    if default:
        model.check(default)
    from holdfast.serve.limits import RequestLimits
    from holdfast.serve.metrics import Metrics
    from holdfast.serve.served_engine import ServedEngine
    from holdfast.serve.service import Service

    engine = ServedEngine(model, arguments.queue)
    return Service(
        model,
        engine,
        _served_name(arguments.model),
        Metrics(engine, arguments.watch),
        RequestLimits(arguments.max_tokens, arguments.timeout),
        default,
        __version__,
        prompts,
        fitted,
    )


def _check_numbers(arguments: ServeArguments) -> None:
    """Refuses numbers outside their ranges."""
    whole_number("serve", "max_tokens", arguments.max_tokens, 1, MAX_NEW_TOKENS_ALLOWED)
    Range(0, above_low=True).check("serve", "timeout", arguments.timeout)
    whole_number("serve", "queue", arguments.queue, 0)
    whole_number("serve", "watch", arguments.watch, 0)
    if arguments.batch_size is not None:
        whole_number("serve", "batch_size", arguments.batch_size, 1)


def _read_fitted(paths: Sequence[Path]) -> list[str]:
    """Reads fitted files, and prints the specs by which requests name them."""
    specs: list[str] = []
    for path in paths:
        file = read_any_fitted(path)
        specs.append(f"{file.method}:file={file.digest}")
        print(f"{path}: {specs[-1]}", flush=True)
    return specs


def _load(arguments: ServeArguments) -> LocalModel:
    """Loads the model; says so if it cannot answer chats."""
    if is_url(arguments.model):
        raise UsageError(
            f"--model {arguments.model} is an endpoint, which serves already; give a folder or a"
            " name on the hub."
        )
    loaded = load_in_process(
        arguments,
        batch_size=arguments.batch_size,
        chat_template=arguments.chat_template,
        prefix_memory=arguments.prefix_memory,
    )
    model = cast("LocalModel", loaded)  # it has all that the server uses of a local model
    if not model.tokenizer.chat_template:
        note(
            f"{model.name} has no chat template, so only /v1/completions will work; with"
            " --chat-template plain, chats do too."
        )
    return model


def _served_name(model: str) -> str:
    """The name by which clients ask for the model: the one that was typed, whichever engine was
    chosen for it; of a folder, the last part of its path.
    """
    return Path(model).resolve().name if os.path.isdir(model) else model


def playground_prompts(suite: str) -> list[dict[str, str]]:
    """The first prompts of a suite, each with its first probe as the user's message."""
    cases = load_suite(suite).cases
    if suite == "bots":  # which has two wordings of each bot
        cases = cases[::2]
    return [
        {"name": case.id, "system": case.system_prompt, "message": case.rules[0].probes[0]}
        for case in cases[:_MAX_PROMPTS]
    ]


def _read_key(variable: str | None) -> str:
    """The key in an environment variable; "" if no variable is named."""
    if variable is None:
        return ""
    if not (key := os.environ.get(variable, "").strip()):
        raise UsageError(
            f"The environment variable {variable} of --api-key-env is empty; set it, or name"
            " another."
        )
    return key


COMMAND = Command(
    "serve",
    run,
    ServeArguments,
    DESCRIPTION,
    EXAMPLES,
    common=("model", "host", "port", "default_method", "allow_origin"),
)
