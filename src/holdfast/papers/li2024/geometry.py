"""Measures the quantities of the theory of drift in a real model (Li et al. 2024, section 5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast import drift
from holdfast.analysis.study_summary import DIALOGS
from holdfast.chat.prompt import Prompt, render
from holdfast.common.files import write_whole
from holdfast.common.progress import Watch, unwatched
from holdfast.errors import ModelError
from holdfast.models.capabilities import require_layers
from holdfast.records import Conversation, Turn

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_SPEAKERS = ("user", "agent")
_ALIKE = ("system", *_SPEAKERS)  # compared on equally many tokens
_ROLES = {"user": "user", "agent": "assistant"}
_DRAWS = 20  # subsamples of equally many tokens


def effective_dimension(vectors: np.ndarray) -> float:
    """The participation ratio (sum s^2)^2 / sum s^4 of the singular values of unit vectors."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    squares = np.linalg.svd(unit, compute_uv=False) ** 2
    return float(squares.sum() ** 2 / (squares**2).sum())


def opening_angle(vectors: np.ndarray, share: float = 0.95) -> float:
    """The angle in radians around the mean of vectors [n, D] that contains this share of them."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    mean = unit.mean(0)
    return float(np.quantile(np.arccos(np.clip(unit @ mean / np.linalg.norm(mean), -1, 1)), share))


_MEASURES = {"dimension": effective_dimension, "angle": opening_angle}


class Owner(NamedTuple):
    """The owner of a token: a speaker, the system prompt or the template; round 0 if no speaker."""

    round: int
    speaker: str


_Key = tuple[int, str, str]  # round, quantity, group


def read_dialogs(
    model: LocalModel, records: Sequence[Conversation], seed: int, done: Callable[[], None]
) -> list[dict[str, Any]]:
    """Per round, both quantities of every group of tokens, averaged over layers and dialogs."""
    totals: dict[_Key, list[float]] = {}
    for record in sorted(records, key=lambda record: record.conversation):
        for key, value in _measure(model, record, seed):
            totals.setdefault(key, []).append(value)
        done()
    if not totals:
        raise ModelError(
            "No dialog has a system prompt and turns of at least two tokens each; use another"
            " suite."
        )
    rows: dict[int, dict[str, Any]] = {}
    for (number, quantity, group), values in sorted(totals.items(), key=lambda item: item[0][0]):
        row = rows.setdefault(number, {"round": number})
        row.setdefault(quantity, {})[group] = float(np.mean(values))
    return list(rows.values())


def _measure(model: LocalModel, record: Conversation, seed: int) -> Iterator[tuple[_Key, float]]:
    """The quantities of one dialog; none if a group in round 1 has fewer than two tokens."""
    hidden, owners = _read_dialog(model, record)
    rng = np.random.default_rng([seed, record.conversation])
    least = min(len(_tokens_of(owners, 1, group)) for group in _ALIKE)
    if least < 2:
        return
    for number in range(1, max(turn.round for turn in record.turns) + 1):
        groups = {group: _tokens_of(owners, number, group) for group in ("all", *_ALIKE)}
        for layer in hidden:
            for group, tokens in groups.items():
                draws = [tokens]
                if group != "all":  # `least` tokens of each; one draw if there are no more
                    times = _DRAWS if len(tokens) > least else 1
                    draws = [rng.choice(tokens, least, replace=False) for _ in range(times)]
                for quantity, measure in _MEASURES.items():
                    value = float(np.mean([measure(layer[draw]) for draw in draws]))
                    yield (number, quantity, group), value


def _tokens_of(owners: Sequence[Owner], last: int, group: str) -> np.ndarray:
    """The indices of a group's tokens up to round `last`; "all" excludes the template's."""
    speakers = _ALIKE if group == "all" else (group,)
    owned = [owner.round <= last and owner.speaker in speakers for owner in owners]
    return np.flatnonzero(owned)


def _read_dialog(model: LocalModel, record: Conversation) -> tuple[np.ndarray, list[Owner]]:
    """Hidden states [layer, token, size] after every layer, and the owner of each token."""
    import torch

    system = record.agent.system_prompt
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": _ROLES[turn.speaker], "content": turn.text} for turn in record.turns]
    prompt = render(messages, model.tokenizer)
    with torch.inference_mode():
        ids = torch.tensor([prompt.token_ids[: model.context]], device=model.hf_model.device)
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        read = {"input_ids": ids}
        output = model.runner.call(read, places, None, None, 1, output_hidden_states=True)
        states = output.hidden_states[1:]
    hidden = torch.stack([state[0].float().cpu() for state in states]).numpy().astype(np.float64)
    return hidden, _owners(prompt, record.turns)[: ids.shape[1]]


def _owners(prompt: Prompt, turns: Sequence[Turn]) -> list[Owner]:
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


def study(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    settings: drift.Settings = drift.Settings(),
    watch: Watch = unwatched,
    command: str = "",
) -> dict[str, Any]:
    """Measures the model's geometry and writes it to the folder `out`; dialogs are resumed."""
    require_layers(model, "embeddings and hidden states")
    out = Path(out)
    record = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "suite": suite.name,
        "embedding_norms": embedding_norms(model),
        "hidden_states": hidden_geometry(model, suite, out / DIALOGS, settings, watch, command),
    }
    write_whole(out / "geometry.json", json.dumps(record, indent=1) + "\n")
    return record


def lines(geometry: dict[str, Any], dialogs: int) -> list[str]:
    """The results of `study` on this many dialogs, one per line."""
    norms, rows = geometry["embedding_norms"], geometry["hidden_states"]
    first, last = rows[0]["dimension"], rows[-1]["dimension"]
    return [
        f"Embeddings of {geometry['model']}: norm {np.mean(norms):.3f} on average, coefficient of"
        f" variation {np.std(norms) / np.mean(norms):.2f}.",
        f"Hidden states, all layers, averages of {dialogs} dialogs without intervals:"
        f" effective dimension of all tokens so far {first['all']:.2f} in round 1 and"
        f" {last['all']:.2f} in round {rows[-1]['round']}. With equally many tokens each:"
        f" system prompt {last['system']:.2f}, user {last['user']:.2f},"
        f" agent {last['agent']:.2f}.",
    ]


def embedding_norms(model: LocalModel) -> list[float]:
    """The norm of every token's embedding (Figure 7)."""
    weight: Any = model.hf_model.get_input_embeddings().weight
    return weight.detach().float().norm(dim=-1).tolist()


def hidden_geometry(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    settings: drift.Settings,
    watch: Watch = unwatched,
    command: str = "",
) -> list[dict[str, Any]]:
    """Per round, effective dimension and opening angle of hidden states, averaged over layers and
    dialogs; "all" uses every token so far, others equally many, as both grow with the number.
    """
    with watch("dialogs", settings.conversations * settings.rounds) as progress:
        running = drift.Running(progress=progress, command=command)
        run = drift.run(model, suite, out, settings, running=running)
    with watch("hidden states", len(run.conversations) * settings.rounds) as progress:
        records = run.conversations
        return read_dialogs(model, records, settings.seed, lambda: progress(settings.rounds, 0))
