"""The effect of the prompt leaving the window: Gemma 3 270M, most of whose layers see the last 512
tokens, compared with SmolLM2, whose layers see everything.

Both read the same dialogs: SmolLM2's with scripted user messages, each continued by the turns of
the next one, so that the prompt is out of the window at the end. Two things are measured after
selected rounds: the attention mass on the system prompt, by kind of layer; and whether, after a
probe, a reply that follows the prompt's rule is more likely than one that breaks it (the suite's
labelled replies). Gemma is a base model, so it reads the dialog as a transcript.

    python benchmarks/window.py --runs runs/window --out benchmarks/results/window.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from group_intervals import interval_over_groups
from on_smollm2 import ROUNDS, SAMPLING, prompts
from screen import family_of
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.models.requests import Request
from holdfast.records import Conversation

TRANSCRIPT = (
    "{{ bos_token }}{% for message in messages %}{{ {'system': 'Instructions', 'user': 'User',"
    " 'assistant': 'Assistant'}[message.role] }}: {{ message.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)


READ = (1, 2, 4, 8, 16)  # rounds after which to measure
CONVERSATIONS = 48  # only the first ones are measured


def dialogs(runs: Path) -> list[dict]:
    """SmolLM2's dialogs with scripted users, each continued by the turns of the next one."""
    settings = drift.Settings(
        rounds=ROUNDS,
        conversations=CONVERSATIONS,
        seed=1,
        sampling=SAMPLING,
        adoption=False,
        pairs="in-turn",
    )
    model = holdfast.load("smollm2", dtype="bfloat16")
    cast = drift.Cast(user_turns="everyday")
    run = drift.run(model, prompts(None), runs, settings, cast=cast)
    records = sorted(run.records, key=lambda record: record.conversation)
    return [
        record.model_copy(update={"turns": record.turns + following.turns})
        for record, following in zip(records, [*records[1:], records[0]], strict=True)
    ]


def history(record: Conversation, rounds: int) -> list[dict]:
    """The system prompt and the first `rounds` rounds."""
    turns = [
        {"role": "user" if t.speaker == "user" else "assistant", "content": t.text}
        for t in record.turns[: 2 * rounds]
    ]
    return [{"role": "system", "content": record.agent.system_prompt}, *turns]


def windowed(model) -> list[bool]:
    """Whether each layer sees only a window of the tokens."""
    config = model.hf_model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
    return [kind == "sliding_attention" for kind in kinds]


def window_of(model) -> int:
    """How many tokens the model's windowed layers see."""
    return getattr(model.hf_model.config.get_text_config(), "sliding_window", None) or 2**30


@torch.inference_mode()
def masses(model, records) -> list[list[dict]]:
    """Measures the mass on the prompt at the last token of the agent's turn, by dialog and round.

    Each entry has the distance from the prompt in tokens and, by kind of layer, the mass and the
    mass under uniform attention.
    """
    local = np.array(windowed(model))
    window = window_of(model)
    rows = []
    for record in records:
        row = []
        for number in READ:
            chats = holdfast.encode_chats([history(record, number)], model.tokenizer)
            with holdfast.steering(model.hf_model, chats.span_mask, [], trace=True) as steered:
                model.hf_model(**chats.inputs, logits_to_keep=1)
            mass = steered.traces[0].mass[:, :, -1].mean(1).numpy()
            span = chats.span_mask[0]
            length = chats.input_ids.shape[1]
            seen = span[-window:]
            row.append(
                {
                    "distance": length - 1 - int(span.nonzero()[-1]),
                    "full": [mass[~local].mean(), span.float().mean()],
                    "windowed": [mass[local].mean(), seen.float().mean()] if local.any() else None,
                }
            )
        rows.append(row)
    return rows


def preferences(model, records) -> np.ndarray:
    """Measures how often a reply that follows the rule is likelier than one that breaks it.

    The replies follow a probe in place of the round; they are compared by log-probability per
    token. Returns shares, [dialog, round].
    """
    cases = {case.id: case for case in prompts(None).cases}
    values = np.full((len(records), len(READ)), np.nan)
    for row, record in enumerate(records):
        requests = []
        replies = []
        rounds = []
        for at, number in enumerate(READ):
            for rule in cases[record.agent.id].rules:
                probe = {"role": "user", "content": rule.probes[0]}
                requests.append(Request((*history(record, number - 1), probe)))
                replies.append([rule.follows[0], rule.breaks[0]])
                rounds.append(at)
        scored = model.session().score_batch(requests, replies)
        kept = np.array(
            [np.diff(np.array(s.log_probabilities) / np.array(s.tokens))[0] < 0 for s in scored]
        )
        for at in range(len(READ)):
            values[row, at] = kept[np.array(rounds) == at].mean()
    return values


def measure(name: str, records) -> dict:
    model = holdfast.load(name, dtype="bfloat16")
    if model.tokenizer.chat_template is None:
        model.tokenizer.chat_template = TRANSCRIPT
    groups = [family_of(record.agent.id) for record in records]
    traced = masses(model, records)
    kept = preferences(model, records)
    rounds = []
    for at, number in enumerate(READ):
        cells = [row[at] for row in traced]
        row = {
            "round": number,
            "distance": round(float(np.mean([cell["distance"] for cell in cells])), 1),
            "keeps": interval_over_groups(kept[:, at], groups),
        }
        for kind in ("full", "windowed"):
            pairs = [cell[kind] for cell in cells]
            if None not in pairs:
                mass, even = np.array(pairs).T
                row[f"mass_{kind}"] = interval_over_groups(mass, groups)
                row[f"even_{kind}"] = round(float(even.mean()), 5)
        rounds.append(row)
        print(name, json.dumps(row), flush=True)
    return {
        "model": name,
        "fingerprint": model.fingerprint,
        "layers": len(windowed(model)),
        "windowed_layers": sum(windowed(model)),
        "window": window_of(model) if any(windowed(model)) else None,
        "change_of_keeps": interval_over_groups(kept[:, -1] - kept[:, 0], groups),
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/window"))
    parser.add_argument("--count", type=int, default=32)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    records = dialogs(arguments.runs)[: arguments.count]
    record = {
        "benchmark": "window",
        "measured_on": measured_on(),
        "dialogs": len(records),
        "models": [measure(name, records) for name in ("smollm2", "gemma-3-270m")],
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
