"""Batches of token ids for training: dialogues are written, encoded, and grouped by length."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import torch
from dialogues import Mix, dialogue, drill, load_self_dialogues
from endings import NONE, Encoded, Loops, Vocabulary, with_loops
from stages import Stage
from transformers import PreTrainedTokenizerFast

from holdfast.chat.messages import Message

SPECIAL = ("<|pad|>", "<|begin|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
LOSS_WEIGHT = {"system": 0.0, "user": 0.1, "assistant": 1.0}
# share of the user's tokens that are targets, at 1/0.25 of the weight: the same mean, less work
USER_TARGETS = 0.25
MAX_LENGTH = 1024
LENGTH_MULTIPLE = 16  # rows are padded to a multiple of it
BLOCK_DIALOGUES = 3000  # dialogues that are written at a time
EARLY_BLOCKS = 10  # blocks that have a stage's share of early drills


@dataclass(frozen=True)
class Block:
    """Dialogues that are written at a time; the name seeds them."""

    name: str
    dialogues: int
    self_dialogues: Path | None
    styled_users: bool
    drills: float
    mix: Mix


@dataclass(frozen=True)
class Source:
    """Where training dialogues come from.

    Args:
        self_dialogues: the file of the Self-dialogue Corpus, if there is one.
        styled_users: whether some users write in the style of an instruction.
        stage: decides the mix of dialogues.
        seed: of all dialogues.
    """

    self_dialogues: Path | None
    styled_users: bool
    stage: Stage
    seed: int

    def block(self, number: int) -> Block:
        """The block with this number, counted from 0."""
        stage = self.stage
        return Block(
            name=f"{self.seed} {number}",
            dialogues=BLOCK_DIALOGUES,
            self_dialogues=self.self_dialogues,
            styled_users=self.styled_users,
            drills=stage.early_drills if number < EARLY_BLOCKS else stage.drills,
            mix=stage.mix,
        )


class Batch(NamedTuple):
    """Token ids, and the loss weight of each as a target: [row, token]."""

    ids: torch.Tensor
    weights: torch.Tensor


def batches(
    tokenizer: PreTrainedTokenizerFast, source: Source, tokens_per_batch: int
) -> Iterator[Batch]:
    """Endless batches of new dialogues of similar length, padded to a multiple of 16.

    Another process writes the next block of dialogues while the current one is used.
    """
    rng = random.Random(f"batches {source.seed}")
    draws = torch.Generator().manual_seed(source.seed)
    with Pool(1) as pool:
        next_block = pool.apply_async(write_dialogues, (source.block(0),))
        for number in itertools.count():
            dialogues = next_block.get()
            next_block = pool.apply_async(write_dialogues, (source.block(number + 1),))
            loops_seed = f"{source.seed} {number + 1}"
            rows = encode(dialogues, tokenizer, source.stage.loops, loops_seed)
            groups = group_by_length(rows, tokens_per_batch)
            rng.shuffle(groups)
            for group in groups:
                yield pad(group, draws)


_read_self_dialogues = cache(load_self_dialogues)


def write_dialogues(block: Block) -> list[list[Message]]:
    """Writes the dialogues and drills of a block."""
    rng = random.Random(f"dialogues {block.name}")
    real = _read_self_dialogues(block.self_dialogues)
    return [
        drill(rng)
        if rng.random() < block.drills
        else dialogue(rng, real, block.styled_users, block.mix)
        for _ in range(block.dialogues)
    ]


def encode(
    dialogues: list[list[Message]],
    tokenizer: PreTrainedTokenizerFast,
    loops: Loops = NONE,
    seed: str = "",
) -> list[Encoded]:
    """Encodes dialogues, of which a share gets stuck in `loops`."""
    rng = random.Random(f"loops {seed}")
    roles = {role: tokenizer.convert_tokens_to_ids(f"<|{role}|>") for role in LOSS_WEIGHT}
    end = tokenizer.eos_token_id
    vocabulary = Vocabulary(end, frozenset(roles.values()), len(SPECIAL), len(tokenizer))
    texts = [message["content"] for messages in dialogues for message in messages]
    contents = iter(tokenizer(texts, add_special_tokens=False)["input_ids"])
    rows = []
    for messages in dialogues:
        ids = [tokenizer.bos_token_id]
        weights = [0.0]
        for message in messages:
            content = next(contents)
            ids += [roles[message["role"]], *content, end]
            weights += [0.0] + [LOSS_WEIGHT[message["role"]]] * (len(content) + 1)
        if loops.share and rng.random() < loops.share:
            ids, weights = with_loops(Encoded(ids, weights), loops, vocabulary, rng)
        rows.append(Encoded(ids[:MAX_LENGTH], weights[:MAX_LENGTH]))
    return rows


def group_by_length(rows: list[Encoded], tokens_per_batch: int) -> list[list[Encoded]]:
    """Groups rows of similar length; a padded group has at most so many tokens."""
    groups: list[list[Encoded]] = []
    group: list[Encoded] = []
    for row in sorted(rows, key=lambda row: (len(row.ids), row.ids)):
        if group and padded_length(row) * (len(group) + 1) > tokens_per_batch:
            groups.append(group)
            group = []
        group.append(row)
    return [*groups, group]


def padded_length(row: Encoded) -> int:
    return math.ceil(len(row.ids) / LENGTH_MULTIPLE) * LENGTH_MULTIPLE


def pad(group: list[Encoded], draws: torch.Generator) -> Batch:
    """A batch of these rows, of which a drawn share of the user's tokens are targets."""
    width = max(map(padded_length, group))
    ids = torch.zeros(len(group), width, dtype=torch.long)
    weights = torch.zeros(len(group), width)
    for index, row in enumerate(group):
        ids[index, : len(row.ids)] = torch.tensor(row.ids)
        weights[index, : len(row.ids)] = torch.tensor(row.weights)
    user = weights == LOSS_WEIGHT["user"]
    weights[user] = torch.where(
        torch.rand(int(user.sum()), generator=draws) < USER_TARGETS,
        LOSS_WEIGHT["user"] / USER_TARGETS,
        0.0,
    )
    return Batch(ids, weights)


def copying(step: int, vocabulary: int, tokens_per_batch: int) -> Batch:
    """A batch of [begin, x1..xn, begin, x1..xn] with random tokens; the second copy is the
    target.
    """
    draws = torch.Generator().manual_seed(step)
    length = 8 * int(torch.randint(1, 5, (), generator=draws))
    rows = tokens_per_batch // (2 * length + 2)
    tokens = torch.randint(len(SPECIAL), vocabulary, (rows, length), generator=draws)
    begin = torch.ones(rows, 1, dtype=torch.long)
    weights = torch.zeros(rows, 2 * length + 2)
    weights[:, length + 2 :] = 1.0
    return Batch(torch.cat([begin, tokens, begin, tokens], 1), weights)
