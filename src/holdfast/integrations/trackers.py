"""Runs in Weights & Biases and MLflow: an entry for each method, or each way to ask a task."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.series import MEASURED, Series, read_series
from holdfast.analysis.statistics import estimate as estimate_of
from holdfast.analysis.statistics import estimate_columns, row_means
from holdfast.analysis.summary import summarise
from holdfast.errors import RecordsError
from holdfast.records import MANIFEST, RECORDS, RunData
from holdfast.records.tables import package

Scalar = str | int | float | bool
_ROUND = "round"
_EXPERIMENT = "holdfast"
_TAG = "holdfast.id"
_LONGEST = 6000  # characters of a parameter that MLflow takes
_UNNAMED = re.compile(r"[^\w/. -]")  # characters that no metric's name may have


@dataclass(frozen=True)
class LoggedMethod:
    """One row of a tracker's table."""

    id: str  # the same for the same records, so that none is logged twice
    name: str
    group: str  # the name of the run's folder
    settings: Mapping[str, Scalar]  # the run's identity, flat: {"settings.rounds": 8}
    curves: Mapping[str, list[float]]  # a value for each round; NaN where nothing was measured
    totals: Mapping[str, float]  # over all records
    files: tuple[Path, ...]  # of the run, kept as artifacts


def entries_of(run: RunData) -> list[LoggedMethod]:
    """The entries of a run; one in which nothing is finished is a `RecordsError`."""
    group = run.folder.resolve().name
    created, identity = run.manifest.get("created"), run.manifest["identity"]
    settings = {**dict(_flat(identity)), "command": str(run.manifest.get("command"))}
    files = (run.folder / name for name in (MANIFEST, RECORDS, "summary.json", "report.html"))
    present = tuple(path for path in files if path.is_file())
    entries = []
    for name, curves, totals in _numbers(run):
        parts = json.dumps([created, identity, name, len(run.records)], sort_keys=True)
        entries.append(
            LoggedMethod(
                id=hashlib.sha256(parts.encode()).hexdigest()[:16],
                name=f"{group} · {name}",
                group=group,
                settings={**settings, "method": name},
                curves=curves,
                totals={t: v for t, v in totals.items() if v is not None and math.isfinite(v)},
                files=present,
            )
        )
    return entries


_Numbers = tuple[str, dict[str, list[float]], dict[str, float | None]]


def _numbers(run: RunData) -> Iterator[_Numbers]:
    """The name, curves and totals of each entry."""
    command = run.manifest.get("command")
    if command == "drift":
        yield from map(_of_series, read_series(run))
        return
    results = summarise(run)["results"]
    if command == "profile":
        gain = results["ranking"][0]["gain"]["mean"]
        yield "heads", {}, {"unsteered": results["unsteered"], "best_head_gain": gain}
    elif command == "tasks":
        for row in results:
            scores = {name: score["mean"] for name, score in row["scores"].items()}
            totals = {**scores, "fluency": row["fluency"]}
            yield f"{row['task']} {row['variant']}", {}, totals
    elif command == "calibrate":
        for row in results:
            yield row["method"], {}, {"capability": row["score"]["mean"]}
    else:  # the baseline of a drift run: what its measures score without a system prompt
        every = [probe["score"] for record in run.records for probe in record["probes"]]
        yield str(command), {}, {"score": sum(every) / len(every) if every else None}


