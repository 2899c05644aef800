"""Measures of what an agent did in a turn: the tools it called, the commands it ran, the files it
changed. `holdfast logs` scores them; a reply to a probe has no tool calls.

Each returns None if the turn gave no occasion to follow or break its rule.
"""

import fnmatch
import itertools
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Annotated, Any

from holdfast.errors import UsageError, cut
from holdfast.measures.arguments import takes
from holdfast.measures.patterns import compiled, matches
from holdfast.measures.registry import Score, WhenCut, measure
from holdfast.measures.shell import Command, Reading, read_script
from holdfast.measures.turns import AssistantTurn, ToolCall

Pattern = Annotated[str, takes("a regular expression", "git push")]
Arguments = Annotated[
    Mapping[str, Any],
    takes("regular expressions by the name of an argument", {"path": r"\.py$"}, min_length=1),
]
Schema = Annotated[Mapping[str, Any], takes("a JSON Schema", {"required": ["path"]}, min_length=1)]
Glob = Annotated[str, takes("a path with * and ?", "migrations/*", pattern=r"\S")]


def commands_of(calls: Sequence[ToolCall]) -> list[Command]:
    """Every shell command among the calls, also those within other commands."""
    scripts = (_script_of(call) for call in calls)
    return [command for script in scripts if script for command in _read_script(script)]


_read_script = lru_cache(maxsize=1024)(read_script)  # several rules read the same turns


def _script_of(call: ToolCall) -> str:
    for name in ("command", "cmd", "script"):
        value = call.arguments.get(name)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            return shlex.join(value)
        if isinstance(value, str):
            return value
    return ""


def _matching(pattern: str, command: Command) -> bool:
    return any(
        matches(rf"\A(?:{pattern})", " ".join(reading.words))
        for reading in (*command.readings, *command.around)
        if reading.suits(pattern)
    )


_PATHS = (
    *("file_path", "filePath", "path", "filename", "notebook_path", "target_file"),
    "relativeWorkspacePath",
)
# whole words of a tool's name, as in read_file, ReadFile and mcp__files__read
_READERS = re.compile(
    r"(?:\b|_|(?<=[a-z])(?=[A-Z]))(?i:read|view|open|list|ls|glob|grep|search|find|fetch|get|cat)"
    r"(?![a-z])"
)
_WRITERS = {"rm", "mv", "cp", "tee", "touch", "truncate", "chmod", "ln", "install", "patch"}
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.M)


def files_changed(calls: Sequence[ToolCall]) -> list[str]:
    """The paths that calls write, according to arguments, patch headers and shell commands."""
    paths = []
    for call in calls:
        for value in call.arguments.values():
            if isinstance(value, str) and "*** " in value:
                paths += [a or b for a, b in _PATCHED.findall(value)]
        if not _READERS.search(call.name):
            values = (call.arguments.get(name) for name in _PATHS)
            paths += [value for value in values if isinstance(value, str)]
    for command in commands_of(calls):
        paths += command.writes
        paths += _written_by(command)
    return list(dict.fromkeys(paths))


def _written_by(command: Command) -> Iterator[str]:
    words = command.innermost
    program = words[0]
    options = [word for word in words[1:] if word.startswith("-")]
    in_place = any(re.match("-[a-z]*i|--in-place", option) for option in options)
    if program in _WRITERS or (program in ("sed", "perl") and in_place):
        paths = [word for word in words[1:] if word not in options]
        yield from paths[-1:] if program in ("cp", "ln", "install") else paths


def _among(
    calls: Sequence[ToolCall], name: str, arguments: Mapping[str, Any] | None, schema: Any
) -> bool:
    return any(
        fnmatch.fnmatchcase(call.name, name)
        and all(
            key in call.arguments and matches(str(pattern), _as_text(call.arguments[key]))
            for key, pattern in (arguments or {}).items()
        )
        and (schema is None or _validator(json.dumps(schema)).is_valid(dict(call.arguments)))
        for call in calls
    )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@cache
def _validator(schema: str) -> Any:
    """The validator of a JSON Schema, given as text; a `UsageError` if it is invalid."""
    import jsonschema

    value = json.loads(schema)
    try:
        kind = jsonschema.validators.validator_for(value)
        kind.check_schema(value)
    except jsonschema.SchemaError as error:
        raise UsageError(
            f"The JSON Schema {schema[:60]} is not valid ({error.message}); correct it."
        ) from error
    return kind(value)


def _check_call(
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    arguments_schema: Mapping[str, Any] | None = None,
) -> None:
    for pattern in (arguments or {}).values():
        compiled(str(pattern), "")
    if arguments_schema is not None:
        _validator(json.dumps(arguments_schema))


@measure(check=_check_call, when_cut=WhenCut.IF_KEPT)
def tool_called(
    turn: AssistantTurn,
    tool: Glob,
    arguments: Arguments | None = None,
    arguments_schema: Schema | None = None,
) -> Score | None:
    """1 if a tool of this name (with * and ?) was called, with arguments that match."""
    done = _among(turn.calls, tool, arguments, arguments_schema)
    return Score(float(done), f"{tool} was {'called' if done else 'not called'}")


