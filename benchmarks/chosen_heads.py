"""Must stability cost capability? Compares split-softmax on a few chosen heads with every other fix
at equal capability, on the default model.

Heads are chosen on one half of the suite's prompts, with seeds different from the scoring ones, by
two criteria: the drop of their mass over self-chats, and the change of the probe's score when
split-softmax moves only that head, after fixed histories. The control is an equal number of random
heads. The prompts of the other half score the fixes twice: after fixed histories (those of the
unmodified model) and in free self-chats, where each fix writes its own. A fix's cost is measured in
those self-chats, with knowledge questions as the fourth user turn.

    python benchmarks/chosen_heads.py --runs runs/chosen-heads --out
    benchmarks/results/chosen_heads.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path

import numpy as np
import torch
from default_model import rounded
from stamp import measured_on, write_json

import holdfast
from holdfast import drift, methods
from holdfast.analysis.calibration_results import read_calibration
from holdfast.analysis.choosing import ahead_at_cost, front, pick
from holdfast.analysis.decay import trace_of
from holdfast.analysis.statistics import SCORES, estimate, paired_difference
from holdfast.models.requests import Request
from holdfast.records import Conversation, read_run
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_sentences import answer
from holdfast.seeds import seed_of
from holdfast.study.attention_decay import run_traced, traced_settings
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan, choose_prompts
from holdfast.study.capability import load_capability

EXPONENT, ROUNDS = 0.3, (5, 8)  # for choosing heads; the rounds of its probes
LATE = 8  # the round whose probes score fixes after fixed histories
BUDGET = 5.0  # points of capability that may be lost, in the figure of stability by round


def halves(suite: drift.Suite) -> tuple[drift.Suite, drift.Suite]:
    """The suite's even and odd cases."""
    return tuple(dataclasses.replace(suite, cases=suite.cases[start::2]) for start in (0, 1))


def history(record: Conversation, before: int) -> list[dict]:
    """The messages that the agent has seen before a round."""
    roles = {"user": "user", "agent": "assistant"}
    turns = [turn for turn in record.turns if turn.round < before]
    return [
        {"role": "system", "content": record.agent.system_prompt},
        *({"role": roles[turn.speaker], "content": turn.text} for turn in turns),
    ]


def probe_scores(
    model,
    suite: drift.Suite,
    records: list[Conversation],
    fixes: list[tuple],
    rounds: tuple[int, ...],
) -> np.ndarray:
    """Scores [fix, conversation], means over rounds, of the probes asked after the histories in
    `records`.
    """
    measures = {case.id: case.rules[0].measure for case in suite.cases}
    probes = [
        (record, probe)
        for record in records
        for probe in record.probes
        if probe.kind == "stability" and probe.round in rounds
    ]
    scores = np.full((len(fixes), len(records)), np.nan)
    for index, fix in enumerate(fixes):
        replies = model.generate_batch(
            [
                Request(
                    (
                        *history(record, probe.round),
                        {"role": "user", "content": probe.question},
                    ),
                    fix,
                    seed=seed_of("fixed", record.conversation, probe.round),
                )
                for record, probe in probes
            ]
        )
        per: dict[int, list[float]] = {}
        for (record, _), reply in zip(probes, replies, strict=True):
            per.setdefault(record.conversation, []).append(
                measures[record.agent.id].score(reply.text).value
            )
        scores[index] = [
            np.mean(per[record.conversation]) if record.conversation in per else np.nan
            for record in records
        ]
    return scores


