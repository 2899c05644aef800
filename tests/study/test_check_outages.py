"""`holdfast check` and its smoke test: an outage is never taken for a prompt that fails."""

import json
import threading
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from chat_server import Server, completion, refusal
from fast_set import only_fast
from synthetic_run import conversation_of

from holdfast.analysis import sequential
from holdfast.analysis.cell_scores import cell_scores
from holdfast.analysis.check_comparison import compare_runs
from holdfast.analysis.check_verdicts import check_prompts
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.cli import main
from holdfast.cli.measure.check import exit_code_of
from holdfast.records import read_run
from holdfast.records.check_records import Terms
from holdfast.study.checking import BATCHES_IN_OUTAGE, FIRST_BATCH, SMOKE_FIRST_BATCH, _Clock, looks

SUITE = """
name: mine
cases:
  - id: kept
    system_prompt: Say kept.
    probes: [Well?]
    measure: {regex: kept}
starters: [hello]
"""
ERROR = 0.05
RETRY_SOON = {"retry-after-ms": "1"}
FAULTS = {
    "500": refusal(500, "overloaded", headers=RETRY_SOON),
    "503": refusal(503, "down for maintenance", headers=RETRY_SOON),
    "429": refusal(429, "slow down", headers=RETRY_SOON),
    "filter": completion("", "content_filter"),
    "filtered": refusal(400, "flagged by the content filter", "content_filter"),
    "empty": completion(""),
    "malformed": (200, {}, "<html>"),
}


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(SUITE)
    return path


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("holdfast.models.endpoint_server._MAX_WAIT", 0.01)


def run(answer, suite, tmp_path, *options):
    junit = tmp_path / "checks.xml"
    with Server(answer) as server:
        words = ["check", str(suite), "--model", server.url, "--endpoint-model", "tiny"]
        words += ["--rounds", "2", "--out", str(tmp_path / "run"), "--junit", str(junit)]
        words += ["--user-turns", "none"]
        code = main([*words, *options])
    root = ElementTree.parse(junit).getroot()
    return code, int(root.get("failures")), int(root.get("errors"))


def is_probe(body):
    return body is not None and body["messages"][-1]["content"] == "Well?"


# Outages during a check


@pytest.mark.parametrize("smoke", [(), ("--smoke",)])
@pytest.mark.parametrize("fault", only_fast(FAULTS, "500", "429", "filtered", "empty", "malformed"))
def test_a_server_that_is_down_is_unavailable(suite, tmp_path, fault, smoke, capsys):
    code, failures, errors = run(lambda *_: FAULTS[fault], suite, tmp_path, *smoke)
    assert (code, failures) == (5, 0) and errors >= 1
    captured = capsys.readouterr()
    assert "FAIL" not in captured.out and "regress" not in captured.out + captured.err


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["filter", "filtered", "empty"])
def test_a_server_that_withholds_every_good_reply_does_not_look_like_a_failure(
    suite, tmp_path, fault
):
    """Only broken replies get through, one of four in each round: all scores there are, are 0."""
    counts, lock = Counter(), threading.Lock()

    def answer(body, number):
        if not is_probe(body):
            return completion("so it goes")
        round_asked = len(body["messages"])
        with lock:
            counts[round_asked] += 1
            return FAULTS[fault] if counts[round_asked] % 4 else completion("lost")

    code, failures, _ = run(answer, suite, tmp_path, "--budget", "24", "--min-stability", "0.5")
    assert code in (3, 5) and failures == 0


def test_a_failure_that_no_outage_can_explain_is_still_one(suite, tmp_path):
    def answer(body, number):
        is_lost = is_probe(body) and number % 10 == 0
        return refusal(500, "busy", headers=RETRY_SOON) if is_lost else completion("lost")

    code, failures, _ = run(answer, suite, tmp_path, "--budget", "24", "--min-stability", "0.8")
    assert (code, failures) == (1, 1)


TWO_PROMPTS = SUITE.replace(
    "starters",
    """  - id: late
    system_prompt: Say kept, late.
    probes: [Well?]
    measure: {regex: kept}
starters""",
)


