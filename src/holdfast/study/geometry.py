"""The cone geometry of drift: the theory checked on random instances, and the same quantities in a
real model.

`study` writes `geometry.json`, the figures, and the run of the drift benchmark whose dialogs it
reads, into one folder."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import drift, knobs
from holdfast.chat.prompt import render
from holdfast.errors import ModelError
from holdfast.files import write_whole
from holdfast.methods import Ability
from holdfast.models.capabilities import offers
from holdfast.progress import Progress, Watch, unwatched
from holdfast.study import cone as theory

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

SPEAKERS = ("user", "agent")
_DRAWS = 20  # subsamples of equally many tokens


@dataclass(frozen=True)
class Sizes:
    """How much is simulated and read.

    Args:
        instances: of Theorem 5.1, each with its own cone and transformer.
        generated: tokens per instance.
        trials: simulations per point of Proposition A.1.
        conversations, rounds: self-chats whose hidden states are read.
        seed: of everything.

    Raises:
        KnobOutOfRange: a number below 1 (the seed: below 0).
    """

    instances: int = 20
    generated: int = 40
    trials: int = 400
    conversations: int = 12
    rounds: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("instances", "generated", "trials", "conversations", "rounds"):
            knobs.whole_number("geometry", name, getattr(self, name), 1)
        knobs.whole_number("geometry", "seed", self.seed, 0)


def study(
    model: LocalModel,
    suite: drift.Suite,
    out: Path,
    sizes: Sizes = Sizes(),
    tell: Callable[[str], None] = lambda line: None,
    watch: Watch = unwatched,
) -> dict[str, Any]:
    """Checks the theory, reads the model's geometry, and writes both into the folder `out`; its
    dialogs are resumed.

    Args:
        model: a model in this process.
        suite: whose prompts the dialogs are held under.
        out: a folder; made where it does not exist.
        sizes: how much of each.
        tell: takes one line per finding.
        watch: told of each of the two steps that take long, in rounds and in dialogs.

    Raises:
        ModelError: an endpoint, whose hidden states cannot be seen.
        RecordsError: `out` holds dialogs of another run.
    """
    if not offers(model, Ability.LAYERS):
        raise ModelError(
            f"{model.name} is an endpoint, whose embeddings and hidden states cannot be seen; give"
            " a local model."
        )
    out = Path(out)
    found: dict[str, Any] = {
        "theorem_5_1": check_theorem(sizes),
        "proposition_a_1": check_spanning(sizes),
        "proposition_a_2": check_rate(),
    }
    worst = found["theorem_5_1"]
    tell(
        f"Theorem 5.1: {worst['tokens']:,} tokens of {sizes.instances} random transformers;"
        f" farthest from the hull {worst['hull_residual']:.1e}, largest part outside the span"
        f" {worst['outside']:.3f} of at most {worst['widened_eps']:.3f}."
    )
    for row in found["proposition_a_1"]:
        tell(
            f"Proposition A.1, D={row['dimension']}: {row['points']} random tokens span everything"
            f" with probability {row['wendel']:.4f} (simulated {row['simulated']:.4f}, promised"
            f" {row['promised']:.2f})."
        )
    for row in found["proposition_a_2"]:
        tell(
            f"Proposition A.2, rank {row['before']} to {row['after']}: the volume ratio falls as"
            f" eps^{row['slope']:.3f}, promised {row['promised']}."
        )
    found["embedding_norms"] = norms = embedding_norms(model)
    tell(
        f"Embeddings of {model.name}: norm {np.mean(norms):.3f} on average, coefficient of"
        f" variation {np.std(norms) / np.mean(norms):.2f}."
    )
    found["hidden_states"] = rows = hidden_geometry(model, suite, out / "dialogs", sizes, watch)
    first, last = rows[0], rows[-1]
    tell(
        f"Hidden states, all layers, averages of {sizes.conversations} dialogs without intervals:"
        f" effective dimension of all tokens so far {first['dimension']['all']:.2f} in round 1 and"
        f" {last['dimension']['all']:.2f} in round {last['round']}. With equally many tokens each:"
        f" system prompt {last['dimension']['system']:.2f}, user {last['dimension']['user']:.2f},"
        f" agent {last['dimension']['agent']:.2f}."
    )
    record = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "suite": suite.name,
        **found,
    }
    write_whole(out / "geometry.json", json.dumps(record, indent=1) + "\n")
    return record


def check_theorem(sizes: Sizes) -> dict[str, float]:
    """Theorem 5.1 on random instances in 24 dimensions: the worst of each quantity it bounds, over
    all generated tokens.
    """
    worst = {
        "tokens": 0,
        "hull_residual": 0.0,
        "outside": 0.0,
        "angle_excess": -math.inf,
        "widened_eps": theory.widened_eps(0.3, 0.6),
    }
    for instance in range(sizes.instances):
        rng = np.random.default_rng([sizes.seed, instance])
        cone = theory.random_cone(24, 6, 0.6, 0.3, rng)
        transformer = theory.random_transformer(cone, 2, 2, rng)
        tokens = transformer.generate(cone.sample(8, rng), sizes.generated)
        residuals = [
            theory.hull_residual(tokens[t], transformer.images(tokens[:t]))
            for t in range(8, len(tokens))
        ]
        angles, beyond = cone.widened().excess(tokens[8:])
        worst["tokens"] += sizes.generated
        worst["hull_residual"] = max(worst["hull_residual"], *residuals)
        worst["outside"] = max(worst["outside"], float(beyond.max()) + worst["widened_eps"])
        worst["angle_excess"] = max(worst["angle_excess"], float(angles.max()))
    return worst


def check_spanning(sizes: Sizes, eta: float = 0.05) -> list[dict[str, float]]:
    """Proposition A.1 at its own bound and halfway to it, against Wendel's exact probability and
    simulation.
    """
    rows = []
    for dimension in (2, 4, 8, 16):
        enough = theory.enough_points(dimension, eta)
        for points in (2 * dimension, enough):
            rng = np.random.default_rng([sizes.seed, dimension, points])
            rows.append(
                {
                    "dimension": dimension,
                    "points": points,
                    "promised": 1 - eta if points == enough else 0.0,
                    "wendel": 1 - theory.hemisphere_probability(points, dimension),
                    "simulated": theory.simulate_spanning(points, dimension, sizes.trials, rng),
                }
            )
    return rows


def check_rate() -> list[dict[str, float]]:
    """Proposition A.2 in 64 dimensions: the slope of the volume ratio over eps on a log-log
    scale.
    """
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


def embedding_norms(model: LocalModel) -> list[float]:
    """The norm of every token's embedding (Figure 7)."""
    return model.hf_model.get_input_embeddings().weight.detach().float().norm(dim=-1).tolist()


