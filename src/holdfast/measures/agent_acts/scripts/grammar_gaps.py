"""Makes up for what tree-sitter's grammar of Bash does not read.

For example:

    cat <<A - <<B ...       ->  cat <<< ... - <<< ..., as only one here-document may begin in a line
    cat <<EOF with `make`   ->  `make`, which the grammar takes as text
    if git push; "          ->  `git push`, found without a parser, as the script is not valid
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.commands.command_readings import readings_of
from holdfast.measures.agent_acts.commands.shell_commands import Reading, ShellCommand
from holdfast.measures.agent_acts.scripts.shell_state import ShellState
from holdfast.measures.agent_acts.scripts.shell_words import document_text

if TYPE_CHECKING:
    from tree_sitter import Node

# <<EOF, <<-EOF and <<'EOF', not <<<
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)(?P=quote)?(?!<)")
_BACKTICKS = re.compile(r"(?<!\\)`([^`]*)`")  # `make`
_OPERATORS = re.compile(r"[;&|\n()]+")  # between commands
_KEYWORDS = ("then", "do", "else", "!")  # before a command


def with_here_strings(script: str) -> str:
    """Returns a script with here-strings where a line begins several here-documents."""
    if "<<" not in script:
        return script
    unread = script.split("\n")
    rewritten: list[str] = []
    while unread:
        line = unread.pop(0)
        starts = [*_HERE_DOCUMENT.finditer(line)]
        if len(starts) > 1:
            for start in starts:
                text = _take_document(unread, start["end"])
                escaped = '"{}"'.format(re.sub(r'(["\\])', r"\\\1", text))
                quoted = shlex.quote(text) if start["quote"] else escaped
                line = line.replace(start[0], f"<<< {quoted}", 1)
        rewritten.append(line)
    return "\n".join(rewritten)


def _take_document(lines: list[str], end: str) -> str:
    """Removes the lines of a here-document, with its end, from the first lines, and returns it."""
    ends = (number for number, line in enumerate(lines) if line.lstrip("\t") == end)
    length = next(ends, len(lines))
    text = "\n".join(lines[:length])
    del lines[: length + 1]
    return text


def backticks_in(redirects: Sequence["Node"], shell: ShellState) -> Iterator[str]:
    """Yields the scripts between backticks in here-documents whose end is not quoted."""
    for redirect in redirects:
        starts = [child for child in redirect.children if child.type == "heredoc_start"]
        if redirect.type == "heredoc_redirect" and starts and shell.text(starts[0]).isidentifier():
            yield from _BACKTICKS.findall(document_text(redirect, shell) or "")


def commands_without_parser(script: str) -> Iterator[ShellCommand]:
    """Yields the commands of a script that is not valid Bash, split at operators and lines."""
    for part in _OPERATORS.split(script):
        try:
            words = shlex.split(part)
        except ValueError:  # a quotation mark that is not closed
            words = part.split()
        words = [word for word in words if not re.match(r"\w+=", word)]
        while words and words[0] in _KEYWORDS:
            words.pop(0)
        if words:
            yield ShellCommand(readings_of(Reading(tuple(words))))
