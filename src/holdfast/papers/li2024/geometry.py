"""The theory of drift checked on random instances, and the same quantities in a real model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast import drift, ranges
from holdfast.analysis.study_summary import DIALOGS
from holdfast.chat.prompt import Prompt, render
from holdfast.errors import ModelError
from holdfast.files import write_whole
from holdfast.models.capabilities import require_layers
from holdfast.papers.li2024 import cone as theory
from holdfast.papers.li2024.cone import effective_dimension, opening_angle
from holdfast.progress import Watch, unwatched

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_SPEAKERS = ("user", "agent")
_ALIKE = ("system", *_SPEAKERS)  # compared by equally many tokens
_MEASURES = {"dimension": effective_dimension, "angle": opening_angle}
_ROLES = {"user": "user", "agent": "assistant"}
_DRAWS = 20  # subsamples of equally many tokens


class Owner(NamedTuple):
    """Whose a token is: the system prompt's, a speaker's or the template's; round 0 for what nobody
    said.
    """

    round: int
    speaker: str


_Key = tuple[int, str, str]  # round, quantity, group


def read_dialogs(
    model: LocalModel, records: Sequence[dict[str, Any]], seed: int, done: Callable[[], None]
) -> list[dict[str, Any]]:
    """Per round, both quantities of every group of tokens, averaged over layers and dialogs.

    Args:
        model: whose dialogs they are.
        records: of the dialogs.
        seed: of the draws of equally many tokens.
        done: called after every dialog.
    """
    totals: dict[_Key, list[float]] = {}
    for record in sorted(records, key=lambda record: record["conversation"]):
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


def _measure(model: LocalModel, record: dict[str, Any], seed: int) -> Iterator[tuple[_Key, float]]:
    """The quantities of one dialog, of every round, layer and group; none where a group of round 1
    has fewer than two tokens.
    """
    hidden, owners = _read_dialog(model, record)
    rng = np.random.default_rng([seed, record["conversation"]])
    least = min(len(_tokens_of(owners, 1, group)) for group in _ALIKE)
    if least < 2:
        return
    for number in range(1, max(turn["round"] for turn in record["turns"]) + 1):
        groups = {group: _tokens_of(owners, number, group) for group in ("all", *_ALIKE)}
        for layer in hidden:
            for group, tokens in groups.items():
                draws = [tokens] if group == "all" else _draws(tokens, least, rng)
                for quantity, measure in _MEASURES.items():
                    value = float(np.mean([measure(layer[draw]) for draw in draws]))
                    yield (number, quantity, group), value


def _draws(tokens: np.ndarray, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Subsamples of so many tokens; one where there are no more."""
    draws = _DRAWS if len(tokens) > count else 1
    return [rng.choice(tokens, count, replace=False) for _ in range(draws)]


def _tokens_of(owners: Sequence[Owner], last: int, group: str) -> np.ndarray:
    """The indices of a group's tokens up to the end of round `last`; "all" leaves out the
    template's.
    """
    speakers = _ALIKE if group == "all" else (group,)
    owned = [owner.round <= last and owner.speaker in speakers for owner in owners]
    return np.flatnonzero(owned)


def _read_dialog(model: LocalModel, record: dict[str, Any]) -> tuple[np.ndarray, list[Owner]]:
    """Hidden states [layer, token, size] behind every layer, and whose each token is."""
    import torch

    system = record["agent"]["system_prompt"]
    messages = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": _ROLES[turn["speaker"]], "content": turn["text"]} for turn in record["turns"]
    ]
    prompt = render(messages, model.tokenizer)
    with torch.inference_mode():
        ids = torch.tensor([prompt.token_ids[: model.context]], device=model.hf_model.device)
        places = torch.arange(ids.shape[1], device=ids.device)[None]
        read = {"input_ids": ids}
        output = model.runner.call(read, places, None, None, 1, output_hidden_states=True)
        states = output.hidden_states[1:]
    hidden = torch.stack([state[0].float().cpu() for state in states]).numpy().astype(np.float64)
    return hidden, _owners(prompt, record["turns"])[: ids.shape[1]]


