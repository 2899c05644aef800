"""Progress lines of long commands."""

import json
import os
import re
import signal
import sys
import time
from dataclasses import replace

import pytest
from paths import ROOT
from scripted_model import Scripted
from short_drift import QUICK, SUITE

from holdfast.cli.shared import interrupts, progress_bar
from holdfast.cli.shared.exit_codes import TERMINATED
from holdfast.cli.shared.interrupts import Terminated, interrupting_on_sigterm
from holdfast.cli.shared.progress_bar import Bar, pace
from holdfast.drift import Running, load_suite, run
from holdfast.drift.progress import GROWTH, cost_share, seconds_left
from holdfast.drift.remaining import count_replies
from holdfast.plurals import duration

DURATIONS = [(0, "0 seconds"), (40, "40 seconds"), (61, "1 minute"), (100, "2 minutes")]


def test_without_a_terminal_plain_lines_say_what_is_done_and_left(capsys, monkeypatch):
    for name in ("SECONDS_TO_TITLE", "SECONDS_TO_FIRST_LINE", "SECONDS_BETWEEN_LINES"):
        monkeypatch.setattr(progress_bar, name, 0.05)
    with Bar(1600, title="200 conversations of 8 replies") as bar:
        bar(400, 5000)
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert "200 conversations" in lines[0]
    assert len(lines) >= 3
    for line in lines[1:]:
        pattern = r"\(25%\), [\d,]+ replies a second, about \d+ seconds? left"
        assert re.fullmatch(rf"holdfast: 400 of 1,600 replies {pattern}", line), line


def test_no_line_comes_after_the_end(capsys, monkeypatch):
    monkeypatch.setattr(progress_bar, "SECONDS_TO_TITLE", 0.05)
    with Bar(10):
        pass
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_refused_work_prints_no_title(capsys):
    with pytest.raises(ValueError), Bar(10, title="10 replies"):
        raise ValueError
    assert capsys.readouterr().err == ""


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_an_earlier_call_recorded_does_not_count_towards_the_speed():
    clock = Clock()
    bar = Bar(100, clock=clock)
    bar(50)
    assert "nothing new finished" in bar.line()
    clock.now = 10.0
    bar(10, 1000)
    time_left = re.search(r"about (.+) left", bar.line())[1]
    assert time_left == "40 seconds"


@pytest.mark.parametrize(
    ("recorded", "total", "done", "is_early"),
    [
        (0, 240, 1, True),
        (135, 240, 1, True),
        (135, 240, 4, True),
        (0, 240, 5, False),
        (0, 10, 1, False),
        (0, 40, 4, False),
        (38, 40, 1, False),
    ],
)
def test_nothing_is_estimated_from_a_few_units(recorded, total, done, is_early):
    """In a run of 240 replies, the first took 11 seconds and the rest 10 minutes, not 44."""
    clock = Clock()
    bar = Bar(total, clock=clock)
    if recorded:
        bar(recorded)
    clock.now = 11.0
    for _ in range(done):
        bar(1, 50)
    estimate = re.search(r" replies (an?) \w+, about .+ left$", bar.line())
    assert (estimate is None) is is_early, bar.line()
    assert ("too early to say" in bar.line()) is is_early


def test_the_first_line_needs_no_speed():
    clock = Clock()
    bar = Bar(100, clock=clock)
    clock.now = 20.0
    assert re.findall(r"\d+", bar.line()) == ["0", "100", "0", "20"]


@pytest.mark.parametrize(("seconds", "expected"), [*DURATIONS, (7000, "1.9 hours")])
def test_durations_are_rounded_as_a_person_would_say_them(seconds, expected):
    assert duration(seconds) == expected


def test_a_pace_is_a_number_that_a_person_would_say():
    paces = [pace(per_second, "reply") for per_second in (12.3, 1.5, 0.2, 0.001, 0.0)]
    assert paces[:2] == ["12 replies a second", "1.5 replies a second"]
    assert paces[2:4] == ["12 replies a minute", "3.6 replies an hour"]
    assert paces[4] == "0.0 replies an hour"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"probe_every": 2, "canary": True},
        {"probe_at": "after-round", "adoption": False},
        {"recall": True, "probe_every": 3},
    ],
)
def test_a_run_reports_every_reply_and_no_other(tmp_path, options):
    settings = replace(QUICK, rounds=4, conversations=3, **options)
    suite = load_suite("bots") if settings.recall else SUITE
    reported, model = [], Scripted()
    running = Running(progress=lambda replies, tokens=0: reported.append(replies))
    run(model, suite, tmp_path / "run", settings, running=running)
    total = count_replies(suite, settings, range(3))
    assert sum(reported) == total == len(model.requests)
    assert set(reported) == {1}


