"""Models with windows, chunks, sinks or states: our loop against lock-step `generate`, per token.

Ten small models with random weights, one of each shape. The workload is like the drift loop's: 8
conversations, each with a turn and three forks of it per round, so 32 rows that share prefixes. The
peer puts the same chats into one left-padded `generate` batch, re-encoding the history. Both sample
replies of the same maximum length, alternate in one process, and are timed per generated token.

    python benchmarks/modern.py --out benchmarks/results/modern.json
    python benchmarks/modern.py mistral lfm2          # only these
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import transformers
from stamp import measured_on, write_json
from transformers import AutoConfig, AutoModelForCausalLM

import holdfast
from holdfast import Request, Sampling
from holdfast.attention import install
from holdfast.models.fingerprint import Fingerprint
from holdfast.models.loading import reuses_cache, stop_ids
from holdfast.models.local import LocalModel

CONVERSATIONS, FORKS = 8, 3
SHAPE = {
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
SHAPES = {
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
TEXT = "Tell me of the garden, the river, and the old town where people talk about music. "
Chat = list[dict[str, str]]
Answer = Callable[[Sequence[Chat], Sequence[int]], tuple[list[str], int]]


def build(kind: str, tokenizer) -> tuple[LocalModel, transformers.PreTrainedModel]:
    """Two models of this kind with the same weights: ours and transformers' own."""
    special = {
        f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("eos", "pad")
    }
    options = {**SHAPE, **SHAPES[kind], **special, "bos_token_id": tokenizer.eos_token_id}
    config = AutoConfig.for_model(kind, vocab_size=len(tokenizer), **options)
    pair = []
    for _ in range(2):
        torch.manual_seed(0)
        pair.append(AutoModelForCausalLM.from_config(config.__class__(**config.to_dict())).eval())
    mine, stock = pair
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


def ours(model: LocalModel, sampling: Sampling) -> Answer:
    """Answers in one session, whose threads keep the first row of each conversation."""
    session = model.session()

    def answer(chats: Sequence[Chat], threads: Sequence[int]) -> tuple[list[str], int]:
        requests = [
            Request(chat, (), sampling, seed=seed, thread=thread, keep=seed < CONVERSATIONS)
            for seed, (chat, thread) in enumerate(zip(chats, threads, strict=True))
        ]
        replies = session.generate_batch(requests)
        tokens = sum(len(reply.token_ids) + (reply.stop_reason == "stop") for reply in replies)
        return [reply.text for reply in replies], tokens

    return answer


def lock_step(stock, tokenizer, sampling: Sampling) -> Answer:
    """Answers all chats in one left-padded batch, encoding each from the start."""

    @torch.inference_mode()
    def answer(chats: Sequence[Chat], threads: Sequence[int]) -> tuple[list[str], int]:
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
        ended = (written == tokenizer.eos_token_id).cumsum(-1)
        tokens = int((ended == 0).sum() + (ended > 0).any(-1).sum())
        return tokenizer.batch_decode(written, skip_special_tokens=True), tokens

    return answer


def play(answer: Answer, rounds: int) -> float:
    """Plays the given number of rounds; returns seconds per generated token."""
    chats: list[Chat] = [
        [{"role": "system", "content": "You hold on to what you were told. " * (1 + number % 3)}]
        for number in range(CONVERSATIONS)
    ]
    started = time.perf_counter()
    tokens = 0
    for turn in range(rounds):
        users = [TEXT * (1 + (number + turn) % 3) for number in range(CONVERSATIONS)]
        requests = [
            [*chat, {"role": "user", "content": text}]
            for chat, text in zip(chats, users, strict=True)
        ]
        forks = [
            [*chat, {"role": "user", "content": f"Question {fork}: what do you hold on to?"}]
            for chat in chats
            for fork in range(FORKS)
        ]
        threads = [*range(CONVERSATIONS), *(n for n in range(CONVERSATIONS) for _ in range(FORKS))]
        texts, count = answer([*requests, *forks], threads)
        tokens += count
        for number, request in enumerate(requests):
            chats[number] = [*request, {"role": "assistant", "content": texts[number]}]
    return (time.perf_counter() - started) / tokens


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
    for kind in arguments.kinds or SHAPES:
        model, stock = build(kind, tokenizer)
        assert model.reuses_cache, kind
        play(ours(model, sampling), 1)
        play(lock_step(stock, tokenizer, sampling), 1)
        seconds = {"ours": [], "lock_step": []}
        for _ in range(arguments.repetitions):
            seconds["ours"].append(play(ours(model, sampling), arguments.rounds))
            peer = lock_step(stock, tokenizer, sampling)
            seconds["lock_step"].append(play(peer, arguments.rounds))
        relative = [peer / mine for mine, peer in zip(*seconds.values(), strict=True)]
        rows.append(
            {
                "type": kind,
                "goes_on": model.runner.supports_chunked_prefill,
                "ratio": {
                    "median": statistics.median(relative),
                    "low": min(relative),
                    "high": max(relative),
                    "repetitions": relative,
                },
                "seconds_per_token": {who: statistics.median(s) for who, s in seconds.items()},
            }
        )
        print(kind, {name: round(rows[-1]["ratio"][name], 2) for name in ("median", "low", "high")})
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