def hidden_geometry(
    model: LocalModel, suite: drift.Suite, out: Path, sizes: Sizes, watch: Watch = unwatched
) -> list[dict[str, Any]]:
    """Per round, effective dimension and opening angle of hidden states, averaged over layers and
    dialogs.

    "all" takes every token up to the end of the round; "system", "user" and "agent" equally many of
    the prompt's tokens and of those that each has written so far, averaged over draws, since both
    quantities grow with the number of tokens."""
    settings = drift.Settings(
        rounds=sizes.rounds, conversations=sizes.conversations, seed=sizes.seed, adoption=False
    )
    with watch("dialogs", settings.conversations * settings.rounds) as progress:
        run = drift.run(model, suite, out, settings, progress=progress)
    with watch("hidden states", len(run.records) * settings.rounds) as progress:
        return _read_geometry(model, run.records, sizes, progress)


def _read_geometry(
    model: LocalModel, records: list[dict[str, Any]], sizes: Sizes, progress: Progress
) -> list[dict[str, Any]]:
    totals: dict[tuple[int, str, str], list[float]] = {}
    for record in sorted(records, key=lambda record: record["conversation"]):
        hidden, owners = _read_dialog(model, record)
        rng = np.random.default_rng([sizes.seed, record["conversation"]])
        progress(sizes.rounds, 0)
        few = min(len(_groups(owners, 1)[name]) for name in ("system", *SPEAKERS))
        if few < 2:
            continue
        for number in range(1, max(turn["round"] for turn in record["turns"]) + 1):
            groups = _groups(owners, number)
            for layer in hidden:
                for name, chosen in groups.items():
                    draws = (
                        [chosen]
                        if name == "all"
                        else [
                            rng.choice(chosen, few, replace=False)
                            for _ in range(_DRAWS if len(chosen) > few else 1)
                        ]
                    )
                    for quantity, measure in (
                        ("dimension", theory.effective_dimension),
                        ("angle", theory.opening_angle),
                    ):
                        totals.setdefault((number, quantity, name), []).append(
                            float(np.mean([measure(layer[draw]) for draw in draws]))
                        )
    if not totals:
        raise ModelError(
            "No dialog has a system prompt and turns of at least two tokens each; use another"
            " suite."
        )
    return [
        {
            "round": number,
            **{
                quantity: {
                    name: float(np.mean(totals[number, quantity, name]))
                    for name in ("all", "system", *SPEAKERS)
                }
                for quantity in ("dimension", "angle")
            },
        }
        for number in sorted({number for number, _, _ in totals})
    ]


def _read_dialog(
    model: LocalModel, record: dict[str, Any]
) -> tuple[np.ndarray, list[tuple[int, str]]]:
    """Hidden states [layer, token, size] behind every layer, and (round, speaker) of each token;
    round 0 for what nobody said.
    """
    import torch

    roles = {"user": "user", "agent": "assistant"}
    system = record["agent"]["system_prompt"]
    messages = [{"role": "system", "content": system}] if system else []
    messages += [
        {"role": roles[turn["speaker"]], "content": turn["text"]} for turn in record["turns"]
    ]
    prompt = render(messages, model.tokenizer)
    owners = [(0, "system" if inside else "template") for inside in prompt.span_mask]
    place = 0
    for turn in record["turns"]:
        text = turn["text"].strip()
        start = prompt.text.find(text, place) if text else -1
        if start < 0:
            continue
        place = start + len(text)
        for index, begins in enumerate(prompt.starts):
            if start <= begins < place and owners[index][1] == "template":
                owners[index] = turn["round"], turn["speaker"]
    with torch.inference_mode():
        ids = torch.tensor([prompt.token_ids[: model.context]], device=model.hf_model.device)
        states = model.hf_model(
            input_ids=ids, output_hidden_states=True, use_cache=False
        ).hidden_states[1:]
    return (
        torch.stack([state[0].float().cpu() for state in states]).numpy().astype(np.float64),
        owners[: ids.shape[1]],
    )


def _groups(owners: list[tuple[int, str]], number: int) -> dict[str, np.ndarray]:
    """Token indices: all that were said up to the end of a round, the system prompt's, and each
    speaker's so far.
    """
    said = [
        (index, speaker)
        for index, (spoken, speaker) in enumerate(owners)
        if speaker != "template" and spoken <= number
    ]
    groups = {
        name: np.array([index for index, speaker in said if speaker == name], dtype=int)
        for name in ("system", *SPEAKERS)
    }
    return {"all": np.array([index for index, _ in said], dtype=int), **groups}
