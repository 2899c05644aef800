"""Progress lines of long commands."""

import re
import time

import pytest

from holdfast.cli import progress
from holdfast.cli.progress import Bar, duration

DURATIONS = [(0, "0 seconds"), (40, "40 seconds"), (61, "1 minute"), (100, "2 minutes")]


def test_without_a_terminal_plain_lines_say_what_is_done_and_left(capsys, monkeypatch):
    for name in ("BEGINS", "FIRST", "EVERY"):
        monkeypatch.setattr(progress, name, 0.05)
    with Bar(1600, title="200 conversations of 8 rounds") as bar:
        bar(400, 5000)
        time.sleep(0.4)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "holdfast: 200 conversations of 8 rounds"
    assert len(lines) >= 3
    for line in lines[1:]:
        left = r"\(25%\), [\d,]+ tokens/s, about \d+ seconds? left"
        assert re.fullmatch(rf"holdfast: 400 of 1,600 rounds {left}", line), line


def test_no_line_comes_after_the_end(capsys, monkeypatch):
    monkeypatch.setattr(progress, "BEGINS", 0.05)
    with Bar(10):
        pass
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_refused_work_prints_no_title(capsys):
    with pytest.raises(ValueError), Bar(10, title="10 rounds"):
        raise ValueError
    assert capsys.readouterr().err == ""


def test_what_an_earlier_call_recorded_does_not_count_towards_the_speed():
    bar = Bar(100)
    bar(50)
    assert "nothing new finished" in bar.line()
    bar.started -= 10
    bar(10, 1000)
    left = re.search(r"about (.+) left", bar.line())[1]
    assert left == "40 seconds"


def test_the_first_line_needs_no_speed():
    bar = Bar(100)
    bar.started -= 20
    assert bar.line() == "0 of 100 rounds (0%), nothing new finished for 20 seconds"


@pytest.mark.parametrize(("seconds", "expected"), [*DURATIONS, (7000, "1.9 hours")])
def test_durations_as_a_person_would_say_them(seconds, expected):
    assert duration(seconds) == expected
