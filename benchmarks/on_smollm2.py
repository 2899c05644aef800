"""Measures drift, its cause and its fixes on a published chat model: SmolLM2-135M-Instruct.

The prompts are those of the suite `everyday` that the model follows, according to screen.py's
record, with the half of each rule's probes that the screening did not ask. Sampling is at
temperature 0.7, with 60 new tokens, in bfloat16.

`drift` measures the unmodified model on two seeds: with scripted user messages, and in self-chat
with a user model that has another prompt of the suite, a persona, or none. `explore` uses the
families of prompts set aside for exploring, and is for choosing settings; `confirm` uses the
other families, two other seeds, and only the settings in CONFIRMED, which were committed before
it ran. Intervals of `explore` and `confirm` are over families of prompts.

Capability is measured in the same dialogs, as the fourth user turn: facts of the CounterFact core
(`statement,label,relation,subject,target,true_target`, which is not shipped), all of them and those
that the model completes correctly without any dialog; questions about what the user said before;
and the log-probability of ordinary text. Text health is measured on the dialogs.

    python benchmarks/on_smollm2.py drift --out FILE.json
    python benchmarks/on_smollm2.py explore|confirm --facts counterfact_core.csv.gz --out FILE.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from dialog_capability import facts, known_facts, ordinary_text, recall
from group_intervals import interval_over_groups
from screen import family_of
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.analysis.broken_replies import broken_share
from holdfast.analysis.collapse import count_turns, without_collapsed
from holdfast.analysis.decay import trace_of
from holdfast.analysis.series import NO_FIX, Series, read_series
from holdfast.drift.user_scripts import read_user_turns
from holdfast.models.local import LocalModel
from holdfast.records import Conversation
from holdfast.records.traces import read_traces
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan

RESULTS = Path(__file__).parent / "results"
SAMPLING = holdfast.Sampling(temperature=0.7, top_p=0.9, max_new_tokens=60)
ROUNDS = 8
ASK_AT = 4
DRIFT_SEEDS = (1, 2)
DRIFT_CONVERSATIONS = 96
SIDES = ("scripted", "suite", "persona", "empty")  # who plays the user in `drift`
EXPLORED = (  # of the 30 layers, 20 to 29 gain most, and 0 to 19 lose stability
    "boost:factor=8,heads=20-29.0-8",
    "boost:factor=4,heads=20-29.0-8",
    "split-softmax:exponent=0.5,heads=20-29.0-8",
    "split-softmax:exponent=0.7,heads=20-29.0-8",
    "spotlight:target=0.1,heads=20-29.0-8",
    "repetition:probability=1",
    "boost:factor=8,heads=21-23.0-8",
    "boost:factor=8,heads=20-24.0-8",
    "boost:factor=8,heads=25-29.0-8",
    "guidance:scale=1.5",
    "boost:factor=2,4,8",
    "split-softmax:exponent=0.7,0.5",
    "prompt-strength:scale=1.5",
    "spotlight:target=0.1",
    "hold:fraction=0.5,1",
    "boost:factor=8,heads=0-9.0-8",
    "boost:factor=8,heads=10-19.0-8",
)
CONFIRMED = (
    "split-softmax:exponent=0.7,heads=20-29.0-8",
    "split-softmax:exponent=0.5,heads=20-29.0-8",
    "repetition:probability=1",
    "split-softmax:exponent=0.7",
    "guidance:scale=1.5",
)


@dataclasses.dataclass(frozen=True)
class Stage:
    """A comparison of fixes; the families of prompts are those reserved for it.

    Args:
        conversations: per setting.
        facts: asked in each conversation.
        sweeps: the methods to compare.
    """

    seeds: tuple[int, ...]
    conversations: int
    facts: int
    sweeps: tuple[str, ...]


STAGES = {
    "explore": Stage((31,), 48, 12, EXPLORED),
    "confirm": Stage((32, 33), 96, 14, CONFIRMED),
}


def prompts(half: str | None) -> drift.Suite:
    """The prompts that the model follows, from one half of the families or from all."""
    suite = drift.load_suite("everyday")
    rows = json.loads((RESULTS / "screen_smollm2.json").read_text())["prompts"]
    followed = {row["id"] for row in rows if row["passes"] and half in (None, row["half"])}

    def second_half(rule: drift.Rule) -> drift.Rule:
        return dataclasses.replace(rule, probes=rule.probes[len(rule.probes) // 2 :])

    cases = (
        dataclasses.replace(case, rules=tuple(map(second_half, case.rules)))
        for case in suite.cases
        if case.id in followed
    )
    return dataclasses.replace(suite, cases=tuple(cases))


def families_of(records: Sequence[Conversation]) -> list[str]:
    """The family of each conversation's prompt, over which intervals are."""
    return [family_of(record.agent.id) for record in records]


