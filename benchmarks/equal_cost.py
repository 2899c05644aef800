"""Compares fixes at equal cost: does any keep the prompt better than all published ones, at the
same loss of capability?

Stability is the mean over eight rounds of free self-chats, under each fix. Capability is the share
of knowledge questions answered correctly in the same dialogs, as the fourth user turn and, when
confirming, as the eighth. The lead of a setting is its stability minus that of the best published
fix at the same capability: if a published fix gains 0.10 for 2 points of capability and 0.20 for 6,
it is taken to gain 0.15 for 4, and a setting that gains 0.18 for 4 points leads it by 0.03.

Stages come in pairs: the first is for choosing settings; the second measures those that were
written down before its numbers existed, on two seeds and on prompts that are not in the first.

- `explore` and `confirm` have few prompts, and every ordered pair of them talks, so their intervals
  say what to expect of these prompts.
- `explore-many` and `confirm-many` draw a new pair of prompts for every conversation, each stage
  from its own half of the suite's families of prompts, and resample whole families: their intervals
  say what to expect of other families too.

Supplementary readings are the last round's stability after the unmodified model's dialogs, and
whether the model still knows there what the user said (recall.py).

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
from chosen_heads import LATE, heads_spec, probe_scores
from default_model import rounded
from group_intervals import interval_over_groups, resample_groups
from recall import recall
from stamp import measured_on, write_json

import holdfast
from holdfast import drift, methods
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.series import NO_FIX
from holdfast.analysis.statistics import SCORES, estimate
from holdfast.models.local import LocalModel
from holdfast.records import Conversation, read_run
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import Capability
from holdfast.study.capability_items import Item
from holdfast.study.fitting.fit import fit

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
from knowledge import ask

RESULTS = Path(__file__).parent / "results"
RECALL_QUESTIONS = 3  # per conversation, about what the user said
FITTED_METHODS = ("seka", "prism", "capping", "vector")
# Sweeps of all fixes, for `explore`; {seka} stands for the file with SEKA's fitted projections.
PUBLISHED_SWEEPS = (
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
NEW_SWEEPS = (
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
        published: sweeps of published fixes; {seka} is the file with SEKA's projections, {gain} and
            {drop} are heads that chosen_heads.py chose.
        new: sweeps of other fixes.
        question_turns: the user turns that are knowledge questions, each in a separate calibration.
        supplementary: whether to take the supplementary readings too.
        level: of the interval of a lead: 1 minus 5% / number of leads to confirm.
    """

    half: int
    prompts: int | None
    conversations: int
    questions: int
    seeds: tuple[int, ...]
    published: tuple[str, ...]
    new: tuple[str, ...]
    question_turns: tuple[int, ...]
    supplementary: bool = True
    level: float = 0.95


