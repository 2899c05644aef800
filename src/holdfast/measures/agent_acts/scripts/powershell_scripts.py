"""Writes scripts of PowerShell as Bash, as far as the commands that they run go.

    if ($?) { git push }                          ->  git push
    function Send { git push }; Send              ->  Send() { git push; }; Send
    [IO.File]::Delete("a.txt")                    ->  Remove-Item "a.txt"

The result is parsed, never run: conditions are left out where Bash has no words for them.
"""

import re
import shlex
from collections.abc import Mapping

# a statement begins here; there may be spaces before it
_START = r"(?P<start>^|[;|(\n&])(?P<space>[ \t]*)"


def bash_of_powershell(script: str) -> str:
    """Returns a script of PowerShell as Bash.

    Texts in quotation marks are kept aside first, so that the patterns see code only.
    """
    texts = _KeptTexts()
    script = texts.keep_aside(script)
    script = _normalise(script)
    script = _with_cmdlets(script)
    script = _with_functions(script)
    script = _with_printed_texts(script)
    script = _with_assignments(script)
    return texts.put_back(script)


# --- Texts and comments

_QUOTED_OR_COMMENT = re.compile(
    r"""<\#.*?(?:\#>|\Z)|(?<!\S)\#[^\n]*|@'\r?\n(?P<raw>.*?)(?:\r?\n'@|\Z)"""
    r"""|@"\r?\n(?P<here>.*?)(?:\r?\n"@|\Z)"""
    r"""|'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"`]|`.|"")*)\"""",
    re.DOTALL,
)
_KEPT = re.compile("\ue000(?P<number>\\d+)\ue001")  # stands for a text that is kept aside


