"""Runs in MLflow, through its own client."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any

from holdfast.errors import RecordsError
from holdfast.integrations.entries import Entry, entries_of
from holdfast.records import RunData
from holdfast.records.tables import package

EXPERIMENT = "holdfast"
TAG = "holdfast.id"
_LONGEST = 6000  # characters of a parameter that MLflow takes
_UNNAMED = re.compile(r"[^\w/. -]")  # what the name of a metric may not hold


def log_to_mlflow(run: RunData, store: str) -> list[str]:
    """Logs every method of a run as a run of the experiment `holdfast`: settings as parameters,
    curves as metrics by round, totals, and the run's files as artifacts.

    Args:
        run: what to log. Records that are there already are not logged twice.
        store: a tracking URI, as of a server; or a folder, for `mlflow.db` and the artifacts.

    Returns:
        The names of the runs that the experiment now has.

    Raises:
        UsageError: mlflow is not installed.
        RecordsError: the client refuses.
    """
    mlflow = package("mlflow", "mlflow", "--mlflow")
    entries = entries_of(run)
    try:
        client, experiment = _open(mlflow, store)
        for entry in entries:
            if not client.search_runs([experiment], f"tags.`{TAG}` = '{entry.id}'"):
                _log(mlflow, client, experiment, entry)
    except (mlflow.exceptions.MlflowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise RecordsError(
            f"MLflow does not take the run ({reason[:300]}); give the URI of a server that answers,"
            " or a folder you may write to, with --mlflow."
        ) from error
    return [entry.name for entry in entries]


def _open(mlflow: Any, store: str) -> tuple[Any, str]:
    """The client of a store, and the id of our experiment there."""
    artifacts = None
    if "://" not in store and not store.startswith("sqlite:"):
        folder = Path(store).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        store, artifacts = f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()
    client = mlflow.MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    if experiment is not None:
        return client, experiment.experiment_id
    return client, client.create_experiment(EXPERIMENT, artifact_location=artifacts)


def _log(mlflow: Any, client: Any, experiment: str, entry: Entry) -> None:
    entities, now = mlflow.entities, int(time.time() * 1000)
    tags = {TAG: entry.id, "holdfast.run": entry.group}
    logged = client.create_run(experiment, run_name=entry.name, tags=tags).info.run_id
    settings = {name: str(value)[:_LONGEST] for name, value in entry.settings.items()}
    points = [
        entities.Metric(_UNNAMED.sub("_", name), value, now, place)
        for name, curve in entry.curves.items()
        for place, value in enumerate(curve, start=1)
        if not math.isnan(value)
    ]
    totals = [
        entities.Metric(_UNNAMED.sub("_", name), value, now, 0)
        for name, value in entry.totals.items()
    ]
    parameters = [entities.Param(name, value) for name, value in settings.items()]
    client.log_batch(logged, metrics=points + totals, params=parameters)
    for path in entry.files:
        client.log_artifact(logged, str(path))
    client.set_terminated(logged)
