"""Do a model's internal states predict lost probes better than the mass on the prompt does?

Where the reply to a probe begins, the residual stream is read at one third, two thirds and the end
of the depth, and the mass on the prompt in every head. A probe is lost if it scores below 0.5;
probes of round 1 are left out, since nothing precedes them. Predictors with parameters are ridge
regressions; layer and penalty are chosen by cross-validation in the training folds. Two of them
read the residual stream:

- `outcome` predicts whether the probe is kept, as Dongre et al. 2026 (arXiv 2605.12922) recover
  the outcome of recall with linear probes. This one could be shipped, and is decisive.
- `prompt` takes "the rule is still decodable" literally. A classifier of prompts cannot know the
  class of a prompt that it has never seen. So the regression predicts the mean state of the
  prompt's own tokens, and the score is how much closer the prediction is to the prompt in force
  than to any other of the test fold. It is fitted without any outcomes.

Folds are over families of prompts. For comparison there are folds over conversations, where the
prompts are known from training, and over categories, as families of one category can be very
similar. An AUC is how often a kept probe scores higher than a lost one of the same test fold: a
regression's level depends on the fold, which would penalise it in comparisons across folds. It is
given over all pairs and over those of one category and round. Intervals resample families, the same
ones for every predictor.

    python benchmarks/decodable.py --runs runs/decodable --out FILE.json

Runs in --runs are resumed, and the states read from them are kept there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import equal_cost
import numpy as np
import on_smollm2
import screen
import torch
from stamp import measured_on, write_json
from transformers import DynamicCache
from window import history

import holdfast
from holdfast import drift
from holdfast.generation.saved_kv import shared_prefix_len
from holdfast.records import Conversation, read_run

SEEDS = (1, 2)
CONVERSATIONS = 96
FOLDS, REPEATS = 5, 3  # folds per split, and number of random splits
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
UNITS = ("conversation", "family", "category")  # never shared by training and test
ALL = "all pairs"
SAME = "of the same category and round"
MASS = "mass"
ROUND = "round"
BEFORE = "score before"
RATES = "category and round"
PEERS = (MASS, ROUND, BEFORE, RATES)  # that every other predictor is compared with


def default_run(model, runs: Path, seed: int) -> Path:
    folder = runs / f"default-{seed}"
    settings = drift.Settings(conversations=CONVERSATIONS, seed=seed, adoption=False)
    drift.run(model, drift.load_suite("starter"), folder, settings)
    return folder


def smollm2_run(model, runs: Path, seed: int) -> Path:
    on_smollm2.drift_of(model, runs, seed, "scripted")
    return runs / f"drift-scripted-{seed}"


@torch.inference_mode()
def read_states(model, record: Conversation) -> dict[str, np.ndarray]:
    """For each probe, where its reply begins: `states` [probe, layer, size] and `head_mass` [probe,
    layer x head]; and the mean states of the `prompt`, shaped like `states`. Each token of the
    dialog is forwarded once.
    """
    depth = model.hf_model.config.num_hidden_layers
    layers = [round(depth * part / 3) for part in (1, 2, 3)]
    chats = [
        [*history(record, probe.round - 1), {"role": "user", "content": probe.question}]
        for probe in record.probes
    ]
    encoded = [holdfast.encode_chats([chat], model.tokenizer) for chat in chats]
    span = encoded[0].span_mask
    cache = DynamicCache()
    seen = []
    states = []
    with holdfast.steering(model.hf_model, span, [], trace=True) as steered:
        for ids in (chat.input_ids[0].tolist() for chat in encoded):
            shared = shared_prefix_len(seen, ids[:-1])
            cache.crop(shared - len(seen))
            output = model.hf_model(
                input_ids=torch.tensor([ids[shared:]]),
                past_key_values=cache,
                output_hidden_states=True,
                logits_to_keep=1,
            )
            hidden = torch.stack([output.hidden_states[layer][0].float() for layer in layers])
            if not seen:
                prompt = hidden[:, span[0]].mean(1)
            states.append(hidden[:, -1])
            seen = ids
    return {
        "states": torch.stack(states).numpy(),
        "head_mass": steered.traces[0].mass.flatten(0, 1).T.float().numpy(),
        "prompt": prompt.expand(len(states), -1, -1).numpy(),
    }


def table_of(model, folder: Path, family_of: Callable[[str], str]) -> dict[str, np.ndarray]:
    """A run's probes as columns, cached in a file beside the run."""
    file = folder.parent / f"{folder.name}-states.npz"
    if not file.exists():
        parts = []
        for record in sorted(read_run(folder).records, key=lambda r: r.conversation):
            probes = record.probes
            agent = record.agent
            mass = {t.round: t.mass for t in record.turns if t.speaker == "agent"}
            scores = {number: [p.score for p in probes if p.round == number] for number in mass}
            count = len(probes)
            parts.append(
                read_states(model, record)
                | {
                    "kept": np.array([p.score >= 0.5 for p in probes]),
                    "round": np.array([p.round for p in probes]),
                    "turn_mass": np.array([mass.get(p.round - 1, np.nan) for p in probes], float),
                    "before": np.array(
                        [np.mean(scores.get(p.round - 1) or np.nan) for p in probes]
                    ),
                    "conversation": np.array([f"{folder.name} {record.conversation}"] * count),
                    "id": np.array([agent.id] * count),
                    "category": np.array([agent.category] * count),
                    "family": np.array([family_of(agent.id)] * count),
                }
            )
            print(folder.name, len(parts), flush=True)
        np.savez(file, **{name: np.concatenate([p[name] for p in parts]) for name in parts[0]})
    with np.load(file) as stored:
        return dict(stored)


