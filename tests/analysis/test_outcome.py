"""The outcome of a run: the first thing that counts writes the title and the next step."""

import numpy as np
import pytest
from drift_sentences import opening_of, record, run_of, series_of, with_outcome
from scripted_model import Scripted
from short_drift import SUITE

from holdfast import drift, report
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.outcome import Findings, Outcome, conversations_needed, findings_of
from holdfast.analysis.prompt_effect import MADE_WORSE
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import DIFFERENCES, SCORES, estimate
from holdfast.analysis.summary import summary_of, write
from holdfast.analysis.verdicts import error_at, verdict_on
from holdfast.records import read_run
from holdfast.records.drift_summary import Baseline, BaselineScores
from holdfast.records.manifest import read_raw_manifest
from holdfast.report.baseline_sentences import baseline_lines
from holdfast.report.collapse_section import collapse_lines
from holdfast.report.drift_page import render_page
from holdfast.report.next_step import next_step
from holdfast.report.run_title import MAX_WORDS, title
from holdfast.report.terminal import results_text

# Outcomes


def baseline_with(verdict: str, *names: str, by_rule: bool = False) -> Baseline:
    """A baseline in which everything has the same verdict."""
    prompted, unprompted = (estimate(np.full(40, score), SCORES) for score in (0.2, 0.85))
    scores = {
        "n": 40,
        "prompted": prompted,
        "unprompted": unprompted,
        "difference": verdict_on(estimate(np.full(40, -0.65), DIFFERENCES)),
        "verdict": verdict,
    }
    cases = []
    for name in names:
        case, _, rule = name.partition(" · ")
        cases.append(BaselineScores(name=name, **scores, case=case, rule=rule or None))
    overall = BaselineScores(name="all", **scores)
    return Baseline(all=overall, measures=tuple(cases), cases=tuple(cases), by_rule=by_rule)


def outcome_of(folder, first, last, n=40, baseline=None, **options) -> Findings:
    return findings_of(series_of(folder, first, last, n, **options)[0], baseline)


@pytest.mark.parametrize(
    ("last", "n", "verdict", "outcome", "words"),
    [
        (lambda i: 0.2, 40, MADE_WORSE, Outcome.MADE_WORSE, "scores 20% with the prompt and 85%"),
        (lambda i: 0.2, 40, "uninformative", Outcome.UNINFORMATIVE, "cannot show drift"),
        (lambda i: 0.2, 40, None, Outcome.DRIFTS, "The agent drifts"),
        (lambda i: 0.2, 12, None, Outcome.TOO_FEW, "Only 12 conversations, too few"),
        (lambda i: 1.0, 100, None, Outcome.HOLDS, "No drift of 10 points or more"),
        (lambda i: float(i % 5 > 0), 40, None, Outcome.DRIFTS, "The agent drifts"),
        (lambda i: float(i % 20 > 0), 40, None, Outcome.UNDECIDED, "No clear drift"),
    ],
    ids=[
        *("made worse", "uninformative", "all fall", "few conversations", "none falls"),
        *("a fifth falls", "a twentieth falls"),
    ],
)
def test_the_first_outcome_that_applies_writes_the_title(
    tmp_path, last, n, verdict, outcome, words
):
    baseline = baseline_with(verdict, "signs") if verdict else None
    findings = outcome_of(tmp_path, lambda i: 1.0, last, n, baseline)
    assert findings.outcome is outcome
    assert words in title(findings) and len(title(findings).split()) <= MAX_WORDS


def test_drift_of_conversations_that_broke_down_is_not_called_drift(tmp_path):
    """The text below the title does not contradict it, even if the other conversations drift."""
    rows = [record(i, [1.0, 0.0, 0.0, 0.0]) for i in range(60)]
    for item in rows[:40]:
        for turn in item["turns"]:
            turn["text"] = "I can help with that, my friend, and I will say it again and again."
    collapsed = read_series(run_of(tmp_path / "broken", rows[:40]))
    assert findings_of(collapsed[0]).outcome is Outcome.BROKEN_DOWN
    assert opening_of(collapsed)[0].startswith("40 of 40 conversations")
    assert "drifts" not in " ".join(opening_of(collapsed))
    few = run_of(tmp_path / "few", rows[:4])  # which show nothing, whether or not they broke down
    assert findings_of(read_series(few)[0]).outcome is Outcome.TOO_FEW
    assert collapse_lines(results_of(few))[-1].startswith("Scores of broken-down conversations")
    repeating = [record(number, [1.0, 1.0, 1.0, 1.0]) for number in range(2)]
    for item in repeating:  # two turns of seven are repetitions, too few for a collapse
        for number in (1, 3, 5):
            turn = item["turns"][number]
            turn["text"] = "I can help with that, my friend, and I will say it again and again."
    lines = collapse_lines(results_of(run_of(tmp_path / "repeating", repeating)))
    assert "0 of 2 conversations collapsed" in lines[0]
    assert lines[-1] == "Scores in rounds with such turns tell you little about the prompt."
    run = run_of(tmp_path / "mixed", rows)
    # the last 20 did not break down, and drift as well
    (mixed,) = read_series(run)
    assert findings_of(mixed).outcome is Outcome.DRIFTS
    assert "show the same" in collapse_lines(results_of(run))[-1]


