"""Tables 1, 4, 5, 7, 11 and 14 of the paper."""

from collections.abc import Mapping, Sequence

import numpy as np

from holdfast.analysis.profile import rank_first
from holdfast.analysis.statistics import DIFFERENCES, Estimate, estimate, paired_difference
from holdfast.analysis.task_results import TaskScores
from holdfast.analysis.verdicts import NOT_JUDGED, UNDECIDED, all_of, within
from holdfast.methods import Pasta
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, not_run
from holdfast.papers.zhang2024.reproduction.comparisons import (
    HALVES,
    RowClaim,
    best_less_worst,
    cell_of,
    claim_of,
    difference,
    header_of,
    is_beyond_reach,
    judge_within_reach,
    points,
    rows_of,
    share_of_best,
)
from holdfast.papers.zhang2024.reproduction.reproduction_setup import pasta_on
from holdfast.papers.zhang2024.reproduction.study import BOOST, CHOSEN_BOOST, Study, values_of
from holdfast.records import read_run
from holdfast.report.wording import with_interval

_PASTA = "PASTA, multi-task"
_CLAIMS_1 = (
    RowClaim(
        "multi-task PASTA beats zero-shot prompting on the average of the tasks.",
        _PASTA,
        "zero-shot",
    ),
    RowClaim("it beats few-shot prompting too.", _PASTA, "few-shot"),
    RowClaim(
        "task-agnostic PASTA, profiled on the three other tasks, beats few-shot prompting.",
        "PASTA, task-agnostic",
        "few-shot",
    ),
    RowClaim("few-shot is a stronger baseline than zero-shot.", "few-shot", "zero-shot"),
    RowClaim("asterisks around what matters make it worse.", "*-marked", "zero-shot", sign=-1),
    RowClaim("so do quotes.", "“”-marked", "zero-shot", sign=-1),
)
_CLAIMS_5 = (
    RowClaim(
        "heads that all tasks share (multi-task) do better than the heads of any (union).",
        _PASTA,
        "PASTA, union",
    ),
    RowClaim(
        "heads of the task itself do at least as well as shared ones.",
        "PASTA, task-specific",
        _PASTA,
    ),
)
_Row = tuple[str, ...]
# shares of all heads that we call moderate; the paper's 50 to 150 of LLaMA's 1,024 are 0.05 to 0.15
_MODERATE = (0.02, 0.2)
_WORDINGS = ("original", "shortened", "rephrased")
_IMPROVES = "with the {} instruction, PASTA improves on zero-shot."
_LESS_SENSITIVE = "PASTA makes a model less sensitive to how the instruction is worded."


def table_1(study: Study) -> Figure:
    """The methods by task (Tables 1 and 2 of the paper, which differ in the model)."""
    rows = list(dict.fromkeys(row for results in study.test_results.values() for row in results))
    pairs = [(row, BOOST) for row in CHOSEN_BOOST]
    pairs += [(row, f"PASTA, {strategy}") for row, strategy in CHOSEN_BOOST.items()]
    differences = "; ".join(
        f"{first} less {second} {points(difference(study, first, second))}"
        for first, second in pairs
    )
    setup = (
        "PASTA at alpha 0.01, its heads chosen on validation samples. Below: methods that the paper"
        " does not have, each at its best validated parameter. Average of the tasks, paired, 95%"
        f" intervals: {differences}."
    )
    if len(study.setup.tasks) == 1:
        setup += " With a single task, the heads that all tasks share (multi-task) are its own."
    return Figure(
        "1",
        "methods by task (Tables 1 and 2 of the paper)",
        setup,
        claims=tuple(claim_of(study, claim) for claim in _CLAIMS_1),
        kind="Table",
        rows=rows_of(study, rows),
    )


