"""Test cases as JUnit XML, which CI servers show."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.files import write_whole

CaseOutcome = Literal["passed", "failure", "error", "skipped"]

_OUTCOMES: dict[str | None, CaseOutcome] = {
    PASS: "passed",
    FAIL: "failure",
    UNDECIDED: "error",
    None: "passed",  # logs without a bar have no verdict
}
_TYPES = {"failure": FAIL, "error": UNDECIDED}  # the `type` of a failure or an error
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class JUnitCase:
    """One test case.

    Attributes:
        classname: the group in which CI servers show it.
        name: its name in the group.
        outcome: whether it passed, failed, could not be decided ("error"), or was not run.
        message: one line that gives the evidence.
        text: further lines, which are written only for a failure or an error.
        seconds: how long it took, or its share of the time.
    """

    classname: str
    name: str
    outcome: CaseOutcome
    message: str
    text: str = ""
    seconds: float = 0.0


def outcome_of(verdict: str | None) -> CaseOutcome:
    """The outcome of a test with this verdict."""
    return _OUTCOMES[verdict]


def write_cases(name: str, cases: Sequence[JUnitCase], path: Path | str, seconds: float) -> Path:
    """Writes test cases as one suite of JUnit XML, whole or not at all."""
    outcomes = [case.outcome for case in cases]
    attributes = {
        "name": xml_text(name),
        "tests": str(len(cases)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
        "time": f"{seconds:.3f}",
    }
    root = ElementTree.Element("testsuites", attributes)
    testsuite = ElementTree.SubElement(root, "testsuite", attributes)
    for case in cases:
        _add_case(testsuite, case)
    ElementTree.indent(root)
    data = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return write_whole(path, data + b"\n", "another file with --junit")


def write_unfinished(command: str, path: Path | str, message: str) -> Path:
    """Writes a suite with a single error, for a command that ended before it reached a verdict.

    It replaces the file of an earlier run, which could be mistaken for the result of this one.
    """
    name = f"holdfast {command}"
    case = JUnitCase("holdfast", command, "error", message, text=message)
    return write_cases(name, [case], path, 0.0)


def _add_case(testsuite: ElementTree.Element, case: JUnitCase) -> None:
    """Adds a test case, with its message where viewers of JUnit files show it."""
    message = xml_text(case.message)
    element = ElementTree.SubElement(
        testsuite,
        "testcase",
        classname=xml_text(case.classname),
        name=xml_text(case.name),
        time=f"{case.seconds:.3f}",
    )
    if case.outcome == "passed":
        ElementTree.SubElement(element, "system-out").text = message
    elif case.outcome == "skipped":
        ElementTree.SubElement(element, "skipped", message=message)
    else:
        kind = _TYPES[case.outcome]
        outcome = ElementTree.SubElement(element, case.outcome, message=message, type=kind)
        outcome.text = xml_text(case.text) or None


def xml_text(text: str) -> str:
    """Replaces the characters that XML cannot represent."""
    return _NOT_XML.sub("\ufffd", text)
