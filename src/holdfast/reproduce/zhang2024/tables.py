"""Tables 1, 4, 5, 7, 11, 13 and 14 of the paper."""

from __future__ import annotations

import numpy as np

from holdfast import tasks
from holdfast.analysis.profile import rank_first
from holdfast.analysis.statistics import Estimate, estimate, paired_difference
from holdfast.analysis.tasks import ZERO_SHOT, Result
from holdfast.analysis.verdicts import UNDECIDED, all_of, within
from holdfast.errors import UsageError
from holdfast.methods import spell
from holdfast.records import read_run
from holdfast.report.wording import with_interval
from holdfast.reproduce.findings import Claim, Figure, claim_that, spelled
from holdfast.reproduce.zhang2024.child import make_child
from holdfast.reproduce.zhang2024.plan import FREE, STRATEGIES, TASKS, pasta_on
from holdfast.reproduce.zhang2024.results import (
    HALVES,
    best_less_worst,
    cell_of,
    claim_of,
    rows_of,
    share_of_best,
)
from holdfast.reproduce.zhang2024.study import Study, values_of

_MODERATE = (0.02, 0.2)  # of all heads: the paper's 50 to 150 of LLaMA's 1,024 are 0.05 to 0.15


def table_1(study: Study) -> Figure:
    """Methods by task (Tables 1 and 2, which differ in the model)."""
    rows = list(dict.fromkeys(row for results in study.tested.values() for row in results))
    return Figure(
        "1",
        "methods by task (Tables 1 and 2 of the paper)",
        "PASTA at alpha 0.01, its heads chosen on validation samples. Below: methods that the paper"
        " does not have, each at its best validated knob.",
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


def table_4(study: Study) -> Figure:
    """The instruction in other words."""
    rows, claims = (
        [
            (
                "instruction",
                "method",
                *(f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}" for name in FREE),
            )
        ],
        [],
    )
    spread: dict[str, list[float]] = {"zero-shot": [], "PASTA": []}
    for wording in ("original", "shortened", "rephrased"):
        answers = {}
        for name in FREE:
            method = pasta_on(study.heads["multi-task", name])
            found = study.ask(f"table-4-{wording}", name, [method], instruction=wording)
            answers[name] = {"zero-shot": found[ZERO_SHOT], "PASTA": found[spell([method])]}
        for row in spread:
            rows.append((wording, row, *(cell_of(answers[name][row]) for name in FREE)))
            spread[row].append(
                float(np.mean([values_of(answers[name][row]).mean() for name in FREE]))
            )
        gain = estimate(
            np.mean(
                [
                    values_of(answers[name]["PASTA"]) - values_of(answers[name]["zero-shot"])
                    for name in FREE
                ],
                axis=0,
            )
        )
        text = f"with the {wording} instruction, PASTA improves on zero-shot."
        claims.append(claim_that(text, gain, +1, f"Mean of both tasks: {spelled(gain)}."))
    ranges = {row: max(values) - min(values) for row, values in spread.items()}
    evidence = (
        f"Best less worst wording: zero-shot {ranges['zero-shot']:.3f}, PASTA {ranges['PASTA']:.3f}"
        " (two numbers have no interval)."
    )
    claims.append(
        Claim(
            "PASTA makes a model less sensitive to how the instruction is worded.",
            UNDECIDED,
            evidence,
        )
    )
    return Figure(
        "4",
        "the instruction in other words",
        "The heads of Table 1, multi-task.",
        (),
        tuple(claims),
        "Table",
        tuple(rows),
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
    shape = study.task.model.shape
    count, low, high = shape.layers * shape.heads, *_MODERATE
    rows = [("task", *STRATEGIES)]
    rows += [
        (name, *(str(len(study.heads[strategy, name])) for strategy in STRATEGIES))
        for name in TASKS
    ]
    shares = {name: _share(study, name, count) for name in TASKS}
    verdict = all_of(*(within(share, low, high, 0, 1) for share in shares.values()))
    told = "; ".join(
        f"{name} {with_interval(share, lambda value: f'{value:.0%}')}"
        for name, share in shares.items()
    )
    evidence = (
        f"Of {count} heads, chosen on {study.task.scale.validated} samples: {told} "
        f"(we call {low:.0%} to {high:.0%} moderate)."
    )
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


def table_11(study: Study) -> Figure:
    """Few-shot prompting by draw of the demonstrations."""
    result = study.tested["pronouns"]["few-shot"]
    names = list(result.scores)
    rows = [
        ("demonstrations", *names),
        *(
            (str(number), *(f"{100 * draw[name]:.1f}" for name in names))
            for number, draw in enumerate(result.draws, 1)
        ),
    ]
    records = [
        one
        for one in read_run(study.task.out / "test" / "pronouns").records
        if one["variant"] == "few-shot"
    ]
    values = np.full((study.task.scale.tested, len(result.draws)), np.nan)
    for one in records:
        values[one["conversation"], one["draw"] - 1] = np.mean(list(one["scores"].values()))
    found = best_less_worst(values)
    text = "few-shot prompting varies with its demonstrations."
    claim = claim_that(text, found, +1, f"{HALVES}: {spelled(found)}.")
    return Figure(
        "11",
        "few-shot prompting by draw of the demonstrations",
        "Pronouns changing.",
        (),
        (claim,),
        "Table",
        tuple(rows),
    )


def table_13(study: Study) -> Figure:
    """The heads of a model on a child of it."""
    title, texts = (
        "heads of the model on a child of it, without profiling it",
        (
            "the parent's multi-task heads improve on the child's zero-shot.",
            "the parent's task-specific heads improve on it too.",
        ),
    )
    child = study.task.child
    if child is None:
        try:
            child = make_child(
                study.task.model, study.task.out / "child", study.task.scale.steps, study.task.seed
            )
        except UsageError as error:
            return Figure(
                "13",
                title,
                "Not run.",
                (),
                tuple(Claim(text, UNDECIDED, str(error)) for text in texts),
                "Table",
            )
    rows = [("", *(f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}" for name in TASKS))]
    found: dict[str, list[Result]] = {"zero-shot": [], "multi-task": [], "task-specific": []}
    for name in TASKS:
        steered = {
            strategy: pasta_on(study.heads[strategy, name])
            for strategy in ("multi-task", "task-specific")
        }
        answers = study.ask("table-13", name, steered.values(), model=child)
        found["zero-shot"].append(answers[ZERO_SHOT])
        for strategy, method in steered.items():
            found[strategy].append(answers[spell([method])])
    rows += [(f"child, {row}", *map(cell_of, results)) for row, results in found.items()]
    claims = []
    for text, strategy in zip(texts, ("multi-task", "task-specific"), strict=True):
        gain = estimate(
            np.mean(
                [
                    values_of(one) - values_of(zero)
                    for one, zero in zip(found[strategy], found["zero-shot"], strict=True)
                ],
                axis=0,
            )
        )
        claims.append(claim_that(text, gain, +1, f"Average of the tasks: {spelled(gain)}."))
    how = (
        f"{child.name}."
        if study.task.child
        else (
            f"The model fine-tuned for {study.task.scale.steps} steps on the tasks' training"
            " samples."
        )
    )
    return Figure("13", title, how, (), tuple(claims), "Table", tuple(rows))


def table_14(study: Study) -> Figure:
    """Fewer samples to profile on."""
    scale = study.task.scale
    ranked = {
        scale.profiled: study.rankings["json"],
        scale.fewer: rank_first(study.profile_folder("json"), scale.fewer),
    }
    k = len(study.heads["task-specific", "json"])
    steered = {count: pasta_on(ranking.top(k)) for count, ranking in ranked.items()}
    answers = study.ask("table-14", "json", steered.values())
    zero = answers[ZERO_SHOT]
    results = {count: answers[spell([method])] for count, method in steered.items()}
    rows = [
        ("profiled on", "json: " + " / ".join(zero.scores)),
        ("zero-shot", cell_of(zero)),
        *((f"{count} samples", cell_of(one)) for count, one in results.items()),
    ]
    gain, loss = (
        paired_difference(values_of(results[scale.fewer]), values_of(one))
        for one in (zero, results[scale.profiled])
    )
    claim = claim_that(
        f"profiled on {scale.fewer} samples instead of {scale.profiled}, PASTA still improves on "
        "zero-shot.",
        gain,
        +1,
        f"Less zero-shot {spelled(gain)}; less the heads of {scale.profiled} samples"
        f" {spelled(loss)}.",
    )
    return Figure(
        "14",
        "fewer samples to profile on",
        f"JSON formatting, the best {k} heads.",
        (),
        (claim,),
        "Table",
        tuple(rows),
    )
