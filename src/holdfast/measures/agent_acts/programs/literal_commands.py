"""Finds the commands that a program runs as literal text, in Perl, Ruby, PHP, Lua, AWK or Expect.

For example:

    system("git push")        ->  git push
    exec 'git', 'push'        ->  git push
    say "call system('ls')"   ->  none, as the call is within a text
"""

import re
import shlex
from collections.abc import Iterator

from holdfast.measures.agent_acts.edits.comments import without_comments

# names of files by which the marks of comments are known
_FILE_NAMES = {"perl": "a.pl", "ruby": "a.rb", "lua": "a.lua", "php": "a.php"}
_QUOTED = re.compile(r""" "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' """, re.VERBOSE)
_RUNS_TEXT = re.compile(
    r"""
    # system("git push"), exec 'git', 'push', Open3.capture2e("git push"), qx'git push'
    (?:
        (?:(?<![\w.>:$@]) | \b(?:Kernel|Process|IO|Open3|PTY|os|io)\.)
        (?:system|exec|shell_exec|passthru|popen|proc_open|spawn|capture2e?)\s*\(?\s*(?:\[\s*)?
        | \bos\.execute\s*\(?\s* | \bqx | %x
    )
    (?P<mark>["'])(?P<text>(?:\\.|(?!(?P=mark)).)+)(?P=mark)
    (?P<others>(?:\s*,\s*["'][^"'\n]*["'])*)
    # qx(git push), %x{git push}
    | (?:\bqx|%x)\s*[({\[](?P<quoted>[^)}\]]+)[)}\]]
    # `git push`, x = `git push`, puts `git push`
    | (?:^|[=({\[;,]|\b(?:return|print|puts|echo|p|say))\s*`(?P<ticks>[^`]+)`
    # spawn git push, of Expect
    | ^\s*spawn\s+(?:-\w+\s+)*(?P<spawned>[^;\n]+) | ;\s*spawn\s+(?P<also>[^;\n]+)
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_WHOLE_COMMANDS = ("text", "quoted", "ticks", "spawned", "also")  # groups of this pattern
_LITERAL = re.compile(r"""\s*(['"])(?P<text>(?:\\.|(?!\1).)*)\1""")
_SILENCED_CALL = re.compile(r"@(?=\w+\s*\()")  # @exec("ls") of PHP, which hides its errors


def commands_run_by(code: str, language: str) -> Iterator[str]:
    """Yields the shell commands that a program runs.

    Args:
        language: the program that runs it, such as "perl".
    """
    code = without_comments(code, _FILE_NAMES.get(language, ""))
    if language == "php":
        code = _SILENCED_CALL.sub("", code)
    quoted = [text.span() for text in _QUOTED.finditer(code)]
    for call in _RUNS_TEXT.finditer(code):
        is_quoted = any(start < call.start() < end for start, end in quoted)
        if call["text"] is None or not is_quoted:
            yield _command_of(call)


def _command_of(call: re.Match[str]) -> str:
    """Returns the command that a match of `_RUNS_TEXT` runs."""
    if call["others"]:
        words = [word["text"] for word in _LITERAL.finditer(call["others"])]
        return " ".join([call["text"], shlex.join(words)])
    return next(call[name].strip() for name in _WHOLE_COMMANDS if call[name] is not None)
