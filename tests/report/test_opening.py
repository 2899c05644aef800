"""The opening sentences of a run, and its next step."""

import math
import re
from dataclasses import replace

import pytest
from drift_sentences import (
    next_steps,
    numbers_in,
    opening_of,
    record,
    run_of,
    series_of,
)
from synthetic_run import write_run

from holdfast.analysis.drift_results import results_of
from holdfast.analysis.outcome import Outcome, findings_of
from holdfast.analysis.series import read_series
from holdfast.records import Conversation, open_run, read_run
from holdfast.report import fix_sentences, run_title, table, write
from holdfast.report.next_step import next_step
from holdfast.report.score_phrases import capitalise


def test_the_opening_of_a_drifting_run_has_its_rounds_change_and_adoption(tmp_path):
    series = series_of(tmp_path, lambda i: 1.0, lambda i: float(i % 4 == 0), adoption=[0.0, 0.25])
    assert findings_of(series[0]).outcome is Outcome.DRIFTS
    verdict, change, adopts = opening_of(series)
    assert numbers_in(verdict) == [25, 2, 100, 1], "of the last round, and of the first"
    assert numbers_in(change) == [75, 95, 54, 87, 40], "points, their interval, conversations"
    assert numbers_in(adopts) == [25, 2, 0, 1, 25, 95, 14, 32]


def test_a_change_names_its_conversations_if_the_means_have_more(tmp_path):
    records = [record(i, [1.0, 0.0], [0.0, 1.0] if i % 10 else [0.5]) for i in range(40)]
    adopts = opening_of(read_series(run_of(tmp_path, records)))[2]
    assert "0.05" not in adopts and ": 100% in round 2, up from 0% in round 1, in the 36" in adopts
    assert "in the 36 conversations scored in both, 100 points more" in adopts
    page = write([tmp_path], tmp_path / "page.html").read_text()
    assert '<td data-label="Conversations">40</td>' in page  # of stability
    records = [record(i, [1.0, 0.0] if i % 10 else [1.0]) for i in range(40)]
    run_of(tmp_path / "other", records)
    page = write([tmp_path / "other"], tmp_path / "page.html").read_text()
    assert '<td data-label="Conversations">36 of 40</td>' in page


def test_a_difference_that_cannot_be_told_is_named_beside_the_reason(tmp_path):
    counts = {"none": 40, "boost:factor=2": 3, "boost:factor=4": 5}
    records = [
        record(i, [1.0, float(i % 2)], method=method)
        for method, count in counts.items()
        for i in range(count)
    ]
    text = table(run_of(tmp_path, records))
    for method, count in list(counts.items())[1:]:
        where = f"{method}, round 2; {method}, all rounds"
        assert f"{where}: cannot tell, as n = {count}, fewer than 20" in text


def test_a_path_at_the_start_of_a_reason_keeps_its_case():
    assert capitalise("the reply is short") == "The reply is short"
    for name in ("src/pay.py", "pay.py", ".env.local", "my_module", "print('x')"):
        assert capitalise(f"{name} was changed") == f"{name} was changed"


