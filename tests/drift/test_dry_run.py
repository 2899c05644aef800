"""`--dry-run`: exact counts, a first piece that is recorded, and the estimate made from it."""

import argparse
import contextlib
import dataclasses
import functools
import io
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from chat_server import Server, completion
from scripted_model import Scripted
from short_drift import SUITE
from synthetic_run import conversation_of

from holdfast import drift
from holdfast.cli import main
from holdfast.cli.shared import dry_run
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.dry_run import estimate_run
from holdfast.cli.shared.estimates import Measured, WorkItem, print_estimate
from holdfast.drift.remaining import count_replies
from holdfast.records import read_run
from holdfast.report.how_measured import about_runs


def options_of_run(**changes):
    plain = {"model": "default", "price_in": None, "price_out": None, "concurrency": 8}
    return argparse.Namespace(**{**plain, "requests_per_minute": None, **changes})


# The estimate


def records(count=4, **tokens):
    """Records of 4 conversations of 10 requests each, which took 20 seconds."""
    return [conversation_of(tokens=tokens or {"read": 2000, "written": 100})] * count


def measurement(pilot):
    """Whole conversations, of which four took 20 seconds."""
    count = len(pilot)
    return Measured([record.tokens for record in pilot], count, 10 * count, 10 * count, 5.0 * count)


WORK = [WorkItem("conversations", 100, 100, 1000), WorkItem("questions", 48, 48, 48)]


