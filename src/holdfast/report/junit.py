"""Verdicts on prompts as JUnit XML, which CI servers show as tests: one test for each prompt, or
for each rule of a prompt that has several, under the name of its prompt.

A failed verdict is a failure; an undecided one is an error, since an inconclusive test has not
passed. A prompt fails exactly when one of its tests does, so the file agrees with the exit code.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from holdfast.analysis.check_file import Check
from holdfast.analysis.check_verdicts import Cell, PromptCheck, RuleCheck, Terms
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.common.files import write_whole
from holdfast.report.check_sentences import details, rule_details, rule_sentence, sentence

TOGETHER = "all rules together"  # the test of a prompt whose verdict no single rule shows
_SKIPPED = "skipped"
_KINDS = {FAIL: "failure", UNDECIDED: "error", PASS: "system-out"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class TestCase:
    """One test case; `text` is not written if it passes, and "" if it is skipped."""

    classname: str
    name: str
    verdict: str
    message: str
    text: str = ""
    skipped: bool = False
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """The XML element of its outcome."""
        return _SKIPPED if self.skipped else _KINDS.get(self.verdict, _KINDS[PASS])


def write_junit(check: Check, suite: str, path: Path | str, seconds: float) -> Path:
    """Writes the verdicts as JUnit XML, dividing the seconds in proportion to conversations."""
    checks, terms = check.prompts, check.terms
    cases: list[TestCase] = []
    conversations = sum(len(checked.records) for checked in checks)
    for checked in checks:
        of_prompt = list(_tests(checked, terms, suite))
        share = len(checked.records) / conversations if conversations else 1 / len(checks)
        cases += [replace(test, seconds=seconds * share / len(of_prompt)) for test in of_prompt]
    return write_cases(f"holdfast check {suite}", cases, path, seconds)


def write_cases(name: str, cases: Sequence[TestCase], path: Path | str, seconds: float) -> Path:
    """Writes test cases as one suite of JUnit XML, whole or not at all."""
    kinds = [case.kind for case in cases]
    about = {
        "name": xml_text(name),
        "tests": str(len(kinds)),
        "failures": str(kinds.count(_KINDS[FAIL])),
        "errors": str(kinds.count(_KINDS[UNDECIDED])),
        "skipped": str(kinds.count(_SKIPPED)),
        "time": f"{seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", about)
    testsuite = ElementTree.SubElement(root, "testsuite", about)
    for case in cases:
        _add(testsuite, case)
    ElementTree.indent(root)
    data = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return write_whole(path, data + b"\n", "another file with --junit")


def write_unfinished(command: str, path: Path | str, message: str) -> Path:
    """Writes a suite whose one test is an error: a command that reached no verdict, and why. It
    takes the place of an earlier run's file, which would pass for this one's.
    """
    name = f"holdfast {command}"
    case = TestCase("holdfast", command, UNDECIDED, message, message)
    return write_cases(name, [case], path, 0.0)


def _tests(checked: PromptCheck, terms: Terms, suite: str) -> Iterator[TestCase]:
    of_suite = f"holdfast.{suite}"
    for rule in checked.rules:
        yield _rule_test(rule, checked, terms, f"{of_suite}.{checked.id}")
    verdicts = [rule.verdict for rule in checked.rules]
    if not verdicts or checked.verdict not in (*verdicts, PASS):
        names = (f"{of_suite}.{checked.id}", TOGETHER) if verdicts else (of_suite, checked.id)
        text = "\n".join([*cure(checked, checked.lowest, terms), *details(checked)])
        yield TestCase(*names, checked.verdict, sentence(checked, terms), text)


def _rule_test(rule: RuleCheck, checked: PromptCheck, terms: Terms, classname: str) -> TestCase:
    message = rule_sentence(rule, checked, terms)
    if rule.verdict == UNDECIDED != checked.verdict and not terms.all_rules:
        # the verdict of the prompt did not wait for this rule
        why = (
            "its prompt had already failed (--all-rules decides every rule)"
            if checked.verdict == FAIL
            else "the earlier run does not have it"
        )
        message = f"not decided: {why}; {message}"
        return TestCase(classname, rule.rule, rule.verdict, message, skipped=True)
    text = "\n".join([*cure(rule, rule.cell, terms), *rule_details(rule, checked)])
    return TestCase(classname, rule.rule, rule.verdict, message, text)


def cure(checked: PromptCheck | RuleCheck, lowest: Cell | None, terms: Terms) -> list[str]:
    """How to decide an undecided verdict with this lowest mean; [] otherwise or without a bar."""
    if checked.verdict != UNDECIDED or terms.min_stability is None or lowest is None:
        return []
    return [
        f"Undecided after at most {terms.budget} conversations: raise --budget, or give a"
        f" --min-stability further from {lowest.mean:.2f}."
    ]


def _add(testsuite: ElementTree.Element, test: TestCase) -> None:
    names = {"classname": xml_text(test.classname), "name": xml_text(test.name)}
    case = ElementTree.SubElement(testsuite, "testcase", {**names, "time": f"{test.seconds:.3f}"})
    if test.kind == _KINDS[PASS]:
        ElementTree.SubElement(case, test.kind).text = xml_text(test.message)
        return
    about = {"message": xml_text(test.message)}
    if test.kind != _SKIPPED:
        about["type"] = test.verdict
    ElementTree.SubElement(case, test.kind, about).text = xml_text(test.text) or None


def xml_text(text: str) -> str:
    """Replaces the characters that XML cannot represent."""
    return _NOT_XML.sub("\ufffd", text)