def ridge(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    """Predictions for `test` minus the mean of y, for every penalty."""
    mean = x.mean(0)
    scale = x.std(0) + 1e-9
    z = (x - mean) / scale
    z_test = (test - mean) / scale
    gram = z.T @ z / len(z)
    moment = z.T @ (y - y.mean(0)) / len(z)
    diagonal = np.eye(len(gram))
    return [z_test @ np.linalg.solve(gram + p * diagonal, moment) for p in PENALTIES]


def out_of_fold(
    candidates: Sequence[tuple[np.ndarray, np.ndarray]],
    folds: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    quality: Callable[[np.ndarray, np.ndarray], float],
) -> np.ndarray:
    """Every probe's score from a regression that was fitted on the other folds.

    Args:
        candidates: features and targets of each layer; one is chosen in the training folds.
        folds: of each probe.
        score: computes scores from predictions, their row numbers, and the targets of all rows.
        quality: rates the scores of some rows, in order to choose candidate and penalty.
    """

    def scored(train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
        """The scores of the rows `test`, by candidate and penalty."""
        return [
            score(prediction, test, y)
            for x, y in candidates
            for prediction in ridge(x[train], y[train], x[test])
        ]

    result = np.full(len(folds), np.nan)
    for fold in np.unique(folds):
        training = np.unique(folds[folds != fold])
        qualities = []
        for inner in training:
            rows = folds == inner
            inner_scores = scored((folds != fold) & ~rows, rows)
            qualities.append([quality(scores, rows) for scores in inner_scores])
        best = np.argmax(np.nanmean(qualities, 0))
        result[folds == fold] = scored(folds != fold, folds == fold)[best]
    return result


def margin(
    predictions: np.ndarray, targets: np.ndarray, ids: np.ndarray, families: np.ndarray
) -> np.ndarray:
    """How much higher a prediction's cosine with its own target is than with the closest prompt of
    another family; all are [row, ...], and only prompts of these rows are compared.
    """
    first = np.unique(ids, return_index=True)[1]
    unit = targets / np.linalg.norm(targets, axis=1, keepdims=True)
    predictions = predictions / np.linalg.norm(predictions, axis=1, keepdims=True)
    others = np.where(families[:, None] == families[first], -np.inf, predictions @ unit[first].T)
    return (predictions * unit).sum(1) - others.max(1)


def wins(scores: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Pairs [lost, kept]: 1 where the kept probe has the higher score, 0.5 for a tie."""
    lost = scores[~kept, None]
    followed = scores[None, kept]
    return (followed > lost) + 0.5 * (followed == lost)


def predictors(table: dict[str, np.ndarray], folds: np.ndarray) -> dict[str, np.ndarray]:
    """Each predictor's score per probe; a higher score means the probe is more likely kept."""
    kept = table["kept"]
    rounds = table["round"].astype(float)
    categories = (table["category"][:, None] == np.unique(table["category"])).astype(float)
    outcome = kept[:, None].astype(float)
    states, prompts = (
        list(table[name].astype(float).swapaxes(0, 1)) for name in ("states", "prompt")
    )
    centred = [layer - layer.mean(0) for layer in prompts]

    def fitted(*features: np.ndarray) -> np.ndarray:
        def quality(scores: np.ndarray, rows: np.ndarray) -> float:
            pairs = wins(scores, kept[rows])
            return float(pairs.mean()) if pairs.size else np.nan

        candidates = [(layer, outcome) for layer in features]
        return out_of_fold(candidates, folds, lambda p, *_: p[:, 0].round(9), quality)

    return {
        MASS: table["head_mass"].mean(1),
        "mass of the turn before": table["turn_mass"],
        ROUND: -rounds,
        BEFORE: table["before"],
        RATES: fitted(np.column_stack([categories, rounds])),
        "mass of every head": fitted(table["head_mass"].astype(float)),
        "outcome": fitted(*states),
        "prompt": out_of_fold(
            list(zip(states, centred, strict=True)),
            folds,
            lambda p, rows, y: margin(p, y[rows], table["id"][rows], table["family"][rows]),
            lambda margins, rows: float((margins > 0).mean()),
        ),
    }


def folds_of(table: dict[str, np.ndarray], unit: str, seed: int) -> np.ndarray:
    """A random fold per unit; units of one category are spread over the folds."""
    names, first, owner = np.unique(table[unit], return_index=True, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(table["category"][first][order], kind="stable")]
    places = np.empty(len(names), int)
    places[order] = np.arange(len(names)) % FOLDS
    return places[owner]


def compared(table: dict[str, np.ndarray], unit: str) -> dict:
    """Every predictor's AUC over pairs of one fold, and how much it exceeds its peers'."""
    kept = table["kept"]
    families, owner = np.unique(table["family"], return_inverse=True)
    member = np.eye(len(families))[:, owner]
    chances = np.full(len(families), 1 / len(families))
    draws = np.random.default_rng(0).multinomial(len(families), chances, 10_000)
    weights = np.vstack([np.ones(len(families)), draws])  # the original families come first
    cell = np.char.add(table["category"], table["round"].astype(str))
    alike = cell[~kept, None] == cell[kept]

    totals: dict[tuple, np.ndarray] = {}
    decoded = np.zeros(len(kept))
    chance = 0.0
    for seed in range(REPEATS):
        folds = folds_of(table, unit, seed)
        scores = predictors(table, folds)
        decoded += (scores["prompt"] > 0) / REPEATS
        rivals = [len(np.unique(owner[folds == fold])) for fold in folds]
        chance += float(np.mean(1 / np.array(rivals))) / REPEATS
        within = folds[~kept, None] == folds[kept]
        for kind, allowed in ((ALL, within), (SAME, within & alike)):
            for name in (None, *scores):
                pairs = allowed if name is None else allowed * wins(scores[name], kept)
                by_family = member[:, ~kept] @ pairs @ member[:, kept].T
                totals[kind, name] = totals.get((kind, name), 0) + by_family

    def estimate(values: np.ndarray) -> dict:
        low, high = np.nanquantile(values[1:], [0.025, 0.975])
        return {"mean": round(values[0], 4), "low": round(low, 4), "high": round(high, 4)}

    summed = {key: ((weights @ total) * weights).sum(1) for key, total in totals.items()}
    with np.errstate(invalid="ignore"):  # a resample may have no pairs
        aucs = {key: value / summed[key[0], None] for key, value in summed.items()}
    return {
        "decoded": {
            name: equal_cost.over_groups(np.where(which, decoded, np.nan), table["family"])
            for name, which in (("kept", kept), ("lost", ~kept))
        }
        | {"chance": round(chance, 4)},
        "predictors": {
            name: {
                "auc": estimate(aucs[ALL, name]),
                "auc_same_category_and_round": estimate(aucs[SAME, name]),
                "less": {
                    peer: estimate(aucs[ALL, name] - aucs[ALL, peer])
                    for peer in PEERS
                    if peer != name
                },
            }
            for name in scores
        },
    }


def summary(table: dict[str, np.ndarray]) -> dict:
    """How well lost probes are predicted in unseen conversations, families and categories."""
    late = table["round"] > 1
    table = {name: column[late] for name, column in table.items()}
    return {
        "probes": len(table["kept"]),
        "lost": int((~table["kept"]).sum()),
        "units": {unit: len(np.unique(table[unit])) for unit in UNITS},
        "unseen": {unit: compared(table, unit) for unit in UNITS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/decodable"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    models = {
        "smollm2": (holdfast.load("smollm2", dtype="bfloat16"), smollm2_run, screen.family_of),
        "default": (holdfast.load("default"), default_run, equal_cost.family_of),
    }
    record = {
        "benchmark": "decodable",
        "measured_on": measured_on(
            models["default"][0], {name: model.fingerprint for name, (model, *_) in models.items()}
        ),
        "seeds": SEEDS,
        "conversations": CONVERSATIONS,
        "models": {},
    }
    for name, (model, run, family_of) in models.items():
        tables = [table_of(model, run(model, arguments.runs, s), family_of) for s in SEEDS]
        joined = {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}
        record["models"][name] = summary(joined)
        print(name, json.dumps(record["models"][name], indent=1), flush=True)
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
