"""`loss_map.json`: the maps of loss that one command made, for other programs and for pages."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from holdfast.analysis.loss_map import loss_map
from holdfast.analysis.loss_rows import LossRow
from holdfast.analysis.recalled_rules import RecallRow, recall_rows
from holdfast.errors import AnotherRun, reason_of
from holdfast.files import write_whole
from holdfast.records import Run
from holdfast.records.belonging import describe_fault
from holdfast.records.model import List, Number, RecordModel
from holdfast.records.typed_options import change_options, split_command

NAME = "loss_map.json"


class PooledRun(RecordModel):
    """A run that the numbers come from."""

    command: str  # as it was typed, without the folder that it wrote to
    versions: dict[str, str]  # of Holdfast and the libraries it computes with
    conversations: Number


class ModelLoss(RecordModel):
    """The map of loss of one model, from one run or from several together."""

    name: str
    runs: List[PooledRun]
    rows: List[LossRow]
    recall: List[RecallRow]


class LossMap(RecordModel):
    """The maps that one command made."""

    models: List[ModelLoss]


def model_loss(name: str, *runs: Run) -> ModelLoss:
    """Makes the map of one model from all its runs.

    Raises:
        UsageError: the runs cannot be mapped, or not be pooled (`loss_map`).
    """
    return ModelLoss(
        name=name,
        runs=tuple(
            PooledRun(
                command=_without_out(run.manifest.extended_by or run.manifest.argv or ""),
                versions=run.manifest.versions,
                conversations=len(run.conversations),
            )
            for run in runs
        ),
        rows=tuple(loss_map(*runs)),
        recall=tuple(recall_rows(*runs)),
    )


def _without_out(command: str) -> str:
    """Returns the command without `--out`; unchanged if a shell could not read it."""
    words = split_command(command)
    return change_options(words, {"--out": None}) if words else command


def read_loss_map(file: Path) -> tuple[ModelLoss, ...]:
    """Reads the maps in a `loss_map.json`.

    Raises:
        AnotherRun: the file cannot be read, or is not a map of loss.
    """
    try:
        return LossMap.model_validate_json(file.read_bytes()).models
    except OSError as error:
        fault = f"{file} cannot be read ({reason_of(error)})"
    except ValidationError as error:
        fault = describe_fault(str(file), error)
    raise AnotherRun(
        f"{fault}; give a run's folder, or a {NAME} that `holdfast map` wrote.",
        option="run",
        value=str(file),
    )


def write_loss_map(models: Sequence[ModelLoss], folder: Path) -> Path:
    """Writes `loss_map.json`, whole or not at all; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = LossMap(models=tuple(models)).model_dump_json(indent=1)
    return write_whole(folder / NAME, text + "\n", "another folder with --out")
