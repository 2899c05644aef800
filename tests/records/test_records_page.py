"""The page on records names every field of records and summaries."""

import json
import re

import pytest
from paths import ROOT

from holdfast.records import (
    CapabilityAnswer,
    Conversation,
    HeadScores,
    LogDialog,
    LogProbe,
    LogTurn,
    Probe,
    ProbeReply,
    TaskSample,
    Turn,
    Unscored,
    cause_records,
    check_records,
    drift_summary,
    logs_summary,
)

RUNS = ROOT / "tests" / "data" / "recorded"


DOCUMENTED = [
    *(Conversation, Turn, Probe, Unscored, TaskSample, HeadScores, CapabilityAnswer),
    *(LogDialog, LogTurn, LogProbe),
]


@pytest.mark.parametrize("model", DOCUMENTED)
def test_the_page_on_records_names_every_field_of_the_models(model):
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    cells = {line.split("|")[1] for line in page.splitlines() if line.startswith("|")}
    documented = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert not set(model.model_fields) - documented
    assert set(model.model_json_schema()["properties"]) == set(model.model_fields)


SUMMARISED = [
    drift_summary.MethodSummary,
    drift_summary.RuleSummary,
    drift_summary.PromptSummary,
    drift_summary.AgainstFirstMethod,
    drift_summary.MethodDifferences,
    drift_summary.Baseline,
    drift_summary.BaselineScores,
    drift_summary.Collapse,
    drift_summary.Truncation,
    drift_summary.ScoresAroundSummary,
    logs_summary.LogsResult,
    logs_summary.LoggedRule,
    logs_summary.FirstBroken,
    logs_summary.CauseCounts,
    logs_summary.ContextSummaries,
    logs_summary.CompactionEffect,
    logs_summary.KeptInSummaries,
    check_records.Check,
    check_records.PromptCheck,
    check_records.PromptAgainstEarlierRun,
    check_records.RuleAgainstEarlierRun,
    check_records.RuleCheck,
    check_records.CheckedCell,
    *(
        cause_records.BreachCause,
        cause_records.BreachStep,
        cause_records.Evidence,
        cause_records.RuleInContext,
    ),
    *(cause_records.LoggedCompaction, cause_records.CompactedRule),
]


@pytest.mark.parametrize("model", SUMMARISED)
def test_the_page_on_records_names_every_field_of_a_summary(model):
    page = (ROOT / "docs" / "records.md").read_text(encoding="utf-8")
    fields = model.model_fields.items()
    names = {field.serialization_alias or name for name, field in fields if not field.exclude}
    assert not names - set(re.findall(r"`(\w+)`", page))


def test_the_score_of_a_probe_stands_between_its_reply_and_how_that_came_about():
    key = {"round": 1, "kind": "stability", "rule": "signs", "probe": 0, "reply_of": "starts"}
    key |= {"rule_kind": "ending", "polarity": "always"}
    text = {"question": "Who are you?", "reply": "Ciao!"}
    details = {"mass": 0.25, "reasoning": "Hm.", "prompt_tokens": 9, "left_out": 1, "retries": 2}
    details |= {"cut_at": 5, "stop_reason": "length", "measure": "ends_with"}
    reply = ProbeReply(**key, **text, **details)
    score = {"score": 1.0, "reason": "it ends so", "judge": "a judge"}
    why = {"why": "cut", "reason": "too short"}
    lines = [
        (reply.scored(1.0, "it ends so", "a judge"), {**key, **text, **score, **details}),
        (reply.unscored("cut", "too short"), {**key, **text, **why, **details}),
        (reply.unanswered("cut", "too short"), {**key, **why}),
    ]
    for record, line in lines:
        assert not record.model_extra
        assert json.dumps(record.to_json()) == json.dumps(line)
