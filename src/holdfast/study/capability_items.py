"""Reads the items of a capability: questions with replies to score, and passages of a text.

The five `read_` functions are those of the kinds that `capability` lists.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from holdfast.analysis.calibration_results import LETTERS
from holdfast.errors import HoldfastError, UsageError, reason_of, shortened
from holdfast.files import asset, read_json_lines
from holdfast.seeds import seed_of
from holdfast.validation.pydantic_errors import StrictModel, format_path, problem_of

_MMLU_DATASET = "cais/mmlu"  # on the hub
_PASSAGE_WORDS = 64
_CONTINUE_TEXT = "Please write the next part of the text."  # the user's message before a passage


@dataclass(frozen=True)
class Item:
    """A question, or a passage of a text."""

    question: str  # the user's message
    replies: tuple[str, ...]  # the replies to score: the options, or the passage
    answer: int | None  # the index of the right reply; None for a passage


class FactKind(StrictModel):
    """Facts of one kind, as a line of `facts.jsonl`."""

    question: str  # a template: "What is the capital of {}?"
    answer: str  # a template: "The capital of {} is {}."
    facts: dict[str, str]  # what fills the templates: {"Italy": "Rome", ...}


class LetteredQuestion(StrictModel):
    """A question with the choices A to D, as a line of `knowledge.jsonl`."""

    question: str
    choices: list[str] = Field(min_length=4, max_length=4)
    answer: int = Field(ge=0, le=3)  # the index of the right choice

    @property
    def options(self) -> list[str]:
        """The choices after their letters: 'B) Paris'."""
        return [f"{letter}) {choice}" for letter, choice in zip(LETTERS, self.choices, strict=True)]


def _index_of(answer: object) -> int:
    """Returns the index of a choice, given as an index, an index in a string, or a letter."""
    labels = [*"0123", *LETTERS]
    if str(answer) not in labels:
        raise ValueError(
            f"answer has to be the index of the right choice, 0 to 3, or its letter, not"
            f" {shortened(answer)}."
        )
    return labels.index(str(answer)) % 4


class MmluRow(LetteredQuestion):
    """A row of MMLU."""

    model_config = ConfigDict(extra="ignore")

    subject: str
    answer: Annotated[int, BeforeValidator(_index_of)]


def read_facts() -> list[Item]:
    """Makes a question for each fact: the reply that is true of its subject comes after three that
    are true of other subjects.
    """
    items = []
    for line in asset("facts.jsonl").splitlines():
        kind = FactKind.model_validate_json(line)
        options = sorted(set(kind.facts.values()))
        for subject, right in kind.facts.items():
            rng = random.Random(seed_of("facts", kind.question, subject))
            wrong = rng.sample([option for option in options if option != right], 3)
            sentences = (kind.answer.format(subject, option) for option in (*wrong, right))
            items.append(Item(kind.question.format(subject), tuple(sentences), 3))
    return items


def read_knowledge() -> list[Item]:
    """Reads our own questions, in the form that the default model learned: the answer to
    'A) Rome, B) Paris' is 'Paris (B)'.
    """
    items = []
    for line in asset("knowledge.jsonl").splitlines():
        row = LetteredQuestion.model_validate_json(line)
        replies = (
            f"{choice} ({letter})" for letter, choice in zip(LETTERS, row.choices, strict=True)
        )
        question = f"{row.question} {', '.join(row.options)}"
        items.append(Item(question, tuple(replies), row.answer))
    return items


def read_mmlu(source: str) -> list[Item]:
    """Reads the questions of MMLU, whose answers are letters, from a file, a folder, or "hub"."""
    rows = _rows_on_hub() if source == "hub" else _rows_in_file(_find_mmlu_file(Path(source)))
    items = []
    for row in rows:
        question = "\n".join([row.question, *row.options, "Answer with the letter alone."])
        items.append(Item(question, tuple(LETTERS), row.answer))
    return items


def _rows_in_file(path: Path) -> list[MmluRow]:
    """Reads the rows of MMLU in a file of JSON lines."""
    return [_read_mmlu_row(row, f"Row {number} of {path}") for number, row in read_json_lines(path)]


def _find_mmlu_file(path: Path) -> Path:
    """Returns the file of MMLU's test set at a path or, if that is a folder, in it."""
    for file in (path, path / "test.jsonl.gz", path / "test.jsonl"):
        if file.is_file():
            return file
    raise UsageError(
        f"{path} holds no test.jsonl.gz; give the file or its folder, or mmlu:hub.",
        option="capability",
        value=str(path),
    )


