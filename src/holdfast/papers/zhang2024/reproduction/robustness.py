"""Tables 4, 11 and 14 of the paper: other words, other demonstrations, fewer samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.analysis.profile import rank_first
from holdfast.analysis.statistics import Estimate, estimate, paired_difference
from holdfast.analysis.tasks import ZERO_SHOT, Result
from holdfast.analysis.verdicts import UNDECIDED
from holdfast.methods import Pasta, spell
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, judged, not_run
from holdfast.papers.zhang2024.reproduction.setup import pasta_on
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.papers.zhang2024.reproduction.tables import (
    HALVES,
    best_less_worst,
    beyond_reach,
    cell_of,
    head_of,
)
from holdfast.records import read_run

_Row = tuple[str, ...]
_WORDINGS = ("original", "shortened", "rephrased")
_IMPROVES = "with the {} instruction, PASTA improves on zero-shot."
_LESS_SENSITIVE = "PASTA makes a model less sensitive to how the instruction is worded."


def table_4(study: Study) -> Figure:
    """The instruction in other words."""
    free, figure = study.setup.free, ("4", "the instruction in other words")
    if not free:
        texts = [*map(_IMPROVES.format, _WORDINGS), _LESS_SENSITIVE]
        return not_run(figure, texts, "The task json was not run.", "Table")
    rows: list[_Row] = [("instruction", "method", *map(head_of, free))]
    claims: list[Claim] = []
    every: list[Result] = []
    means: dict[str, list[float]] = {"zero-shot": [], "PASTA": []}
    heads = {name: {"PASTA": pasta_on(study.heads["multi-task", name])} for name in free}
    for wording in _WORDINGS:
        answers = _answers(study, f"table-4-{wording}", heads, instruction=wording)
        for row, results in answers.items():
            rows.append((wording, row, *map(cell_of, results)))
            means[row].append(float(np.mean([values_of(result).mean() for result in results])))
            every += results
        gain = _mean_gain(answers, "PASTA")
        measured = f"Mean of {' and '.join(free)}:"
        claims.append(claim_that(_IMPROVES.format(wording), gain, +1, measured))
    ranges = {row: max(values) - min(values) for row, values in means.items()}
    evidence = (
        f"Best less worst wording: zero-shot {ranges['zero-shot']:.3f}, PASTA {ranges['PASTA']:.3f}"
        " (two numbers have no interval)."
    )
    claims.append(Claim(_LESS_SENSITIVE, UNDECIDED, evidence))
    judgements = judged(claims, beyond_reach(" and ".join(free), *map(values_of, every)))
    return Figure(
        *figure, "The heads of Table 1, multi-task.", (), judgements, "Table", tuple(rows)
    )


def _answers(
    study: Study, folder: str, steered: Mapping[str, Mapping[str, Pasta]], **settings: Any
) -> dict[str, list[Result]]:
    """By row, the answers of all tasks: unsteered, and under methods, given by task and row."""
    rows: dict[str, list[Result]] = {}
    for name, methods in steered.items():
        answers = study.ask(folder, name, methods.values(), **settings)
        rows.setdefault("zero-shot", []).append(answers[ZERO_SHOT])
        for row, method in methods.items():
            rows.setdefault(row, []).append(answers[spell([method])])
    return rows


def _mean_gain(answers: Mapping[str, Sequence[Result]], row: str) -> Estimate:
    """The mean over tasks of what a row has more than zero-shot, sample by sample."""
    pairs = zip(answers[row], answers["zero-shot"], strict=True)
    return estimate(
        np.mean([values_of(ours) - values_of(theirs) for ours, theirs in pairs], axis=0)
    )


def table_11(study: Study) -> Figure:
    """Few-shot prompting by draw of the demonstrations."""
    figure = "11", "few-shot prompting by draw of the demonstrations"
    varies = "few-shot prompting varies with its demonstrations."
    if "pronouns" not in study.setup.tasks:
        return not_run(figure, [varies], "The task pronouns was not run.", "Table")
    result = study.tested["pronouns"]["few-shot"]
    rows: list[_Row] = [("demonstrations", *result.scores)]
    for number, draw in enumerate(result.draws, 1):
        rows.append((str(number), *(f"{100 * draw[name]:.1f}" for name in result.scores)))
    values = np.full((study.setup.scale.tested, len(result.draws)), np.nan)
    for record in read_run(study.setup.out / "test" / "pronouns").records:
        if record["variant"] == "few-shot":
            score = np.mean(list(record["scores"].values()))
            values[record["conversation"], record["draw"] - 1] = score
    claim = claim_that(varies, best_less_worst(values), +1, f"{HALVES}:")
    claims = judged([claim], beyond_reach("pronouns", values_of(result)))
    return Figure(*figure, "Pronouns changing.", (), claims, "Table", tuple(rows))


def table_14(study: Study) -> Figure:
    """Fewer samples to profile on."""
    scale, figure = study.setup.scale, ("14", "fewer samples to profile on")
    text = (
        f"profiled on {scale.fewer} samples instead of {scale.profiled}, PASTA still improves on"
        " zero-shot."
    )
    if "json" not in study.setup.tasks:
        return not_run(figure, [text], "The task json was not run.", "Table")
    k = len(study.heads["task-specific", "json"])
    fewer = rank_first(study.profile_folder("json"), scale.fewer)
    steered = {
        f"{scale.profiled} samples": pasta_on(study.rankings["json"].top(k)),
        f"{scale.fewer} samples": pasta_on(fewer.top(k)),
    }
    answers = _answers(study, "table-14", {"json": steered})
    rows: list[_Row] = [("profiled on", head_of("json"))]
    rows += [(row, cell_of(result)) for row, (result,) in answers.items()]
    zero, many, few = (values_of(result) for (result,) in answers.values())
    lost = f" Less the heads of {scale.profiled} samples {in_words(paired_difference(few, many))}."
    claim = claim_that(text, paired_difference(few, zero), +1, "Less zero-shot", lost)
    claims = judged([claim], beyond_reach("json", zero, few, many))
    how = f"JSON formatting, the best {k} heads."
    return Figure(*figure, how, (), claims, "Table", tuple(rows))
