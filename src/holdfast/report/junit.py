"""Verdicts on prompts as JUnit XML, which CI servers show as tests: one test for each prompt.

A prompt that fails is a failure; one that is undecided is an error, since a test that cannot tell
has not passed; the message says which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from holdfast.analysis.checks import FAIL, UNDECIDED, PromptCheck, Terms
from holdfast.files import write_whole
from holdfast.report.checks import details, sentence

_KINDS = {FAIL: "failure", UNDECIDED: "error"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(checks: Sequence[PromptCheck], terms: Terms, suite: str, path: Path | str) -> Path:
    """Writes the verdicts as JUnit XML, whole or not at all.

    Args:
        checks: the verdicts.
        terms: what was asked.
        suite: what the tests are called together.
        path: the file.

    Raises:
        RecordsError: it cannot be written.
    """
    verdicts = [checked.verdict for checked in checks]
    counts = {
        "tests": str(len(checks)),
        "failures": str(verdicts.count(FAIL)),
        "errors": str(verdicts.count(UNDECIDED)),
        "skipped": "0",
        "time": f"{sum(map(_seconds, checks)):.3f}",
    }
    name = _text(f"holdfast check {suite}")
    root = ElementTree.Element("testsuites", {"name": name, **counts})
    tests = ElementTree.SubElement(root, "testsuite", {"name": name, **counts})
    for checked in checks:
        _add_case(tests, checked, terms, suite)
    ElementTree.indent(root)
    data = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return write_whole(path, data + b"\n", "another file with --junit")


def _add_case(tests: ElementTree.Element, checked: PromptCheck, terms: Terms, suite: str) -> None:
    case = ElementTree.SubElement(
        tests,
        "testcase",
        {
            "classname": _text(f"holdfast.{suite}"),
            "name": _text(checked.id),
            "time": f"{_seconds(checked):.3f}",
        },
    )
    said = _text(sentence(checked, terms))
    if (kind := _KINDS.get(checked.verdict)) is None:
        ElementTree.SubElement(case, "system-out").text = said
        return
    about = {"message": said, "type": checked.verdict}
    ElementTree.SubElement(case, kind, about).text = _text("\n".join(details(checked)))


def _seconds(checked: PromptCheck) -> float:
    return sum(record.get("seconds") or 0.0 for record in checked.records)


def _text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("�", text)
