"""Trains the default model from scratch: `python training/train.py --out DIR --self-dialogue
self_dialogue.jsonl.gz`.

The first steps copy random tokens, so that copying heads form; then come dialogues from
`dialogues.py`. Weights are stored in float32 and used in bfloat16; hidden matrices are updated by
Muon and the rest by AdamW. In a second stage the learning rate rises and falls again, over a mix
with more of the content that takes longest to learn. Checkpoints are scored only by how well
round-1 replies follow held-out instructions; the best one is saved as safetensors with its
tokenizer and `training_log.jsonl`."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple, TextIO

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).parent))
from dialogues import Mix, dialogue, drill, load_self_dialogues
from endings import NONE, Encoded, Loops, Vocabulary, with_loops
from evaluate import following

SPECIAL = ("<|pad|>", "<|begin|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
TEMPLATE = (
    "{{ '<|begin|>' }}{% for message in messages %}{% if message['role'] not in ['system', 'user',"
    " 'assistant'] %}{{ raise_exception('Unknown role: ' + message['role']) }}{% endif %}{{ '<|' +"
    " message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}{% if"
    " add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
LOSS_WEIGHT = {"system": 0.0, "user": 0.1, "assistant": 1.0}
# share of the user's tokens that are targets, at 1/0.25 of the weight: the same mean, less work
USER_TARGETS = 0.25
MAX_LENGTH = 1024
# at these lengths a step takes 0.65 times as long as with SDPA, whose backward pass is slow on CPUs
ATTENTION = "eager"
# first steps, on random tokens written twice: copying heads form here, which held-out values need
COPY_STEPS = 300
BLOCK_DIALOGUES = 3000  # dialogues that are written at a time
DRILL_BLOCKS = 10  # how many of the first blocks have the first share of drills
TOKENIZER_DIALOGUES = 25_000  # dialogues that the tokenizer is trained on
STEPS_PER_LINE = 25  # training steps for each line of the log
FIRST_CHECK, CHECK_EVERY = 0.3, 0.1  # shares of a stage's steps at which its model is scored


def train_tokenizer(texts: Iterator[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE with single digits and the chat template."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocabulary, special_tokens=list(SPECIAL), initial_alphabet=alphabet
        ),
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|begin|>",
        eos_token="<|end|>",
        pad_token="<|pad|>",
        chat_template=TEMPLATE,
        model_max_length=4096,
        clean_up_tokenization_spaces=False,
    )


@dataclass(frozen=True)
class Stage:
    """One decay of the learning rate, and its training data.

    Args:
        copy_steps: first steps, on random tokens written twice.
        drills: share of drills in the first `DRILL_BLOCKS` blocks of dialogues, and after them.
        mix: shares of the content that takes longest to learn.
        peak: highest learning rate, as a fraction of --lr and --muon-lr.
        fall: share of the steps over which the learning rate falls to zero.
        choose: whether to keep the checkpoint with the best round-1 following, or the last one.
        loops: which dialogues get stuck in a loop and must end.
    """

    copy_steps: int
    drills: tuple[float, float]
    mix: Mix
    peak: float
    fall: float
    choose: bool = True
    loops: Loops = NONE


STAGES = (
    Stage(COPY_STEPS, (0.5, 0.0), Mix(facts=0.15, knowledge=0.15), peak=1.0, fall=0.4),
    Stage(0, (0.2, 0.2), Mix(facts=0.4, knowledge=0.25), peak=0.5, fall=1.0),
)


def last_stage(facts: float, tasks: float, drills: float, loops: Loops) -> Stage:
    """PASTA's tasks, practised but not mastered, and replies that end.

    Following measures neither and would choose a checkpoint from before them, so the last one is
    kept."""
    mix = Mix(facts=facts, knowledge=0.25, tasks=tasks)
    return Stage(0, (drills, drills), mix, peak=0.25, fall=1.0, choose=False, loops=loops)


# The last stage is run four times from the same start, and the weights are averaged (model soups,
# Wortsman et al. 2022, arXiv 2203.05482): the average follows held-out instructions better than any
# of the four.
_MILD = Loops(0.08, repeated=(1, 2, 3, 4, 5, 6), times=(4, 8, 16, 32), stuck=(1,), target=1.0)
BRANCHES = (
    (200, last_stage(0.4, 0.3, 0.2, _MILD)),
    (300, last_stage(0.4, 0.2, 0.2, Loops(0.12))),
    (200, last_stage(0.4, 0.3, 0.2, Loops(0.12))),
    (300, last_stage(0.15, 0.2, 0.1, Loops(0.15))),
)


@dataclass(frozen=True)
class Source:
    """Where training dialogues come from.

    Args:
        path: the Self-dialogue Corpus, if there is one.
        styled_users: whether some users write in the style of an instruction.
        stage: decides the mix of dialogues.
        seed: of all dialogues.
    """

    path: Path | None
    styled_users: bool
    stage: Stage
    seed: int

    def block(self, number: int) -> Block:
        drills = self.stage.drills[number >= DRILL_BLOCKS]
        name = f"{self.seed} {number}"
        return Block(name, BLOCK_DIALOGUES, self.path, self.styled_users, drills, self.stage.mix)


@dataclass(frozen=True)
class Block:
    """The dialogues that a process writes at a time; its name seeds them."""

    name: str
    dialogues: int
    self_dialogues: Path | None
    styled_users: bool
    drills: float
    mix: Mix


_read_self_dialogues = cache(load_self_dialogues)


def write_dialogues(block: Block) -> list[list[dict]]:
    rng, real = random.Random(f"dialogues {block.name}"), _read_self_dialogues(block.self_dialogues)
    return [
        drill(rng)
        if rng.random() < block.drills
        else dialogue(rng, real, block.styled_users, block.mix)
        for _ in range(block.dialogues)
    ]


class Batch(NamedTuple):
    """Token ids, and the loss weight of each as a target: [row, token]."""

    ids: torch.Tensor
    weights: torch.Tensor


def encode(
    dialogues: list[list[dict]], tokenizer, loops: Loops = NONE, seed: str = ""
) -> list[Encoded]:
    """Encodes dialogues, of which a share gets stuck in `loops`."""
    rng = random.Random(f"loops {seed}")
    roles = {role: tokenizer.convert_tokens_to_ids(f"<|{role}|>") for role in LOSS_WEIGHT}
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    vocabulary = Vocabulary(end, frozenset(roles.values()), len(SPECIAL), len(tokenizer))
    texts = [message["content"] for messages in dialogues for message in messages]
    contents = iter(tokenizer(texts, add_special_tokens=False)["input_ids"])
    rows = []
    for messages in dialogues:
        ids, weights = [begin], [0.0]
        for message in messages:
            body = next(contents)
            ids += [roles[message["role"]], *body, end]
            weights += [0.0] + [LOSS_WEIGHT[message["role"]]] * (len(body) + 1)
        if loops.share and rng.random() < loops.share:
            ids, weights = with_loops(Encoded(ids, weights), loops, vocabulary, rng)
        rows.append(Encoded(ids[:MAX_LENGTH], weights[:MAX_LENGTH]))
    return rows


def batches(
    tokenizer: PreTrainedTokenizerFast, source: Source, tokens_per_batch: int
) -> Iterator[Batch]:
    """Endless batches of new dialogues of similar length, padded to a multiple of 16.

    Another process writes the next block of dialogues while the current one is used.
    """
    rng, thin = random.Random(f"batches {source.seed}"), torch.Generator().manual_seed(source.seed)
    with Pool(1) as pool:
        following = pool.apply_async(write_dialogues, (source.block(0),))
        for number in itertools.count():
            dialogues = following.get()
            following = pool.apply_async(write_dialogues, (source.block(number + 1),))
            loops_seed = f"{source.seed} {number + 1}"
            rows = encode(dialogues, tokenizer, source.stage.loops, loops_seed)
            groups = grouped(rows, tokens_per_batch)
            rng.shuffle(groups)
            for group in groups:
                yield padded(group, thin)


def grouped(rows: list[Encoded], tokens_per_batch: int) -> list[list[Encoded]]:
    """The rows by length, in groups that have at most so many tokens once they are padded."""
    groups: list[list[Encoded]] = []
    group: list[Encoded] = []
    for row in sorted(rows, key=lambda row: (len(row.ids), row.ids)):
        if group and padded_length(row) * (len(group) + 1) > tokens_per_batch:
            groups.append(group)
            group = []
        group.append(row)
    return [*groups, group]


def padded_length(row: Encoded) -> int:
    return math.ceil(len(row.ids) / 16) * 16


def padded(group: list[Encoded], thin: torch.Generator) -> Batch:
    """A batch of these rows; `thin` draws which of the user's tokens are targets."""
    width = max(map(padded_length, group))
    ids = torch.zeros(len(group), width, dtype=torch.long)
    weights = torch.zeros(len(group), width)
    for index, row in enumerate(group):
        ids[index, : len(row.ids)] = torch.tensor(row.ids)
        weights[index, : len(row.ids)] = torch.tensor(row.weights)
    user = weights == LOSS_WEIGHT["user"]
    weights[user] = torch.where(
        torch.rand(int(user.sum()), generator=thin) < USER_TARGETS,
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


def loss_of(model: LlamaForCausalLM, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted cross-entropy in nats per weighted token.

    Right padding needs no mask under causal attention.
    """
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    targets, weights = ids[:, 1:], weights[:, 1:]
    wanted = weights > 0
    logits = model.lm_head(hidden[wanted]).float()
    losses = torch.nn.functional.cross_entropy(logits, targets[wanted], reduction="none")
    return (losses * weights[wanted]).sum() / weights.sum()


class Updater:
    """Float32 master weights: Muon for hidden matrices, AdamW for embeddings and norms."""

    def __init__(self, model, lr: float, muon_lr: float):
        self.pairs = [(p, p.detach().float().clone().requires_grad_()) for p in model.parameters()]
        names = [name for name, _ in model.named_parameters()]
        hidden, rest = [], []
        for name, (_, master) in zip(names, self.pairs, strict=True):
            is_hidden_matrix = master.ndim == 2 and "embed" not in name
            (hidden if is_hidden_matrix else rest).append(master)
        self.optimizers = [
            torch.optim.Muon(hidden, lr=muon_lr, weight_decay=0.05, momentum=0.95),
            torch.optim.AdamW(rest, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        ]
        self.base_rates = [[group["lr"] for group in o.param_groups] for o in self.optimizers]

    def step(self, scale: float) -> float:
        """Updates the model from its gradients; returns their norm."""
        for weight, master in self.pairs:
            master.grad = weight.grad.float()
            weight.grad = None
        norm = torch.nn.utils.clip_grad_norm_([m for _, m in self.pairs], 1.0)
        for optimizer, rates in zip(self.optimizers, self.base_rates, strict=True):
            for group, lr in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = lr * scale
            optimizer.step()
        with torch.no_grad():
            for weight, master in self.pairs:
                weight.copy_(master)
        return float(norm)


def schedule(stage: Stage, progress: float, step: int) -> float:
    """Fraction of the learning rate: warm-up over 50 steps, constant, then linear to zero."""
    return stage.peak * min(1.0, (step + 1) / 50) * min(1.0, max(0.0, (1 - progress) / stage.fall))


@dataclass(frozen=True)
class Run:
    """A run of one stage: its number (from 0), steps and folder, and the number of its branch, if
    any.
    """

    stage: Stage
    number: int
    steps: int
    out: Path
    branch: int | None = None

    @property
    def log_fields(self) -> dict[str, int]:
        branch = {} if self.branch is None else {"branch": self.branch}
        return {"stage": self.number, **branch}


class Checkpoint:
    """The model of a run that follows held-out instructions best, which is kept in a folder.

    If the stage does not choose, it is the last one.
    """

    def __init__(self, run: Run, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast):
        self.run, self.model, self.tokenizer = run, model, tokenizer
        self.best, self.next_check = -1.0, FIRST_CHECK
        run.out.mkdir(parents=True, exist_ok=True)
        if run.number:  # the model of the stage before may stay the best
            self.best = following(model, tokenizer)
            model.save_pretrained(run.out)

    def is_due(self, step: int) -> bool:
        reached = self.run.stage.choose and step / self.run.steps >= self.next_check
        return reached or step == self.run.steps

    def update(self) -> float:
        """Scores the model, and keeps it if it is the best."""
        self.next_check += CHECK_EVERY
        score = following(self.model, self.tokenizer)
        if score >= self.best or not self.run.stage.choose:
            self.best = score
            self.model.save_pretrained(self.run.out)
        return score


def train(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    run: Run,
    args: argparse.Namespace,
    log: TextIO,
) -> None:
    """Runs one stage and saves its best checkpoint to its folder."""
    stage = run.stage
    updater = Updater(model, args.lr, args.muon_lr)
    compiled_loss = torch.compile(loss_of, dynamic=True)
    checkpoint = Checkpoint(run, model, tokenizer)
    source = Source(args.self_dialogue, args.styled_users, stage, args.seed + run.number)
    dialogues = batches(tokenizer, source, args.tokens_per_batch)
    tokens_seen, started, average = 0, time.time(), None
    for step in range(run.steps + 1):
        if step < stage.copy_steps:
            batch = copying(step, len(tokenizer), args.tokens_per_batch)
        else:
            batch = next(dialogues)
        model.train()
        loss = compiled_loss(model, batch.ids, batch.weights)
        loss.backward()
        norm = updater.step(schedule(stage, step / run.steps, step))
        tokens_seen += batch.ids.numel()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if step % STEPS_PER_LINE and step != run.steps:
            continue
        row = {
            **run.log_fields,
            "step": step,
            "tokens": tokens_seen,
            "loss": round(average, 4),
            "norm": round(norm, 3),
            "seconds": round(time.time() - started, 1),
        }
        if checkpoint.is_due(step):
            row["following"] = checkpoint.update()
        print(json.dumps(row), file=log, flush=True)
        print(json.dumps(row), flush=True)


def finish(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    args: argparse.Namespace,
    log: TextIO,
) -> None:
    """Runs every branch of the last stage from `model`, and saves the average of their weights to
    --out.
    """
    start = {name: weight.clone() for name, weight in model.state_dict().items()}
    total: dict[str, torch.Tensor] = {}
    for number, (steps, stage) in enumerate(BRANCHES):
        folder = args.out / f"branch-{number}"
        model.load_state_dict(start)
        train(model, tokenizer, Run(stage, len(STAGES), steps, folder, branch=number), args, log)
        for name, weight in load(folder).state_dict().items():
            total[name] = total.get(name, 0) + weight.float()
    model.load_state_dict({name: weight / len(BRANCHES) for name, weight in total.items()})
    model.save_pretrained(args.out)


def load(folder: Path) -> LlamaForCausalLM:
    return LlamaForCausalLM.from_pretrained(
        folder, attn_implementation=ATTENTION, dtype=torch.bfloat16
    )


def configuration(tokenizer: PreTrainedTokenizerFast, layers: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=704,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=4096,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )


def new_model(args: argparse.Namespace) -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """A model with random weights, and a tokenizer trained on a sample of its dialogues."""
    sample = write_dialogues(
        Block(
            f"tokenizer {args.seed}",
            TOKENIZER_DIALOGUES,
            args.self_dialogue,
            styled_users=False,
            drills=0.1,
            mix=STAGES[0].mix,
        )
    )
    texts = (message["content"] for messages in sample for message in messages)
    tokenizer = train_tokenizer(texts, args.vocabulary)
    model = LlamaForCausalLM._from_config(
        configuration(tokenizer, args.layers), attn_implementation=ATTENTION
    )
    return model.to(torch.bfloat16), tokenizer


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--steps",
        type=int,
        nargs="*",
        default=[10000, 2500],
        help="of each of the first two stages",
    )
    parser.add_argument(
        "--self-dialogue",
        type=Path,
        default=None,
        help="self_dialogue.jsonl.gz (BSD-3-Clause); without it English is templates only",
    )
    parser.add_argument(
        "--styled-users",
        action="store_true",
        help="the ablation: half of the users write in a style of their own",
    )
    parser.add_argument(
        "--init",
        type=Path,
        default=None,
        help=(
            "a model to train further: it has the stages before --first behind it; --first 2 runs"
            " the last one alone"
        ),
    )
    parser.add_argument(
        "--first", type=int, default=1, help="with --init: the stage to begin with, counted from 0"
    )
    parser.add_argument("--tokens-per-batch", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=2048)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    if args.init:
        model, tokenizer = load(args.init), PreTrainedTokenizerFast.from_pretrained(args.init)
        first = args.first
    else:
        model, tokenizer = new_model(args)
        first = 0
    tokenizer.save_pretrained(args.out)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    with (args.out / "training_log.jsonl").open("w") as log:
        if first < len(STAGES):
            for number, steps in enumerate(args.steps, first):
                train(model, tokenizer, Run(STAGES[number], number, steps, args.out), args, log)
                model = load(args.out)
        if not args.init or first == len(STAGES):
            finish(model, tokenizer, args, log)


if __name__ == "__main__":
    main()