@measure(check=_check_call, when_cut=WhenCut.IF_BROKEN)
def tool_not_called(
    turn: AssistantTurn,
    tool: Glob,
    arguments: Arguments | None = None,
    arguments_schema: Schema | None = None,
) -> Score | None:
    """0 if a tool of this name (with * and ?) was called, with arguments that match; turns without
    any tool call do not count."""
    if not turn.calls:
        return None
    called = tool_called(turn, tool, arguments, arguments_schema)
    return None if called is None else Score(1.0 - called.value, called.reason)


@measure(check=lambda command: compiled(command, ""), when_cut=WhenCut.IF_BROKEN)
def command_not_run(turn: AssistantTurn, command: Pattern) -> Score | None:
    """0 if a shell command begins with a match of the regular expression; turns without a command
    do not count."""
    if not commands_of(turn.calls):
        return None
    run = command_run(turn, command)
    return None if run is None else Score(1.0 - run.value, run.reason)


@measure(check=lambda command: compiled(command, ""), when_cut=WhenCut.IF_KEPT)
def command_run(turn: AssistantTurn, command: Pattern) -> Score | None:
    """1 if a shell command begins with a match of the regular expression."""
    run = next((item for item in commands_of(turn.calls) if _matching(command, item)), None)
    return Score(0.0, "not run") if run is None else Score(1.0, f"ran {_short(run.words)}")


@measure(when_cut=WhenCut.IF_BROKEN)
def file_not_touched(turn: AssistantTurn, path: Glob) -> Score | None:
    """0 if a file with this path (* and ? match any text, also /) was written, moved or deleted;
    turns that change no file do not count."""
    changed = files_changed(turn.calls)
    if not changed:
        return None
    globs = (path, f"*/{path}")
    touched = next((n for n in changed if any(fnmatch.fnmatchcase(n, g) for g in globs)), None)
    return Score(1.0, "not touched") if touched is None else Score(0.0, f"changed {touched}")


@measure(
    check=lambda first, then: (compiled(first, ""), compiled(then, "")),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def runs_before(turn: AssistantTurn, first: Pattern, then: Pattern) -> Score | None:
    """1 if a command that begins with a match of `first` came before every one that begins with a
    match of `then`, and since the previous such one; turns without a `then` command do not count.
    Calls of other tools are matched as the tool's name and its arguments in JSON."""
    commands = list(_events(turn.calls))
    if not any(_matching(then, command) for command in commands):
        return None
    ready, kept = _came_last(turn.earlier, first, then), list[bool]()
    for command in commands:
        if _matching(first, command):
            ready = True
        if _matching(then, command):
            kept.append(ready)
            ready = False
    return Score(
        float(all(kept)), f"{first} {'came' if all(kept) else 'did not come'} before {then}"
    )


def _came_last(calls: Sequence[ToolCall], first: str, then: str) -> bool:
    """Whether a command that matches `first` came after the last that matches `then`."""
    for call in reversed(calls):  # of a long session, only its end has to be parsed
        for command in reversed(list(_events([call]))):
            if _matching(then, command):
                return False
            if _matching(first, command):
                return True
    return False


def _events(calls: Sequence[ToolCall]) -> Iterator[Command]:
    for call in calls:
        if _script_of(call):
            yield from commands_of([call])
        else:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
            yield Command((Reading((call.name, arguments)),))


@measure(check=lambda pattern: compiled(pattern, ""), when_cut=WhenCut.IF_BROKEN)
def commit_message(turn: AssistantTurn, pattern: Pattern) -> Score | None:
    """Share of the turn's commit messages that match the regular expression; turns without a
    commit do not count."""
    messages = list(_commit_messages(turn.calls))
    if not messages:
        return None
    kept = [matches(pattern, message) for message in messages]
    broken = next((m for m, ok in zip(messages, kept, strict=True) if not ok), None)
    reason = "all messages match" if broken is None else f"{_short([broken])} does not match"
    return Score(sum(kept) / len(kept), reason)


def _commit_messages(calls: Sequence[ToolCall]) -> Iterator[str]:
    for command in commands_of(calls):
        words = command.innermost
        if words[0] == "git" and "commit" in words:
            message = next(_messages_among(words), None)
            if message is not None:
                yield message.strip()


def _messages_among(words: Sequence[str]) -> Iterator[str]:
    for before, word in itertools.pairwise(words):
        # the file of -F is a text if a here-document gave it
        is_text = before in ("-F", "--file") and any(character.isspace() for character in word)
        if is_text or before == "--message" or re.fullmatch("-[a-zA-Z]*m", before):
            yield word
        elif word.startswith("--message="):
            yield word.partition("=")[2]


def _short(words: Sequence[str]) -> str:
    return repr(cut(" ".join(" ".join(words).split()), 60))
