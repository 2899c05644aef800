"""A child of a small model: the same weights, fine-tuned a little on the tasks, so that the
transfer of heads can be tried (Table 13).
"""

from __future__ import annotations

import copy
import random
from pathlib import Path

import torch

from holdfast.errors import UsageError
from holdfast.models.loading import load
from holdfast.models.local import LocalModel
from holdfast.papers.zhang2024.dialogues import TASKS, training_dialogue

_LARGEST = 50_000_000  # parameters: beyond, a child is trained elsewhere and named
_BATCH = 16
_UNLABELLED = -100


def make_child(
    model: LocalModel, folder: Path, steps: int, seed: int = 0, learning_rate: float = 2e-4
) -> LocalModel:
    """Fine-tunes a copy of the model on replies to the tasks' training samples, and loads it; the
    folder of an earlier call is loaded as it is.

    Args:
        model: the parent, which stays as it is.
        folder: where the child is saved.
        steps: of AdamW, with 16 dialogues each.
        seed: of the dialogues.
        learning_rate: falls to 0 along a line.

    Raises:
        UsageError: the model is too large to be trained here.
    """
    size = sum(parameter.numel() for parameter in model.hf_model.parameters())
    if size > _LARGEST:
        raise UsageError(
            f"{model.name} has {size:,} parameters, and at most {_LARGEST:,} are fine-tuned here;"
            " train a child elsewhere and name it with --child."
        )
    if not (folder / "config.json").exists():
        _train(model, steps, random.Random(seed), learning_rate).save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
    return load(str(folder))


def _train(model: LocalModel, steps: int, rng: random.Random, learning_rate: float):
    with torch.inference_mode(False):
        child = copy.deepcopy(model.hf_model).float()
        child.set_attn_implementation("sdpa")
        optimizer = torch.optim.AdamW(child.parameters(), lr=learning_rate)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * (1 - step / steps)
            ids, mask, labels = _batch(model, rng)
            child(input_ids=ids, attention_mask=mask, labels=labels).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return child


def _batch(
    model: LocalModel, rng: random.Random
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, attention mask and labels [row, token], padded on the right; only the tokens of
    replies have labels.
    """
    rows = []
    for _ in range(_BATCH):
        question, reply = training_dialogue(rng.choice(TASKS), rng)
        before = model.tokenizer.apply_chat_template(
            [question], add_generation_prompt=True, tokenize=False
        )
        whole = model.tokenizer.apply_chat_template([question, reply], tokenize=False)
        first = len(model.tokenizer(before, add_special_tokens=False).input_ids)
        rows.append((model.tokenizer(whole, add_special_tokens=False).input_ids, first))
    width = max(len(ids) for ids, _ in rows)
    ids, mask = torch.zeros(2, len(rows), width, dtype=torch.long)
    labels = torch.full_like(ids, _UNLABELLED)
    for row, (tokens, first) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
        labels[row, first : len(tokens)] = ids[row, first : len(tokens)]
    return ids, mask, labels
