"""Compares fixes at equal cost: does any keep the prompt better than all published ones at the same
capability?

There are two pairs of stages. The first of a pair is for choosing settings; the second uses those
that were written down before its numbers existed, on two seeds and on prompts that are not in the
first.

`explore` and `confirm` have few prompts, and every ordered pair of them talks, so their intervals
say what to expect of these prompts. `explore-many` and `confirm-many` draw a new pair of prompts
for every conversation, each from its own half of the suite's families of prompts, and resample
whole families: their intervals say what to expect of other families too.

Stability is the mean over eight rounds of free self-chats, under each fix. Capability is the share
of knowledge questions answered correctly in the same dialogs, as the fourth user turn and, when
confirming, as the eighth. There are two further readings: the last round's stability after the
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
from holdfast.analysis.calibration_results import Calibration, Candidate, read_calibration
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
RECALLED = 3  # questions per conversation about what the user said
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


@dataclasses.dataclass(frozen=True)
class Stage:
    """The settings of one stage.

    Args:
        half: which half of the suite's prompts, 0 or 1.
        prompts: how many of them, each from a different family; every ordered pair is one
            conversation. None: half of the families with all their prompts, and a new pair drawn
            for every conversation.
        conversations: per setting.
        questions: questions per conversation, at each question turn.
        seeds: of conversations, draws and questions; each gives a separate calibration.
        published, ours: sweeps; {seka} is the file with SEKA's fitted projections.
        turns: the user turns that are knowledge questions, each in a separate reading.
        beside: whether to take the supplementary readings too.
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
    beside: bool = True
    level: float = 0.95