@pytest.mark.parametrize("ends", only_fast([True, False], True))
def test_a_prompt_whose_first_batch_met_an_outage_is_looked_at_again(suite, tmp_path, ends):
    suite.write_text(TWO_PROMPTS)
    numbers = []

    def answer(body, number):
        if body is None or "late" not in body["messages"][0]["content"]:
            return completion("kept")
        numbers.append(number)
        return completion("kept") if ends and len(numbers) > 3 * FIRST_BATCH else FAULTS["filtered"]

    code, failures, _ = run(answer, suite, tmp_path, "--budget", "60", "--min-stability", "0.5")
    assert (code, failures) == ((0, 0) if ends else (5, 0))
    late = [record for record in read_run(tmp_path / "run").records if record.agent.id == "late"]
    if ends:
        assert len(late) > FIRST_BATCH and any(record.probes for record in late)
    else:  # and the server is not asked for ever
        assert len(late) == BATCHES_IN_OUTAGE * FIRST_BATCH


def test_a_wrong_key_is_no_outage(suite, tmp_path):
    assert run(lambda *_: refusal(401, "no such key"), suite, tmp_path)[0] == 4


# Smoke tests


def test_a_smoke_test_fails_only_what_is_clear(suite, tmp_path, capsys):
    code, failures, errors = run(lambda *_: completion("lost"), suite, tmp_path / "a", "--smoke")
    assert (code, failures) == (1, 1)
    *_, verdict, junit, page = capsys.readouterr().out.splitlines()
    assert verdict.startswith("1 of 1 prompt failed"), "no conversation follows the verdict"
    assert junit.startswith("JUnit: ") and page.startswith("Report: ")
    code, failures, errors = run(lambda *_: completion("kept"), suite, tmp_path / "b", "--smoke")
    output = capsys.readouterr().out
    assert (code, failures, errors) == (0, 0, 0)
    assert "NO CLEAR FAILURE  kept" in output and "does not show that the prompts hold" in output
    assert output.splitlines()[-1].startswith("Report: ")
    page = (tmp_path / "b" / "run" / "report.html").read_text(encoding="utf-8")
    assert "has no clear failure" in page and "does not show that the prompts hold" in page
    summary = json.loads((tmp_path / "b" / "run" / "summary.json").read_text(encoding="utf-8"))
    assert summary["check"]["smoke"] and summary["check"]["prompts"][0]["verdict"] == UNDECIDED


def test_a_smoke_test_of_every_rule_is_refused(suite, tmp_path):
    assert main(["check", str(suite), "--smoke", "--all-rules"]) == 2


def test_a_smoke_test_has_few_conversations_and_a_time(monkeypatch):
    assert looks(8, SMOKE_FIRST_BATCH) == [2, 3, 4, 6, 8]
    now = [0.0]
    monkeypatch.setattr("holdfast.study.checking.time.monotonic", lambda: now[0])
    clock = _Clock(60.0)
    assert clock.has_time_for(100), "the first batch always begins"
    now[0] = 20.0
    clock.note_batch(2)
    assert clock.has_time_for(4) and not clock.has_time_for(5)


def test_a_smoke_test_fails_a_prompt_at_the_bar_no_more_often_than_declared():
    draws = np.random.default_rng(6)
    at_bar = (draws.random((4000, 8, 6)) < 0.9).astype(float)
    wrong = sequential.is_below(at_bar, 0.9, ERROR).any(axis=-1).mean()
    assert wrong <= ERROR + 2.33 * (ERROR * (1 - ERROR) / 4000) ** 0.5
    failures = {
        mean: sequential.is_below((draws.random((1000, 8, 9)) < mean).astype(float), 0.9, ERROR)
        for mean in (0.5, 0.8)
    }
    assert failures[0.5].any(axis=-1).mean() > 0.95
    assert failures[0.8].any(axis=-1).mean() < 0.25, "as docs/checking.md says"


# Verdicts on conversations with lost replies


def conversation_with_gaps(number, scores, gaps=()):
    """A conversation with one score a round; those of rounds in `gaps` had no answer."""
    probes = [{"round": at, "score": score} for at, score in enumerate(scores, 1) if at not in gaps]
    unanswered = [
        {"round": at, "kind": "stability", "probe": 0, "why": "failure", "reason": "500"}
        for at in gaps
    ]
    return conversation_of(conversation=number, probes=probes, unanswered=unanswered)


