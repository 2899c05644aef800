"""Reads what a short JavaScript program runs and writes, by the calls in its text.

For example:

    require('child_process').execSync('ls')   ->  runs `ls`
    fs.writeFileSync('a.txt', 'x')            ->  writes a.txt
    db.exec('DROP TABLE a')                   ->  nothing, as `db` is no module that runs commands
"""

import re
import shlex
from collections.abc import Container, Iterator

from holdfast.measures.agent_acts.edits.comments import without_comments
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.edits.quoted_code import without_quoted_code
from holdfast.measures.agent_acts.programs.program_effects import ProgramEffects

_FILE = "program.js"  # a name by which the language is known
_LITERAL = re.compile(r"""(?P<quote>['"`])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)""")
_TEXT = rf"\s*{_LITERAL.pattern}"


def read_javascript(code: str) -> ProgramEffects:
    """Reads a program."""
    code = _without_unreachable(without_comments(code, _FILE))
    return ProgramEffects(list(_scripts_in(code)), list(_edits_in(code)))


# --- The end of a program

# a statement of its own, and not the branch of an `if`: process.exit(1)
_EXIT_STATEMENT = re.compile(r"(?:\A|[;}])\s*process\.exit\(")


def _without_unreachable(code: str) -> str:
    """Returns a program up to the first `process.exit()` outside of functions and branches.

    All of it if a function follows, as that may be called before.
    """
    plain = _LITERAL.sub(lambda text: re.sub("[{};]", " ", text[0]), code)
    depth = position = 0
    for statement in _EXIT_STATEMENT.finditer(plain):
        between = plain[position : statement.start() + 1]
        depth += between.count("{") - between.count("}")
        position = statement.start() + 1
        if depth == 0:
            follows_function = re.search(r"\bfunction\b", plain[position:])
            return code if follows_function else code[: statement.end()]
    return code


# --- Files

# fs.writeFileSync('a.txt', ...), fs.rename('a.txt', ...)
_WRITES_FIRST = re.compile(
    r"\b(?:writeFile|appendFile|unlink|rm|rename|truncate|rmdir|createWriteStream)(?:Sync)?\("
    + _TEXT
)
# fs.copyFile(..., 'b.txt'), fs.rename(..., 'b.txt')
_WRITES_SECOND = re.compile(r"\b(?:copyFile|rename|cp)(?:Sync)?\([^,]+," + _TEXT)


def _edits_in(code: str) -> Iterator[FileEdit]:
    """Yields the changes of files."""
    for pattern in (_WRITES_FIRST, _WRITES_SECOND):
        for call in pattern.finditer(code):
            yield FileEdit(call["text"], is_whole=True, is_shown=False)


# --- Commands

# execSync('git push'), cp.exec('git push'), spawn('git', ['push'])
_RUNS = re.compile(
    r"(?:(?P<object>(?<![\w$])[\w$]++|\))\s*\.\s*|(?<![\w$.]))"
    r"(?P<function>exec|execSync|spawn|spawnSync|execFile|execFileSync|execa|Deno\.Command)\("
    + _TEXT
)
_ARGUMENTS = re.compile(r"\s*,\s*(?:\{\s*args:\s*)?\[([^\]]*)\]")  # , ['push'] and , {args: [...]
_RUNS_TEMPLATE = re.compile(r"(?<![\w$])\$(?:\([^()`]*\))?`([^`]+)`")  # $`git push` of Bun and zx
_RUNS_LIST = re.compile(r"\bBun\.spawn(?:Sync)?\(\s*(?:\{\s*cmd:\s*)?\[([^\]]*)\]")  # (['git', ...
# `exec` is also a method of databases and regular expressions: here, it is one of a module
_MODULE = r"""['"](?:node:)?(?:child_process|shelljs|execa)['"]"""
# cp = require('child_process'), import * as cp from 'child_process'
_IMPORTED = re.compile(
    rf"(?P<required>(?<![\w$])[\w$]++)\s*+=\s*(?:await\s+)?(?:require|import)\(\s*{_MODULE}"
    rf"|import\s+(?:\*\s+as\s+)?(?P<imported>[\w$]+)\s+from\s+{_MODULE}"
)
# require('child_process'). before a call
_REQUIRED_HERE = re.compile(rf"(?:require|import)\(\s*{_MODULE}\s*\)\s*\.\s*\Z")
_USUAL_NAMES = ("child_process", "childProcess", "cp", "proc", "shell", "shelljs", "sh")


def _scripts_in(code: str) -> Iterator[str]:
    """Yields the shell commands that a program runs."""
    plain = without_quoted_code(code, _FILE, is_whole=True)
    imports = _IMPORTED.finditer(code)
    modules = {name for match in imports for name in match.groups() if name}
    for call in _RUNS.finditer(code):
        is_quoted = not plain.startswith(call["function"], call.start("function"))
        if is_quoted or not _runs_command(call, code, modules):
            continue
        arguments = _ARGUMENTS.match(code, call.end())
        words = _literals_in(arguments[1]) if arguments else []
        yield " ".join([call["text"], shlex.join(words)]).rstrip()
    for template in _RUNS_TEMPLATE.finditer(code):
        yield template[1]
    for listed in _RUNS_LIST.finditer(code):
        yield shlex.join(_literals_in(listed[1]))


def _literals_in(code: str) -> list[str]:
    """Returns the texts in a list such as `'git', "push"`."""
    return [literal["text"] for literal in _LITERAL.finditer(code)]


def _runs_command(call: re.Match[str], code: str, modules: Container[str]) -> bool:
    """Whether a call runs a command, and is no method of another object.

    Args:
        call: a match of `_RUNS`.
        modules: the names that the program gives to modules that run commands.
    """
    if call["object"] is None or call["function"] != "exec":
        return True
    if call["object"] == ")":
        return _REQUIRED_HERE.search(code[: call.start("function")]) is not None
    return call["object"] in modules or call["object"] in _USUAL_NAMES