def test_rounded_scores_are_as_far_apart_as_the_change_beside_them(tmp_path):
    # 0.675 and 0.642, which are 68% and 64%, but 3 points apart
    records = [
        record(i, [0.642 + 0.3 * (-1) ** i, 0.675 + 0.3 * (-1) ** (i // 2)]) for i in range(40)
    ]
    verdict, change = opening_of(read_series(run_of(tmp_path, records)))
    assert "67.5% on probes in round 2, 64.2% in round 1" in verdict
    assert "the change of +3 points" in change


def test_the_opening_does_not_claim_what_chance_explains(tmp_path):
    records = [
        record(i, [float(i % 10 != 0), float(i % 10 not in (1, 2))], [float(i % 20 == 0), 0.05])
        for i in range(40)
    ]
    series = read_series(run_of(tmp_path, records))
    assert findings_of(series[0]).outcome is Outcome.UNDECIDED
    verdict, interval, adopts = opening_of(series)
    assert numbers_in(verdict)[0] == 80 and "drifts" not in verdict
    assert numbers_in(interval) == [40, -10, 95, -29, 10] and "chance" in interval
    assert numbers_in(adopts)[0] == 5 and "no clear" in adopts


@pytest.mark.parametrize(
    ("n", "method", "outcome"),
    [
        (3, "none", Outcome.TOO_FEW),
        (19, "none", Outcome.TOO_FEW),
        (20, "none", Outcome.DRIFTS),
        (20, "boost:factor=2", Outcome.DRIFTS),
    ],
)
def test_the_headline_needs_20_conversations_and_names_a_lone_method(tmp_path, n, method, outcome):
    series = series_of(tmp_path, lambda i: 1.0, lambda i: 0.5, n, method=method)
    headline = opening_of(series)[0]
    assert findings_of(series[0]).outcome is outcome
    assert ("drifts" in headline) == (n >= 20) and ("50%" in headline)
    assert (f"{n} conversations" in headline) == (n < 20)
    assert ("boost:factor=2" in headline) == (method != "none")


def test_a_difference_that_rounding_would_hide_is_shown(tmp_path):
    series = series_of(tmp_path, lambda i: 0.9049, lambda i: 0.8951, n=800)
    assert re.findall(r"[\d.]+%", opening_of(series)[0]) == ["89.5%", "90.5%"]


SPLIT = {"methods": ("none", "split-softmax:exponent=0.5")}
REPEAT = {"methods": ("repeat-prompt:probability=1.0",)}


@pytest.mark.parametrize(
    "shape",
    [
        {"conversations": 1, "rounds": 1},
        {"conversations": 24, "rounds": 1},
        {"conversations": 24, "rounds": 12, **REPEAT},
        {"conversations": 60, "rounds": 16, "prompts": 40},
        {"conversations": 60, "rounds": 4, "prompts": 5, **REPEAT},
    ],
    ids=str,
)
def test_the_first_line_is_short(tmp_path, shape):
    series = read_series(read_run(write_run(tmp_path / "run", **shape)))
    first, *lines = opening_of(series)
    assert len(first.split()) <= run_title.MAX_WORDS == 25, first
    assert all(line.endswith(".") and "None" not in line for line in (first, *lines))


def test_the_headline_of_one_round_has_its_score_and_count(tmp_path):
    (headline,) = opening_of(read_series(run_of(tmp_path, [record(0, [0.5])])))
    assert "50%" in headline and "1 conversation" in headline


@pytest.mark.parametrize(
    ("better", "n", "verb", "numbers"),
    [
        (lambda i: 0.5 + i % 2 / 2, 40, "still", [75, 2, 50]),
        (lambda i: i % 2 / 10, 40, "only", [5, 2, 20]),
        (lambda i: i % 2 / 2, 40, "chance", [25, 2, 0]),
        (lambda i: 0.5 + i % 2 / 2, 4, "too few", [75, 2]),
    ],
)
def test_the_fix_is_reported_with_the_paired_difference(tmp_path, better, n, verb, numbers):
    records = [record(i, [1.0, 0.25]) for i in range(n)]
    records += [record(i, [1.0, better(i)], method="m") for i in range(n)]
    line = fix_sentences.fix_sentence(read_series(run_of(tmp_path, records)))
    assert verb in line and numbers_in(line)[:3] == numbers


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return next_steps(tmp_path_factory.mktemp("steps"))


def test_a_next_step_is_one_sentence_with_its_commands(steps):
    for step in steps.values():
        first, *commands = step.splitlines()
        assert first.startswith("Next: ") and first.count("Next") == 1
        assert all(line.startswith(("holdfast ", "or search ")) for line in commands)


def test_the_commands_of_the_next_step_repeat_the_options_of_the_run(steps):
    commands = {case: step.splitlines()[1:] for case, step in steps.items()}
    expected = "holdfast drift --model m --suite bot --conversations 20"
    assert commands["few conversations"] == [expected]
    serve = "holdfast serve --model m --default-method boost:factor=4"
    assert commands["a fix that helps"][-1] == serve
    search = "holdfast calibrate --model m --suite bot --rounds 2 --ask-at 3"
    assert commands["a drift"][-1] == search
    assert "repetition:probability=1" in commands["a drift behind an API"][0]
    assert not any("calibrate" in line for line in commands["a drift behind an API"])
    assert commands["stable"][0].startswith("holdfast check bot --model m")
    for case in ("replayed dialogs", "breakdown", "a fix that helps behind an API"):
        assert commands[case] == []


def test_the_next_step_of_a_run_is_read_from_its_records_and_command(tmp_path):
    records = [record(i, [1.0, float(i % 4 == 0)]) for i in range(40)]
    records += [record(i, [1.0, 1.0], method="m") for i in range(40)]
    about = {"command": "drift", "argv": "holdfast drift --model 'a b' --suite=x.yaml --top-p 1"}
    with open_run(tmp_path, {}, about) as run:
        for item in records:
            run.append(Conversation.model_validate(item))
    results = results_of(read_run(tmp_path))
    options = "--suite x.yaml --top-p 1 --rounds 2 --ask-at 3 --sweep"
    assert f"holdfast calibrate --model 'a b' {options} m" in next_step(results)
    assert "holdfast serve --model 'a b' --default-method m" in next_step(results)
    assert f"{options} split-softmax:" in next_step(replace(results, series=results.series[:1]))


def test_the_number_of_conversations_needed_for_a_verdict(tmp_path):
    """Half of 24 conversations fall by 0.3 and half rise: the sd is 0.306, and the mean, 0, is 0.1
    away from a fall that matters. The next look needs 2.81 standard errors, for its 0.5%, and room
    for an unseen conversation.
    """
    series_of(tmp_path, lambda i: 0.5, lambda i: 0.2 if i % 2 else 0.8, n=24)
    results = results_of(read_run(tmp_path))
    assert results.findings.outcome is Outcome.UNDECIDED
    assert 2.81 * 0.3064 / math.sqrt(90) + 1 / 91 > 0.1 >= 2.81 * 0.3064 / math.sqrt(100) + 1 / 101
    assert "with 100 conversations" in next_step(results)
