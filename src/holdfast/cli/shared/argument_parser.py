"""The parser of the command line: the layout of its help, and errors of one sentence.

An error names the option that was probably meant.
"""

import argparse
import difflib
import itertools
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from holdfast.errors import UsageError
from holdfast.plurals import join_with_or

# patterns of argparse's messages, and the words that replace them; {} stands for the command:
# "argument --rounds: expected one argument" becomes "--rounds needs a value"
_REWORDINGS = (
    (r"^argument (.+?): expected one argument", r"\1 needs a value"),
    (r"^argument (.+?): expected", r"\1 needs"),
    (r"^argument (.+?): not allowed with argument", r"\1 excludes"),
    (r"^the following arguments are required:", "`{}` needs"),
    (r"^one of the arguments (.+) (\S+) is required", r"`{}` needs \1 or \2"),
)
_OPTION = re.compile(r"-[a-zA-Z]|--[a-zA-Z][\w-]*")
_LEFTOVER_OPTION = re.compile(r"--?[a-zA-Z][\w-]*")  # also -model, which elsewhere may be a value
# of an option that is suggested for a misspelt one; that of --no-adoption to --no-open is 0.67
_MIN_SIMILARITY = 0.68
# options of different commands that mean the same
_SAME_MEANING = {"conversations": "budget", "budget": "conversations"}


def collects(action: argparse.Action) -> bool:
    """Whether an option may be repeated, and keeps every value."""
    return isinstance(action, argparse._AppendAction)


class OneSentenceParser(argparse.ArgumentParser):
    """A parser that raises each error as a `UsageError` of one sentence.

    It refuses abbreviated options, and an option that takes one value but is given twice, where
    argparse would silently keep the last value.
    """

    def __init__(self, **named: Any):
        super().__init__(**{**named, "allow_abbrev": False})
        self._given: dict[str, list[str]] = {}  # the options given so far, with their values
        self._words: Sequence[str] = ()  # the command line

    def typed_options(self) -> dict[str, str]:
        """The options by field, as they are typed: `--max-new-tokens` by "max_new_tokens"."""
        return {
            action.dest: action.option_strings[-1]
            for action in self._actions
            if action.option_strings
        }

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self._given = {}
        self._words = () if args is None else args
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Raises argparse's message as a `UsageError`.

        An option that does not exist is refused first: it may be the one that seems to be missing.
        """
        if self._subparsers is None:  # the main parser does not know the commands' options
            self._refuse_misspelt(self._words)
        for pattern, words in _REWORDINGS:
            message = re.sub(pattern, words.format(self.prog), message)
        raise UsageError(f"{message}; see `{self.prog} --help`.")

    def refuse(self, words: Sequence[str], arguments: argparse.Namespace) -> NoReturn:
        """Raises a `UsageError` about leftover words, with the option that was likely meant.

        For `holdfast drift bot.yaml`: "`holdfast drift` does not take 'bot.yaml' by itself; did you
        mean --suite bot.yaml?"
        """
        self._refuse_misspelt(words, _LEFTOVER_OPTION)
        hint = self._hint_for_leftover(words, arguments)
        raise UsageError(f"`{self.prog}` does not take {' '.join(words)!r} by itself; {hint}")

    def _hint_for_leftover(self, words: Sequence[str], arguments: argparse.Namespace) -> str:
        """The option that leftover words were likely meant for: a suite, or the user's message."""
        if repeated := self._repeated_option(words[0]):
            return f"repeat the option: {repeated} {shlex.quote(words[0])}."
        text = " ".join(words)
        name = "suite" if text.endswith((".yaml", ".yml")) else "user"
        if name not in self._long_options():
            return f"see `{self.prog} --help`."
        value = getattr(arguments, name, None)
        if value == self.get_default(name):
            return f"did you mean --{name} {shlex.quote(text)}?"
        return f"put quotes around --{name} {shlex.quote(f'{value} {text}')}."

    def _repeated_option(self, word: str) -> str:
        """The option that a leftover word was likely meant for: one that is repeated for each
        value, and has a value directly before the word, as in `--method none boost:factor=4`.
        """
        number = list(self._words).index(word) if word in self._words else 0
        option = self._words[number - 2] if number >= 2 else ""
        action = self._option_string_actions.get(option)
        return option if action is not None and collects(action) else ""

    def _refuse_misspelt(self, words: Sequence[str], option: re.Pattern[str] = _OPTION) -> None:
        """Refuses the first word that looks like an option, but is none of this command."""
        for word in itertools.takewhile(lambda word: word != "--", words):
            typed = word.partition("=")[0]
            if option.fullmatch(typed) and typed not in self._option_string_actions:
                self._refuse_option(typed)

    def _refuse_option(self, typed: str) -> NoReturn:
        """Refuses an option that the command does not have, such as "--roundes"."""
        name = typed.lstrip("-")
        options = self._long_options()
        alone = [action.dest for action in self._actions if not action.option_strings]
        names = [*options, *alone]
        similar = difflib.get_close_matches(name, names, n=1, cutoff=_MIN_SIMILARITY)
        if not similar:  # --output for --out
            nested = [other for other in names if other.startswith(name) or name.startswith(other)]
            similar = nested if len(nested) == 1 else []
        other_name = _SAME_MEANING.get(name)
        if other_name in options:
            hint = f"did you mean --{other_name}?"
        elif similar and similar[0] in options:
            hint = f"did you mean --{similar[0]}?"
        elif similar:
            hint = f"give the {similar[0]} alone, as in `{self.prog} {similar[0].upper()}`."
        else:
            hint = f"see `{self.prog} --help`."
        raise UsageError(f"`{self.prog}` has no option {typed}; {hint}")

    def _long_options(self) -> list[str]:
        return [name[2:] for name in self._option_string_actions if name.startswith("--")]

    def _get_values(self, action: argparse.Action, words: list[str]) -> Any:
        if action.option_strings and action.nargs != 0 and not collects(action):
            self._refuse_second(action, words)
        return super()._get_values(action, words)

    def _refuse_second(self, action: argparse.Action, words: list[str]) -> None:
        option = action.option_strings[0]
        earlier = self._given.setdefault(option, words)
        if earlier is words:
            return
        both = [" ".join(value) or "no value" for value in (earlier, words)]
        cure = "give it once"
        if option == "--method":
            cure = f"join them: --method {'+'.join(both)}"
        raise UsageError(
            f"{option} is given twice, with {' and '.join(dict.fromkeys(both))}; {cure}."
        )

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        try:
            return super()._get_value(action, text)
        except argparse.ArgumentError:
            if action.type not in (int, float):
                raise
            self._refuse_value(action, "a whole number" if action.type is int else "a number", text)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            self._refuse_value(action, join_with_or(list(action.choices)), value)

    def _refuse_value(self, action: argparse.Action, expected: str, value: Any) -> NoReturn:
        name = next(iter(action.option_strings), action.metavar or action.dest)
        raise UsageError(f"{name} takes {expected}, not {value!r}; see `{self.prog} --help`.")


class HelpFormatter(argparse.HelpFormatter):
    """Formats the usage as one line, wraps paragraphs, and leaves indented lines as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        lines = text.split("\n")
        return "\n".join(fill(line, width, "") if line[:1].strip() else line for line in lines)

    def _format_usage(
        self, usage: str | None, actions: Iterable[Any], groups: Any, prefix: Any
    ) -> str:
        if usage:
            return super()._format_usage(usage, actions, groups, prefix)
        needed = [action for action in actions if action.required or not action.option_strings]
        short = super()._format_usage(usage, needed, [], prefix).rstrip()
        return f"{short} [options]\n\n"
