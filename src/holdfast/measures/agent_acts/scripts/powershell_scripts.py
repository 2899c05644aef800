"""Writes scripts of PowerShell as Bash, as far as the commands that they run go.

    if ($?) { git push }                          ->  git push
    function Send { git push }; Send              ->  Send() { git push; }; Send
    [IO.File]::Delete("a.txt")                    ->  Remove-Item "a.txt"

The result is parsed, never run: conditions are left out where Bash has no words for them.
"""

import re
import shlex
from collections.abc import Mapping

_TEXT_OF_POWERSHELL = re.compile(
    r"""<\#.*?(?:\#>|\Z)|(?<!\S)\#[^\n]*|@'\r?\n(?P<raw>.*?)(?:\r?\n'@|\Z)"""
    r"""|@"\r?\n(?P<here>.*?)(?:\r?\n"@|\Z)"""
    r"""|'(?P<single>(?:[^']|'')*)'|"(?P<double>(?:[^"`]|`.|"")*)\"""",
    re.DOTALL,
)
_KEPT = re.compile("\ue000(\\d+)\ue001")  # a text that is kept aside
_TABLE = re.compile(r"@\{[^{}]*\}")
_CONDITION = r"\((?P<condition>(?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*"
_BODY = r"\{(?:\s*param\s*\((?:[^()]|\([^()]*\))*\))?"  # its first part, with the parameters
_BLOCK = re.compile(
    rf"(?<![\w-])(?:function|filter)\s+(?P<name>[\w-]+)\s*(?P<parameters>(?:\([^()]*\)\s*)?{_BODY})"
    rf"|\$(?P<variable>\w+)\s*=\s*(?:\[scriptblock\]\s*)?(?P<of_block>{_BODY})"
    rf"|(?:(?<![\w-])(?:if|elseif|foreach|for|while|switch|until)\s*{_CONDITION})?\{{|\}}",
    re.IGNORECASE,
)
_BLOCK_WORDS = re.compile(
    r"^[ \t]*(?:else|try|catch|finally|do|begin|process|end)[ \t]*$", re.IGNORECASE | re.MULTILINE
)
_NEVER_HOLDS = re.compile(r"\$false|\$null|0", re.IGNORECASE)
# what leaves a block; in a block whose condition is left out, it would leave the whole script
_LEAVES = re.compile(
    r"(?<![\w$-])(?:(?:exit|break|continue|throw)\b[^;\n]*|return\b)", re.IGNORECASE
)
_START = r"(?P<start>^|[;|(\n&])(?P<space>[ \t]*)"
# a text that is a statement by itself, which is printed
_PRINTED = re.compile(
    r"(?P<start>^|[;\n])(?P<space>[ \t]*)(?P<text>\ue000\d+\ue001)(?=[ \t]*(?:[|;,\n)]|\Z))"
)
_ASSIGNED = re.compile(
    _START + r"\$(?:\w+:)?(?P<name>\w+)[ \t]*\+?=[ \t]*(?P<value>@\([^()]*\)|[^;\n|]*)"
)
# where a block runs that is the value of a variable
_RUNS_BLOCK = re.compile(
    r"(?<![\w$])[&.][ \t]*\$(?P<called>\w+)(?!\.)|\$(?P<invoked>\w+)\.Invoke\w*\("
    r"|(?P<cmdlet>(?<![\w-])(?:Invoke-Command|icm|Start-Job|Start-ThreadJob|ForEach-Object|%"
    r"|Measure-Command)(?![\w-])[^;|\n]*?)\$(?P<passed>\w+)",
    re.IGNORECASE,
)
# what the class File of .NET changes
_FILE_METHOD = re.compile(
    r"\[(?:System\.)?IO\.File\]::(?P<method>WriteAll|AppendAll|Delete|Move|Copy)\w*\("
    r"\s*(?P<first>[^,()]+)(?:,\s*(?P<second>[^,()]+))?[^()]*\)",
    re.IGNORECASE,
)
_CALLED = re.compile(_START + r"&[ \t]+")