def test_lost_replies_can_prevent_a_failure_but_never_make_a_pass():
    records = [conversation_with_gaps(n, [1.0, 0.0], gaps=(2,) if n % 2 else ()) for n in range(40)]
    scores = cell_scores(records, 2)
    assert scores.lost.sum() == 20 and np.nanmax(scores.values[:, 1]) == 0
    assert scores.at_best[:, 1].mean() == 0.5
    (low,) = check_prompts(records, ["bot"], 2, Terms(0.8, budget=40))
    assert low.verdict == FAIL, "half of the replies suffice to show it"
    (open_,) = check_prompts(records, ["bot"], 2, Terms(0.5, budget=40))
    assert open_.verdict == UNDECIDED and open_.unavailable and open_.lost == 20
    assert open_.cells[1].high > 0.5
    assert exit_code_of([open_], Terms(0.5)) == 5
    dead = [conversation_with_gaps(n, [1.0, 1.0], gaps=(1, 2)) for n in range(40)]
    (none,) = check_prompts(dead, ["bot"], 2, Terms(0.5, budget=40))
    assert none.verdict == UNDECIDED != PASS


def test_an_outage_is_no_fall_against_an_earlier_run():
    before = [conversation_with_gaps(n, [1.0]) for n in range(60)]
    with_outage = [
        conversation_with_gaps(n, [0.0], gaps=() if n % 3 == 0 else (1,)) for n in range(60)
    ]
    worse = [conversation_with_gaps(n, [0.0]) for n in range(60)]
    assert compare_runs(worse, before, 1, 60, ERROR).fell
    mixed = [conversation_with_gaps(n, [0.6]) for n in range(60)]
    assert not compare_runs(with_outage, mixed, 1, 60, ERROR).fell


@pytest.mark.parametrize("earlier", [{}, {"other": [conversation_with_gaps(0, [1.0])]}])
@pytest.mark.parametrize(
    ("lost_rounds", "verdict"), [((), PASS), ((1,), UNDECIDED), ((1, 2), UNDECIDED)]
)
def test_without_a_bar_an_outage_is_no_pass_of_a_prompt_that_the_earlier_run_lacks(
    earlier, lost_rounds, verdict
):
    records = [conversation_with_gaps(n, [1.0, 1.0], gaps=lost_rounds) for n in range(40)]
    terms = Terms(None, ERROR, 40)
    (prompt_check,) = check_prompts(records, ["A"], 2, terms, earlier)
    assert prompt_check.comparison is None and prompt_check.verdict == verdict
    assert prompt_check.unavailable == bool(lost_rounds)
    assert exit_code_of([prompt_check], terms) == (5 if lost_rounds else 0)


@pytest.mark.parametrize(("lost_count", "verdict"), [(4, PASS), (5, UNDECIDED), (39, UNDECIDED)])
def test_without_a_bar_a_comparison_of_the_few_replies_that_an_outage_left_is_no_pass(
    lost_count, verdict
):
    earlier = {"A": [conversation_with_gaps(n, [1.0]) for n in range(40)]}
    records = [
        conversation_with_gaps(n, [1.0], gaps=(1,) if n < lost_count else ()) for n in range(40)
    ]
    (prompt_check,) = check_prompts(records, ["A"], 1, Terms(None, ERROR, 40), earlier)
    assert prompt_check.comparison.complete and not prompt_check.comparison.fell
    assert (prompt_check.verdict, prompt_check.unavailable) == (verdict, verdict == UNDECIDED)


def test_lost_good_replies_fail_a_good_prompt_no_more_often_than_declared():
    """A prompt at the bar, and a server that loses half of the good replies and no bad one."""
    draws = np.random.default_rng(5)
    values = (draws.random((1000, 120, 3)) < 0.8).astype(float)
    is_lost = (values == 1) & (draws.random(values.shape) < 0.5)
    observed = np.where(is_lost, np.nan, values)
    naive = sequential.is_below(observed, 0.8, ERROR).any(axis=-1).mean()
    guarded = sequential.is_below(np.where(is_lost, 1.0, observed), 0.8, ERROR).any(axis=-1).mean()
    assert naive > 0.5, "what is left looks like a regression"
    assert guarded <= ERROR + 2.33 * (ERROR * (1 - ERROR) / 1000) ** 0.5
    decision = sequential.decide(observed[0], 0.8, ERROR, np.where(is_lost[0], 1.0, observed[0]))
    assert decision.verdict == UNDECIDED