EXPLORE = Stage(0, 9, 72, 9, (11,), PUBLISHED, OURS, turns=(4,))
CONFIRM = Stage(
    1,
    10,
    90,
    9,
    (12, 13),
    (
        "split-softmax:exponent=0.7,0.3",
        "boost:factor=2,4",
        "repetition:probability=0.5,1",
        "seka:file={seka},gain=0.5,1",
    ),
    ("repetition:probability=0.5+boost:factor=2,4",),
    turns=(4, 8),
    level=1 - 0.05 / 3,
)
EXPLORE_MANY = Stage(
    0,
    None,
    150,
    5,
    (21,),
    (
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
    (
        "hold:fraction=0.5,1",
        "repetition:probability=0.5+boost:factor=2",
        "boost:factor=8,32,heads={gain}",
        "boost:factor=8,heads={drop}",
        "split-softmax:exponent=0.3,heads={gain}",
    ),
    turns=(4,),
    beside=False,
)
CONFIRM_MANY = Stage(
    1,
    None,
    168,
    6,
    (22, 23),
    (
        "split-softmax:exponent=0.5",
        "boost:factor=2,4",
        "seka:file={seka},gain=0.5,1",
        "prism:file={prism},gain=0.5",
    ),
    ("boost:factor=8,heads={drop}",),
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
    """Half of the starter suite's families (of the second half, only wordings that were not used to
    choose heads); or a few prompts from one half of its prompts, each from a different family.
    """
    suite = drift.load_suite("starter")
    if stage.prompts is None:
        names = sorted({family_of(case.id) for case in suite.cases})
        random.Random("equal cost families").shuffle(names)
        ours = set(names[stage.half :: 2])
        cases = suite.cases[1::2] if stage.half else suite.cases
        kept = tuple(case for case in cases if family_of(case.id) in ours)
        return dataclasses.replace(suite, cases=kept)
    families: dict[str, list] = {}
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
    """Runs a calibration per turn; all of them use the same dialogs."""
    suite = prompts_of(stage)
    plan = CalibrationPlan(
        draws=1, seed=seed, conversations=None if stage.prompts else stage.conversations
    )
    read = []
    for turn in stage.turns:
        folder = runs / f"seed-{seed}-turn-{turn}"
        first = runs / f"seed-{seed}-turn-{stage.turns[0]}" / "stability"
        if turn != stage.turns[0] and first.exists():
            shutil.rmtree(folder / "stability", ignore_errors=True)
            shutil.copytree(first, folder / "stability")
        calibrate(
            model,
            suite,
            questions(stage.conversations * stage.questions, seed),
            folder,
            dataclasses.replace(plan, ask_at=turn, sweeps=sweeps),
        )
        read.append(read_calibration(folder))
    return read


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
    everyone = [calibration.none, candidate, *(other for rival in rivals for other in rival)]
    values = calibration.gains_and_costs(everyone)
    places = []
    start = 2
    for rival in rivals:
        places.append([0, *range(start, start + len(rival))])
        start += len(rival)

    def ahead(means: np.ndarray) -> float:
        stability, cost = np.split(means, 2)
        theirs = []
        for rival in places:
            curve = sorted(rival, key=lambda index: cost[index])
            theirs.append(np.interp(cost[1], cost[curve], stability[curve]))
        return float(stability[1] - max(theirs))

    again = np.array([ahead(means) for means in resampled(values, groups)])
    tail = (1 - level) / 2
    low, high = np.quantile(again, [tail, 1 - tail])
    means = ahead(np.nanmean(values, 0))
    return {"mean": round(means, 4), "low": round(float(low), 4), "high": round(float(high), 4)}


def readings(model, stage: Stage, seed: int, folder: Path, specs: list[str]) -> dict:
    """Stability in the last round and recall, [setting, conversation], after the dialogs of the
    unmodified model.
    """
    run = read_run(folder / "stability")
    records = [record for record in run.records if record.method == "none"]
    fixes = [() if name == "none" else methods.parse(name) for name in specs]
    fixed = probe_scores(model, prompts_of(stage), records, fixes, (LATE,))
    recalled = recall(model, records, fixes, per_record=RECALLED, seed=seed)
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
        method = record.method
        number = record.conversation
        agent = record.agent
        gain = scores[method, number] - scores["none", number]
        gains.setdefault(method, {}).setdefault(getattr(agent, field), []).append(gain)
    return {
        method: {name: round(float(np.mean(values)), 4) for name, values in by_kind.items()}
        for method, by_kind in gains.items()
    }


def agents_by(folder: Path, field: str) -> dict[str, int]:
    """How many conversations of a setting have an agent with each value of a field."""
    records = read_run(folder / "stability").records
    return dict(Counter(getattr(r.agent, field) for r in records if r.method == "none"))


def rows_of(
    stage: Stage,
    calibrations: list[Calibration],
    published: int,
    beside: dict[str, np.ndarray],
    groups: Sequence[Hashable],
) -> list[dict]:
    """A row per setting: its gain and cost, and the lead of ours and of every published one over
    all other published ones.
    """
    rows = []
    first = calibrations[0]
    for index, candidate in enumerate(first.candidates):
        row: dict = {
            "method": re.sub(r"file=[^,+]*", "file=FILE", candidate.method),
            "published": candidate.sweep is None or candidate.sweep < published,
            "stability": rounded(estimate(candidate.stability, SCORES)),
            "gain": over_groups(np.subtract(*first.compared(candidate)), groups),
        }
        for turn, calibration in zip(stage.turns, calibrations, strict=True):
            same = calibration.candidates[index]
            row[f"capability_turn_{turn}"] = rounded(estimate(same.capability, None))
            lost = calibration.none.capability - same.capability
            row[f"points_lost_turn_{turn}"] = over_groups(lost, groups)
            rivals = [
                sweep
                for number, sweep in enumerate(calibration.sweeps[:published])
                if number != candidate.sweep
            ]
            if candidate.sweep is not None:
                row[f"lead_turn_{turn}"] = lead(calibration, same, rivals, stage.level, groups)
        for name, values in beside.items():
            if np.isfinite(values[index]).any():
                row[name] = over_groups(values[index] - values[0], groups)
        rows.append(row)
    return rows


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
    files = fitted_files(model, arguments.runs / "fitted")
    named = {**files, **chosen_heads()}
    published = [sweep.format(**named) for sweep in stage.published]
    ours = [sweep.format(**named) for sweep in stage.ours]
    seeds = []
    for seed in stage.seeds:
        folder = arguments.runs / arguments.stage
        calibrations = measure(model, stage, seed, folder, [*published, *ours])
        specs = [candidate.method for candidate in calibrations[0].candidates]
        first = folder / f"seed-{seed}-turn-{stage.turns[0]}"
        beside = readings(model, stage, seed, first, specs) if stage.beside else {}
        rows = rows_of(stage, calibrations, len(published), beside, groups_of(stage, first))
        field = "id" if stage.prompts else "category"
        gains = gains_by(first, field)
        for row, name in zip(rows, specs, strict=True):
            row[f"gain_by_{'prompt' if stage.prompts else 'category'}"] = gains[name]
        seeds.append({"seed": seed, "agents": agents_by(first, field), "settings": rows})
        for row in rows:
            print(json.dumps(row), flush=True)
    families = {family_of(case.id) for case in prompts_of(stage).cases}
    record = {
        "benchmark": "equal_cost",
        "stage": arguments.stage,
        "measured_on": measured_on(model),
        "conversations": stage.conversations,
        "questions": stage.conversations * stage.questions,
        "turns": stage.turns,
        "prompts": [case.id for case in prompts_of(stage).cases],
        "families": None if stage.prompts else len(families),
        "level": stage.level,
        "seeds": seeds,
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
