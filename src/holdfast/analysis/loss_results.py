"""`loss_map.json` from the rows of a map of loss."""

from collections.abc import Sequence
from pathlib import Path

from holdfast.analysis.loss_map import LossRow
from holdfast.analysis.recalled_rules import RecallRow
from holdfast.analysis.summary import estimated
from holdfast.common.files import write_whole
from holdfast.records import Run
from holdfast.records.loss_records import (
    NAME,
    GroupLoss,
    KindRecall,
    LossMap,
    ModelLoss,
    PooledRun,
)


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


def write_loss_map(models: Sequence[ModelLoss], folder: Path) -> Path:
    """Writes `loss_map.json`, whole or not at all; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = LossMap(models=tuple(models)).model_dump_json(indent=1)
    return write_whole(folder / NAME, text + "\n", "another folder with --out")
