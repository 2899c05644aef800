"""Commands, whose options are a Pydantic model with one field per option.

`add_command` builds a command's parser from the model. The arguments that the parser reads become
an instance of the model, which the command runs with.
"""

import argparse
import contextlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
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

from holdfast.cli.shared.argument_parser import HelpFormatter
from holdfast.cli.shared.exit_codes import FAILED, MALFORMED
from holdfast.cli.shared.notes import note
from holdfast.errors import UsageError
from holdfast.validation.pydantic_errors import problem_of


class Options(BaseModel):
    """Options of a command, or some of them; the docstring of a field is its help."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    # these two describe the class that sets them, and are not inherited
    exclusive: ClassVar[bool] = False  # whether exactly one of its fields must be given
    title: ClassVar[str] = ""  # its section of the help; "" is the first section, "options"

    _resumable_folder: Path | None = None

    @property
    def resumable_folder(self) -> Path | None:
        """Where an interrupted command kept its work; None if repeating it begins anew."""
        return self._resumable_folder

    def keep_work_in(self, folder: Path) -> None:
        """Notes that from here on the command's work is kept, so that repeating it resumes it."""
        self._resumable_folder = folder

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Refuses the first of these options that is given.

        Args:
            why: goes on from the option and its value, as in "is for a run on Ray; leave it out".
        """
        for name in names:
            if values := self.values_of(name):
                raise UsageError(f"{option_of(name)} {values[0]} {why}.")

    def values_of(self, name: str) -> list[str]:
        """The values of an option; [] if it is not given, or the command does not have it."""
        value = getattr(self, name, None)
        if value is None:
            return []
        return list(map(str, value)) if isinstance(value, list) else [str(value)]

    def as_words(self, names: Iterable[str]) -> list[str]:
        """These options as they are typed, except those that have their default value."""
        words: list[str] = []
        for name in names:
            if self.is_default(name):
                continue
            value = getattr(self, name)
            for item in value if isinstance(value, list) else [value]:
                words += [option_of(name)] if item is True else [option_of(name), str(item)]
        return words

    @property
    def files_to_write(self) -> list[Path]:
        """The files that the command writes because options name them."""
        files: list[Path] = []
        for name, option in type(self).model_fields.items():
            if any(isinstance(part, Arg) and part.names_output for part in option.metadata):
                files += map(Path, self.values_of(name))
        return files

    def is_default(self, name: str) -> bool:
        """Whether an option has its default value, or the command does not have it."""
        field = type(self).model_fields.get(name)
        return field is None or getattr(self, name) == field.default


class Arg:
    """The properties of an option that its type and default do not determine.

    Args:
        metavar: the name of its value in the help.
        positional: whether its value is given without the option's name.
        option: the option as it is typed, if its name differs from the field's.
        more: further arguments of `ArgumentParser.add_argument`.
    """

    def __init__(
        self,
        metavar: str | tuple[str, ...] = "",
        positional: bool = False,
        option: str = "",
        **more: Any,
    ):
        self.positional = positional
        self.option = option
        self.more = {"metavar": metavar, **more} if metavar else more

    @property
    def names_output(self) -> bool:
        """Whether its value is a file that the command writes."""
        return self.more.get("type") is file_to_write


JSON = "as_json"  # the attribute of --json, which every command has

AnyOptions = TypeVar("AnyOptions", bound=Options)


@dataclass(frozen=True)
class Command(Generic[AnyOptions]):
    """A subcommand of `holdfast`.

    Args:
        name: the command as it is typed.
        run: runs the command; returns its exit code, or None for 0.
        options: the class of its options.
        description: the beginning of its help.
        examples: the end of its help.
        common: the fields of the options that `--help` shows, and that `--help-all` shows before
            all others. If empty, `--help` shows every option.
        failed: the exit code if the command fails although its command line is well formed.
        malformed: the exit code if its command line is malformed.
        parser: further arguments of the command's `ArgumentParser`.
    """

    name: str
    run: Callable[[AnyOptions], int | None]
    options: type[AnyOptions]
    description: str = ""
    examples: str | None = None
    common: tuple[str, ...] = ()
    failed: int = FAILED
    malformed: int = MALFORMED
    parser: Mapping[str, Any] = field(default_factory=dict)

    def read(self, arguments: argparse.Namespace) -> AnyOptions:
        """Builds the options from the arguments that the command's parser has read."""
        values = {name: getattr(arguments, name) for name in self.options.model_fields}
        try:
            return self.options.model_validate(values)
        except ValidationError as error:
            problem = problem_of(error, self.options, values, lambda path: option_of(str(path[0])))
            raise UsageError(problem.sentence) from None