def table_4(study: Study) -> Figure:
    """The instruction in other words."""
    names = study.setup.instruction_tasks
    title = "the instruction in other words"
    if not names:
        texts = [*map(_IMPROVES.format, _WORDINGS), _LESS_SENSITIVE]
        return not_run("4", title, texts, "The task json was not run.", kind="Table")
    rows: list[_Row] = [("instruction", "method", *map(header_of, names))]
    claims: list[Claim] = []
    all_results: list[TaskScores] = []
    means: dict[str, list[float]] = {"zero-shot": [], "PASTA": []}
    heads = {name: {"PASTA": pasta_on(study.heads["multi-task", name])} for name in names}
    for wording in _WORDINGS:
        results_by_row = _ask_tasks(study, f"table-4-{wording}", heads, instruction=wording)
        for row, results in results_by_row.items():
            rows.append((wording, row, *map(cell_of, results)))
            means_of_tasks = [values_of(result).mean() for result in results]
            means[row].append(float(np.mean(means_of_tasks)))
            all_results += results
        gain = _mean_gain(results_by_row, "PASTA")
        quantity = f"Mean of {' and '.join(names)}:"
        claims.append(claim_that(_IMPROVES.format(wording), gain, +1, quantity))
    ranges = {row: max(values) - min(values) for row, values in means.items()}
    evidence = (
        f"Best less worst wording: zero-shot {ranges['zero-shot']:.3f}, PASTA {ranges['PASTA']:.3f}"
        " (two numbers have no interval)."
    )
    claims.append(Claim(_LESS_SENSITIVE, UNDECIDED, evidence))
    return Figure(
        "4",
        title,
        "The heads of Table 1, multi-task.",
        claims=judge_within_reach(claims, " and ".join(names), *map(values_of, all_results)),
        kind="Table",
        rows=tuple(rows),
    )


def _ask_tasks(
    study: Study,
    folder: str,
    steered: Mapping[str, Mapping[str, Pasta]],
    instruction: str = "original",
) -> dict[str, list[TaskScores]]:
    """Asks the tasks with and without methods; returns the results of all tasks by row.

    Args:
        steered: the methods by task and row; "zero-shot" is the row without one.
    """
    rows: dict[str, list[TaskScores]] = {}
    for name, methods in steered.items():
        answers = study.ask(folder, name, methods.values(), instruction=instruction)
        rows.setdefault("zero-shot", []).append(answers.zero_shot)
        for row, method in methods.items():
            rows.setdefault(row, []).append(answers.under(method))
    return rows


def _mean_gain(results_by_row: Mapping[str, Sequence[TaskScores]], row: str) -> Estimate:
    """The gain of a row over zero-shot by sample, averaged over tasks."""
    pairs = zip(results_by_row[row], results_by_row["zero-shot"], strict=True)
    gains = np.mean([values_of(result) - values_of(baseline) for result, baseline in pairs], axis=0)
    return estimate(gains, DIFFERENCES)


def table_5(study: Study) -> Figure:
    """The ways to choose the heads."""
    return Figure(
        "5",
        "ways to choose the heads",
        "The k of each way is chosen on validation samples.",
        claims=tuple(claim_of(study, claim) for claim in _CLAIMS_5),
        kind="Table",
        rows=rows_of(study, ["zero-shot", "PASTA, task-specific", "PASTA, union", _PASTA]),
    )


def table_7(study: Study) -> Figure:
    """How many heads are steered."""
    strategies = study.setup.strategies
    rows: list[_Row] = [("task", *strategies)]
    for name in study.setup.tasks:
        rows.append((name, *(str(len(study.heads[way, name])) for way in strategies)))
    return Figure(
        "7",
        "how many heads are steered",
        how="",
        claims=(_moderate_number_claim(study),),
        kind="Table",
        rows=tuple(rows),
    )


