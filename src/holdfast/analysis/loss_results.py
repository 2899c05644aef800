"""`loss_map.json`: written from the rows of a map of loss, and read back into them."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from holdfast.analysis.loss_map import Grouping, LossRow
from holdfast.analysis.recalled_rules import RecallRow
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import estimated
from holdfast.common.files import write_whole
from holdfast.errors import RecordsError, reason_of
from holdfast.records import Run
from holdfast.records.loss_records import (
    NAME,
    GroupLoss,
    KindRecall,
    LossMap,
    ModelLoss,
    PooledRun,
)
from holdfast.records.run_summary import Estimated


def model_loss(
    name: str, runs: Sequence[Run], rows: Sequence[LossRow], recalled: Sequence[RecallRow]
) -> ModelLoss:
    """The map of one model."""
    return ModelLoss(
        name=name,
        runs=tuple(
            PooledRun(
                command=run.manifest.extended_by or run.manifest.argv or "",
                versions=run.manifest.versions,
                conversations=len(run.conversations),
            )
            for run in runs
        ),
        groups=tuple(
            GroupLoss(
                method=row.method,
                grouping=row.grouping.value,
                group=row.group,
                rules=row.rules,
                first=estimated(row.first),
                last=estimated(row.last),
                change=estimated(row.change),
                verdict=row.verdict,
            )
            for row in rows
        ),
        recall=tuple(
            KindRecall(
                method=row.method,
                kind=row.kind,
                stated_first=estimated(row.stated_first),
                stated_last=estimated(row.stated_last),
                broken=row.broken,
                stated_of_broken=estimated(row.stated_of_broken),
                stated_of_kept=estimated(row.stated_of_kept),
            )
            for row in recalled
        ),
    )


def rows_of(model: ModelLoss) -> list[LossRow]:
    """The rows of a map that was written before."""
    return [
        LossRow(
            method=group.method,
            grouping=Grouping(group.grouping),
            group=group.group,
            rules=group.rules,
            first=_estimate(group.first),
            last=_estimate(group.last),
            change=_estimate(group.change),
            verdict=group.verdict,
        )
        for group in model.groups
    ]


def _estimate(value: Estimated) -> Estimate:
    return Estimate(value.n, value.mean, value.sd, value.low, value.high)


def recall_rows_of(model: ModelLoss) -> list[RecallRow]:
    """The rows on recall of a map that was written before."""
    return [
        RecallRow(
            method=row.method,
            kind=row.kind,
            stated_first=_estimate(row.stated_first),
            stated_last=_estimate(row.stated_last),
            broken=row.broken,
            stated_of_broken=_estimate(row.stated_of_broken),
            stated_of_kept=_estimate(row.stated_of_kept),
        )
        for row in model.recall
    ]


def read_loss_map(file: Path) -> tuple[ModelLoss, ...]:
    """The maps in a `loss_map.json`.

    Raises:
        RecordsError: it is none.
    """
    try:
        return LossMap.model_validate_json(file.read_bytes()).models
    except (OSError, ValidationError) as error:
        raise RecordsError(
            f"{file} is not a map of loss ({reason_of(error)}); give a run's folder, or a"
            f" {NAME} that `holdfast map` wrote.",
            option="run",
            value=str(file),
        ) from error


def write_loss_map(models: Sequence[ModelLoss], folder: Path) -> Path:
    """Writes `loss_map.json`, whole or not at all; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = LossMap(models=tuple(models)).model_dump_json(indent=1)
    return write_whole(folder / NAME, text + "\n", "another folder with --out")
