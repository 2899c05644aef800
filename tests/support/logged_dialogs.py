"""Logged dialogs that are made here, and the suites that score them."""

import gzip
import json
from collections.abc import Callable, Iterator

SHORT = "cases: [{id: short, system_prompt: Answer in one sentence., measure: one_sentence}]"
PROBED = """
cases:
  - id: luna
    system_prompt: You are Luna. Answer in one sentence.
    rules:
      - {id: name, probes: [Who are you?], measure: {name: contains, words: [Luna]}}
      - {id: job, probes: [Your job?], measure: {name: every, measures: [{regex: spy}]}}
      - id: city
        when: {user: city}
        probes: [Which city?]
        measure: {name: contains, words: [Rome]}
      - {id: short, probes: [Why?], measure: one_sentence}
"""
ONLY_PROBED = SHORT.replace(
    "one_sentence", "{name: contains, words: [Luna]}, probes: [Who are you?]"
)
TWO_PROMPTS = """
cases:
  - {id: ada, system_prompt: You are ada., measure: one_sentence}
  - {id: bob, system_prompt: You are bob., measure: one_sentence}
"""


def lines_of(values) -> str:
    """JSON Lines."""
    return "".join(json.dumps(value) + "\n" for value in values)


def asked_and_answered(question: str, answer: str) -> list[dict]:
    """Two messages."""
    user = {"role": "user", "content": question}
    return [user, {"role": "assistant", "content": answer}]


def chats(count: int, broken_from: Callable[[int], int]) -> Iterator[dict]:
    """Dialogs of 6 turns, answered in one sentence before turn `broken_from(number)`."""
    for number in range(count):
        messages = [{"role": "system", "content": "Answer in one sentence."}]
        for turn in range(1, 7):
            is_kept = turn < broken_from(number)
            answer = "Yes." if is_kept else "Yes. And more. And more."
            messages += asked_and_answered(f"Question {turn}?", answer)
        yield {"messages": messages}


def cities(count: int) -> list[dict]:
    """Dialogs about a city, of which every fourth breaks the rules of `PROBED`."""
    return [
        {"messages": asked_and_answered("Which city?", "Rome." if n % 4 else "I do not know. Why?")}
        for n in range(count)
    ]


def cut_dialog() -> dict:
    """A dialog whose only turn was cut at the token limit."""
    question, answer = asked_and_answered("How?", "Well, the first thing that")
    return {"messages": [question, {**answer, "finish_reason": "length"}]}


CUT_SUITE = """
cases:
  - id: bot
    category: mine
    system_prompt: Say Bye at the end. Be brief.
    rules:
      - {id: bye, measure: {name: ends_with, word: Bye}}
      - {id: brief, measure: {name: at_most_words, count: 3}}
"""
# for the approved output of `holdfast logs`, by their names
FILES: dict[str, str | bytes] = {
    "short.yaml": SHORT,
    "luna.yaml": PROBED,
    "only_probed.yaml": ONLY_PROBED,
    "two.yaml": TWO_PROMPTS,
    "cut.yaml": CUT_SUITE,
    "many.jsonl": lines_of(chats(40, lambda number: 3)) + 'not json\n{"foo": 1}\n',
    "one.jsonl": lines_of(chats(1, lambda number: 3)),
    "cities.jsonl": lines_of(cities(40)),
    "cut.jsonl": lines_of([cut_dialog()]),
    "damaged/good.jsonl": lines_of(chats(1, lambda number: 3)),
    "damaged/latin.jsonl": '{"text": "caf\xe9"}\n'.encode("latin-1"),
    "damaged/packed.jsonl.gz": gzip.compress(b"{}" * 99, mtime=0)[:-9],
    "damaged/packed.jsonl.zst": b"\x28\xb5\x2f\xfd",
}


def paths_in(value, path=()):
    """The path of every value within a value."""
    if path:
        yield path
    items = value if isinstance(value, list) else []
    pairs = value.items() if isinstance(value, dict) else enumerate(items)
    for key, inner in pairs:
        yield from paths_in(inner, (*path, key))


def replace_at(value, path, new):
    copy = json.loads(json.dumps(value))
    parent = copy
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = new
    return copy
