"""The drift loop against the plain way: one conversation at a time, `transformers` text-generation pipeline, history encoded again at each turn.

Both play the same 32 conversations of 8 rounds with a probe of each kind per round, on the same model, in this process. Each repetition
runs ours on all of them and the plain way on a slice, so that both see the same machine; the ratio of a repetition is
(plain seconds per conversation) / (our seconds per conversation), and the median over repetitions is reported. Replies are sampled, so
lengths differ a little; seconds per generated token are reported too.

    python benchmarks/drift_loop.py --out benchmarks/results/drift_loop.json
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch
import transformers

import holdfast
from holdfast import drift
from holdfast.drift.selfchat import _agent_view, _Talk, _turn, _user_view, draw_pairing


def plain(pipeline, suite, settings, number: int) -> tuple[float, int]:
    """One conversation, the plain way; returns seconds and generated tokens."""
    talk, written = _Talk(draw_pairing(suite, settings, number)), 0

    def say(messages) -> holdfast.Reply:
        nonlocal written
        sampling = settings.sampling
        text = pipeline(messages, max_new_tokens=sampling.max_new_tokens, do_sample=True, temperature=sampling.temperature,
                        top_p=sampling.top_p, top_k=0, return_full_text=False)[0]["generated_text"]
        written += len(pipeline.tokenizer(text, add_special_tokens=False)["input_ids"]) + 1
        return holdfast.Reply(text, None, "stop")

    started = time.perf_counter()
    for round_number in range(1, settings.rounds + 1):
        user = holdfast.Reply(talk.pairing.starter, None, "stop") if round_number == 1 else say(_user_view(talk))
        for question in talk.pairing.probes + talk.pairing.adoption_probes:
            say([*_agent_view(talk), {"role": "user", "content": question}])
        talk.turns.append(_turn(round_number, "user", user))
        talk.turns.append(_turn(round_number, "agent", say(_agent_view(talk))))
    return time.perf_counter() - started, written


def ours(model, suite, settings) -> tuple[float, int, float]:
    """All conversations; returns seconds, generated tokens, and tokens forwarded over the least possible."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        records = drift.run(model, suite, folder, settings).records
        seconds = time.perf_counter() - started
    texts = [turn["text"] for r in records for turn in r["turns"][1:]] + [probe["reply"] for r in records for probe in r["probes"]]
    written = sum(len(ids) + 1 for ids in model.tokenizer(texts, add_special_tokens=False)["input_ids"])
    forwarded, least = (sum(r["tokens"][key] for r in records) for key in ("forwarded", "least"))
    return seconds, written, forwarded / least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--conversations", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repetitions", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.set_verbosity_error()

    model, suite = holdfast.load(arguments.model), drift.load_suite("starter")
    settings = drift.Settings(rounds=arguments.rounds, conversations=arguments.conversations)
    stock = transformers.AutoModelForCausalLM.from_pretrained(model.hf_model.config._name_or_path, dtype=torch.float32)
    pipeline = transformers.pipeline("text-generation", model=stock, tokenizer=model.tokenizer)
    share = arguments.conversations // arguments.repetitions
    rows = []
    plain(pipeline, suite, drift.Settings(rounds=1, conversations=1), 0)  # warm up
    for repetition in range(arguments.repetitions):
        seconds, written, excess = ours(model, suite, settings)
        slow = [plain(pipeline, suite, settings, repetition * share + index) for index in range(share)]
        row = {
            "ours_seconds_per_conversation": seconds / arguments.conversations,
            "plain_seconds_per_conversation": sum(s for s, _ in slow) / share,
            "ours_seconds_per_token": seconds / written,
            "plain_seconds_per_token": sum(s for s, _ in slow) / sum(w for _, w in slow),
            "forwarded_over_least": excess,
        }
        row["ratio"] = row["plain_seconds_per_conversation"] / row["ours_seconds_per_conversation"]
        row["ratio_per_token"] = row["plain_seconds_per_token"] / row["ours_seconds_per_token"]
        rows.append(row)
        print({key: round(value, 4) for key, value in row.items()}, flush=True)
    result = {
        "benchmark": "drift_loop", "model": arguments.model, "fingerprint": model.fingerprint, "conversations": arguments.conversations,
        "rounds": arguments.rounds, "threads": arguments.threads, "machine": platform.machine(), "torch": torch.__version__,
        "transformers": transformers.__version__, "repetitions": rows,
        "median_ratio": statistics.median(row["ratio"] for row in rows),
        "median_ratio_per_token": statistics.median(row["ratio_per_token"] for row in rows),
    }
    print(f"median ratio {result['median_ratio']:.1f} (per generated token {result['median_ratio_per_token']:.1f})")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
