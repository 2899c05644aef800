"""The ways to read a command: without its wrappers, its folders and its options.

For example:

    sudo git -C app push  ->  `sudo git -C app push`, `git -C app push`, `git push`
    uv run --frozen x.py  ->  `uv run --frozen x.py`, `uv run x.py`, `x.py`
"""

from collections.abc import Mapping

from holdfast.measures.agent_acts.commands.command_wrappers import unwrap, wrapper_without_options
from holdfast.measures.agent_acts.commands.equivalent_commands import equivalents_of
from holdfast.measures.agent_acts.commands.shell_commands import ANY_OPTION, Reading

_MAX_READINGS = 16
_SUFFIXES_OF_WINDOWS = ("exe", "cmd", "bat")
# Options between a program and its subcommand, and whether they take a value.
_GLOBAL_OPTIONS: Mapping[str, Mapping[str, bool]] = {
    "git": {
        **dict.fromkeys(("-C", "-c", "--git-dir", "--work-tree", "--namespace"), True),
        **dict.fromkeys(("--no-pager", "-p", "-P", "--paginate", "--bare"), False),
        **dict.fromkeys(("--no-replace-objects", "--no-optional-locks", "--no-advice"), False),
        **dict.fromkeys(("--literal-pathspecs", "--glob-pathspecs", "--exec-path"), False),
    },
    "make": {"-C": True, "--directory": True, "-s": False, "--silent": False},
    "npm": {
        **dict.fromkeys(("--prefix", "-C", "-w", "--workspace"), True),
        **dict.fromkeys(("-s", "--silent", "--workspaces", "--if-present"), False),
    },
    "pnpm": {
        **dict.fromkeys(("--filter", "-F", "-C", "--dir"), True),
        **dict.fromkeys(("-r", "--recursive", "-w", "--workspace-root", "-s", "--silent"), False),
    },
    "yarn": {"--cwd": True, "-s": False, "--silent": False},
    "go": {"-C": True},
    "cargo": {
        **dict.fromkeys(("-C", "--config", "-Z", "--color", "--manifest-path"), True),
        **dict.fromkeys(("--locked", "--offline", "--frozen", "-q", "--quiet", "-v"), False),
    },
    "terraform": {"-chdir": True},
    "gh": {"-R": True, "--repo": True},
    "aws": {
        **dict.fromkeys(("--profile", "--region", "--endpoint-url", "--output"), True),
        "--no-cli-pager": False,
    },
    **dict.fromkeys(
        ("docker", "podman"),
        dict.fromkeys(("-H", "--host", "-c", "--context", "--config", "-l", "--log-level"), True),
    ),
    **dict.fromkeys(
        ("kubectl", "oc"), dict.fromkeys(("-n", "--namespace", "--context", "--kubeconfig"), True)
    ),
}


def readings_of(reading: Reading) -> tuple[Reading, ...]:
    """Returns a reading and those without its wrappers: `sudo git push`, then `git push`.

    Before the last come the other ways to write each of them, such as `make check` for
    `make lint check`.
    """
    readings = [reading]
    while len(readings) < _MAX_READINGS:
        inner = _unwrap(readings[-1])
        if inner is None or not inner.words:
            break
        if plain := _without_wrapper_options(readings[-1], inner):
            readings.append(plain)
        readings.append(inner)
    equivalents = [other for reading in readings for other in equivalents_of(reading)]
    return (*readings[:-1], *equivalents, readings[-1])


def _unwrap(reading: Reading) -> Reading | None:
    """Returns the reading without its outermost wrapper, folder or options; None without these."""
    words = reading.words
    start = max(words[0].rfind("/"), words[0].rfind("\\")) + 1
    folder, program = words[0][:start], words[0][start:]
    if folder and program:
        return reading.reduce_to((program, *words[1:]), folder)
    stem, _, suffix = program.rpartition(".")
    if stem and suffix.lower() in _SUFFIXES_OF_WINDOWS:
        return reading.reduce_to((stem, *words[1:]), program)
    if unwrapped := unwrap(words):
        return reading.reduce_to(unwrapped.command, *unwrapped.left_out)
    return _without_global_options(reading) if program in _GLOBAL_OPTIONS else None


def _without_wrapper_options(reading: Reading, inner: Reading) -> Reading | None:
    """Returns a wrapped command without its wrapper's options; None if it has none.

    `uv run --frozen pytest` -> `uv run pytest`
    """
    words = wrapper_without_options(reading.words)
    if words is None or (*words, *inner.words) == reading.words:
        return None
    before = reading.words[: len(reading.words) - len(inner.words)]
    options = [word.partition("=")[0] for word in before if word.startswith("-")]
    return reading.reduce_to((*words, *inner.words), ANY_OPTION, *options)


def _without_global_options(reading: Reading) -> Reading | None:
    """Returns `git push` for `git -C app push`; None if no option is before the subcommand."""
    program, *rest = reading.words
    takes_value = _GLOBAL_OPTIONS[program]
    options = []
    while rest and rest[0].startswith(("-", "+")):
        option, equals, _ = rest[0].partition("=")
        is_toolchain = program == "cargo" and option.startswith("+")  # cargo +nightly build
        if option not in takes_value and not is_toolchain:
            break
        options.append(rest[0] if is_toolchain else option)
        del rest[: 2 if takes_value.get(option) and not equals else 1]
    return reading.reduce_to((program, *rest), *options) if options else None
