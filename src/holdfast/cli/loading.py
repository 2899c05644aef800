"""The models that a command's options name: --model, --user-model and judges."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import functools
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.options import EndpointOptions
from holdfast.errors import UsageError
from holdfast.ranges import whole_number

if TYPE_CHECKING:
    from holdfast.drift import Settings, Suite
    from holdfast.drift.judges import Agreement, Judging
    from holdfast.models.protocol import ChatModel


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
    """The model that the options of `MODEL` name, with its replicas, if it has any.

    Raises:
        UsageError: replicas of a server's model, or options that do not go with it.
        HoldfastError: as `holdfast.load`, `connect_all` and `integrations.ray.connect`.
    """
    check_endpoint_options(arguments)
    return load_named(arguments)


def warn_of_small_model(arguments: argparse.Namespace) -> None:
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
    for name, option in EndpointOptions.model_fields.items():
        # the user model is paced as --model is, but has a name of its own there
        models = ["model", "endpoint"] + ["user_model"] * (name != "endpoint_model")
        if given[name] == option.default or any(is_url(given.get(role) or "") for role in models):
            continue
        if is_url(given.get("user_model") or ""):
            cure = f"write --user-endpoint-model {given[name]}"
        else:  # a command with --endpoint takes no URL as --model
            at = [role for role in models if role in given][1 if "endpoint" in given else 0 :]
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
    """The model that the arguments name, as actors hold it."""
    from holdfast.integrations.ray import Specification, connect

    if arguments.device_map is not None:
        raise UsageError(
            f"--device-map {arguments.device_map} spreads a model over the devices of one process,"
            " and an actor on Ray has one; leave out one of the two."
        )
    _print_loading(arguments.model)
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
    _print_loading(arguments.model)
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
    _print_loading(model)


def _print_loading(model: str) -> None:
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


def load_user_turns(arguments: argparse.Namespace):
    """The scripts of `--user-turns`; None without.

    Raises:
        UsageError: the file holds none, or another option says who the user is.
    """
    from holdfast.drift.dialogs import read_user_turns

    if arguments.user_turns is None:
        return None
    for name in ("persona", "user_model", "dialogs"):
        if (value := getattr(arguments, name, None)) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} {value} and --user-turns {arguments.user_turns} both"
                " say what the user says; leave out one of them."
            )
    return read_user_turns(arguments.user_turns)


def load_both(arguments: argparse.Namespace, endpoint: ChatModel | None = None):
    """The model of `--model` and that of `--user-model`, None without one.

    Args:
        arguments: of the command.
        endpoint: the first, where it is behind a URL and connected already.

    Raises:
        HoldfastError: as `load_model` and `load_user_model`.
    """
    if endpoint is None and is_url(arguments.user_model or ""):
        check_endpoint_options(arguments)
        # an address that is wrong is told before a model is loaded
        user_model = load_user_model(arguments)
        return load_model(arguments), user_model
    return endpoint or load_model(arguments), load_user_model(arguments)


def load_user_model(arguments: argparse.Namespace):
    """The model of `--user-model`, placed and paced as that of `--model`; None without one.

    Raises:
        UsageError: an option of an endpoint without an endpoint.
    """
    of_endpoint = {
        "--user-endpoint-model": arguments.user_endpoint_model,
        "--user-api-key-env": arguments.user_api_key_env,
    }
    for option, value in of_endpoint.items():
        if value is not None and not is_url(arguments.user_model or ""):
            raise UsageError(
                f"{option} {value} is for a user model behind a URL, and --user-model is"
                f" {arguments.user_model or 'not given'}; give its address there."
            )
    if arguments.user_model is None:
        return None
    named = copy.copy(arguments)
    named.model = arguments.user_model
    named.endpoint_model = arguments.user_endpoint_model
    named.api_key_env = arguments.user_api_key_env or arguments.api_key_env
    return load_named(named)


def with_user_prompt(
    suite: Suite, settings: Settings, personas: Sequence[str] | None
) -> tuple[Suite, Settings]:
    """The suite with the personas of the command line; the settings with who the user model is."""
    from holdfast.drift.cases import personas_of
    from holdfast.drift.pairing import user_prompt_of

    if personas is not None:
        if settings.user_prompt not in ("auto", "persona"):
            raise UsageError(
                "--persona says who the user model is, and so does --user-prompt "
                f"{settings.user_prompt}; give one of the two."
            )
        if not all(text.strip() for text in personas):
            raise UsageError(
                "--persona '' is empty; write who the user model is, or --user-prompt empty for "
                "none."
            )
        suite = dataclasses.replace(suite, personas=personas_of(personas))
    source = user_prompt_of(suite, settings)
    if (settings.user_prompt, source) == ("auto", "empty"):
        print(
            f"holdfast: the suite {suite.name!r} has one system prompt, so the user model talks "
            "without any; say who it is with --persona.",
            file=sys.stderr,
        )
    pairs = len(suite.cases) * (len(suite.cases) - 1)
    if (settings.pairs, source) == ("all", "suite") and settings.conversations % pairs:
        print(
            f"holdfast: --pairs all goes through {pairs:,} pairs prompt after prompt, and "
            f"--conversations {settings.conversations} is no whole number of rounds through them; "
            "--pairs balanced gives every prompt its share.",
            file=sys.stderr,
        )
    return suite, dataclasses.replace(settings, user_prompt=source)


def judging_of(arguments: argparse.Namespace) -> Judging:
    """How judges are had: each is loaded once in a command, however many runs it makes, and what it
    is worth is told once, before anything else is asked.
    """
    from holdfast.drift.judges import Judging, load_judge
    from holdfast.report.judges import agreement_line

    @functools.cache
    def tell(agreement: Agreement) -> None:
        print(f"holdfast: {agreement_line(agreement)}", file=sys.stderr)

    return Judging(functools.cache(load_judge), arguments.force_judge, tell)