def estimate_output(arguments, parts, pilot, out):
    """The lines that are printed."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        print_estimate(arguments, parts, pilot, out)
    return output.getvalue()


def test_the_rest_is_extrapolated_from_the_first_piece(tmp_path):
    text = estimate_output(options_of_run(), WORK, measurement(records()), tmp_path)
    lines = text.splitlines()
    assert lines[0].split() == ["part", "at", "most", "left", "requests"]
    assert lines[1].split() == ["conversations", "100", "96", "1,000"]
    assert lines[2].split() == ["questions", "48", "48", "48"]
    assert "Measured on 4" in text and f"recorded in {tmp_path}." in text
    # 96 / 4 = 24 times the piece, and 48 questions at the mean of its 40 requests: 25.2 times
    assert "200,000 read" in text and "10,000 written" in text and "1,008 requests" in text
    assert "about 8 minutes" in text and "4 side by side" in text
    assert "Cost" not in text


def test_replies_that_may_be_drawn_again_are_among_the_requests_at_most(tmp_path):
    parts = [WorkItem("conversations", 100, 100, 1000, redraws=2000), WORK[1]]
    text = estimate_output(options_of_run(), parts, measurement(records()), tmp_path)
    assert text.splitlines()[1].split() == ["conversations", "100", "96", "3,000"]
    # the tokens and the time are those of the replies that were measured
    assert "200,000 read" in text and "about 8 minutes" in text
    assert f"{960 + 1920 + 48:,} requests" in text


def test_the_cost_and_pace_of_an_endpoint_are_estimated(tmp_path):
    prices = {"price_in": 0.5, "price_out": 2.0}
    paid = options_of_run(model="http://there/v1", requests_per_minute=60, **prices)
    text = estimate_output(paid, WORK[:1], measurement(records()), tmp_path)
    # 24 times 8,000 and 400 tokens: 192,000 * 0.5 and 9,600 * 2 millionths
    assert "about 0.1152" in text and "0.5 a million" in text and "2 a million" in text
    # 24 times 20 seconds, but with 8 running side by side instead of 4
    assert "about 4 minutes" in text and "8 conversations at a time" in text
    assert "16 minutes" in text and "60 requests" in text


def test_tokens_are_unknown_if_a_reply_came_without_a_count(tmp_path):
    uncounted = [*records(3), *records(1, forwarded=0)]
    text = estimate_output(options_of_run(price_in=1.0), WORK, measurement(uncounted), tmp_path)
    assert "Tokens left: unknown" in text
    assert "Cost" not in text and "about 8 minutes" in text


def test_a_cost_too_small_to_show_is_said_to_be_less(tmp_path):
    prices = options_of_run(price_in=1e-6, price_out=0.0)
    text = estimate_output(prices, WORK, measurement(records()), tmp_path)
    assert "Cost of these: less than 0.0001, at 1e-06 a million" in text


@pytest.mark.parametrize(
    ("ended", "sentence"),
    [
        (0, "in 3 conversations; none has finished."),
        (1, "in 3 conversations; the 1 that finished is recorded in o."),
        (2, "in 3 conversations; the 2 that finished are recorded in o."),
    ],
)
def test_the_estimate_says_how_much_of_a_cut_pilot_was_measured(ended, sentence):
    tokens = [record.tokens for record in records(ended)]
    text = estimate_output(options_of_run(), WORK, Measured(tokens, 3, 30, 20, 9.0), Path("o"))
    assert f"Measured on 20 of the 30 replies {sentence}" in text


def test_without_an_answered_reply_nothing_is_measured():
    text = estimate_output(options_of_run(), WORK, Measured([], 2, 32, 0, 0.0), Path("o"))
    assert text.splitlines()[-1] == "Nothing was measured: none of the 32 replies was answered."


# Counts


def test_replies_are_counted_before_they_are_requested():
    suite = drift.load_suite("core")
    settings = drift.Settings(rounds=8, conversations=3)
    # 15 generated turns, and 8 rounds with a stability and an adoption probe each
    assert count_replies(suite, settings, range(3)) == 3 * (15 + 16)


def test_a_page_says_how_many_of_the_allowed_conversations_were_run(tmp_path):
    settings = drift.Settings(rounds=1, conversations=4)
    run = drift.run(Scripted(), SUITE, tmp_path / "run", settings, batches=lambda: [[0, 1, 2]])
    rows = dict(about_runs([run], [""])[0].rows)
    assert rows["settings.conversations"].startswith("3 of the 4 ")
    whole = drift.run(Scripted(), SUITE, tmp_path / "run", settings)
    assert dict(about_runs([whole], [""])[0].rows)["settings.conversations"] == "4"


# The first piece

SIZES = ["--rounds", "2", "--max-new-tokens", "8", "--conversations", "10"]


@pytest.mark.slow
def test_a_dry_run_records_its_piece_and_the_run_continues_from_there(tmp_path, capsys):
    words = ["drift", *SIZES]
    out = tmp_path / "run"
    assert main([*words, "--out", str(out), "--dry-run", "--baseline"]) == 0
    output, progress = capsys.readouterr()
    assert "--dry-run: 3 of 10" in progress
    assert read_run(out).manifest.identity.to_json()["settings"]["conversations"] == 10
    assert output.splitlines()[1].split()[-3:] == ["10", "7", "70"]  # 10 x (3 turns + 4 probes)
    assert "conversations asked without a prompt" in output and "Time left: about" in output
    assert "Measured on 3" in output and f"recorded in {out}." in output
    piece = (out / "records.jsonl").read_bytes()
    assert piece.count(b"\n") == 3 and not (out / "report.html").exists()
    assert main([*words, "--out", str(out)]) == 0
    assert (out / "records.jsonl").read_bytes().startswith(piece)
    assert len(read_run(out).records) == 10
    assert "21 of 70 replies already done" in capsys.readouterr().err
    assert main([*words, "--out", str(out), "--dry-run"]) == 0
    assert "all of the first part is already recorded in" in capsys.readouterr().out
    assert len(read_run(out).records) == 10


def test_what_an_earlier_command_recorded_is_not_measured(tmp_path, capsys):
    settings = drift.Settings(rounds=2, conversations=12)
    for measured_now in (3, 3):
        plan = DriftRun(Scripted(), SUITE, tmp_path / "run", settings, [()], drift.Cast())
        estimate_run(options_of_run(), plan)
        assert f"Measured on {measured_now} of the conversations" in capsys.readouterr().out
    assert len(read_run(tmp_path / "run").records) == 6


def test_a_baseline_that_was_asked_is_not_estimated_again(tmp_path, capsys):
    settings = drift.Settings(rounds=2, conversations=10)
    drift.run(Scripted(), SUITE, tmp_path / "run", settings)
    drift.ask_baseline(Scripted(), SUITE, tmp_path / "run", settings)
    longer = dataclasses.replace(settings, conversations=20)
    plan = DriftRun(Scripted(), SUITE, tmp_path / "run", longer, [()], drift.Cast())
    estimate_run(options_of_run(), plan, baseline=True)
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "without a prompt" in line)
    assert row.split()[-3:-1] == ["20", "10"]


def test_a_dry_run_says_where_conversations_outgrow_the_context(tmp_path, capsys):
    settings = drift.Settings(rounds=5, conversations=8)
    plan = DriftRun(Scripted(context=4), SUITE, tmp_path / "run", settings, [()], drift.Cast())
    estimate_run(options_of_run(), plan)
    text = "2 of 2 conversations filled the model's context, the first in round 3 of 5; give fewer"
    assert text in capsys.readouterr().err


def test_a_dry_run_of_a_check_estimates_requests_tokens_and_cost(tmp_path, capsys):
    suite = tmp_path / "prompts.yaml"
    case = {"system_prompt": "Be brief.", "probe": "Why?", "measure": "one_sentence"}
    cases = [{"id": name, "category": "x", **case} for name in "ab"]
    suite.write_text(json.dumps({"cases": cases}))
    usage = {"prompt_tokens": 30, "completion_tokens": 5}
    with Server(lambda body, number: completion("Fine.", usage=usage)) as server:
        words = ["check", str(suite), "--model", server.url, "--endpoint-model", "x"]
        words += ["--rounds", "2", "--budget", "50", "--out", str(tmp_path / "run")]
        words += ["--user-turns", "none"]
        assert main([*words, "--dry-run", "--price-in", "1", "--price-out", "2"]) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[1].split()[-3:] == ["100", "98", "500"]
    assert "Measured on 2" in output
    # a conversation of 2 rounds has 3 turns and 2 probes; 98 of them are left
    assert "8 conversations at a time" in output
    assert "15,000 read" in output and "2,400 written" in output and "490 requests" in output
    assert "about 0.0196" in output and "1 a million" in output
    assert {record.agent.id for record in read_run(tmp_path / "run").records} == {"a", "b"}


# The time of the first piece


class SlowByClock(Scripted):
    """A model that needs 10 ms of its own clock for each reply."""

    now = 0.0

    def text(self, request):
        self.now += 0.01
        return super().text(request)


def test_a_dry_run_ends_in_time_and_estimates_from_the_rounds_that_ended(
    tmp_path, capsys, monkeypatch
):
    model = SlowByClock()
    monkeypatch.setattr(dry_run, "MIN_SECONDS", 1.0)
    monkeypatch.setattr(dry_run, "time", SimpleNamespace(monotonic=lambda: model.now))
    monkeypatch.setattr(dry_run, "_Pace", functools.partial(dry_run._Pace, began=0.0))
    settings = drift.Settings(rounds=8, conversations=40)
    plan = DriftRun(model, SUITE, tmp_path / "run", settings, [()], drift.Cast())
    estimate_run(options_of_run(), plan)
    output, notes = capsys.readouterr()
    stopped = re.search(r"--dry-run stops after 1 second, with (\d+) of 248 replies done", notes)
    assert stopped, notes
    assert 100 <= int(stopped[1]) <= 116  # no reply is asked for once there is one after a second
    assert re.search(r"Measured on \d+ of the 248 replies in 8 conversations;", output), output
    assert "Tokens left: unknown" in output
    # 40 conversations of 31 replies take 12.4 seconds and more, as the model has no batches
    seconds_left = int(re.search(r"Time left: about (\d+) seconds", output)[1])
    assert 12 <= seconds_left <= 16
    # the folder is that of the run, which starts from the beginning
    assert len(drift.run(Scripted(), SUITE, tmp_path / "run", settings).records) == 40


class Slow(Scripted):
    """A model that needs a while for each reply."""

    def text(self, request):
        time.sleep(0.01)
        return super().text(request)


def test_conversations_that_have_ended_are_kept_though_time_is_up(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dry_run, "MIN_SECONDS", 0.02)
    settings = drift.Settings(rounds=2, conversations=40)
    plan = DriftRun(Slow(), SUITE, tmp_path / "run", settings, [()], drift.Cast())
    estimate_run(options_of_run(), plan)
    assert len(read_run(tmp_path / "run").conversations) == 8
    assert "stops after" not in capsys.readouterr().err


def test_a_dry_run_says_why_it_does_not_end(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(dry_run, "MIN_SECONDS", 0.1)
    monkeypatch.setattr(dry_run, "LATE_SECONDS", 0.1)
    settings = drift.Settings(rounds=1, conversations=40)
    plan = DriftRun(Slow(), SUITE, tmp_path / "run", settings, [()], drift.Cast())
    estimate_run(options_of_run(), plan)
    assert "because 8 conversations have not ended" in capsys.readouterr().err
