"""Finds the prompts of a suite that a model follows: those that score high in round 1 and low
without the prompt.

It uses the first half of each rule's probes, and a seed that is used for nothing else. So if you
select prompts by this record and then measure with the other half, on other seeds, the selection is
independent of the measured numbers.

    python benchmarks/screen.py --suite everyday --model smollm2 --out FILE.json
    python benchmarks/screen.py --suite bots --model qwen-0.5b --max-new-tokens 160 --out FILE.json

A prompt with several rules seldom passes as a whole, so the record has its rules too.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from pathlib import Path

import torch
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.analysis.prompt_effect import baseline_beside
from holdfast.analysis.series import read_series
from holdfast.drift.asking_baseline import ask_baseline
from holdfast.drift.families import family_of, half_of, halves
from holdfast.records import Run
from holdfast.records.drift_summary import BaselineScores

SEED = 730_193
MIN_PROMPTED = 0.6  # mean score with the prompt
MAX_UNPROMPTED = 0.1  # mean score without it
CONVERSATIONS_PER_PROMPT = 4  # each asks all of its screening probes


def with_screening_probes(suite: drift.Suite) -> drift.Suite:
    """The suite with the first half of each rule's probes."""

    def first_half(case: drift.Case, rule: drift.Rule) -> drift.Rule:
        if len(rule.probes) < 2:
            name = rule.id or case.id
            sys.exit(f"{name!r} has one probe, which leaves none to measure with; add another.")
        return dataclasses.replace(rule, probes=rule.probes[: len(rule.probes) // 2])

    cases = tuple(
        dataclasses.replace(case, rules=tuple(first_half(case, rule) for rule in case.rules))
        for case in suite.cases
    )
    return dataclasses.replace(suite, cases=cases)


def rule_row(rule: drift.Rule, scored: BaselineScores | None) -> dict:
    """How well a rule is followed; without numbers if no reply could be scored.

    `kept`: it is followed in round 1, so it can be lost. `passes`: and only because of the prompt,
    which few prohibitions do, as most of them are kept by replies that know nothing of them.
    """
    prompted = None if scored is None else round(scored.prompted.mean, 3)
    unprompted = None if scored is None else round(scored.unprompted.mean, 3)
    kept = prompted is not None and prompted >= MIN_PROMPTED
    return {
        "id": rule.id,
        "kind": rule.kind,
        "polarity": rule.polarity,
        "prompted": prompted,
        "unprompted": unprompted,
        "kept": kept,
        "passes": kept and unprompted <= MAX_UNPROMPTED,
    }


def prompt_rows(suite: drift.Suite, run: Run) -> list[dict]:
    """A row per prompt with those of its rules; its scores are those of its worst rule."""
    baseline = baseline_beside(run, read_series(run)[0])
    scored = {row.name: row for row in baseline.cases}
    half_of_family = halves(suite)
    rows = []
    for case in suite.cases:
        rules = [
            rule_row(rule, scored.get(f"{case.id} · {rule.id}" if rule.id else case.id))
            for rule in case.rules
        ]
        scored_rules = [row for row in rules if row["prompted"] is not None]
        family = family_of(case.id)
        rows.append(
            {
                "id": case.id,
                "category": case.category,
                "family": family,
                "half": half_of_family[family],
                "prompted": min((row["prompted"] for row in scored_rules), default=None),
                "unprompted": max((row["unprompted"] for row in scored_rules), default=None),
                "passes": all(row["passes"] for row in rules),
                **({} if case.rules[0].id is None else {"rules": rules}),
            }
        )
    return rows


def kinds_of(prompts: list[dict]) -> dict[str, dict[str, int]]:
    """By kind of rule: how many there are, how many are kept, and how many of these pass."""
    counts: dict[str, Counter[str]] = {}
    for prompt in prompts:
        for rule in prompt.get("rules", ()):
            if rule["kind"] is not None:
                count = counts.setdefault(rule["kind"], Counter(rules=0, kept=0, passes=0))
                count.update(rules=1, kept=int(rule["kept"]), passes=int(rule["passes"]))
    return {kind: dict(count) for kind, count in counts.items()}


def screening_settings(suite: drift.Suite, max_new_tokens: int) -> drift.Settings:
    """One round with every prompt, in which all screening probes are asked."""
    return drift.Settings(
        rounds=1,
        conversations=CONVERSATIONS_PER_PROMPT * len(suite.cases),
        seed=SEED,
        sampling=holdfast.Sampling(0.7, 0.9, max_new_tokens),
        user_prompt="empty",
        probes_per_round=max(len(rule.probes) for case in suite.cases for rule in case.rules),
        adoption=False,
        trace=False,
        pairs="in-turn",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default="everyday")
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--families", choices=["explore", "confirm"], help="only these")
    parser.add_argument("--max-new-tokens", type=int, default=60, help="bots need about 160")
    parser.add_argument("--runs", type=Path, default=Path("runs/screen"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    model = holdfast.load(arguments.model, dtype=arguments.dtype)
    suite = with_screening_probes(drift.load_suite(arguments.suite))
    if arguments.families is not None:
        suite = half_of(suite, arguments.families)
    settings = screening_settings(suite, arguments.max_new_tokens)
    run = drift.run(model, suite, arguments.runs, settings)
    ask_baseline(model, suite, arguments.runs, settings)
    rows = prompt_rows(suite, run)
    passing = [row for row in rows if row["passes"]]
    num_families = len({row["family"] for row in passing})
    kinds = kinds_of(rows)
    record = {
        "benchmark": "screen",
        "suite": suite.name,
        "model": arguments.model,
        "dtype": arguments.dtype,
        "measured_on": measured_on(model),
        "seed": SEED,
        "sampling": dataclasses.asdict(settings.sampling),
        "replies_per_rule": CONVERSATIONS_PER_PROMPT * settings.probes_per_round,
        "with_at_least": MIN_PROMPTED,
        "without_at_most": MAX_UNPROMPTED,
        "passing": len(passing),
        "families": num_families,
        "kinds": kinds,
        "prompts": rows,
    }
    write_json(record, arguments.out)
    print(f"{len(passing)} of {len(rows)} prompts pass, in {num_families} families.")
    for kind, count in kinds.items():
        print(f"{kind}: {count['kept']} of {count['rules']} rules are kept, {count['passes']} pass")


if __name__ == "__main__":
    main()
