"""The options of a command in other forms: by letter or by name, joined or apart, in any order.

For example:

    rm -f -r build     ->  `rm -rf build`, `rm -fr build`, `rm --force --recursive build`, ...
    git commit -am fix ->  `git commit --all -m fix`, ...
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

from holdfast.measures.agent_acts.commands.shell_commands import Reading

# options without a value, and their long names, by the program
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
_JOINED_LETTERS = re.compile("-[A-Za-z]+")  # -rf


def option_forms(reading: Reading) -> list[Reading]:
    """Returns a command with its options in other forms; [] if these are not known."""
    programs = (reading.words[:2], reading.words[:1])
    program = next((words for words in programs if words in _SHORT_OPTIONS), None)
    if program is None:
        return []
    long_names = _SHORT_OPTIONS[program]
    options = _read_short_options(reading.words[len(program) :], long_names)
    letters = options.letters
    if not letters or len(letters) > _MAX_LETTERS:
        return []
    forms = [[long_names[letter] or letter for letter in letters], letters]
    for first, second in permutations(letters, 2):
        rest = [letter for letter in letters if letter not in (first, second)]
        forms += [[first + second[1:], *rest], [first, second, *rest]]
    return [
        reading.reduce_to((*program, *form, *options.others), *options.written) for form in forms
    ]


@dataclass(frozen=True)
class _ShortOptions:
    """The options of a command that have a letter and a long name.

    Args:
        letters: each with its dash, once: `-a` for `-am fix` and for `--all`.
        written: the words that had them, such as `-am`.
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
    letters: list[str] = []
    written: list[str] = []
    others: list[str] = []
    before = ""  # the option whose value this word may be, or `--`
    for word in words:
        flags = _flags_in(word)
        is_operand = before in _VALUED_OPTIONS or before == "--"
        if before != "--":
            before = flags.valued or word
        known = _known_letters(word, flags, long_names)
        if is_operand or not known:
            others.append(word)
            continue
        letters += known
        written.append(word)
        others += [flags.valued] if flags.valued else []
    return _ShortOptions([*dict.fromkeys(letters)], written, others)


class _Flags(NamedTuple):
    """The letters of a word of options: `-a`, and `-m`, which takes a value, for `-am`.

    Args:
        letters: each with its dash; () for any other word.
        valued: the letter at the end that takes a value; "" if there is none.
    """

    letters: tuple[str, ...]
    valued: str


def _flags_in(word: str) -> _Flags:
    letters = [f"-{letter}" for letter in word[1:]] if _JOINED_LETTERS.fullmatch(word) else []
    if len(letters) > 1 and letters[-1] in _VALUED_OPTIONS:
        return _Flags(tuple(letters[:-1]), letters[-1])
    return _Flags(tuple(letters), "")


def _known_letters(word: str, flags: _Flags, long_names: Mapping[str, str]) -> list[str]:
    """Returns the letters that a word stands for, one for each option; [] if one is not known.

    Options with the same long name are the same one: `-R` of `rm` is `-r`.
    """
    letter_of: dict[str, str] = {}  # by the long name
    for letter, long_name in long_names.items():
        if long_name:
            letter_of.setdefault(long_name, letter)
    if word in letter_of:
        return [letter_of[word]]
    if not all(letter in long_names for letter in flags.letters):
        return []
    return [letter_of.get(long_names[letter], letter) for letter in flags.letters]