EXPLORE = Stage(
    half=0,
    prompts=9,
    conversations=72,
    questions=9,
    seeds=(11,),
    published=PUBLISHED_SWEEPS,
    new=NEW_SWEEPS,
    question_turns=(4,),
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
    new=("repetition:probability=0.5+boost:factor=2,4",),
    question_turns=(4, 8),
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
    new=(
        "hold:fraction=0.5,1",
        "repetition:probability=0.5+boost:factor=2",
        "boost:factor=8,32,heads={gain}",
        "boost:factor=8,heads={drop}",
        "split-softmax:exponent=0.3,heads={gain}",
    ),
    question_turns=(4,),
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
    new=("boost:factor=8,heads={drop}",),
    question_turns=(4, 8),
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
    return re.sub(r"-\d+(-new)?$", "", prompt)  # of greet-3 and greet-3-new: greet


def prompts_of(stage: Stage) -> drift.Suite:
    """The part of the starter suite that a stage uses."""
    suite = drift.load_suite("starter")
    if stage.prompts is None:
        return dataclasses.replace(suite, cases=prompts_of_half_the_families(suite, stage.half))
    return dataclasses.replace(suite, cases=one_prompt_per_family(suite, stage.half, stage.prompts))


def prompts_of_half_the_families(suite: drift.Suite, half: int) -> tuple[drift.Case, ...]:
    """All prompts of half of the families; of the second half, only the wordings that were not used
    to choose heads.
    """
    names = sorted({family_of(case.id) for case in suite.cases})
    random.Random("equal cost families").shuffle(names)
    families = set(names[half::2])
    cases = suite.cases[1::2] if half else suite.cases
    return tuple(case for case in cases if family_of(case.id) in families)


def one_prompt_per_family(suite: drift.Suite, half: int, count: int) -> tuple[drift.Case, ...]:
    """Prompts from one half of all, each from a different family."""
    families: dict[str, list[drift.Case]] = {}
    for case in suite.cases[half::2]:
        families.setdefault(family_of(case.id), []).append(case)
    rng = random.Random(f"equal cost {half}")
    names = rng.sample(sorted(families), count)
    return tuple(rng.choice(families[name]) for name in names)


def knowledge_questions(count: int, seed: int) -> Capability:
    """Knowledge questions, including sums that were never asked in training; a question may recur
    with different choices.
    """
    rng = random.Random(f"equal cost {seed}")
    items: dict[str, Item] = {}
    while len(items) < count:
        question = ask(rng, with_choices=True, test=True)
        choices = zip("ABCD", question.choices, strict=True)
        replies = tuple(f"{choice} ({letter})" for letter, choice in choices)
        right = question.choices.index(question.answer)
        items.setdefault(question.text, Item(question.text, replies, right))
    return Capability(f"{count} knowledge questions, seed {seed}", tuple(items.values()))


def chosen_heads() -> dict[str, str]:
    """The heads that benchmarks/chosen_heads.py chose on the first half of the prompts, as spec
    strings by criterion.
    """
    chosen = json.loads((RESULTS / "chosen_heads.json").read_text())["chosen"]
    return {name: heads_spec(heads) for name, heads in chosen.items()}


def fitted_files(model: LocalModel, folder: Path) -> dict[str, Path]:
    """Fits each method that needs it on the package's examples; returns the files by their names
    in a sweep.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {method: folder / f"{method}.safetensors" for method in FITTED_METHODS}
    for method, file in files.items():
        if not file.exists():
            fit(method, model, file)
    return files


def calibrate_at_each_turn(
    model: LocalModel, stage: Stage, seed: int, runs: Path, sweeps: Sequence[str]
) -> list[Calibration]:
    """Runs a calibration for each question turn; the others use the dialogs of the first."""
    suite = prompts_of(stage)
    plan = CalibrationPlan(
        draws=1,
        seed=seed,
        conversations=None if stage.prompts else stage.conversations,
        sweeps=sweeps,
    )
    questions = knowledge_questions(stage.conversations * stage.questions, seed)
    first_turn = stage.question_turns[0]
    dialogs = calibration_folder(runs, seed, first_turn) / "stability"
    calibrations = []
    for turn in stage.question_turns:
        folder = calibration_folder(runs, seed, turn)
        if turn != first_turn and dialogs.exists():
            shutil.rmtree(folder / "stability", ignore_errors=True)
            shutil.copytree(dialogs, folder / "stability")
        calibrate(model, suite, questions, folder, dataclasses.replace(plan, ask_at=turn))
        calibrations.append(read_calibration(folder))
    return calibrations


def calibration_folder(runs: Path, seed: int, turn: int) -> Path:
    """The folder of the calibration whose questions are at a user turn."""
    return runs / f"seed-{seed}-turn-{turn}"


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

    Args:
        rivals: the settings of each published fix.
        level: of the interval.
        groups: the group of each conversation.
    """
    settings = [calibration.none, candidate]
    curves: list[list[int]] = []  # for each rival, the indices of no fix and of its settings
    for rival in rivals:
        curves.append([0, *range(len(settings), len(settings) + len(rival))])
        settings += rival
    values = calibration.gains_and_costs(settings)
    leads = np.array([lead_of_means(means, curves) for means in resample_groups(values, groups)])
    tail = (1 - level) / 2
    low, high = np.quantile(leads, [tail, 1 - tail])
    mean = lead_of_means(np.nanmean(values, 0), curves)
    return {"mean": round(mean, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def lead_of_means(gains_and_costs: np.ndarray, curves: Sequence[Sequence[int]]) -> float:
    """The lead of setting 1.

    Args:
        gains_and_costs: the mean gains of all settings, followed by their mean costs.
        curves: for each rival, the indices of its settings.
    """
    gain, cost = np.split(gains_and_costs, 2)
    rival_gains = []
    for curve in curves:
        by_cost = sorted(curve, key=lambda index: cost[index])
        rival_gains.append(np.interp(cost[1], cost[by_cost], gain[by_cost]))
    return float(gain[1] - max(rival_gains))


def supplementary_readings(
    model: LocalModel, stage: Stage, seed: int, folder: Path, specs: Sequence[str]
) -> dict[str, np.ndarray]:
    """Stability in the last round and points of recall lost, [setting, conversation], after the
    dialogs of the unmodified model.
    """
    dialogs = [record for record in read_run(folder / "stability").records if is_unfixed(record)]
    fixes = [() if name == NO_FIX else methods.parse(name) for name in specs]
    fixed = probe_scores(model, prompts_of(stage), dialogs, fixes, (LATE,))
    recalled = recall(model, dialogs, fixes, per_record=RECALL_QUESTIONS, seed=seed)
    return {"fixed_histories_gain": fixed, "recall_points_lost": -100 * recalled}


def is_unfixed(record: Conversation) -> bool:
    """Whether a conversation is the unmodified model's."""
    return record.method == NO_FIX


def groups_of(stage: Stage, folder: Path) -> list[Hashable]:
    """The group of each conversation that intervals resample: the conversation itself, or the
    family of its agent's prompt.
    """
    if stage.prompts:
        return list(range(stage.conversations))
    records = read_run(folder / "stability").records
    prompts = {record.conversation: record.agent.id for record in records}
    return [family_of(prompts[number]) for number in range(stage.conversations)]


def mean_gains(records: Sequence[Conversation], field: str) -> dict[str, dict[str, float]]:
    """The mean gain by setting and by a field of the agent's prompt, such as its category."""
    scores = {
        (record.method, record.conversation): np.mean(
            [probe.score for probe in record.probes if probe.kind == "stability"]
        )
        for record in records
    }
    gains: dict[str, dict[str, list[float]]] = {}
    for record in records:
        unmodified = scores[NO_FIX, record.conversation]
        gain = scores[record.method, record.conversation] - unmodified
        by_value = gains.setdefault(record.method, {})
        by_value.setdefault(getattr(record.agent, field), []).append(gain)
    return {
        method: {value: round(float(np.mean(of_value)), 4) for value, of_value in by_value.items()}
        for method, by_value in gains.items()
    }


def setting_rows(
    stage: Stage,
    calibrations: Sequence[Calibration],
    readings: dict[str, np.ndarray],
    groups: Sequence[Hashable],
) -> list[dict]:
    """A row per setting: its gain and its cost, its lead over all published fixes but itself, and
    its supplementary readings.

    Args:
        calibrations: for each question turn; their first sweeps are the published ones.
        readings: the supplementary readings, [setting, conversation].
        groups: the group of each conversation.
    """
    num_published = len(stage.published)
    rows = []
    for index, candidate in enumerate(calibrations[0].candidates):
        row: dict = {
            "method": re.sub(r"file=[^,+]*", "file=FILE", candidate.method),
            "published": candidate.sweep is None or candidate.sweep < num_published,
            "stability": rounded(estimate(candidate.stability, SCORES)),
            "gain": interval_over_groups(np.subtract(*calibrations[0].compared(candidate)), groups),
        }
        for turn, calibration in zip(stage.question_turns, calibrations, strict=True):
            row |= cost_and_lead(stage, calibration, index, turn, groups)
        for name, values in readings.items():
            if np.isfinite(values[index]).any():
                row[name] = interval_over_groups(values[index] - values[0], groups)
        rows.append(row)
    return rows


def cost_and_lead(
    stage: Stage, calibration: Calibration, index: int, turn: int, groups: Sequence[Hashable]
) -> dict:
    """The capability at a question turn of the setting with this number, and its lead there."""
    candidate = calibration.candidates[index]
    points_lost = calibration.none.capability - candidate.capability
    fields = {
        f"capability_turn_{turn}": rounded(estimate(candidate.capability, None)),
        f"points_lost_turn_{turn}": interval_over_groups(points_lost, groups),
    }
    if candidate.sweep is not None:
        published = enumerate(calibration.sweeps[: len(stage.published)])
        rivals = [sweep for number, sweep in published if number != candidate.sweep]
        fields[f"lead_turn_{turn}"] = lead(calibration, candidate, rivals, stage.level, groups)
    return fields


def results_of_seed(
    model: LocalModel, stage: Stage, seed: int, runs: Path, sweeps: Sequence[str]
) -> dict:
    """Measures a stage on one seed; returns its part of the record."""
    calibrations = calibrate_at_each_turn(model, stage, seed, runs, sweeps)
    specs = [candidate.method for candidate in calibrations[0].candidates]
    folder = calibration_folder(runs, seed, stage.question_turns[0])
    readings = {}
    if stage.supplementary:
        readings = supplementary_readings(model, stage, seed, folder, specs)
    rows = setting_rows(stage, calibrations, readings, groups_of(stage, folder))
    records = read_run(folder / "stability").records
    field, name = ("id", "prompt") if stage.prompts else ("category", "category")
    gains = mean_gains(records, field)
    for row, spec in zip(rows, specs, strict=True):
        row[f"gain_by_{name}"] = gains[spec]
        print(json.dumps(row), flush=True)
    agents = Counter(getattr(record.agent, field) for record in records if is_unfixed(record))
    return {"seed": seed, "agents": dict(agents), "settings": rows}


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
    sweeps = [sweep.format(**values) for sweep in (*stage.published, *stage.new)]
    runs = arguments.runs / arguments.stage
    seeds = [results_of_seed(model, stage, seed, runs, sweeps) for seed in stage.seeds]
    cases = prompts_of(stage).cases
    record = {
        "benchmark": "equal_cost",
        "stage": arguments.stage,
        "measured_on": measured_on(model),
        "conversations": stage.conversations,
        "questions": stage.conversations * stage.questions,
        "turns": stage.question_turns,
        "prompts": [case.id for case in cases],
        "families": None if stage.prompts else len({family_of(case.id) for case in cases}),
        "level": stage.level,
        "seeds": seeds,
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
