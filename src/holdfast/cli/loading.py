"""The models that a command's options name: --model, --user-model and judges."""

import dataclasses
import functools
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.cli.options import (
    BenchmarkOptions,
    DrawOptions,
    EndpointOptions,
    LocalModelOptions,
    ModelOptions,
    Options,
    RayOptions,
    UserTurnsOptions,
    option_of,
)
from holdfast.cli.progress import note
from holdfast.common.model_names import endpoint_meant, engine_in, is_url
from holdfast.common.ranges import whole_number
from holdfast.common.sampling import Sampling
from holdfast.drift import Settings, Suite
from holdfast.drift.cases import personas_of
from holdfast.drift.judges import Judging, load_judge
from holdfast.drift.pairing import case_of, user_prompt_of
from holdfast.drift.recorded_dialogs import (
    SHIPPED_SCRIPTS,
    UserTurns,
    read_dialogs,
    read_user_turns,
)
from holdfast.drift.suites import PUBLISHED, SHIPPED
from holdfast.errors import NoSuchModel, UsageError
from holdfast.integrations.ray import Specification, connect
from holdfast.methods import Method, parse, spec_of
from holdfast.methods.kinds import Ability
from holdfast.models.checkpoint import find_source
from holdfast.models.connecting import connect_all
from holdfast.models.endpoint import EndpointModel
from holdfast.models.engine_choice import Wanted, Work, choose_engine, read_engine
from holdfast.models.engine_plugins import load_in_engine, read_options
from holdfast.models.protocol import ChatModel
from holdfast.records.judge_records import Agreement
from holdfast.report.judge_agreement import agreement_line

NO_SCRIPTS = "none"  # as --user-turns: a model plays the user
_ROWS_OF_A_CHAT = 2  # streams of one reply, under guidance


def check_extra(extra: str, packages: Sequence[str]) -> None:
    """Refuses a command whose packages are not installed."""
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"`holdfast {extra}` needs {', '.join(missing)}; pip install 'holdfast-llm[{extra}]'."
        )


def warn_of_small_model(model: str, suite: str) -> None:
    """Warns that the default model shows little with prompts that it was not trained on."""
    if model == "default" and suite not in ("starter", "bot"):
        note(
            "the default model follows only a few prompts (those of --suite starter and bot); with"
            " others it only shows how the command works. For your bot, give --model."
        )


def load_model(arguments: ModelOptions, **changed: Any):
    """Loads the model that the options name; `changed` replaces values of some."""
    check_endpoint_options(arguments)
    return _load_named(arguments.model_copy(update=changed))


def load_asked_model(model: str, arguments: EndpointOptions) -> ChatModel:
    """The model of --model where that may be left out: behind a URL, or loaded in this process."""
    _check_name(arguments, "model")
    return _connect(model, arguments) if is_url(model) else load_judge(model, None)


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


def _refuse_options(arguments: Options, names: Sequence[str], why: str) -> None:
    for name in names:
        if (value := getattr(arguments, name, None)) is not None:
            value = value[0] if isinstance(value, list) else value
            raise UsageError(f"{option_of(name)} {value} {why}.")


def _check_name(arguments: Options, role: str) -> None:
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
        f"{option_of(role)} {name} is no folder here and no URL; did you mean {words}?"
    )


