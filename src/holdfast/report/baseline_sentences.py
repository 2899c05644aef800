"""Sentences on a baseline: what the same probes score without the system prompt."""

from collections.abc import Iterable, Sequence

from holdfast.analysis.estimates import EstimateRow
from holdfast.analysis.prompt_effect import (
    MADE_WORSE,
    NEVER_FOLLOWED,
    UNINFORMATIVE,
    Baseline,
)
from holdfast.analysis.verdicts import CANNOT_TELL, MIN_SAMPLES
from holdfast.plurals import listing
from holdfast.records.identity import DefaultPrompt
from holdfast.records.run_summary import BaselineScores
from holdfast.report.wording import plain


def baseline_lines(baseline: Baseline, by_case: bool = False) -> list[str]:
    """Which prompts (`by_case`) or rules are never followed, uninformative or undecided."""
    overall = baseline.overall
    rows: Iterable[BaselineScores] = baseline.measures
    if by_case or baseline.by_rule:
        rows = baseline.cases.values()
    few = overall.n < MIN_SAMPLES
    unclear = "too few conversations to compare" if few else "no clear difference"
    apart = {1: "clearly higher", -1: "clearly lower", 0: unclear}
    lines = [
        f"Without a system prompt the same probes score {plain(overall.unprompted)} in round 1,"
        f" with it {plain(overall.prompted)}: {apart[overall.difference.sign]}."
    ]
    if baseline.default:
        lines.append(default_prompt_sentence(baseline.default))
    verdicts = {
        MADE_WORSE: "Made worse by the prompt",
        NEVER_FOLLOWED: "Never followed, in any round",
        UNINFORMATIVE: "Uninformative (just as good without the prompt)",
        CANNOT_TELL: "Too uncertain to say whether the prompt makes a difference",
    }
    if baseline.by_rule and not by_case:
        del verdicts[NEVER_FOLLOWED]  # the title and the table of rules name them
    for verdict, text in {} if few else verdicts.items():
        names = [
            f"{row.name} ({row.prompted.mean:.2f} with it, {row.unprompted.mean:.2f} without)"
            for row in rows
            if row.verdict == verdict
        ]
        if names:
            lines.append(f"{text}: {listing(names)}.")
    return lines


def baseline_hint(rows: Sequence[EstimateRow]) -> str:
    """Suggests --baseline for a run with rules that did not measure one."""
    if len(rows) == 1:
        return (
            "The rule may score the same without the system prompt; --baseline measures that, and"
            " says which."
        )
    return (
        "Some rules may score the same without the system prompt; --baseline measures that, and"
        " says which."
    )


def default_prompt_sentence(default: DefaultPrompt) -> str:
    """Describes the system prompt that the template inserts by itself."""
    if default.can_be_left_out:
        return (
            f"Without a system prompt this template inserts '{default.text}'; to measure without a"
            " prompt, the questions are asked under an empty one."
        )
    return (
        f"Without a system prompt this template inserts '{default.text}'; an empty prompt does"
        " not replace it, so the scores without a prompt are scores under that text."
    )
