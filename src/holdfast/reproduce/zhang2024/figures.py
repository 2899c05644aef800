"""Figures 2 to 6 of the paper."""

from __future__ import annotations

import numpy as np

from holdfast.analysis.profile import UNSTEERED
from holdfast.analysis.statistics import Estimate, paired_difference
from holdfast.analysis.tasks import ZERO_SHOT
from holdfast.analysis.verdicts import within
from holdfast.methods import HeadSet, Pasta, spell
from holdfast.records import read_run
from holdfast.reproduce.findings import Claim, Figure, claim_that, spelled
from holdfast.reproduce.zhang2024.drawing import write_alphas, write_single_heads, write_sizes
from holdfast.reproduce.zhang2024.plan import FREE, TASKS, pasta_on
from holdfast.reproduce.zhang2024.results import HALVES, best_less_worst
from holdfast.reproduce.zhang2024.study import Study, values_of

_ROBUST = 0.1  # a metric that changes by less is called robust


def figure_2(study: Study) -> Figure:
    """All heads, a layer, one head (Figures 2, 4, 5 and 6, one per task)."""
    layers, heads = study.task.model.shape.layers, study.task.model.shape.heads
    images, claims = [], []
    for name in TASKS:
        whole = {
            layer: pasta_on(HeadSet((layer, head) for head in range(heads)))
            for layer in range(layers)
        }
        pasta = pasta_on(study.heads["multi-task", name])
        answers = study.ask("figure-2", name, [*whole.values(), pasta_on(None), pasta])
        zero = values_of(answers[ZERO_SHOT])
        gains = {
            method: paired_difference(values_of(answers[spell([method])]), zero)
            for method in (*whole.values(), pasta_on(None), pasta)
        }
        records = read_run(study.profile_folder(name)).records
        single = np.array(
            [
                [
                    [
                        one["scores"][f"{layer}.{head}"] - one["scores"][UNSTEERED]
                        for head in range(heads)
                    ]
                    for layer in range(layers)
                ]
                for one in records
            ]
        )
        lines = {"PASTA, multi-task": gains[pasta], "all heads": gains[pasta_on(None)]}
        images += write_single_heads(
            name,
            single.mean(0),
            [gains[method] for method in whole.values()],
            lines,
            study.task.out / "figures" / f"2-{name}",
        )
        ahead = paired_difference(
            values_of(answers[spell([pasta])]), values_of(answers[spell([pasta_on(None)])])
        )
        everywhere = gains[pasta_on(None)]
        claims += [
            claim_that(
                f"{name}: steering all heads is worse than steering none.",
                everywhere,
                -1,
                f"All heads less zero-shot: {spelled(everywhere)}.",
            ),
            claim_that(
                f"{name}: steering the profiled heads is better than all.",
                ahead,
                +1,
                f"Multi-task PASTA less all heads: {spelled(ahead)}.",
            ),
        ]
        spread = best_less_worst(single.reshape(len(single), -1))
        text = f"{name}: what one head gives varies between heads."
        claims.append(claim_that(text, spread, +1, f"{HALVES}: {spelled(spread)}."))
    how = (
        "Change against zero-shot: single heads on the training samples they are profiled on,"
        " everything else on test samples."
    )
    return Figure(
        "2",
        "all heads, an entire layer, a single head (Figures 2, 4, 5 and 6 of the paper)",
        how,
        tuple(images),
        tuple(claims),
    )


def figure_3(study: Study) -> Figure:
    """How many heads, and how strongly."""
    images, claims = [], []
    for name in FREE:
        options = study.candidates("multi-task", name)
        alphas = {
            alpha: Pasta(alpha, study.heads["multi-task", name])
            for alpha in study.task.scale.alphas
        }
        answers = study.ask(
            "figure-3", name, [*map(pasta_on, options), *alphas.values()], generate=True
        )
        by_size = {len(heads): answers[spell([pasta_on(heads)])] for heads in options}
        by_alpha = {alpha: answers[spell([method])] for alpha, method in alphas.items()}
        images += write_sizes(name, by_size, study.task.out / "figures" / f"3-{name}")
        images += write_alphas(name, by_alpha, study.task.out / "figures" / f"3-{name}-alpha")
        asked = next(iter(answers[ZERO_SHOT].scores))
        if len(by_size) > 1:
            least, most = min(by_size), max(by_size)
            more = paired_difference(by_size[most].scores[asked], by_size[least].scores[asked])
            text = f"{name}: the more heads, the more closely the instruction is followed."
            evidence = f"{asked.capitalize()}, {most} heads less {least}: {spelled(more)}."
            claims.append(claim_that(text, more, +1, evidence))
        if len(by_size) > 2 and name == "json":
            middle = sorted(by_size)[len(by_size) // 2]
            lost = paired_difference(
                by_size[most].scores["prediction"], by_size[middle].scores["prediction"]
            )
            text = "json: too many heads cost the quality of the answer."
            evidence = f"Prediction, {most} heads less {middle}: {spelled(lost)}."
            claims.append(claim_that(text, lost, -1, evidence))
        strong, weak = (by_alpha[alpha].scores[asked] for alpha in (min(by_alpha), max(by_alpha)))
        change = paired_difference(strong, weak)
        claims.append(
            Claim(
                f"{name}: alpha hardly matters from {max(by_alpha):g} to {min(by_alpha):g}.",
                robust(change),
                f"{asked.capitalize()} at {min(by_alpha):g} less that at {max(by_alpha):g}:"
                f" {spelled(change)} (we call an interval within {_ROBUST} robust).",
            )
        )
    return Figure(
        "3",
        "how many heads, and how strongly they are steered",
        "Heads shared by the best k of all tasks, for every k; alpha on the heads of Table 1.",
        tuple(images),
        tuple(claims),
    )


def robust(found: Estimate) -> str:
    """Whether the whole interval of a change of scores lies within the bound."""
    return within(found, -_ROBUST, _ROBUST, -1, 1)
