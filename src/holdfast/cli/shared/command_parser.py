"""Builds the parser of a command from the class of its options (see `command`)."""

from __future__ import annotations

import argparse
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from holdfast.cli.shared.argument_parser import HelpFormatter
from holdfast.cli.shared.command import Arg, Command, Options, RunFolder, option_of

JSON = "as_json"  # the attribute of --json, which every command has
# the name of an option's value in the help, by the option's type or action
_METAVARS = {int: "N", float: "X", RunFolder: "FOLDER"}


def add_command(
    commands: argparse._SubParsersAction[Any], command: Command[Any], summary: str
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
    _add_options(parser, command)
    if "prefix_chars" not in command.parser:  # else the command has no options of ours
        # only for the help: `main` removes --json from the words before they are parsed
        text = "write the results to stdout as JSON, and all other lines to stderr"
        parser.add_argument("--json", action="store_true", dest=JSON, help=text)


# --- The options


class _DeclaredOptions(NamedTuple):
    """The options that one class declares."""

    names: list[str]
    title: str  # the section of the help that shows them; "" is the first section
    is_exclusive: bool  # whether exactly one of them must be given


def _declared_options(options: type[Options]) -> Iterator[_DeclaredOptions]:
    """A command's options, class by class, in the order of the help.

    A class that sets a title shows the options that it inherits in its own section, too.
    """
    not_inherited = vars(options)
    title = not_inherited.get("title", "")
    is_exclusive = bool(not_inherited.get("exclusive"))
    if "title" in not_inherited:
        yield _DeclaredOptions(list(options.model_fields), title, is_exclusive)
        return
    for base in options.__bases__:
        if issubclass(base, Options) and base is not Options:
            yield from _declared_options(base)
    annotated = inspect.get_annotations(options)  # its own, without those of its bases
    if names := [name for name in annotated if name in options.model_fields]:
        yield _DeclaredOptions(names, title, is_exclusive)


def _add_options(parser: argparse.ArgumentParser, command: Command[Any]) -> None:
    """Adds a command's options to its parser: the common ones, then those of each section."""
    fields = command.options.model_fields
    classes = list(_declared_options(command.options))
    # options that exclude one another are added together, below
    exclusive = {name for declared in classes if declared.is_exclusive for name in declared.names}
    added = set(command.common) - exclusive
    for name in command.common:
        if name in added:
            _add_option(parser, name, fields[name])
    sections: dict[str, argparse._ActionsContainer] = {"": parser}
    for names, title, is_exclusive in classes:
        if title not in sections:
            sections[title] = parser.add_argument_group(title)
        section = sections[title]
        if is_exclusive:
            section = section.add_mutually_exclusive_group(required=True)
        for name in names:
            if name not in added:  # a class may change the default of an option that it inherits
                _add_option(section, name, fields[name])
                added.add(name)


def _add_option(section: argparse._ActionsContainer, name: str, option: FieldInfo) -> None:
    """Adds the option of a field to a parser, or to a section of its help."""
    arg = next((part for part in option.metadata if isinstance(part, Arg)), Arg())
    keywords = {**_keywords_for_type(option.annotation), **arg.keywords}
    if "action" in arg.keywords:
        keywords.pop("type", None)
    kind = keywords.get("type", keywords.get("action"))
    if kind in _METAVARS:
        keywords.setdefault("metavar", _METAVARS[kind])
    default = None if option.is_required() else option.default
    keywords.setdefault("help", _help_text(option, default))
    if arg.positional:
        section.add_argument(name, **keywords)
        return
    if option.is_required():
        keywords["required"] = True
    section.add_argument(arg.option or option_of(name), dest=name, default=default, **keywords)


def _keywords_for_type(annotation: Any) -> dict[str, Any]:
    """The keyword arguments of `add_argument` that follow from a field's type.

    Such as {"action": "append", "type": Path} for `list[Path] | None`.
    """
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is list:
        return {"action": "append", **_keywords_for_type(get_args(annotation)[0])}
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation)}
    if annotation is bool:
        return {"action": "store_true"}
    return {"type": annotation} if annotation in (int, float, Path) else {}


def _help_text(option: FieldInfo, default: Any) -> str:
    """The help of an option, with its default unless its docstring explains it."""
    text = " ".join((option.description or "").split())
    if default is None or default is False or default == "default" or "(default" in text:
        return text
    suffix = f"default: {default:g}" if isinstance(default, float) else f"default: {default}"
    return f"{text} ({suffix})" if text else suffix


# --- The short help


def _add_short_help(parser: argparse.ArgumentParser, common: tuple[str, ...]) -> None:
    """Adds `--help`, which shows these options, and `--help-all`, which shows every option."""
    parser.add_argument("-h", "--help", action=_ShortHelp, common=common, help="show this help")
    parser.add_argument(
        "--help-all", action="help", default=argparse.SUPPRESS, help="show every option"
    )


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
        # neither shown nor hidden are --help, --help-all and --json
        hidden = len(parser._actions) - len({action.dest for action in shown}) - 3
        sections = {
            "positional arguments": [action for action in shown if not action.option_strings],
            "options": [*(action for action in shown if action.option_strings), by_name[JSON]],
        }
        command = parser.prog.rpartition(" ")[2]
        formatter = parser._get_formatter()
        formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups)
        formatter.add_text(parser.description)
        for title, actions in sections.items():
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(f"{hidden} more options: holdfast {command} --help-all")
        formatter.add_text(parser.epilog)
        parser._print_message(formatter.format_help(), sys.stdout)
        parser.exit()
