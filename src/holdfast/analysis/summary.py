"""The results of a run, computed once: the terminal and the page state them, and `summary.json`
has them for other programs (docs/records.md).

The file is derived only from the manifest and the records (for a check, also from `check.json`)
and has no date or duration, so deriving it again from the same records gives the same bytes.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis import estimates
from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.check_file import Check, read_check, summary_of_check
from holdfast.analysis.collapse import COUNTED, Collapse, count_turns, without_collapsed
from holdfast.analysis.outcome import Findings, findings_of
from holdfast.analysis.profile import profile_of
from holdfast.analysis.prompt_effect import Baseline, BaselineRow, baseline_beside
from holdfast.analysis.prompt_rows import PromptRow, by_prompt
from holdfast.analysis.series import KINDS, MEASURED, Series, read_series
from holdfast.analysis.statistics import Estimate, estimate
from holdfast.analysis.summarised_rounds import BeforeAndAfter, summarised_rounds_of
from holdfast.analysis.task_results import read_results
from holdfast.analysis.truncation import truncation_of, until_prompt_lost
from holdfast.analysis.unscored import unscored_by_reason
from holdfast.analysis.verdicts import verdict_on
from holdfast.files import write_whole
from holdfast.records import Run, read_run
from holdfast.records.identity import CalibrationIdentity
from holdfast.records.run_summary import (
    NAME,
    Against,
    BaselineScores,
    BaselineSummary,
    CapabilityResult,
    CheckSummary,
    CollapseSummary,
    Compared,
    Estimated,
    Judged,
    MethodSummary,
    OtherPrompts,
    ProfileResult,
    PromptSummary,
    RankedHead,
    RuleSummary,
    Summary,
    SurvivalSummary,
    TaskResult,
    TruncationSummary,
    WithoutCollapsed,
)

_DIGITS = 6  # beyond these, sums may differ between machines


@dataclass(frozen=True, eq=False)
class DriftResults:
    """The results of a drift run, from which its title, its next step and its summary follow.

    Args:
        series: one per method, the unsteered one first.
        baseline: of the first series.
        findings: on the first series, over the rounds in which the model read the whole prompt.
    """

    run: Run
    series: tuple[Series, ...]
    baseline: Baseline | None
    findings: Findings

    @cached_property
    def check(self) -> Check | None:
        """The verdicts of `holdfast check`; None for a run of another command."""
        return read_check(self.run)


def results_of(run: Run, label: str = "") -> DriftResults:
    """The results of a drift run; the label tells it from other runs on the same page."""
    series = tuple(read_series(run, label))
    baseline = baseline_beside(run, series[0])
    return DriftResults(run, series, baseline, findings_of(until_prompt_lost(series)[0], baseline))


def write_summary(folder: Path | str) -> Path:
    """Writes `summary.json` into a run folder, whole or not at all; returns the file."""
    return write(Path(folder), summarise(read_run(folder)))


def write_results(
    folder: Path, command: str, identity: dict[str, Any], records: int, results: Any
) -> Path:
    """Writes `summary.json` for a command whose results are not those of a single run."""
    summary = Summary(command=command, identity=identity, records=records, results=results)
    return write(folder, summary)


def write(folder: Path, summary: Summary) -> Path:
    """Writes `summary.json`, whole or not at all; returns the file."""
    text = json.dumps(summary.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
    return write_whole(folder / NAME, text + "\n")


def summarise(run: Run) -> Summary:
    """The summary of a run of any command."""
    read = _RESULTS.get(run.manifest.command)
    return summary_of(results_of(run)) if read is None else _summary(run, read(run))


def summary_of(results: DriftResults) -> Summary:
    """The summary of a drift run."""
    check = None if results.check is None else summary_of_check(results.check)
    return _summary(results.run, tuple(_methods(results)), check)


def _summary(run: Run, results: Any, check: CheckSummary | None = None) -> Summary:
    return Summary(
        command=run.manifest.command,
        identity=run.manifest.identity.to_json(),
        records=len(run.records),
        results=results,
        check=check,
    )


def estimated(value: Estimate) -> Estimated:
    """An estimate as the summary has it."""
    return Estimated(**_numbers(value))


def judged(value: Estimate, shared_by: int = 1) -> Judged:
    """A difference as the summary has it: with its verdict, and the interval of other prompts;
    `shared_by` as in `verdict_on`.
    """
    verdict, others = verdict_on(value, shared_by), value.other_prompts
    return Judged(
        **_numbers(value),
        verdict=verdict.word("higher", "lower"),
        why=verdict.why or None,
        other_prompts=None
        if others is None
        else OtherPrompts(
            prompts=others.prompts, low=_rounded(others.low), high=_rounded(others.high)
        ),
    )


def _numbers(value: Estimate) -> dict[str, Any]:
    return {
        "n": value.n,
        "mean": _rounded(value.mean),
        "low": _rounded(value.low),
        "high": _rounded(value.high),
        "sd": _rounded(value.sd),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS) + 0.0


def _each(values: Iterable[Estimate]) -> tuple[Estimated, ...]:
    return tuple(estimated(value) for value in values)


def _methods(results: DriftResults) -> Iterator[MethodSummary]:
    """The results by method."""
    series, whole = results.series, until_prompt_lost(results.series)
    rules = estimates.rule_rows(series)
    against = {pair.row: pair for pair in estimates.rule_differences(series, rules)}
    counted = [count_turns(item.records) for item in series]
    left = [without_collapsed(item, turns) for item, turns in zip(series, counted, strict=True)]
    for item, read, turns, rest in zip(series, whole, counted, left, strict=True):
        rows = {kind: estimates.row_of(item, kind) for kind in MEASURED if item.measured(kind)}
        scored = {kind: rows[kind] for kind in KINDS if kind in rows}
        levels = accuracy_of(item) or {}
        first = item is series[0]
        findings = results.findings if first else findings_of(read)
        yield MethodSummary(
            method=item.method,
            outcome=str(findings.outcome),
            conversations=len(item.records),
            unscored=dict(sorted(unscored_by_reason(item.records).items())),
            by_round={kind: _each(row.points) for kind, row in rows.items()},
            over_all_rounds={kind: estimated(row.mean) for kind, row in scored.items()},
            change={kind: judged(row.change) for kind, row in scored.items()},
            against=_against(series, item),
            categories={kind: _categories(item, kind) for kind in scored},
            prompts=tuple(map(_prompt, by_prompt(item))),
            rules=tuple(_rule(row, against.get(row)) for row in rules if row.series is item),
            accuracy={f"{name}_level": _each(points) for name, points in levels.items()} or None,
            baseline=_baseline(results.baseline) if first else None,
            collapse=_collapse(turns, _without(left, rest) if turns.collapsed else None),
            truncation=_truncation(item),
            summarised=_summarised(item),
        )


def _categories(item: Series, kind: str) -> dict[str, tuple[Estimated, ...]]:
    return {row.group: _each(row.points) for row in estimates.category_rows(item, kind)}


def _collapse(turns: Collapse, rest: WithoutCollapsed | None) -> CollapseSummary:
    """How much of what models wrote is broken, and the results of the other conversations."""
    return CollapseSummary(
        turns=turns.turns,
        **{name: _rounded(turns.share(name)) for name in COUNTED},
        collapsed_from_round={str(number): first for number, first in turns.collapsed.items()},
        without_collapsed=rest,
    )


def _truncation(item: Series) -> TruncationSummary | None:
    """The rounds from which a server read less than it was sent; None if nothing shows that."""
    cut = truncation_of(item)
    if cut is None:
        return None
    return TruncationSummary(
        verdict=cut.verdict,
        from_round={str(number): first for number, first in cut.cut_from.items()},
        most_prompt_tokens=cut.limit,
        canary_before=estimated(cut.canary_before),
        canary_after=estimated(cut.canary_after),
    )


def _summarised(item: Series) -> tuple[SurvivalSummary, ...]:
    """All rules together, then each rule, before and after older rounds were summarised."""
    scores = summarised_rounds_of(item)
    if scores is None:
        return ()
    rules = (_survival(rule, row) for rule, row in scores.rules.items())
    return (_survival(None, scores.overall), *rules)


def _survival(rule: str | None, scores: BeforeAndAfter) -> SurvivalSummary:
    return SurvivalSummary(
        rule=rule,
        before=estimated(scores.before),
        after=estimated(scores.after),
        difference=judged(scores.difference),
    )


def _against(series: Sequence[Series], item: Series) -> Against | None:
    """The differences from the first method; None for that method itself."""
    pairs = {kind: pair for kind in KINDS if (pair := estimates.difference(series, item, kind))}
    if not pairs:
        return None
    first = pairs["stability"]
    return Against(
        method=first.against.series.method,
        pairs=first.n,
        **{kind: _compared(pair) for kind, pair in pairs.items()},
    )


def _compared(pair: estimates.Difference) -> Compared:
    return Compared(last_round=judged(pair.last), over_all_rounds=judged(pair.mean))


def _without(left: Sequence[Series], rest: Series) -> WithoutCollapsed | None:
    """The numbers of a series without its collapsed conversations; None if no others are left."""
    if not rest.records:
        return None
    row = estimates.row_of(rest, "stability")
    return WithoutCollapsed(
        conversations=len(rest.records),
        stability_by_round=_each(row.points),
        change=judged(row.change),
        against=_against(left, rest),
    )


def _baseline(baseline: Baseline | None) -> BaselineSummary | None:
    if baseline is None:
        return None
    return BaselineSummary(
        all=_scores(baseline.overall),
        measures=tuple(map(_scores, baseline.measures)),
        cases=tuple(map(_scores, baseline.cases)),
    )


def _scores(row: BaselineRow) -> BaselineScores:
    return BaselineScores(
        name=row.name,
        n=row.n,
        prompted=estimated(row.prompted),
        unprompted=estimated(row.unprompted),
        difference=judged(row.difference),
        verdict=row.verdict,
    )


def _prompt(row: PromptRow) -> PromptSummary:
    return PromptSummary(
        id=row.id,
        category=row.category,
        n=row.n,
        stability_by_round=tuple(map(_rounded, row.by_round)),
        stability=_rounded(row.mean),
        adopted_last_round=_rounded(row.adopted),
        n_adopted=row.n_adopted,
    )


def _rule(row: estimates.EstimateRow, pair: estimates.Difference | None) -> RuleSummary:
    return RuleSummary(
        rule=row.group,
        n=row.n,
        stability_by_round=_each(row.points),
        first_broken_by_round=tuple(row.broken),
        kept_throughout=row.kept,
        kept_in_any_round=row.kept_once,
        never_followed=row.never_followed,
        change=judged(row.change),
        lower_from_round=row.lower_from,
        lower_in_rounds=tuple(row.lower_in),
        against=None if pair is None else _compared(pair),
    )


def _tasks(run: Run) -> tuple[TaskResult, ...]:
    return tuple(
        TaskResult(
            task=result.task,
            variant=result.variant,
            samples=len(result.numbers),
            scores={name: estimated(value) for name, value in result.estimates().items()},
            fluency=_rounded(result.fluency),
            excluded=result.excluded,
        )
        for result in read_results(run)
    )


def _profile(run: Run) -> ProfileResult:
    profile = profile_of(run)
    ranking = [
        RankedHead(
            layer=layer,
            head=head,
            score=round(profile.scores[layer, head], _DIGITS),
            gain=judged(profile.gains[layer, head]),
        )
        for layer, head in profile.ranking.heads
    ]
    return ProfileResult(unsteered=round(profile.unsteered, _DIGITS), ranking=tuple(ranking))


def _capability(run: Run) -> tuple[CapabilityResult, ...]:
    by_method: dict[str, dict[int, float]] = {}
    for record in run.capability_conversations:
        mean = float(np.mean([probe.score for probe in record.probes]))
        by_method.setdefault(record.method, {})[record.conversation] = mean
    rows = []
    for method in run.identity_as(CalibrationIdentity).methods:
        if scores := by_method.get(method):
            in_order = np.array([scores[conversation] for conversation in sorted(scores)])
            score = estimated(estimate(in_order, None))
            rows.append(CapabilityResult(method=method, score=score))
    return tuple(rows)


_RESULTS: dict[str, Callable[[Run], Any]] = {
    "tasks": _tasks,
    "profile": _profile,
    "calibrate": _capability,
}
