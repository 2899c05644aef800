"""A run's records as logs of Inspect, which `inspect view` opens.

A log holds one task and one model, so each method of a run has its own.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    HeadlineMetric,
    write_eval_log,
)
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    ModelOutput,
)
from inspect_ai.scorer import SampleScore, Score, mean, stderr

from holdfast.analysis.series import KINDS, Series, probe_means, read_series
from holdfast.common.files import write_whole
from holdfast.errors import RecordsError, UsageError
from holdfast.records import RunData

_LONGEST = 300  # characters of a reply in the list of probes


def messages_of(record: Mapping[str, Any], model: str = "") -> list[ChatMessage]:
    """The dialog of a record as the agent saw it; each of its turns says the attention mass that it
    was written under.
    """
    prompt = record["agent"]["system_prompt"]
    shown: list[ChatMessage] = [ChatMessageSystem(content=prompt)] if prompt else []
    for turn in record["turns"]:
        if turn["speaker"] == "user":
            shown.append(ChatMessageUser(content=turn["text"], metadata={"round": turn["round"]}))
        else:
            details = {name: turn.get(name) for name in ("round", "stop_reason", "mass")}
            shown.append(
                ChatMessageAssistant(content=turn["text"], model=model or None, metadata=details)
            )
    return shown


def score_of(record: Mapping[str, Any], rounds: int) -> Score:
    """Stability and adoption of a conversation, in every round of the run and over all of them.

    The values are named `stability`, `stability_round_1` and so on, NaN where nothing was asked;
    the explanation has every probe with its reply, the measure's reason and the mass.
    """
    values: dict[str, float] = {}
    for kind in KINDS:
        probes = [probe for probe in record["probes"] if probe["kind"] == kind]
        row = probe_means([{**record, "probes": probes}], rounds, lambda probe: True)[0]
        values[kind] = math.nan if np.isnan(row).all() else float(np.nanmean(row))
        for number, value in enumerate(row, 1):
            values[f"{kind}_round_{number}"] = float(value)
    kept = {name: record[name] for name in ("probes", "ended", "unanswered") if name in record}
    return Score(value=values, explanation=_listed(record), metadata=kept)


def _listed(record: Mapping[str, Any]) -> str:
    """The probes as a Markdown list."""
    entries = []
    for probe in record["probes"]:
        mass = "" if probe.get("mass") is None else f", mass {probe['mass']:.3f}"
        entries.append(
            f"- **Round {probe['round']}, {probe['kind']} {probe['score']:.2f}**"
            f" ({_line(probe['reason'])}{mass})\n"
            f"    - {_line(probe['question'])}\n"
            f"    - {_line(probe['reply'])}"
        )
    return "\n".join(entries)


def _line(text: str) -> str:
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return " ".join(short.split())


SUFFIX = ".eval"
TASK, SCORER = "holdfast/drift", "stability_and_adoption"
_METRICS = {"mean": mean, "stderr": stderr}


def write_logs(run: RunData, path: Path) -> list[Path]:
    """Writes a drift run for `inspect view`: into a file that ends in .eval, for a run of one
    method, or into a folder, a log of each; returns the files.
    """
    if run.manifest.get("command") != "drift":
        raise RecordsError(
            f"{run.folder} holds a run of `holdfast {run.manifest.get('command')}`, and Inspect's"
            " logs are of conversations; give one of `holdfast drift`."
        )
    series = read_series(run)
    if path.suffix != SUFFIX:
        return [
            _write(log_of(run, item), path / f"{_file_name(item.method)}{SUFFIX}")
            for item in series
        ]
    if len(series) > 1:
        methods = ", ".join(item.method for item in series)
        raise UsageError(
            f"{path} is one log, and {run.folder} has {len(series)} methods ({methods}), each a log"
            " of its own; give a folder."
        )
    return [_write(log_of(run, series[0]), path)]


def log_of(run: RunData, series: Series) -> EvalLog:
    identity, created = run.manifest["identity"], str(run.manifest["created"])
    settings = dict(identity["settings"])
    sampling = settings.pop("sampling", {})
    rounds, planned = int(settings["rounds"]), int(settings["conversations"])
    samples = [_sample(_clean(record), rounds, identity["model"]) for record in series.records]
    return EvalLog(
        status="success" if len(samples) >= planned else "cancelled",
        eval=EvalSpec(
            created=created,
            task=TASK,
            task_id=f"{run.folder.resolve().name}-{series.method}",
            task_args={"suite": identity["suite"], "method": series.method, **settings, **sampling},
            dataset=EvalDataset(
                name=identity["suite"],
                samples=planned,
                sample_ids=[sample.id for sample in samples],
            ),
            model=f"holdfast/{identity['model']}",
            model_generate_config=GenerateConfig(
                temperature=sampling.get("temperature"),
                top_p=sampling.get("top_p"),
                max_tokens=sampling.get("max_new_tokens"),
            ),
            config=EvalConfig(),
            packages=dict(run.manifest.get("versions", {})),
            metadata={"identity": identity, "method": series.method},
        ),
        results=_results(samples, planned),
        stats=EvalStats(started_at=created, completed_at=_end_of(created, series)),
        samples=samples,
    )


def _write(log: EvalLog, path: Path) -> Path:
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / f"log{SUFFIX}"
        write_eval_log(log, fresh)
        return write_whole(path, fresh.read_bytes(), "another file with --inspect")


def _sample(record: Mapping[str, Any], rounds: int, model: str) -> EvalSample:
    agent, user = record["agent"], record["user"]
    messages = messages_of(record, model)
    starter = next(iter(record["turns"]), {"text": ""})["text"]
    return EvalSample(
        id=record["conversation"],
        epoch=1,
        input=starter,
        target="",
        messages=messages,
        output=ModelOutput.from_message(messages[-1]),
        scores={SCORER: score_of(record, rounds)},
        metadata={
            "agent": agent["id"],
            "category": agent["category"],
            "system_prompt": agent["system_prompt"],
            "user": user["id"],
            "user_system_prompt": user["system_prompt"],
            "mass_by_round": {
                str(turn["round"]): turn.get("mass")
                for turn in record["turns"]
                if turn["speaker"] == "agent"
            },
            "tokens": record.get("tokens"),
        },
        total_time=record.get("seconds"),
    )


def _results(samples: Sequence[EvalSample], planned: int) -> EvalResults:
    """The metrics that Inspect itself would give these scores."""
    values = [dict(sample.scores[SCORER].value) for sample in samples if sample.scores]
    scores = [_measured(name, [row[name] for row in values]) for name in values[0]]
    return EvalResults(
        total_samples=planned,
        completed_samples=len(samples),
        scores=scores,
        headline=HeadlineMetric(scorer=SCORER, score=scores[0].name, metric="mean"),
    )


def _measured(name: str, values: Sequence[float]) -> EvalScore:
    """One score over all samples that have it."""
    scores = [SampleScore(score=Score(value=value)) for value in values if value == value]
    metrics = {
        metric: EvalMetric(name=metric, value=float(make()(scores)) if scores else float("nan"))
        for metric, make in _METRICS.items()
    }
    return EvalScore(
        name=name,
        scorer=SCORER,
        scored_samples=len(scores),
        unscored_samples=len(values) - len(scores),
        metrics=metrics,
    )


def _end_of(created: str, series: Series) -> str:
    """When the conversations would have ended, had nothing else been run in between."""
    seconds = sum(record.get("seconds", 0.0) for record in series.records)
    return (datetime.fromisoformat(created) + timedelta(seconds=seconds)).isoformat()


def _clean(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without lone surrogates, which Inspect's JSON does not take."""
    text = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace").decode()
    return dict(json.loads(text))


def _file_name(method: str) -> str:
    return re.sub(r"[^\w.=,+-]+", "-", method)[:100]