def _load_named(arguments: ModelOptions):
    """As `load_model`, but does not check endpoint options."""
    for name in ("batch_size", "replicas"):
        if (value := getattr(arguments, name, None)) is not None:
            whole_number("a run", name, value, 1)
    model, on_engine = arguments.model, engine_in(arguments.model)
    engine, engine_options = read_engine(arguments.engine)
    ray = arguments if isinstance(arguments, RayOptions) and arguments.ray is not None else None
    if on_engine or ray or is_url(model):
        _refuse_chat_template(arguments)
    if on_engine:
        refuse_engine(arguments, engine)
        return load_on_engine(arguments, engine_options, batch_size=arguments.batch_size)
    if ray or is_url(model):
        _refuse_options(arguments, ["engine"], "is for a model in this process; leave it out")
    if ray and is_url(model):
        raise UsageError(
            f"--ray is for models that are loaded, and {model} is a server; to share"
            " conversations out to several servers, give --model URL,URL."
        )
    _check_name(arguments, "model")
    if ray:
        return _load_on_ray(arguments, ray)
    why = "is for a run on Ray; give --ray too, or leave it out"
    _refuse_options(arguments, ["replicas"], why)
    if is_url(model):
        return _connect(model, arguments)
    if chosen_engine(arguments, engine, arguments.work, arguments.abilities) == "llama":
        named = arguments.model_copy(update={"model": f"llama:{model}"})
        rows = arguments.batch_size or (_ROWS_OF_A_CHAT if arguments.work == "chat" else None)
        return load_on_engine(named, engine_options, batch_size=rows)
    refuse_engine_options(arguments, engine_options)
    begin_loading(model)
    return load_local(
        arguments, batch_size=arguments.batch_size, chat_template=arguments.chat_template
    )


def chosen_engine(
    arguments: Options, engine: str, work: Work, abilities: frozenset[Ability] = frozenset()
) -> str:
    """The engine of a model without an engine in its name, "torch" or "llama"; says why.

    Raises:
        UsageError, ModelError: the engine that was chosen by hand cannot run it.
    """
    model = getattr(arguments, "model", "")
    if endpoint_meant(model):
        return "torch"  # and refused where it is loaded
    gguf = find_source(model).gguf
    given = getattr(arguments, "method", None) or getattr(arguments, "default_method", None) or []
    specs = [given] if isinstance(given, str) else given
    names = ("device", "device_map", "dtype", "chat_template", "fitted")
    values = {option_of(name): getattr(arguments, name, None) for name in names}
    options = {
        name: str(value[0] if isinstance(value, list) else value)
        for name, value in values.items()
        if value is not None
    }
    wanted = Wanted(work, [parse(spec) for spec in specs if gguf], abilities, options)
    choice = choose_engine(model, gguf, engine, wanted)
    if choice.sentence:
        note(choice.sentence)
    return choice.engine


def refuse_engine(arguments: Options, engine: str) -> None:
    """Refuses the choice of an engine for a model whose name has one."""
    if engine != "auto":
        raise UsageError(
            f"--engine {engine} chooses for a GGUF file, and {getattr(arguments, 'model', '')} has"
            " its engine in its name; leave one of them out."
        )


def refuse_engine_options(arguments: Options, given: Sequence[str]) -> None:
    """Refuses options of vLLM or llama.cpp for a model that runs in our engine."""
    for option in given:
        raise UsageError(
            f"--engine {option} is for a model in an engine, as vllm:MODEL, which"
            f" {getattr(arguments, 'model', '')} is not; leave it out."
        )


def _refuse_chat_template(arguments: Options) -> None:
    model = getattr(arguments, "model", "")
    why = f"is for a model loaded in this process, and {model} is not; leave it out"
    _refuse_options(arguments, ["chat_template"], why)


def _connect(model: str, arguments: EndpointOptions) -> EndpointModel:
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


def _load_on_ray(arguments: ModelOptions, ray: RayOptions):
    why = "spreads a model over several devices, and an actor on Ray has one; leave it out"
    _refuse_options(arguments, ["device_map"], why)
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


def load_on_engine(
    arguments: LocalModelOptions | ModelOptions,
    engine_options: Sequence[str] | None,
    *,
    batch_size: int | None,
    **more: Any,
):
    """Loads a model that runs in another engine, as `vllm:MODEL`; `more` are options of that."""
    engine = engine_in(arguments.model)
    _refuse_chat_template(arguments)
    why = f"is for models that holdfast places, and {engine} places its own; leave it out"
    _refuse_options(arguments, ["device", "device_map", "ray"], why)
    options = {**read_options(engine_options or ()), **more}
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


