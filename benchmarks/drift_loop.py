"""The drift loop against two implementations that use only `transformers`.

All play the same 32 conversations of 8 rounds with a probe of each kind per round, on the same
model, in this process. The peers:

- lock-step: all conversations of a round in one left-padded `generate` batch, re-encoding the
  history. A round's probes and agent turns share one batch; this is the peer to beat.
- pipeline: one conversation at a time through the text-generation pipeline, on a slice of the
  conversations, since it takes long.

All use the same processors, through torch's threads.

A repetition runs all three one after another, so that they see the same conditions. Reported are
medians over repetitions of (peer's seconds per generated token) / (ours). Replies are sampled, so
their lengths differ; the ratio per conversation is reported too.

The peers' model is a plain transformers model with the weights, dtype and stop tokens of ours. With
--busy N, N other processes keep the processors busy meanwhile. The record is written after each
repetition, and repeating the command continues from there.

    python benchmarks/drift_loop.py --out benchmarks/results/drift_loop.json
    python benchmarks/drift_loop.py --model smollm2 --suite everyday --temperature 0.7
        --max-new-tokens 60 --peers lock_step --out FILE.json
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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from stamp import measured_on

import holdfast
from holdfast import drift
from holdfast.drift.dialog import Dialog, agent_view, user_view
from holdfast.drift.pairing import draw_pairing
from holdfast.records import Turn

Chat = list[dict[str, str]]
AnswerAll = Callable[[Sequence[Chat]], list[str]]
# rows of the lock-step peer are padded to a multiple of this, so that fewer shapes occur
PADDING = 64


@dataclass(frozen=True)
class Played:
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


def play(suite, settings, numbers: Sequence[int], answer: AnswerAll, tokenizer) -> Played:
    """Plays the numbered conversations round by round; `answer` takes a step's chats at once."""
    talks = [Dialog(draw_pairing(suite, settings, number)) for number in numbers]
    written = []

    def ask(chats: Sequence[Chat]) -> list[str]:
        texts = answer(chats) if chats else []
        written.extend(texts)
        return texts

    started = time.perf_counter()
    for number in range(1, settings.rounds + 1):
        started_by = [talk.pairing.starter for talk in talks]
        user_texts = started_by if number == 1 else ask([user_view(talk) for talk in talks])
        probes = [
            [*agent_view(talk), {"role": "user", "content": probe.question}]
            for talk in talks
            for probe in talk.pairing.every_probe
        ]
        for talk, text in zip(talks, user_texts, strict=True):
            talk.turns.append(turn_of(number, "user", text))
        replies = ask([*map(agent_view, talks), *probes])
        for talk, text in zip(talks, replies, strict=False):
            talk.turns.append(turn_of(number, "agent", text))
    return Played(len(talks), time.perf_counter() - started, count(written, tokenizer))


def turn_of(number: int, speaker: str, text: str) -> Turn:
    """A turn that a peer wrote."""
    return Turn(round=number, speaker=speaker, text=text, stop_reason="stop")


def count(texts: Sequence[str], tokenizer) -> int:
    """The number of generated tokens: those of the texts, and one end token each."""
    return sum(
        len(ids) + 1 for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    )


def plain_copy(model) -> tuple:
    """A plain transformers model with our weights and dtype, and a tokenizer that pads."""
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
    return stock.eval(), tokenizer


def lock_step(model, tokenizer, sampling) -> AnswerAll:
    """Answers all chats in one left-padded batch."""

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
        written = model.generate(
            **inputs.to(model.device),
            do_sample=True,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=0,
            max_new_tokens=sampling.max_new_tokens,
            pad_token_id=tokenizer.pad_token_id,
        )
        new = written[:, inputs["input_ids"].shape[1] :]
        return tokenizer.batch_decode(new, skip_special_tokens=True)

    return answer


def one_by_one(pipeline, sampling) -> AnswerAll:
    """Answers one chat after another through the pipeline."""

    def answer(chats: Sequence[Chat]) -> list[str]:
        return [
            pipeline(
                list(chat),
                max_new_tokens=sampling.max_new_tokens,
                do_sample=True,
                top_k=0,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                return_full_text=False,
            )[0]["generated_text"]
            for chat in chats
        ]

    return answer


