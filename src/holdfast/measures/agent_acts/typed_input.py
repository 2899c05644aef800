"""Joins the lines that an agent types into an open shell, call by call.

For example:

    write_stdin("git pu"), write_stdin("sh\\n")   ->  the script "git push\\n", by the second call
    Bash("python"), write_stdin("import os\\n")   ->  no script: Python reads what is typed
"""

from collections.abc import Sequence

from holdfast.measures.agent_acts.agent_tools import is_typed
from holdfast.measures.turns import ToolCall

# programs that take what is typed into them as text, not as commands of a shell
_READ_TEXT = frozenset(
    "cat tee ed ex vi vim nvim nano emacs less more sort wc jq sed awk psql mysql sqlite3 mongosh"
    " redis-cli python python3 ipython node irb".split()
)
# how many words that are no option these programs have when they read what is typed: with one more,
# they read a file, and end
_WORDS_WITHOUT_FILE = {"cat": 0, "sort": 0, "wc": 0, "jq": 1, "sed": 1, "awk": 1}


class TypedInput:
    """The input typed so far, and the program that reads it, while calls are gone through."""

    def __init__(self) -> None:
        self._reader = ""  # the program that reads the input; "" for the shell
        self._unfinished = ""  # the line that was typed without its end

    def complete(self, script: str, call: ToolCall, following: ToolCall | None) -> str:
        """Returns the script that the shell runs at a call; "" if it runs none.

        Args:
            script: that of the call alone.
            following: the call after it, which may type the rest of the line.
        """
        if not is_typed(call):
            self._reader = "" if script else self._reader
            return script
        script = "" if self._reader in _READ_TEXT else self._unfinished + script
        self._unfinished = ""
        if not script.endswith("\n") and following is not None and is_typed(following):
            self._unfinished = script
            return ""
        return script

    def note_program(self, words: Sequence[str]) -> None:
        """Takes note of a command that runs, which reads what is typed next."""
        self._reader = "" if _reads_files(words) else words[0]


def _reads_files(words: Sequence[str]) -> bool:
    """Whether a command reads files instead of what is typed, such as `cat AGENTS.md`."""
    most = _WORDS_WITHOUT_FILE.get(words[0])
    return most is not None and sum(not word.startswith("-") for word in words[1:]) > most