def begin_loading(model: str) -> None:
    """Reports that a model is loading, before torch is imported; refuses a path without one."""
    if endpoint_meant(model):
        raise NoSuchModel(
            f"--model {model} is no folder here, and this command takes no model behind an"
            " endpoint; give a folder, a name on the hub, or default."
        )
    if not engine_in(model):  # `load_local` refuses engines
        find_source(model)
    note(f"loading {model} ...")


def load_local(
    arguments: LocalModelOptions | ModelOptions,
    *,
    batch_size: int | None = None,
    chat_template: str | None = None,
    **more: Any,
):
    """Loads a model in this process; `more` are arguments of `holdfast.load`."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()  # the terminal shows our own
    from holdfast.models.loading import load

    if engine := engine_in(arguments.model):
        raise UsageError(
            f"{arguments.model} runs in {engine}, and this command needs a model that is loaded"
            " here; give a folder or a name on the hub."
        )
    given = {"batch_size": batch_size, "chat_template": chat_template}
    more |= {name: value for name, value in given.items() if value is not None}
    model = load(
        arguments.model,
        arguments.device,
        arguments.dtype,
        device_map=arguments.device_map,
        trust_remote_code=arguments.trust_remote_code,
        **more,
    )
    _warn_of_short_context(arguments, model)
    return model


def _warn_of_short_context(arguments: Options, model: ChatModel) -> None:
    """Warns if replies cannot become as long as the command asks for."""
    if not isinstance(arguments, DrawOptions):
        return
    most, context = arguments.max_new_tokens, getattr(model, "context", None)
    if context and most > context and most != Sampling.max_new_tokens:
        note(
            f"--max-new-tokens {most} is more than the context of {model.name}, {context:,} tokens;"
            " a reply ends where that is full."
        )


def load_user_turns(arguments: UserTurnsOptions, suite: Suite):
    """The scripts of `--user-turns`, or the usual ones of the suite; None: a model is the user."""
    if arguments.user_turns is None:
        return _usual_user_turns(arguments, suite)
    if arguments.user_turns == NO_SCRIPTS:
        return None
    _refuse_users(arguments, "user_turns", ("persona", "user_model", "dialogs"))
    return read_user_turns(arguments.user_turns)


def _usual_user_turns(arguments: UserTurnsOptions, suite: Suite) -> UserTurns | None:
    """The bundled scripts for a suite of the user's own, if nothing else says what the user says.

    In a talk with itself, a model that people use soon repeats itself.
    """
    named = str(getattr(arguments, "suite", ""))
    shipped = named in SHIPPED or named.partition(":")[0] in PUBLISHED
    says_who = ("dialogs", "persona", "user_model", "user_prompt")
    given = any(not arguments.is_default(name) for name in says_who)
    given = given or getattr(arguments, "pairs", "") == "all"  # pairs of an agent and a user
    if shipped or given or suite.personas:
        return None
    rounds = getattr(arguments, "rounds", Settings.rounds)
    for name in SHIPPED_SCRIPTS:
        turns = read_user_turns(name)
        if len(turns.shortest.messages) >= rounds:
            return turns
    return None


def note_usual_user_turns(arguments: UserTurnsOptions, user_turns: UserTurns | None) -> None:
    """Says which scripts the user's messages are from, if no option chose them."""
    if arguments.user_turns is None and user_turns is not None:
        note(
            f"the user's messages are those of --user-turns {Path(user_turns.name).stem}, as the"
            f" suite is your own; with --user-turns {NO_SCRIPTS}, a model plays the user."
        )


def _refuse_users(arguments: Options, given: str, others: Sequence[str]) -> None:
    given_as_typed = f"{option_of(given)} {getattr(arguments, given)}"
    why = f"and {given_as_typed} both say what the user says; leave out one of them"
    _refuse_options(arguments, others, why)


