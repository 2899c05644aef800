"""Measures how often the server's first reply at temperature 0 differs from later ones.

The first request computes its whole prompt; when the chat is asked again, the keys and values of
all but its last token are cached. Passes of different shapes round differently, which below float32
can change a token. So the server gives the last token of every prompt a separate pass. In a session
that keeps its cache, as the server does,

- each chat is asked twice, and the second reply is compared with the first;
- each chat is asked after another one with the same system prompt, whose keys it shares, and the
  reply is compared with the one that it got as the first chat of a session.

Both are done with the split prompt, and with the whole prompt in one pass.

    python benchmarks/cold_start.py --model smollm2 --out benchmarks/results/cold_start_smollm2.json
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stamp import measured_on, write_json

import holdfast
from holdfast import Request, Sampling, drift
from holdfast.models.local import LocalModel
from holdfast.models.session import LocalSession

MAX_NEW_TOKENS = 40
QUESTIONS = (
    "Hi! I just got home from work.",
    "I was thinking about cooking something with rice tonight. Any ideas?",
    "What do you like about the garden in spring?",
    "My train was late again. How would you spend an hour at a station?",
)


class Chat(NamedTuple):
    """A question, and another one that is asked before it under the same system prompt."""

    system: str
    question: str
    other_question: str


class TimedReply(NamedTuple):
    """A greedy reply."""

    token_ids: tuple[int, ...]
    first_seconds: float  # until its first token


def answer(session: LocalSession, system: str, question: str, methods: str) -> TimedReply:
    """Answers a question in a session, and times the first token."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    started = time.perf_counter()
    first_seconds = 0.0
    sampling = Sampling(temperature=0, max_new_tokens=MAX_NEW_TOKENS)
    handle = session.stepped.submit(session.render(Request(messages, methods, sampling)))
    while not handle.done:
        session.stepped.step()
        first_seconds = first_seconds or time.perf_counter() - started
    handle.require_reply()
    return TimedReply(tuple(handle.token_ids), first_seconds)


def measure(model: LocalModel, chats: Sequence[Chat], methods: str, *, split: bool) -> dict:
    """Asks all chats under some methods; returns a row of the record.

    Args:
        split: whether the last token of a prompt gets a separate pass.
    """
    model.runner.splits_prompts = split
    num_changed_again = 0
    num_changed_after_another = 0
    seconds = []
    for system, question, other_question in chats:
        session = model.session(long_lived=True)
        first = answer(session, system, question, methods)
        second = answer(session, system, question, methods)
        num_changed_again += second.token_ids != first.token_ids
        seconds.append(first.first_seconds)
        session = model.session(long_lived=True)
        answer(session, system, other_question, methods)
        reply = answer(session, system, question, methods)
        num_changed_after_another += reply.token_ids != first.token_ids
    return {
        "split": split,
        "steering": methods,
        "chats": len(chats),
        "second_differs_from_first": num_changed_again,
        "differs_behind_another_chat": num_changed_after_another,
        "first_token_ms": round(1000 * statistics.median(seconds), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    model = holdfast.load(arguments.model, dtype=arguments.dtype)
    systems = list(
        dict.fromkeys(case.system_prompt for case in drift.load_suite("everyday").cases)
    )[: arguments.prompts]
    chats = [
        Chat(system, question, QUESTIONS[(number + 1) % len(QUESTIONS)])
        for system in systems
        for number, question in enumerate(QUESTIONS)
    ]
    rows = []
    for methods in ("none", "boost:factor=2"):
        for split in (False, True):
            rows.append(measure(model, chats, methods, split=split))
            print(rows[-1], flush=True)
    if arguments.out:
        record = {
            "benchmark": "cold_start",
            "measured_on": measured_on(model),
            "model": arguments.model,
            "dtype": arguments.dtype,
            "tokens": MAX_NEW_TOKENS,
            "rows": rows,
        }
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
