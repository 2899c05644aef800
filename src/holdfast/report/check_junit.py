"""Verdicts on prompts and rules as JUnit XML, which CI servers show as tests.

Each prompt is one test; a prompt with several rules has one test per rule, grouped under the
prompt. A failed verdict is a failure. An undecided one is an error, since an inconclusive test has
not passed. A rule is skipped if its prompt got a verdict without it. A prompt fails exactly when
one of its tests does, so the file agrees with the exit code.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from holdfast.analysis.sequential import PASS, UNDECIDED
from holdfast.records.check_records import Check, PromptCheck, RuleCheck, Terms
from holdfast.report.check_sentences import (
    NO_CLEAR_FAILURE,
    details,
    how_to_decide,
    rule_details,
    rule_sentence,
    sentence,
    verdict_word,
)
from holdfast.report.junit import CaseOutcome, JUnitCase, outcome_of, write_cases

ALL_RULES = "all rules together"  # the test of a prompt whose verdict no single rule has


def write_junit(check: Check, suite: str, path: Path | str, seconds: float) -> Path:
    """Writes the verdicts as JUnit XML, dividing the seconds in proportion to conversations."""
    conversations = sum(len(checked.records) for checked in check.prompts)
    cases: list[JUnitCase] = []
    for checked in check.prompts:
        cases_of_prompt = list(_cases_of(checked, check.terms, suite))
        share = len(checked.records) / conversations if conversations else 1 / len(check.prompts)
        seconds_each = seconds * share / len(cases_of_prompt)
        cases += [replace(case, seconds=seconds_each) for case in cases_of_prompt]
    return write_cases(f"holdfast check {suite}", cases, path, seconds)


def _cases_of(checked: PromptCheck, terms: Terms, suite: str) -> Iterator[JUnitCase]:
    """A test for each rule of a prompt, and one for the prompt if no rule has its verdict."""
    classname = f"holdfast.{suite}"
    for rule in checked.rules:
        yield _rule_case(rule, checked, terms, f"{classname}.{checked.id}")
    is_shown_by_a_rule = any(rule.verdict == checked.verdict for rule in checked.rules)
    if checked.rules and (is_shown_by_a_rule or checked.verdict == PASS):
        return
    advice = how_to_decide(checked.verdict, checked.lowest, terms)
    yield JUnitCase(
        classname=f"{classname}.{checked.id}" if checked.rules else classname,
        name=ALL_RULES if checked.rules else checked.id,
        outcome=_outcome(checked, terms),
        message=_message(checked, terms),
        text=_text(advice, details(checked)),
    )


def _outcome(checked: PromptCheck, terms: Terms) -> CaseOutcome:
    """The outcome of a prompt's test; one that a smoke test leaves undecided is skipped."""
    is_left_open = checked.verdict == UNDECIDED and verdict_word(checked, terms) == NO_CLEAR_FAILURE
    return "skipped" if is_left_open else outcome_of(checked.verdict)


def _message(checked: PromptCheck, terms: Terms) -> str:
    """The evidence; after an outage or a smoke test, it begins with the word for that."""
    evidence = sentence(checked, terms)
    word = verdict_word(checked, terms)
    if checked.verdict == UNDECIDED and word != UNDECIDED:
        return f"{word}: {evidence}"
    return evidence


def _rule_case(rule: RuleCheck, checked: PromptCheck, terms: Terms, classname: str) -> JUnitCase:
    message = rule_sentence(rule, checked, terms)
    is_left_open = rule.verdict == UNDECIDED and checked.verdict != UNDECIDED
    if is_left_open and checked.verdict == PASS:
        why = "the earlier run does not have it"
        return JUnitCase(classname, rule.rule, "skipped", f"not decided: {why}; {message}")
    if is_left_open and not terms.all_rules:
        why = "its prompt had already failed (--all-rules decides every rule)"
        return JUnitCase(classname, rule.rule, "skipped", f"not decided: {why}; {message}")
    advice = how_to_decide(rule.verdict, rule.decided_by, terms)
    text = _text(advice, rule_details(rule, checked))
    return JUnitCase(classname, rule.rule, outcome_of(rule.verdict), message, text)


def _text(advice: str | None, lines: list[str]) -> str:
    return "\n".join([advice, *lines] if advice else lines)
