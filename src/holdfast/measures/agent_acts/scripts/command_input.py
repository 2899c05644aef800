"""The texts that a command reads: from a here-document, a pipe, or a file that was written before.

For example:

    echo 'git push' | bash         ->  the input of `bash` is "git push"
    git commit -F - <<< 'fix: b'   ->  git commit -F 'fix: b'
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.commands.inner_scripts import SHELLS
from holdfast.measures.agent_acts.scripts.command_output import known_output
from holdfast.measures.agent_acts.scripts.command_parts import CommandParts, first_document
from holdfast.measures.agent_acts.scripts.shell_state import ShellState
from holdfast.measures.agent_acts.scripts.shell_words import words_of

if TYPE_CHECKING:
    from tree_sitter import Node

# words of commands that read what is piped into them
_READ_INPUT = frozenset(
    (
        *("tee", "-", "--file=-", "--body-file=-", "apply", "patch", "ssh", "su", "sudo", "xargs"),
        *("at", "batch"),
        *SHELLS,
    )
)
# options whose argument is a file with a text, such as a commit's message or a pull request's body
_TEXT_FILE_OPTIONS = ("-F", "--file", "--body-file", "--notes-file", "--template")
_STANDARD_INPUT = ("-", "/dev/stdin")
_JOINED_INPUT_OPTION = re.compile(r"(?P<option>-[a-zA-Z]*F)(?P<file>-|/dev/stdin)")  # -F-, -aF-


def input_of(node: "Node", command: CommandParts, shell: ShellState) -> str | None:
    """Returns the text that a command reads; None if it is not known.

    It is that of a here-document, a pipe, a file, or a patch that the command names.
    """
    words = command.words
    text = first_document(command.redirect_nodes, shell)
    if text is None and not _READ_INPUT.isdisjoint(words):
        text = _piped_into(node, shell)
    if text is None and command.redirections[:1] == ("<",):
        text = shell.read_file(command.redirections[1])
    if text is None and (words[0] == "patch" or words[:2] == ["git", "apply"]):
        patches = map(shell.read_file, words[1:])
        text = next((patch for patch in patches if patch is not None), None)
    return text


def _piped_into(node: "Node", shell: ShellState) -> str | None:
    """Returns the output of the command whose pipe leads to this one; None if it is not known."""
    source = _source_of_pipe(node)
    if source is None:
        return None
    document = None
    if source.type == "redirected_statement":
        redirects = [child for child in source.children if child.type.endswith("_redirect")]
        if any(redirect.type == "file_redirect" for redirect in redirects):
            return None  # its output goes to a file
        document = first_document(redirects, shell)
        source = source.children[0]
    if source.type != "command":
        return None
    words = [word for child in source.children for word in words_of(child, shell)]
    return known_output(words, document)


def _source_of_pipe(node: "Node") -> "Node | None":
    """Returns the statement whose output is piped into a command; None without a pipe."""
    if node.parent is not None and node.parent.type == "redirected_statement":
        node = node.parent
    pipeline = node.parent
    if pipeline is None or pipeline.type != "pipeline":
        return None
    before = [child for child in pipeline.named_children if child.end_byte <= node.start_byte]
    if before:
        return before[-1]
    if pipeline.parent is not None and pipeline.parent.type == "heredoc_redirect":
        return pipeline.parent.parent  # the grammar has the pipeline inside the redirection
    return None


def with_texts_of_files(
    words: Sequence[str], from_input: str | None, shell: ShellState
) -> Iterator[str]:
    """Yields the words of a command, with the texts of files in place of their names.

    Options such as `git commit -F` name the files; those that are not known stay.

    Args:
        from_input: the text of the command's input.
    """
    before = ""
    for word in words:
        option, equals, value = word.partition("=")
        file = ""
        start = ""  # of the word, which stays before the text
        if equals and option in _TEXT_FILE_OPTIONS:
            file, start = value, f"{option}="
        elif before in _TEXT_FILE_OPTIONS:
            file = word
        elif joined := _JOINED_INPUT_OPTION.fullmatch(word):
            file, start = joined["file"], joined["option"]
        text = from_input if file in _STANDARD_INPUT else shell.read_file(file)
        yield word if not file or text is None else start + text
        before = word