def estimates(values: np.ndarray, families: list[str]) -> list[dict | None]:
    """Each column's mean over its finite values, with its interval; None for an empty column."""
    return [
        interval_over_groups(column, families) if np.isfinite(column).any() else None
        for column in values.T
    ]


# `drift`: the unmodified model


def run_drift(model: LocalModel, runs: Path, seed: int, side: str) -> dict:
    """Runs one part of `drift`; returns its row of the record.

    Args:
        side: who plays the user, one of `SIDES`.
    """
    folder = runs / f"drift-{side}-{seed}"
    has_traces = side in ("scripted", "suite") and seed == DRIFT_SEEDS[0]
    suite = prompts(None)
    if side == "persona":
        suite = dataclasses.replace(suite, personas=drift.load_suite("bot").personas)
    settings = drift.Settings(
        rounds=ROUNDS,
        conversations=DRIFT_CONVERSATIONS,
        seed=seed,
        sampling=SAMPLING,
        user_prompt="auto" if side == "scripted" else side,
        adoption=side == "suite",
        pairs="in-turn",
    )
    cast = drift.Cast(user_turns="everyday" if side == "scripted" else None)
    running = drift.Running(traces=has_traces)
    run = drift.run(model, suite, folder, settings, cast=cast, running=running)
    series = read_series(run)[0]
    remaining = without_collapsed(series, count_turns(series.records))
    row = {
        "seed": seed,
        "user": side,
        **drift_row(series),
        "categories": rows_by_category(series),
        "collapsed": DRIFT_CONVERSATIONS - len(remaining.records),
        "without_collapsed": drift_row(remaining) if remaining.records else None,
        "cut": share_cut(series.records),
    }
    if has_traces:
        dialogs = [read_traces(folder, NO_FIX, int(number)) for number in series.conversations]
        row["decay"] = trace_of("smollm2", series.records, dialogs).to_json()
    return row


def drift_row(series: Series) -> dict:
    """Stability, adoption and mass by round, and their change from the first to the last."""
    families = families_of(series.records)
    row: dict = {"conversations": len(series.records)}
    for name in ("stability", "adoption"):
        values = series.values(name)
        if np.isfinite(values).any():
            row[name] = estimates(values, families)
            row[f"{name}_change"] = interval_over_groups(values[:, -1] - values[:, 0], families)
    row["mass"] = estimates(series.mass, families) if np.isfinite(series.mass).any() else None
    return row


def rows_by_category(series: Series) -> dict[str, dict]:
    """Stability by round, and its change, for each category of prompts."""
    categories = np.array([record.agent.category for record in series.records])
    rows = {}
    for category in sorted(set(categories.tolist())):
        members = series.rows(categories == category)
        families = families_of(members.records)
        change = members.stability[:, -1] - members.stability[:, 0]
        rows[category] = {
            "conversations": len(members.records),
            "stability": estimates(members.stability, families),
            "change": interval_over_groups(change, families),
        }
    return rows


def share_cut(records: Sequence[Conversation]) -> float:
    """The share of the agent's turns that the limit on new tokens cut off."""
    turns = [turn for record in records for turn in record.turns if turn.speaker == "agent"]
    return round(float(np.mean([turn.stop_reason == "length" for turn in turns])), 3)


# `explore` and `confirm`: settings of fixes


