"""The rule that commands are run on an occasion: before an event, or after a change of files."""

import re
from collections.abc import Iterable, Sequence

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import codes_in
from holdfast.drafting.grammar.commands import (
    is_command,
    is_runnable,
    parts_of,
    required_pattern,
    without_arguments,
    without_placeholder,
)
from holdfast.drafting.grammar.occasions import BeforeEvent, Occasion
from holdfast.drafting.grammar.path_globs import glob_argument

_MAX_COMMANDS = 8  # a code block with more commands is a script rather than a list of steps
_PREPARES = re.compile(r"(?:cd|source|export) ")  # what only leads to a command
_OFFERS_ANOTHER = re.compile(r"` \(or (?!equivalent|similar)")
_COMMITS = re.compile(r"\s*git (?:add|commit|push)\b")


def listed_commands(text: str) -> list[str]:
    """The code spans of a list; [] if one of them would do, as in "`make lint` or `make check`"."""
    is_choice = re.search(r"`,? or `", text) is not None
    return [] if is_choice else codes_in(text)


def offers_another(text: str) -> bool:
    """Whether a text offers another command in brackets: "`make test` (or `make check`)"."""
    return _OFFERS_ANOTHER.search(text) is not None


def require(commands: Iterable[str], occasion: Occasion, *, are_run: bool = False) -> list[Draft]:
    """Requires each command on an occasion, with one rule per command; [] if they are too many, or
    if one may not be a command.

    Args:
        commands: as they are written, perhaps several on one line: `make lint && make test`.
        are_run: whether the text says that they are run, so that a plain word is a command too.
    """
    parts = [_without_placeholder(part) for command in commands for part in parts_of(command)]
    parts = [without_arguments(part) for part in parts if not _PREPARES.match(part)]
    if not 1 <= len(parts) <= _MAX_COMMANDS:
        return []
    if not all(_is_step(part, is_run=are_run) for part in parts):
        return []
    patterns = dict.fromkeys(map(required_pattern, parts))
    if isinstance(occasion, BeforeEvent):
        if any(re.match(occasion.commands, part) for part in parts):
            return []  # "when committing, use `git commit -s`" is about the commit itself
        return [_runs_before(pattern, occasion.commands) for pattern in patterns]
    return [_runs_after(pattern, occasion.files) for pattern in patterns]


def require_block(block: Sequence[str], occasion: Occasion) -> list[Draft]:
    """A rule for each command of a code block, up to the commit or push that it is for."""
    commands: list[str] = []
    for line in _joined_lines(block):
        if isinstance(occasion, BeforeEvent) and _COMMITS.match(line):
            break
        commands += parts_of(line)
    return require(commands, occasion) if len(commands) <= _MAX_COMMANDS else []


def _joined_lines(block: Sequence[str]) -> list[str]:
    """The lines of a code block; a line that ends in a backslash is joined with the next."""
    return re.sub(r"\s*\\\n\s*", " ", "\n".join(block)).split("\n")


def _without_placeholder(text: str) -> str:
    """A command without placeholders at its end, if more than its program is left."""
    plain = without_placeholder(text)
    return plain if " " in plain else text


def _is_step(text: str, *, is_run: bool) -> bool:
    """Whether a code span is a command rather than a file or a plain word."""
    is_file = re.search(r"^[^ ]+\.(?!sh$|py$|js$|mjs$)\w+$|^[^ ]+/$", text)
    is_word = re.fullmatch(r"[\w-]+", text) and not is_command(text)
    return is_runnable(text) and not is_file and (is_run or not is_word)


def _runs_before(command: str, event: str) -> Draft:
    return Draft("command", "gate", measure("runs_before", first=command, then=event))


def _runs_after(command: str, files: Sequence[str]) -> Draft:
    spec = measure("runs_after", changed=glob_argument(files), run=command)
    return Draft("command", "requirement", spec)
