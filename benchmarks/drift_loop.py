"""Compares the speed of the drift loop with lock-step `generate` of transformers.

Both play the same conversations with a probe of each kind per round, on the same model, in this
process and with the same threads. The peer answers all conversations of a round in one left-padded
`generate` batch, which encodes the history again; the round's probes and agent turns share a batch.

A repetition runs both one after the other, so that they see the same conditions. Reported are
medians over repetitions of (peer's seconds per generated token) / (ours). Replies are sampled, so
their lengths differ; the ratio per conversation is reported too.

The peer's model is a plain transformers model with the weights, dtype and stop tokens of ours. The
record is written after each repetition, and repeating the command continues from there.

    python benchmarks/drift_loop.py --out benchmarks/results/drift_loop_qwen.json
"""

from __future__ import annotations

import os

# as the command line does, before torch
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

import argparse
import copy
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from stamp import measured_on, write_json
from transformers import PreTrainedModel, PreTrainedTokenizerBase

import holdfast
from holdfast import drift
from holdfast.drift import Suite
from holdfast.drift.dialog import Dialog, agent_view, user_view
from holdfast.drift.pairing import draw_pairing
from holdfast.models.local import LocalModel
from holdfast.records import Turn

Chat = list[dict[str, str]]
AnswerAll = Callable[[Sequence[Chat]], list[str]]
# rows of the lock-step peer are padded to a multiple of this, so that fewer shapes occur
PADDING = 64


@dataclass(frozen=True)
class PlayedConversations:
    """Time and tokens of a set of conversations."""

    conversations: int
    seconds: float
    tokens: int

    @property
    def per_conversation(self) -> float:
        return self.seconds / self.conversations

    @property
    def per_token(self) -> float:
        return self.seconds / self.tokens


def play_in_lock_step(
    suite: Suite, settings: drift.Settings, answer: AnswerAll, tokenizer: PreTrainedTokenizerBase
) -> PlayedConversations:
    """Plays all conversations round by round; `answer` takes a step's chats at once."""
    dialogs = [
        Dialog(draw_pairing(suite, settings, number)) for number in range(settings.conversations)
    ]
    generated: list[str] = []

    def ask(chats: Sequence[Chat]) -> list[str]:
        texts = answer(chats)
        generated.extend(texts)
        return texts

    started = time.perf_counter()
    for number in range(1, settings.rounds + 1):
        if number == 1:
            user_texts = [dialog.pairing.starter for dialog in dialogs]
        else:
            user_texts = ask([user_view(dialog) for dialog in dialogs])
        probes = [
            [*agent_view(dialog), {"role": "user", "content": probe.question}]
            for dialog in dialogs
            for probe in dialog.pairing.round_probes
        ]
        for dialog, text in zip(dialogs, user_texts, strict=True):
            dialog.turns.append(turn_of(number, "user", text))
        answers = ask([*map(agent_view, dialogs), *probes])
        replies = answers[: len(dialogs)]  # those of the probes only take time
        for dialog, text in zip(dialogs, replies, strict=True):
            dialog.turns.append(turn_of(number, "agent", text))
    seconds = time.perf_counter() - started
    return PlayedConversations(len(dialogs), seconds, count_tokens(generated, tokenizer))


def turn_of(number: int, speaker: str, text: str) -> Turn:
    """A turn that the peer wrote."""
    return Turn(round=number, speaker=speaker, text=text, stop_reason="stop")


