"""The table of what rules lose in each mode of `--context`, from the records in
results/context_modes, one per model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tabled.loss import change_cell, share_cell
from tabled.reading import markdown

from holdfast.analysis.context_losses import ContextLoss
from holdfast.analysis.loss_rows import Grouping, LossRow
from holdfast.analysis.verdicts import too_few


def context_table(records: Sequence[dict]) -> str:
    """For each model, how well rules are kept with every round in view and in other modes.

    Groups of rules that no mode has enough conversations of for a verdict are left out.
    """
    return "\n\n".join("\n".join(_context_lines(record)) for record in records)


def _context_lines(record: dict) -> list[str]:
    losses = [ContextLoss.model_validate_json(json.dumps(loss)) for loss in record["losses"]]
    model = record["model"]
    rows = [[f"`{model}`", *(f"`{loss.context}`" for loss in losses)]]
    names = {(row.grouping, row.group): row.group or "all rules" for row in losses[0].rows}
    for key, name in names.items():
        of_modes = [_row(loss, *key) for loss in losses]
        if any(row is not None and not too_few(row.change) for row in of_modes):
            rows.append([f"**{name}**", *map(change_cell, of_modes)])
    rows.append(["rules stated when asked", *(change_cell(loss.recall) for loss in losses)])
    for head, field in (
        ("rules in the first summary", "stated_first"),
        ("rules in the last summary", "stated_last"),
    ):
        shares = [getattr(loss, field) for loss in losses]
        rows.append([head, *(share_cell(value) if value else "" for value in shares)])
    return [
        f"`{model}`, {record['conversations']} conversations of {record['rounds']} rounds"
        f" ([commands and numbers](RESULTS/context_modes/{model}.json)):",
        "",
        *markdown(rows),
    ]


def _row(loss: ContextLoss, grouping: Grouping, group: str) -> LossRow | None:
    keys = (row for row in loss.rows if (row.grouping, row.group) == (grouping, group))
    return next(keys, None)