def load_dialogs(arguments: Options, path: str | None, suite: Suite, settings: Settings):
    """The dialogs of `--dialogs`, if given; reports which are cut, changed or left out."""
    if path is None:
        return None
    _refuse_users(arguments, "dialogs", ("persona", "user_model"))
    dialogs = read_dialogs(path)
    count, rounds = len(dialogs.dialogs), dialogs.rounds
    if count > settings.conversations:
        note(
            f"{dialogs.name} has {count:,} dialogs, of which the first {settings.conversations:,}"
            f" are replayed; --conversations {count} takes all."
        )
    if rounds > settings.rounds:
        note(
            f"the longest dialog has {rounds:,} rounds, of which the first {settings.rounds:,} are"
            f" replayed; --rounds {rounds} takes all."
        )
    taken = dialogs.dialogs[: settings.conversations]
    if foreign := sum(bool(d.system) and case_of(suite, d) is None for d in taken):
        note(
            f"{foreign:,} of {len(taken):,} dialogs have a system prompt that the suite"
            f" {suite.name!r} does not have, and get one of the suite's in its place."
        )
    return dialogs


def load_both(arguments: BenchmarkOptions, endpoint: ChatModel | None = None):
    """The models of `--model` (`endpoint`, if connected already) and `--user-model`, if any."""
    if endpoint is None and is_url(arguments.user_model):
        check_endpoint_options(arguments)
        user_model = load_user_model(arguments)  # a wrong address is refused before a model loads
        return load_model(arguments), user_model
    return endpoint or load_model(arguments), load_user_model(arguments)


def warn_of_default_steering(model: ChatModel, chosen: Sequence[Sequence[Method]]) -> None:
    """Warns if a server steers by default, and no method of the command is that default."""
    default = getattr(model, "default_steering", "")
    if default and default not in map(spec_of, chosen):
        note(
            f"{model.name} is served with {default} by default, which this command switches off;"
            f" --method {default} measures it."
        )


def load_user_model(arguments: BenchmarkOptions):
    """The model of `--user-model`, placed and rate-limited as `--model` is; None if not given.

    With `--ray`, it is in this process.
    """
    if not is_url(arguments.user_model):
        user_model = arguments.user_model or "not given"
        why = f"is for a user model behind a URL, and --user-model is {user_model}; leave it out"
        _refuse_options(arguments, ["user_endpoint_model", "user_api_key_env"], why)
    if arguments.user_model is None:
        return None
    _check_name(arguments, "user_model")
    in_engine = engine_in(arguments.user_model)
    elsewhere = in_engine or is_url(arguments.user_model)
    changed = {
        "model": arguments.user_model,
        "endpoint_model": arguments.user_endpoint_model,
        "api_key_env": arguments.user_api_key_env or arguments.api_key_env,
        "engine": arguments.engine if in_engine else None,
        "ray": None,
        "replicas": None,
        "chat_template": None if elsewhere else arguments.chat_template,
    }
    return _load_named(arguments.model_copy(update=changed))


def with_user_prompt(
    suite: Suite, settings: Settings, personas: Sequence[str] | None
) -> tuple[Suite, Settings]:
    """The suite with the command line's personas, the settings with the user model's prompt."""
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
        note(
            f"the suite {suite.name!r} has one system prompt, so the user model talks without any;"
            " say who it is with --persona."
        )
    pairs = len(suite.cases) * (len(suite.cases) - 1)
    if (settings.pairs, source) == ("all", "suite") and settings.conversations % pairs:
        note(
            f"--pairs all goes through {pairs:,} pairs prompt after prompt, and --conversations"
            f" {settings.conversations} is no whole number of rounds through them; --pairs balanced"
            " gives every prompt its share."
        )
    return suite, dataclasses.replace(settings, user_prompt=source)


def judging_of(force: bool) -> Judging:
    """How judges are loaded: each once per command, with its agreement printed once.

    `force` uses those that agree poorly with their labelled replies, too.
    """

    @functools.cache
    def print_agreement(agreement: Agreement) -> None:
        note(agreement_line(agreement))

    return Judging(functools.cache(load_judge), force, print_agreement)
