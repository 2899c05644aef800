"""Runs of drift with given scores, and the sentences on them, for the approved texts."""

import itertools
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from holdfast.analysis.drift_results import results_of
from holdfast.analysis.outcome import Outcome, findings_of
from holdfast.analysis.series import read_series
from holdfast.analysis.verdicts import verdict_on
from holdfast.records import Conversation, Repeated, open_run, read_run
from holdfast.records.drift_summary import BaselineScores
from holdfast.report.next_step import next_step
from holdfast.report.opening_sentences import opening


def record(number, stability, adoption=(), method="none", agent="a", category="pattern", mass=None):
    """A record with the given scores per round; an entry may list the scores of several probes."""
    reply = {"question": "q", "reply": "r", "reason": "why", "mass": mass}
    probes = [
        {"round": round, "kind": kind, "probe": probe, "score": score, **reply}
        for kind, scores in (("stability", stability), ("adoption", adoption))
        for round, value in enumerate(scores, start=1)
        for probe, score in enumerate(value if isinstance(value, list) else [value])
    ]
    turn = {"text": "t", "stop_reason": "stop", "mass": mass}
    turns = [
        {"round": round, "speaker": who, **turn}
        for round in range(1, len(stability) + 1)
        for who in ("user", "agent")
    ]
    return {
        "method": method,
        "conversation": number,
        "agent": {"id": agent, "category": category, "system_prompt": f"Be {agent}."},
        "user": {"id": "b", "category": "persona", "system_prompt": "Be b."},
        "turns": turns,
        "probes": probes,
        "tokens": {"forwarded": 107, "least": 100},
        "seconds": 1.0,
    }


def run_of(folder, records, argv="", **identity):
    """A run of the command `argv`; without it, one made in Python."""
    about = {"command": "drift", "argv": argv, "seed": 0}
    with open_run(folder, {"rounds": 2, **identity}, about) as run:
        for item in records:
            run.append(Conversation.model_validate(item))
    return read_run(folder)


def series_of(folder, first, last, n=40, **fields):
    return read_series(run_of(folder, [record(i, [first(i), last(i)], **fields) for i in range(n)]))


def opening_of(series, baseline=None):
    """The opening sentences on some series."""
    return opening(series, findings_of(series[0], baseline), baseline)


def prompts_run(folder, prompts, conversations):
    """A run in which every other prompt is lost; each prompt has `conversations` conversations."""
    records = [
        record(number, [1.0, float(number % prompts % 2)], agent=f"p{number % prompts}")
        for number in range(prompts * conversations)
    ]
    return read_series(run_of(folder, records))


COMMAND = "holdfast drift --model m --suite bot --conversations 12"
API = "holdfast drift --model https://api.example.com/v1 --suite bot"
PROXY_FIX = "check-and-retry:n=2"


def _falls(number):
    return float(number % 4 == 0)


def _holds(number):
    return 1.0


def _undecided(number):
    return 0.2 if number % 2 else 0.8


def _mostly_holds(number):
    return 0.5 + number % 2 / 2


def _may_hold(number):
    return float(number % 5 < 2)


def _fails(number):
    return 0.0


def _results(
    folder,
    last=_holds,
    fixed=None,
    *,
    fix="boost:factor=4",
    command=COMMAND,
    first=1.0,
    conversations=40,
    rounds=2,
    never_followed=(),
    manifest=(),
    seconds=0,
    **identity,
):
    """The results of a run of one rule, with and without a fix.

    Args:
        last: the scores in the last round without a fix, by number of the conversation.
        fixed: those with the fix; None: the run has no fix.
        command: what was typed; None: the run was made in Python.
        first: the score in round 1.
        never_followed: the names of rules beside it that are never followed.
        manifest: further fields of the manifest; `identity`: of the run's identity.
        seconds: how long each conversation took.
    """
    records = []
    for method, score in (("none", last), (fix, fixed)):
        for number in range(conversations if score else 0):
            scores = [
                [value, *(0.0 for _ in never_followed)] for value in (first, score(number))[:rounds]
            ]
            records.append({**record(number, scores, method=method), "seconds": seconds})
            for probe in records[-1]["probes"] if never_followed else ():
                probe["rule"] = ("kept", *never_followed)[probe["probe"]]
    about = {"command": "drift", "seed": 0, "argv": command, **dict(manifest)}
    with open_run(folder, {"rounds": rounds, **identity}, about) as run:
        for item in records:
            run.append(Conversation.model_validate(item))
    return results_of(read_run(folder))


def with_outcome(results, outcome, **findings):
    """The same results with other findings."""
    copy = replace(results)
    vars(copy)["findings"] = replace(results.findings, outcome=outcome, **findings)  # the cache
    return copy


def _made_worse(results):
    change = results.findings.stability.change
    row = BaselineScores(
        name="signs",
        n=change.n,
        prompted=change,
        unprompted=change,
        difference=verdict_on(change),
        verdict="made worse",
    )
    return with_outcome(results, Outcome.MADE_WORSE, made_worse=(row,))


def _breaking_down(folder):
    records = [record(number, [1.0, 1.0]) for number in range(40)]
    for item in records:
        for turn in item["turns"]:
            turn["stop_reason"] = "length"
            turn["repeats"] = {"own": 0.0, "other": 1.0, "loops": 0.0}
    return with_outcome(results_of(run_of(folder, records)), Outcome.BROKEN_DOWN)


