"""Measures what the theory of drift is about in a real model (Li et al. 2024, section 5):
the norms of its embeddings, and how far its hidden states spread.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast import drift
from holdfast.analysis.hidden_geometry import (
    ByGroup,
    Geometry,
    RoundSpread,
    effective_dimension,
    opening_angle,
)
from holdfast.analysis.summary import DIALOGS
from holdfast.chat.prompt import Prompt, render
from holdfast.drift.progress import Watch, ignore_steps
from holdfast.drift.remaining import count_replies
from holdfast.errors import ModelError
from holdfast.files import write_whole
from holdfast.models.capabilities import require_layers
from holdfast.records import Conversation, Turn

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_SPEAKERS = ("user", "agent")
_GROUPS = ("system", *_SPEAKERS)  # compared on equally many tokens
_ROLES = {"user": "user", "agent": "assistant"}
_DRAWS = 20  # subsamples of equally many tokens


class Owner(NamedTuple):
    """The owner of a token: a speaker, the system prompt or the template; round 0 if no speaker."""

    round: int
    speaker: str


class GroupSpread(NamedTuple):
    """How far the states of a group of tokens spread up to a round, in one layer of one dialog."""

    round: int
    group: str
    dimension: float
    angle: float


def study(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    settings: drift.Settings = drift.Settings(),
    watch: Watch = ignore_steps,
    command: str = "",
) -> Geometry:
    """Measures a model's geometry and writes it to the folder `out`; an earlier run is resumed."""
    require_layers(model, "embeddings and hidden states")
    out = Path(out)
    geometry = Geometry(
        model=model.name,
        model_fingerprint=model.fingerprint,
        suite=suite.name,
        embedding_norms=tuple(embedding_norms(model)),
        hidden_states=hidden_geometry(model, suite, out / DIALOGS, settings, watch, command),
    )
    write_whole(out / "geometry.json", json.dumps(geometry.to_json(), indent=1) + "\n")
    return geometry


def embedding_norms(model: LocalModel) -> list[float]:
    """The norm of every token's embedding (Figure 7)."""
    weight: Any = model.hf_model.get_input_embeddings().weight
    return weight.detach().float().norm(dim=-1).tolist()


def hidden_geometry(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    settings: drift.Settings,
    watch: Watch = ignore_steps,
    command: str = "",
) -> tuple[RoundSpread, ...]:
    """How far the hidden states of self-chats have spread by each round.

    Args:
        out: the folder of the self-chats; an earlier run in it is resumed.
    """
    replies = count_replies(suite, settings, range(settings.conversations))
    with watch("dialogs", replies) as progress:
        running = drift.Running(progress=progress, command=command)
        run = drift.run(model, suite, out, settings, running=running)
    with watch("hidden states", len(run.conversations) * settings.rounds) as progress:
        records = run.conversations
        return read_dialogs(model, records, settings.seed, lambda: progress(settings.rounds, 0))


def read_dialogs(
    model: LocalModel, records: Sequence[Conversation], seed: int, on_record: Callable[[], None]
) -> tuple[RoundSpread, ...]:
    """The spread of every group's states by each round, averaged over layers and dialogs.

    Args:
        on_record: called after each dialog.
    """
    spreads: list[GroupSpread] = []
    for record in sorted(records, key=lambda record: record.conversation):
        spreads += _measure(model, record, seed)
        on_record()
    if not spreads:
        raise ModelError(
            "No dialog has a system prompt and turns of at least two tokens each; use another"
            " suite."
        )
    spreads_by_round: dict[int, list[GroupSpread]] = {}
    for item in spreads:
        spreads_by_round.setdefault(item.round, []).append(item)
    return tuple(_average(number, spreads_by_round[number]) for number in sorted(spreads_by_round))


def _average(number: int, spreads: Sequence[GroupSpread]) -> RoundSpread:
    """The means of a round over layers and dialogs."""
    dimensions: dict[str, float] = {}
    angles: dict[str, float] = {}
    for group in ByGroup.model_fields:
        spreads_of_group = [item for item in spreads if item.group == group]
        dimensions[group] = float(np.mean([item.dimension for item in spreads_of_group]))
        angles[group] = float(np.mean([item.angle for item in spreads_of_group]))
    return RoundSpread(round=number, dimension=ByGroup(**dimensions), angle=ByGroup(**angles))


def _measure(model: LocalModel, record: Conversation, seed: int) -> Iterator[GroupSpread]:
    """Measures one dialog; yields nothing if a group has fewer than two tokens in round 1."""
    hidden, owners = _read_dialog(model, record)
    rng = np.random.default_rng([seed, record.conversation])
    size = min(len(_tokens_of(owners, 1, group)) for group in _GROUPS)
    if size < 2:
        return
    for number in range(1, max(turn.round for turn in record.turns) + 1):
        groups = {group: _tokens_of(owners, number, group) for group in ("all", *_GROUPS)}
        for layer in hidden:
            for group, tokens in groups.items():
                draws = [tokens] if group == "all" else _draw(tokens, size, rng)
                yield GroupSpread(
                    round=number,
                    group=group,
                    dimension=float(np.mean([effective_dimension(layer[draw]) for draw in draws])),
                    angle=float(np.mean([opening_angle(layer[draw]) for draw in draws])),
                )


def _draw(tokens: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Subsamples of `size` tokens; a single one if there are only that many tokens."""
    count = _DRAWS if len(tokens) > size else 1
    return [rng.choice(tokens, size, replace=False) for _ in range(count)]


def _tokens_of(owners: Sequence[Owner], last: int, group: str) -> np.ndarray:
    """The indices of a group's tokens up to round `last`; "all" excludes the template's."""
    speakers = _GROUPS if group == "all" else (group,)
    is_in_group = [owner.round <= last and owner.speaker in speakers for owner in owners]
    return np.flatnonzero(is_in_group)


def _read_dialog(model: LocalModel, record: Conversation) -> tuple[np.ndarray, list[Owner]]:
    """Hidden states [layer, token, size] after every layer, and the owner of each token."""
    import torch

    system = record.agent.system_prompt
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": _ROLES[turn.speaker], "content": turn.text} for turn in record.turns]
    prompt = render(messages, model.tokenizer)
    with torch.inference_mode():
        ids = torch.tensor([prompt.token_ids[: model.context]], device=model.hf_model.device)
        positions = torch.arange(ids.shape[1], device=ids.device)[None]
        inputs = {"input_ids": ids}
        output = model.runner.call(inputs, positions, None, None, 1, output_hidden_states=True)
        states = output.hidden_states[1:]
    hidden = torch.stack([state[0].float().cpu() for state in states]).numpy().astype(np.float64)
    return hidden, _owners(prompt, record.turns)[: ids.shape[1]]


def _owners(prompt: Prompt, turns: Sequence[Turn]) -> list[Owner]:
    """The owner of each token of a prompt; turns whose text it lacks own none."""
    owners = [Owner(0, "system" if inside else "template") for inside in prompt.span_mask]
    end = 0  # of the previous turn's text
    for turn in turns:
        text = turn.text.strip()
        start = prompt.text.find(text, end) if text else -1
        if start < 0:
            continue
        end = start + len(text)
        for index, begins in enumerate(prompt.starts):
            if start <= begins < end and owners[index].speaker == "template":
                owners[index] = Owner(turn.round, turn.speaker)
    return owners