def choose(model, suite: drift.Suite, out: Path, conversations: int, seed: int, count: int) -> dict:
    """Chooses the top heads of each criterion."""
    records, dialogs = run_traced(model, suite, out, traced_settings(conversations, 8, seed))
    drop = np.array(trace_of(model.name, records, dialogs).heads.drop)
    heads = [(layer, head) for layer in range(drop.shape[0]) for head in range(drop.shape[1])]
    fixes = [(), *((holdfast.SplitSoftmax(EXPONENT, frozenset({head})),) for head in heads)]
    scores = probe_scores(model, suite, records, fixes, ROUNDS)
    gain = np.nanmean(scores[1:] - scores[0], 1)
    ranked = {
        "drop": sorted(heads, key=lambda head: -drop[head]),
        "gain": [heads[index] for index in np.argsort(-gain, kind="stable")],
    }
    ranked["random"] = [
        heads[index] for index in np.random.default_rng(seed).permutation(len(heads))
    ]
    return {
        "drop": drop.tolist(),
        "gain": gain.reshape(drop.shape).round(4).tolist(),
        "chosen": {name: ranked[name][:count] for name in ranked},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/chosen-heads"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/chosen_heads.json"))
    parser.add_argument("--conversations", type=int, default=60, help="that choose heads")
    parser.add_argument("--draws", type=int, default=10, help="of each of the 20 pairs that score")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    model = holdfast.load()
    choosing, scoring = halves(drift.load_suite("starter"))
    choice = choose(
        model, choosing, arguments.runs / "choose", arguments.conversations, 100, arguments.heads
    )
    head_specs = {
        name: "/".join(f"{layer}.{head}" for layer, head in sorted(heads))
        for name, heads in choice["chosen"].items()
    }
    print(
        {name: (heads, f"of {np.size(choice['drop'])}") for name, heads in head_specs.items()},
        flush=True,
    )
    sweeps = {
        "all heads": "split-softmax:exponent=0.7,0.5,0.3",
        **{
            f"heads by {name}": f"split-softmax:exponent=0.5,0.2,0.1,heads={heads}"
            for name, heads in head_specs.items()
        },
        "repetition": "repetition:probability=0.5,1",
        "guidance": "guidance:scale=1.5,2",
        "spotlight": "spotlight:target=0.1,0.2",
        "boost": "boost:factor=2,4,8",
    }
    prompts = choose_prompts(scoring)
    calibrate(
        model,
        prompts,
        load_capability("knowledge", arguments.questions, 101),
        arguments.runs / "free",
        CalibrationPlan(draws=arguments.draws, seed=101, sweeps=list(sweeps.values())),
    )
    free = read_calibration(arguments.runs / "free")
    plain = [
        record
        for record in read_run(arguments.runs / "free" / "stability").records
        if record.method == "none"
    ]
    fixes = [methods.parse(candidate.method) for candidate in free.candidates]
    fixed = probe_scores(
        model, prompts, sorted(plain, key=lambda record: record.conversation), fixes, (LATE,)
    )
    all_heads = free.sweeps[0]
    rows = []
    for index, (candidate, on_front) in enumerate(zip(free.candidates, front(free), strict=True)):
        row = {
            "method": candidate.method,
            "front": on_front,
            "free": rounded(estimate(candidate.stability, SCORES)),
            "free_gain": rounded(free.gain(candidate)),
            "capability": rounded(estimate(candidate.capability, None)),
            "points_lost": rounded(free.drop(candidate)),
            "all_heads": candidate in all_heads,
            "ahead_of_all_heads": rounded(ahead_at_cost(free, [candidate], all_heads)),
            "fixed": rounded(estimate(fixed[index], SCORES)),
            "fixed_gain": rounded(paired_difference(fixed[index], fixed[0])),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    write_calibration_figures(
        dataclasses.replace(
            free, names=tuple(zip(sweeps, (parameter for _, parameter in free.names), strict=True))
        ),
        BUDGET,
        arguments.out.with_suffix(""),
    )
    answers = {str(budget): answer(free, pick(free, budget)) for budget in (0, 2, 5)}
    record = {
        "benchmark": "chosen_heads",
        "measured_on": measured_on(model),
        "exponent": EXPONENT,
        **choice,
        "conversations": len(plain),
        "questions": arguments.questions,
        "settings": rows,
        "answers": answers,
    }
    write_json(record, arguments.out)
    print(answers)


if __name__ == "__main__":
    main()
