"""Compares fixes at equal cost: does any keep the prompt better than all published ones at the same
capability?

Stages come in pairs: the first is for choosing settings; the second measures those that were
written down before its numbers existed, on two seeds and on prompts that are not in the first.

- `explore` and `confirm` have few prompts, and every ordered pair of them talks, so their intervals
  say what to expect of these prompts.
- `explore-many` and `confirm-many` draw a new pair of prompts for every conversation, each stage
  from its own half of the suite's families of prompts, and resample whole families: their intervals
  say what to expect of other families too.

Stability is the mean over eight rounds of free self-chats, under each fix. Capability is the share
of knowledge questions answered correctly in the same dialogs, as the fourth user turn and, when
confirming, as the eighth. Supplementary readings are the last round's stability after the
unmodified model's dialogs, and whether the model still knows there what the user said (recall.py).

The lead of a setting is its stability minus that of the best published fix at the same capability,
interpolated between a fix's settings. It is computed at each turn, and separately in every resample
of the conversations.

    python benchmarks/equal_cost.py explore|confirm|explore-many|confirm-many --out FILE.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np
import torch
from chosen_heads import LATE, probe_scores
from default_model import rounded
from recall import recall
from stamp import measured_on, write_json

import holdfast
from holdfast import drift, methods
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.resampling import resample_means
from holdfast.analysis.statistics import SCORES, estimate
from holdfast.records import read_run
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import Capability, Item
from holdfast.study.fitting.fit import fit

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
from knowledge import ask

RESULTS = Path(__file__).parent / "results"
RECALL_QUESTIONS = 3  # per conversation, about what the user said
FITTED = ("seka", "prism", "capping", "vector")
PUBLISHED = (
    "split-softmax:exponent=0.7,0.5,0.3",
    "boost:factor=2,4,8",
    "spotlight:target=0.1,0.2",
    "pasta:alpha=0.3,0.1",
    "repetition:probability=0.5,1",
    "guidance:scale=1.25,1.5",
    "prompt-strength:scale=1.25,1.5",
    "anchoring:strength=1.25,1.5",
    "seka:file={seka},gain=0.5,1",
    "prism:file={prism},gain=0.5,1",
    "capping:file={capping},strength=0.5,1",
    "vector:file={vector},factor=0.5,1",
)
OURS = (
    "hold:fraction=0.25,0.5,0.75,1",
    "repetition:probability=0.5,1+boost:factor=2",
    "repetition:probability=0.5,1+seka:file={seka},gain=1",
    "seka:file={seka},gain=0.5,1+boost:factor=2",
    "hold:fraction=0.5,1+boost:factor=2",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stage:
    """The settings of one stage.

    Args:
        half: which half of the suite's prompts, 0 or 1.
        prompts: how many of them, each from a different family; every ordered pair is one
            conversation. None: half of the families with all their prompts, and a new pair drawn
            for every conversation.
        conversations: how many per setting.
        questions: how many per conversation, at each question turn.
        seeds: of conversations, draws and questions; each gives a separate calibration.
        published: sweeps of published fixes; {seka} is the file with SEKA's fitted projections.
        ours: other sweeps.
        turns: the user turns that are knowledge questions, each in a separate calibration.
        supplementary: whether to take the supplementary readings too.
        level: of the interval of a lead: 1 minus 5% / number of leads to confirm.
    """

    half: int
    prompts: int | None
    conversations: int
    questions: int
    seeds: tuple[int, ...]
    published: tuple[str, ...]
    ours: tuple[str, ...]
    turns: tuple[int, ...]
    supplementary: bool = True
    level: float = 0.95


EXPLORE = Stage(
    half=0,
    prompts=9,
    conversations=72,
    questions=9,
    seeds=(11,),
    published=PUBLISHED,
    ours=OURS,
    turns=(4,),
)
CONFIRM = Stage(
    half=1,
    prompts=10,
    conversations=90,
    questions=9,
    seeds=(12, 13),
    published=(
        "split-softmax:exponent=0.7,0.3",
        "boost:factor=2,4",
        "repetition:probability=0.5,1",
        "seka:file={seka},gain=0.5,1",
    ),
    ours=("repetition:probability=0.5+boost:factor=2,4",),
    turns=(4, 8),
    level=1 - 0.05 / 3,
)
EXPLORE_MANY = Stage(
    half=0,
    prompts=None,
    conversations=150,
    questions=5,
    seeds=(21,),
    published=(
        "split-softmax:exponent=0.7,0.5,0.3",
        "boost:factor=2,4,8",
        "repetition:probability=0.5,1",
        "seka:file={seka},gain=0.5,1",
        "prism:file={prism},gain=0.5",
        "pasta:alpha=0.3",
        "spotlight:target=0.1",
        "guidance:scale=1.25",
        "anchoring:strength=1.25",
    ),
    ours=(
        "hold:fraction=0.5,1",
        "repetition:probability=0.5+boost:factor=2",
        "boost:factor=8,32,heads={gain}",
        "boost:factor=8,heads={drop}",
        "split-softmax:exponent=0.3,heads={gain}",
    ),
    turns=(4,),
    supplementary=False,
)
CONFIRM_MANY = Stage(
    half=1,
    prompts=None,
    conversations=168,
    questions=6,
    seeds=(22, 23),
    published=(
        "split-softmax:exponent=0.5",
        "boost:factor=2,4",
        "seka:file={seka},gain=0.5,1",
        "prism:file={prism},gain=0.5",
    ),
    ours=("boost:factor=8,heads={drop}",),
    turns=(4, 8),
    level=1 - 0.05 / 3,
)
STAGES = {
    "explore": EXPLORE,
    "confirm": CONFIRM,
    "explore-many": EXPLORE_MANY,
    "confirm-many": CONFIRM_MANY,
}


def family_of(prompt: str) -> str:
    """The family of a prompt's id: the instruction, which the suite has in several wordings."""
    return re.sub(r"-\d+(-new)?$", "", prompt)