class _KeptTexts:
    """The texts in quotation marks of a script, as words of Bash."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def keep_aside(self, script: str) -> str:
        """Returns the script with a mark in place of each text and comment."""
        return _QUOTED_OR_COMMENT.sub(self._keep, script)

    def _keep(self, quoted: re.Match[str]) -> str:
        self._texts.append(_bash_text(quoted))
        return f"\ue000{len(self._texts) - 1}\ue001"

    def put_back(self, script: str) -> str:
        """Returns a script with the texts in place of their marks."""
        return _KEPT.sub(lambda mark: self._texts[int(mark["number"])], script)


def _bash_text(quoted: re.Match[str]) -> str:
    """Returns a text of PowerShell as a word of Bash: 'it''s' as 'it'"'"'s'; "" for a comment."""
    raw, single = quoted["raw"], quoted["single"]
    if raw is not None or single is not None:
        text = raw if raw is not None else single.replace("''", "'")
        return shlex.quote(text.replace("\\", "/"))
    text = quoted["here"] if quoted["here"] is not None else quoted["double"]
    if text is None:
        return ""
    text = re.sub(r'`(.)|"(")', lambda sign: "\n" if sign[1] == "n" else sign[1] or '"', text)
    return '"{}"'.format(re.sub(r'(["`])', r"\\\1", text.replace("\\", "/")))


# --- Lines, paths, names and methods

_CONTINUED_LINE = re.compile(r"`\r?\n")
_TABLE = re.compile(r"@\{[^{}]*\}")  # @{ Name = 1 }
_NAME_IN_BRACES = re.compile(r"\$\{(\w+)\}")  # ${name}
# what the class File of .NET changes: [IO.File]::WriteAllText("a.txt", "x")
_FILE_METHOD = re.compile(
    r"\[(?:System\.)?IO\.File\]::(?P<method>WriteAll|AppendAll|Delete|Move|Copy)\w*\("
    r"\s*(?P<first>[^,()]+)(?:,\s*(?P<second>[^,()]+))?[^()]*\)",
    re.IGNORECASE,
)


def _normalise(script: str) -> str:
    """Joins lines, and writes paths and names as Bash does: a/b for a\\b, $a for ${a}."""
    script = _TABLE.sub("", _CONTINUED_LINE.sub(" ", script)).replace("\\", "/")
    return _NAME_IN_BRACES.sub(r"$\1", script)


def _with_cmdlets(script: str) -> str:
    """Returns a script with cmdlets in place of the methods of .NET that change files."""
    return _FILE_METHOD.sub(_cmdlet_of_method, script)


def _cmdlet_of_method(method_call: re.Match[str]) -> str:
    first, second = method_call["first"].strip(), (method_call["second"] or "").strip()
    match method_call["method"].lower():
        case "delete":
            return f"Remove-Item {first}"
        case "move":
            return f"Move-Item -Path {first} -Destination {second}"
        case "copy":
            return f"Copy-Item {first} -Destination {second}"
    return f"Set-Content -Path {first}"


# --- Blocks

_CONDITION = r"\((?P<condition>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*"
_BODY = r"\{(?:\s*param\s*\((?:[^()]|\([^()]*\))*\))?"  # its first part, with the parameters
# what begins or ends a block: "function Send($a) {", "$run = {", "if ($?) {", "{" and "}"
_BLOCK = re.compile(
    rf"(?<![\w-])(?:function|filter)\s+(?P<name>[\w-]+)\s*(?P<parameters>(?:\([^()]*\)\s*)?{_BODY})"
    rf"|\$(?P<variable>\w+)\s*=\s*(?:\[scriptblock\]\s*)?(?P<of_block>{_BODY})"
    rf"|(?:(?<![\w-])(?:if|elseif|foreach|for|while|switch|until)\s*{_CONDITION})?\{{|\}}",
    re.IGNORECASE,
)
_IS_TESTED = re.compile("if|elseif|while", re.IGNORECASE)
_NEVER_HOLDS = re.compile(r"\$false|\$null|0", re.IGNORECASE)
_BLOCK_WORDS = re.compile(
    r"^[ \t]*(?:else|try|catch|finally|do|begin|process|end)[ \t]*$", re.IGNORECASE | re.MULTILINE
)
# what leaves a block; in a block whose condition is left out, it would leave the whole script
_LEAVES = re.compile(
    r"(?<![\w$-])(?:(?:exit|break|continue|throw)\b[^;\n]*|return\b)", re.IGNORECASE
)
_END_OF_LINES = "\n"  # of a block that becomes lines
_END_OF_FUNCTION = "\n}\n:"
_END_OF_IF = "\nfi\n"
# where a block runs that is the value of a variable: "& $run", "$run.Invoke()", "icm $run"
_RUNS_BLOCK = re.compile(
    r"(?<![\w$])[&.][ \t]*\$(?P<called>\w+)(?!\.)|\$(?P<invoked>\w+)\.Invoke\w*\("
    r"|(?P<cmdlet>(?<![\w-])(?:Invoke-Command|icm|Start-Job|Start-ThreadJob|ForEach-Object|%"
    r"|Measure-Command)(?![\w-])[^;|\n]*?)\$(?P<passed>\w+)",
    re.IGNORECASE,
)


def _with_functions(script: str) -> str:
    """Returns a script with lines in place of blocks, and calls where blocks in variables run.

    Functions, and blocks that are the values of variables, are functions of Bash.
    """
    variables = {block["variable"] for block in _BLOCK.finditer(script)} - {None}
    functions = {variable.lower(): _name_of_block(variable) for variable in variables}
    script = _BLOCK_WORDS.sub("", _without_blocks(script))
    return _RUNS_BLOCK.sub(lambda run: _call_of_block(run, functions), script)


def _without_blocks(script: str) -> str:
    parts: list[str] = []
    ends: list[str] = []  # of the blocks that are open, innermost last
    position = 0
    for block in _BLOCK.finditer(script):
        between = script[position : block.start()]
        parts.append(_LEAVES.sub("", between) if ends[-1:] == [_END_OF_LINES] else between)
        position = block.end()
        if block[0] == "}":
            parts.append(ends.pop() if ends else "\n")
        elif name := block["name"] or _name_of_block(block["variable"]):
            parts.append(_start_of_function(name, block["parameters"] or block["of_block"]))
            ends.append(_END_OF_FUNCTION)
        else:
            condition = (block["condition"] or "").strip()
            never_runs = _IS_TESTED.match(block[0]) and _NEVER_HOLDS.fullmatch(condition)
            parts.append("\nif false; then :\n" if never_runs else _command_in(condition))
            ends.append(_END_OF_IF if never_runs else _END_OF_LINES)
    return "".join([*parts, script[position:], *reversed(ends)])


def _start_of_function(name: str, parameters: str) -> str:
    """Returns the first lines of a function of Bash, with the names of its parameters."""
    names = re.findall(r"\$(\w+)", parameters)
    lines = [f'{parameter}="${number}"' for number, parameter in enumerate(names, 1)]
    return "\n".join([f"\n{name}() {{", ":", *lines, ""])


def _command_in(condition: str) -> str:
    """Returns the line of a condition that is a command, as `Test-Path a`; else an empty one."""
    return f"\n{condition}\n" if re.match(r"[A-Za-z&]", condition) else "\n"


def _name_of_block(variable: str | None) -> str:
    """Returns the function of Bash that stands for the block in a variable; "" for no variable."""
    return f"block_{variable.lower()}" if variable else ""


def _call_of_block(run: re.Match[str], functions: Mapping[str, str]) -> str:
    """Returns what runs a block as the call of its function, after the cmdlet that runs it."""
    name = run["called"] or run["invoked"] or run["passed"]
    function = functions.get(name.lower())
    if function is None:
        return run[0]
    return f"{run['cmdlet'] or ''}\n{function} " + ("# " if run["invoked"] else "")


# --- Statements

# a text that is a statement by itself, which is printed: "git push" | sh
_PRINTED = re.compile(
    r"(?P<start>^|[;\n])(?P<space>[ \t]*)(?P<text>\ue000\d+\ue001)(?=[ \t]*(?:[|;,\n)]|\Z))"
)
_CALL_OPERATOR = re.compile(_START + r"&[ \t]+")  # & git push
# $env:NAME = "x", $names = @("a", "b"), $a += git log
_ASSIGNED = re.compile(
    _START + r"\$(?:\w+:)?(?P<name>\w+)[ \t]*\+?=[ \t]*(?P<value>@\([^()]*\)|[^;\n|]*)"
)
_SPLATTED = re.compile(r"(?<!\S)@(\w+)")  # git push @flags


def _with_printed_texts(script: str) -> str:
    return _PRINTED.sub(r"\g<start>\g<space>echo \g<text>", script)


def _with_assignments(script: str) -> str:
    """Returns a script with assignments and lists as in Bash: flags=(a b) and "${flags[@]}"."""
    script = _CALL_OPERATOR.sub(r"\g<start>\g<space>", script)
    script = _ASSIGNED.sub(_bash_assignment, script)
    return _SPLATTED.sub(r'"${\1[@]}"', script)


def _bash_assignment(assignment: re.Match[str]) -> str:
    value = assignment["value"].strip()
    if value.startswith("@("):
        value = "({})".format(re.sub(r"\s*,\s*", " ", value[2:-1]))
    elif not re.match("[\ue000$\\d]", value):  # a command
        value = f"$({value})"
    return f"{assignment['start']}{assignment['space']}{assignment['name']}={value}"
