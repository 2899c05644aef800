"""Measures the effect of the prompt leaving the window: Gemma 3 270M, most of whose layers see the
last 512 tokens, compared with SmolLM2, whose layers see everything.

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
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from group_intervals import interval_over_groups
from on_smollm2 import ROUNDS, SAMPLING, prompts
from screen import family_of
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.drift import Rule
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.records import Conversation

TRANSCRIPT = (
    "{{ bos_token }}{% for message in messages %}{{ {'system': 'Instructions', 'user': 'User',"
    " 'assistant': 'Assistant'}[message.role] }}: {{ message.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
MEASURED_ROUNDS = (1, 2, 4, 8, 16)  # after which to measure
CONVERSATIONS = 48  # of the run; only the first ones are measured


class Mass(NamedTuple):
    """The attention mass on the system prompt, as a mean over layers of one kind."""

    measured: float
    uniform: float  # under uniform attention


class PromptMass(NamedTuple):
    """The mass on the system prompt at the last token of a turn of the agent."""

    distance: int  # from the prompt, in tokens
    full: Mass  # in layers that see everything
    windowed: Mass | None  # in layers that see a window; None if there are none


def dialogs(runs: Path) -> list[Conversation]:
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
        {"role": "user" if turn.speaker == "user" else "assistant", "content": turn.text}
        for turn in record.turns[: 2 * rounds]
    ]
    return [{"role": "system", "content": record.agent.system_prompt}, *turns]


def has_window(model: LocalModel) -> list[bool]:
    """Whether each layer sees only a window of the tokens."""
    config = model.hf_model.config.get_text_config()
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
    return [kind == "sliding_attention" for kind in kinds]


def window_of(model: LocalModel) -> int:
    """How many tokens the model's windowed layers see."""
    return getattr(model.hf_model.config.get_text_config(), "sliding_window", None) or 2**30


@torch.inference_mode()
def prompt_mass(model: LocalModel, record: Conversation, rounds: int) -> PromptMass:
    """Measures the mass on the prompt at the last token of the first `rounds` rounds."""
    is_windowed = np.array(has_window(model))
    chats = holdfast.encode_chats([history(record, rounds)], model.tokenizer)
    with holdfast.steering(model.hf_model, chats.span_mask, [], trace=True) as steered:
        model.hf_model(**chats.inputs, logits_to_keep=1)
    mass = steered.traces[0].mass[:, :, -1].mean(1).numpy()  # [layer]
    span = chats.span_mask[0]
    in_window = span[-window_of(model) :]
    in_windowed_layers = None
    if is_windowed.any():
        in_windowed_layers = Mass(mass[is_windowed].mean(), in_window.float().mean())
    return PromptMass(
        distance=chats.input_ids.shape[1] - 1 - int(span.nonzero()[-1]),
        full=Mass(mass[~is_windowed].mean(), span.float().mean()),
        windowed=in_windowed_layers,
    )


def rules_preferred(model: LocalModel, record: Conversation, rules: Sequence[Rule]) -> list[float]:
    """Measures the share of rules for which a reply that follows the rule is likelier than one that
    breaks it, by round.

    The replies follow a probe in place of the round; they are compared by log-probability per
    token.
    """
    requests = []
    replies = []
    for number in MEASURED_ROUNDS:
        for rule in rules:
            probe = {"role": "user", "content": rule.probes[0]}
            requests.append(Request((*history(record, number - 1), probe)))
            replies.append([rule.follows[0], rule.breaks[0]])
    scored = model.session().score_batch(requests, replies)
    is_preferred = []
    for scores in scored:
        following, breaking = np.array(scores.log_probabilities) / np.array(scores.tokens)
        is_preferred.append(following > breaking)
    return np.reshape(is_preferred, (len(MEASURED_ROUNDS), len(rules))).mean(1).tolist()


def measure(name: str, records: Sequence[Conversation]) -> dict:
    """Measures a model on the dialogs; returns its part of the record."""
    model = holdfast.load(name, dtype="bfloat16")
    if model.tokenizer.chat_template is None:
        model.tokenizer.chat_template = TRANSCRIPT
    groups = [family_of(record.agent.id) for record in records]
    rules = {case.id: case.rules for case in prompts(None).cases}
    masses = [
        [prompt_mass(model, record, number) for number in MEASURED_ROUNDS] for record in records
    ]
    preferred = np.array(
        [rules_preferred(model, record, rules[record.agent.id]) for record in records]
    )
    rounds = []
    for column, number in enumerate(MEASURED_ROUNDS):
        masses_of_round = [masses_of_record[column] for masses_of_record in masses]
        row = {
            "round": number,
            "distance": round(float(np.mean([mass.distance for mass in masses_of_round])), 1),
            "keeps": interval_over_groups(preferred[:, column], groups),
            **mass_fields("full", [mass.full for mass in masses_of_round], groups),
            **mass_fields("windowed", [mass.windowed for mass in masses_of_round], groups),
        }
        rounds.append(row)
        print(name, json.dumps(row), flush=True)
    return {
        "model": name,
        "fingerprint": model.fingerprint,
        "layers": len(has_window(model)),
        "windowed_layers": sum(has_window(model)),
        "window": window_of(model) if any(has_window(model)) else None,
        "change_of_keeps": interval_over_groups(preferred[:, -1] - preferred[:, 0], groups),
        "rounds": rounds,
    }


def mass_fields(kind: str, masses: Sequence[Mass | None], groups: Sequence[str]) -> dict:
    """The fields of a row about layers of one kind; none if the model has no such layers."""
    if None in masses:
        return {}
    measured, uniform = np.array(masses).T
    return {
        f"mass_{kind}": interval_over_groups(measured, groups),
        f"even_{kind}": round(float(uniform.mean()), 5),
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
