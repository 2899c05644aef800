"""Trains the default model from scratch: `python training/train.py --out DIR --self-dialogue
self_dialogue.jsonl.gz`.

The first steps copy random tokens, so that copying heads form; then come dialogues from
`dialogues.py`. Weights are stored in float32 and used in bfloat16; hidden matrices are updated by
Muon and the others by AdamW. In a second stage the learning rate rises and falls again, over a mix
with more of the content that takes longest to learn (`stages.py`). Checkpoints are scored only by
how well round-1 replies follow held-out instructions; the best one is saved as safetensors with its
tokenizer and `training_log.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).parent))
from evaluate import following
from stages import BRANCHES, STAGES, Stage
from training_batches import SPECIAL, Block, Source, batches, copying, write_dialogues

TEMPLATE = (
    "{{ '<|begin|>' }}{% for message in messages %}{% if message['role'] not in ['system', 'user',"
    " 'assistant'] %}{{ raise_exception('Unknown role: ' + message['role']) }}{% endif %}{{ '<|' +"
    " message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}{% if"
    " add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
# at these lengths a step takes 0.65 times as long as with SDPA, whose backward pass is slow on CPUs
ATTENTION = "eager"
TOKENIZER_DIALOGUES = 25_000  # dialogues that the tokenizer is trained on
STEPS_PER_LINE = 25  # training steps for each line of the log
# the shares of a stage's steps at which its model is first scored, and between later times
FIRST_CHECK = 0.3
CHECK_EVERY = 0.1
WARM_UP_STEPS = 50


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


def loss_of(model: LlamaForCausalLM, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Weighted cross-entropy in nats per weighted token.

    Right padding needs no mask under causal attention.
    """
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    targets = ids[:, 1:]
    weights = weights[:, 1:]
    is_target = weights > 0
    logits = model.lm_head(hidden[is_target]).float()
    losses = torch.nn.functional.cross_entropy(logits, targets[is_target], reduction="none")
    return (losses * weights[is_target]).sum() / weights.sum()


class Updater:
    """Float32 master weights: Muon for hidden matrices, AdamW for embeddings and norms."""

    def __init__(self, model, lr: float, muon_lr: float):
        self.pairs = []  # of the model's weights and their masters
        hidden_matrices = []
        others = []
        for name, weight in model.named_parameters():
            master = weight.detach().float().clone().requires_grad_()
            self.pairs.append((weight, master))
            is_hidden_matrix = master.ndim == 2 and "embed" not in name
            (hidden_matrices if is_hidden_matrix else others).append(master)
        self.optimizers = [
            torch.optim.Muon(hidden_matrices, lr=muon_lr, weight_decay=0.05, momentum=0.95),
            torch.optim.AdamW(others, lr=lr, betas=(0.9, 0.95), weight_decay=0.0, fused=True),
        ]
        self.base_rates = [
            [group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers
        ]

    def step(self, scale: float) -> float:
        """Updates the model from its gradients; returns their norm."""
        for weight, master in self.pairs:
            master.grad = weight.grad.float()
            weight.grad = None
        norm = torch.nn.utils.clip_grad_norm_([master for _, master in self.pairs], 1.0)
        for optimizer, rates in zip(self.optimizers, self.base_rates, strict=True):
            for group, lr in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = lr * scale
            optimizer.step()
        with torch.no_grad():
            for weight, master in self.pairs:
                weight.copy_(master)
        return float(norm)


def schedule(stage: Stage, progress: float, step: int) -> float:
    """Fraction of the learning rate: a warm-up, then constant, then linear to zero.

    Args:
        progress: the share of the stage's steps that are done.
    """
    warm_up = min(1.0, (step + 1) / WARM_UP_STEPS)
    decay = min(1.0, max(0.0, (1 - progress) / stage.fall))
    return stage.peak * warm_up * decay


@dataclass(frozen=True)
class Run:
    """A run of one stage.

    Args:
        number: of the stage, counted from 0.
        steps: the number of steps.
        out: the folder of its checkpoint.
        branch: the number of its branch, if the stage has several.
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
    """The model of a run that is kept in a folder: the one that follows held-out instructions
    best, or else the last one.
    """

    def __init__(self, run: Run, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast):
        self.run = run
        self.model = model
        self.tokenizer = tokenizer
        self.best = -1.0
        self.next_check = FIRST_CHECK
        run.out.mkdir(parents=True, exist_ok=True)
        if run.number:  # the model of the stage before may stay the best
            self.best = following(model, tokenizer)
            model.save_pretrained(run.out)

    def is_due(self, step: int) -> bool:
        """Whether to score the model at this step."""
        progress = step / self.run.steps
        return step == self.run.steps or (self.run.stage.keeps_best and progress >= self.next_check)

    def update(self) -> float:
        """Scores the model, and keeps it if it is the best."""
        self.next_check += CHECK_EVERY
        score = following(self.model, self.tokenizer)
        if score >= self.best or not self.run.stage.keeps_best:
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
    tokens_seen = 0
    average = None  # of the loss
    started = time.time()
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


def train_branches(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    args: argparse.Namespace,
    log: TextIO,
) -> None:
    """Runs every branch of the last stage from `model`, and saves their average to --out."""
    start = {name: weight.clone() for name, weight in model.state_dict().items()}
    total: dict[str, torch.Tensor] = {}
    for number, branch in enumerate(BRANCHES):
        folder = args.out / f"branch-{number}"
        model.load_state_dict(start)
        run = Run(branch.stage, len(STAGES), branch.steps, folder, branch=number)
        train(model, tokenizer, run, args, log)
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
    sample = Block(
        name=f"tokenizer {args.seed}",
        dialogues=TOKENIZER_DIALOGUES,
        self_dialogues=args.self_dialogue,
        styled_users=False,
        drills=0.1,
        mix=STAGES[0].mix,
    )
    dialogues = write_dialogues(sample)
    texts = (message["content"] for messages in dialogues for message in messages)
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
        model = load(args.init)
        tokenizer = PreTrainedTokenizerFast.from_pretrained(args.init)
        first = args.first
    else:
        model, tokenizer = new_model(args)
        first = 0
    tokenizer.save_pretrained(args.out)
    print(f"{model.num_parameters():,} parameters", flush=True)
    with (args.out / "training_log.jsonl").open("w") as log:
        if first < len(STAGES):
            for number, steps in enumerate(args.steps, first):
                train(model, tokenizer, Run(STAGES[number], number, steps, args.out), args, log)
                model = load(args.out)
        if not args.init or first == len(STAGES):
            train_branches(model, tokenizer, args, log)


if __name__ == "__main__":
    main()
