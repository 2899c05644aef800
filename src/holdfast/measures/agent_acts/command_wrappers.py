"""Programs that run the command in their arguments, here or in another environment.

A command is still that command in a container, on another host or in a project's environment:
`docker exec web git push` is `git push` too.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from holdfast.measures.agent_acts.command_options import KUBECTL_VALUED, after_names, split_words
from holdfast.measures.agent_acts.find_commands import commands_of_find
from holdfast.measures.agent_acts.inner_scripts import (
    SCRIPT_RUNNERS,
    SHELLS,
    SUDO_VALUED,
    file_of_shell,
    script_of_option,
)
from holdfast.measures.agent_acts.program_texts import is_python

_DASHES = ("--",)


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
_IN_POD = Wrapper((*KUBECTL_VALUED, "-c", "--container", "-f", "--filename"), 1, _DASHES)
_IN_MACHINE = Wrapper(
    ("--cwd", "--env", "--user", "--group", "--mode", "-d", "--working-directory"), 1, _DASHES
)
_IN_PROJECT = Wrapper(("-n", "--name", "-p", "--prefix", "--cwd", "-e", "--environment"))
_UV_RUN = Wrapper(
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
_NPX_LIKE = Wrapper(("-p", "--package", "-w", "--workspace"), has_version=True)
_AFTER_DASHES = Wrapper(marks=_DASHES, needs_mark=True)
_IN_NIX = Wrapper(marks=("-c", "--command"), needs_mark=True)
# by the name of the program and its subcommands
_WRAPPERS: Mapping[tuple[str, ...], Wrapper] = {
    ("sudo",): Wrapper(SUDO_VALUED),
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
    **{(name,): Wrapper() for name in ("firejail", "dbus-run-session", "torsocks", "lima", "arch")},
    **{(name,): Wrapper((), 1) for name in ("faketime", "envchain", "su-exec")},
    ("setpriv",): Wrapper(("--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set")),
    ("nsenter",): Wrapper(("-t", "--target", "-S", "--setuid", "-G", "--setgid")),
    ("numactl",): Wrapper(("-N", "-m", "-C", "-i", "-p", "--cpunodebind", "--membind")),
    ("cpulimit",): Wrapper(("-l", "--limit", "-p", "--pid", "-e", "--exe", "-c", "--cpu")),
    ("ltrace",): Wrapper(("-e", "-o", "-p", "-s", "-n", "-l")),
    ("perf", "stat"): Wrapper(("-e", "--event", "-o", "--output", "-r", "--repeat", "-x")),
    ("systemd-inhibit",): Wrapper(("--what", "--who", "--why", "--mode")),
    **{names: Wrapper() for names in (("rtk", "proxy"), ("rtk",))},
    ("screen",): Wrapper(("-S", "-t", "-h", "-c", "-T", "-s")),
    ("retry",): Wrapper(("-t", "--times", "-d", "--delay", "-m")),
    ("watchexec",): Wrapper(
        ("-e", "--exts", "-w", "--watch", "-i", "--ignore", "-f", "--filter", "-d", "--debounce")
    ),
    ("systemd-run",): Wrapper(("-p", "--property", "-u", "--unit", "-E", "--setenv", "-M")),
    ("git", "bisect", "run"): Wrapper(),
    **{names: Wrapper() for names in (("mr", "run"), ("meta", "exec"), ("dagger", "run"))},
    **{(name, "exec"): _AFTER_DASHES for name in ("lerna", "nx", "chamber")},
    ("jj", "util", "exec"): _AFTER_DASHES,
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
    **{
        (name, "shell"): Wrapper(("--workdir", "-E", "--setenv"), 1)
        for name in ("limactl", "machinectl")
    },
    ("toolbox", "run"): Wrapper(("-c", "--container", "-d", "--distro", "-r", "--release")),
    **{names: _AFTER_DASHES for names in (("colima", "ssh"), ("distrobox", "enter"))},
    ("railway", "run"): Wrapper(("-s", "--service", "-e", "--environment")),
    # the environments of projects
    ("uv", "run"): _UV_RUN,
    ("uv", "tool", "run"): _UV_RUN,
    ("uvx",): _UV_RUN,
    ("pipx", "run"): Wrapper(("--spec", "--python", "--pip-args"), has_version=True),
    ("dotenv",): _AFTER_DASHES,
    **{(name, "run"): _IN_PROJECT for name in ("poetry", "pipenv", "hatch", "pdm", "rye", "pixi")},
    **{(name, "run"): _IN_PROJECT for name in ("conda", "mamba", "micromamba", "devbox")},
    **{(name,): _NPX_LIKE for name in ("npx", "bunx", "pnpx")},
    **{(name, "exec"): _NPX_LIKE for name in ("npm", "pnpm", "yarn")},
    **{(name, "dlx"): _NPX_LIKE for name in ("pnpm", "yarn")},
    **{(name, "x"): _NPX_LIKE for name in ("npm", "bun")},
    **{(name, "exec"): Wrapper() for name in ("bundle", "rbenv", "pyenv", "asdf")},
    **{(name, "exec"): Wrapper((), 1) for name in ("direnv", "nvm")},
    ("fnm", "exec"): Wrapper(("--using",)),
    ("volta", "run"): Wrapper(("--node", "--npm", "--pnpm", "--yarn")),
    ("mise", "exec"): _AFTER_DASHES,
    ("mise", "x"): _AFTER_DASHES,
    ("aws-vault", "exec"): Wrapper(("-d", "--duration", "--region"), 1, _DASHES),
    **{(name, "run"): _AFTER_DASHES for name in ("op", "doppler", "infisical", "dotenvx")},
    ("devenv", "shell"): Wrapper(),
    ("flox", "activate"): _AFTER_DASHES,
    ("nix", "develop"): _IN_NIX,
    ("nix", "shell"): _IN_NIX,
}
_NODE_RUNNERS = ("npx", "bunx", "pnpx", "uvx")
# programs that run commands with another file system
_ELSEWHERE = frozenset(
    "docker podman nerdctl docker-compose kubectl oc lxc incus multipass wsl heroku ddev ssh"
    " devcontainer vagrant gcloud fly flyctl ansible chroot machinectl".split()
)
_PYTHON_VALUED = ("-W", "-X")
_REDIRECTION = re.compile(r"[0-9&]*[<>]")
_VERSION = re.compile(r"(?<=.)@[\w.^~*-]+\Z")


def unwrap(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Removes the outermost wrapper of a command.

    Returns:
        The command in it, and the words that were left out by which patterns can mention it; None
        for a command without a wrapper.
    """
    program = words[0]
    if program == "find":
        return _unwrap_find(words)
    if script_of_option(program, words) is not None:
        return None
    if program in SHELLS:
        return file_of_shell(words), (program,)
    if is_python(program):
        module = _module_of_python(words)
        return (module, (program, "-m")) if module else None
    if program == "command" and words[1:2] in (("-v",), ("-V",)):
        return None
    for names, wrapper in _wrappers_of(program):
        if (rest := after_names(words, names)) is not None:
            return _command_in(rest, wrapper), (program,)
    return None