def _moderate_number_claim(study: Study) -> Claim:
    """The claim that a moderate number of heads is best, judged on the tasks within reach."""
    text = "a moderate number of heads is best, about 5% to 15% of all."
    names = study.setup.tasks
    zeros = [name for name in names if is_beyond_reach(*study.validation_scores[name].values())]
    if len(zeros) == len(names):
        return Claim(text, NOT_JUDGED, "Every set of heads scores 0 on every task.")
    count = len(study.rankings[names[0]].heads)
    shares = {name: _best_share_of_heads(study, name, count) for name in names if name not in zeros}
    shares_text = "; ".join(
        f"{name} {with_interval(share, lambda value: f'{value:.0%}')}"
        for name, share in shares.items()
    )
    low, high = _MODERATE
    evidence = (
        f"Of {count} heads, chosen on {study.setup.scale.validation_samples} samples: {shares_text}"
        f" (we call {low:.0%} to {high:.0%} moderate)."
    )
    if zeros:
        evidence += f" Left out: {' and '.join(zeros)}, on which every set of heads scores 0."
    return Claim(text, all_of(*(within(share, low, high) for share in shares.values())), evidence)


def _best_share_of_heads(study: Study, name: str, count: int) -> Estimate:
    """The best number of heads for a task, as a share of `count`."""
    options = study.candidates("multi-task", name)
    values = [study.validation_scores[name][pasta_on(heads)] for heads in options]
    return share_of_best(np.column_stack(values), [len(heads) for heads in options], count)


def table_11(study: Study) -> Figure:
    """Few-shot prompting by draw of the demonstrations."""
    title = "few-shot prompting by draw of the demonstrations"
    varies = "few-shot prompting varies with its demonstrations."
    if "pronouns" not in study.setup.tasks:
        return not_run("11", title, [varies], "The task pronouns was not run.", kind="Table")
    result = study.test_results["pronouns"]["few-shot"]
    rows: list[_Row] = [("demonstrations", *result.scores)]
    for number, draw in enumerate(result.draws, 1):
        rows.append((str(number), *(f"{100 * draw[name]:.1f}" for name in result.scores)))
    values = np.full((study.setup.scale.test_samples, len(result.draws)), np.nan)
    for record in read_run(study.setup.out / "test" / "pronouns").samples:
        if record.variant == "few-shot":
            score = np.mean(list(record.scores.values()))
            values[record.conversation, record.draw - 1] = score
    claim = claim_that(varies, best_less_worst(values), +1, f"{HALVES}:")
    return Figure(
        "11",
        title,
        "Pronouns changing.",
        claims=judge_within_reach([claim], "pronouns", values_of(result)),
        kind="Table",
        rows=tuple(rows),
    )


def table_14(study: Study) -> Figure:
    """Fewer samples to profile on."""
    scale = study.setup.scale
    title = "fewer samples to profile on"
    text = (
        f"profiled on {scale.fewer_samples} samples instead of {scale.profile_samples}, PASTA still"
        " improves on zero-shot."
    )
    if "json" not in study.setup.tasks:
        return not_run("14", title, [text], "The task json was not run.", kind="Table")
    k = len(study.heads["task-specific", "json"])
    fewer = rank_first(study.profile_folder("json"), scale.fewer_samples)
    steered = {
        f"{scale.profile_samples} samples": pasta_on(study.rankings["json"].top(k)),
        f"{scale.fewer_samples} samples": pasta_on(fewer.top(k)),
    }
    results_by_row = _ask_tasks(study, "table-14", {"json": steered})
    rows: list[_Row] = [("profiled on", header_of("json"))]
    rows += [(row, cell_of(result)) for row, (result,) in results_by_row.items()]
    zero, many, few = (values_of(result) for (result,) in results_by_row.values())
    difference_from_many = in_words(paired_difference(few, many))
    lost = f"Less the heads of {scale.profile_samples} samples: {difference_from_many}."
    claim = claim_that(text, paired_difference(few, zero), +1, "Less zero-shot:", lost)
    return Figure(
        "14",
        title,
        f"JSON formatting, the best {k} heads.",
        claims=judge_within_reach([claim], "json", zero, few, many),
        kind="Table",
        rows=tuple(rows),
    )