def _of_series(series: Series) -> _Numbers:
    curves: dict[str, list[float]] = {}
    totals: dict[str, float | None] = {"conversations": float(len(series.records))}
    for kind in MEASURED:
        if series.measured(kind):
            values = series.values(kind)
            points = estimate_columns(values)
            for part, name in (("mean", kind), ("low", f"{kind}_low"), ("high", f"{kind}_high")):
                bounds = [getattr(point, part) for point in points]
                curves[name] = [math.nan if bound is None else bound for bound in bounds]
            means = row_means(values)
            overall = estimate_of(means[~np.isnan(means)])
            totals[f"{kind}_over_all_rounds"] = overall.mean
    return series.method, curves, totals


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    """The leaves of nested objects under dotted names; a list is one leaf, as JSON."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, str | int | float | bool):
        yield prefix, value
    elif value is not None:
        yield prefix, json.dumps(value, ensure_ascii=False)


def log_to_wandb(run: RunData, project: str) -> list[str]:
    """Logs every method of a run as an entry of a project: its curves by round, its totals, and its
    files as an artifact; returns the names of the entries.

    Where the entries go is the client's own matter (`wandb login`, WANDB_MODE=offline, WANDB_DIR).
    Logging the same records again adds nothing.
    """
    wandb = package("wandb", "wandb", "--wandb")
    entries = entries_of(run)
    try:
        for entry in entries:
            _log_in_wandb(wandb, entry, project)
    except wandb.errors.Error as error:
        raise RecordsError(
            f"wandb does not take the run ({str(error).strip().rstrip('.')}); log in with"
            " `wandb login`, or set WANDB_MODE=offline."
        ) from error
    return [entry.name for entry in entries]


def _log_in_wandb(wandb: Any, entry: LoggedMethod, project: str) -> None:
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
        logged.define_metric("*", step_metric=_ROUND)
        for step in range(max(map(len, entry.curves.values()), default=0)):
            values = {name: curve[step] for name, curve in entry.curves.items()}
            measured = {name: value for name, value in values.items() if not math.isnan(value)}
            logged.log({_ROUND: step + 1, **measured}, step=step + 1)
        logged.summary.update(dict(entry.totals))
        artifact = wandb.Artifact(re.sub(r"[^\w.-]+", "-", entry.group), type="holdfast-run")
        for path in entry.files:
            artifact.add_file(str(path))
        logged.log_artifact(artifact)


def log_to_mlflow(run: RunData, store: str) -> list[str]:
    """Logs every method of a run as a run of the experiment `holdfast`: settings as parameters,
    curves as metrics by round, totals, and the run's files as artifacts; returns their names.

    `store` is a tracking URI, as of a server, or a folder, for `mlflow.db` and the artifacts.
    Records that are there already are not logged twice.
    """
    mlflow = package("mlflow", "mlflow", "--mlflow")
    entries = entries_of(run)
    try:
        client, experiment = _open_mlflow(mlflow, store)
        for entry in entries:
            if not client.search_runs([experiment], f"tags.`{_TAG}` = '{entry.id}'"):
                _log_in_mlflow(mlflow, client, experiment, entry)
    except (mlflow.exceptions.MlflowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise RecordsError(
            f"MLflow does not take the run ({reason[:300]}); give the URI of a server that answers,"
            " or a folder you may write to, with --mlflow."
        ) from error
    return [entry.name for entry in entries]


def _open_mlflow(mlflow: Any, store: str) -> tuple[Any, str]:
    """The client of a store, and the id of our experiment there."""
    artifacts = None
    if "://" not in store and not store.startswith("sqlite:"):
        folder = Path(store).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        store, artifacts = f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()
    client = mlflow.MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name(_EXPERIMENT)
    if experiment is not None:
        return client, experiment.experiment_id
    return client, client.create_experiment(_EXPERIMENT, artifact_location=artifacts)


def _log_in_mlflow(mlflow: Any, client: Any, experiment: str, entry: LoggedMethod) -> None:
    entities, now = mlflow.entities, int(time.time() * 1000)
    tags = {_TAG: entry.id, "holdfast.run": entry.group}
    logged = client.create_run(experiment, run_name=entry.name, tags=tags).info.run_id
    points = [(name, value, 0) for name, value in entry.totals.items()]
    for name, curve in entry.curves.items():
        points += [(name, v, step) for step, v in enumerate(curve, 1) if not math.isnan(v)]
    metrics = [entities.Metric(_UNNAMED.sub("_", name), v, now, step) for name, v, step in points]
    settings = entry.settings.items()
    parameters = [entities.Param(name, str(value)[:_LONGEST]) for name, value in settings]
    client.log_batch(logged, metrics=metrics, params=parameters)
    for path in entry.files:
        client.log_artifact(logged, str(path))
    client.set_terminated(logged)
