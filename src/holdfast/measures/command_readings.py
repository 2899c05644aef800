"""The ways to read a command: `sudo git -C app push` is `git push` too."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from holdfast.measures.command_wrappers import unwrap, wrapper_without_options


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
        """The words in a row. Within a word of git or gh, such as the message of a commit, the
        space before a dash is one that does not break, so that ` --force` is found only among the
        options; a word of another program may be a command, as in `ssh web 'rm -rf /'`.
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
class Command:
    """A command of a script.

    Args:
        readings: the command as it is written, then without one wrapper after another, outermost
            first.
        writes: the files that its output goes to.
        around: the readings of the shell whose script begins with this command, as in
            `bash -c 'git push'`.
        input: the text of its here-document or here-string; None without one.
        redirects: the last of its words, from the first redirection on.
        is_in_group: whether its files also take the output of commands before it, as in
            `(date; ls) > log`.
        is_elsewhere: whether it runs with another file system, as in `docker exec web rm a`; only
            `writes` are files here.
    """

    readings: tuple[Reading, ...]
    writes: tuple[str, ...] = ()
    around: tuple[Reading, ...] = ()
    input: str | None = None
    redirects: tuple[str, ...] = ()
    is_in_group: bool = False
    is_elsewhere: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command as it is written."""
        return self.readings[0].words

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
# Options between a program and its subcommand, and whether they take a value.
_BEFORE_SUBCOMMAND = {
    "git": {
        **dict.fromkeys(("-C", "-c", "--git-dir", "--work-tree", "--namespace"), True),
        **dict.fromkeys(("--no-pager", "-p", "-P", "--paginate", "--bare"), False),
        **dict.fromkeys(("--no-replace-objects", "--no-optional-locks"), False),
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
    **dict.fromkeys(
        ("kubectl", "oc"), dict.fromkeys(("-n", "--namespace", "--context", "--kubeconfig"), True)
    ),
}
# the options of make that take a value; a number, as of `-j 4`, is no target anyway
_VALUED_BY_MAKE = frozenset(
    "-C --directory -f --file --makefile -I --include-dir -o --old-file --assume-old -W --what-if"
    " --new-file --assume-new".split()
)
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
    others = chain(map(_script_readings, readings), map(_target_readings, readings))
    return (*readings, *chain.from_iterable(others))


def _target_readings(reading: Reading) -> list[Reading]:
    """Returns a reading for each of the next targets of `make`, with that target first."""
    program, *rest = reading.words
    if program not in ("make", "gmake"):
        return []
    readings: list[Reading] = []
    before = ""
    for place, word in enumerate(rest):
        if _REDIRECTION.match(word) or len(readings) == _MAX_READINGS:
            break
        is_target = re.match(r"[A-Za-z_.]", word) and "=" not in word
        if place and is_target and before not in _VALUED_BY_MAKE:
            words = (program, word, *rest[:place], *rest[place + 1 :])
            readings.append(reading.reduce_to(words))
        before = word
    return readings


def _script_readings(reading: Reading) -> list[Reading]:
    """Returns the other ways to write the run of a script: `npm test` for `npm run test`."""
    program, *rest = reading.words
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
    folder, slash, program = words[0].rpartition("/")
    if slash and program:
        return reading.reduce_to((program, *words[1:]), f"{folder}/")
    if unwrapped := unwrap(words):
        command, names = unwrapped
        return reading.reduce_to(command, *names)
    return _without_global_options(reading) if program in _BEFORE_SUBCOMMAND else None


def _without_global_options(reading: Reading) -> Reading | None:
    program, *rest = reading.words
    has_argument = _BEFORE_SUBCOMMAND[program]
    options = []
    while rest and rest[0].startswith("-"):
        option, equals, _ = rest[0].partition("=")
        if option not in has_argument:
            break
        options.append(option)
        del rest[: 2 if has_argument[option] and not equals else 1]
    return reading.reduce_to((program, *rest), *options) if options else None