def _unwrap_find(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Returns the command that `find -exec` runs; None if it runs none, or several."""
    commands = commands_of_find(words)
    return (commands[0], ("find", "-exec")) if len(commands) == 1 else None


def _module_of_python(words: Sequence[str]) -> tuple[str, ...]:
    """Returns the module that Python runs, with its arguments; () if it runs none."""
    rest = deque(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.popleft()
        if option == "-m":
            return tuple(rest)
        if option in _PYTHON_VALUED and rest:
            rest.popleft()
        if option in ("-c", "-"):
            break
    return ()


@lru_cache(maxsize=1024)
def _wrappers_of(program: str) -> list[tuple[tuple[str, ...], Wrapper]]:
    return [entry for entry in _WRAPPERS.items() if entry[0][0] == program]


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
    _, rest = _split(words, wrapper)
    before = words[: len(words) - len(rest)]
    if wrapper is _UV_RUN and not {"-m", "--module"}.isdisjoint(before):
        return ("python", "-m", *rest)
    if wrapper is _RUN:
        options = [word.partition("=") for word in before]
        for number, (name, equals, value) in enumerate(options):
            if name == "--entrypoint":
                program = value if equals else "".join(before[number + 1 : number + 2])
                return (program, *rest) if program else rest
    return rest


def _split(words: Sequence[str], wrapper: Wrapper) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns a wrapper's own arguments, and the words after these and its options."""
    return split_words(words, wrapper.valued_options, wrapper.arguments, wrapper.flags)


def wrapper_without_options(words: Sequence[str]) -> tuple[str, ...] | None:
    """Returns the outermost wrapper of a command with its own arguments, such as `docker exec web`.

    None for a command without a wrapper.
    """
    for names, wrapper in _wrappers_of(words[0]):
        rest = after_names(words, names)
        if rest is not None and not wrapper.needs_mark:
            operands, _ = _split(rest, wrapper)
            dashes = _DASHES if wrapper.marks and "--" in rest else ()
            return (*names, *operands, *dashes)
    return None


def wrappers_in(text: str) -> list[str]:
    """Returns the wrappers that a text names by a program and its subcommand, such as `uv run`, and
    those of one word that code in backticks begins with, such as `npx`.
    """
    codes = [code.split() for code in re.findall("`([^`]+)`", text)]
    programs = {code[0] for code in codes if code}
    words = [word.strip(",;:.!?()") for word in text.replace("`", " ").split()]
    wrappers: list[str] = []
    for names in _WRAPPERS:
        if len(names) == 1 and names[0] not in _NODE_RUNNERS:
            is_named = names[0] in programs
        else:
            is_named = any(
                after_names(words[start:], names) is not None
                for start, word in enumerate(words)
                if word == names[0]
            )
        wrappers += [" ".join(names)] if is_named else []
    wrappers += [name for name in SCRIPT_RUNNERS if name in programs and name != "git"]
    return wrappers


def runs_elsewhere(words: Sequence[str]) -> bool:
    """Whether the program of a command runs others with another file system: in a container, a pod,
    a machine or on a host.
    """
    return bool(words) and words[0].rpartition("/")[2] in _ELSEWHERE
