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
from holdfast.report.check_details import prompt_details, rule_details
from holdfast.report.check_sentences import (
    NO_CLEAR_FAILURE,
    how_to_decide,
    rule_sentence,
    verdict_sentence,
    verdict_word,
)
from holdfast.report.junit import CaseOutcome, JUnitCase, outcome_of, write_cases

ALL_RULES = "all rules together"  # the test of a prompt whose verdict no single rule has


def write_junit(check: Check, suite: str, path: Path | str, seconds: float) -> Path:
    """Writes the verdicts as JUnit XML, dividing the seconds in proportion to conversations."""
    conversations = sum(len(prompt_check.records) for prompt_check in check.prompts)
    cases: list[JUnitCase] = []
    for prompt_check in check.prompts:
        cases_of_prompt = list(_cases_of(prompt_check, check.terms, suite))
        share = (
            len(prompt_check.records) / conversations if conversations else 1 / len(check.prompts)
        )
        seconds_each = seconds * share / len(cases_of_prompt)
        cases += [replace(case, seconds=seconds_each) for case in cases_of_prompt]
    return write_cases(f"holdfast check {suite}", cases, path, seconds)


def _cases_of(prompt_check: PromptCheck, terms: Terms, suite: str) -> Iterator[JUnitCase]:
    """A test for each rule of a prompt, and one for the prompt if no rule has its verdict."""
    group = f"holdfast.{suite}"
    if not prompt_check.rules:
        yield _prompt_case(prompt_check, terms, group, prompt_check.id)
        return
    group_of_prompt = f"{group}.{prompt_check.id}"
    for rule in prompt_check.rules:
        yield _rule_case(rule, prompt_check, terms, group_of_prompt)
    is_shown_by_a_rule = any(rule.verdict == prompt_check.verdict for rule in prompt_check.rules)
    if not is_shown_by_a_rule and prompt_check.verdict != PASS:
        yield _prompt_case(prompt_check, terms, group_of_prompt, ALL_RULES)


def _prompt_case(prompt_check: PromptCheck, terms: Terms, classname: str, name: str) -> JUnitCase:
    """The test of a prompt."""
    advice = how_to_decide(prompt_check.verdict, prompt_check.lowest, terms)
    text = _text(advice, prompt_details(prompt_check))
    outcome = _outcome(prompt_check, terms)
    return JUnitCase(classname, name, outcome, _message(prompt_check, terms), text)


def _outcome(prompt_check: PromptCheck, terms: Terms) -> CaseOutcome:
    """The outcome of a prompt's test; one that a smoke test leaves undecided is skipped."""
    is_left_open = (
        prompt_check.verdict == UNDECIDED and verdict_word(prompt_check, terms) == NO_CLEAR_FAILURE
    )
    return "skipped" if is_left_open else outcome_of(prompt_check.verdict)


def _message(prompt_check: PromptCheck, terms: Terms) -> str:
    """The evidence; after an outage or a smoke test, it begins with the word for that."""
    evidence = verdict_sentence(prompt_check, terms)
    word = verdict_word(prompt_check, terms)
    if prompt_check.verdict == UNDECIDED and word != UNDECIDED:
        return f"{word}: {evidence}"
    return evidence


def _rule_case(
    rule: RuleCheck, prompt_check: PromptCheck, terms: Terms, classname: str
) -> JUnitCase:
    """The test of a rule; one that was left undecided on purpose is skipped."""
    message = rule_sentence(rule, prompt_check, terms)
    if why := _why_left_open(rule, prompt_check, terms):
        return JUnitCase(classname, rule.rule, "skipped", f"not decided: {why}; {message}")
    advice = how_to_decide(rule.verdict, rule.decided_by, terms)
    text = _text(advice, rule_details(rule, prompt_check))
    return JUnitCase(classname, rule.rule, outcome_of(rule.verdict), message, text)


def _why_left_open(rule: RuleCheck, prompt_check: PromptCheck, terms: Terms) -> str:
    """Why a prompt has a verdict, but this rule has none; "" if that is not the case."""
    if rule.verdict != UNDECIDED or prompt_check.verdict == UNDECIDED:
        return ""
    if prompt_check.verdict == PASS:
        return "the earlier run does not have it"
    if not terms.all_rules:
        return "its prompt had already failed (--all-rules decides every rule)"
    return ""


def _text(advice: str | None, lines: list[str]) -> str:
    return "\n".join([advice, *lines] if advice else lines)
