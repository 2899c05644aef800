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


def write_junit(
    checks: Sequence[PromptCheck], terms: Terms, suite: str, path: Path | str, seconds: float
) -> Path:
    """Writes the verdicts as JUnit XML, whole or not at all.

    Args:
        checks: the verdicts.
        terms: what was asked.
        suite: what the tests are called together.
        path: the file.
        seconds: that the check took. The conversations of all prompts run side by side, so each
            prompt has a share of it by its number of conversations.

    Raises:
        RecordsError: it cannot be written.
    """
    verdicts = [checked.verdict for checked in checks]
    counts = {
        "tests": str(len(checks)),
        "failures": str(verdicts.count(FAIL)),
        "errors": str(verdicts.count(UNDECIDED)),
        "skipped": "0",
        "time": f"{seconds:.3f}",
    }
    name = _text(f"holdfast check {suite}")
    root = ElementTree.Element("testsuites", {"name": name, **counts})
    tests = ElementTree.SubElement(root, "testsuite", {"name": name, **counts})
    held = sum(len(checked.records) for checked in checks)
    for checked in checks:
        share = len(checked.records) / held if held else 1 / len(checks)
        _add_case(tests, checked, terms, suite, seconds * share)
    ElementTree.indent(root)
    data = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return write_whole(path, data + b"\n", "another file with --junit")


def _add_case(
    tests: ElementTree.Element, checked: PromptCheck, terms: Terms, suite: str, seconds: float
) -> None:
    case = ElementTree.SubElement(
        tests,
        "testcase",
        {
            "classname": _text(f"holdfast.{suite}"),
            "name": _text(checked.id),
            "time": f"{seconds:.3f}",
        },
    )
    said = _text(sentence(checked, terms))
    if (kind := _KINDS.get(checked.verdict)) is None:
        ElementTree.SubElement(case, "system-out").text = said
        return
    about = {"message": said, "type": checked.verdict}
    ElementTree.SubElement(case, kind, about).text = _text("\n".join(details(checked, terms)))


def _text(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return _NOT_XML.sub("�", text)
