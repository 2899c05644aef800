"""Fixes that need no access to the model: rules kept, by kind, and tokens read.

The dialogs have scripted messages under the families of `bots` that are reserved for confirmation.
Every method runs in the same conversations as no method, and is probed three messages after the
last reminder of `reminder:every=4`.

- "repetition" repeats the whole prompt before every message, as users can do today
- "reminder" states all rules in every fourth message; the rules that the last reply broke; or, in
  every message, the kinds of rules that fall according to `holdfast map`
- "repair" hides the exchanges that broke a rule
- "check-and-retry" redraws a reply that broke a rule, up to twice

    python benchmarks/message_edits.py --model qwen-0.5b --runs runs/message_edits --out FILE.json

Interrupted runs are resumed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from commands import record_options
from commands import run as run_command
from stamp import measured_in, write_record

from holdfast.analysis.statistics import DIFFERENCES, SCORES, Estimate, estimate
from holdfast.drift.suites import load_suite
from holdfast.methods import parse, spec_of
from holdfast.records import Conversation, Run, read_run
from holdfast.records.mean_estimate import excludes_zero

NONE = "none"
REPETITION = "repetition:probability=1"
# named before they were run; FEWER, for larger models, takes five eighths of the time
METHODS = (
    NONE,
    REPETITION,
    "reminder:every=4,text=rules",
    "reminder:every=1,text=rules,when=broken",
    "repair",
    "check-and-retry:n=2",
    # the kinds that fall on qwen-0.5b, from the round after which they do (results/loss)
    "reminder:every=1,text=rules,kinds=conditional/identity/tool-first,after=2",
)
FEWER = tuple(method for method in METHODS if method != "repair" and "kinds=" not in method)
ROUNDS, CONVERSATIONS, TOKENS = 7, 48, 120  # probed in the first round and the last


def command(
    model: str,
    dtype: str,
    seed: int,
    methods: Sequence[str],
    folder: Path,
    batch: int,
    families: str = "confirm",
) -> list[str]:
    """The command line of one run, under the families of `bots` reserved for `families`."""
    return [
        *("drift", "--model", model, "--dtype", dtype),
        *("--suite", "bots", "--families", families, "--pairs", "balanced"),
        *("--user-turns", "everyday", "--rounds", str(ROUNDS), "--probe-every", str(ROUNDS)),
        *("--no-adoption", "--conversations", str(CONVERSATIONS), "--seed", str(seed)),
        *("--temperature", "0.7", "--max-new-tokens", str(TOKENS), "--batch", str(batch)),
        *(word for method in methods for word in ("--method", method)),
        *("--out", str(folder)),
    ]


Kinds = dict[tuple[str, str], str]  # the kind of a rule, by its case and its id
Key = tuple[int, int]  # the number of a run, and that of a conversation in it
Probed = tuple[str, str, int]  # the kind of a rule, its id, and the number of the question
Scores = dict[Probed, float]


def kinds_of_rules() -> Kinds:
    suite = load_suite("bots")
    return {
        (case.id, rule.id or ""): rule.kind or "" for case in suite.cases for rule in case.rules
    }


def last_scores(record: Conversation, kinds: Kinds) -> Scores:
    """The scores of the last round."""
    return {
        (kinds[record.agent.id, probe.rule or ""], probe.rule or "", probe.probe): probe.score
        for probe in record.probes
        if probe.kind == "stability" and probe.round == ROUNDS
    }


def by_conversation(runs: Sequence[Run], method: str) -> dict[Key, Conversation]:
    """The conversations of a method, by the number of the run and their own."""
    return {
        (number, record.conversation): record
        for number, run in enumerate(runs)
        for record in run.conversations
        if record.method == spec_of(parse(method))
    }


def mean_of(scores: Iterable[float]) -> float:
    """The mean score of a conversation's probes; NaN without any."""
    chosen = list(scores)
    return float(np.mean(chosen)) if chosen else float("nan")


def difference(ours: Scores, theirs: Scores, kind: str | None) -> float:
    """The mean difference over the probes, or those of a kind, that both have a score of."""
    return mean_of(
        score - theirs[probed]
        for probed, score in ours.items()
        if probed in theirs and kind in (None, probed[0])
    )


def differences(ours: dict[Key, Scores], theirs: dict[Key, Scores], kind: str | None = None):
    """The difference in each conversation that both have, [conversation]."""
    shared = sorted(ours.keys() & theirs.keys())
    return np.array([difference(ours[key], theirs[key], kind) for key in shared])


def as_json(result: Estimate) -> dict:
    return {
        "n": result.n,
        "mean": round(result.mean, 4) if result.mean is not None else None,
        "low": round(result.low, 4) if result.low is not None else None,
        "high": round(result.high, 4) if result.high is not None else None,
    }


def rows_of(runs: Sequence[Run], methods: Sequence[str]) -> list[dict]:
    """A row for each method, with its differences to no method, by kind, and to repetition."""
    kinds = kinds_of_rules()
    records = {method: by_conversation(runs, method) for method in methods}
    scores = {
        method: {key: last_scores(record, kinds) for key, record in found.items()}
        for method, found in records.items()
    }
    rows = []
    for method in methods:
        ours = scores[method]
        tokens = [record.tokens for record in records[method].values()]
        row: dict = {
            "method": method,
            "conversations": len(ours),
            "kept": as_json(
                estimate(np.array([mean_of(of.values()) for of in ours.values()]), SCORES)
            ),
            "read_per_conversation": round(float(np.mean([count.read for count in tokens]))),
            "written_per_conversation": round(float(np.mean([count.written for count in tokens]))),
            "gain": {
                kind or "all": as_json(estimate(differences(ours, scores[NONE], kind), DIFFERENCES))
                for kind in (None, *sorted(set(kinds.values())))
            },
        }
        if REPETITION in scores:
            against = estimate(differences(ours, scores[REPETITION]), DIFFERENCES)
            row["against_repetition"] = {
                **as_json(against),
                "certain": excludes_zero(against.low, against.high),
            }
        rows.append(row)
    return rows


def main() -> None:
    parser = record_options(__doc__, "runs/message_edits")
    parser.add_argument(
        "--fewer", action="store_true", help="without repair and the kinds of qwen-0.5b"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--batch", type=int, default=48)
    arguments = parser.parse_args()
    methods = FEWER if arguments.fewer else METHODS
    folders = [arguments.runs / f"{arguments.model}-{seed}" for seed in arguments.seeds]
    for seed, folder in zip(arguments.seeds, folders, strict=True):
        run_command(
            command(arguments.model, arguments.dtype, seed, methods, folder, arguments.batch)
        )
    runs = [read_run(folder) for folder in folders]
    record = {
        "benchmark": "message_edits",
        "measured_on": measured_in(runs, arguments.commit),
        "model": arguments.model,
        "seeds": arguments.seeds,
        "rows": rows_of(runs, methods),
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
