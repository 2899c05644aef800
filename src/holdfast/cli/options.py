"""Options that commands share, and the model they name."""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.knobs import whole_number

# options that only a model behind a URL has, and what they are where nobody gives them
_OF_ENDPOINTS = {
    "endpoint_model": None,
    "api_key_env": "OPENAI_API_KEY",
    "concurrency": 8,
    "timeout": 120.0,
    "requests_per_minute": None,
}


def add_model(add) -> None:
    """Adds what names a model; `add` is a parser's `add_argument`."""
    add(
        "--model",
        "default",
        "the chat model (default: the one in the package; after `make real-models` also"
        " smollm2 and gemma-3-270m); of several servers of one model, each has a part of the"
        " conversations; vllm: runs it in vLLM, in process",
        metavar="default|FOLDER|FILE.gguf|HUB_ID|URL[,URL]|vllm:MODEL",
    )
    add(
        "--engine",
        list,
        "with vllm:MODEL: an option of its engine, as in max_model_len=4096; repeat for more",
        metavar="NAME=VALUE",
    )
    add(
        "--endpoint-model",
        str,
        "with a URL: the model's name there (default: the one it lists, if it is one)",
        metavar="NAME",
    )
    add(
        "--api-key-env",
        _OF_ENDPOINTS["api_key_env"],
        "with a URL: the environment variable of the key",
        metavar="VAR",
    )
    add("--concurrency", _OF_ENDPOINTS["concurrency"], "with a URL: requests in flight per server")
    add(
        "--timeout",
        _OF_ENDPOINTS["timeout"],
        "with a URL: the time limit of one answer",
        metavar="SECONDS",
    )
    add(
        "--requests-per-minute",
        float,
        "with a URL: the most requests per minute, with retries (default: no limit)",
        metavar="N",
    )
    add_placement(add)
    add(
        "--chat-template",
        str,
        "in place of the model's: a Jinja file, or plain, which has a base model continue the"
        " messages as one text",
        metavar="plain|FILE",
    )
    add(
        "--batch-size",
        int,
        "the most rows forwarded together; fewer need less memory (default: 192)",
        metavar="ROWS",
    )


def add_placement(add) -> None:
    """Adds where and how a model that runs here is loaded."""
    add("--device", str, "cpu, cuda, ... (default: CUDA if there is one)")
    add(
        "--device-map",
        str,
        "auto, balanced, ...: spread over several devices, in place of --device",
        metavar="MAP",
    )
    add(
        "--dtype",
        str,
        "float32, bfloat16, ... (default: float32 on the CPU, the checkpoint's elsewhere)",
    )
    add("--trust-remote-code", bool, "allow code that comes with the model to run (default: never)")


def add_draws(add) -> None:
    """Adds how replies are drawn."""
    add("--temperature", 1.0, "of sampling; 0 takes the likeliest token")
    add("--top-p", 0.9, "nucleus sampling")
    add("--max-new-tokens", 400, "the most tokens of a reply")
    add("--seed", 0, "of every random draw")


def add_system_as(add) -> None:
    """Adds the place of the system prompt."""
    add(
        "--system-as",
        "role",
        "the system prompt's place: its own role, or the first user message (default: role)",
        choices=("role", "first-user"),
    )


def add_ray(add) -> None:
    """Adds a Ray cluster to work on."""
    add(
        "--ray",
        str,
        "run copies of the model on the Ray cluster at HOST:PORT, or auto (default:"
        " RAY_ADDRESS, else this machine alone)",
        nargs="?",
        const="",
        metavar="ADDRESS",
    )
    add(
        "--replicas",
        int,
        "with --ray: how many (default: one per GPU, or per machine without one)",
        metavar="N",
    )


class RunFolder(argparse.Action):
    """`--out` of a command that makes a run: a folder."""

    def __call__(self, parser, namespace, values, option_string=None):
        folder = Path(values)
        if folder.is_file() or folder.suffix in (".yaml", ".yml"):
            what = "is a file" if folder.is_file() else f"ends in {folder.suffix}"
            suite = folder.suffix in (".yaml", ".yml") and "--suite" in parser.format_usage()
            hint = (
                f"did you mean --suite {values}?" if suite else "name one, such as --out runs/mine."
            )
            raise UsageError(f"--out {values} {what}, and the results go into a folder; {hint}")
        setattr(namespace, self.dest, folder)


