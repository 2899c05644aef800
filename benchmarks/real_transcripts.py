"""Turns dialogs of a drift run into transcripts to label: with compactions, orders of the user, and
prompts that were removed.

    python benchmarks/real_transcripts.py RUN --out FILE

RUN is a run of the suite `bots`. What is done to which dialog is fixed here, before anything is
labelled; the words that are put in are those of `tests/data/causes/inserts.yaml`. Rounds with a
long message of the user are left out.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from labelled_transcripts import FILE

from holdfast.drift import load_suite
from holdfast.drift.cases import Case
from holdfast.records import Conversation, read_run

INSERTS = FILE.parent / "inserts.yaml"
SEED = 20261128
ARRANGEMENTS = (  # what is done to the dialogs, in turn
    "whole",  # nothing
    "ordered",  # the user orders something
    "compacted",
    "cut",  # the first round is dropped
    "other-prompt",
    "no-prompt",
    "codex",  # compacted in Codex, with the rules in AGENTS.md and an order
)
FORMATS = {"compacted": "claude-code", "cut": "litellm", "codex": "codex"}
DIALOGS = 21
ROUNDS = 4
_MAX_CHARACTERS = 300  # of a user's message
_CHANGED_ROUND = 2  # before which a dialog is compacted or cut, from 0
_OTHER_PROMPT = "You are a helpful assistant. Answer the questions of the user."

Event = dict[str, Any]


class Round(NamedTuple):
    """A message of the user, and the model's reply."""

    user: str
    reply: str


def real_dialogs(run: Path) -> list[dict[str, Any]]:
    """The dialogs, in the form of `labelled.yaml`, without labels."""
    inserts = yaml.safe_load(INSERTS.read_text(encoding="utf-8"))
    cases = {case.id: case for case in load_suite("bots").cases}
    families = sorted(inserts)
    rng = random.Random(SEED)
    by_case: dict[str, list[Any]] = {}
    for record in read_run(run).conversations:
        by_case.setdefault(record.agent.id, []).append(record)
    dialogs = []
    for number in range(DIALOGS):
        family = families[number % len(families)]
        case = cases[f"{family}-{1 + number // len(families) % 2}"]
        record = by_case[case.id].pop(0)
        arrangement = ARRANGEMENTS[number % len(ARRANGEMENTS)]
        rounds = [*_short_rounds(record)][:ROUNDS]
        events = [*_arrange(arrangement, case, rounds, inserts[family], rng)]
        dialogs.append(
            {
                "id": f"real-{number + 1}-{case.id}-{arrangement}",
                "half": "real",
                "format": FORMATS.get(arrangement, "openai"),
                "suite": case.id,
                "events": events,
            }
        )
    return dialogs


def _short_rounds(record: Conversation) -> Iterator[Round]:
    """The rounds with a reply whose user's message is short."""
    users = {turn.round: turn.text for turn in record.turns if turn.speaker == "user"}
    for turn in record.turns:
        has_reply = turn.speaker == "agent" and turn.text.strip()
        if has_reply and len(users[turn.round]) <= _MAX_CHARACTERS:
            yield Round(users[turn.round], turn.text)


def _arrange(
    arrangement: str,
    case: Case,
    rounds: Sequence[Round],
    inserts: dict[str, dict[str, str]],
    rng: random.Random,
) -> Iterator[Event]:
    """Yields the events of a dialog as one of `ARRANGEMENTS` changes it.

    Args:
        inserts: of the case's family: orders of the user, and a sentence about each rule for
            summaries, of which half are used.
    """
    order = rng.choice(sorted(inserts["orders"].values()))
    rules = sorted(rng.sample(sorted(inserts["summary"]), (len(inserts["summary"]) + 1) // 2))
    order_at = {"ordered": 1, "no-prompt": 1, "codex": 2}.get(arrangement)  # a round, from 0
    if arrangement in ("whole", "ordered"):
        yield {"system": case.system_prompt}
    elif arrangement == "other-prompt":
        yield {"system": _OTHER_PROMPT}
    elif arrangement == "codex":
        yield {"system": _OTHER_PROMPT}
        yield {"agents": case.system_prompt}
    for number, (user, reply) in enumerate(rounds):
        if number == _CHANGED_ROUND and arrangement in ("compacted", "codex"):
            points = "\n".join(inserts["summary"][rule] for rule in rules)
            yield {"compact": f"Summary of the dialog so far.\n{points}\nIt goes on."}
        if number == _CHANGED_ROUND and arrangement == "cut":
            yield {"drop": 2}
        if number == 0 and arrangement in ("compacted", "cut"):
            user = f"{case.system_prompt}\n\n{user}"
        if number == order_at:
            user = f"{user} {order}"
        yield {"user": user}
        yield {"say": reply}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    dialogs = {"dialogs": real_dialogs(arguments.run)}
    text = yaml.safe_dump(dialogs, allow_unicode=True, sort_keys=False, width=98)
    arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
