"""Measures whether a model's internal states predict lost probes better than the mass on the prompt
does.

A probe is lost if it scores below 0.5. Where the reply to a probe begins, the residual stream is
read at one third, two thirds and the end of the depth, and the mass on the prompt in every head.
Probes of round 1 are left out, since no round precedes them.

Predictors. Those with parameters are ridge regressions; layer and penalty are chosen by
cross-validation in the training folds. Two read the residual stream:

- `outcome` predicts whether the probe is kept, as Dongre et al. 2026 (arXiv 2605.12922) recover
  the outcome of recall with linear probes. This one could be shipped, and is decisive.
- `prompt` takes "the rule is still decodable" literally. A classifier of prompts cannot know the
  class of a prompt that it has never seen. So the regression predicts the mean state of the
  prompt's own tokens, and the score is how much closer the prediction is to the prompt in force
  than to any other of the test fold. It is fitted without any outcomes.

Folds. They are over families of prompts. For comparison there are folds over conversations, where
the prompts are known from training, and over categories, as families of one category can be very
similar.

AUC. It is how often a kept probe scores higher than a lost one of the same test fold: a
regression's level depends on the fold, which would penalise it in comparisons across folds. It is
given over all pairs and over those of one category and round. Intervals resample families, the same
ones for every predictor.

    python benchmarks/decodable.py --runs runs/decodable --out FILE.json

Runs in --runs are resumed, and the states read from them are kept there.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import equal_cost
import numpy as np
import on_smollm2
import screen
import torch
from group_intervals import interval_over_groups
from probe_states import ProbeTable, concatenate, table_of_run
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.models.local import LocalModel

SEEDS = (1, 2)
CONVERSATIONS = 96
NUM_FOLDS = 5
NUM_SPLITS = 3  # random divisions into folds, over which results are averaged
RESAMPLES = 10_000
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
UNITS = ("conversation", "family", "category")  # never shared by training and test
MASS = "mass"
ROUND = "round"
SCORE_BEFORE = "score before"
BASE_RATES = "category and round"
PEERS = (MASS, ROUND, SCORE_BEFORE, BASE_RATES)  # that every other predictor is compared with


# Regressions


class Layer(NamedTuple):
    """The data of a regression on one layer, [probe, feature] and [probe, target]."""

    features: np.ndarray
    targets: np.ndarray


def ridge(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    """Predictions for `test` minus the mean of y, for every penalty."""
    mean = x.mean(0)
    scale = x.std(0) + 1e-9
    z = (x - mean) / scale
    z_test = (test - mean) / scale
    gram = z.T @ z / len(z)
    moment = z.T @ (y - y.mean(0)) / len(z)
    diagonal = np.eye(len(gram))
    return [z_test @ np.linalg.solve(gram + penalty * diagonal, moment) for penalty in PENALTIES]


def out_of_fold(
    layers: Sequence[Layer],
    folds: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray, Layer], np.ndarray],
    quality: Callable[[np.ndarray, np.ndarray], float],
) -> np.ndarray:
    """Every probe's score from a regression that was fitted on the other folds.

    Args:
        layers: one of them is chosen, together with a penalty, in the training folds.
        folds: the number of each probe's fold.
        score: computes scores from predictions, the rows that they are for, and their layer.
        quality: rates the scores of some rows, in order to choose.
    """

    def candidates(train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
        """The scores of the rows `test`, by layer and penalty."""
        test_scores = []
        for layer in layers:
            x = layer.features
            for predictions in ridge(x[train], layer.targets[train], x[test]):
                test_scores.append(score(predictions, test, layer))
        return test_scores

    scores = np.full(len(folds), np.nan)
    for fold in np.unique(folds):
        is_test = folds == fold
        qualities = []
        for inner in np.unique(folds[~is_test]):
            is_inner = folds == inner
            inner_scores = candidates(~is_test & ~is_inner, is_inner)
            qualities.append([quality(values, is_inner) for values in inner_scores])
        best = np.argmax(np.nanmean(qualities, 0))
        scores[is_test] = candidates(~is_test, is_test)[best]
    return scores


def predict_outcomes(
    features: Sequence[np.ndarray], kept: np.ndarray, folds: np.ndarray
) -> np.ndarray:
    """Scores of regressions that predict whether a probe is kept.

    Args:
        features: of each layer, [probe, feature].
    """

    def auc(scores: np.ndarray, rows: np.ndarray) -> float:
        won = wins(scores, kept[rows])
        return float(won.mean()) if won.size else np.nan

    outcomes = kept[:, None].astype(float)
    return out_of_fold(
        [Layer(values, outcomes) for values in features],
        folds,
        lambda predictions, rows, layer: predictions[:, 0].round(9),
        auc,
    )


def predict_prompts(table: ProbeTable, folds: np.ndarray) -> np.ndarray:
    """Scores of regressions that predict the states of the prompt: their margins (`margin`)."""
    layers = []
    for states, prompt in zip(by_layer(table.states), by_layer(table.prompt), strict=True):
        layers.append(Layer(states, prompt - prompt.mean(0)))
    return out_of_fold(
        layers,
        folds,
        lambda predictions, rows, layer: margin(
            predictions, layer.targets[rows], table.id[rows], table.family[rows]
        ),
        lambda margins, rows: float((margins > 0).mean()),
    )


def by_layer(states: np.ndarray) -> list[np.ndarray]:
    """[probe, layer, size] as one array [probe, size] for each layer."""
    return list(states.astype(float).swapaxes(0, 1))


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


def predictors(table: ProbeTable, folds: np.ndarray) -> dict[str, np.ndarray]:
    """Each predictor's score per probe; a higher score means the probe is more likely kept."""
    rounds = table.round.astype(float)
    categories = (table.category[:, None] == np.unique(table.category)).astype(float)

    def predict(*features: np.ndarray) -> np.ndarray:
        return predict_outcomes(features, table.kept, folds)

    return {
        MASS: table.head_mass.mean(1),
        "mass of the turn before": table.turn_mass,
        ROUND: -rounds,
        SCORE_BEFORE: table.before,
        BASE_RATES: predict(np.column_stack([categories, rounds])),
        "mass of every head": predict(table.head_mass.astype(float)),
        "outcome": predict(*by_layer(table.states)),
        "prompt": predict_prompts(table, folds),
    }


