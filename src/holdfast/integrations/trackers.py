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
_UNNAMED = re.compile(r"[^\w/. -]")  # what the name of a metric may not hold


@dataclass(frozen=True)
class LoggedMethod:
    """One row of a tracker's table."""

    id: str  # the same whenever the same records are exported again; longer runs have another
    name: str
    group: str  # the run that it is of
    settings: Mapping[str, Scalar]  # the run's identity, flat: {"settings.rounds": 8}
    curves: Mapping[str, list[float]]  # a value for each round; NaN where nothing was measured
    totals: Mapping[str, float]  # of all records
    files: tuple[Path, ...]  # of the run's folder, to be kept beside the numbers


def entries_of(run: RunData) -> list[LoggedMethod]:
    """The entries of a run; one in which nothing is finished is a `RecordsError`."""
    group = run.folder.resolve().name
    settings = dict(_flat(run.manifest["identity"]))
    files = tuple(run.folder / name for name in (MANIFEST, RECORDS, "summary.json", "report.html"))
    return [
        LoggedMethod(
            id=_id_of(run, name),
            name=f"{group} · {name}",
            group=group,
            settings={**settings, "command": str(run.manifest.get("command")), "method": name},
            curves=curves,
            totals={total: value for total, value in totals.items() if math.isfinite(value)},
            files=tuple(path for path in files if path.is_file()),
        )
        for name, curves, totals in _numbers(run)
    ]


_Numbers = tuple[str, dict[str, list[float]], dict[str, float]]


def _numbers(run: RunData) -> Iterator[_Numbers]:
    """Of each entry its name, curves and totals."""
    command = run.manifest.get("command")
    if command == "drift":
        yield from map(_of_series, read_series(run))
        return
    results = summarise(run)["results"]
    if command == "profile":
        best = results["ranking"][0]
        totals = {"unsteered": results["unsteered"], "best_head_gain": best["gain"]["mean"]}
        yield "heads", {}, {name: _number(value) for name, value in totals.items()}
    elif command == "tasks":
        for row in results:
            scores = {name: _number(score["mean"]) for name, score in row["scores"].items()}
            totals = {name: _number(row[name]) for name in ("fluency", "consistency")}
            yield f"{row['task']} {row['variant']}", {}, {**scores, **totals}
    elif command == "calibrate":
        for row in results:
            yield row["method"], {}, {"capability": _number(row["score"]["mean"])}
    else:  # the baseline of a drift run: what its measures score without a system prompt
        every = [probe["score"] for record in run.records for probe in record["probes"]]
        yield str(command), {}, {"score": sum(every) / len(every) if every else math.nan}


def _of_series(series: Series) -> _Numbers:
    curves: dict[str, list[float]] = {}
    totals: dict[str, float] = {"conversations": float(len(series.records))}
    for kind in MEASURED:
        if series.measured(kind):
            values = series.values(kind)
            points = estimate_columns(values)
            for part in ("mean", "low", "high"):
                name = kind if part == "mean" else f"{kind}_{part}"
                curves[name] = [_number(getattr(point, part)) for point in points]
            means = row_means(values)
            overall = estimate_of(means[[not math.isnan(mean) for mean in means]])
            totals[f"{kind}_over_all_rounds"] = _number(overall.mean)
    return series.method, curves, totals


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _id_of(run: RunData, name: str) -> str:
    parts = [run.manifest.get("created"), run.manifest["identity"], name, len(run.records)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


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
    settings = {name: str(value)[:_LONGEST] for name, value in entry.settings.items()}
    points = [
        entities.Metric(_UNNAMED.sub("_", name), value, now, step)
        for name, curve in entry.curves.items()
        for step, value in enumerate(curve, start=1)
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
