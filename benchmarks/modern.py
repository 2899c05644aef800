"""Compares our loop with batched `generate` on models with windows, chunks, sinks or states.

There are ten small models with random weights, one of each kind. As in drift_loop.py, eight
conversations are played; in every round, each has a turn and three forks of it, which makes 32 rows
that share prefixes. The peer puts the same chats into one left-padded `generate` batch, re-encoding
the history. Both sample replies of the same maximum length, alternate in one process, and are timed
per generated token.

    python benchmarks/modern.py --out benchmarks/results/modern.json
    python benchmarks/modern.py mistral lfm2          # only these
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from stamp import measured_on, write_json
from transformers import AutoConfig, AutoModelForCausalLM

import holdfast
from holdfast import Request, Sampling
from holdfast.attention import install
from holdfast.models.fingerprint import Fingerprint
from holdfast.models.local import LocalModel
from holdfast.models.model_properties import reuses_cache, stop_ids

CONVERSATIONS = 8
FORKS = 3
SIZES = {  # of every model
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4096,
}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16, "mamba_n_groups": 1}
WINDOW = {"sliding_window": 128}
KINDS = {  # transformers' name of each kind of model, and its further options
    "mistral": WINDOW,
    "phi3": WINDOW,
    "gemma2": WINDOW,
    "gemma3_text": WINDOW,
    "gpt_oss": {**WINDOW, **EXPERTS},
    "llama4_text": {
        "attention_chunk_size": 128,
        "intermediate_size_mlp": 512,
        "no_rope_layers": [1, 1, 1, 0],
        **EXPERTS,
    },
    "qwen3_next": {
        "layer_types": [*["linear_attention"] * 3, "full_attention"],
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "shared_expert_intermediate_size": 128,
    },
    "lfm2": {
        "layer_types": ["conv", "conv", "full_attention", "conv"],
        "block_auto_adjust_ff_dim": False,
    },
    "falcon_h1": {"mamba_d_ssm": 512, **MAMBA},
    "jamba": {"attn_layer_period": 4, "attn_layer_offset": 2, "num_experts": 2},
}
SENTENCE = "Tell me of the garden, the river, and the old town where people talk about music. "
Chat = list[dict[str, str]]


class Replies(NamedTuple):
    """The replies to some chats."""

    texts: list[str]
    num_tokens: int  # of all of them, counting the ends


# replies to chats, each of which is in the conversation of that number
Answer = Callable[[Sequence[Chat], Sequence[int]], Replies]


def build(kind: str, tokenizer) -> tuple[LocalModel, transformers.PreTrainedModel]:
    """Two models of this kind with the same weights: ours and transformers' own."""
    options = {
        **SIZES,
        **KINDS[kind],
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.eos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    config = AutoConfig.for_model(kind, **options)
    mine, stock = (with_random_weights(config) for _ in range(2))
    steerable = install(mine)
    model = LocalModel(
        kind,
        Fingerprint(mine, tokenizer),
        mine,
        tokenizer,
        stop_ids(mine, tokenizer),
        reuses_cache(mine),
        steerable,
    )
    return model, stock


def with_random_weights(config) -> transformers.PreTrainedModel:
    """A model of a copy of the configuration, with the same weights every time."""
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config.__class__(**config.to_dict())).eval()


def ours(model: LocalModel, sampling: Sampling) -> Answer:
    """Answers in one session, which keeps the cache of the first chat of each conversation."""
    session = model.session()

    def answer(chats: Sequence[Chat], conversations: Sequence[int]) -> Replies:
        requests = [
            Request(chat, (), sampling, seed=seed, thread=number, keep=seed < CONVERSATIONS)
            for seed, (chat, number) in enumerate(zip(chats, conversations, strict=True))
        ]
        replies = session.generate_batch(requests)
        return Replies(
            [reply.text for reply in replies],
            sum(len(reply.token_ids) + (reply.stop_reason == "stop") for reply in replies),
        )

    return answer


