"""Rules kept under fixes, by kind of rule, and the tokens that the fixes read.

    python benchmarks/fixes.py edits --model qwen-0.5b --out FILE.json
    python benchmarks/fixes.py explore --model qwen-0.5b --out FILE.json
    python benchmarks/fixes.py steering --model qwen-0.5b --out FILE.json

`edits` has fixes that need no access to the model:

- "repetition" repeats the whole prompt before every message, as users can do today
- "reminder" states all rules in every fourth message, or the rules that the last reply broke
- "check-and-retry" redraws a reply that broke a rule, up to twice

`explore` tries settings of steering. Those that did best were named in a commit of their own;
`steering` measures them beside repetition and check-and-retry, under other prompts and seeds.

All fixes run in the same conversations: scripted messages under the families of prompts of `bots`
that are reserved for exploration or for confirmation. The rules are probed in the first round and
in the last, which is three messages after the last reminder of "every fourth message".

Interrupted runs are resumed.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from commands import model_options, name_of, record_of, record_options, run_each
from stamp import estimate_json
from tabled.edits import fixes_table

from holdfast.analysis.statistics import DIFFERENCES, SCORES, estimate
from holdfast.drift.suites import load_suite
from holdfast.methods import parse, spec_of
from holdfast.records import Conversation, Run
from holdfast.records.mean_estimate import excludes_zero

NONE = "none"
REPETITION = "repetition:probability=1"
RETRY = "check-and-retry:n=2"
EDITS = (
    NONE,
    REPETITION,
    "reminder:every=4,text=rules",
    "reminder:every=1,text=rules,when=broken",
    RETRY,
)
# the 50 heads of qwen-0.5b on which `reproduce zhang2024` steers (results/zhang2024_qwen05)
PROFILED = (
    "1.9/2.4/2.5/4.7/4.11/4.13/6.3/7.1/7.2/8.0/9.8/9.12/10.6/10.8/10.10/11.1/11.6/11.9/12.1/12.4"
    "/12.7/12.9/13.0/13.2/13.5/14.5/14.11/15.8/15.9/15.11/15.12/15.13/16.2/16.5/16.10/17.3/17.11"
    "/18.1/19.9/20.2/20.5/20.6/20.7/20.11/20.12/21.3/21.6/21.11/22.6/23.0"
)
LAST_THIRD = "16-23.0-13"  # of the 24 layers of qwen-0.5b
EXPLORED = (
    NONE,
    "guidance:scale=1.5",
    "guidance:scale=2,plausibility=0.1",
    "split-softmax:exponent=0.5",
    f"split-softmax:exponent=0.5,heads={LAST_THIRD}",
    "boost:factor=4",
    f"boost:factor=8,heads={PROFILED}",
    f"pasta:alpha=0.01,heads={PROFILED}",
    "attenuate:factor=0.3",
    "attenuate:factor=0.1",
    "attenuate:factor=0.03",
)
STEERING = (
    NONE,
    REPETITION,
    RETRY,
    # the two that gained most (results/steering_explored), the paper's own, and the best with a
    # retry
    "boost:factor=4",
    "guidance:scale=1.5",
    "split-softmax:exponent=0.5",
    f"{RETRY}+boost:factor=4",
)
ROUNDS, CONVERSATIONS, TOKENS = 7, 48, 120


@dataclass(frozen=True)
class Stage:
    """One comparison: its methods, the families of prompts, and a run for each seed."""

    methods: tuple[str, ...]
    families: str
    seeds: tuple[int, ...]


STAGES = {
    "edits": Stage(EDITS, "confirm", (2, 3)),
    "explore": Stage(EXPLORED, "explore", (4,)),
    "steering": Stage(STEERING, "confirm", (2, 3)),
}


def main() -> None:
    parser = record_options(__doc__, "runs/fixes")
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument(
        "--method",
        nargs="+",
        metavar="SPEC",
        help="the fixes, instead of the stage's own; no fix is measured too",
    )
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of the stage's own")
    parser.add_argument("--batch", type=int, default=48, help="conversations at a time (48)")
    arguments = parser.parse_args()
    stage = STAGES[arguments.stage]
    methods = tuple(dict.fromkeys((NONE, *(arguments.method or stage.methods))))
    seeds = arguments.seeds or stage.seeds
    runs = run_each(
        {
            arguments.runs / f"{name_of(arguments)}-{arguments.stage}-{seed}": command(
                arguments, stage.families, methods, seed
            )
            for seed in seeds
        }
    )
    record = record_of(
        "fixes",
        arguments,
        runs,
        families=stage.families,
        seeds=list(seeds),
        rows=rows_of(runs, methods),
    )
    print(fixes_table([record]))


def command(arguments: Namespace, families: str, methods: Sequence[str], seed: int) -> list[str]:
    """The command line of one run, but for its folder."""
    return [
        *("drift", *model_options(arguments)),
        *("--suite", "bots", "--families", families, "--pairs", "balanced"),
        *("--user-turns", "everyday", "--rounds", str(ROUNDS), "--probe-every", str(ROUNDS)),
        *("--no-adoption", "--conversations", str(CONVERSATIONS), "--seed", str(seed)),
        *("--temperature", "0.7", "--max-new-tokens", str(TOKENS)),
        *("--batch", str(arguments.batch)),
        *(word for method in methods for word in ("--method", method)),
    ]


class Key(NamedTuple):
    """A conversation: the number of its run, and its own number in the run."""

    run: int
    conversation: int


class Question(NamedTuple):
    """A probe of the last round, which is asked under every method."""

    kind: str
    rule: str
    probe: int


Scores = dict[Question, float]  # of one conversation
Kinds = dict[tuple[str, str], str]  # the kind of a rule, by the ids of its case and its own


def rows_of(runs: Sequence[Run], methods: Sequence[str]) -> list[dict]:
    """A row for each method: rules kept, tokens, and the differences to no method, by kind of rule,
    and to repetition.
    """
    kinds = kinds_of_rules()
    records = {method: by_conversation(runs, method) for method in methods}
    scores = {
        method: {key: last_scores(record, kinds) for key, record in conversations.items()}
        for method, conversations in records.items()
    }
    rows = []
    for method in methods:
        ours = scores[method]
        tokens = [record.tokens for record in records[method].values()]
        kept = np.array([mean_of(of_questions.values()) for of_questions in ours.values()])
        row: dict = {
            "method": method,
            "conversations": len(ours),
            "kept": estimate_json(estimate(kept, SCORES)),
            "read_per_conversation": round(float(np.mean([count.read for count in tokens]))),
            "written_per_conversation": round(float(np.mean([count.written for count in tokens]))),
            "gain": {
                kind or "all": estimate_json(
                    estimate(differences(ours, scores[NONE], kind), DIFFERENCES)
                )
                for kind in (None, *sorted(set(kinds.values())))
            },
        }
        if REPETITION in scores:
            against = estimate(differences(ours, scores[REPETITION]), DIFFERENCES)
            row["against_repetition"] = {
                **estimate_json(against),
                "certain": excludes_zero(against.low, against.high),
            }
        rows.append(row)
    return rows


def kinds_of_rules() -> Kinds:
    suite = load_suite("bots")
    return {
        (case.id, rule.id or ""): rule.kind or "" for case in suite.cases for rule in case.rules
    }


def by_conversation(runs: Sequence[Run], method: str) -> dict[Key, Conversation]:
    return {
        Key(number, record.conversation): record
        for number, run in enumerate(runs)
        for record in run.conversations
        if record.method == spec_of(parse(method))
    }


def last_scores(record: Conversation, kinds: Kinds) -> Scores:
    """The scores of the last round."""
    return {
        Question(kinds[record.agent.id, probe.rule or ""], probe.rule or "", probe.probe): (
            probe.score
        )
        for probe in record.probes
        if probe.kind == "stability" and probe.round == ROUNDS
    }


def differences(
    ours: dict[Key, Scores], theirs: dict[Key, Scores], kind: str | None = None
) -> np.ndarray:
    """The mean difference in each conversation that both have, [conversation], over the questions,
    or those about a kind of rule, that both have a score of; NaN without any.
    """
    return np.array(
        [
            mean_of(
                score - theirs[key][question]
                for question, score in ours[key].items()
                if question in theirs[key] and kind in (None, question.kind)
            )
            for key in sorted(ours.keys() & theirs.keys())
        ]
    )


def mean_of(scores: Iterable[float]) -> float:
    """The mean; NaN without any score."""
    chosen = list(scores)
    return float(np.mean(chosen)) if chosen else float("nan")


if __name__ == "__main__":
    main()
