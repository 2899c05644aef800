"""Runs of drift with given scores, and the sentences on them, for the approved texts."""

import tempfile
from dataclasses import replace
from pathlib import Path

from holdfast.analysis.outcome import Outcome, findings_of
from holdfast.analysis.series import read_series
from holdfast.records import Conversation, open_run, read_run
from holdfast.report import sentences as drift_sentences
from holdfast.report.next_step import Finding, next_step


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


def run_of(folder, records, **identity):
    with open_run(folder, {"rounds": 2, **identity}, {"command": "drift", "seed": 0}) as run:
        for item in records:
            run.append(Conversation.model_validate(item))
    return read_run(folder)


def series_of(folder, first, last, n=40, **more):
    return read_series(run_of(folder, [record(i, [first(i), last(i)], **more) for i in range(n)]))


def opening_of(series, baseline=None):
    """The opening sentences on some series."""
    return drift_sentences.opening(series, findings_of(series[0], baseline), baseline)


def prompts_run(folder, prompts, each):
    """A run in which every other prompt is lost; each prompt has `each` conversations."""
    records = [
        record(number, [1.0, float(number % prompts % 2)], agent=f"p{number % prompts}")
        for number in range(prompts * each)
    ]
    return read_series(run_of(folder, records))


DRIFT = "holdfast drift --conversations 12"
MODEL = Finding(DRIFT, ("--model", "m"), "bot", conversations=40)
DRIFTS = replace(MODEL, outcome=Outcome.DRIFTS, first_fix="split-softmax:exponent=0.5")
FIXED = replace(DRIFTS, fix="boost:factor=4")
HELPS = replace(FIXED, helps=True)
SWEEPS = ("split-softmax:exponent=0.9,0.7,0.5,heads=16-23.0-13", "repetition:probability=0.5,1")
NEXT_STEPS = {
    "few conversations": replace(MODEL, conversations=12),
    "replayed dialogs": replace(MODEL, conversations=12, replayed=True),
    "nothing measured": replace(MODEL, outcome=Outcome.NOT_MEASURED),
    "a rule made worse": replace(MODEL, outcome=Outcome.MADE_WORSE, made_worse=("signs",)),
    "uninformative": replace(MODEL, outcome=Outcome.UNINFORMATIVE),
    "breakdown": replace(MODEL, outcome=Outcome.BROKEN_DOWN),
    "breakdown of few": replace(MODEL, outcome=Outcome.BROKEN_DOWN, conversations=3),
    "cut replies": replace(MODEL, outcome=Outcome.CUT),
    "one round": replace(MODEL, rounds=1),
    "breakdown with cures": replace(HELPS, cures=("raise a", "let b")),
    "rules never followed": replace(HELPS, never_followed=("a", "b", "c")),
    "a fix that helps": HELPS,
    "a fix that helps behind an API": replace(HELPS, endpoint=True),
    "a proxy's fix that helps": replace(HELPS, fix="check-and-retry:n=2"),
    "a proxy's fix that helps behind an API": replace(
        HELPS, fix="check-and-retry:n=2", endpoint=True, url="https://api.example.com/v1"
    ),
    "a fix that harms": replace(FIXED, harms=True),
    "a drift": DRIFTS,
    "a drift, and rules never followed": replace(DRIFTS, never_followed=("a",)),
    "a drift of a model without a proven fix": replace(DRIFTS, first_fix=None, sweeps=SWEEPS),
    "a drift under rules that can be checked": replace(
        DRIFTS, first_fix="check-and-retry:n=2", sweeps=("check-and-retry:n=2", *SWEEPS)
    ),
    "a drift behind an API": replace(DRIFTS, endpoint=True, first_fix="repetition:probability=1"),
    "a drift in a run of Python": replace(DRIFTS, command=""),
    "an uncertain fix": replace(FIXED, needed=90),
    "a fix without effect": FIXED,
    "a fix without effect behind an API": replace(FIXED, endpoint=True),
    "stable": replace(MODEL, outcome=Outcome.HOLDS),
    "undecided": replace(MODEL, needed=90),
    "undecided in a run of Python": replace(MODEL, command="", needed=50),
}


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
    steps = [f"# Next step: {name}\n{next_step(found)}" for name, found in NEXT_STEPS.items()]
    return "\n\n".join([*texts, *steps, ""])
