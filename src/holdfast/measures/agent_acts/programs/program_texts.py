"""Finds the program in a shell command, and reads what it runs and writes.

    python3 -c "import os; os.remove('a.txt')"         ->  deletes a.txt
    python3 - <<< "os.rename('a.txt', 'b.txt')"        ->  renames a.txt
    perl -e 'system("git push")'                       ->  runs `git push`

Python is parsed, JavaScript is read by its calls. Of other languages, only the commands are found
that a program runs as a literal text.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from holdfast.measures.agent_acts.programs.javascript_programs import read_javascript
from holdfast.measures.agent_acts.programs.literal_commands import commands_run_by
from holdfast.measures.agent_acts.programs.program_effects import ProgramEffects
from holdfast.measures.agent_acts.programs.python_programs import read_python

_PYTHON = re.compile(r"(?:python|pypy)(?:\d(?:\.\d+)?)?|py")  # python3.11
_JAVASCRIPT = ("node", "nodejs", "bun", "deno")
_AWK = ("awk", "gawk", "mawk")
# the options whose value is a program: of Python and JavaScript, and of other languages
_CODE_OPTIONS = ("-c", "-e", "--eval", "-p", "--print")
_OTHER_CODE_OPTIONS = {
    **dict.fromkeys(("perl", "ruby"), re.compile("-[a-zA-Z0-9]*[eE]")),
    "php": re.compile("-[rBRE]"),
    "lua": re.compile("-e"),
    **dict.fromkeys(("expect", "tclsh"), re.compile("-c")),
}
_VALUED_OF_PYTHON = ("-X", "-W")
_EVALUATES = {"deno": "eval"}  # a subcommand whose argument is a program
_MAX_CHARACTERS = 50_000  # of a program that is read


def is_python(program: str) -> bool:
    """Whether a program is an interpreter of Python."""
    return _PYTHON.fullmatch(program) is not None


def file_run_by(words: Sequence[str]) -> str:
    """Returns the file of a program that an interpreter runs.

    "" if its text is an argument, or the input, as of `python - a.txt`.
    """
    program, *arguments = words
    is_known = is_python(program) or program in _JAVASCRIPT or program in _OTHER_CODE_OPTIONS
    if not is_known or _code_position(words) is not None:
        return ""
    if is_python(program):
        arguments = _without_python_options(arguments)
    first = next((word for word in arguments if word == "-" or not word.startswith("-")), "")
    return "" if first == "-" else first


def _without_python_options(words: Sequence[str]) -> list[str]:
    """Returns the words without options such as `-X dev`, whose value is no file."""
    pairs = pairwise(["", *words])
    return [w for before, w in pairs if not {before, w} & {*_VALUED_OF_PYTHON}]


def read_program(words: Sequence[str], from_input: str | None) -> ProgramEffects:
    """Reads the program in a command such as `python3 -c CODE` or `node -e CODE`.

    Args:
        words: the command without redirections.
        from_input: the text of its input, which is the program if no argument is.
    """
    program = words[0]
    code = _code_in(words, from_input)
    if code is None or len(code) > _MAX_CHARACTERS:
        return ProgramEffects()
    if is_python(program):
        return read_python(code, _python_arguments(words))
    if program in _JAVASCRIPT:
        return read_javascript(code)
    if program in _AWK or program in _OTHER_CODE_OPTIONS:
        return ProgramEffects(list(commands_run_by(code, program)))
    return ProgramEffects()


def _code_in(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the text of the program that a command runs; None if it is not known."""
    if words[0] in _AWK:
        return next((word for word in words[1:] if not word.startswith("-")), None)
    position = _code_position(words)
    if position is not None:
        return " ".join(words[position : position + 1])
    return None if file_run_by(words) else from_input


def _code_position(words: Sequence[str]) -> int | None:
    """Returns the number of the word that is a program, as of `-c CODE`; None without one."""
    for number, word in enumerate(words[1:], 1):
        if _is_code_option(words[0], word):
            return number + 1
    return None


def _is_code_option(program: str, word: str) -> bool:
    """Whether the word after this one is the program."""
    if program in _AWK:
        return False
    if pattern := _OTHER_CODE_OPTIONS.get(program):
        return pattern.fullmatch(word) is not None
    return word in _CODE_OPTIONS or word == _EVALUATES.get(program)


def _python_arguments(words: Sequence[str]) -> Sequence[str]:
    """Returns the arguments of a program: those after `-c CODE`, or after the `-` for the input."""
    position = _code_position(words)
    if position is not None:
        return words[position + 1 :]
    return words[words.index("-") + 1 :] if "-" in words else ()