def bash_of_powershell(script: str) -> str:
    """Returns a script of PowerShell as Bash.

    Texts in quotation marks are kept aside first, so that the patterns see code only. Then methods
    of .NET become cmdlets, blocks become lines or functions, texts that stand alone are printed,
    and variables are assigned as in Bash. Last, the texts are put back.
    """
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return f"\ue000{len(texts) - 1}\ue001"

    script = _TEXT_OF_POWERSHELL.sub(lambda match: keep(_bash_text(match)), script)
    script = _TABLE.sub("", re.sub(r"`\r?\n", " ", script)).replace("\\", "/")
    script = re.sub(r"\$\{(\w+)\}", r"$\1", script)
    script = _FILE_METHOD.sub(_cmdlet_of_method, script)
    variables = {match["variable"] for match in _BLOCK.finditer(script)} - {None}
    blocks = {variable.lower(): _name_of_block(variable) for variable in variables}
    script = _BLOCK_WORDS.sub("", _without_blocks(script))
    script = _RUNS_BLOCK.sub(lambda match: _with_block(match, blocks), script)
    script = _PRINTED.sub(r"\g<start>\g<space>echo \g<text>", script)
    script = _ASSIGNED.sub(_bash_assignment, _CALLED.sub(r"\g<start>\g<space>", script))
    script = re.sub(r"(?<!\S)@(\w+)", r'"${\1[@]}"', script)
    return _KEPT.sub(lambda match: texts[int(match[1])], script)


def _bash_text(match: re.Match[str]) -> str:
    """Returns a text of PowerShell as a word of Bash; "" for a comment."""
    raw, single = match["raw"], match["single"]
    if raw is not None or single is not None:
        text = raw if raw is not None else single.replace("''", "'")
        return shlex.quote(text.replace("\\", "/"))
    text = match["here"] if match["here"] is not None else match["double"]
    if text is None:
        return ""
    text = re.sub(r'`(.)|"(")', lambda sign: "\n" if sign[1] == "n" else sign[1] or '"', text)
    return '"{}"'.format(re.sub(r'(["`])', r"\\\1", text.replace("\\", "/")))


def _without_blocks(script: str) -> str:
    """Returns a script with lines in place of blocks.

    Functions, and blocks that are the values of variables, are functions of Bash.
    """
    parts: list[str] = []
    ends: list[str] = []
    position = 0
    for match in _BLOCK.finditer(script):
        part = script[position : match.start()]
        parts.append(_LEAVES.sub("", part) if ends[-1:] == ["\n"] else part)
        position = match.end()
        if match[0] == "}":
            parts.append(ends.pop() if ends else "\n")
        elif name := match["name"] or _name_of_block(match["variable"]):
            parameters = re.findall(r"\$(\w+)", match["parameters"] or match["of_block"])
            lines = [f'{parameter}="${n}"' for n, parameter in enumerate(parameters, 1)]
            parts.append("\n".join([f"\n{name}() {{", ":", *lines, ""]))
            ends.append("\n}\n:")
        else:
            condition = (match["condition"] or "").strip()
            is_tested = re.match("if|elseif|while", match[0], re.IGNORECASE)
            if is_tested and _NEVER_HOLDS.fullmatch(condition):
                parts.append("\nif false; then :\n")
                ends.append("\nfi\n")
                continue
            parts.append(f"\n{condition}\n" if re.match(r"[A-Za-z&]", condition) else "\n")
            ends.append("\n")
    return "".join([*parts, script[position:], *reversed(ends)])


def _cmdlet_of_method(method_call: re.Match[str]) -> str:
    """Returns the cmdlet that changes the files which a method of the class File changes."""
    first, second = method_call["first"].strip(), (method_call["second"] or "").strip()
    match method_call["method"].lower():
        case "delete":
            return f"Remove-Item {first}"
        case "move":
            return f"Move-Item -Path {first} -Destination {second}"
        case "copy":
            return f"Copy-Item {first} -Destination {second}"
    return f"Set-Content -Path {first}"


def _name_of_block(variable: str | None) -> str:
    """Returns the function of Bash that stands for the block in a variable; "" for no variable."""
    return f"block_{variable.lower()}" if variable else ""


def _with_block(match: re.Match[str], blocks: Mapping[str, str]) -> str:
    """Returns what runs a block as the call of its function, after the cmdlet that runs it."""
    name = match["called"] or match["invoked"] or match["passed"]
    function = blocks.get(name.lower())
    if function is None:
        return match[0]
    return f"{match['cmdlet'] or ''}\n{function} " + ("# " if match["invoked"] else "")


def _bash_assignment(match: re.Match[str]) -> str:
    value = match["value"].strip()
    if value.startswith("@("):
        value = "({})".format(re.sub(r"\s*,\s*", " ", value[2:-1]))
    elif not re.match("[\ue000$\\d]", value):
        value = f"$({value})"
    return f"{match['start']}{match['space']}{match['name']}={value}"