def setting_rows(model: LocalModel, name: str, seed: int, runs: Path, file: Path) -> list[dict]:
    """A row per setting of `explore` or `confirm`, each paired with no fix.

    Args:
        name: of the stage.
        file: the CounterFact core.
    """
    stage = STAGES[name]
    suite = prompts(name)
    folder = runs / f"{name}-{seed}"
    plan = plan_of(stage, seed)
    questions = facts(file, stage.conversations * stage.facts, seed)
    stability, capability = calibrate(model, suite, questions, folder, plan)
    settings = list(dict.fromkeys(record.method for record in stability.records))
    unfixed = sorted(
        (record for record in stability.records if record.method == NO_FIX),
        key=lambda record: record.conversation,
    )
    families = families_of(unfixed)
    is_known = known_facts(model, questions.items)
    correct = by_conversation(capability.records, stage.conversations)
    correct_known = by_conversation(capability.records, stage.conversations, is_known)
    more_costs: dict[str, dict] = {setting: {} for setting in settings}
    if name == "confirm":
        more_costs = costs_of_recall_and_text(model, suite, folder, plan, unfixed, settings)
    rows = []
    for setting in settings:
        row = {
            "method": setting,
            **gains_of(setting, stability.records, unfixed),
            "facts": interval_over_groups(correct[setting], families),
            "points_lost": points_lost(correct, setting, families),
            "known_facts": interval_over_groups(correct_known[setting], families),
            "known_points_lost": points_lost(correct_known, setting, families),
            **more_costs[setting],
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def plan_of(stage: Stage, seed: int) -> CalibrationPlan:
    """The calibration of a stage on one seed."""
    return CalibrationPlan(
        seed=seed,
        rounds=ROUNDS,
        ask_at=ASK_AT,
        conversations=stage.conversations,
        sampling=SAMPLING,
        sweeps=stage.sweeps,
        user_turns=read_user_turns("everyday"),
    )


def points_lost(scores: Mapping[str, np.ndarray], setting: str, families: list[str]) -> dict:
    """How much lower a score in percent is under a setting than with no fix."""
    return interval_over_groups(100 * (scores[NO_FIX] - scores[setting]), families)


def costs_of_recall_and_text(
    model: LocalModel,
    suite: drift.Suite,
    folder: Path,
    plan: CalibrationPlan,
    unfixed: Sequence[Conversation],
    settings: Sequence[str],
) -> dict[str, dict]:
    """By setting, what only `confirm` measures: recall, and the log-probability of ordinary text.

    Args:
        folder: the calibration, whose dialogs are used again; results are kept beside it.
        unfixed: the dialogs of no fix, by conversation.
    """
    text_folder = folder.with_name(f"{folder.name}-text")
    if not (text_folder / "stability").exists():
        shutil.copytree(folder / "stability", text_folder / "stability")
    text_run = calibrate(model, suite, ordinary_text(), text_folder, plan).capability
    log_probabilities = by_conversation(text_run.records, len(unfixed))
    shares = recall(
        model,
        unfixed,
        settings,
        ask_at=ASK_AT,
        seed=plan.seed,
        file=folder.with_name(f"{folder.name}-recall.json"),
    )
    recalled = dict(zip(settings, shares, strict=True))
    families = families_of(unfixed)
    return {
        setting: {
            "recall": interval_over_groups(recalled[setting], families),
            "recall_points_lost": points_lost(recalled, setting, families),
            "log_probability_of_text": interval_over_groups(log_probabilities[setting], families),
        }
        for setting in settings
    }


def gains_of(
    setting: str, records: Sequence[Conversation], unfixed: Sequence[Conversation]
) -> dict:
    """Stability under a setting, its gain over no fix, and the share of broken replies.

    Args:
        records: of all settings.
        unfixed: those of no fix, by conversation.
    """
    count = len(unfixed)
    families = families_of(unfixed)
    rounds = stability_by_round(records, setting, count)
    unfixed_rounds = stability_by_round(records, NO_FIX, count)
    score = np.nanmean(rounds, 1)
    gain = score - np.nanmean(unfixed_rounds, 1)
    broken = np.full(count, np.nan)
    for record in records:
        if record.method == setting:
            broken[record.conversation] = broken_share(record)
    gains_by_category = defaultdict(list)
    for record, value in zip(unfixed, gain, strict=True):
        gains_by_category[record.agent.category].append(float(value))
    return {
        "stability": interval_over_groups(score, families),
        "by_round": [round(float(value), 3) for value in np.nanmean(rounds, 0)],
        "gain": interval_over_groups(gain, families),
        "gain_last_round": interval_over_groups(rounds[:, -1] - unfixed_rounds[:, -1], families),
        "gain_by_category": {
            category: {"mean": round(float(np.mean(values)), 3), "conversations": len(values)}
            for category, values in sorted(gains_by_category.items())
        },
        "broken": interval_over_groups(broken, families),
    }


def stability_by_round(records: Sequence[Conversation], method: str, count: int) -> np.ndarray:
    """The mean score of the agent's own probes, [conversation, round]."""
    values = np.full((count, ROUNDS), np.nan)
    for record in records:
        if record.method != method:
            continue
        for number in range(1, ROUNDS + 1):
            scores = [
                probe.score
                for probe in record.probes
                if probe.kind == "stability" and probe.round == number
            ]
            if scores:
                values[record.conversation, number - 1] = np.mean(scores)
    return values


def by_conversation(
    records: Sequence[Conversation], count: int, is_chosen: Sequence[bool] = ()
) -> dict[str, np.ndarray]:
    """By method, the mean score [conversation] of the items asked in each conversation.

    Args:
        count: how many conversations a method has.
        is_chosen: whether each item counts; () if all do.
    """
    means = defaultdict(lambda: np.full(count, np.nan))
    for record in records:
        scores = [probe.score for probe in record.probes if not is_chosen or is_chosen[probe.probe]]
        if scores:
            means[record.method][record.conversation] = np.mean(scores)
    return means


def measure_drift(model: LocalModel, arguments: argparse.Namespace) -> dict:
    """Runs all parts of `drift`, or those of --side; returns its part of the record."""
    sides = [arguments.side] if arguments.side else SIDES
    rows = [run_drift(model, arguments.runs, seed, side) for side in sides for seed in DRIFT_SEEDS]
    return {"runs": rows, "prompts": [case.id for case in prompts(None).cases]}


def compare_fixes(model: LocalModel, arguments: argparse.Namespace) -> dict:
    """Runs `explore` or `confirm` on all seeds, or on --seed; returns its part of the record."""
    name = arguments.stage
    stage = STAGES[name]
    prompt_ids = [case.id for case in prompts(name).cases]
    seeds = [seed for seed in stage.seeds if arguments.seed in (None, seed)]
    return {
        "conversations": stage.conversations,
        "facts": stage.conversations * stage.facts,
        "prompts": prompt_ids,
        "families": len({family_of(prompt) for prompt in prompt_ids}),
        "seeds": [
            {
                "seed": seed,
                "settings": setting_rows(model, name, seed, arguments.runs, arguments.facts),
            }
            for seed in seeds
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", choices=("drift", *STAGES))
    parser.add_argument("--facts", type=Path, help="the CounterFact core")
    parser.add_argument("--side", choices=SIDES, help="of drift, one part alone, with no record")
    parser.add_argument("--seed", type=int, help="of confirm, one seed alone, with no record")
    parser.add_argument("--runs", type=Path, default=Path("runs/smollm2"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.out and arguments.seed:
        parser.error("A record holds all seeds; leave out --seed or --out.")
    torch.set_num_threads(arguments.threads)
    model = holdfast.load("smollm2", dtype="bfloat16")
    record = {
        "benchmark": "on_smollm2",
        "stage": arguments.stage,
        "measured_on": measured_on(model),
        "sampling": dataclasses.asdict(SAMPLING),
        "rounds": ROUNDS,
    }
    if arguments.stage == "drift":
        record |= measure_drift(model, arguments)
    else:
        record |= compare_fixes(model, arguments)
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
