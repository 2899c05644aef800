"""The measures that a model may propose for a line of a rules file, in words for the model.

"Customers should not hear the word refund from you."
-> never_contains: "a reply has none of these `words`", with examples that are replies
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.measures.rule_kinds import Polarity, RuleKind

Arguments = Mapping[str, Any]
ExampleEntry = str | dict[str, Any]  # a reply, or a turn of a suite


@dataclass(frozen=True)
class KindOfExample:
    """A kind of example that a model writes for a rule.

    Args:
        name: for the model, such as "shell commands".
        entry: makes an entry for a suite from the model's text and the measure's arguments.
    """

    name: str
    entry: Callable[[str, Arguments], ExampleEntry]


@dataclass(frozen=True)
class Proposal:
    """How a model proposes a rule with a measure.

    Args:
        meaning: explains the measure to the model.
        arguments: the names of the arguments that the model chooses.
        examples: the kind of examples that it writes, which follow or break the rule.
    """

    kind: RuleKind
    polarity: Polarity
    meaning: str
    arguments: tuple[str, ...]
    examples: KindOfExample


def _write_file(path: str, content: str) -> ExampleEntry:
    """Returns a turn that writes a file."""
    return {"calls": [{"tool": "Write", "arguments": {"file_path": path, "content": content}}]}


def _path_like(glob: str) -> str:
    """Returns a path that matches a glob: a.py for **/*.py."""
    return glob.replace("**/", "").replace("*", "a")


_REPLIES = KindOfExample("replies", lambda text, arguments: text)
_COMMANDS = KindOfExample("shell commands", lambda text, arguments: {"run": text})
_MESSAGES = KindOfExample(
    "messages", lambda text, arguments: {"run": f"git commit -m {shlex.quote(text)}"}
)
_PATHS = KindOfExample("paths", lambda text, arguments: _write_file(text, "x"))
_CODE = KindOfExample(
    "code", lambda text, arguments: _write_file(_path_like(str(arguments["files"])), text)
)

# by the name of the measure, in the order in which the model reads them
PROPOSALS: Mapping[str, Proposal] = {
    "at_most_words": Proposal(
        kind="length",
        polarity="requirement",
        meaning="a reply has at most `count` words",
        arguments=("count",),
        examples=_REPLIES,
    ),
    "at_most_sentences": Proposal(
        kind="length",
        polarity="requirement",
        meaning="a reply has at most `count` sentences",
        arguments=("count",),
        examples=_REPLIES,
    ),
    "contains": Proposal(
        kind="format",
        polarity="requirement",
        meaning="a reply has all of these `words`",
        arguments=("words",),
        examples=_REPLIES,
    ),
    "never_contains": Proposal(
        kind="forbidden",
        polarity="prohibition",
        meaning="a reply has none of these `words`",
        arguments=("words",),
        examples=_REPLIES,
    ),
    "starts_with": Proposal(
        kind="opening",
        polarity="requirement",
        meaning="a reply begins with `word`",
        arguments=("word",),
        examples=_REPLIES,
    ),
    "ends_with": Proposal(
        kind="closing",
        polarity="requirement",
        meaning="a reply ends with `word`",
        arguments=("word",),
        examples=_REPLIES,
    ),
    "command_not_run": Proposal(
        kind="command",
        polarity="prohibition",
        meaning="a shell command that begins with `command` is never run",
        arguments=("command",),
        examples=_COMMANDS,
    ),
    "runs_before": Proposal(
        kind="command",
        polarity="requirement",
        meaning="the shell command `first` is run before `then`",
        arguments=("first", "then"),
        examples=_COMMANDS,
    ),
    "file_not_touched": Proposal(
        kind="file",
        polarity="prohibition",
        meaning="files with the path `path` (with *) are not changed",
        arguments=("path",),
        examples=_PATHS,
    ),
    "code_not_written": Proposal(
        kind="code",
        polarity="prohibition",
        meaning="code in `files` (such as *.py) never has the regular expression `pattern`",
        arguments=("pattern", "files"),
        examples=_CODE,
    ),
    "commit_message": Proposal(
        kind="commit",
        polarity="requirement",
        meaning="a commit message matches the regular expression `pattern`",
        arguments=("pattern",),
        examples=_MESSAGES,
    ),
}
