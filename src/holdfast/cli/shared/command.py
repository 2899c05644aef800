'''A command of `holdfast`, whose options are a Pydantic model with one field per option.

The field

    minutes: Annotated[float, Arg("MINUTES")] = 2.0
    """about how long to run"""

is the option `--minutes 3`, which the help shows as

    --minutes MINUTES  about how long to run (default: 2)

`command_parser` builds the command's parser from the model, `Command.read` makes an instance of the
model from what the parser has read, and `Command.run` runs with it.
'''

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from holdfast.cli.shared.exit_codes import FAILED, MALFORMED
from holdfast.errors import UsageError
from holdfast.validation.pydantic_errors import problem_of


class Options(BaseModel):
    """Options of a command, or some of them; the docstring of a field is its help."""

    model_config = ConfigDict(use_attribute_docstrings=True)
    # these two describe the class that sets them, and are not inherited
    exclusive: ClassVar[bool] = False  # whether exactly one of its fields must be given
    title: ClassVar[str] = ""  # its section of the help; "" is the first section, "options"

    _resumable_folder: Path | None = None

    @property
    def resumable_folder(self) -> Path | None:
        """Where an interrupted command kept its work; None if repeating it begins anew."""
        return self._resumable_folder

    def keep_work_in(self, folder: Path) -> None:
        """Notes that from here on the command's work is kept, so that repeating it resumes it."""
        self._resumable_folder = folder

    def is_default(self, name: str) -> bool:
        """Whether an option has its default value, or the command does not have it."""
        field = type(self).model_fields.get(name)
        return field is None or getattr(self, name) == field.default

    def values_of(self, name: str) -> list[str]:
        """The values of an option; [] if it is not given, or the command does not have it."""
        value = getattr(self, name, None)
        if value is None:
            return []
        return list(map(str, value)) if isinstance(value, list) else [str(value)]

    def as_words(self, names: Iterable[str]) -> list[str]:
        """These options as they are typed, except those that have their default value."""
        words: list[str] = []
        for name in names:
            if self.is_default(name):
                continue
            value = getattr(self, name)
            for item in value if isinstance(value, list) else [value]:
                words += [option_of(name)] if item is True else [option_of(name), str(item)]
        return words

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Refuses the first of these options that is given.

        Args:
            why: goes on from the option and its value, as in "is for a run on Ray; leave it out".
        """
        for name in names:
            if values := self.values_of(name):
                raise UsageError(f"{option_of(name)} {values[0]} {why}.")

    @property
    def files_to_write(self) -> list[Path]:
        """The files that options name for the command to write."""
        files: list[Path] = []
        for name, option in type(self).model_fields.items():
            if any(isinstance(part, Arg) and part.is_file_to_write for part in option.metadata):
                files += map(Path, self.values_of(name))
        return files


def option_of(name: str) -> str:
    """The option of a field as it is typed, such as `--max-new-tokens`."""
    return f"--{name.replace('_', '-')}"


def file_to_write(text: str) -> Path:
    """The type of options that name a file to write, whose missing folders are created with it."""
    return Path(text)


class Arg:
    """The properties of an option that its type and default do not determine.

    Args:
        metavar: the name of its value in the help.
        positional: whether its value is given without the option's name.
        option: the option as it is typed, if its name differs from the field's.
        keywords: further keyword arguments of `ArgumentParser.add_argument`.
    """

    def __init__(
        self,
        metavar: str | tuple[str, ...] = "",
        positional: bool = False,
        option: str = "",
        **keywords: Any,
    ):
        self.positional = positional
        self.option = option
        self.keywords = {"metavar": metavar, **keywords} if metavar else keywords

    @property
    def is_file_to_write(self) -> bool:
        """Whether its value is a file that the command writes."""
        return self.keywords.get("type") is file_to_write


class RunFolder(argparse.Action):
    """The action of `--out` in commands that make a run: it takes a folder, and refuses a file."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        folder = Path(values)
        is_suite = folder.suffix in (".yaml", ".yml")
        if folder.is_file() or is_suite:
            why = "is a file" if folder.is_file() else f"ends in {folder.suffix}"
            hint = "name one, such as --out runs/mine."
            if is_suite and "--suite" in parser._option_string_actions:
                hint = f"did you mean --suite {values}?"
            raise UsageError(f"--out {values} {why}, and the results go into a folder; {hint}")
        setattr(namespace, self.dest, folder)


AnyOptions = TypeVar("AnyOptions", bound=Options)


@dataclass(frozen=True)
class Command(Generic[AnyOptions]):
    """A subcommand of `holdfast`.

    Args:
        name: the command as it is typed.
        run: runs the command; returns its exit code, or None for 0.
        options: the class of its options.
        description: the beginning of its help.
        examples: the end of its help.
        common: the fields of the options that `--help` shows, and that `--help-all` shows before
            all others. If empty, `--help` shows every option.
        failed: the exit code if the command fails although its command line is well formed.
        malformed: the exit code if its command line is malformed.
        parser: further arguments of the command's `ArgumentParser`.
    """

    name: str
    run: Callable[[AnyOptions], int | None]
    options: type[AnyOptions]
    description: str = ""
    examples: str | None = None
    common: tuple[str, ...] = ()
    failed: int = FAILED
    malformed: int = MALFORMED
    parser: Mapping[str, Any] = field(default_factory=dict)

    def read(self, arguments: argparse.Namespace) -> AnyOptions:
        """Builds the options from the arguments that the command's parser has read."""
        values = {name: getattr(arguments, name) for name in self.options.model_fields}
        try:
            return self.options.model_validate(values)
        except ValidationError as error:
            problem = problem_of(error, self.options, values, lambda path: option_of(str(path[0])))
            raise UsageError(problem.sentence) from None
