"""Measures whether stability has to cost capability: compares split-softmax on a few chosen heads
with every other fix at equal capability, on the default model.

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
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from default_model import rounded
from stamp import measured_on, write_json

import holdfast
from holdfast import drift, methods
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.calibration_results import Calibration
from holdfast.analysis.choosing import ahead_at_cost, front, pick
from holdfast.analysis.decay import trace_of
from holdfast.analysis.series import NO_FIX
from holdfast.analysis.statistics import SCORES, estimate, paired_difference
from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.models.protocol import ChatModel
from holdfast.models.requests import Request
from holdfast.records import Conversation, Probe
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_sentences import answer
from holdfast.seeds import seed_of
from holdfast.study.attention_decay import run_traced, traced_settings
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan, choose_prompts
from holdfast.study.capability import load_capability

EXPONENT = 0.3  # of split-softmax, for choosing heads
CHOOSING_ROUNDS = (5, 8)  # whose probes choose heads
LATE = 8  # the round whose probes score fixes after fixed histories
BUDGET = 5.0  # points of capability that may be lost, in the figure of stability by round
CHOOSING_SEED = 100
SCORING_SEED = 101


def every_second_case(suite: drift.Suite, start: int) -> drift.Suite:
    """Every second case of a suite, from number `start` on."""
    return dataclasses.replace(suite, cases=suite.cases[start::2])


def history(record: Conversation, before: int) -> list[dict]:
    """The messages that the agent has seen before a round."""
    roles = {"user": "user", "agent": "assistant"}
    turns = [turn for turn in record.turns if turn.round < before]
    return [
        {"role": "system", "content": record.agent.system_prompt},
        *({"role": roles[turn.speaker], "content": turn.text} for turn in turns),
    ]


def probe_scores(
    model: ChatModel,
    suite: drift.Suite,
    records: Sequence[Conversation],
    fixes: Sequence[tuple[Method, ...]],
    rounds: tuple[int, ...],
) -> np.ndarray:
    """Scores [fix, conversation], means over rounds, of probes asked after fixed histories.

    Args:
        records: the conversations of the unmodified model, which are the histories.
        rounds: of the probes.
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
        requests = [probe_request(record, probe, fix) for record, probe in probes]
        replies = model.generate_batch(requests)
        scores_by_conversation: dict[int, list[float]] = defaultdict(list)
        for (record, _), reply in zip(probes, replies, strict=True):
            score = measures[record.agent.id].score(reply.text).value
            scores_by_conversation[record.conversation].append(score)
        for column, record in enumerate(records):
            if scores_by_conversation[record.conversation]:
                scores[index, column] = np.mean(scores_by_conversation[record.conversation])
    return scores


def probe_request(record: Conversation, probe: Probe, fix: tuple[Method, ...]) -> Request:
    """Asks a probe after what the agent has seen before its round."""
    question = {"role": "user", "content": probe.question}
    seed = seed_of("fixed", record.conversation, probe.round)
    return Request((*history(record, probe.round), question), fix, seed=seed)


def choose_heads(
    model: LocalModel, suite: drift.Suite, out: Path, conversations: int, count: int
) -> dict:
    """Chooses the top heads of each criterion, and as many random ones; returns them with the
    numbers that they were chosen by, as the record has them.
    """
    settings = traced_settings(conversations, 8, CHOOSING_SEED)
    records, dialogs = run_traced(model, suite, out, settings)
    drop = np.array(trace_of(model.name, records, dialogs).heads.drop)
    heads = [(layer, head) for layer in range(drop.shape[0]) for head in range(drop.shape[1])]
    fixes = [(), *((holdfast.SplitSoftmax(EXPONENT, frozenset({head})),) for head in heads)]
    scores = probe_scores(model, suite, records, fixes, CHOOSING_ROUNDS)
    gain = np.nanmean(scores[1:] - scores[0], 1)
    shuffled = np.random.default_rng(CHOOSING_SEED).permutation(len(heads))
    ranked = {
        "drop": sorted(heads, key=lambda head: -drop[head]),
        "gain": [heads[index] for index in np.argsort(-gain, kind="stable")],
        "random": [heads[index] for index in shuffled],
    }
    return {
        "drop": drop.tolist(),
        "gain": gain.reshape(drop.shape).round(4).tolist(),
        "chosen": {name: ranked[name][:count] for name in ranked},
    }


