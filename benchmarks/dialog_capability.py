"""Capabilities other than following the prompt, measured in the middle of a dialog: facts of
CounterFact, questions about what the user said before, and the log-probability of ordinary text.
"""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import holdfast
from holdfast.methods import Method
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.models.session import LocalSession
from holdfast.records import Conversation
from holdfast.study.capability import Capability
from holdfast.study.capability_items import Item

ROOT = Path(__file__).parent.parent
CHOICES = 4
RECALL_BATCH = 96
# the names that the user mentions, and whose names they are
NAMES = "Rex Luna Max Bella Oscar Milo Ruby Leo Nina Hugo Clara Felix Iris Otto".split()
NAMED = ("cat", "dog", "horse", "parrot", "brother", "sister", "neighbour")


def facts(file: Path, count: int, seed: int) -> Capability:
    """Facts, each with three other objects of its relation. They are not selected by whether the
    model knows them, since then any change of the model would count as a loss.
    """
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["label"] == "1"]
    objects = defaultdict(set)
    for row in rows:
        objects[row["relation"]].add(row["true_target"])
    rng = random.Random(f"facts {seed}")
    rng.shuffle(rows)
    items = []
    for row in rows:
        right = row["true_target"]
        others = sorted(objects[row["relation"]] - {right})
        if len(others) < CHOICES - 1:
            continue
        choices = [*rng.sample(others, CHOICES - 1), right]
        rng.shuffle(choices)
        beginning = row["relation"].format(row["subject"])  # "The capital of Peru is"
        replies = tuple(f"{beginning} {choice}." for choice in choices)
        question = f"Complete the sentence: {beginning} ..."
        items.append(Item(question, replies, choices.index(right)))
        if len(items) == count:
            return Capability(f"{count} facts, seed {seed}", tuple(items), lettered=False)
    raise SystemExit(f"{file} has {len(items)} facts with four choices, and {count} are asked.")


def known_facts(model: LocalModel, items: Sequence[Item]) -> list[bool]:
    """Whether the model completes each fact correctly without any dialog."""
    requests = [Request(({"role": "user", "content": item.question},)) for item in items]
    scored = model.session().score_batch(requests, [item.replies for item in items])
    return [
        int(np.argmax(scores.log_probabilities)) == item.answer
        for item, scores in zip(items, scored, strict=True)
    ]


def ordinary_text() -> Capability:
    """Ordinary English text: the user messages of the package's dialogs."""
    rows = (ROOT / "src/holdfast/assets/user_turns/everyday.jsonl").read_text().splitlines()
    passages = [" ".join(json.loads(row)) for row in rows]
    instruction = "Please write the next part of the text."
    items = tuple(Item(instruction, (passage,), None) for passage in passages)
    return Capability("the user's side of everyday dialogs", items, lettered=False)


# Recall of what the user said


@dataclass(frozen=True)
class RecallQuestion:
    """A question about what the user said: the replies to choose from, and which one is right."""

    request: Request
    replies: list[str]
    answer: int


def recall(
    model: LocalModel,
    records: Sequence[Conversation],
    methods: Sequence[str],
    *,
    ask_at: int,
    seed: int,
    file: Path,
) -> np.ndarray:
    """The share [method, conversation] of correct answers to questions about what the user said.

    Args:
        records: dialogs of the unmodified model, after which the questions are asked.
        methods: as spec strings; all get the same questions.
        ask_at: the user turn that asks.
        file: keeps the results of finished methods.
    """
    shares = json.loads(file.read_text()) if file.exists() else {}
    for spec in methods:
        if spec in shares:
            continue
        steering = () if spec == "none" else tuple(holdfast.methods.parse(spec))
        questions = recall_questions(records, steering, ask_at=ask_at, seed=seed)
        correct = answered_correctly(model.session(), questions)
        shares[spec] = np.reshape(correct, (len(records), len(NAMED))).mean(1).tolist()
        file.write_text(json.dumps(shares))
    return np.array([shares[spec] for spec in methods])


def recall_questions(
    records: Sequence[Conversation], steering: tuple[Method, ...], *, ask_at: int, seed: int
) -> list[RecallQuestion]:
    """The same questions for every steering, `len(NAMED)` after each dialog.

    The user names pets and family before one of the turns, and asks for each name in the end; the
    other three choices were never mentioned.
    """
    rng = random.Random(f"recall {seed}")
    questions = []
    for number, record in enumerate(records):
        turns = [
            {"role": "user" if turn.speaker == "user" else "assistant", "content": turn.text}
            for turn in record.turns[: 2 * (ask_at - 1)]
        ]
        mentioned = rng.sample(NAMES, len(NAMED))
        unmentioned = [name for name in NAMES if name not in mentioned]
        name_of = dict(zip(NAMED, mentioned, strict=True))
        sentences = " ".join(f"My {who} is called {name}." for who, name in name_of.items())
        remark = [
            {"role": "user", "content": sentences},
            {"role": "assistant", "content": "Those are nice names."},
        ]
        position = 2 * rng.randrange(ask_at)
        system = {"role": "system", "content": record.agent.system_prompt}
        history = (system, *turns[:position], *remark, *turns[position:])
        for index, (who, name) in enumerate(name_of.items()):
            question = {"role": "user", "content": f"What is the name of my {who}?"}
            choices = rng.sample(unmentioned, CHOICES - 1)
            choices.insert(rng.randrange(CHOICES), name)
            # the first question's chat is kept; the others fork it
            request = Request((*history, question), steering, thread=number, keep=index == 0)
            replies = [f"Your {who} is called {choice}." for choice in choices]
            questions.append(RecallQuestion(request, replies, choices.index(name)))
    return questions


def answered_correctly(session: LocalSession, questions: Sequence[RecallQuestion]) -> list[bool]:
    """Whether the likeliest reply to each question is the right one."""
    correct = [False] * len(questions)
    for keep in (True, False):  # chats that others fork come first
        indices = [
            index for index, question in enumerate(questions) if question.request.keep == keep
        ]
        for start in range(0, len(indices), RECALL_BATCH):
            batch = indices[start : start + RECALL_BATCH]
            scored = session.score_batch(
                [questions[index].request for index in batch],
                [questions[index].replies for index in batch],
            )
            for index, scores in zip(batch, scored, strict=True):
                likeliest = int(np.argmax(scores.log_probabilities))
                correct[index] = likeliest == questions[index].answer
    return correct