def test_a_conversation_that_ends_early_reports_its_other_replies_too(tmp_path):
    settings, reported = replace(QUICK, rounds=5, conversations=2), []
    running = Running(progress=lambda replies, tokens=0: reported.append(replies))
    run(Scripted(context=4), SUITE, tmp_path / "run", settings, running=running)
    assert sum(reported) == count_replies(SUITE, settings, range(2))
    assert max(reported) > 1


RECORDED = json.loads((ROOT / "tests" / "data" / "progress.json").read_text())


@pytest.mark.parametrize("name", RECORDED)
def test_the_time_left_is_within_a_factor_of_two_after_the_first_tenth(name):
    """Recorded runs of two models, whose conversations end their rounds together or apart."""
    run = RECORDED[name]
    for percent in range(10, 93):
        elapsed = run["seconds"] * percent / 100
        events = [(second, done) for second, done in run["events"] if second <= elapsed]
        estimate = seconds_left(events, run["rounds"], elapsed, growth=GROWTH, waves=run["waves"])
        assert estimate is not None
        assert 0.5 <= estimate / (run["seconds"] - elapsed) <= 2, (percent, estimate)


@pytest.mark.parametrize("growth", [0.0, 0.95, 3.0])
@pytest.mark.parametrize("waves", [1, 4])
@pytest.mark.parametrize("together", [True, False])
def test_simulated_runs_are_estimated_within_a_factor_of_two(growth, waves, together):
    """The estimate assumes a growth of the cost; the simulated growth may differ from it."""
    count, rounds = 12, 8
    total, events, end = count * rounds * waves, [], 0.0
    for done in range(1, total + 1):
        number = (done - 1) % (count * rounds) // count  # of the round, from 0
        end += 1 + growth * number / rounds
        if not together or done % count == 0:
            events.append((end, done))
    for percent in range(10, 93):
        elapsed = end * percent / 100
        past_events = [event for event in events if event[0] <= elapsed]
        estimate = seconds_left(past_events, total, elapsed, growth=GROWTH, waves=waves)
        if estimate is None:  # the first round of all conversations has not ended
            assert together and waves == 1 and percent < 13
            continue
        assert 0.5 <= estimate / (end - elapsed) <= 2, (percent, estimate)


def test_nothing_is_estimated_before_anything_is_done():
    assert seconds_left([], 10, 5.0) is None
    assert seconds_left([(5.0, 5)], 10, 5.0) == 5.0


def test_shares_of_the_cost_add_up():
    for growth, waves in ((0.0, 1), (0.95, 1), (2.0, 3)):
        assert cost_share(0.0, growth, waves) == 0
        assert cost_share(1.0, growth, waves) == pytest.approx(1)
        shares = [cost_share(units / 100, growth, waves) for units in range(101)]
        assert shares == sorted(shares)


def test_an_estimate_that_has_passed_is_not_repeated():
    clock = Clock()
    bar = Bar(8, clock=clock)
    clock.now = 70.0
    bar(7, 1000)
    assert "about 10 seconds left" in bar.line()
    clock.now += 40.0  # the last round goes on and on
    assert "nothing new finished for 40 seconds" in bar.line() and "left" not in bar.line()


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)  # the handler runs before this ends


def test_sigterm_that_comes_twice_at_once_is_one():
    """`timeout` signals the command and then its group."""
    with pytest.raises(Terminated), interrupting_on_sigterm():
        try:
            terminate()
        finally:
            terminate()


def test_sigterm_that_comes_again_later_ends_the_process(monkeypatch, capfd):
    monkeypatch.setattr(interrupts, "_SAME_SIGNAL", 0.0)
    monkeypatch.setattr(interrupts.os, "_exit", sys.exit)
    with pytest.raises(Terminated), interrupting_on_sigterm():
        try:
            terminate()
        finally:
            with pytest.raises(SystemExit, match=str(TERMINATED)):
                terminate()
    assert "terminated" in capfd.readouterr().err
