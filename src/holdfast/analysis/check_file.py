"""Writes and reads `check.json`.

It has the terms of a check, from which page and summary derive its verdicts again. The
records do not contain them: the same conversations may be checked with another bar or error, and
the earlier run that they were compared with may be gone.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError

from holdfast.analysis.check_verdicts import check_again
from holdfast.errors import ParameterOutOfRange, RecordsError, reason_of
from holdfast.files import write_whole
from holdfast.records import Run
from holdfast.records.belonging import describe_fault
from holdfast.records.check_records import (
    Check,
    CheckedMethod,
    PromptAgainstEarlierRun,
    PromptCheck,
    Terms,
)
from holdfast.records.model import List, Number

FILE = "check.json"


class StoredCheck(CheckedMethod):
    """The content of `check.json`: a check's terms, and its comparisons with an earlier run."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    version: Literal[1] = Field(default=1, alias="schema")
    rounds: Number
    prompts: List[str]
    comparisons: dict[str, PromptAgainstEarlierRun] = Field(alias="falls")  # by prompt


def write_check(
    folder: Path, method: str, terms: Terms, checks: Sequence[PromptCheck], rounds: int
) -> Path:
    """Writes a check's terms and comparisons into the run's folder, whole or not at all."""
    file_content = StoredCheck(
        method=method,
        rounds=rounds,
        **asdict(terms),
        prompts=tuple(prompt_check.id for prompt_check in checks),
        falls={
            prompt_check.id: prompt_check.comparison
            for prompt_check in checks
            if prompt_check.comparison
        },
    )
    # the order in which earlier versions wrote them
    first = {"schema": file_content.version, "method": method, "rounds": rounds}
    fields = {**first, **file_content.model_dump(by_alias=True)}
    text = json.dumps(fields, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return write_whole(folder / FILE, text, "another folder with --out")


def read_check(run: Run) -> Check | None:
    """Reads the check of a run, and derives its verdicts again; None if the run is not a check.

    Raises:
        RecordsError: `check.json` is damaged, or of a version that this one does not read.
    """
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        file_content = StoredCheck.model_validate_json(path.read_bytes())
        terms = file_content.terms
    except ValidationError as error:
        raise _unreadable(describe_fault(str(path), error)) from error
    except (OSError, ParameterOutOfRange) as error:
        raise _unreadable(f"{path} cannot be read ({reason_of(error)})") from error
    records = [record for record in run.conversations if record.method == file_content.method]
    checks = check_again(
        records, file_content.prompts, file_content.rounds, terms, file_content.comparisons
    )
    return Check.of(file_content.method, terms, checks)


def _unreadable(fault: str) -> RecordsError:
    return RecordsError(f"{fault}; repeat the check that wrote it, or remove it.")
