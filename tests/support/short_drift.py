"""A drift benchmark that is short enough for tests, and what two of its runs have in common."""

import json

from synthetic_run import as_json

from holdfast import Sampling, drift
from holdfast.measures import build


def case_of(word):
    probes = f"What is {word}?", "And now?"
    measure = build({"regex": word})
    return drift.Case(f"case-{word}", "pattern", f"Always talk about {word}.", probes, measure)


CASES = tuple(map(case_of, ("bread", "rain", "music")))
SUITE = drift.Suite("three", CASES, ("hello there", "how is the garden?"))
QUICK = drift.Settings(3, 5, batch=3, sampling=Sampling(max_new_tokens=10), seed=4)
ONE_QUESTION = drift.Suite(
    "three",
    tuple(
        drift.Case(f"case-{word}", "x", f"Talk about {word}.", ("What?",), {"regex": word})
        for word in ("bread", "rain", "music")
    ),
    ("hello there",),
)


def without_time(run) -> list[str]:
    """The records as JSON, sorted, without the time that they took."""
    records = ({k: v for k, v in record.items() if k != "seconds"} for record in as_json(run))
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def texts(run) -> list[list[str]]:
    """All turns and replies to probes of each conversation."""
    ordered = sorted(as_json(run), key=lambda record: (record["method"], record["conversation"]))
    return [
        [turn["text"] for turn in r["turns"]] + [probe["reply"] for probe in r["probes"]]
        for r in ordered
    ]