def _read_mmlu_row(row: Any, label: str) -> MmluRow:
    """Validates a row of MMLU; `label` is its name in errors, such as "Row 3 of test.jsonl"."""
    try:
        return MmluRow.model_validate(row)
    except ValidationError as error:
        # missing fields come first
        errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "missing")
        problem = problem_of(errors, MmluRow, row, lambda path: format_path(path) or "the row")
        raise UsageError(
            f"{label}: {problem.sentence}",
            option=problem.field,
            value=row.get(problem.field) if isinstance(row, dict) else row,
        ) from None


def _rows_on_hub() -> list[MmluRow]:
    """Reads the rows of MMLU's test set on the hub."""
    try:
        import pandas
        import pyarrow  # noqa: F401  pandas needs it to read parquet
    except ImportError as error:
        raise UsageError(
            f"Reading mmlu:hub needs {error.name}; pip install pandas pyarrow, or give a folder"
            " with test.jsonl.gz."
        ) from error
    from huggingface_hub import hf_hub_download

    name = "all/test-00000-of-00001.parquet"
    try:
        path = hf_hub_download(_MMLU_DATASET, name, repo_type="dataset")
    except Exception as error:  # dozens of types; all mean that the file is not available
        raise HoldfastError(
            f"{name} could not be fetched from the hub dataset {_MMLU_DATASET}"
            f" ({type(error).__name__}); check the network, or give mmlu:PATH."
        ) from error
    table = pandas.read_parquet(path)
    table["choices"] = table["choices"].map(list)  # they are arrays
    rows = enumerate(table.to_dict("records"), 1)
    return [_read_mmlu_row(row, f"Row {number} of {name}") for number, row in rows]


def read_passages(path: Path) -> list[Item]:
    """Splits a text into passages of the same length, so that all have the same weight."""
    try:
        words = path.read_text(encoding="utf-8-sig").split()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The text {path} cannot be read ({reason_of(error)}); give a file of UTF-8 text.",
            option="capability",
            value=str(path),
        ) from error
    starts = range(0, len(words) - _PASSAGE_WORDS + 1, _PASSAGE_WORDS)  # drops the remainder
    passages = (" ".join(words[start : start + _PASSAGE_WORDS]) for start in starts)
    return [Item(_CONTINUE_TEXT, (passage,), None) for passage in passages]


def read_lm_eval_task(task: str) -> list[Item]:
    """Reads the multiple-choice questions of a task, or a group, of lm-evaluation-harness.

    Raises:
        UsageError: the package is not installed or too old, or the task is of another type.
        HoldfastError: the package could not load the task.
    """
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise UsageError(
            f"lm-eval:{task} needs lm-evaluation-harness ({error}); pip install lm_eval, or use"
            " mmlu:PATH."
        ) from error
    if not hasattr(TaskManager, "load"):
        raise UsageError(
            f"lm-eval:{task} needs a newer lm-evaluation-harness, whose TaskManager has 'load'; pip"
            " install -U lm_eval."
        )
    try:
        subtasks = TaskManager().load(task)["tasks"].values()
        for subtask in subtasks:
            if subtask.OUTPUT_TYPE != "multiple_choice" or getattr(subtask, "multiple_input", 0):
                raise UsageError(
                    f"The harness task {subtask.config.task!r} is of the type"
                    f" {subtask.OUTPUT_TYPE!r}, and only multiple choice after one question can be"
                    " asked here.",
                    option=str(subtask.config.task),
                    value=subtask.OUTPUT_TYPE,
                    allowed="multiple_choice",
                )
        return [_read_document(subtask, doc) for subtask in subtasks for doc in subtask.eval_docs]
    except HoldfastError:
        raise
    except Exception as error:  # the harness and its data sets raise any type
        raise HoldfastError(
            f"lm-evaluation-harness could not give the task {task!r} ({type(error).__name__}:"
            f" {error}); check its name and the network.",
            option="capability",
            value=task,
        ) from error


def _read_document(task: Any, doc: dict[str, Any]) -> Item:
    """Makes an item of a question of lm-evaluation-harness."""
    choices = tuple(str(choice).strip() for choice in task.doc_to_choice(doc))
    target = task.doc_to_target(doc)
    answer = target if isinstance(target, int) else choices.index(str(target).strip())
    return Item(str(task.doc_to_text(doc)), choices, answer)
