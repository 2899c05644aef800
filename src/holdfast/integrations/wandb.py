"""Runs in Weights & Biases, through its own client."""

from __future__ import annotations

import math
import re
from typing import Any

from holdfast.errors import RecordsError
from holdfast.integrations.entries import Entry, entries_of
from holdfast.records import RunData
from holdfast.records.tables import package

ROUND = "round"


def log_to_wandb(run: RunData, project: str) -> list[str]:
    """Logs every method of a run as an entry of a project: its curves by round, its totals, and its
    files as an artifact.

    Where the entries go is the client's own matter (`wandb login`, WANDB_MODE=offline, WANDB_DIR).
    Logging the same records again adds nothing.

    Returns:
        The names of the entries.

    Raises:
        UsageError: wandb is not installed.
        RecordsError: the client refuses.
    """
    wandb = package("wandb", "wandb", "--wandb")
    entries = entries_of(run)
    try:
        for entry in entries:
            _log(wandb, entry, project)
    except wandb.errors.Error as error:
        raise RecordsError(
            f"wandb does not take the run ({str(error).strip().rstrip('.')}); log in with"
            " `wandb login`, or set WANDB_MODE=offline."
        ) from error
    return [entry.name for entry in entries]


def _log(wandb: Any, entry: Entry, project: str) -> None:
    settings = wandb.Settings(silent=True, disable_code=True, disable_git=True, console="off")
    with wandb.init(
        project=project,
        id=entry.id,
        name=entry.name,
        group=entry.group,
        job_type=str(entry.settings["command"]),
        config=dict(entry.settings),
        resume="allow",
        settings=settings,
    ) as logged:
        logged.define_metric("*", step_metric=ROUND)
        for place in range(max(map(len, entry.curves.values()), default=0)):
            values = {name: curve[place] for name, curve in entry.curves.items()}
            measured = {name: value for name, value in values.items() if not math.isnan(value)}
            logged.log({ROUND: place + 1, **measured}, step=place + 1)
        logged.summary.update(dict(entry.totals))
        artifact = wandb.Artifact(re.sub(r"[^\w.-]+", "-", entry.group), type="holdfast-run")
        for path in entry.files:
            artifact.add_file(str(path))
        logged.log_artifact(artifact)
