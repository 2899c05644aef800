"""The pilot of `holdfast try`: it times a few replies, from which the size of the run follows."""

import asyncio
import selectors
import time

import pytest
from clock import Clock
from pilots import pilot_of
from scripted_model import ScriptedModel

from holdfast.cli.measure import timed_run
from holdfast.cli.measure.pilot import (
    MIN_CONVERSATIONS,
    SUFFICIENT_CONVERSATIONS,
    RunPlan,
    time_replies,
)
from holdfast.drift import Settings, load_suite
from holdfast.errors import ModelError, RequestFailed
from holdfast.models.requests import Reply

# Timing the model


class Timed(ScriptedModel):
    """A model that takes a while to load, to begin a reply, and for each token."""

    def __init__(self, loading, start, per_token):
        self.loading, self.start, self.per_token, self.begun = loading, start, per_token, 0

    async def generate(self, request):
        self.begun += 1
        tokens = request.sampling.max_new_tokens
        loading = self.loading if self.begun == 1 else 0
        await asyncio.sleep(loading + self.start + self.per_token * tokens)
        return Reply("Well", (1,) * tokens, "length")


@pytest.fixture
def waits_are_skipped(monkeypatch):
    """Time passes only while an event loop waits, and at once."""
    clock, select = Clock(), selectors.DefaultSelector.select

    def skip(selector, timeout=None):
        events = select(selector, timeout and 0)
        if not events and timeout:
            clock.now += timeout
        return events

    monkeypatch.setattr(selectors.DefaultSelector, "select", skip)
    monkeypatch.setattr(time, "monotonic", clock)


@pytest.mark.parametrize(
    ("per_token", "limit"),
    [(0.001, 64), (0.04, 16), (0.2, 4)],
)
def test_the_pilot_ends_in_time_and_knows_how_fast_the_model_is(
    per_token, limit, waits_are_skipped
):
    suite, settings = load_suite("starter"), Settings(rounds=4, conversations=4)
    model, start = Timed(0.3, 0.1, per_token), time.monotonic()
    pilot = time_replies(model, suite, settings, None, seconds=1.5)
    assert time.monotonic() - start <= 0.4 + per_token + 1.5 + 0.001
    assert (pilot.replies, pilot.limit, pilot.cut) == (4, limit, 1.0)
    assert pilot.start + 64 * pilot.per_token == pytest.approx(0.1 + 64 * per_token, abs=0.01)


def test_a_model_that_ends_nothing_in_time_is_timed_by_its_first_token(waits_are_skipped):
    suite, settings = load_suite("starter"), Settings(rounds=4, conversations=4)
    pilot = time_replies(Timed(0.2, 0.1, 0.3), suite, settings, None, seconds=0.5)
    assert pilot.limit == 1 and pilot.per_token == pytest.approx(0.4, abs=0.01)


def test_a_refused_request_ends_the_pilot_with_its_own_error():
    class Refusing(ScriptedModel):
        async def generate(self, request):
            raise ModelError("The server refused the key.")

    suite, settings = load_suite("starter"), Settings(rounds=4, conversations=4)
    with pytest.raises(ModelError, match="refused the key"):
        time_replies(Refusing(), suite, settings, None, seconds=5)


class Filtered(ScriptedModel):
    """A model behind a content filter, which withholds some of the replies."""

    def __init__(self, withheld):
        self.withheld = withheld
        self.replies = 0

    async def generate(self, request):
        await asyncio.sleep(0)
        self.replies += 1
        if self.withheld(self.replies):
            raise RequestFailed("A content filter withheld the reply.", "filter")
        return Reply("Well", None, "stop")


def test_one_withheld_reply_does_not_end_the_pilot():
    suite, settings = load_suite("starter"), Settings(rounds=4, conversations=4)
    model = Filtered(lambda number: number % 4 == 1)
    assert time_replies(model, suite, settings, None, seconds=5).replies == 3
    with pytest.raises(RequestFailed, match="withheld the reply"):
        time_replies(Filtered(lambda number: True), suite, settings, None, seconds=5)


# The plan


def test_a_clock_that_measured_no_time_plans_all_conversations():
    assert pilot_of(0.0).first_group(RunPlan(4, 400, 2), 120, 40) == 40


def test_a_bot_of_more_rules_gets_fewer_conversations():
    one_rule, five_rules = (pilot_of(1.0, per_round=1 + rules) for rules in (1, 5))
    assert five_rules.seconds_of(8, 400) == pytest.approx(3 * one_rule.seconds_of(8, 400))
    plan = RunPlan(8, 400, 8)
    assert five_rules.first_group(plan, 120, 40) < one_rule.first_group(plan, 120, 40)


def test_a_slow_model_gets_shorter_conversations_and_few_of_them():
    fast, slow = pilot_of(0.1), pilot_of(400)
    assert fast.plan(120, 400) == RunPlan(8, 400, 8)
    assert slow.plan(120, 400) == RunPlan(2, 60, 1)
    assert fast.first_group(fast.plan(120, 400), 120, left=40) == 40
    assert slow.first_group(slow.plan(120, 400), 120, left=40) == 1
    # four of 4 rounds take 118 seconds, or 142
    assert pilot_of(6.4).plan(120, 400) == RunPlan(4, 200, 4)
    assert pilot_of(7.7).plan(120, 400) == RunPlan(4, 200, MIN_CONVERSATIONS)
    # a conversation that repeats itself writes to the limit, so half of it is expected of all
    assert pilot_of(6.4).tokens_of(400) == 200 and pilot_of(6.4).tokens_of(100) == 64


def test_replies_that_are_cut_become_shorter_before_conversations_do():
    pilot = pilot_of(10, cut=1.0)
    assert pilot.seconds_of(4, 400) == pytest.approx(pilot.seconds_of(4, 64) * 400 / 2 / 64)
    assert pilot.plan(120, 400) == RunPlan(4, 200, MIN_CONVERSATIONS)
    assert pilot.plan(120, 400, may_shorten=False) == RunPlan(2, 400, MIN_CONVERSATIONS)
    assert pilot_of(2, cut=1.0).plan(120, 400) == RunPlan(4, 200, SUFFICIENT_CONVERSATIONS)


@pytest.mark.parametrize("seconds", [0.01, 0.1, 1, 10, 30])
@pytest.mark.parametrize("cut", [0.0, 0.5, 1.0])
def test_a_plan_fits_the_time_unless_it_is_the_smallest(seconds, cut):
    pilot = pilot_of(seconds, cut)
    plan = pilot.plan(120, 400)
    expected = plan.conversations * pilot.seconds_of(plan.rounds, plan.max_new_tokens)
    assert expected <= 120 or plan == RunPlan(2, 60, 1)


def test_a_short_time_is_answered_with_a_longer_one_also_if_loading_used_it_up(capsys):
    plan = RunPlan(4, 200, 4)
    timed_run.note_plan(plan, pilot_of(6.4), 4, 118, minutes=2)
    assert (
        "only replies of at most 200 tokens; for replies of up to 400 tokens, give --minutes 10 "
        in capsys.readouterr().err
    )
    timed_run.note_plan(plan, pilot_of(0.1), 4, 10, minutes=2)  # fast, but loaded late
    assert "give --minutes 3 " in capsys.readouterr().err
    timed_run.note_plan(RunPlan(2, 60, 1), pilot_of(400), 1, 118, minutes=2)
    assert (
        "only 2 rounds and replies of at most 60 tokens; for 4 rounds and replies of up to 400"
        in capsys.readouterr().err
    )
