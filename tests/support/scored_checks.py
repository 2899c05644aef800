"""Conversations with given scores, and the JUnit file of a check of them."""

from xml.etree import ElementTree

from synthetic_run import conversation_of

from holdfast.analysis.check_verdicts import check_prompts
from holdfast.cli.measure.check import exit_code_of
from holdfast.records.check_records import Check
from holdfast.report.check_junit import write_junit

COUNTED = ("tests", "failures", "errors", "skipped")


def scored_conversations(scores):
    """Conversations of a prompt; scores by rule, each [conversation, round]."""

    def probe(number, rule, score):
        reply = {"question": "?", "reply": "kept" if score == 1 else "lost", "reason": "seen"}
        return {"round": number, "rule": rule, "score": float(score), **reply}

    return [
        conversation_of(
            conversation=number,
            probes=[
                probe(at, rule, score)
                for rule, rows in scores.items()
                for at, score in enumerate(rows[number], 1)
            ],
        )
        for number in range(len(next(iter(scores.values()))))
    ]


def junit_of(records, terms, folder, before=None):
    """The JUnit file of one prompt: the content of each case, the counts, and the exit code."""
    before = None if before is None else {"bot": before}
    rounds = max(probe.round for probe in records[0].probes)
    checks = check_prompts(records, ["bot"], rounds, terms, before)
    path = write_junit(Check.of("none", terms, tuple(checks)), "rules", folder / "junit.xml", 1.0)
    (suite,) = ElementTree.parse(path).getroot()
    counts = tuple(int(suite.get(name)) for name in COUNTED)
    cases = {(test.get("classname"), test.get("name")): test[0] for test in suite}
    return cases, counts, exit_code_of(checks, terms)