def ours(model, suite, settings) -> tuple[Played, float]:
    """Plays all conversations; also returns the forwarded tokens over the minimum possible."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        records = drift.run(model, suite, folder, settings).records
        seconds = time.perf_counter() - started
    texts = [turn.text for record in records for turn in record.turns[1:]]
    texts += [probe.reply for record in records for probe in record.probes]
    forwarded = sum(record.tokens.forwarded for record in records)
    least = sum(record.tokens.least for record in records)
    return Played(len(records), seconds, count(texts, model.tokenizer)), forwarded / least


def repetition(model, suite, settings, answers: dict[str, AnswerAll], share: range) -> dict:
    """Runs our loop and the peers once; the pipeline runs only the conversations in `share`.

    Returns the seconds of each, and those of the peers divided by ours.
    """
    played, excess = ours(model, suite, settings)
    peers = {
        name: play(
            suite,
            settings,
            share if name == "pipeline" else range(settings.conversations),
            answer,
            model.tokenizer,
        )
        for name, answer in answers.items()
    }
    row = {"forwarded_over_least": excess}
    for name, who in {"ours": played, **peers}.items():
        row[name] = {
            "seconds_per_conversation": who.per_conversation,
            "seconds_per_token": who.per_token,
        }
    for name, who in peers.items():
        row[name]["ratio"] = who.per_conversation / played.per_conversation
        row[name]["ratio_per_token"] = who.per_token / played.per_token
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--chat-template", help="as `holdfast drift` takes it")
    parser.add_argument("--suite", default="starter")
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--max-new-tokens", type=int, default=400)
    parser.add_argument("--peers", nargs="+", default=["lock_step", "pipeline"])
    parser.add_argument("--busy", type=int, default=0, help="other processes that compute")
    parser.add_argument("--conversations", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 3], help="taken in turn")
    parser.add_argument("--threads", type=int, default=2, help="of torch, for everyone alike")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.set_verbosity_error()

    model = holdfast.load(arguments.model, chat_template=arguments.chat_template)
    suite = drift.load_suite(arguments.suite)
    torch.set_num_threads(arguments.threads)
    stock, tokenizer = plain_copy(model)
    pipeline = transformers.pipeline("text-generation", model=stock, tokenizer=tokenizer)
    sampling = holdfast.Sampling(
        temperature=arguments.temperature, max_new_tokens=arguments.max_new_tokens
    )
    answers = {
        "lock_step": lock_step(stock, tokenizer, sampling),
        "pipeline": one_by_one(pipeline, sampling),
    }
    answers = {name: answers[name] for name in arguments.peers}
    share = max(1, arguments.conversations // arguments.repetitions)
    warm = drift.Settings(rounds=1, conversations=2, user_prompt="suite", sampling=sampling)
    repetition(model, suite, warm, answers, range(1))
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(arguments.busy)
    ]
    result = {
        "benchmark": "drift_loop",
        "model": arguments.model,
        "dtype": str(model.hf_model.dtype).removeprefix("torch."),
        "busy": arguments.busy,
        "max_new_tokens": sampling.max_new_tokens,
        "measured_on": measured_on(model),
        "conversations": arguments.conversations,
        "rounds": arguments.rounds,
        "threads": arguments.threads,
    }
    rows = begun(arguments.out, result)
    for index in range(len(rows), arguments.repetitions):
        seed = arguments.seeds[index % len(arguments.seeds)]
        settings = drift.Settings(
            rounds=arguments.rounds,
            conversations=arguments.conversations,
            seed=seed,
            user_prompt="suite",
            sampling=sampling,
        )
        slice_ = range(index * share, (index + 1) * share)
        torch.manual_seed(index)
        row = repetition(model, suite, settings, answers, slice_)
        rows.append({"seed": seed, **row})
        print(json.dumps(rows[-1]), flush=True)
        if arguments.out:
            write(arguments.out, result, rows)
    for other in others:
        other.kill()


def begun(out: Path | None, settings: dict) -> list[dict]:
    """The repetitions in an interrupted run's record, if its commit and settings are the same."""
    record = json.loads(out.read_text()) if out and out.exists() else {}
    same = all(record.get(name) == value for name, value in settings.items())
    return record["repetitions"] if same else []


def write(out: Path, settings: dict, rows: list[dict]) -> None:
    """Writes the record of the repetitions so far, with their medians."""
    peers = [
        name for name, value in rows[0].items() if isinstance(value, dict) and "ratio" in value
    ]
    medians = {
        name: {
            key: statistics.median(row[name][key] for row in rows)
            for key in ("ratio", "ratio_per_token")
        }
        for name in peers
    }
    for name, ratios in medians.items():
        print(name, {key: round(value, 2) for key, value in ratios.items()}, flush=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    record = {**settings, "repetitions": rows, "medians": medians}
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