def _owners(prompt: Prompt, turns: Sequence[dict[str, Any]]) -> list[Owner]:
    """Whose each token of a rendered dialog is."""
    owners = [Owner(0, "system" if inside else "template") for inside in prompt.span_mask]
    end = 0  # of the text before
    for turn in turns:
        text = turn["text"].strip()
        start = prompt.text.find(text, end) if text else -1
        if start < 0:
            continue
        end = start + len(text)
        for index, begins in enumerate(prompt.starts):
            if start <= begins < end and owners[index].speaker == "template":
                owners[index] = Owner(turn["round"], turn["speaker"])
    return owners


_DIMENSION, _RANK, _ANGLE, _EPS = 24, 6, 0.6, 0.3  # of the cones of Theorem 5.1
_PROMPT = 8  # tokens
_ETA = 0.05  # Proposition A.1 promises 1 - eta


def check_theorem(instances: int, generated: int, seed: int) -> dict[str, float]:
    """Theorem 5.1 on random cones and transformers: the worst of each quantity that it bounds."""
    widened = theory.widened_eps(_EPS, _ANGLE)
    residuals, outside, angles = [], [], []
    for instance in range(instances):
        rng = np.random.default_rng([seed, instance])
        cone = theory.random_cone(_DIMENSION, _RANK, _ANGLE, _EPS, rng)
        transformer = theory.random_transformer(cone, 2, 2, rng)
        tokens = transformer.generate(cone.sample(_PROMPT, rng), generated)
        residuals += [
            theory.hull_residual(tokens[position], transformer.images(tokens[:position]))
            for position in range(_PROMPT, len(tokens))
        ]
        beyond_angle, beyond_eps = cone.widened().excess(tokens[_PROMPT:])
        angles.append(float(beyond_angle.max()))
        outside.append(float(beyond_eps.max()) + widened)
    return {
        "tokens": instances * generated,
        "hull_residual": max(0.0, *residuals),
        "outside": max(0.0, *outside),
        "angle_excess": max(-math.inf, *angles),
        "widened_eps": widened,
    }


def check_spanning(trials: int, seed: int) -> list[dict[str, float]]:
    """Proposition A.1 at its own bound and halfway to it, against Wendel's exact probability and
    so many simulations.
    """
    rows: list[dict[str, float]] = []
    for dimension in (2, 4, 8, 16):
        enough = theory.enough_points(dimension, _ETA)
        for points in (2 * dimension, enough):
            rng = np.random.default_rng([seed, dimension, points])
            rows.append(
                {
                    "dimension": dimension,
                    "points": points,
                    "promised": 1 - _ETA if points == enough else 0.0,
                    "wendel": 1 - theory.hemisphere_probability(points, dimension),
                    "simulated": theory.simulate_spanning(points, dimension, trials, rng),
                }
            )
    return rows


def check_rate() -> list[dict[str, float]]:
    """Proposition A.2 in 64 dimensions: the slope of the volume ratio over eps, as logarithms."""
    eps = np.geomspace(1e-4, 1e-2, 9)
    return [
        {
            "before": before,
            "after": after,
            "promised": after - before,
            "slope": theory.volume_rate(64, before, after, 0.7, eps),
        }
        for before, after in ((4, 6), (4, 12), (8, 32))
    ]


@dataclass(frozen=True)
class GeometrySizes:
    """How much is simulated and read.

    Args:
        instances: of Theorem 5.1, each with its own cone and transformer.
        generated: tokens per instance.
        trials: simulations per point of Proposition A.1.
        conversations, rounds: self-chats whose hidden states are read.
        seed: of everything.
    """

    instances: int = 20
    generated: int = 40
    trials: int = 400
    conversations: int = 12
    rounds: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("instances", "generated", "trials", "conversations", "rounds"):
            ranges.whole_number("geometry", name, getattr(self, name), 1)
        ranges.whole_number("geometry", "seed", self.seed, 0)


