"""Progress lines of long commands."""

import re
import time

import pytest
from clock import Clock

from holdfast.cli.shared import progress_bar
from holdfast.cli.shared.progress_bar import Bar, pace
from holdfast.plurals import duration

# Lines without a terminal


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


# The estimate in a line


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


def test_an_estimate_that_has_passed_is_not_repeated():
    clock = Clock()
    bar = Bar(8, clock=clock)
    clock.now = 70.0
    bar(7, 1000)
    assert "about 10 seconds left" in bar.line()
    clock.now += 40.0  # the last round goes on and on
    assert "nothing new finished for 40 seconds" in bar.line() and "left" not in bar.line()


# Words

DURATIONS = [(0, "0 seconds"), (40, "40 seconds"), (61, "1 minute"), (100, "2 minutes")]


@pytest.mark.parametrize(("seconds", "expected"), [*DURATIONS, (7000, "1.9 hours")])
def test_durations_are_rounded_as_a_person_would_say_them(seconds, expected):
    assert duration(seconds) == expected


def test_a_pace_is_a_number_that_a_person_would_say():
    paces = [pace(per_second, "reply") for per_second in (12.3, 1.5, 0.2, 0.001, 0.0)]
    assert paces[:2] == ["12 replies a second", "1.5 replies a second"]
    assert paces[2:4] == ["12 replies a minute", "3.6 replies an hour"]
    assert paces[4] == "0.0 replies an hour"