def count_tokens(texts: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> int:
    """The number of generated tokens: those of the texts, and one end token each."""
    return sum(
        len(ids) + 1 for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    )


class PlainModel(NamedTuple):
    """A model as transformers has it, and a tokenizer that pads on the left."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def plain_copy(model: LocalModel) -> PlainModel:
    """Copies a model of ours: the same weights, dtype and stop tokens."""
    stock = transformers.AutoModelForCausalLM.from_config(
        copy.deepcopy(model.hf_model.config), attn_implementation="sdpa"
    ).to(model.hf_model.device, model.hf_model.dtype)
    stock.load_state_dict(model.hf_model.state_dict())
    stock.generation_config = copy.deepcopy(model.hf_model.generation_config)
    stock.generation_config.eos_token_id = sorted(model.stop_ids)
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token_id = tokenizer.eos_token_id
    return PlainModel(stock.eval(), tokenizer)


def batch_answers(peer: PlainModel, sampling: holdfast.Sampling) -> AnswerAll:
    """Returns a function that answers all chats in one left-padded `generate` batch."""
    model, tokenizer = peer

    @torch.inference_mode()
    def answer(chats: Sequence[Chat]) -> list[str]:
        inputs = tokenizer.apply_chat_template(
            [list(chat) for chat in chats],
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            padding=True,
            pad_to_multiple_of=PADDING,
        )
        inputs.pop("token_type_ids", None)
        token_ids = model.generate(
            **inputs.to(model.device),
            do_sample=True,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=0,
            max_new_tokens=sampling.max_new_tokens,
            pad_token_id=tokenizer.pad_token_id,
        )
        replies = token_ids[:, inputs["input_ids"].shape[1] :]
        return tokenizer.batch_decode(replies, skip_special_tokens=True)

    return answer


class OurRun(NamedTuple):
    """The conversations as the drift loop plays them."""

    played: PlayedConversations
    excess: float  # forwarded tokens over the minimum possible


def run_ours(model: LocalModel, suite: Suite, settings: drift.Settings) -> OurRun:
    """Plays all conversations in the drift loop."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        records = drift.run(model, suite, folder, settings).records
        seconds = time.perf_counter() - started
    texts = [turn.text for record in records for turn in record.turns[1:]]
    texts += [probe.reply for record in records for probe in record.probes]
    forwarded = sum(record.tokens.forwarded for record in records)
    least = sum(record.tokens.least for record in records)
    num_tokens = count_tokens(texts, model.tokenizer)
    return OurRun(PlayedConversations(len(records), seconds, num_tokens), forwarded / least)


def repetition(
    model: LocalModel, suite: Suite, settings: drift.Settings, answer: AnswerAll
) -> dict:
    """Runs our loop and the peer once: the seconds of each, and the peer's divided by ours."""
    ours, excess = run_ours(model, suite, settings)
    peer = play_in_lock_step(suite, settings, answer, model.tokenizer)
    return {
        "forwarded_over_least": excess,
        "ours": {
            "seconds_per_conversation": ours.per_conversation,
            "seconds_per_token": ours.per_token,
        },
        "lock_step": {
            "seconds_per_conversation": peer.per_conversation,
            "seconds_per_token": peer.per_token,
            "ratio": peer.per_conversation / ours.per_conversation,
            "ratio_per_token": peer.per_token / ours.per_token,
        },
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--chat-template", help="as `holdfast drift` takes it")
    parser.add_argument("--suite", default="everyday")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--max-new-tokens", type=int, default=60)
    parser.add_argument("--conversations", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 3], help="taken in turn")
    parser.add_argument("--threads", type=int, default=2, help="of torch, for everyone alike")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    transformers.utils.logging.set_verbosity_error()
    model = holdfast.load(arguments.model, chat_template=arguments.chat_template)
    torch.set_num_threads(arguments.threads)
    suite = drift.load_suite(arguments.suite)
    sampling = holdfast.Sampling(
        temperature=arguments.temperature, max_new_tokens=arguments.max_new_tokens
    )
    answer = batch_answers(plain_copy(model), sampling)
    warm_up = drift.Settings(rounds=1, conversations=2, user_prompt="suite", sampling=sampling)
    repetition(model, suite, warm_up, answer)

    conditions = conditions_of(arguments, model)
    rows = earlier_repetitions(arguments.out, conditions)
    for index in range(len(rows), arguments.repetitions):
        seed = arguments.seeds[index % len(arguments.seeds)]
        settings = drift.Settings(
            rounds=arguments.rounds,
            conversations=arguments.conversations,
            seed=seed,
            user_prompt="suite",
            sampling=sampling,
        )
        torch.manual_seed(index)
        row = repetition(model, suite, settings, answer)
        rows.append({"seed": seed, **row})
        print(json.dumps(rows[-1]), flush=True)
        if arguments.out:
            write(arguments.out, conditions, rows)


def conditions_of(arguments: argparse.Namespace, model: LocalModel) -> dict:
    """The conditions that all repetitions in a record share: the commit, the model, the options."""
    options = vars(arguments).items()
    return {
        "benchmark": "drift_loop",
        "dtype": str(model.hf_model.dtype).removeprefix("torch."),
        "measured_on": measured_on(model),
        **{name: value for name, value in options if name not in ("out", "repetitions")},
    }


def earlier_repetitions(out: Path | None, conditions: dict) -> list[dict]:
    """The repetitions in an interrupted run's record, if it has the same conditions."""
    record = json.loads(out.read_text()) if out and out.exists() else {}
    is_same = all(name in record and record[name] == value for name, value in conditions.items())
    return record["repetitions"] if is_same else []


def write(out: Path, conditions: dict, rows: list[dict]) -> None:
    """Writes the record of the repetitions so far, with their medians."""
    medians = {
        key: statistics.median(row["lock_step"][key] for row in rows)
        for key in ("ratio", "ratio_per_token")
    }
    print({key: round(value, 2) for key, value in medians.items()}, flush=True)
    record = {**conditions, "repetitions": rows, "medians": {"lock_step": medians}}
    write_json(record, out)


if __name__ == "__main__":
    main()
