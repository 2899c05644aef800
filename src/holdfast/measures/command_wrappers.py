"""Programs that run the command in their arguments, here or in another environment.

A command is still that command in a container, on another host or in a project's environment:
`docker exec web git push` is `git push` too.
"""

import base64
import re
import shlex
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from holdfast.measures.program_texts import is_python

_DASHES = ("--",)
# options of programs that come before a subcommand and take a value
_COMPOSE = (
    *("-f", "--file", "-p", "--project-name", "--profile", "--env-file", "--project-directory"),
    *("--ansi", "--parallel", "--progress", "-H", "--host", "--context", "--log-level"),
)
_KUBECTL = (
    *("-n", "--namespace", "--context", "--cluster", "--kubeconfig", "-s", "--server", "--as"),
    *("--as-group", "--token", "--user", "--request-timeout", "--pod-running-timeout"),
)
_NODE = ("-C", "--dir", "--filter", "-F", "--prefix", "--cwd", "-w", "--workspace")
_VALUED_BEFORE = {
    **dict.fromkeys(("docker", "podman", "nerdctl", "docker-compose"), _COMPOSE),
    **dict.fromkeys(("kubectl", "oc"), _KUBECTL),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _NODE),
    "nix": ("--extra-experimental-features", "--experimental-features", "--option"),
    "uv": ("--directory", "--project", "--config-file"),
    "poetry": ("-C", "--directory", "-P", "--project"),
    "mise": ("-C", "--cd", "-E", "--env"),
    "tmux": ("-L", "-S", "-f", "-c", "-T"),
}


class Wrapper(NamedTuple):
    """A program, or one of its subcommands, that runs the command in its arguments."""

    valued_options: Sequence[str] = ()  # its options that take a value
    arguments: int = 0  # how many of its own arguments come before the command
    marks: Sequence[str] = ()  # the command begins after the first of these words
    needs_mark: bool = False  # whether it runs no command without one
    has_version: bool = False  # whether the command may end in a version, as in eslint@9
    flags: Sequence[str] = ()  # its options without a value; () if these are not listed