def test_replies_that_were_cut_are_no_evidence_of_drift(tmp_path):
    def cut_replies(number, count):
        probe = {"kind": "stability", "round": 1, "probe": 0, "question": "?", "reply": "I"}
        probe |= {"measure": "regex", "why": "cut", "reason": "the reply was cut"}
        return {**record(number, [1.0, 0.0]), "unscored": [probe] * count}

    most = read_series(run_of(tmp_path / "most", [cut_replies(number, 3) for number in range(40)]))
    assert findings_of(most[0]).outcome is Outcome.CUT and "drifts" not in opening_of(most)[0]
    some = read_series(run_of(tmp_path / "some", [cut_replies(number, 1) for number in range(40)]))
    assert findings_of(some[0]).outcome is Outcome.DRIFTS


def test_several_rules_that_the_prompt_makes_worse_are_named(tmp_path):
    baseline = baseline_with(MADE_WORSE, "signs", "price", by_rule=True)
    findings = outcome_of(tmp_path, lambda i: 0.2, lambda i: 0.2, baseline=baseline)
    assert findings.outcome is Outcome.MADE_WORSE
    assert all(name in title(findings) for name in ("2 rules", "“signs”", "“price”"))


def test_a_rule_that_is_never_followed_stands_in_one_list():
    baseline = baseline_with("never followed", "bot · signs", by_rule=True)
    assert not [line for line in baseline_lines(baseline) if "ever followed" in line]
    by_case = baseline_with("never followed", "bot")
    assert any(line.startswith("Never followed") for line in baseline_lines(by_case))


# Terminal, page and summary


def test_terminal_page_and_summary_state_the_outcome_of_the_same_results(tmp_path):
    run_of(tmp_path, [record(i, [1.0, 0.2]) for i in range(40)], "holdfast drift")
    results = results_of(read_run(tmp_path))
    assert read_run(tmp_path).summary is None
    for outcome, words, step in [
        (Outcome.DRIFTS, "The agent drifts on this prompt", "no fix is known to help"),
        (Outcome.HOLDS, "No drift of 10 points or more on this prompt", "try a longer"),
    ]:
        with_findings = with_outcome(results, outcome)
        page = render_page([with_findings])
        assert results_text(with_findings).startswith(words)
        assert f"<h1>{words}" in page
        assert step in next_step(with_findings) and step in page
        write(tmp_path, summary_of(with_findings))
        assert read_run(tmp_path).summary.outcome == outcome


def test_a_run_made_in_python_gets_no_command_to_repeat(tmp_path):
    drifting = [record(number, [1.0, 0.2]) for number in range(40)]
    for argv, step in (("holdfast drift", "\nholdfast calibrate"), ("", "repeat drift.run")):
        results = results_of(run_of(tmp_path / (argv or "python"), drifting, argv))
        step_text = next_step(with_outcome(results, Outcome.DRIFTS))
        assert step in step_text and ("holdfast" in step_text) == bool(argv)


def test_repeating_a_command_leaves_the_manifest_and_the_summary_alone(tmp_path):
    settings = drift.Settings(rounds=2, conversations=4)

    def summary():
        drift.run(Scripted(), SUITE, tmp_path / "run", settings)
        text = report.write_summary(tmp_path / "run").read_bytes()
        return text, read_run(tmp_path / "run").manifest.identity.to_json()

    assert summary() == summary()


# Runs that are extended


def test_a_run_that_is_extended_is_read_at_its_second_look(tmp_path):
    def extend(conversations):
        settings = drift.Settings(rounds=1, conversations=conversations)
        return drift.run(Scripted(), SUITE, tmp_path / "run", settings)

    looks = []
    for conversations in (20, 20, 22, 24):
        (series,) = read_series(extend(conversations))
        looks.append(series.look)
    assert looks == [1, 1, 2, 3] and series.error == error_at(3)
    assert read_raw_manifest(tmp_path / "run")["earlier_sizes"] == [20, 22]
    few = drift.Settings(rounds=1, conversations=4)
    drift.run(Scripted(), SUITE, tmp_path / "few", few)
    larger_run = drift.run(Scripted(), SUITE, tmp_path / "few", drift.Settings(1, 24))
    assert read_series(larger_run)[0].look == 1, "no verdict could be read from 4 conversations"


@pytest.mark.slow
def test_following_the_next_step_is_rarely_wrong():
    """As benchmarks/verdicts.py does at length: 120 runs without drift, each extended until its
    next step asks for no more; 12 of them, binomial with 5%, would be far from chance.
    """
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(120):
        values = (rng.binomial(1, 0.8, 1200) - rng.binomial(1, 0.8, 1200)).astype(float)
        n, look = 20, 1
        while n is not None and n <= len(values):
            change = estimate(values[:n], DIFFERENCES, error=error_at(look))
            if verdict_on(change).sign:
                wrong += 1
                break
            n, look = conversations_needed(change, -0.1, look), look + 1
    assert wrong <= 12