def _with_repeating_fix(results):
    """The results with a fix under which every turn repeats the other speaker."""
    unsteered, fixed = results.series
    repeats = Repeated(own=0.0, other=1.0, loops=0.0)
    update = {"repeats": repeats, "repeats_unprompted": repeats}
    records = []
    for item in fixed.records:
        turns = tuple(turn.model_copy(update=update) for turn in item.turns)
        records.append(item.model_copy(update={"turns": turns}))
    return replace(results, series=[unsteered, replace(fixed, records=tuple(records))])


def next_steps(folder: Path) -> dict[str, str]:
    """The next step after runs with every kind of result."""
    numbers = itertools.count()

    def results(*scores, **options):
        return _results(folder / str(next(numbers)), *scores, **options)

    qwen = {"layers": 24, "heads": 14}
    runs = {
        "few conversations": results(conversations=12),
        "few conversations of a minute each": results(conversations=12, seconds=60),
        "replayed dialogs": results(conversations=12, dialogs={"name": "d", "fingerprint": "f"}),
        "a shard": results(command="holdfast drift --model m --shard 1/4"),
        "nothing measured": with_outcome(results(), Outcome.NOT_MEASURED),
        "a rule made worse": _made_worse(results()),
        "uninformative": with_outcome(results(), Outcome.UNINFORMATIVE),
        "breakdown": with_outcome(results(), Outcome.BROKEN_DOWN),
        "breakdown of few": with_outcome(results(conversations=3), Outcome.BROKEN_DOWN),
        "breakdown with cures": _breaking_down(folder / "breakdown"),
        "cut replies": with_outcome(results(), Outcome.CUT),
        "one round": results(rounds=1),
        "rules never followed": results(_falls, _mostly_holds, never_followed=("a", "b", "c")),
        "a fix that helps": results(_falls, _mostly_holds),
        "a fix that helps behind an API": results(_falls, _mostly_holds, command=API),
        "a proxy's fix that helps": results(_falls, _mostly_holds, fix=PROXY_FIX),
        "a proxy's fix that helps behind an API": results(
            _falls, _mostly_holds, fix=PROXY_FIX, command=API
        ),
        "a fix that helps but repeats": _with_repeating_fix(results(_falls, _mostly_holds)),
        "a fix that harms": results(_falls, _fails),
        "a drift": results(_falls, model="default"),
        "a drift, and rules never followed": results(
            _falls, never_followed=("a",), model="default"
        ),
        "a drift of a model without a proven fix": results(_falls, manifest=qwen),
        "a drift under rules that can be checked": results(
            _falls, manifest={**qwen, "checkable": True}
        ),
        "a drift of conversations of a minute each": results(_falls, seconds=60, model="default"),
        "a drift of conversations of a minute each, under rules that can be checked": results(
            _falls, seconds=60, manifest={**qwen, "checkable": True}
        ),
        "a drift behind an API": results(_falls, command=API),
        "a drift in a run of Python": results(_falls, command=None, model="default"),
        "an uncertain fix": results(_falls, _may_hold),
        "a fix without effect": results(_falls, _falls),
        "a fix without effect behind an API": results(_falls, _falls, command=API),
        "stable": results(),
        "undecided": results(_undecided, first=0.5, conversations=24),
        "undecided in a run of Python": results(
            _undecided, first=0.5, conversations=24, command=None
        ),
    }
    return {name: next_step(drift_results) for name, drift_results in runs.items()}


def openings(folder: Path) -> dict[str, list[str]]:
    """The opening sentences on runs with every kind of result."""

    def with_fix(name, better, n=40):
        records = [record(i, [1.0, 0.25]) for i in range(n)]
        records += [record(i, [1.0, better(i)], method="m") for i in range(n)]
        return read_series(run_of(folder / name, records))

    uncertain = [
        record(i, [float(i % 10 != 0), float(i % 10 not in (1, 2))], [float(i % 20 == 0), 0.05])
        for i in range(40)
    ]
    quarter = {"adoption": [0.0, 0.25]}
    runs = {
        "drift": series_of(folder / "a", lambda i: 1.0, lambda i: float(i % 4 == 0), **quarter),
        "drift with a method": series_of(
            folder / "b", lambda i: 1.0, lambda i: 0.5, 20, method="boost:factor=2"
        ),
        "improvement": series_of(folder / "c", lambda i: 0.5, lambda i: 1.0),
        "no drift": series_of(folder / "d", lambda i: 1.0, lambda i: 1.0),
        "undecided": read_series(run_of(folder / "e", uncertain)),
        "three conversations": series_of(folder / "f", lambda i: 1.0, lambda i: 0.5, 3),
        "one round": read_series(run_of(folder / "g", [record(0, [0.5])])),
        "24 prompts": prompts_run(folder / "h", 24, 5),
        "6 prompts": prompts_run(folder / "i", 6, 10),
        "a fix that helps": with_fix("j", lambda i: 0.5 + i % 2 / 2),
        "a fix that harms": with_fix("k", lambda i: i % 2 / 10),
        "an uncertain fix": with_fix("l", lambda i: i % 2 / 2),
        "a fix in four conversations": with_fix("m", lambda i: 0.5 + i % 2 / 2, 4),
    }
    return {name: opening_of(series) for name, series in runs.items()}


def sentences() -> str:
    """The openings and the next steps, for the approved texts."""
    with tempfile.TemporaryDirectory() as folder:
        texts = [
            "\n".join([f"# Opening: {name}", *lines])
            for name, lines in openings(Path(folder)).items()
        ]
        steps = [f"# Next step: {name}\n{step}" for name, step in next_steps(Path(folder)).items()]
    return "\n\n".join([*texts, *steps, ""])


def numbers_in(text):
    """The numbers of a sentence, in order."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