_EXEC = Wrapper(
    ("-e", "--env", "--env-file", "-u", "--user", "-w", "--workdir", "--index", "--detach-keys"), 1
)
# almost all options of `docker run` take a value, so that those without one are listed
_RUN = Wrapper(
    (),
    1,
    flags=(
        *("-d", "--detach", "-i", "--interactive", "-t", "--tty", "-P", "--publish-all", "-q"),
        *("--rm", "--init", "--privileged", "--quiet", "--read-only", "--no-healthcheck"),
        *("--oom-kill-disable", "--sig-proxy", "--disable-content-trust", "--replace", "--rmi"),
        # of compose and podman
        *("-T", "--no-TTY", "--build", "--no-deps", "--service-ports", "--use-aliases", "--no-tty"),
        *("--remove-orphans", "--quiet-pull", "--quiet-build", "--no-hosts", "--no-hostname"),
    ),
)
_IN_POD = Wrapper((*_KUBECTL, "-c", "--container", "-f", "--filename"), 1, _DASHES)
_IN_MACHINE = Wrapper(
    ("--cwd", "--env", "--user", "--group", "--mode", "-d", "--working-directory"), 1, _DASHES
)
_IN_PROJECT = Wrapper(("-n", "--name", "-p", "--prefix", "--cwd", "-e", "--environment"))
_OF_UV = Wrapper(
    (
        *("--with", "--with-editable", "--with-requirements", "--extra", "--group", "--only-group"),
        *("--no-group", "--no-extra", "--env-file", "-p", "--python", "--package", "--project"),
        *("--directory", "--index", "--default-index", "--from", "-w", "-i", "--index-url"),
        *("--extra-index-url", "-f", "--find-links", "-P", "--upgrade-package", "-C"),
        *("--upgrade-group", "--resolution", "--prerelease", "--fork-strategy", "--exclude-newer"),
        *("--exclude-newer-package", "--index-strategy", "--keyring-provider", "--link-mode"),
        *("--config-setting", "--config-settings", "--config-settings-package", "--cache-dir"),
        *("--no-build-isolation-package", "--no-build-package", "--no-binary-package"),
        *("--refresh-package", "--reinstall-package", "--no-sources-package", "--config-file"),
        *("--no-editable-package", "--allow-insecure-host", "--color", "--python-platform"),
        *("-c", "--constraints", "-b", "--build-constraints", "--overrides", "--torch-backend"),
    ),
    has_version=True,
)
_OF_NODE = Wrapper(("-p", "--package", "-w", "--workspace"), has_version=True)
_AFTER_DASHES = Wrapper(marks=_DASHES, needs_mark=True)
_IN_NIX = Wrapper(marks=("-c", "--command"), needs_mark=True)
# by the name of the program and its subcommands
_WRAPPERS: Mapping[tuple[str, ...], Wrapper] = {
    ("sudo",): Wrapper(
        ("-u", "-g", "-p", "-h", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user")
    ),
    ("doas",): Wrapper(("-u", "-C")),
    ("env",): Wrapper(("-u", "-C", "--unset", "--chdir")),
    ("timeout",): Wrapper(("-s", "-k", "--signal", "--kill-after"), 1),
    ("gtimeout",): Wrapper(("-s", "-k", "--signal", "--kill-after"), 1),
    ("xargs",): Wrapper(
        (
            *("-I", "-n", "-P", "-L", "-d", "-E", "-a", "-s", "--max-args", "--max-procs"),
            *("--delimiter", "--arg-file", "--max-chars", "--process-slot-var"),
        )
    ),
    ("nice",): Wrapper(("-n", "--adjustment")),
    ("ionice",): Wrapper(("-c", "-n", "--class", "--classdata")),
    ("stdbuf",): Wrapper(("-i", "-o", "-e", "--input", "--output", "--error")),
    ("time",): Wrapper(("-f", "-o", "--format", "--output")),
    ("strace",): Wrapper(("-e", "-o", "-p", "-s")),
    ("flock",): Wrapper(("-w", "-E", "--timeout"), 1),
    ("script",): Wrapper(("-t", "-T", "-I", "-O", "-B", "-m", "-E", "-o"), 1),
    ("runuser",): Wrapper(("-u", "--user", "-g", "--group", "-G", "--supp-group")),
    ("unshare",): Wrapper(("-S", "--setuid", "-G", "--setgid", "-R", "--root", "-w", "--wd")),
    ("xvfb-run",): Wrapper(("-e", "-f", "-n", "-p", "-s", "-w", "--server-args")),
    ("gosu",): Wrapper((), 1),
    ("chroot",): Wrapper((), 1),
    ("taskset",): Wrapper((), 1),
    ("exec",): Wrapper(("-a",)),
    **{(name,): Wrapper() for name in ("nohup", "setsid", "command", "builtin", "chronic")},
    **{(name,): Wrapper() for name in ("unbuffer", "caffeinate", "busybox", ".", "source")},
    **{(name,): Wrapper() for name in ("coproc", "cross-env", "entr", "flatpak-spawn")},
    **{(name,): Wrapper() for name in ("corepack", "winpty", "proxychains", "proxychains4")},
    **{(name,): Wrapper() for name in ("firejail", "dbus-run-session", "rtk")},
    ("rtk", "proxy"): Wrapper(),
    ("screen",): Wrapper(("-S", "-t", "-h", "-c", "-T", "-s")),
    ("retry",): Wrapper(("-t", "--times", "-d", "--delay", "-m")),
    ("watchexec",): Wrapper(
        ("-e", "--exts", "-w", "--watch", "-i", "--ignore", "-f", "--filter", "-d", "--debounce")
    ),
    ("systemd-run",): Wrapper(("-p", "--property", "-u", "--unit", "-E", "--setenv", "-M")),
    ("git", "bisect", "run"): Wrapper(),
    # other environments
    **{(name, "exec"): _EXEC for name in ("docker", "podman", "nerdctl", "docker-compose")},
    **{(name, "run"): _RUN for name in ("docker", "podman", "nerdctl", "docker-compose")},
    **{(name, "compose", "exec"): _EXEC for name in ("docker", "podman", "nerdctl")},
    **{(name, "compose", "run"): _RUN for name in ("docker", "podman", "nerdctl")},
    ("docker", "container", "exec"): _EXEC,
    ("docker", "container", "run"): _RUN,
    **{(name, "exec"): _IN_POD for name in ("kubectl", "oc")},
    **{("kubectl", name): _AFTER_DASHES for name in ("run", "debug")},
    **{(name, "exec"): _IN_MACHINE for name in ("lxc", "incus", "multipass")},
    ("wsl",): Wrapper(("-d", "--distribution", "-u", "--user", "--cd")),
    ("heroku", "run"): Wrapper(("-a", "--app", "-r", "--remote", "-s", "--size")),
    ("ddev", "exec"): Wrapper(("-s", "--service", "-d", "--dir")),
    ("devcontainer", "exec"): Wrapper(
        (
            *("--workspace-folder", "--container-id", "--id-label", "--config", "--remote-env"),
            *("--docker-path", "--override-config", "--log-level", "--user-data-folder"),
        )
    ),
    ("guix", "shell"): _AFTER_DASHES,
    ("gh", "codespace", "ssh"): _AFTER_DASHES,
    # the environments of projects
    ("uv", "run"): _OF_UV,
    ("uv", "tool", "run"): _OF_UV,
    ("uvx",): _OF_UV,
    ("pipx", "run"): Wrapper(("--spec", "--python", "--pip-args"), has_version=True),
    ("dotenv",): _AFTER_DASHES,
    **{(name, "run"): _IN_PROJECT for name in ("poetry", "pipenv", "hatch", "pdm", "rye", "pixi")},
    **{(name, "run"): _IN_PROJECT for name in ("conda", "mamba", "micromamba", "devbox")},
    **{(name,): _OF_NODE for name in ("npx", "bunx", "pnpx")},
    **{(name, "exec"): _OF_NODE for name in ("npm", "pnpm", "yarn")},
    **{(name, "dlx"): _OF_NODE for name in ("pnpm", "yarn")},
    **{(name, "x"): _OF_NODE for name in ("npm", "bun")},
    **{(name, "exec"): Wrapper() for name in ("bundle", "rbenv", "pyenv", "asdf")},
    **{(name, "exec"): Wrapper((), 1) for name in ("direnv", "nvm")},
    ("fnm", "exec"): Wrapper(("--using",)),
    ("volta", "run"): Wrapper(("--node", "--npm", "--pnpm", "--yarn")),
    ("mise", "exec"): _AFTER_DASHES,
    ("mise", "x"): _AFTER_DASHES,
    ("aws-vault", "exec"): Wrapper(("-d", "--duration", "--region"), 1, _DASHES),
    **{(name, "run"): _AFTER_DASHES for name in ("op", "doppler", "infisical", "dotenvx")},
    ("nix", "develop"): _IN_NIX,
    ("nix", "shell"): _IN_NIX,
}
_NODE_RUNNERS = ("npx", "bunx", "pnpx", "uvx")
# programs that run commands with another file system
_ELSEWHERE = frozenset(
    "docker podman nerdctl docker-compose kubectl oc lxc incus multipass wsl heroku ddev ssh"
    " devcontainer vagrant gcloud fly flyctl ansible chroot".split()
)
SHELLS = ("bash", "sh", "zsh", "dash", "ksh", "fish", "ash")
POWERSHELLS = ("powershell", "powershell.exe", "pwsh")
_OF_PYTHON = ("-W", "-X")
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
    **dict.fromkeys(("cmd", "cmd.exe"), _ScriptOption("(?i)/[ck]", takes_rest=True)),
    "nix-shell": _ScriptOption("--run|--command", _ANY_NUMBER),
    "npx": _ScriptOption("-c|--call"),
    "vagrant": _ScriptOption("-c|--command", 2),
    "gcloud": _ScriptOption("--command", _ANY_NUMBER),
    **dict.fromkeys(("fly", "flyctl"), _ScriptOption("-C|--command", 2)),
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
_RUN_EACH_ARGUMENT = ("concurrently", "hyperfine")
_RUN_INPUT = ("at", "batch")
_RUN_INPUT_AS = ("su", "sudo")  # without a command
_CMDLETS_THAT_RUN = ("invoke-expression", "iex", "start-process")
# the options of ssh that take a value
_OF_SSH = tuple(f"-{letter}" for letter in "BbcDEeFIiJLlmOopQRSWw")
_ENCODED = re.compile("-e(?:c|ncodedcommand)?", re.IGNORECASE)
_KEYS = ("Enter", "C-m", "C-j")  # with which tmux ends a line
_REDIRECTION = re.compile(r"[0-9&]*[<>]")
_VERSION = re.compile(r"(?<=.)@[\w.^~*-]+\Z")


def script_in(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the script that a command runs, such as that of `bash -c`; None if it runs none.

    Args:
        from_input: the text of the command's input, which a shell without arguments runs.
    """
    program = words[0].rpartition("/")[2]
    if program == "eval":
        return " ".join(words[1:])
    if program == "find":
        commands = _commands_of_find(words)
        return "\n".join(map(shlex.join, commands)) if len(commands) > 1 else None
    if program == "trap":
        return words[1] if len(words) > 1 else None
    if program in SHELLS and any(re.fullmatch("-[a-z]*n[a-z]*", word) for word in words[1:2]):
        return None  # only the syntax is checked
    if program.lower() in POWERSHELLS and (encoded := _encoded_script(words)):
        return encoded
    if (script := _script_of_option(program, words)) is not None:
        return script
    if program in SHELLS:
        return None if _file_of_shell(words) else from_input
    if program in _RUN_INPUT or (program in _RUN_INPUT_AS and not _operands_of_sudo(words)):
        return from_input
    if program.lower() in _CMDLETS_THAT_RUN:
        return _script_of_cmdlet(program.lower(), words, from_input)
    if program == "ssh":
        remote = _after_options(words[1:], _OF_SSH, 1)
        if len(remote) == 1 and len(remote[0].split()) == 2:  # 'bash -s'
            remote = tuple(remote[0].split())
        runs_input = not remote or (remote[0] in SHELLS and script_in(remote, "") == "")
        return from_input if runs_input else " ".join(remote)
    for names, valued in _script_arguments_of(program):
        if (rest := _after_names(words, names)) is not None:
            return _script_of_arguments(program, _after_options(rest, valued, 0))
    return None


@lru_cache(maxsize=1024)
def _script_arguments_of(program: str) -> list[tuple[tuple[str, ...], Sequence[str]]]:
    return [entry for entry in _SCRIPT_ARGUMENTS.items() if entry[0][0] == program]


@lru_cache(maxsize=1024)
def _wrappers_of(program: str) -> list[tuple[tuple[str, ...], Wrapper]]:
    return [entry for entry in _WRAPPERS.items() if entry[0][0] == program]


def _script_of_option(program: str, words: Sequence[str]) -> str | None:
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
    rest = _after_options(words[1:], _WRAPPERS[("sudo",)].valued_options, 0)
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


def _file_of_shell(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the words from the file that a shell runs on; () if it reads its input."""
    rest = _after_options(words[1:], _OF_SHELL, 0)
    return () if not rest or _REDIRECTION.match(rest[0]) else rest


def _module_of_python(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the module that Python runs, with its arguments; () if it runs none."""
    rest = deque(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.popleft()
        if option == "-m":
            return tuple(rest)
        if option in _OF_PYTHON and rest:
            rest.popleft()
        if option in ("-c", "-"):
            break
    return ()


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


def unwrap(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Removes the outermost wrapper of a command.

    Returns:
        The command in it, and the words that were left out by which patterns can mention it; None
        for a command without a wrapper.
    """
    program = words[0]
    if program == "find":
        return _unwrap_find(words)
    if _script_of_option(program, words) is not None:
        return None
    if program in SHELLS:
        return _file_of_shell(words), (program,)
    if is_python(program):
        module = _module_of_python(words)
        return (module, (program, "-m")) if module else None
    if program == "command" and words[1:2] in (("-v",), ("-V",)):
        return None
    for names, wrapper in _wrappers_of(program):
        if (rest := _after_names(words, names)) is not None:
            return _command_in(rest, wrapper), (program,)
    return None


def wrappers_in(text: str) -> list[str]:
    """Returns the wrappers that a text names by a program and its subcommand, such as `uv run`, and
    those of one word that code in backticks begins with, such as `npx`.
    """
    codes = [code.split() for code in re.findall("`([^`]+)`", text)]
    programs = {code[0] for code in codes if code}
    words = [word.strip(",;:.!?()") for word in text.replace("`", " ").split()]
    found: list[str] = []
    for names in _WRAPPERS:
        if len(names) == 1 and names[0] not in _NODE_RUNNERS:
            is_named = names[0] in programs
        else:
            is_named = any(
                _after_names(words[start:], names) is not None
                for start, word in enumerate(words)
                if word == names[0]
            )
        found += [" ".join(names)] if is_named else []
    runners = (*SHELLS, *_SCRIPT_OPTIONS, *(names[0] for names in _SCRIPT_ARGUMENTS), "ssh")
    found += [name for name in dict.fromkeys(runners) if name in programs and name != "git"]
    return found


def runs_elsewhere(words: Sequence[str]) -> bool:
    """Whether the program of a command runs others with another file system: in a container, a pod,
    a machine or on a host.
    """
    return bool(words) and words[0].rpartition("/")[2] in _ELSEWHERE


def _after_names(words: Sequence[str], names: Sequence[str]) -> Sequence[str] | None:
    """Returns the words after a program and its subcommands; None if these are others."""
    rest = words[1:]
    for name in names[1:]:
        rest = _after_options(rest, _VALUED_BEFORE.get(names[0], ()), 0)
        if rest[:1] != (name,):
            return None
        rest = rest[1:]
    return rest


def _command_in(words: Sequence[str], wrapper: Wrapper) -> tuple[str, ...]:
    """Returns the command after the options and arguments of a wrapper; () for none."""
    rest = _after_wrapper(words, wrapper)
    if rest and _REDIRECTION.match(rest[0]):
        return ()
    if len(rest) == 1:  # as in nohup 'git status'
        rest = tuple(rest[0].split())
    if wrapper.has_version and rest:
        rest = (_VERSION.sub("", rest[0]), *rest[1:])
    return rest


def _after_wrapper(words: Sequence[str], wrapper: Wrapper) -> tuple[str, ...]:
    """Returns the words after the options and arguments of a wrapper, and after the program that
    an option names: `npm test` for `docker run --entrypoint npm node test`.
    """
    if wrapper.needs_mark:
        marks = [number for number, word in enumerate(words) if word in wrapper.marks]
        return tuple(words[marks[0] + 1 :]) if marks else ()
    _, rest = _split(words, wrapper.valued_options, wrapper.arguments, wrapper.flags)
    before = words[: len(words) - len(rest)]
    if wrapper is _OF_UV and not {"-m", "--module"}.isdisjoint(before):
        return ("python", "-m", *rest)
    if wrapper is _RUN:
        options = [word.partition("=") for word in before]
        for number, (name, equals, value) in enumerate(options):
            if name == "--entrypoint":
                program = value if equals else "".join(before[number + 1 : number + 2])
                return (program, *rest) if program else rest
    return rest


def wrapper_without_options(words: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the outermost wrapper of a command with its own arguments, such as `docker exec web`;
    None for a command without a wrapper.
    """
    for names, wrapper in _wrappers_of(words[0]):
        rest = _after_names(words, names)
        if rest is not None and not wrapper.needs_mark:
            operands, _ = _split(rest, wrapper.valued_options, wrapper.arguments, wrapper.flags)
            dashes = _DASHES if wrapper.marks and "--" in rest else ()
            return (*names, *operands, *dashes)
    return None


def _after_options(words: Sequence[str], valued: Sequence[str], positional: int) -> tuple[str, ...]:
    """Returns the words after options, assignments, and `positional` other arguments.

    Args:
        valued: the options that take a value.
    """
    return _split(words, valued, positional)[1]


def _split(
    words: Sequence[str], valued: Sequence[str], positional: int, flags: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the first `positional` arguments, and the words after these and all options.

    Args:
        valued: the options that take a value.
        flags: the options that take none, if all others take one.
    """
    operands: list[str] = []
    rest = list(words)
    while rest:
        if flags and len(operands) == positional:
            break  # after an image, options are those of its command
        if rest[0] == "--":
            rest.pop(0)
        elif rest[0].startswith("-"):
            del rest[: 2 if _takes_next(rest[0], valued, flags) else 1]
        elif re.match(r"\w+=", rest[0]):
            rest.pop(0)
        elif len(operands) < positional:
            operands.append(rest.pop(0))
        else:
            break
    return tuple(operands), tuple(rest)


def _takes_next(option: str, valued: Sequence[str], flags: Sequence[str]) -> bool:
    """Whether the word after an option is its value. Of joined letters, as in `-itu root`, only
    the last may take it.
    """
    if "=" in option or option == "-":
        return False
    if option.startswith("--") or len(option) == len("-x"):
        return option in valued if not flags else option not in flags
    letters = [f"-{letter}" for letter in option[1:]]
    takes = [name in valued if not flags else name not in flags for name in letters]
    return option in valued or (takes[-1] and not any(takes[:-1]))


def _unwrap_find(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Returns the command that `find -exec` runs; None if it runs none, or several."""
    commands = _commands_of_find(words)
    return (commands[0], ("find", "-exec")) if len(commands) == 1 else None


def _commands_of_find(words: Sequence[str]) -> list[tuple[str, ...]]:
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
