"""Tables 1, 5 and 7 of the paper: methods by task, and how heads are chosen."""

from __future__ import annotations

import numpy as np

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import NOT_JUDGED, all_of, within
from holdfast.report.wording import with_interval
from holdfast.reproduce.findings import Claim, Figure
from holdfast.reproduce.zhang2024.results import (
    beyond_reach,
    claim_of,
    difference,
    points,
    rows_of,
    share_of_best,
)
from holdfast.reproduce.zhang2024.setup import pasta_on
from holdfast.reproduce.zhang2024.study import BOOST, CHOSEN_BOOST, Study

_MODERATE = (0.02, 0.2)  # of all heads: the paper's 50 to 150 of LLaMA's 1,024 are 0.05 to 0.15


def table_1(study: Study) -> Figure:
    """Methods by task (Tables 1 and 2, which differ in the model)."""
    rows = list(dict.fromkeys(row for results in study.tested.values() for row in results))
    compared = [(row, BOOST) for row in CHOSEN_BOOST]
    compared += [(row, f"PASTA, {strategy}") for row, strategy in CHOSEN_BOOST.items()]
    told = "; ".join(
        f"{first} less {second} {points(difference(study, first, second))}"
        for first, second in compared
    )
    return Figure(
        "1",
        "methods by task (Tables 1 and 2 of the paper)",
        "PASTA at alpha 0.01, its heads chosen on validation samples. Below: methods that the paper"
        " does not have, each at its best validated knob. Average of the tasks, paired, with 95 %"
        f" intervals: {told}."
        + " Of one task, the heads that all tasks share (multi-task) are its own."
        * (len(study.setup.tasks) == 1),
        (),
        (
            claim_of(
                study,
                "multi-task PASTA beats zero-shot prompting on the average of the tasks.",
                "PASTA, multi-task",
                "zero-shot",
            ),
            claim_of(study, "it beats few-shot prompting too.", "PASTA, multi-task", "few-shot"),
            claim_of(
                study,
                "task-agnostic PASTA, profiled on the three other tasks, beats few-shot prompting.",
                "PASTA, task-agnostic",
                "few-shot",
            ),
            claim_of(
                study, "few-shot is a stronger baseline than zero-shot.", "few-shot", "zero-shot"
            ),
            claim_of(
                study, "asterisks around what matters make it worse.", "*-marked", "zero-shot", -1
            ),
            claim_of(study, "so do quotes.", "“”-marked", "zero-shot", -1),
        ),
        "Table",
        rows_of(study, rows),
    )


def table_5(study: Study) -> Figure:
    """How heads are chosen."""
    return Figure(
        "5",
        "ways to choose the heads",
        "k of each way chosen on validation samples.",
        (),
        (
            claim_of(
                study,
                "heads that all tasks share (multi-task) do better than the heads of any (union).",
                "PASTA, multi-task",
                "PASTA, union",
            ),
            claim_of(
                study,
                "heads of the task itself do at least as well as shared ones.",
                "PASTA, task-specific",
                "PASTA, multi-task",
            ),
        ),
        "Table",
        rows_of(study, ["zero-shot", "PASTA, task-specific", "PASTA, union", "PASTA, multi-task"]),
    )


def table_7(study: Study) -> Figure:
    """How many heads."""
    shape = study.setup.model.shape
    count, low, high = shape.layers * shape.heads, *_MODERATE
    rows: list[tuple[str, ...]] = [("task", *study.setup.strategies)]
    rows += [
        (name, *(str(len(study.heads[strategy, name])) for strategy in study.setup.strategies))
        for name in study.setup.tasks
    ]
    zeros = [
        name for name in study.setup.tasks if beyond_reach(name, *study.validated[name].values())
    ]
    shares = {name: _share(study, name, count) for name in study.setup.tasks if name not in zeros}
    verdict = all_of(*(within(share, low, high, 0, 1) for share in shares.values()))
    told = "; ".join(
        f"{name} {with_interval(share, lambda value: f'{value:.0%}')}"
        for name, share in shares.items()
    )
    evidence = (
        f"Of {count} heads, chosen on {study.setup.scale.validated} samples: {told} "
        f"(we call {low:.0%} to {high:.0%} moderate)."
    )
    if zeros:
        evidence += f" Left out: {' and '.join(zeros)}, on which every set of heads scores 0."
    if not shares:
        verdict, evidence = NOT_JUDGED, "Every set of heads scores 0 on every task."
    return Figure(
        "7",
        "how many heads are steered",
        "",
        (),
        (
            Claim(
                "a moderate number of heads is best, about 5 % to 15 % of all.", verdict, evidence
            ),
        ),
        "Table",
        tuple(rows),
    )


def _share(study: Study, name: str, count: int) -> Estimate:
    """The share of heads that multi-task PASTA takes for a task."""
    options = study.candidates("multi-task", name)
    values = [study.validated[name][pasta_on(heads)] for heads in options]
    return share_of_best(np.column_stack(values), [len(heads) for heads in options], count)
