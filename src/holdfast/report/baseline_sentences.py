"""Sentences on a baseline: how the same probes score without the system prompt."""

from collections.abc import Iterable, Sequence

from holdfast.analysis.estimate_rows import EstimateRow
from holdfast.analysis.prompt_effect import (
    MADE_WORSE,
    NEVER_FOLLOWED,
    UNINFORMATIVE,
)
from holdfast.analysis.verdicts import CANNOT_TELL, MIN_SAMPLES
from holdfast.plurals import listing
from holdfast.records.drift_summary import Baseline, BaselineScores
from holdfast.records.identity import DefaultPrompt
from holdfast.report.wording import mean_text, plain

_LABELS = {  # of the verdicts that are worth a line, in display order
    MADE_WORSE: "Made worse by the prompt",
    NEVER_FOLLOWED: "Never followed, in any round",
    UNINFORMATIVE: "Uninformative (just as good without the prompt)",
    CANNOT_TELL: "Too uncertain to say whether the prompt makes a difference",
}


def baseline_lines(baseline: Baseline, *, by_case: bool = False) -> list[str]:
    """Says what the prompt changes overall, and which rules it leaves as they are or makes worse.

    Args:
        by_case: whether to name cases rather than measures. A baseline with a row for each rule
            always names rules.
    """
    lines = [_overall_sentence(baseline.all)]
    if baseline.default:
        lines.append(default_prompt_sentence(baseline.default))
    if baseline.all.n < MIN_SAMPLES:
        return lines
    rows: Iterable[BaselineScores] = baseline.measures
    if by_case or baseline.by_rule:
        rows = baseline.cases
    for verdict, label in _LABELS.items():
        if verdict == NEVER_FOLLOWED and baseline.by_rule and not by_case:
            continue  # the title and the table of rules name these already
        names = [
            f"{row.name} ({mean_text(row.prompted)} with it, {mean_text(row.unprompted)} without)"
            for row in rows
            if row.verdict == verdict
        ]
        if names:
            lines.append(f"{label}: {listing(names)}.")
    return lines


def _overall_sentence(overall: BaselineScores) -> str:
    """Compares the scores with and without the prompt, over all measures."""
    if overall.n < MIN_SAMPLES:
        verdict = "too few conversations to compare"
    else:
        verdict = {1: "clearly higher", -1: "clearly lower", 0: "no clear difference"}[
            overall.difference.sign
        ]
    return (
        f"Without a system prompt the same probes score {plain(overall.unprompted)} in round 1,"
        f" with it {plain(overall.prompted)}: {verdict}."
    )


def baseline_hint(rows: Sequence[EstimateRow]) -> str:
    """Suggests --baseline for a run with rules that did not measure one."""
    if len(rows) == 1:
        return (
            "The rule may score the same without the system prompt; --baseline finds out whether it"
            " does."
        )
    return (
        "Some rules may score the same without the system prompt; --baseline finds out which ones"
        " do."
    )


def default_prompt_sentence(default: DefaultPrompt) -> str:
    """Describes the system prompt that the chat template inserts if none is given."""
    if default.can_be_left_out:
        return (
            f"Without a system prompt this template inserts '{default.text}'; to measure without a"
            " prompt, the questions are asked under an empty one."
        )
    return (
        f"Without a system prompt this template inserts '{default.text}'; an empty prompt does"
        " not replace it, so the scores without a prompt are scores under that text."
    )