class RunFolder(argparse.Action):
    """The action of `--out` in commands that make a run: it takes a folder, and refuses a file."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        folder = Path(values)
        is_suite = folder.suffix in (".yaml", ".yml")
        if folder.is_file() or is_suite:
            why = "is a file" if folder.is_file() else f"ends in {folder.suffix}"
            hint = "name one, such as --out runs/mine."
            if is_suite and "--suite" in parser._option_string_actions:
                hint = f"did you mean --suite {values}?"
            raise UsageError(f"--out {values} {why}, and the results go into a folder; {hint}")
        setattr(namespace, self.dest, folder)


def file_to_write(text: str) -> Path:
    """The type of options that name a file to write, whose missing folders are created with it."""
    return Path(text)


@contextlib.contextmanager
def naming_new_folders(*files: Path) -> Iterator[None]:
    """Says which folders were created for these files within the context, as a path may be
    misspelt.
    """
    missing = {file.parent: file for file in files if not file.absolute().parent.exists()}
    try:
        yield
    finally:
        for folder, file in missing.items():
            if folder.exists():
                note(f"created the folder {folder} for {file.name}.")


# the name of an option's value in the help, by the option's type or action
_METAVARS = {int: "N", float: "X", RunFolder: "FOLDER"}


def add_command(
    commands: "argparse._SubParsersAction[Any]", command: Command[Any], summary: str
) -> None:
    """Adds the parser of a command; `summary` is its line in the list of commands."""
    parser = commands.add_parser(
        command.name,
        help=summary,
        description=command.description or None,
        epilog=command.examples,
        formatter_class=HelpFormatter,
        **{"add_help": not command.common, **command.parser},
    )
    if command.common:
        _add_short_help(parser, command.common)
    added = {name for name in command.common if not _is_exclusive(command.options, name)}
    for name in command.common:
        if name in added:
            _add_option(parser, name, command.options.model_fields[name])
    sections: dict[str, argparse._ActionsContainer] = {"": parser}
    for model, names in _parts_of(command.options):
        title = vars(model).get("title", "")
        if title not in sections:
            sections[title] = parser.add_argument_group(title)
        group = sections[title]
        if vars(model).get("exclusive"):
            group = group.add_mutually_exclusive_group(required=True)
        for name in names:
            if name not in added:  # a class may change the default of an option that it inherits
                _add_option(group, name, command.options.model_fields[name])
            added.add(name)
    if "prefix_chars" not in command.parser:  # else the command has no options of ours
        # only for the help: `main` removes --json from the words before they are parsed
        text = "write the results to stdout as JSON, and all other lines to stderr"
        parser.add_argument("--json", action="store_true", dest=JSON, help=text)


def _is_exclusive(options: type[Options], name: str) -> bool:
    """Whether an option excludes others, and so is added together with them."""
    return any(
        name in names and bool(vars(model).get("exclusive")) for model, names in _parts_of(options)
    )


def _add_short_help(parser: argparse.ArgumentParser, common: tuple[str, ...]) -> None:
    """Adds `--help`, which shows these options, and `--help-all`, which shows every option."""
    everything: dict[str, Any] = {"action": "help", "default": argparse.SUPPRESS}
    parser.add_argument("-h", "--help", action=_ShortHelp, common=common, help="show this help")
    parser.add_argument("--help-all", **everything, help="show every option")


class _ShortHelp(argparse.Action):
    """Prints a help that shows the common and the required options, and counts the others."""

    def __init__(self, option_strings: list[str], dest: str, common: tuple[str, ...], help: str):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)
        self._common = common

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        by_name = {action.dest: action for action in parser._actions}
        shown = [by_name[name] for name in self._common]
        shown += [action for action in parser._actions if action.required and action not in shown]
        options = [action for action in shown if action.option_strings]
        # neither shown nor hidden are --help, --help-all and --json
        hidden = len(parser._actions) - len({action.dest for action in shown}) - 3
        formatter = parser._get_formatter()
        formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
        formatter.add_text(parser.description)
        sections = {
            "positional arguments": [action for action in shown if not action.option_strings],
            "options": [*options, by_name[JSON]],
        }
        for title, actions in sections.items():
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        command = parser.prog.rpartition(" ")[2]
        formatter.add_text(f"{hidden} more options: holdfast {command} --help-all")
        formatter.add_text(parser.epilog)
        parser._print_message(formatter.format_help(), sys.stdout)
        parser.exit()


def _parts_of(model: type[Options]) -> Iterator[tuple[type[Options], list[str]]]:
    """Yields the classes that declare a command's options, in the order of the help, with these.

    A class that sets a title shows the options that it inherits in its own section too.
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


def _add_option(parser: argparse._ActionsContainer, name: str, option: FieldInfo) -> None:
    """Adds the option of a field to a parser, or to a section of its help."""
    arg = next((part for part in option.metadata if isinstance(part, Arg)), Arg())
    more = {**_arguments_for_type(option.annotation), **arg.more}
    if "action" in arg.more:
        more.pop("type", None)
    if (kind := more.get("type", more.get("action"))) in _METAVARS:
        more.setdefault("metavar", _METAVARS[kind])
    default = None if option.is_required() else option.default
    more.setdefault("help", _help_of(option, default))
    if arg.positional:
        parser.add_argument(name, **more)
        return
    if option.is_required():
        more["required"] = True
    parser.add_argument(arg.option or option_of(name), dest=name, default=default, **more)


def _help_of(option: FieldInfo, default: Any) -> str:
    """The help of an option, with its default unless its docstring explains it."""
    text = " ".join((option.description or "").split())
    if default is None or default is False or default == "default" or "(default" in text:
        return text
    suffix = f"default: {default:g}" if isinstance(default, float) else f"default: {default}"
    return f"{text} ({suffix})" if text else suffix


def option_of(name: str) -> str:
    """The option of a field as it is typed, such as `--max-new-tokens`."""
    return f"--{name.replace('_', '-')}"


def _arguments_for_type(annotation: Any) -> dict[str, Any]:
    """The arguments of `add_argument` that follow from a field's type."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is list:
        return {"action": "append", **_arguments_for_type(get_args(annotation)[0])}
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation)}
    if annotation is bool:
        return {"action": "store_true"}
    return {"type": annotation} if annotation in (int, float, Path) else {}