def prompts_of(stage: Stage) -> drift.Suite:
    """The part of the starter suite that a stage uses.

    It is a few prompts from one half of all, each from a different family; or else half of the
    families (of the second half, only wordings that were not used to choose heads).
    """
    suite = drift.load_suite("starter")
    if stage.prompts is None:
        names = sorted({family_of(case.id) for case in suite.cases})
        random.Random("equal cost families").shuffle(names)
        chosen = set(names[stage.half :: 2])
        cases = suite.cases[1::2] if stage.half else suite.cases
        return dataclasses.replace(
            suite, cases=tuple(case for case in cases if family_of(case.id) in chosen)
        )
    families: dict[str, list[drift.Case]] = {}
    for case in suite.cases[stage.half :: 2]:
        families.setdefault(family_of(case.id), []).append(case)
    rng = random.Random(f"equal cost {stage.half}")
    names = rng.sample(sorted(families), stage.prompts)
    return dataclasses.replace(suite, cases=tuple(rng.choice(families[name]) for name in names))


def questions(count: int, seed: int) -> Capability:
    """Knowledge questions, including sums that were never asked in training; a question may recur
    with different choices.
    """
    rng = random.Random(f"equal cost {seed}")
    items: dict[str, Item] = {}
    while len(items) < count:
        question, _, answer = ask(rng, True, test=True)
        choices = re.split(r", [B-D]\) ", question.split(" A) ")[1])
        replies = tuple(
            f"{choice} ({letter})" for letter, choice in zip("ABCD", choices, strict=True)
        )
        items.setdefault(question, Item(question, replies, choices.index(answer)))
    return Capability(f"{count} knowledge questions, seed {seed}", tuple(items.values()))


def chosen_heads() -> dict[str, str]:
    """The heads that benchmarks/chosen_heads.py chose on the first half of the prompts, as spec
    strings by criterion.
    """
    chosen = json.loads((RESULTS / "chosen_heads.json").read_text())["chosen"]
    return {
        name: "/".join(f"{layer}.{head}" for layer, head in sorted(heads))
        for name, heads in chosen.items()
    }