def study(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    sizes: GeometrySizes = GeometrySizes(),
    watch: Watch = unwatched,
    command: str = "",
) -> dict[str, Any]:
    """Checks the theory, reads the model's geometry, and writes both into the folder `out`; its
    dialogs are resumed.

    Args:
        model: a model in this process.
        suite: whose prompts the dialogs are held under.
        out: a folder; made where it does not exist.
        sizes: how much of each.
        watch: told of each of the two steps that take long, in rounds and in dialogs.
        command: the command line, for the manifest of the dialogs.

    Raises:
        ModelError: a model that does not show its hidden states.
        RecordsError: `out` holds dialogs of another run.
    """
    require_layers(model, "embeddings and hidden states")
    out = Path(out)
    record = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "suite": suite.name,
        "theorem_5_1": check_theorem(sizes.instances, sizes.generated, sizes.seed),
        "proposition_a_1": check_spanning(sizes.trials, sizes.seed),
        "proposition_a_2": check_rate(),
        "embedding_norms": embedding_norms(model),
        "hidden_states": hidden_geometry(model, suite, out / DIALOGS, sizes, watch, command),
    }
    write_whole(out / "geometry.json", json.dumps(record, indent=1) + "\n")
    return record


def lines(geometry: dict[str, Any], sizes: GeometrySizes) -> list[str]:
    """The results of `study`, a line each."""
    worst, norms = geometry["theorem_5_1"], geometry["embedding_norms"]
    rows = geometry["hidden_states"]
    first, last = rows[0]["dimension"], rows[-1]["dimension"]
    return [
        f"Theorem 5.1: {worst['tokens']:,} tokens of {sizes.instances} random transformers;"
        f" farthest from the hull {worst['hull_residual']:.1e}, largest part outside the span"
        f" {worst['outside']:.3f} of at most {worst['widened_eps']:.3f}.",
        *(
            f"Proposition A.1, D={row['dimension']}: {row['points']} random tokens span everything"
            f" with probability {row['wendel']:.4f} (simulated {row['simulated']:.4f}, promised"
            f" {row['promised']:.2f})."
            for row in geometry["proposition_a_1"]
        ),
        *(
            f"Proposition A.2, rank {row['before']} to {row['after']}: the volume ratio falls as"
            f" eps^{row['slope']:.3f}, promised {row['promised']}."
            for row in geometry["proposition_a_2"]
        ),
        f"Embeddings of {geometry['model']}: norm {np.mean(norms):.3f} on average, coefficient of"
        f" variation {np.std(norms) / np.mean(norms):.2f}.",
        f"Hidden states, all layers, averages of {sizes.conversations} dialogs without intervals:"
        f" effective dimension of all tokens so far {first['all']:.2f} in round 1 and"
        f" {last['all']:.2f} in round {rows[-1]['round']}. With equally many tokens each:"
        f" system prompt {last['system']:.2f}, user {last['user']:.2f},"
        f" agent {last['agent']:.2f}.",
    ]


def embedding_norms(model: LocalModel) -> list[float]:
    """The norm of every token's embedding (Figure 7)."""
    weight: Any = model.hf_model.get_input_embeddings().weight
    norms: list[float] = weight.detach().float().norm(dim=-1).tolist()
    return norms


def hidden_geometry(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    sizes: GeometrySizes,
    watch: Watch = unwatched,
    command: str = "",
) -> list[dict[str, Any]]:
    """Per round, effective dimension and opening angle of hidden states, averaged over layers and
    dialogs, which are held or taken up in the folder `out`.

    "all" takes every token up to the end of the round; "system", "user" and "agent" equally many of
    the prompt's tokens and of those that each has written so far, averaged over draws, since both
    quantities grow with the number of tokens.
    """
    settings = settings_for(sizes)
    with watch("dialogs", settings.conversations * settings.rounds) as progress:
        running = drift.Running(progress=progress, command=command)
        run = drift.run(model, suite, out, settings, running=running)
    with watch("hidden states", len(run.records) * settings.rounds) as progress:
        return read_dialogs(model, run.records, sizes.seed, lambda: progress(settings.rounds, 0))


def settings_for(sizes: GeometrySizes) -> drift.Settings:
    """The protocol of the dialogs, in the folder `dialogs`."""
    return drift.Settings(
        rounds=sizes.rounds, conversations=sizes.conversations, seed=sizes.seed, adoption=False
    )
