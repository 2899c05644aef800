"""Drift, its cause and its fixes on a published chat model: SmolLM2-135M-Instruct.

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
import csv
import dataclasses
import gzip
import json
import random
import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from equal_cost import over_groups
from screen import family_of
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.analysis.broken_replies import broken_share
from holdfast.analysis.collapse import count_turns, without_collapsed
from holdfast.analysis.decay import trace_of
from holdfast.analysis.series import read_series
from holdfast.drift.user_scripts import read_user_turns
from holdfast.models.requests import Request
from holdfast.records.traces import read_traces
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import Capability, Item

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
SAMPLING = holdfast.Sampling(temperature=0.7, top_p=0.9, max_new_tokens=60)
ROUNDS, ASK_AT = 8, 4
DRIFT_SEEDS = (1, 2)
DRIFT_TALKS = 96
# Who plays the user in `drift`.
SIDES = ("scripted", "suite", "persona", "empty")
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
        talks: conversations per setting.
        facts: asked in each conversation.
    """

    seeds: tuple[int, ...]
    talks: int
    facts: int
    sweeps: tuple[str, ...]


STAGES = {
    "explore": Stage((31,), 48, 12, EXPLORED),
    "confirm": Stage((32, 33), 96, 14, CONFIRMED),
}
NAMES = "Rex Luna Max Bella Oscar Milo Ruby Leo Nina Hugo Clara Felix Iris Otto".split()
NAMED = ("cat", "dog", "horse", "parrot", "brother", "sister", "neighbour")


