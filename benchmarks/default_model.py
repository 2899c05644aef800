"""The default model's numbers: drift on held-out instructions, two seeds, with the unprompted
control and one fix.

    python benchmarks/default_model.py --runs runs/default-model --out
    benchmarks/results/default_model.json

It runs `holdfast drift` through Python (the runs stay in --runs and can be resumed and reported),
and writes one summary."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

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
from holdfast.records import Conversation, Turn

FIX = "split-softmax:exponent=0.5"
LONGEST_REPLIES_KEPT = 5  # longest replies to keep in the record


def rounded(estimate: Estimate) -> dict:
    return {
        key: round(value, 4) if isinstance(value, float) else value
        for key, value in dataclasses.asdict(estimate).items()
    }


def change(values: np.ndarray) -> Estimate:
    """The paired change of scores, [conversation, round], from the first round to the last."""
    return paired_difference(values[:, -1], values[:, 0])


def summary(series: Series) -> dict:
    """Per-round estimates and paired changes of one series."""
    result = {"conversations": len(series.records)}
    for kind in ("stability", "adoption", "mass"):
        values = series.values(kind)
        if not np.isnan(values).all():
            result[kind] = [rounded(estimate) for estimate in estimate_columns(values, SCORES)]
            result[f"{kind}_change"] = rounded(change(values))
    unseen = np.array([record.agent.id.endswith("-new") for record in series.records])
    for name, keep in (("phrase_seen", ~unseen), ("phrase_unseen", unseen)):
        if keep.sum() > 1:
            result[f"round_1_{name}"] = rounded(estimate_columns(series.stability[keep], SCORES)[0])
    categories = sorted({record.agent.category for record in series.records})
    for category in categories:
        keep = np.array([record.agent.category == category for record in series.records])
        if keep.sum() > 1:
            result.setdefault("categories", {})[category] = {
                "first": rounded(estimate_columns(series.stability[keep], SCORES)[0]),
                "change": rounded(change(series.stability[keep])),
            }
    forwarded = sum(record.tokens.forwarded for record in series.records)
    least = sum(record.tokens.least for record in series.records)
    result["forwarded_over_least"] = round(forwarded / least, 4)
    result["seconds"] = round(sum(record.seconds for record in series.records), 1)
    return result


def lengths(records: Sequence[Conversation], tokenizer, limit: int) -> dict:
    """How long the replies are, how many reached the limit, and the longest ones.

    The reason why a probe's reply ended is not recorded, and encoding its text may take fewer
    tokens than were drawn: from nine tenths of the limit on, it counts as having reached it."""
    replies = [
        {"conversation": record.conversation, "round": part.round, "text": text}
        for record in records
        for part in (*record.turns[1:], *record.probes)
        if (text := part.text if isinstance(part, Turn) else part.reply)
    ]
    ids = tokenizer([reply["text"] for reply in replies], add_special_tokens=False)["input_ids"]
    for reply, tokens in zip(replies, ids, strict=True):
        reply["tokens"] = len(tokens)
    counts = np.array([reply["tokens"] for reply in replies])
    longest = sorted(replies, key=lambda reply: -reply["tokens"])[:LONGEST_REPLIES_KEPT]
    return {
        "replies": len(replies),
        "limit": limit,
        "reached": int((counts >= 0.9 * limit).sum()),
        "median": float(np.median(counts)),
        "99.9th percentile": float(np.quantile(counts, 0.999)),
        "longest": [{**reply, "text": reply["text"][:400]} for reply in longest],
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
    plain_runs = []
    for seed in arguments.seeds:
        settings = drift.Settings(conversations=arguments.conversations, seed=seed)
        control = dataclasses.replace(settings, user_prompt="empty")
        compared = [(), methods.parse(FIX)]
        folder = arguments.runs / f"seed-{seed}"
        running = drift.Running(arguments.threads)
        main_run = drift.run(model, suite, folder, settings, compared, running=running)
        folder = arguments.runs / f"seed-{seed}-control"
        control_run = drift.run(model, suite, folder, control, running=running)
        plain, fixed = read_series(main_run)
        late = slice(settings.rounds // 2, None)
        row = {
            "none": summary(plain),
            FIX: summary(fixed),
            "control": summary(read_series(control_run)[0]),
        }
        row["fix_minus_none_late_rounds"] = {
            kind: rounded(
                paired_difference(
                    row_means(fixed.values(kind)[:, late]), row_means(plain.values(kind)[:, late])
                )
            )
            for kind in ("stability", "adoption")
        }
        row["lengths"] = lengths(plain.records, model.tokenizer, settings.sampling.max_new_tokens)
        result["seeds"][seed] = row
        plain_runs.append(plain)
        result["all_seeds"] = {
            kind: rounded(change(np.concatenate([run.values(kind) for run in plain_runs])))
            for kind in ("stability", "adoption")
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(result, arguments.out)
        print(
            seed,
            {
                name: [e["mean"] for e in row[name]["stability"]]
                for name in ("none", FIX, "control")
            },
            flush=True,
        )


if __name__ == "__main__":
    main()
