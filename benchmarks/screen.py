"""Finds the prompts of a suite that a model follows: those that score high in round 1 and low
without the prompt.

It uses the first half of each rule's probes, and a seed that is used for nothing else. So if you
select prompts by this record and then measure with the other half, on other seeds, the selection is
independent of the measured numbers.

    python benchmarks/screen.py --suite everyday --model smollm2 --out FILE.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import torch
from stamp import measured_on

import holdfast
from holdfast import drift
from holdfast.analysis.prompt_effect import baseline_beside
from holdfast.analysis.series import read_series
from holdfast.drift.asking_baseline import ask_baseline
from holdfast.drift.families import family_of, halves

SEED = 730_193
WITH, WITHOUT = 0.6, 0.1  # minimum mean score with the prompt, and maximum without
TALKS = 4  # conversations per prompt; each asks all of its screening probes


def screening(suite: drift.Suite) -> drift.Suite:
    """The suite with the first half of each rule's probes."""

    def first_half(asked):
        if len(asked.probes) < 2:
            sys.exit(f"{asked.id!r} has one probe, which leaves none to measure with; add another.")
        return dataclasses.replace(asked, probes=asked.probes[: len(asked.probes) // 2])

    cases = (
        dataclasses.replace(case, rules=tuple(map(first_half, case.rules)))
        if case.rules
        else first_half(case)
        for case in suite.cases
    )
    return dataclasses.replace(suite, cases=tuple(cases))


def prompt_rows(suite: drift.Suite, run) -> list[dict]:
    """A row per prompt; one with several rules gets its worst rule's scores."""
    scored = {row.name: row for row in baseline_beside(run, read_series(run)[0]).cases}
    half = halves(suite)
    rows = []
    for case in suite.cases:
        names = [f"{case.id} · {rule.id}" if rule.id else case.id for rule in case.all_rules]
        prompted = round(min(scored[name].prompted.mean for name in names), 3)
        unprompted = round(max(scored[name].unprompted.mean for name in names), 3)
        family = family_of(case.id)
        rows.append(
            {
                "id": case.id,
                "category": case.category,
                "family": family,
                "half": half[family],
                "prompted": prompted,
                "unprompted": unprompted,
                "passes": prompted >= WITH and unprompted <= WITHOUT,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="everyday")
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--runs", type=Path, default=Path("runs/screen"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    model = holdfast.load(arguments.model, dtype=arguments.dtype)
    suite = screening(drift.load_suite(arguments.suite))
    settings = drift.Settings(
        rounds=1,
        conversations=TALKS * len(suite.cases),
        seed=SEED,
        sampling=holdfast.Sampling(temperature=0.7, top_p=0.9, max_new_tokens=60),
        user_prompt="empty",
        probes_per_round=max(len(rule.probes) for case in suite.cases for rule in case.all_rules),
        adoption=False,
        trace=False,
        pairs="in-turn",
    )
    run = drift.run(model, suite, arguments.runs, settings)
    ask_baseline(model, suite, arguments.runs, settings)
    rows = prompt_rows(suite, run)
    passing = [row for row in rows if row["passes"]]
    record = {
        "benchmark": "screen",
        "suite": suite.name,
        "model": arguments.model,
        "dtype": arguments.dtype,
        "measured_on": measured_on(model),
        "seed": SEED,
        "sampling": dataclasses.asdict(settings.sampling),
        "replies_per_rule": TALKS * settings.probes_per_round,
        "with_at_least": WITH,
        "without_at_most": WITHOUT,
        "passing": len(passing),
        "families": len({row["family"] for row in passing}),
        "prompts": rows,
    }
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(passing)} of {len(rows)} prompts pass, in {record['families']} families.")


if __name__ == "__main__":
    main()
