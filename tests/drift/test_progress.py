"""The progress of a run: the replies that it reports, and the time left that follows from them."""

import json
from dataclasses import replace

import pytest
from paths import ROOT
from scripted_model import Scripted
from short_drift import QUICK, SUITE

from holdfast.drift import Running, load_suite, run
from holdfast.drift.progress import GROWTH, cost_share, seconds_left
from holdfast.drift.remaining import count_replies

# Replies


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


# The time left

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
