"""A table of the probes of drift runs, with the model's states where their replies begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from transformers import DynamicCache
from window import history

import holdfast
from holdfast.generation.saved_kv import shared_prefix_len
from holdfast.models.local import LocalModel
from holdfast.records import Conversation, read_run


@dataclass(frozen=True)
class ProbeTable:
    """The probes of some runs, one in each row of every column.

    Attributes:
        states: the residual stream where the reply begins, [probe, layer, size].
        prompt: the mean residual stream of the prompt's tokens, [probe, layer, size].
        head_mass: the mass on the prompt where the reply begins, [probe, head of any layer].
        kept: whether it scores at least 0.5.
        round: its round.
        turn_mass: the mean mass of the agent's turn in the round before; nan if there is none.
        before: the mean score of the probes in the round before; nan if there is none.
        conversation: the run and the number of its conversation.
        id, category, family: of the prompt.
    """

    states: np.ndarray
    prompt: np.ndarray
    head_mass: np.ndarray
    kept: np.ndarray
    round: np.ndarray
    turn_mass: np.ndarray
    before: np.ndarray
    conversation: np.ndarray
    id: np.ndarray
    category: np.ndarray
    family: np.ndarray

    def select(self, rows: np.ndarray) -> ProbeTable:
        """The table of some of the rows."""
        return ProbeTable(**{name: column[rows] for name, column in vars(self).items()})


def concatenate(tables: Sequence[ProbeTable]) -> ProbeTable:
    """One table of the rows of all."""
    names = [field.name for field in fields(ProbeTable)]
    return ProbeTable(
        **{name: np.concatenate([getattr(table, name) for table in tables]) for name in names}
    )


class States(NamedTuple):
    """The states of a conversation's probes, as `ProbeTable` has them."""

    states: np.ndarray
    prompt: np.ndarray
    head_mass: np.ndarray


@torch.inference_mode()
def read_states(model: LocalModel, record: Conversation) -> States:
    """Reads the states of a conversation's probes; forwards each token of the dialog once."""
    depth = model.hf_model.config.num_hidden_layers
    layers = [round(depth * third / 3) for third in (1, 2, 3)]
    chats = [
        [*history(record, probe.round - 1), {"role": "user", "content": probe.question}]
        for probe in record.probes
    ]
    encoded = [holdfast.encode_chats([chat], model.tokenizer) for chat in chats]
    span = encoded[0].span_mask
    cache = DynamicCache()
    cached: list[int] = []  # the tokens in the cache
    states = []
    with holdfast.steering(model.hf_model, span, [], trace=True) as steered:
        for ids in (chat.input_ids[0].tolist() for chat in encoded):
            shared = shared_prefix_len(cached, ids[:-1])
            cache.crop(shared - len(cached))
            output = model.hf_model(
                input_ids=torch.tensor([ids[shared:]]),
                past_key_values=cache,
                output_hidden_states=True,
                logits_to_keep=1,
            )
            hidden = torch.stack([output.hidden_states[layer][0].float() for layer in layers])
            if not cached:
                prompt = hidden[:, span[0]].mean(1)
            states.append(hidden[:, -1])
            cached = ids
    return States(
        states=torch.stack(states).numpy(),
        prompt=prompt.expand(len(states), -1, -1).numpy(),
        head_mass=steered.traces[0].mass.flatten(0, 1).T.float().numpy(),
    )


def table_of_conversation(
    model: LocalModel, record: Conversation, run: str, family: str
) -> ProbeTable:
    """The probes of one conversation."""
    probes = record.probes
    mass = {turn.round: turn.mass for turn in record.turns if turn.speaker == "agent"}
    scores = {number: [probe.score for probe in probes if probe.round == number] for number in mass}
    return ProbeTable(
        **read_states(model, record)._asdict(),
        kept=np.array([probe.score >= 0.5 for probe in probes]),
        round=np.array([probe.round for probe in probes]),
        turn_mass=np.array([mass.get(probe.round - 1, np.nan) for probe in probes], float),
        before=np.array([np.mean(scores.get(probe.round - 1) or np.nan) for probe in probes]),
        conversation=np.array([f"{run} {record.conversation}"] * len(probes)),
        id=np.array([record.agent.id] * len(probes)),
        category=np.array([record.agent.category] * len(probes)),
        family=np.array([family] * len(probes)),
    )


def table_of_run(model: LocalModel, folder: Path, family_of: Callable[[str], str]) -> ProbeTable:
    """The probes of a run, which are cached in a file beside it."""
    file = folder.parent / f"{folder.name}-states.npz"
    if not file.exists():
        tables: list[ProbeTable] = []
        for record in sorted(read_run(folder).records, key=lambda record: record.conversation):
            family = family_of(record.agent.id)
            tables.append(table_of_conversation(model, record, folder.name, family))
            print(folder.name, len(tables), flush=True)
        np.savez(file, **vars(concatenate(tables)))
    with np.load(file) as stored:
        return ProbeTable(**stored)
