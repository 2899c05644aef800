"""Runs count and report what they could not ask or measure, and missing rounds are left out."""

import numpy as np

from holdfast.analysis.estimate_rows import row_of
from holdfast.analysis.row_differences import compare_rows
from holdfast.analysis.series import Series
from holdfast.records import Conversation
from holdfast.report.shortfalls import ending_shortfalls

PLACE = {"kind": "stability", "probe": 0}
PERSON = {"id": "a", "category": None, "system_prompt": "a"}


def record(number=0, stop_reasons=("stop", "stop"), texts=(), probe_fields=None, **changes):
    texts = texts or ["Yes."] * len(stop_reasons)
    turns = [
        {"round": place // 2 + 1, "speaker": "agent", "text": text, "stop_reason": why}
        for place, (text, why) in enumerate(zip(texts, stop_reasons, strict=True))
    ]
    probe = {**PLACE, "round": 1, "question": "?", "reply": "Yes.", "score": 1.0, "reason": ""}
    fields = {"method": "none", "conversation": number, "agent": PERSON, "user": PERSON}
    probes = [{**probe, **(probe_fields or {})}]
    return Conversation.model_validate({**fields, "turns": turns, "probes": probes, **changes})


def test_a_run_without_problems_reports_nothing():
    assert ending_shortfalls([record(), record()]) == []


def test_dialogs_that_ended_early_are_counted_by_reason_and_the_first_is_quoted():
    reason = "http://host/v1 failed (500: no)."
    ended = [
        record(0, ended={"round": 3, "why": "context"}),
        record(1, ended={"round": 2, "why": "failure", "reason": reason}),
        record(2, ended={"round": 2, "why": "filter", "reason": "other."}),
        record(3, ended={"round": 2, "why": "filter", "reason": "other."}),
    ]
    ((what, sentence),) = ending_shortfalls([*ended, record(4)])
    assert what == "dialogs that ended early"
    counts = "2 met a content filter, 1 filled the model's context, 1 had a request that failed"
    assert sentence.startswith(f"4 of 5 ({counts})")
    assert "1 are whole" in sentence
    assert sentence.endswith("conversation 1 in round 2: http://host/v1 failed (500: no)")


def test_replies_without_content_and_unanswered_probes_are_counted():
    reasons = ("stop", "stop", "refusal", "tool_calls")
    replies = record(0, reasons, ("Yes.", "Yes.", "Yes.", ""), {"stop_reason": "refusal"})
    filtered = {**PLACE, "why": "filter", "reason": "no"}
    missing = record(1, unanswered=[{**filtered, "round": 1}, {**filtered, "round": 2}])
    empty, unanswered = ending_shortfalls([replies, missing])
    assert empty[0] == "replies without content" and unanswered[0] == "probes not answered"
    assert empty[1] == "3 of 6 (2 refused, 1 called a tool); probes are scored as empty"
    assert unanswered[1] == "2 (2 met a content filter); left out of the means"


def series(method, stability):
    matrix = np.array(stability, dtype=float)
    records = tuple(record(number) for number in range(len(matrix)))
    item = Series("", method, records, np.arange(len(matrix)), {"stability": matrix})
    return row_of(item, "stability")


def test_a_comparison_over_all_rounds_uses_only_rounds_that_both_dialogs_reached():
    none = series("none", [[1, 0.5, 0], [1, 0.5, 0]])
    ended = series("fix", [[1, 0.5, np.nan], [1, np.nan, np.nan]])  # no better in rounds it reached
    difference = compare_rows(ended, none).over_all_rounds
    assert (difference.mean, difference.n) == (0, 2)