def check_extra(extra: str, packages: Sequence[str]) -> None:
    """Refuses a command whose packages are not installed.

    Raises:
        UsageError: names them, and the command that installs them.
    """
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"`holdfast {extra}` needs {', '.join(missing)}; pip install 'holdfast[{extra}]'."
        )


def is_url(model: str) -> bool:
    """Whether a model is named by the address of an endpoint."""
    return model.startswith(("http://", "https://"))


def load_model(arguments: argparse.Namespace):
    """The model that the arguments of `add_model` name, and where its replicas are, if anywhere
    else.

    Raises:
        UsageError: replicas of a server's model, or options that do not go with it.
        HoldfastError: as `holdfast.load`, `connect_all` and `integrations.ray.connect`.
    """
    check_endpoint_options(arguments)
    return load_named(arguments)


def tell_small_model(arguments: argparse.Namespace) -> None:
    """Says what the model that ships can show of prompts that it was not trained on."""
    if arguments.model == "default" and arguments.suite not in ("starter", "bot"):
        print(
            "holdfast: the model that ships follows few prompts (--suite starter or bot has some);"
            " with others it shows how a command works, and no more. For your bot, give --model.",
            file=sys.stderr,
            flush=True,
        )


def check_endpoint_options(arguments: argparse.Namespace) -> None:
    """Refuses options of endpoints where no model of the command is behind a URL.

    Raises:
        UsageError: names the first of them.
    """
    given = vars(arguments)
    for name, default in _OF_ENDPOINTS.items():
        # the user model is paced as --model is, but has a name of its own there
        models = ["model", "endpoint"] + ["user_model"] * (name != "endpoint_model")
        if given[name] == default or any(is_url(given.get(option) or "") for option in models):
            continue
        if is_url(given.get("user_model") or ""):
            cure = f"write --user-endpoint-model {given[name]}"
        else:  # a command with --endpoint takes no URL as --model
            at = [option for option in models if option in given][1 if "endpoint" in given else 0 :]
            cure = f"give a URL as {' or '.join(map(_option, at))}"
        raise UsageError(
            f"{_option(name)} {given[name]} is for a model behind a URL, which"
            f" {arguments.model} is not; {cure}, or leave it out."
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def load_named(arguments: argparse.Namespace):
    """As `load_model`, of a model beside --model, which the options of endpoints may be for."""
    from holdfast.models.engines import engine_in

    for name in ("batch_size", "replicas"):
        if (value := vars(arguments).get(name)) is not None:
            whole_number("a run", name, value, 1)
    engine, template = engine_in(arguments.model), vars(arguments).get("chat_template")
    if template and (engine or is_url(arguments.model) or vars(arguments).get("ray") is not None):
        raise UsageError(
            f"--chat-template {template} is for a model that is loaded in this process, and"
            f" {arguments.model} is not; leave it out."
        )
    if engine:
        return _load_in_engine(arguments, engine)
    if given := vars(arguments).get("engine"):
        raise UsageError(
            f"--engine {given[0]} is for a model in an engine, as vllm:MODEL, which"
            f" {arguments.model} is not; leave it out."
        )
    if vars(arguments).get("ray") is not None:
        if is_url(arguments.model):
            raise UsageError(
                f"--ray is for models that are loaded, and {arguments.model} is a server; to share"
                " conversations out to several servers, give --model URL,URL."
            )
        return _load_on_ray(arguments)
    if (replicas := vars(arguments).get("replicas")) is not None:
        raise UsageError(
            f"--replicas {replicas} is for a run on Ray; give --ray too, or leave it out."
        )
    if is_url(arguments.model):
        from holdfast.models.spread import connect_all

        # a server that does not answer is asked again for seconds
        print(f"holdfast: connecting to {arguments.model} ...", file=sys.stderr, flush=True)
        model = connect_all(
            arguments.model.split(","),
            arguments.endpoint_model,
            arguments.api_key_env,
            concurrency=arguments.concurrency,
            timeout=arguments.timeout,
            requests_per_minute=arguments.requests_per_minute,
        )
        arguments.endpoint_model = model.name
        return model
    begin_loading(arguments.model)
    return load_here(arguments)


def _load_on_ray(arguments: argparse.Namespace):
    """The model that the arguments name, as actors hold it.

    Raises:
        UsageError: a model that is spread over devices.
        HoldfastError: as `integrations.ray.connect`.
    """
    from holdfast.integrations.ray import Specification, connect

    if arguments.device_map is not None:
        raise UsageError(
            f"--device-map {arguments.device_map} spreads a model over the devices of one process,"
            " and an actor on Ray has one; leave out one of the two."
        )
    _tell_loading(arguments.model)
    specification = Specification(
        arguments.model,
        arguments.device,
        arguments.dtype,
        arguments.trust_remote_code,
        arguments.batch_size,
    )
    model = connect(specification, arguments.ray, arguments.replicas)
    print(f"holdfast: {model}.", file=sys.stderr)
    return model


def _load_in_engine(arguments: argparse.Namespace, engine: str):
    from holdfast.models.engines import load_in_engine, read_options

    for option in ("device", "device_map", "ray"):
        if (value := vars(arguments).get(option)) is not None:
            raise UsageError(
                f"{_option(option)} {value} is for models that holdfast places; {engine}"
                " places its own, so leave it out."
            )
    options = read_options(arguments.engine or ())
    _tell_loading(arguments.model)
    return load_in_engine(
        arguments.model,
        dtype=arguments.dtype,
        batch_size=arguments.batch_size,
        trust_remote_code=arguments.trust_remote_code,
        **options,
    )


def begin_loading(model: str) -> None:
    """Says that a model loads here, before torch is imported, which alone takes seconds; a folder
    or file that holds none is refused before that.

    Raises:
        ModelError: as `find_source`.
    """
    from holdfast.models.checkpoint import find_source
    from holdfast.models.engines import engine_in

    if not engine_in(model):  # an engine is refused by `load_here`
        find_source(model)
    _tell_loading(model)


def _tell_loading(model: str) -> None:
    # apart from the output, which may be a reply or a table
    print(f"holdfast: loading {model} ...", file=sys.stderr, flush=True)


def load_here(arguments: argparse.Namespace, **more):
    """The model that runs in this process; `more` are arguments of `holdfast.load`.

    Raises:
        UsageError: a model in an engine.
        HoldfastError: as `holdfast.load`.
    """
    _quiet_transformers()
    from holdfast.models.engines import engine_in
    from holdfast.models.loading import load

    if engine := engine_in(arguments.model):
        raise UsageError(
            f"{arguments.model} runs in {engine}, and this command needs a model that is loaded"
            " here; give a folder or a name on the hub."
        )

    if arguments.batch_size is not None:
        more["batch_size"] = arguments.batch_size
    if template := vars(arguments).get("chat_template"):
        more["chat_template"] = template
    return load(
        arguments.model,
        arguments.device,
        arguments.dtype,
        device_map=arguments.device_map,
        trust_remote_code=arguments.trust_remote_code,
        **more,
    )


def _quiet_transformers() -> None:
    """Leaves the terminal to our own progress bar."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def command_line() -> str:
    """The command as it was typed, for the manifest of its run."""
    return shlex.join(["holdfast", *sys.argv[1:]])


def command_with(**options: object) -> str:
    """The command as it was typed, with some options set to other values."""
    given = {f"--{name.replace('_', '-')}": str(value) for name, value in options.items()}
    words = sys.argv[1:]
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before not in given and word not in given and word.split("=")[0] not in given
    ]
    return shlex.join(["holdfast", *kept, *(word for pair in given.items() for word in pair)])


def add_report(add) -> None:
    """Adds where the page goes."""
    add(
        "--report",
        Path,
        "where the page goes (default: report.html in the folder)",
        metavar="FILE.html",
    )


def page_path(arguments: argparse.Namespace, folder: Path) -> Path:
    """Where the page goes; a place where none can be written is refused, before the command
    runs.
    """
    from holdfast.report import check_page

    return check_page(arguments.report or folder / "report.html", page_option(arguments))


def write_page(arguments: argparse.Namespace, html: str, page: Path) -> None:
    """Writes a page and prints where it is."""
    write_whole(page, html, f"another place with {page_option(arguments)}")
    print(f"Report: {page.resolve()}")


def page_option(arguments: argparse.Namespace) -> str:
    """The option that says where the page goes."""
    return "--report" if arguments.report else "--out"