def heads_spec(heads: Iterable[tuple[int, int]]) -> str:
    """Heads as a spec string has them: "1.5/2.3"."""
    return "/".join(f"{layer}.{head}" for layer, head in sorted(heads))


def sweeps_of(chosen: Mapping[str, Sequence[tuple[int, int]]]) -> dict[str, str]:
    """The sweeps to compare, by name; `chosen` has the heads of each criterion."""
    return {
        "all heads": "split-softmax:exponent=0.7,0.5,0.3",
        **{
            f"heads by {name}": f"split-softmax:exponent=0.5,0.2,0.1,heads={heads_spec(heads)}"
            for name, heads in chosen.items()
        },
        "repetition": "repetition:probability=0.5,1",
        "guidance": "guidance:scale=1.5,2",
        "spotlight": "spotlight:target=0.1,0.2",
        "boost": "boost:factor=2,4,8",
    }


def setting_rows(calibration: Calibration, scores_after_fixed: np.ndarray) -> list[dict]:
    """A row for each setting.

    Args:
        calibration: of free self-chats.
        scores_after_fixed: the scores after fixed histories, [setting, conversation].
    """
    all_heads = calibration.sweeps[0]
    pairs = zip(calibration.candidates, front(calibration), strict=True)
    rows = []
    for index, (candidate, on_front) in enumerate(pairs):
        row = {
            "method": candidate.method,
            "front": on_front,
            "free": rounded(estimate(candidate.stability, SCORES)),
            "free_gain": rounded(calibration.gain(candidate)),
            "capability": rounded(estimate(candidate.capability, None)),
            "points_lost": rounded(calibration.drop(candidate)),
            "all_heads": candidate in all_heads,
            "ahead_of_all_heads": rounded(ahead_at_cost(calibration, [candidate], all_heads)),
            "fixed": rounded(estimate(scores_after_fixed[index], SCORES)),
            "fixed_gain": rounded(
                paired_difference(scores_after_fixed[index], scores_after_fixed[0])
            ),
        }
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def unfixed_conversations(records: Iterable[Conversation]) -> list[Conversation]:
    """The conversations of the unmodified model, in order."""
    unfixed = [record for record in records if record.method == NO_FIX]
    return sorted(unfixed, key=lambda record: record.conversation)


def draw_figures(calibration: Calibration, names: Sequence[str], folder: Path) -> None:
    """Draws the calibration's figures, whose legends have our names of the sweeps."""
    parameters = [parameter for _, parameter in calibration.names]
    renamed = dataclasses.replace(calibration, names=tuple(zip(names, parameters, strict=True)))
    write_calibration_figures(renamed, BUDGET, folder)


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
    suite = drift.load_suite("starter")
    choice = choose_heads(
        model,
        every_second_case(suite, 0),
        arguments.runs / "choose",
        arguments.conversations,
        arguments.heads,
    )
    print(choice["chosen"], f"of {np.size(choice['drop'])}", flush=True)
    sweeps = sweeps_of(choice["chosen"])
    prompts = choose_prompts(every_second_case(suite, 1))
    folder = arguments.runs / "free"
    plan = CalibrationPlan(draws=arguments.draws, seed=SCORING_SEED, sweeps=list(sweeps.values()))
    questions = load_capability("knowledge", arguments.questions, SCORING_SEED)
    stability = calibrate(model, prompts, questions, folder, plan).stability
    histories = unfixed_conversations(stability.records)
    calibration = read_calibration(folder)
    fixes = [methods.parse(candidate.method) for candidate in calibration.candidates]
    scores_after_fixed = probe_scores(model, prompts, histories, fixes, (LATE,))
    rows = setting_rows(calibration, scores_after_fixed)
    draw_figures(calibration, list(sweeps), arguments.out.with_suffix(""))
    answers = {str(budget): answer(calibration, pick(calibration, budget)) for budget in (0, 2, 5)}
    record = {
        "benchmark": "chosen_heads",
        "measured_on": measured_on(model),
        "exponent": EXPONENT,
        **choice,
        "conversations": len(histories),
        "questions": arguments.questions,
        "settings": rows,
        "answers": answers,
    }
    write_json(record, arguments.out)
    print(answers)


if __name__ == "__main__":
    main()
