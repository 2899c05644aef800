"""Finds the program in a shell command, and reads what it runs and writes.

    python3 -c "import os; os.remove('a.txt')"         ->  deletes a.txt
    python3 - <<< "os.rename('a.txt', 'b.txt')"        ->  renames a.txt
    perl -e 'system("git push")'                       ->  runs `git push`

Python is parsed, JavaScript is read by its calls. Of other languages, only the commands are found
that a program runs as a literal text.
"""

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise

from holdfast.measures.agent_acts.edits.comments import without_comments
from holdfast.measures.agent_acts.programs.javascript_programs import read_javascript
from holdfast.measures.agent_acts.programs.program_effects import ProgramEffects
from holdfast.measures.agent_acts.programs.python_programs import read_python

_PYTHON = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?|py")
_JAVASCRIPT = ("node", "nodejs", "bun", "deno")
_MAX_CHARACTERS = 50_000  # of a program that is read
_CODE_OPTIONS = ("-c", "-e", "--eval", "-p", "--print")
_VALUED_OF_PYTHON = ("-X", "-W")
_EVALUATES = {"deno": "eval"}  # a subcommand whose argument is a program
_AWK = ("awk", "gawk", "mawk")
# other languages, by their programs: the options whose value is a program
_BY_PATTERN = {
    **dict.fromkeys(("perl", "ruby"), "-[a-zA-Z0-9]*[eE]"),
    **{"php": "-r|-B|-R|-E", "lua": "-e", "expect": "-c", "tclsh": "-c"},
    **dict.fromkeys(_AWK, ""),
}


def is_python(program: str) -> bool:
    """Whether a program is an interpreter of Python."""
    return _PYTHON.fullmatch(program) is not None


def file_run_by(words: Sequence[str]) -> str:
    """Returns the file of a program that an interpreter runs; "" if its text is an argument, or the
    input, as of `python - a.txt`.
    """
    program = words[0]
    is_known = is_python(program) or program in (*_JAVASCRIPT, *_BY_PATTERN)
    if not is_known or program in _AWK or any(_is_code_option(program, w) for w in words[1:]):
        return ""
    operands = words[1:] if not is_python(program) else _without_options_of_python(words[1:])
    first = next((word for word in operands if word == "-" or not word.startswith("-")), "")
    return "" if first == "-" else first


def _without_options_of_python(words: Sequence[str]) -> Sequence[str]:
    """Returns the words without options such as `-X dev`, whose value is no file."""
    pairs = pairwise(["", *words])
    return [w for before, w in pairs if not {before, w} & {*_VALUED_OF_PYTHON}]


def read_program(words: Sequence[str], from_input: str | None) -> ProgramEffects:
    """Reads the program in a command such as `python3 -c CODE` or `node -e CODE`.

    Args:
        words: the command without redirections.
        from_input: the text of its input, which is the program if no argument is.
    """
    options = [number for number, word in enumerate(words) if _is_code_option(words[0], word)]
    code = from_input
    if words[0] in _AWK:
        code = next((word for word in words[1:] if not word.startswith("-")), None)
    elif options:
        code = " ".join(words[options[0] + 1 : options[0] + 2])
    elif file_run_by(words):
        return ProgramEffects()
    if code is None or len(code) > _MAX_CHARACTERS:
        return ProgramEffects()
    if is_python(words[0]):
        last = words.index("-") if not options and "-" in words else len(words) - 1
        arguments = words[options[0] + 2 :] if options else words[last + 1 :]
        return read_python(code, arguments)
    if words[0] in _JAVASCRIPT:
        return read_javascript(code)
    if words[0] in _BY_PATTERN:
        return _read_by_pattern(code, words[0])
    return ProgramEffects()


def _is_code_option(program: str, word: str) -> bool:
    """Whether the word after this one is the program."""
    if program in _AWK:
        return False
    if program in _BY_PATTERN:
        return re.fullmatch(_BY_PATTERN[program], word) is not None
    return word in _CODE_OPTIONS or word == _EVALUATES.get(program)


# --- Languages of which only the commands are found that they run as a literal text

# names by which the marks of comments are known
_NAMES_BY_LANGUAGE = {"perl": "a.pl", "ruby": "a.rb", "lua": "a.lua", "php": "a.php"}
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
_LITERAL = re.compile(r"""\s*(['"])((?:\\.|(?!\1).)*)\1""")


def _read_by_pattern(code: str, program: str) -> ProgramEffects:
    code = without_comments(code, _NAMES_BY_LANGUAGE.get(program, ""))
    quoted = [text.span() for text in _QUOTED.finditer(code)]
    scripts: list[str] = []
    for call in _RUNS_TEXT.finditer(code):
        is_quoted = any(start < call.start() < end for start, end in quoted)
        if call["text"] is None or not is_quoted:
            scripts.append(_command_of(call))
    return ProgramEffects(scripts)


def _command_of(call: re.Match[str]) -> str:
    """Returns the command that a match of `_RUNS_TEXT` runs."""
    if call["others"]:
        words = [word[2] for word in _LITERAL.finditer(call["others"])]
        return " ".join([call["text"], shlex.join(words)])
    names = ("text", "quoted", "ticks", "spawned", "also")
    return next(call[name].strip() for name in names if call[name] is not None)
