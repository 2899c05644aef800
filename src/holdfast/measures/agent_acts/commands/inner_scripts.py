"""The scripts that programs run: in an argument, in an option, or in their input.

For example:

    bash -c "git push"      ->  git push
    ssh host 'ls; rm a'     ->  ls; rm a
    sudo -s <<< "rm a"      ->  rm a
"""

import base64
import re
import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.measures.agent_acts.commands.find_commands import commands_of_find
from holdfast.measures.agent_acts.commands.shell_commands import is_redirection
from holdfast.measures.agent_acts.commands.wrapper_options import after_names, after_options

SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "fish", "ash")
POWERSHELLS = ("powershell", "powershell.exe", "pwsh")
_CMDLETS_THAT_RUN = ("invoke-expression", "iex", "start-process")  # of PowerShell

# by program, the options that take a value
SUDO_VALUED = ("-u", "-g", "-p", "-h", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user")
_SHELL_VALUED = ("-o", "-O", "+o", "+O", "--rcfile", "--init-file")
_SSH_VALUED = tuple(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw")
_TMUX_VALUED = ("-s", "-n", "-c", "-x", "-y", "-t", "-e", "-F", "-f", "-L", "-S", "-N")


class _ScriptOption(NamedTuple):
    """An option of a program whose value is a script, such as `-c` of `bash`."""

    pattern: str
    max_arguments: int = 0  # how many other arguments may come before it
    valued: Sequence[str] = ()  # the program's other options that take a value
    takes_rest: bool = False  # whether all words after it are the script
    is_repeated: bool = False  # whether each of several such options has a script
    comes_last: bool = False  # whether the script comes after all options: `bash -c -e SCRIPT`


_ANY_NUMBER = 1000  # of arguments before the option
_SCRIPT_OPTIONS: Mapping[str, _ScriptOption] = {
    **dict.fromkeys(SHELLS, _ScriptOption("-[a-zA-Z]*c", valued=_SHELL_VALUED, comes_last=True)),
    **dict.fromkeys(("su", "runuser"), _ScriptOption("-[a-zA-Z]*c|--command", max_arguments=2)),
    **dict.fromkeys(
        ("flock", "script", "sg"), _ScriptOption("-[a-zA-Z]*c|--command", max_arguments=1)
    ),
    "nodemon": _ScriptOption("-x|--exec"),
    **dict.fromkeys(("cmd", "cmd.exe"), _ScriptOption("(?i)//?[ck]", takes_rest=True)),
    "nix-shell": _ScriptOption("--run|--command", max_arguments=_ANY_NUMBER),
    "npx": _ScriptOption("-c|--call"),
    "vagrant": _ScriptOption("-c|--command", max_arguments=2),
    "gcloud": _ScriptOption("--command", max_arguments=_ANY_NUMBER),
    **dict.fromkeys(("fly", "flyctl"), _ScriptOption("-C|--command", max_arguments=2)),
    "doppler": _ScriptOption("--command", max_arguments=_ANY_NUMBER),
    "nu": _ScriptOption("-c|--commands"),
    "repo": _ScriptOption("-c", max_arguments=_ANY_NUMBER, takes_rest=True),
    "ansible": _ScriptOption("-a|--args", max_arguments=_ANY_NUMBER),
}
# of `git rebase`
_REBASE_OPTION = _ScriptOption("-x|--exec", max_arguments=_ANY_NUMBER, is_repeated=True)

# programs, with their subcommands, whose arguments are a script: their options that take a value
_SCRIPT_ARGUMENTS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("watch",): ("-n", "--interval"),
    ("concurrently",): ("-n", "--names", "-c", "--prefix-colors", "-p", "--prefix"),
    ("hyperfine",): ("-w", "--warmup", "-r", "--runs", "-m", "-M", "-p", "--prepare"),
    ("git", "submodule", "foreach"): (),
    ("parallel",): ("-j", "--jobs", "-a", "--arg-file", "-I", "--joblog", "--delay", "--timeout"),
    **{("tmux", name): _TMUX_VALUED for name in ("new-session", "new", "new-window", "neww")},
    **{("tmux", name): _TMUX_VALUED for name in ("split-window", "splitw", "send-keys", "send")},
}
_EACH_ARGUMENT_IS_A_SCRIPT = ("concurrently", "hyperfine")
_LINE_END_KEYS = ("Enter", "C-m", "C-j")  # of `tmux send-keys`

SCRIPT_RUNNERS = tuple(
    dict.fromkeys(
        (*SHELLS, *POWERSHELLS, *_SCRIPT_OPTIONS, *(names[0] for names in _SCRIPT_ARGUMENTS), "ssh")
    )
)
_CHECKS_SYNTAX = re.compile("-[a-z]*n[a-z]*")  # `bash -n`
_OPENS_SHELL = re.compile("-[a-zA-Z]*[si]|--shell|--login")  # `sudo -s`, `sudo -i`

# PowerShell takes the names of its options in any case, shortened (`-Comm`), and by these aliases;
# of names that begin alike, the first is meant: `-i` is -Interactive, `-e` is -EncodedCommand
_POWERSHELL_FLAGS = ("interactive", "sshservermode")
_POWERSHELL_VALUED = (
    *("command", "encodedcommand", "encodedarguments", "executionpolicy", "inputformat"),
    *("outputformat", "workingdirectory", "windowstyle", "version", "psconsolefile"),
    *("configurationname", "configurationfile", "custompipename", "settingsfile"),
)
_POWERSHELL_ALIASES = {
    "ec": "encodedcommand",
    "ea": "encodedarguments",
    "ep": "executionpolicy",
    "if": "inputformat",
    "of": "outputformat",
    "wd": "workingdirectory",
}


def script_in(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the script that a command runs, such as that of `bash -c`; None if it runs none.

    Args:
        from_input: the text of the command's input, which a shell without arguments runs.
    """
    program = words[0].rpartition("/")[2]
    if program in SHELLS:
        return _script_of_shell(program, words, from_input)
    if program.lower() in POWERSHELLS:
        return _script_of_powershell(words)
    if program.lower() in _CMDLETS_THAT_RUN:
        return _script_of_cmdlet(program.lower(), words, from_input)
    match program:
        case "eval":
            return " ".join(words[1:])
        case "trap":
            action = words[2:] if "--" in words[1:2] else words[1:]
            return action[0] if action else None
        case "find":
            commands = commands_of_find(words)  # a single one is left to `unwrap`
            return "\n".join(map(shlex.join, commands)) if len(commands) > 1 else None
        case "ssh":
            return _script_of_ssh(words, from_input)
        case "at" | "batch":
            return from_input
        case "su":
            return script_of_option(program, words) or from_input
        case "sudo":
            return from_input if _is_shell_of_sudo(words) else None
    return script_of_option(program, words) or _script_in_arguments(program, words)


def script_of_option(program: str, words: Sequence[str]) -> str | None:
    """Returns the script in an option of a command, such as `-c` of `bash`; None if it has none.

    Args:
        words: the command; its first word may have the path of the program too.
    """
    is_rebase = program == "git" and "rebase" in words[1:2]
    option = _REBASE_OPTION if is_rebase else _SCRIPT_OPTIONS.get(program)
    if option is None:
        return None
    scripts = _values_of(option, words[1:])
    if option.is_repeated:
        return "\n".join(filter(None, scripts)) or None
    return next(scripts, "") or None


def _values_of(option: _ScriptOption, words: Sequence[str]) -> Iterator[str]:
    """Yields the values of an option, up to where the arguments of a command itself begin."""
    num_arguments = 0
    rest = deque(words)
    while rest and num_arguments <= option.max_arguments and rest[0] != "--":
        word = rest.popleft()
        name, equals, value = word.partition("=")
        if re.fullmatch(option.pattern, name):
            if equals:
                yield value
            elif option.takes_rest:
                yield " ".join(rest)
            elif option.comes_last:
                yield _first_operand(rest, option.valued)
            else:
                yield rest.popleft() if rest else ""
        elif word in option.valued and rest:
            rest.popleft()
        elif not word.startswith(("-", "+")):
            num_arguments += 1


def _first_operand(words: Sequence[str], valued: Sequence[str]) -> str:
    """Returns the first word that is no option, nor the value of one; "" if there is none."""
    rest = deque(words)
    while rest:
        word = rest.popleft()
        if word == "--":
            return rest[0] if rest else ""
        if not word.startswith(("-", "+")):
            return word
        if word in valued and rest:
            rest.popleft()
    return ""


def _script_of_shell(program: str, words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the script of `bash -c`, or the input of `bash` and `bash -s`; None for a file."""
    if checks_syntax(words):
        return None
    if script := script_of_option(program, words):
        return script
    return None if file_of_shell(words) else from_input


def checks_syntax(words: Sequence[str]) -> bool:
    """Whether a shell only checks the syntax of a script, as `bash -n` does."""
    return any(map(_CHECKS_SYNTAX.fullmatch, words[1:2]))


def file_of_shell(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the words from the file that a shell runs on; () if it reads its input."""
    rest = after_options(words[1:], _SHELL_VALUED)
    return () if not rest or is_redirection(rest[0]) else rest


def _is_shell_of_sudo(words: Sequence[str]) -> bool:
    """Whether a command is `sudo -s` or `sudo -i` without a command, which read their input."""
    command = after_options(words[1:], SUDO_VALUED)
    is_alone = not command or is_redirection(command[0])
    return is_alone and any(map(_OPENS_SHELL.fullmatch, words[1:]))


def _script_of_ssh(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the command for the host, or the input if the host's shell runs that."""
    remote = after_options(words[1:], _SSH_VALUED, 1)
    if len(remote) == 1 and len(remote[0].split()) == 2:  # 'bash -s'
        remote = tuple(remote[0].split())
    if not remote:
        return from_input
    if remote[0] in SHELLS and _script_of_shell(remote[0], remote, from_input="") == "":
        return from_input  # it has no script but its input
    return " ".join(remote)


def _script_of_powershell(words: Sequence[str]) -> str | None:
    """Returns the script of `-Command` or `-EncodedCommand`; None without one, as for a file."""
    rest = deque(words[1:])
    while rest and rest[0].startswith("-"):
        match _powershell_option(rest.popleft()):
            case "command":
                return " ".join(rest) or None
            case "encodedcommand":
                return _decode_script(rest[0]) if rest else None
            case str():  # another option with a value
                if rest:
                    rest.popleft()
    return None


def _powershell_option(word: str) -> str | None:
    """Returns the full name of an option that takes a value; None for any other option."""
    name = word[1:].lower()
    if name in _POWERSHELL_ALIASES:
        return _POWERSHELL_ALIASES[name]
    names = (*_POWERSHELL_FLAGS, *_POWERSHELL_VALUED)
    meant = next((full for full in names if name and full.startswith(name)), None)
    return None if meant in _POWERSHELL_FLAGS else meant


def _decode_script(encoded: str) -> str | None:
    """Returns the script that PowerShell takes in Base64; None if it cannot be decoded."""
    try:
        return base64.b64decode(encoded).decode("utf-16-le") or None
    except ValueError:
        return None


def _script_of_cmdlet(program: str, words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the script of `Invoke-Expression`, or the command that `Start-Process` starts."""
    if program != "start-process":
        return " ".join(word for word in words[1:] if word.lower() != "-command") or from_input
    operands = [word for word in words[1:] if not word.startswith("-")]
    values = {option.lower(): value for option, value in pairwise(words)}
    arguments = values.get("-argumentlist") or values.get("-args") or " ".join(operands[1:2])
    command = values.get("-filepath") or "".join(operands[:1])
    return f"{command} {arguments.replace(',', ' ')}".strip() or None


def _script_in_arguments(program: str, words: Sequence[str]) -> str | None:
    """Returns the script that is the arguments of a command, as of `watch`; None for others."""
    for names, valued in _SCRIPT_ARGUMENTS.items():
        if names[0] == program and (rest := after_names(words, names)) is not None:
            return _join_arguments(program, after_options(rest, valued))
    return None


def _join_arguments(program: str, words: Sequence[str]) -> str | None:
    """Joins the words of a script; of GNU parallel, those before its list of arguments."""
    if program in _EACH_ARGUMENT_IS_A_SCRIPT:
        return "\n".join(words) or None
    if program == "parallel" and ":::" in words:
        separator = words.index(":::")
        return " ".join(words[:separator]) or "\n".join(words[separator + 1 :])
    if program == "tmux":
        words = [word for word in words if word not in _LINE_END_KEYS]
    return " ".join(words) or None