def lock_step(stock, tokenizer, sampling: Sampling) -> Answer:
    """Answers all chats in one left-padded batch, encoding each from the start."""

    @torch.inference_mode()
    def answer(chats: Sequence[Chat], conversations: Sequence[int]) -> Replies:
        inputs = tokenizer.apply_chat_template(
            list(chats),
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
            padding=True,
        )
        inputs.pop("token_type_ids", None)
        written = stock.generate(
            **inputs,
            do_sample=True,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=0,
            max_new_tokens=sampling.max_new_tokens,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )[:, inputs["input_ids"].shape[1] :]
        ends = (written == tokenizer.eos_token_id).cumsum(-1)
        num_tokens = int((ends == 0).sum() + (ends > 0).any(-1).sum())
        return Replies(tokenizer.batch_decode(written, skip_special_tokens=True), num_tokens)

    return answer


def play(answer: Answer, rounds: int) -> float:
    """Plays the given number of rounds; returns seconds per generated token."""
    numbers = range(CONVERSATIONS)
    history: list[Chat] = [
        [{"role": "system", "content": "You hold on to what you were told. " * (1 + number % 3)}]
        for number in numbers
    ]
    started = time.perf_counter()
    num_tokens = 0
    for turn in range(rounds):
        chats = [
            [*history[number], {"role": "user", "content": SENTENCE * (1 + (number + turn) % 3)}]
            for number in numbers
        ]
        forks = []
        for number in numbers:
            for fork in range(FORKS):
                question = f"Question {fork}: what do you hold on to?"
                forks.append([*history[number], {"role": "user", "content": question}])
        fork_numbers = [number for number in numbers for _ in range(FORKS)]
        replies = answer([*chats, *forks], [*numbers, *fork_numbers])
        num_tokens += replies.num_tokens
        for number in numbers:
            reply = {"role": "assistant", "content": replies.texts[number]}
            history[number] = [*chats[number], reply]
    return (time.perf_counter() - started) / num_tokens


def compare(kind: str, tokenizer, sampling: Sampling, rounds: int, repetitions: int) -> dict:
    """Times both on a kind of model; returns the row of the record."""
    model, stock = build(kind, tokenizer)
    assert model.reuses_cache, kind
    play(ours(model, sampling), 1)
    play(lock_step(stock, tokenizer, sampling), 1)
    our_seconds = []
    peer_seconds = []
    for _ in range(repetitions):
        our_seconds.append(play(ours(model, sampling), rounds))
        peer_seconds.append(play(lock_step(stock, tokenizer, sampling), rounds))
    ratios = [peer / mine for mine, peer in zip(our_seconds, peer_seconds, strict=True)]
    return {
        "type": kind,
        "goes_on": model.runner.supports_chunked_prefill,
        "ratio": {
            "median": statistics.median(ratios),
            "low": min(ratios),
            "high": max(ratios),
            "repetitions": ratios,
        },
        "seconds_per_token": {
            "ours": statistics.median(our_seconds),
            "lock_step": statistics.median(peer_seconds),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=32, help="of a reply at most")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of torch, for both alike")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    tokenizer = holdfast.load().tokenizer
    tokenizer.padding_side = "left"
    torch.set_num_threads(arguments.threads)
    sampling = Sampling(1.0, 0.9, arguments.tokens)
    rows = []
    for kind in arguments.kinds or KINDS:
        row = compare(kind, tokenizer, sampling, arguments.rounds, arguments.repetitions)
        rows.append(row)
        print(kind, {name: round(row["ratio"][name], 2) for name in ("median", "low", "high")})
    if arguments.out:
        result = {
            "benchmark": "modern",
            "measured_on": measured_on(),
            "conversations": CONVERSATIONS,
            "forks": FORKS,
            "rounds": arguments.rounds,
            "tokens": arguments.tokens,
            "threads": arguments.threads,
            "rows": rows,
        }
        write_json(result, arguments.out)


if __name__ == "__main__":
    main()