# Comparing predictors


def folds_of(table: ProbeTable, unit: str, seed: int) -> np.ndarray:
    """The number of each probe's fold, which is random by unit.

    Units of one category are spread over the folds.

    Args:
        unit: the column whose values are the units.
    """
    names, first, unit_of_probe = np.unique(
        getattr(table, unit), return_index=True, return_inverse=True
    )
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(table.category[first][order], kind="stable")]
    fold_of_unit = np.empty(len(names), int)
    fold_of_unit[order] = np.arange(len(names)) % NUM_FOLDS
    return fold_of_unit[unit_of_probe]


def wins(scores: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Pairs [lost, kept]: 1 where the kept probe has the higher score, 0.5 for a tie."""
    lost_scores = scores[~kept, None]
    kept_scores = scores[None, kept]
    return (kept_scores > lost_scores) + 0.5 * (kept_scores == lost_scores)


@dataclass(frozen=True)
class FamilyPairs:
    """Sums values of pairs [lost, kept] of probes, in the data and in resamples of the families.

    Attributes:
        lost: the lost probes of each family, 0 or 1, [family, lost].
        kept: the kept probes of each family, 0 or 1, [family, kept].
        weights: how often each family is drawn, [1 + resample, family]; the first row is the data.
    """

    lost: np.ndarray
    kept: np.ndarray
    weights: np.ndarray

    def by_family(self, pairs: np.ndarray) -> np.ndarray:
        """The sums by the families of both probes, [family, family]."""
        return self.lost @ pairs @ self.kept.T

    def resample(self, sums: np.ndarray) -> np.ndarray:
        """The total of sums by family in the data and in each resample, [1 + resample]."""
        return ((self.weights @ sums) * self.weights).sum(1)


def family_pairs(table: ProbeTable) -> FamilyPairs:
    """The pairs of a table, with the same resamples every time."""
    families, family_of_probe = np.unique(table.family, return_inverse=True)
    count = len(families)
    members = np.eye(count)[:, family_of_probe]
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    return FamilyPairs(
        members[:, ~table.kept], members[:, table.kept], np.vstack([np.ones(count), draws])
    )


def estimate(values: np.ndarray) -> dict:
    """The value of the data, which comes first, with its 95% interval over the resamples."""
    low, high = np.nanquantile(values[1:], [0.025, 0.975])
    return {"mean": round(values[0], 4), "low": round(low, 4), "high": round(high, 4)}


class Split(NamedTuple):
    """A random division of the probes into folds."""

    folds: np.ndarray  # the number of each probe's fold
    scores: dict[str, np.ndarray]  # of each predictor, fitted on the other folds


def compare(table: ProbeTable, unit: str) -> dict:
    """Every predictor's AUC over pairs of one fold, and how much it exceeds its peers'.

    Args:
        unit: the column whose values training and test do not share.
    """
    splits = []
    for seed in range(NUM_SPLITS):
        folds = folds_of(table, unit, seed)
        splits.append(Split(folds, predictors(table, folds)))
    aucs = resampled_aucs(table, splits)
    return {
        "decoded": decoded_prompts(table, splits),
        "predictors": {
            name: {kind: estimate(values[name]) for kind, values in aucs.items()}
            | {"less": {peer: estimate(auc - aucs["auc"][peer]) for peer in PEERS if peer != name}}
            for name, auc in aucs["auc"].items()
        },
    }


def resampled_aucs(table: ProbeTable, splits: Sequence[Split]) -> dict[str, dict[str, np.ndarray]]:
    """The AUC of each predictor, [1 + resample], by the kind of pairs that it is over.

    Pairs and wins are summed over all splits.
    """
    kept = table.kept
    families = family_pairs(table)
    cell = np.char.add(table.category, table.round.astype(str))
    same_cell = cell[~kept, None] == cell[kept]
    num_pairs = defaultdict(float)  # by family
    num_won = defaultdict(lambda: defaultdict(float))  # likewise
    for folds, scores in splits:
        same_fold = folds[~kept, None] == folds[kept]
        pairs = {"auc": same_fold, "auc_same_category_and_round": same_fold & same_cell}
        for kind, counted in pairs.items():
            num_pairs[kind] += families.by_family(counted)
            for name, values in scores.items():
                num_won[kind][name] += families.by_family(counted * wins(values, kept))
    aucs = {}
    with np.errstate(invalid="ignore"):  # a resample may have no pairs
        for kind, won in num_won.items():
            total = families.resample(num_pairs[kind])
            aucs[kind] = {name: families.resample(sums) / total for name, sums in won.items()}
    return aucs


def decoded_prompts(table: ProbeTable, splits: Sequence[Split]) -> dict:
    """How often the prompt in force is the closest to the prediction of `prompt`: of kept probes,
    of lost ones, and if a family of the test fold were drawn at random.
    """
    decoded = np.zeros(len(table.kept))
    chance = 0.0
    for folds, scores in splits:
        decoded += (scores["prompt"] > 0) / len(splits)
        families = {fold: len(np.unique(table.family[folds == fold])) for fold in np.unique(folds)}
        chance += float(np.mean([1 / families[fold] for fold in folds])) / len(splits)
    return {
        "kept": interval_over_groups(np.where(table.kept, decoded, np.nan), table.family),
        "lost": interval_over_groups(np.where(table.kept, np.nan, decoded), table.family),
        "chance": round(chance, 4),
    }


def summary(table: ProbeTable) -> dict:
    """How well lost probes are predicted in unseen conversations, families and categories."""
    table = table.select(table.round > 1)
    return {
        "probes": len(table.kept),
        "lost": int((~table.kept).sum()),
        "units": {unit: len(np.unique(getattr(table, unit))) for unit in UNITS},
        "unseen": {unit: compare(table, unit) for unit in UNITS},
    }


# The runs


def run_default(model: LocalModel, runs: Path, seed: int) -> Path:
    """Runs the default model on its own suite; returns the folder."""
    folder = runs / f"default-{seed}"
    settings = drift.Settings(conversations=CONVERSATIONS, seed=seed, adoption=False)
    drift.run(model, drift.load_suite("starter"), folder, settings)
    return folder


def run_smollm2(model: LocalModel, runs: Path, seed: int) -> Path:
    """Runs SmolLM2 as `on_smollm2.py` does, with scripted users; returns the folder."""
    on_smollm2.run_drift(model, runs, seed, "scripted")
    return runs / f"drift-scripted-{seed}"


class MeasuredModel(NamedTuple):
    """A model, and the runs in which it is measured."""

    model: LocalModel
    run: Callable[[LocalModel, Path, int], Path]  # makes the run of a seed; returns its folder
    family_of: Callable[[str], str]  # the family of a prompt, by its id


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/decodable"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    default = holdfast.load("default")
    smollm2 = holdfast.load("smollm2", dtype="bfloat16")
    models = {
        "smollm2": MeasuredModel(smollm2, run_smollm2, screen.family_of),
        "default": MeasuredModel(default, run_default, equal_cost.family_of),
    }
    fingerprints = {name: measured.model.fingerprint for name, measured in models.items()}
    record = {
        "benchmark": "decodable",
        "measured_on": measured_on(default, fingerprints),
        "seeds": SEEDS,
        "conversations": CONVERSATIONS,
        "models": {},
    }
    for name, (model, run, family_of) in models.items():
        folders = [run(model, arguments.runs, seed) for seed in SEEDS]
        tables = [table_of_run(model, folder, family_of) for folder in folders]
        record["models"][name] = summary(concatenate(tables))
        print(name, json.dumps(record["models"][name], indent=1), flush=True)
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