def fitted_files(model, folder: Path) -> dict[str, Path]:
    """Fits each method that needs it on the package's examples; returns the files by their names
    in a sweep.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {method.replace("-", "_"): folder / f"{method}.safetensors" for method in FITTED}
    for method, file in zip(FITTED, files.values(), strict=True):
        if not file.exists():
            fit(method, model, file)
    return files


def measure(model, stage: Stage, seed: int, runs: Path, sweeps: list[str]) -> list[Calibration]:
    """Runs a calibration for each question turn; the others use the dialogs of the first."""
    suite = prompts_of(stage)
    plan = CalibrationPlan(
        draws=1,
        seed=seed,
        conversations=None if stage.prompts else stage.conversations,
        sweeps=sweeps,
    )
    items = questions(stage.conversations * stage.questions, seed)
    dialogs = folder_of(runs, seed, stage.turns[0]) / "stability"
    calibrations = []
    for turn in stage.turns:
        folder = folder_of(runs, seed, turn)
        if turn != stage.turns[0] and dialogs.exists():
            shutil.rmtree(folder / "stability", ignore_errors=True)
            shutil.copytree(dialogs, folder / "stability")
        calibrate(model, suite, items, folder, dataclasses.replace(plan, ask_at=turn))
        calibrations.append(read_calibration(folder))
    return calibrations


def folder_of(runs: Path, seed: int, turn: int) -> Path:
    """The folder of the calibration whose questions are at a user turn."""
    return runs / f"seed-{seed}-turn-{turn}"


def resampled(values: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """Column means of [conversation, column] in every resample of whole groups of conversations,
    [resample, column].
    """
    names = list(dict.fromkeys(groups))
    member = np.array([[group == name for group in groups] for name in names], dtype=float)
    sums = resample_means(np.column_stack([member @ values, member.sum(1)]))
    return sums[:, :-1] / sums[:, -1:]


def over_groups(values: np.ndarray, groups: Sequence[Hashable]) -> dict:
    """The mean of the finite values, one per conversation, with its 95% interval over groups."""
    finite = np.flatnonzero(np.isfinite(values))
    values = values[finite]
    groups = [groups[index] for index in finite]
    low, high = np.quantile(resampled(values[:, None], groups), [0.025, 0.975])
    return {"mean": round(float(values.mean()), 4), "low": round(low, 4), "high": round(high, 4)}


def lead(
    calibration: Calibration,
    candidate: Candidate,
    rivals: list[list[Candidate]],
    level: float,
    groups: Sequence[Hashable],
) -> dict:
    """How much more stable a setting is than the best published fix at its cost.

    A fix's stability at a given cost is interpolated between its settings (or no fix); beyond its
    costliest setting, it is that setting's. The best fix is chosen separately in every resample of
    the groups, which errs in favour of the published fixes.
    """
    settings = [calibration.none, candidate]
    curves: list[list[int]] = []  # for each rival, the positions of no fix and of its settings
    for rival in rivals:
        curves.append([0, *range(len(settings), len(settings) + len(rival))])
        settings += rival

    def lead_in(means: np.ndarray) -> float:
        stability, cost = np.split(means, 2)
        rival_stability = []
        for curve in curves:
            by_cost = sorted(curve, key=lambda index: cost[index])
            rival_stability.append(np.interp(cost[1], cost[by_cost], stability[by_cost]))
        return float(stability[1] - max(rival_stability))

    values = calibration.gains_and_costs(settings)
    leads = np.array([lead_in(means) for means in resampled(values, groups)])
    tail = (1 - level) / 2
    low, high = np.quantile(leads, [tail, 1 - tail])
    mean = lead_in(np.nanmean(values, 0))
    return {"mean": round(mean, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def supplementary_readings(
    model, stage: Stage, seed: int, folder: Path, specs: list[str]
) -> dict[str, np.ndarray]:
    """Stability in the last round and points of recall lost, [setting, conversation], after the
    dialogs of the unmodified model.
    """
    run = read_run(folder / "stability")
    records = [record for record in run.records if record.method == "none"]
    fixes = [() if name == "none" else methods.parse(name) for name in specs]
    fixed = probe_scores(model, prompts_of(stage), records, fixes, (LATE,))
    recalled = recall(model, records, fixes, per_record=RECALL_QUESTIONS, seed=seed)
    return {"fixed_histories_gain": fixed, "recall_points_lost": -100 * recalled}


def groups_of(stage: Stage, folder: Path) -> list[Hashable]:
    """The group of each conversation that intervals resample: the conversation itself, or the
    family of its agent's prompt.
    """
    if stage.prompts:
        return list(range(stage.conversations))
    agents = {r.conversation: r.agent.id for r in read_run(folder / "stability").records}
    return [family_of(agents[number]) for number in range(stage.conversations)]


def gains_by(folder: Path, field: str) -> dict[str, dict[str, float]]:
    """Each setting's mean gain, by its spec and by a field of the agent's prompt."""
    records = read_run(folder / "stability").records
    scores = {
        (record.method, record.conversation): np.mean(
            [probe.score for probe in record.probes if probe.kind == "stability"]
        )
        for record in records
    }
    gains: dict[str, dict[str, list[float]]] = {}
    for record in records:
        unmodified = scores["none", record.conversation]
        gain = scores[record.method, record.conversation] - unmodified
        by_value = gains.setdefault(record.method, {})
        by_value.setdefault(getattr(record.agent, field), []).append(gain)
    return {
        method: {name: round(float(np.mean(values)), 4) for name, values in by_value.items()}
        for method, by_value in gains.items()
    }


def agents_by(folder: Path, field: str) -> dict[str, int]:
    """How many conversations of a setting have an agent with each value of a field."""
    records = read_run(folder / "stability").records
    return dict(Counter(getattr(r.agent, field) for r in records if r.method == "none"))


def rows_of(
    stage: Stage,
    calibrations: list[Calibration],
    readings: dict[str, np.ndarray],
    groups: Sequence[Hashable],
) -> list[dict]:
    """A row per setting: its gain and cost, and the lead of ours and of every published one over
    all other published ones.

    Args:
        calibrations: for each question turn; their first sweeps are the published ones.
        readings: the supplementary readings.
        groups: the group of each conversation.
    """
    num_published = len(stage.published)
    first = calibrations[0]
    rows = []
    for index, candidate in enumerate(first.candidates):
        row: dict = {
            "method": re.sub(r"file=[^,+]*", "file=FILE", candidate.method),
            "published": candidate.sweep is None or candidate.sweep < num_published,
            "stability": rounded(estimate(candidate.stability, SCORES)),
            "gain": over_groups(np.subtract(*first.compared(candidate)), groups),
        }
        for turn, calibration in zip(stage.turns, calibrations, strict=True):
            same = calibration.candidates[index]
            row[f"capability_turn_{turn}"] = rounded(estimate(same.capability, None))
            lost = calibration.none.capability - same.capability
            row[f"points_lost_turn_{turn}"] = over_groups(lost, groups)
            if candidate.sweep is not None:
                rivals = calibration.sweeps[:num_published]
                rivals = [rival for n, rival in enumerate(rivals) if n != candidate.sweep]
                row[f"lead_turn_{turn}"] = lead(calibration, same, rivals, stage.level, groups)
        for name, values in readings.items():
            if np.isfinite(values[index]).any():
                row[name] = over_groups(values[index] - values[0], groups)
        rows.append(row)
    return rows


def results_of_seed(model, stage: Stage, seed: int, runs: Path, sweeps: list[str]) -> dict:
    """Measures a stage on one seed; returns its part of the record."""
    calibrations = measure(model, stage, seed, runs, sweeps)
    specs = [candidate.method for candidate in calibrations[0].candidates]
    folder = folder_of(runs, seed, stage.turns[0])
    readings = {}
    if stage.supplementary:
        readings = supplementary_readings(model, stage, seed, folder, specs)
    rows = rows_of(stage, calibrations, readings, groups_of(stage, folder))
    field, name = ("id", "prompt") if stage.prompts else ("category", "category")
    gains = gains_by(folder, field)
    for row, spec in zip(rows, specs, strict=True):
        row[f"gain_by_{name}"] = gains[spec]
        print(json.dumps(row), flush=True)
    return {"seed": seed, "agents": agents_by(folder, field), "settings": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--runs", type=Path, default=Path("runs/equal-cost"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    stage = STAGES[arguments.stage]
    model = holdfast.load()
    values = {**fitted_files(model, arguments.runs / "fitted"), **chosen_heads()}
    sweeps = [sweep.format(**values) for sweep in (*stage.published, *stage.ours)]
    runs = arguments.runs / arguments.stage
    seeds = [results_of_seed(model, stage, seed, runs, sweeps) for seed in stage.seeds]
    cases = prompts_of(stage).cases
    record = {
        "benchmark": "equal_cost",
        "stage": arguments.stage,
        "measured_on": measured_on(model),
        "conversations": stage.conversations,
        "questions": stage.conversations * stage.questions,
        "turns": stage.turns,
        "prompts": [case.id for case in cases],
        "families": None if stage.prompts else len({family_of(case.id) for case in cases}),
        "level": stage.level,
        "seeds": seeds,
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