def prompts(half: str | None) -> drift.Suite:
    """The prompts that the model follows, from one half of the families or from all."""
    suite = drift.load_suite("everyday")
    rows = json.loads((RESULTS / "screen_smollm2.json").read_text())["prompts"]
    kept = {row["id"] for row in rows if row["passes"] and half in (None, row["half"])}

    def second_half(rule):
        return dataclasses.replace(rule, probes=rule.probes[len(rule.probes) // 2 :])

    cases = (
        dataclasses.replace(case, rules=tuple(map(second_half, case.rules)))
        for case in suite.cases
        if case.id in kept
    )
    return dataclasses.replace(suite, cases=tuple(cases))


def facts(file: Path, count: int, seed: int) -> Capability:
    """Facts, each with three other objects of its relation. They are not selected by whether the
    model knows them, since then any change of the model would count as a loss.
    """
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["label"] == "1"]
    objects = defaultdict(set)
    for row in rows:
        objects[row["relation"]].add(row["true_target"])
    rng = random.Random(f"facts {seed}")
    rng.shuffle(rows)
    items = []
    for row in rows:
        others = sorted(objects[row["relation"]] - {row["true_target"]})
        if len(others) < 3:
            continue
        choices = [*rng.sample(others, 3), row["true_target"]]
        rng.shuffle(choices)
        begun = row["relation"].format(row["subject"])
        replies = tuple(f"{begun} {choice}." for choice in choices)
        question = f"Complete the sentence: {begun} ..."
        items.append(Item(question, replies, choices.index(row["true_target"])))
        if len(items) == count:
            return Capability(f"{count} facts, seed {seed}", tuple(items), lettered=False)
    raise SystemExit(f"{file} has {len(items)} facts with four choices, and {count} are asked.")


def known(model, items: Sequence[Item]) -> list[bool]:
    """Whether the model completes each fact correctly without any dialog."""
    requests = [Request(({"role": "user", "content": item.question},)) for item in items]
    scored = model.session().score_batch(requests, [item.replies for item in items])
    return [
        int(np.argmax(scores.log_probabilities)) == item.answer
        for item, scores in zip(items, scored, strict=True)
    ]


def recall(model, records, names: Sequence[str], seed: int, file: Path) -> np.ndarray:
    """The share [method, conversation] of correct answers to questions about what the user said,
    after the unmodified model's dialogs. Finished methods are kept in the file.
    """
    finished = json.loads(file.read_text()) if file.exists() else {}
    for method in names:
        if method in finished:
            continue
        fix = () if method == "none" else tuple(holdfast.methods.parse(method))
        asked = recall_questions(records, fix, seed)
        right = answered_rightly(model.session(), asked)
        finished[method] = np.reshape(right, (len(records), len(NAMED))).mean(1).tolist()
        file.write_text(json.dumps(finished))
    return np.array([finished[method] for method in names])


@dataclasses.dataclass(frozen=True)
class RecallQuestion:
    """A question about what the user said: the replies to choose from, and which one is right."""

    request: Request
    replies: list[str]
    answer: int


def recall_questions(records, fix: tuple, seed: int) -> list[RecallQuestion]:
    """The same questions for every fix: the user names pets and family before one of the turns, and
    asks for each name; the other three choices were never mentioned.
    """
    rng = random.Random(f"recall {seed}")
    asked = []
    for number, record in enumerate(records):
        turns = [
            {"role": "user" if t.speaker == "user" else "assistant", "content": t.text}
            for t in record.turns[: 2 * (ASK_AT - 1)]
        ]
        introduced = rng.sample(NAMES, len(NAMED))
        named = dict(zip(NAMED, introduced, strict=True))
        sentences = " ".join(f"My {who} is called {name}." for who, name in named.items())
        start = 2 * rng.randrange(ASK_AT)
        remark = [
            {"role": "user", "content": sentences},
            {"role": "assistant", "content": "Those are nice names."},
        ]
        system = {"role": "system", "content": record.agent.system_prompt}
        for index, (who, name) in enumerate(named.items()):
            question = {"role": "user", "content": f"What is the name of my {who}?"}
            chat = (system, *turns[:start], *remark, *turns[start:], question)
            choices = rng.sample([other for other in NAMES if other not in introduced], 3)
            choices.insert(rng.randrange(4), name)
            # the first question's chat is kept; the others fork it
            request = Request(chat, fix, thread=number, keep=index == 0)
            replies = [f"Your {who} is called {choice}." for choice in choices]
            asked.append(RecallQuestion(request, replies, choices.index(name)))
    return asked


def answered_rightly(session, asked: Sequence[RecallQuestion], batch: int = 96) -> list[bool]:
    """Whether the likeliest reply to each question is the right one; chats that others fork are
    scored first.
    """
    right = [False] * len(asked)
    for kept in (True, False):
        indices = [index for index, each in enumerate(asked) if each.request.keep == kept]
        for first in range(0, len(indices), batch):
            chosen = indices[first : first + batch]
            scored = session.score_batch(
                [asked[index].request for index in chosen],
                [asked[index].replies for index in chosen],
            )
            for index, scores in zip(chosen, scored, strict=True):
                right[index] = int(np.argmax(scores.log_probabilities)) == asked[index].answer
    return right


def text() -> Capability:
    """Ordinary English text: the user messages of the package's dialogs."""
    rows = (ROOT / "src/holdfast/assets/user_turns/everyday.jsonl").read_text().splitlines()
    passages = [" ".join(json.loads(row)) for row in rows]
    instruction = "Please write the next part of the text."
    items = tuple(Item(instruction, (passage,), None) for passage in passages)
    return Capability("the user's side of everyday dialogs", items, lettered=False)


def estimates(values: np.ndarray, groups: list[str]) -> list[dict | None]:
    """Each column's mean over its finite values, with an interval over groups."""
    return [
        over_groups(column, groups) if np.isfinite(column).any() else None for column in values.T
    ]


def drift_row(series, groups_by: dict[int, str]) -> dict:
    """Stability, adoption and mass by round, and their change from the first to the last."""
    groups = [groups_by[record.conversation] for record in series.records]
    row: dict = {"conversations": len(series.records)}
    for name in ("stability", "adoption"):
        values = series.values(name)
        if np.isfinite(values).any():
            row[name] = estimates(values, groups)
            row[f"{name}_change"] = over_groups(values[:, -1] - values[:, 0], groups)
    row["mass"] = estimates(series.mass, groups) if np.isfinite(series.mass).any() else None
    return row


def drift_of(model, runs: Path, seed: int, side: str) -> dict:
    """Runs one part of `drift`; returns it for the record."""
    suite = prompts(None)
    folder = runs / f"drift-{side}-{seed}"
    if side == "persona":
        suite = dataclasses.replace(suite, personas=drift.load_suite("bot").personas)
    settings = drift.Settings(
        rounds=ROUNDS,
        conversations=DRIFT_TALKS,
        seed=seed,
        sampling=SAMPLING,
        user_prompt="auto" if side == "scripted" else side,
        adoption=side == "suite",
        pairs="in-turn",
    )
    cast = drift.Cast(user_turns="everyday" if side == "scripted" else None)
    traces = side in ("scripted", "suite") and seed == DRIFT_SEEDS[0]
    run = drift.run(model, suite, folder, settings, cast=cast, running=drift.Running(traces=traces))
    series = read_series(run)[0]
    families = {r.conversation: family_of(r.agent.id) for r in series.records}
    collapse = count_turns(series.records)
    row = {"seed": seed, "user": side, **drift_row(series, families)}
    agents = [record.agent.category for record in series.records]
    row["categories"] = {}
    for category in sorted(set(agents)):
        rows = series.rows(np.array([agent == category for agent in agents]))
        row_families = [families[record.conversation] for record in rows.records]
        row["categories"][category] = {
            "conversations": len(rows.records),
            "stability": estimates(rows.stability, row_families),
            "change": over_groups(rows.stability[:, -1] - rows.stability[:, 0], row_families),
        }
    kept = without_collapsed(series, collapse)
    row["collapsed"] = DRIFT_TALKS - len(kept.records)
    row["without_collapsed"] = drift_row(kept, families) if kept.records else None
    turns = [t for r in series.records for t in r.turns if t.speaker == "agent"]
    row["cut"] = round(float(np.mean([t.stop_reason == "length" for t in turns])), 3)
    if traces:
        dialogs = [read_traces(folder, "none", int(n)) for n in series.conversations]
        row["decay"] = trace_of("smollm2", series.records, dialogs).to_json()
    return row


def setting_rows(model, name: str, seed: int, runs: Path, file: Path) -> list[dict]:
    """A row per setting of `explore` or `confirm`, each paired with no fix."""
    stage = STAGES[name]
    suite = prompts(name)
    folder = runs / f"{name}-{seed}"
    plan = CalibrationPlan(
        seed=seed,
        rounds=ROUNDS,
        ask_at=ASK_AT,
        conversations=stage.talks,
        sampling=SAMPLING,
        sweeps=stage.sweeps,
        user_turns=read_user_turns("everyday"),
    )
    asked = facts(file, stage.talks * stage.facts, seed)
    stability, capability = calibrate(model, suite, asked, folder, plan)
    settings = list(dict.fromkeys(record.method for record in stability.records))
    plain = sorted(
        (r for r in stability.records if r.method == "none"), key=lambda r: r.conversation
    )
    families = [family_of(record.agent.id) for record in plain]
    right = by_conversation(capability.records, stage.talks)
    is_known = known(model, asked.items)
    right_known = by_conversation(capability.records, stage.talks, is_known)
    confirmed: list[dict] = [{} for _ in settings]
    if name == "confirm":
        beside = runs / f"{name}-{seed}-text"
        if not (beside / "stability").exists():
            shutil.copytree(folder / "stability", beside / "stability")
        _, read = calibrate(model, suite, text(), beside, plan)
        nats = by_conversation(read.records, stage.talks)
        recalled = recall(model, plain, settings, seed, runs / f"{name}-{seed}-recall.json")
        confirmed = [
            {
                "recall": over_groups(shares, families),
                "recall_points_lost": over_groups(100 * (recalled[0] - shares), families),
                "log_probability_of_text": over_groups(nats[setting], families),
            }
            for setting, shares in zip(settings, recalled, strict=True)
        ]
    rows = []
    for setting, extra in zip(settings, confirmed, strict=True):
        costs = {
            "facts": over_groups(right[setting], families),
            "points_lost": over_groups(100 * (right["none"] - right[setting]), families),
            "known_facts": over_groups(right_known[setting], families),
            "known_points_lost": over_groups(
                100 * (right_known["none"] - right_known[setting]), families
            ),
        }
        gains = gains_of(setting, stability.records, plain, families)
        rows.append({"method": setting, **gains, **costs, **extra})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def gains_of(setting: str, records, plain: Sequence, families: list[str]) -> dict:
    """Stability under a setting, its gain over no fix, and the share of broken replies; intervals
    are over families of prompts.

    Args:
        records: of all settings.
        plain: those of no fix, by conversation.
        families: of their prompts.
    """
    talks = len(plain)
    rounds, plain_rounds = (by_round(records, method, talks) for method in (setting, "none"))
    score = np.nanmean(rounds, 1)
    gain = score - np.nanmean(plain_rounds, 1)
    broken = np.full(talks, np.nan)
    for record in records:
        if record.method == setting:
            broken[record.conversation] = broken_share(record)
    by_category = defaultdict(list)
    for record, value in zip(plain, gain, strict=True):
        by_category[record.agent.category].append(float(value))
    return {
        "stability": over_groups(score, families),
        "by_round": [round(float(v), 3) for v in np.nanmean(rounds, 0)],
        "gain": over_groups(gain, families),
        "gain_last_round": over_groups(rounds[:, -1] - plain_rounds[:, -1], families),
        "gain_by_category": {
            category: {"mean": round(float(np.mean(values)), 3), "conversations": len(values)}
            for category, values in sorted(by_category.items())
        },
        "broken": over_groups(broken, families),
    }


def by_conversation(records, count: int, chosen: list[bool] | None = None) -> dict:
    """Per method, the mean score [conversation] of the items asked in each conversation, or only of
    the chosen ones.
    """
    values = defaultdict(lambda: np.full(count, np.nan))
    for record in records:
        scores = [probe.score for probe in record.probes if not chosen or chosen[probe.probe]]
        if scores:
            values[record.method][record.conversation] = np.mean(scores)
    return values


def by_round(records, method: str, count: int) -> np.ndarray:
    """Stability, [conversation, round]."""
    values = np.full((count, ROUNDS), np.nan)
    for record in records:
        if record.method == method:
            for number in range(1, ROUNDS + 1):
                scores = [
                    p.score for p in record.probes if p.kind == "stability" and p.round == number
                ]
                if scores:
                    values[record.conversation, number - 1] = np.mean(scores)
    return values


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
        chosen = [arguments.side] if arguments.side else SIDES
        record["runs"] = [
            drift_of(model, arguments.runs, seed, side) for side in chosen for seed in DRIFT_SEEDS
        ]
        record["prompts"] = [case.id for case in prompts(None).cases]
    else:
        stage = STAGES[arguments.stage]
        record |= {"conversations": stage.talks, "facts": stage.talks * stage.facts}
        record["prompts"] = [case.id for case in prompts(arguments.stage).cases]
        record["families"] = len({family_of(name) for name in record["prompts"]})
        record["seeds"] = [
            {
                "seed": seed,
                "settings": setting_rows(
                    model, arguments.stage, seed, arguments.runs, arguments.facts
                ),
            }
            for seed in stage.seeds
            if arguments.seed in (None, seed)
        ]
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
