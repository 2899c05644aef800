"""The ways to read a command: `sudo git -C app push` is `git push` too."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

from holdfast.measures.agent_acts.command_wrappers import unwrap, wrapper_without_options
from holdfast.measures.agent_acts.file_edits import FileEdit


@dataclass(frozen=True)
class Reading:
    """A way to read a command, such as `git push` for `sudo git -C app push`.

    Args:
        words: the program and its arguments, without quotes and assignments.
        without: the wrappers, options and folders that this reading leaves out.
    """

    words: tuple[str, ...]
    without: frozenset[str] = frozenset()

    @property
    def line(self) -> str:
        """The words in a row.

        Within a word of git or gh, such as the message of a commit, the space before a dash is one
        that does not break, so that ` --force` is found only among the options; a word of another
        program may be a command, as in `ssh web 'rm -rf /'`.
        """
        has_texts = self.words[0] in ("git", "gh")
        words = (word.replace(" -", "\u00a0-") if has_texts else word for word in self.words)
        return " ".join(words)

    def suits(self, pattern: str) -> bool:
        """Whether a pattern may be matched with this reading: it excludes nothing that is left out.

        `(?!sudo )apt` excludes sudo, which the reading without it would never have.
        """
        excluded = _exclusions(pattern)
        return not any(_names(exclusion, name) for exclusion in excluded for name in self.without)

    def reduce_to(self, words: Sequence[str], *names: str) -> "Reading":
        """Returns the reading with these words, which leaves out these names as well."""
        return Reading(tuple(words), self.without | frozenset(names))


_ANY_OPTION = "-"  # stands for all options of a wrapper among the names that a reading leaves out
_PARENTHESIS_OR_LITERAL = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|[()]", re.DOTALL)
# what a regular expression may have before a `(?!...)` that excludes programs
_BEGINS_ALTERNATIVE = re.compile(r"(?:\A|[(:|)^]|\\[Ab])\Z")


@dataclass(frozen=True)
class _Exclusion:
    """The inside of a `(?!...)`, and whether it stands where a command begins."""

    pattern: str
    is_first: bool


@lru_cache(maxsize=1024)
def _exclusions(pattern: str) -> tuple[_Exclusion, ...]:
    """Returns what a regular expression excludes, wherever it has a `(?!...)`."""
    exclusions = []
    for start in re.finditer(r"\(\?!", pattern):
        depth = 1
        end = len(pattern)
        for sign in _PARENTHESIS_OR_LITERAL.finditer(pattern, start.end()):
            depth += {"(": 1, ")": -1}.get(sign[0], 0)
            if not depth:
                end = sign.start()
                break
        is_first = _BEGINS_ALTERNATIVE.search(pattern[: start.start()]) is not None
        exclusions.append(_Exclusion(pattern[start.end() : end], is_first))
    return tuple(exclusions)


def _names(exclusion: _Exclusion, name: str) -> bool:
    """Whether an option or a folder is excluded, or a program where a command begins."""
    text = re.sub(r"\\[A-Za-z]", " ", exclusion.pattern)
    if name == _ANY_OPTION:  # an option that is not spelled out, as in `(?!-)` and `(?!.* -\w*n)`
        return re.search(r"(?<![\w-])-+(?![\w-])", text) is not None
    if name.startswith("-") or "/" in name:
        return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) is not None
    is_named = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None
    return exclusion.is_first and is_named


@dataclass(frozen=True)
class ShellCommand:
    """A command of a script.

    Args:
        readings: the command as it is written, then without one wrapper after another, outermost
            first.
        writes: the files that its output goes to.
        edits: the changes of files by the program in its words or its input, as far as its text
            shows them.
        around: the readings of the shell whose script begins with this command, as in
            `bash -c 'git push'`.
        input: the text of its here-document or here-string; None without one.
        redirects: the last of its words, from the first redirection on.
        is_in_group: whether its files also take the output of commands before it, as in
            `(date; ls) > log`.
        group_output: the output of all of these; None if it is not known.
        subshells: the subshells and inner scripts that it runs in, outermost first, by numbers: a
            `cd` has no effect outside of them.
        source: the command as the agent wrote it; "" if it was not found by the parser.
        is_elsewhere: whether it runs with another file system, as in `docker exec web rm a`; only
            `writes` are files here.
    """

    readings: tuple[Reading, ...]
    writes: tuple[str, ...] = ()
    around: tuple[Reading, ...] = ()
    input: str | None = None
    redirects: tuple[str, ...] = ()
    is_in_group: bool = False
    group_output: str | None = None
    is_elsewhere: bool = False
    subshells: tuple[int, ...] = ()
    source: str = ""
    edits: tuple[FileEdit, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command, with the values of variables and without assignments."""
        return self.readings[0].words

    @property
    def written(self) -> str:
        """The command as the agent wrote it."""
        return self.source or shlex.join(self.words)

    @property
    def innermost(self) -> tuple[str, ...]:
        """The words of the program that all wrappers run."""
        return self.readings[-1].words

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words of the innermost program without redirections."""
        words = self.innermost
        rest = words[: len(words) - len(self.redirects)]
        return rest if words[len(rest) :] == self.redirects and rest else words

    @property
    def appends(self) -> bool:
        """Whether its output is added to a file rather than written over it."""
        return any(word.endswith(">>") for word in self.redirects)


_MAX_READINGS = 16
_REDIRECTION = re.compile(r"[0-9&]*[<>]")
_SUFFIXES_OF_WINDOWS = ("exe", "cmd", "bat")
# Options between a program and its subcommand, and whether they take a value.
_BEFORE_SUBCOMMAND = {
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
# Programs that run each of their arguments, and their options that take a value
_MAVEN_VALUED = ("-f", "--file", "-pl", "--projects", "-P", "-s", "-T", "-rf")
_GRADLE_VALUED = ("-p", "--project-dir", "-b", "--build-file", "-x", "--exclude-task", "--tests")
_TARGET_RUNNERS = {
    **dict.fromkeys(("make", "gmake"), ("-C", "-f", "-I", "-j", "-l", "-o", "-W", "--directory")),
    **dict.fromkeys(("mvn", "mvnw"), _MAVEN_VALUED),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE_VALUED),
    "rake": ("-f", "--rakefile"),
}
_OPTIONAL_NUMBER = ("-j", "-l")  # options of make that may stand alone
_ONLY_SHOWS = ("-n", "--dry-run", "--just-print")  # options of make with which it runs nothing
# Options without a value, and their long names, by the program
_SHORT_OPTIONS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    ("rm",): {
        **{"-r": "--recursive", "-R": "--recursive", "-f": "--force", "-v": "--verbose"},
        **{"-i": "", "-I": "", "-d": "--dir"},
    },
    ("git", "push"): {"-f": "--force", "-u": "--set-upstream", "-d": "--delete"},
    ("git", "commit"): {"-n": "--no-verify", "-a": "--all"},
    ("git", "add"): {"-A": "--all"},
    ("git", "clean"): {"-f": "--force", "-d": "", "-x": ""},
    ("git", "checkout"): {"-f": "--force"},
    ("chmod",): {"-R": "--recursive"},
    ("chown",): {"-R": "--recursive"},
    ("curl",): {"-k": "--insecure"},
    **{("npm", name): {"-g": "--global", "-D": "--save-dev"} for name in ("install", "i")},
    **{("docker", name): {"-f": "--force"} for name in ("rm", "rmi")},
}
# their options with a value; such a letter may end a word of options, as in `-am`
_VALUED_OPTIONS = (
    *("-m", "-F", "-C", "-c", "-t", "-o", "-e", "--message", "--file", "--author", "--date"),
    *("--trailer", "--repo", "--push-option", "--exclude"),
)
_MAX_LETTERS = 4  # of short options that are written in other orders
# scripts of package.json that run without `run` too; pnpm and yarn run every other script so, if
# its name is not that of a command of their own
_SCRIPTS = ("test", "start", "stop", "restart")
_SHORT_FOR_TEST = ("t", "tst")
_RUN = ("run", "run-script")
_RUN_EVERY_SCRIPT = ("pnpm", "yarn")
_OWN_COMMANDS = frozenset(
    "access add approve-builds audit bin cache cat-file catalog ci completion config constraints"
    " create dedupe deploy deprecate dlx doctor env exec explain explore fetch fund get global help"
    " i import info init install install-test it licenses link list ll ln login logout ls node"
    " outdated owner pack patch patch-commit patch-remove ping pkg plugin policies prefix prune"
    " publish rb rebuild recursive remove rm root sbom search self-update server set setup stage"
    " store tag team un unplug uninstall unlink up update upgrade upgrade-interactive version"
    " versions view whoami why workspace workspaces".split()
)


def readings_of(reading: Reading) -> tuple[Reading, ...]:
    """Returns a reading and those without its wrappers: `sudo git push`, then `git push`.

    A script of package.json has a reading with `run`, and one without it. `make lint check` is
    `make check` too.
    """
    readings = [reading]
    while len(readings) < _MAX_READINGS:
        following = _unwrap(readings[-1])
        if following is None or not following.words:
            break
        if plain := _without_options(readings[-1], following):
            readings.append(plain)
        readings.append(following)
    others = [other for reading in readings for other in _other_readings(reading)]
    return (*readings[:-1], *others, readings[-1])


def _other_readings(reading: Reading) -> list[Reading]:
    """Returns the other ways to write a command that do the same, or a part of it."""
    return [
        *_script_readings(reading),
        *_target_readings(reading),
        *_option_readings(reading),
        *_cmdlet_readings(reading),
    ]


# the cmdlets of PowerShell behind aliases that are no programs of Unix
_CMDLETS = {
    **dict.fromkeys(("ri", "del", "erase", "rd"), "Remove-Item"),
    **{"ni": "New-Item", "mi": "Move-Item", "cpi": "Copy-Item", "rni": "Rename-Item"},
    **{"iwr": "Invoke-WebRequest", "irm": "Invoke-RestMethod", "saps": "Start-Process"},
    **{"spps": "Stop-Process", "gci": "Get-ChildItem", "gc": "Get-Content"},
}


def _cmdlet_readings(reading: Reading) -> list[Reading]:
    """Returns the cmdlet for its alias: `Remove-Item dist` for `ri dist`."""
    cmdlet = _CMDLETS.get(reading.words[0].lower())
    return [Reading((cmdlet, *reading.words[1:]), reading.without)] if cmdlet else []


def _script_readings(reading: Reading) -> list[Reading]:
    """Returns the other ways to write the run of a script: `npm test` for `npm run test`."""
    program, *rest = reading.words
    if program == "yarn" and rest[:1] == ["workspace"] and len(rest) > 2:
        inner = reading.reduce_to((program, *rest[2:]), *rest[:2])
        return [inner, *_script_readings(inner)]
    if program not in ("npm", *_RUN_EVERY_SCRIPT) or not rest:
        return []
    if rest[0] in _SHORT_FOR_TEST:
        tests = [(program, "test", *rest[1:]), (program, "run", "test", *rest[1:])]
        return [Reading(words, reading.without) for words in tests]
    if rest[0] in _RUN and len(rest) > 1 and _runs_without_run(program, rest[1]):
        return [reading.reduce_to((program, *rest[1:]), rest[0])]
    if _runs_without_run(program, rest[0]):
        return [Reading((program, "run", *rest), reading.without)]
    return []


def _target_readings(reading: Reading) -> list[Reading]:
    """Returns the runs of single targets: `make test` for `make -j 8 lint test`."""
    program, *rest = reading.words
    valued = _TARGET_RUNNERS.get(program.rpartition("/")[2])
    if valued is None:
        return []
    options: list[str] = []
    targets: list[str] = []
    before = ""
    for word in rest:
        if _REDIRECTION.match(word) or len(targets) >= _MAX_READINGS:
            break
        is_value = before in valued and (before not in _OPTIONAL_NUMBER or word.isdecimal())
        if word.startswith("-"):
            options.append(word)
        elif not is_value and "=" not in word:
            targets += [word, word.rpartition(":")[2]] if ":" in word else [word]
        before = word
    if not {*_ONLY_SHOWS}.isdisjoint(options):
        return []
    readings = [(program, target) for target in targets if target]
    left_out = (_ANY_OPTION, *options) if options else ()
    return [reading.reduce_to(words, *left_out) for words in readings if words != reading.words]


def _option_readings(reading: Reading) -> list[Reading]:
    """Returns a command with its options in other forms: `rm -rf` and `rm --recursive --force` for
    `rm -f -r`.
    """
    names = next((n for n in (reading.words[:2], reading.words[:1]) if n in _SHORT_OPTIONS), None)
    if names is None:
        return []
    long_names = _SHORT_OPTIONS[names]
    options = _read_short_options(reading.words[len(names) :], long_names)
    letters = options.letters
    if not letters or len(letters) > _MAX_LETTERS:
        return []
    forms = [[long_names[letter] or letter for letter in letters], letters]
    for first, second in permutations(letters, 2):
        rest = [letter for letter in letters if letter not in (first, second)]
        forms += [[first + second[1:], *rest], [first, second, *rest]]
    return [reading.reduce_to((*names, *form, *options.others), *options.written) for form in forms]


@dataclass(frozen=True)
class _ShortOptions:
    """The options of a command that have a letter and a long name: of `git commit -am fix`, `-a`.

    Args:
        letters: each with its dash, once.
        written: the words that had them, without other options.
        others: all other words, such as `-m` and `fix`.
    """

    letters: list[str]
    written: list[str]
    others: list[str]


def _read_short_options(words: Sequence[str], long_names: Mapping[str, str]) -> _ShortOptions:
    """Sorts the words of a command.

    Args:
        long_names: of the options that count, by their letters.
    """
    short_names: dict[str, str] = {}
    for short, long in long_names.items():
        short_names.setdefault(long, short)
    letters: list[str] = []
    written: list[str] = []
    others: list[str] = []
    before = ""
    for word in words:
        flags = [f"-{letter}" for letter in word[1:]] if re.fullmatch("-[A-Za-z]+", word) else []
        valued: list[str] = []
        if len(flags) > 1 and flags[-1] in _VALUED_OPTIONS:
            valued = [flags.pop()]
        takes_word = before in _VALUED_OPTIONS or before == "--"
        before = valued[0] if valued else word if before != "--" else before
        if takes_word:
            others.append(word)
        elif word in short_names or (flags and long_names.keys() >= set(flags)):
            known = [short_names.get(long_names[flag], flag) for flag in flags]
            letters += known or [short_names[word]]
            written.append(word)
            others += valued
        else:
            others.append(word)
    return _ShortOptions([*dict.fromkeys(letters)], written, others)


def _runs_without_run(program: str, script: str) -> bool:
    is_own = script in _OWN_COMMANDS or script in _RUN or script.startswith("-")
    return script in _SCRIPTS or (program in _RUN_EVERY_SCRIPT and not is_own)


def _without_options(reading: Reading, inner: Reading) -> Reading | None:
    """Returns a wrapped command without the options of its wrapper, as `uv run pytest` for
    `uv run --frozen pytest`; None if it has none.
    """
    words = wrapper_without_options(reading.words)
    if words is None or (*words, *inner.words) == reading.words:
        return None
    before = reading.words[: len(reading.words) - len(inner.words)]
    options = [word.partition("=")[0] for word in before if word.startswith("-")]
    return reading.reduce_to((*words, *inner.words), _ANY_OPTION, *options)


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
        command, names = unwrapped
        return reading.reduce_to(command, *names)
    return _without_global_options(reading) if program in _BEFORE_SUBCOMMAND else None


def _without_global_options(reading: Reading) -> Reading | None:
    program, *rest = reading.words
    has_argument = _BEFORE_SUBCOMMAND[program]
    options = []
    while rest and rest[0].startswith(("-", "+")):
        option, equals, _ = rest[0].partition("=")
        is_toolchain = program == "cargo" and option.startswith("+")
        if is_toolchain:
            options.append(rest.pop(0))
            continue
        if option not in has_argument:
            break
        options.append(option)
        del rest[: 2 if has_argument[option] and not equals else 1]
    return reading.reduce_to((program, *rest), *options) if options else None
