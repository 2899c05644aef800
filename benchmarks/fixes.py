"""Measures how many rules a model keeps under each fix, and how many tokens each fix takes.

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
from commands import (
    method_options,
    model_options,
    name_of,
    record_of,
    record_options,
    run_each,
)
from stamp import estimate_json
from tabled.edits import fixes_table

from holdfast.analysis.series import NO_FIX
from holdfast.analysis.statistics import DIFFERENCES, SCORES, estimate
from holdfast.drift.suites import load_suite
from holdfast.methods import parse, spec_of
from holdfast.records import Conversation, Run
from holdfast.records.mean_estimate import excludes_zero

REPETITION = "repetition:probability=1"
RETRY = "check-and-retry:n=2"
EDITS = (
    NO_FIX,
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
    NO_FIX,
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
    NO_FIX,
    REPETITION,
    RETRY,
    # the two that gained most (results/steering_explored), the paper's own, and the best with a
    # retry
    "boost:factor=4",
    "guidance:scale=1.5",
    "split-softmax:exponent=0.5",
    f"{RETRY}+boost:factor=4",
)
ROUNDS = 7
CONVERSATIONS = 48
MAX_NEW_TOKENS = 120


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
    methods = tuple(dict.fromkeys((NO_FIX, *(arguments.method or stage.methods))))
    seeds = arguments.seeds or stage.seeds
    commands = {
        arguments.runs / f"{name_of(arguments)}-{arguments.stage}-{seed}": drift_command(
            arguments, stage.families, methods, seed
        )
        for seed in seeds
    }
    runs = run_each(commands)
    record = record_of(
        "fixes",
        arguments,
        runs,
        families=stage.families,
        seeds=list(seeds),
        rows=method_rows(runs, methods),
    )
    print(fixes_table([record]))


def drift_command(
    arguments: Namespace, families: str, methods: Sequence[str], seed: int
) -> list[str]:
    """The command of one run, without its folder."""
    return [
        *("drift", *model_options(arguments)),
        *("--suite", "bots", "--families", families, "--pairs", "balanced"),
        *("--user-turns", "everyday", "--rounds", str(ROUNDS), "--probe-every", str(ROUNDS)),
        *("--no-adoption", "--conversations", str(CONVERSATIONS), "--seed", str(seed)),
        *("--temperature", "0.7", "--max-new-tokens", str(MAX_NEW_TOKENS)),
        *("--batch", str(arguments.batch)),
        *method_options(methods),
    ]


class ConversationKey(NamedTuple):
    """A conversation, which all methods have: the number of its run, and its number in the run."""

    run: int
    conversation: int


class Question(NamedTuple):
    """A probe of the last round, which is asked under every method."""

    kind: str  # of the rule
    rule: str
    probe: int


Scores = dict[Question, float]  # of one conversation
ScoresByConversation = dict[ConversationKey, Scores]
KindsOfRules = dict[tuple[str, str], str]  # by the id of the case, and that of the rule


def method_rows(runs: Sequence[Run], methods: Sequence[str]) -> list[dict]:
    """A row for each method, whose gains are over no method, paired by conversation."""
    kinds = kinds_of_rules()
    records = {method: records_of(runs, method) for method in methods}
    scores: dict[str, ScoresByConversation] = {
        method: {key: scores_at_end(record, kinds) for key, record in by_key.items()}
        for method, by_key in records.items()
    }
    rows = []
    for method in methods:
        row = {
            "method": method,
            **rules_kept(scores[method]),
            **tokens_taken(list(records[method].values())),
            "gain": gains_by_kind(scores[method], scores[NO_FIX], kinds),
        }
        if REPETITION in scores:
            gain = estimate(differences(scores[method], scores[REPETITION]), DIFFERENCES)
            row["against_repetition"] = {
                **estimate_json(gain),
                "certain": excludes_zero(gain.low, gain.high),
            }
        rows.append(row)
    return rows


def kinds_of_rules() -> KindsOfRules:
    """The kind of each rule of the suite."""
    suite = load_suite("bots")
    return {
        (case.id, rule.id or ""): rule.kind or "" for case in suite.cases for rule in case.rules
    }


def records_of(runs: Sequence[Run], method: str) -> dict[ConversationKey, Conversation]:
    """The records of all conversations under a method."""
    return {
        ConversationKey(number, record.conversation): record
        for number, run in enumerate(runs)
        for record in run.conversations
        if record.method == spec_of(parse(method))
    }


def scores_at_end(record: Conversation, kinds: KindsOfRules) -> Scores:
    """The scores of the last round of a conversation."""
    scores: Scores = {}
    for probe in record.probes:
        if probe.kind == "stability" and probe.round == ROUNDS:
            rule = probe.rule or ""
            scores[Question(kinds[record.agent.id, rule], rule, probe.probe)] = probe.score
    return scores


def rules_kept(scores: ScoresByConversation) -> dict:
    """The share of rules that are kept, with its interval over conversations."""
    kept = np.array([mean_of(of_questions.values()) for of_questions in scores.values()])
    return {"conversations": len(scores), "kept": estimate_json(estimate(kept, SCORES))}


def tokens_taken(records: Sequence[Conversation]) -> dict[str, int]:
    """How many tokens are read and written per conversation."""
    read = np.mean([record.tokens.read for record in records])
    written = np.mean([record.tokens.written for record in records])
    return {
        "read_per_conversation": round(float(read)),
        "written_per_conversation": round(float(written)),
    }


def gains_by_kind(
    scores: ScoresByConversation, baseline: ScoresByConversation, kinds: KindsOfRules
) -> dict[str, dict]:
    """The gain over the scores of a baseline, for all rules and for each kind of them."""
    gains = {"all": estimate_json(estimate(differences(scores, baseline), DIFFERENCES))}
    for kind in sorted(set(kinds.values())):
        values = differences(scores, baseline, kind)
        gains[kind] = estimate_json(estimate(values, DIFFERENCES))
    return gains


def differences(
    scores: ScoresByConversation, baseline: ScoresByConversation, kind: str | None = None
) -> np.ndarray:
    """The mean difference in each conversation that both have, [conversation], over the questions
    that both have a score of; NaN without any.

    Args:
        kind: only questions about rules of this kind.
    """
    means = []
    for key in sorted(scores.keys() & baseline.keys()):
        means.append(
            mean_of(
                score - baseline[key][question]
                for question, score in scores[key].items()
                if question in baseline[key] and kind in (None, question.kind)
            )
        )
    return np.array(means)


def mean_of(scores: Iterable[float]) -> float:
    """The mean; NaN without any score."""
    known = list(scores)
    return float(np.mean(known)) if known else float("nan")


if __name__ == "__main__":
    main()
