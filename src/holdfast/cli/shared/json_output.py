"""`--json`: standard output is one JSON document, and all other lines go to standard error.

A command calls `write_document` once, with its results. docs/runs.md lists the documents.
"""

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TextIO

from pydantic import BaseModel, ConfigDict

from holdfast.files import read_text

_SUMMARY = "summary.json"


class RunDocument(BaseModel):
    """The results of a command that writes a folder.

    Attributes:
        folder: the folder.
        page: the HTML page, if one was written.
        summary: the contents of the folder's `summary.json`.
        files: other files that were written.
        next: the next step, as the terminal prints it.
    """

    model_config = ConfigDict(extra="forbid")

    folder: Path
    page: Path | None = None
    summary: dict[str, Any] | None = None
    files: list[Path] = []
    next: str | None = None


class FilesDocument(BaseModel):
    """The files that a command wrote."""

    files: list[Path]


class ErrorDocument(BaseModel):
    """The sentence that a command prints if it fails."""

    error: str


class JsonOutput:
    """The stream for the document, and whether it was written."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._is_written = False

    def write(self, document: object) -> None:
        """Writes the results of a command."""
        text = json.dumps(_json_value(document), ensure_ascii=False, indent=1, allow_nan=False)
        print(text, file=self._stream, flush=True)
        self._is_written = True

    def write_error(self, error: str) -> None:
        """Writes the document of a command that failed, unless a document was written before."""
        if not self._is_written:
            self.write(ErrorDocument(error=error))


_output: ContextVar[JsonOutput | None] = ContextVar("json output", default=None)


@contextlib.contextmanager
def json_on_stdout() -> Iterator[JsonOutput]:
    """Within this context, `write_document` writes to standard output, and `print` to stderr."""
    output = JsonOutput(sys.stdout)
    token = _output.set(output)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield output
    finally:
        _output.reset(token)


def write_document(document: BaseModel | Mapping[str, Any] | Sequence[Any]) -> None:
    """Writes the results of a command as JSON, if `--json` is given."""
    if (output := _output.get()) is not None:
        output.write(document)


def summary_in(folder: Path) -> dict[str, Any]:
    """The contents of `summary.json` in a folder."""
    summary: dict[str, Any] = json.loads(read_text(folder / _SUMMARY))
    return summary


def write_run_document(
    folder: Path, page: Path | None = None, files: Sequence[Path] = (), next_step: str | None = None
) -> None:
    """Writes the results of a command that wrote `summary.json` into a folder, if `--json` is
    given.
    """
    if _output.get() is not None:
        write_document(
            RunDocument(
                folder=folder.resolve(),
                page=None if page is None else page.resolve(),
                summary=summary_in(folder),
                files=[file.resolve() for file in files],
                next=next_step,
            )
        )


def _json_value(value: Any) -> Any:
    """Converts a value to the types of JSON; infinity and NaN, which it lacks, become null."""
    if isinstance(value, BaseModel):
        return _json_value(value.model_dump())
    if is_dataclass(value) and not isinstance(value, type):
        return _json_value(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _json_value(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
