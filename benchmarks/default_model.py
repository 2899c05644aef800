"""Measures the default model: drift on held-out instructions, without and with one fix.

The control is a user model without a system prompt. The conversations are those of `holdfast drift`
on two seeds; the runs stay in --runs, where they can be resumed and reported.

    python benchmarks/default_model.py --runs runs/default-model --out
    benchmarks/results/default_model.json
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from stamp import measured_on, write_json

import holdfast
from holdfast import drift, methods
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.statistics import (
    SCORES,
    Estimate,
    estimate_columns,
    paired_difference,
    row_means,
)
from holdfast.models.local import LocalModel
from holdfast.records import Conversation, Turn

FIX = "split-softmax:exponent=0.5"
SCORED = ("stability", "adoption")
NUM_LONGEST = 5  # longest replies in the record


def rounded(estimate: Estimate) -> dict:
    """An estimate as records have it."""
    return {
        key: round(value, 4) if isinstance(value, float) else value
        for key, value in dataclasses.asdict(estimate).items()
    }


def change(values: np.ndarray) -> Estimate:
    """The paired change of scores, [conversation, round], from the first round to the last."""
    return paired_difference(values[:, -1], values[:, 0])


def first_round(values: np.ndarray) -> dict:
    """The mean of scores, [conversation, round], in the first round."""
    return rounded(estimate_columns(values, SCORES)[0])


def summary(series: Series) -> dict:
    """Per-round estimates and paired changes of one series, and what it took to run."""
    result: dict = {"conversations": len(series.records)}
    for kind in (*SCORED, "mass"):
        values = series.values(kind)
        if not np.isnan(values).all():
            result[kind] = [rounded(estimate) for estimate in estimate_columns(values, SCORES)]
            result[f"{kind}_change"] = rounded(change(values))
    result |= stability_by_phrase(series) | stability_by_category(series)
    forwarded = sum(record.tokens.forwarded for record in series.records)
    least = sum(record.tokens.least for record in series.records)
    result["forwarded_over_least"] = round(forwarded / least, 4)
    result["seconds"] = round(sum(record.seconds for record in series.records), 1)
    return result


def stability_by_phrase(series: Series) -> dict[str, dict]:
    """Stability in round 1 of prompts whose phrase the model saw in training, and of the others."""
    unseen = np.array([record.agent.id.endswith("-new") for record in series.records])
    return {
        f"round_1_{name}": first_round(series.stability[members])
        for name, members in (("phrase_seen", ~unseen), ("phrase_unseen", unseen))
        if members.sum() > 1
    }


def stability_by_category(series: Series) -> dict[str, dict]:
    """Stability in round 1, and its change, by the category of the prompt."""
    categories = np.array([record.agent.category for record in series.records])
    rows = {}
    for category in sorted(set(categories.tolist())):
        scores = series.stability[categories == category]
        if len(scores) > 1:
            rows[category] = {"first": first_round(scores), "change": rounded(change(scores))}
    return {"categories": rows} if rows else {}


def lengths(records: Sequence[Conversation], tokenizer, limit: int) -> dict:
    """How long the replies are, how many reached the limit, and the longest ones.

    The reason why a probe's reply ended is not recorded, and encoding its text may take fewer
    tokens than were drawn: from nine tenths of the limit on, it counts as having reached it.
    """
    replies = []
    for record in records:
        for turn_or_probe in (*record.turns[1:], *record.probes):
            is_turn = isinstance(turn_or_probe, Turn)
            text = turn_or_probe.text if is_turn else turn_or_probe.reply
            if text:
                place = {"conversation": record.conversation, "round": turn_or_probe.round}
                replies.append({**place, "text": text})
    ids = tokenizer([reply["text"] for reply in replies], add_special_tokens=False)["input_ids"]
    for reply, tokens in zip(replies, ids, strict=True):
        reply["tokens"] = len(tokens)
    counts = np.array([reply["tokens"] for reply in replies])
    longest = sorted(replies, key=lambda reply: -reply["tokens"])[:NUM_LONGEST]
    return {
        "replies": len(replies),
        "limit": limit,
        "reached": int((counts >= 0.9 * limit).sum()),
        "median": float(np.median(counts)),
        "99.9th percentile": float(np.quantile(counts, 0.999)),
        "longest": [{**reply, "text": reply["text"][:400]} for reply in longest],
    }


class SeedSeries(NamedTuple):
    """The conversations of one seed."""

    plain: Series  # without a fix
    fixed: Series
    control: Series  # with a user model that has no system prompt


def run_seed(
    model: LocalModel,
    suite: drift.Suite,
    settings: drift.Settings,
    runs: Path,
    running: drift.Running,
) -> SeedSeries:
    """Runs the conversations of one seed."""
    folder = runs / f"seed-{settings.seed}"
    fixes = [(), methods.parse(FIX)]
    plain, fixed = read_series(drift.run(model, suite, folder, settings, fixes, running=running))
    folder = runs / f"seed-{settings.seed}-control"
    settings = dataclasses.replace(settings, user_prompt="empty")
    (control,) = read_series(drift.run(model, suite, folder, settings, running=running))
    return SeedSeries(plain, fixed, control)


def late_gains(plain: Series, fixed: Series) -> dict[str, dict]:
    """The change of scores by the fix, in the second half of the rounds."""
    late = slice(plain.rounds // 2, None)
    return {
        kind: rounded(
            paired_difference(
                row_means(fixed.values(kind)[:, late]), row_means(plain.values(kind)[:, late])
            )
        )
        for kind in SCORED
    }


def seed_row(series: SeedSeries, tokenizer, limit: int) -> dict:
    """The part of the record about one seed, whose replies have at most `limit` tokens."""
    return {
        "none": summary(series.plain),
        FIX: summary(series.fixed),
        "control": summary(series.control),
        "fix_minus_none_late_rounds": late_gains(series.plain, series.fixed),
        "lengths": lengths(series.plain.records, tokenizer, limit),
    }


def changes_of_all(series_by_seed: Sequence[Series]) -> dict[str, dict]:
    """The change of each kind of score over the conversations of all seeds."""
    return {
        kind: rounded(change(np.concatenate([series.values(kind) for series in series_by_seed])))
        for kind in SCORED
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/default-model"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/default_model.json"))
    parser.add_argument("--model", default="default")
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    model = holdfast.load(arguments.model)
    suite = drift.load_suite("starter")
    result: dict = {
        "benchmark": "default_model",
        "model": arguments.model,
        "measured_on": measured_on(model),
        "suite": suite.fingerprint,
        "sampling": dataclasses.asdict(holdfast.Sampling()),
        "seeds": {},
    }
    plain_series = []
    for seed in arguments.seeds:
        settings = drift.Settings(conversations=arguments.conversations, seed=seed)
        running = drift.Running(arguments.threads)
        series = run_seed(model, suite, settings, arguments.runs, running)
        plain_series.append(series.plain)
        row = seed_row(series, model.tokenizer, settings.sampling.max_new_tokens)
        result["seeds"][seed] = row
        result["all_seeds"] = changes_of_all(plain_series)
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(result, arguments.out)
        for name in ("none", FIX, "control"):
            means = [point["mean"] for point in row[name]["stability"]]
            print(seed, name, means, flush=True)


if __name__ == "__main__":
    main()
