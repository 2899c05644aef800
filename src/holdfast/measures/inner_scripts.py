"""The scripts that programs run: in an argument, in an option, or in their input.

bash -c "git push"   ->  git push
ssh host 'ls; rm a'  ->  ls; rm a
"""

import base64
import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from holdfast.measures.command_options import after_names, after_options

# options of sudo that take a value
OF_SUDO = ("-u", "-g", "-p", "-h", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user")
SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "fish", "ash")
POWERSHELLS = ("powershell", "powershell.exe", "pwsh")
_OF_SHELL = ("-o", "-O", "+o", "+O", "--rcfile", "--init-file")  # options that take a value


_ANY_NUMBER = 1000  # of arguments


class _ScriptOption(NamedTuple):
    """An option of a program whose value is a script."""

    pattern: str
    arguments: int = 0  # how many other arguments may come before it
    valued_options: Sequence[str] = ()
    takes_rest: bool = False  # whether all words after it are the script
    is_repeated: bool = False  # whether each of several such options has a script


_SCRIPT_OPTIONS: Mapping[str, _ScriptOption] = {
    **dict.fromkeys(SHELLS, _ScriptOption(r"-[a-zA-Z]*c", 0, _OF_SHELL)),
    **dict.fromkeys(("su", "runuser"), _ScriptOption(r"-[a-zA-Z]*c|--command", 2)),
    "nodemon": _ScriptOption("-x|--exec"),
    **dict.fromkeys(("flock", "script", "sg"), _ScriptOption(r"-[a-zA-Z]*c|--command", 1)),
    **dict.fromkeys(
        POWERSHELLS,
        _ScriptOption("(?i)-c(?:ommand)?", 0, ("-ExecutionPolicy",), takes_rest=True),
    ),
    **dict.fromkeys(("cmd", "cmd.exe"), _ScriptOption("(?i)//?[ck]", takes_rest=True)),
    "nix-shell": _ScriptOption("--run|--command", _ANY_NUMBER),
    "npx": _ScriptOption("-c|--call"),
    "vagrant": _ScriptOption("-c|--command", 2),
    "gcloud": _ScriptOption("--command", _ANY_NUMBER),
    **dict.fromkeys(("fly", "flyctl"), _ScriptOption("-C|--command", 2)),
    "doppler": _ScriptOption("--command", _ANY_NUMBER),
    "nu": _ScriptOption("-c|--commands"),
    "repo": _ScriptOption("-c", _ANY_NUMBER, takes_rest=True),
    "ansible": _ScriptOption("-a|--args", _ANY_NUMBER),
}
_OF_REBASE = _ScriptOption("-x|--exec", _ANY_NUMBER, is_repeated=True)
# programs whose arguments are a script: their options that take a value
_OF_TMUX = ("-s", "-n", "-c", "-x", "-y", "-t", "-e", "-F", "-f", "-L", "-S", "-N")
_SCRIPT_ARGUMENTS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("watch",): ("-n", "--interval"),
    ("concurrently",): ("-n", "--names", "-c", "--prefix-colors", "-p", "--prefix"),
    ("hyperfine",): ("-w", "--warmup", "-r", "--runs", "-m", "-M", "-p", "--prepare"),
    ("git", "submodule", "foreach"): (),
    ("parallel",): ("-j", "--jobs", "-a", "--arg-file", "-I", "--joblog", "--delay", "--timeout"),
    **{("tmux", name): _OF_TMUX for name in ("new-session", "new", "new-window", "neww")},
    **{("tmux", name): _OF_TMUX for name in ("split-window", "splitw", "send-keys", "send")},
}
SCRIPT_RUNNERS = tuple(
    dict.fromkeys((*SHELLS, *_SCRIPT_OPTIONS, *(names[0] for names in _SCRIPT_ARGUMENTS), "ssh"))
)
_RUN_EACH_ARGUMENT = ("concurrently", "hyperfine")
_RUN_INPUT = ("at", "batch")
_RUN_INPUT_AS = ("su", "sudo")  # without a command
_CMDLETS_THAT_RUN = ("invoke-expression", "iex", "start-process")
# the options of ssh that take a value
_OF_SSH = tuple(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw")
_ENCODED = re.compile("-e(?:c|ncodedcommand)?", re.IGNORECASE)
_KEYS = ("Enter", "C-m", "C-j")  # with which tmux ends a line
_REDIRECTION = re.compile(r"[0-9&]*[<>]")


def script_in(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the script that a command runs, such as that of `bash -c`; None if it runs none.

    Args:
        from_input: the text of the command's input, which a shell without arguments runs.
    """
    program = words[0].rpartition("/")[2]
    if program == "eval":
        return " ".join(words[1:])
    if program == "find":
        commands = commands_of_find(words)
        return "\n".join(map(shlex.join, commands)) if len(commands) > 1 else None
    if program == "trap":
        return words[1] if len(words) > 1 else None
    if program in SHELLS and any(re.fullmatch("-[a-z]*n[a-z]*", word) for word in words[1:2]):
        return None  # only the syntax is checked
    if program.lower() in POWERSHELLS and (encoded := _encoded_script(words)):
        return encoded
    if (script := script_of_option(program, words)) is not None:
        return script
    if program in SHELLS:
        return None if file_of_shell(words) else from_input
    if program in _RUN_INPUT or (program in _RUN_INPUT_AS and not _operands_of_sudo(words)):
        return from_input
    if program.lower() in _CMDLETS_THAT_RUN:
        return _script_of_cmdlet(program.lower(), words, from_input)
    if program == "ssh":
        remote = after_options(words[1:], _OF_SSH, 1)
        if len(remote) == 1 and len(remote[0].split()) == 2:  # 'bash -s'
            remote = tuple(remote[0].split())
        runs_input = not remote or (remote[0] in SHELLS and script_in(remote, "") == "")
        return from_input if runs_input else " ".join(remote)
    for names, valued in _script_arguments_of(program):
        if (rest := after_names(words, names)) is not None:
            return _script_of_arguments(program, after_options(rest, valued, 0))
    return None


@lru_cache(maxsize=1024)
def _script_arguments_of(program: str) -> list[tuple[tuple[str, ...], Sequence[str]]]:
    return [entry for entry in _SCRIPT_ARGUMENTS.items() if entry[0][0] == program]


def script_of_option(program: str, words: Sequence[str]) -> str | None:
    option = _SCRIPT_OPTIONS.get(program)
    if program == "git" and "rebase" in words[1:2]:
        option = _OF_REBASE
    if option is None:
        return None
    rest = deque(words[1:])
    others = 0
    scripts: list[str] = []
    while rest and others <= option.arguments and rest[0] != "--":
        word = rest.popleft()
        name, equals, value = word.partition("=")
        if re.fullmatch(option.pattern, name):
            script = " ".join(rest) if option.takes_rest else "".join([*rest][:1])
            scripts.append(value if equals else script)
            if not option.is_repeated:
                break
            if not equals and rest:
                rest.popleft()
            continue
        if word in option.valued_options and rest:
            rest.popleft()
        others += not word.startswith(("-", "+"))
    return "\n".join(filter(None, scripts)) or None


def _encoded_script(words: Sequence[str]) -> str:
    """Returns the script that PowerShell takes in Base64; "" without one."""
    named = (after for word, after in pairwise(words) if _ENCODED.fullmatch(word))
    try:
        return base64.b64decode(next(named, "")).decode("utf-16-le")
    except ValueError:
        return ""


def _operands_of_sudo(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the command of `sudo`; () if it opens a shell, as `su` does."""
    if words[0] == "su":
        return ()
    opens_shell = any(re.fullmatch("-[a-zA-Z]*[si]|--shell|--login", word) for word in words[1:])
    rest = after_options(words[1:], OF_SUDO, 0)
    rest = () if rest and _REDIRECTION.match(rest[0]) else rest
    return rest if opens_shell else ("",)


def _script_of_cmdlet(program: str, words: Sequence[str], from_input: str | None) -> str | None:
    """Returns what `Invoke-Expression` or `Start-Process` of PowerShell runs."""
    if program != "start-process":
        return " ".join(word for word in words[1:] if word.lower() != "-command") or from_input
    operands = [word for word in words[1:] if not word.startswith("-")]
    names = {name.lower(): value for name, value in pairwise(words)}
    arguments = names.get("-argumentlist") or names.get("-args") or " ".join(operands[1:2])
    command = names.get("-filepath") or "".join(operands[:1])
    return f"{command} {arguments.replace(',', ' ')}".strip() or None


def file_of_shell(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the words from the file that a shell runs on; () if it reads its input."""
    rest = after_options(words[1:], _OF_SHELL, 0)
    return () if not rest or _REDIRECTION.match(rest[0]) else rest


def _script_of_arguments(program: str, words: Sequence[str]) -> str | None:
    """Joins the words of a script; of GNU parallel, those before its list of arguments."""
    if program in _RUN_EACH_ARGUMENT:
        return "\n".join(words) or None
    if program == "parallel" and ":::" in words:
        place = words.index(":::")
        return " ".join(words[:place]) or "\n".join(words[place + 1 :])
    if program == "tmux":
        words = [word for word in words if word not in _KEYS]
    return " ".join(words) or None


def commands_of_find(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the commands that the options `-exec` of `find` run.

    In place of `{}`, they have a glob of the files that are found if `find` begins in one folder.
    """
    commands: list[tuple[str, ...]] = []
    files = files_of_find(words)
    rest = list(words)
    while rest:
        if rest.pop(0) in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = (number for number, word in enumerate(rest) if word in (";", "+"))
            end = next(ends, len(rest))
            places = files if len(files) == 1 else ["{}"]
            commands.append(tuple(places[0] if word == "{}" else word for word in rest[:end]))
            del rest[: end + 1]
    return [command for command in commands if command]


def files_of_find(words: Sequence[str]) -> list[str]:
    """Returns globs of the files that `find` finds, one for each folder that it begins in."""
    folders = [*takewhile(lambda word: not word.startswith(("-", "(", "!")), words[1:])]
    names = [name for option, name in pairwise(words) if option in ("-name", "-iname", "-path")]
    name = names[0] if len(names) == 1 else "*"
    return [name if folder in (".", "./") else f"{folder.rstrip('/')}/{name}" for folder in folders]
