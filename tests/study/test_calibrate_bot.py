"""`holdfast calibrate` on a bot: one prompt and personas, and sizes that allow a verdict."""

import dataclasses
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from calibrations import sampled, synthetic
from command_lines import changed
from shop import run_with_baseline
from short_drift import SUITE
from small_calibration import SMALL, calibrate_tiny

from holdfast import cli, drift
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.calibration_size import sizes_needed, times_needed
from holdfast.analysis.choosing import pick
from holdfast.drift.cases import Persona
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import AnotherRun, ParameterOutOfRange, UsageError
from holdfast.records import read_run
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_sentences import answer, next_step
from holdfast.report.calibration_table import detail_lines, unprompted_lines
from holdfast.study.calibration_plan import (
    CalibrationPlan,
    choose_prompts,
    conversations_per_steering,
    default_draws,
    why_too_small,
)

ALONE = dataclasses.replace(SUITE, cases=SUITE.cases[:1])
PERSONAS = (Persona("angry", "You are angry."), Persona("hasty", "You are in a hurry."))
BOT = dataclasses.replace(ALONE, personas=PERSONAS)
POINTS = ("boost:factor=2", "repetition:probability=0.5")
FILE = """starters: [Hello there.]
personas: [You are Max., You are Ada.]
cases:
  - id: seaview
    system_prompt: Sign every reply with Seaview.
    probe: May I bring my dog?
    measure: {name: ends_with, word: Seaview}
    follows: ["Yes. Seaview"]
    breaks: ["Yes."]
"""


@pytest.mark.slow
def test_one_prompt_talks_to_every_persona(tmp_path):
    plan = dataclasses.replace(SMALL, draws=4)
    stability, _ = calibrate_tiny(tmp_path, sweeps=POINTS, suite=choose_prompts(BOT), plan=plan)
    assert stability.manifest.identity.to_json()["settings"]["user_prompt"] == "persona"
    calibration = read_calibration(tmp_path)
    assert [candidate.method for candidate in calibration.candidates] == ["none", *POINTS]
    report = calibration.report
    plain = [record for record in stability.records if record.method == "none"]
    met = Counter((r.user.id, bool(report[r.conversation])) for r in plain)
    assert set(met.values()) == {2} and len(met) == 4, "both personas in both halves"
    numbers = re.findall(r"\d+", detail_lines(calibration)[-1])
    assert numbers == ["14", "1", "2", "8"]
    assert calibration.questions == 14
    files = write_calibration_figures(calibration, 1.0, tmp_path)
    assert "boost, factor" in files[0].read_text()
    assert answer(calibration, pick(calibration, 2))


@pytest.mark.slow
def test_one_prompt_without_personas_talks_to_a_user_model_without_a_prompt(tmp_path):
    plan = dataclasses.replace(SMALL, draws=4)
    suite = choose_prompts(SUITE, ["case-rain"])
    stability, _ = calibrate_tiny(tmp_path, sweeps=POINTS[:1], suite=suite, plan=plan)
    assert {record.user.id for record in stability.records} == {None}
    assert read_calibration(tmp_path).report.tolist() == [False, True] * 2
    with pytest.raises(UsageError) as excinfo:
        conversations_per_steering(ALONE, CalibrationPlan(draws=1))
    assert (excinfo.value.option, excinfo.value.value) == ("draws", 1)


def test_cases_with_personas_have_each_pair_in_both_halves(tmp_path):
    two = dataclasses.replace(BOT, cases=SUITE.cases[:2])
    plan = dataclasses.replace(SMALL, draws=4)
    stability, _ = calibrate_tiny(tmp_path, sweeps=POINTS[:1], suite=two, plan=plan)
    report, met = read_calibration(tmp_path).report, Counter()
    for record in stability.records:
        if record.method == "none":
            half = bool(report[record.conversation])
            met[record.agent.id, record.user.id, half] += 1
    assert len(met) == 8 and set(met.values()) == {1}


def test_the_usual_size_is_large_enough_for_a_verdict(tmp_path):
    starter = choose_prompts(drift.load_suite("starter"))
    assert default_draws(starter, tmp_path) == CalibrationPlan().draws == 5
    for suite, draws in ((BOT, 30), (ALONE, 60), (SUITE, 10)):
        assert default_draws(suite, tmp_path) == draws
        assert not why_too_small(suite, 200, 200, CalibrationPlan(draws=draws))
    message = why_too_small(BOT, 30, 30, CalibrationPlan(draws=5))
    assert re.findall(r"\d+ \w+ \(use --\w+ \d+\)", message) == [
        "10 conversations (use --draws 20)",
        "30 questions (use --questions 40)",
    ]
    assert not why_too_small(BOT, 40, 40, CalibrationPlan(draws=20))
    message = why_too_small(BOT, 5, 40, CalibrationPlan(draws=20))
    assert "--capability" in message and "--questions" not in message
    calibrate_tiny(tmp_path, sweeps=POINTS[:1], suite=BOT, plan=dataclasses.replace(SMALL, draws=3))
    assert default_draws(BOT, tmp_path) == 3, "as in the folder"


@pytest.mark.parametrize(("count", "rounds"), [(4, 1), pytest.param(9, 2, marks=pytest.mark.slow)])
def test_pairs_can_be_drawn_at_random_from_the_whole_suite(tmp_path, count, rounds):
    plan = dataclasses.replace(SMALL, conversations=count, rounds=rounds, ask_at=rounds)
    suite = choose_prompts(SUITE, plan=plan)
    assert suite.cases == SUITE.cases, "all categories"
    stability, _ = calibrate_tiny(tmp_path, sweeps=POINTS[:1], suite=suite, plan=plan)
    settings = drift.Settings(conversations=count, seed=plan.seed)
    pairings = [draw_pairing(SUITE, settings, number) for number in range(count)]
    for record in stability.records:
        pairing = pairings[record.conversation]
        assert (record.agent.id, record.user.id) == (pairing.agent.id, pairing.user.id)
    calibration = read_calibration(tmp_path)
    assert len(calibration.none.stability) == count
    assert count // 2 <= calibration.report.sum() <= (count + 1) // 2
    choice = pick(calibration, 2)
    assert not choice.recommended
    assert sizes_needed(calibration, choice).option == "conversations"


def test_a_number_of_conversations_that_does_not_suit_is_named(capsys):
    plan = dataclasses.replace(SMALL, conversations=9)
    assert "(use --conversations 40)" in why_too_small(SUITE, 200, 200, plan)
    with pytest.raises(ParameterOutOfRange) as excinfo:
        CalibrationPlan(conversations=3)
    assert (excinfo.value.option, excinfo.value.value) == ("conversations", 3)
    assert cli.main(["calibrate", "--draws", "2", "--conversations", "9"]) == 2
    message = capsys.readouterr().err
    assert "--draws 2" in message and "--conversations 9" in message


def test_the_folder_of_another_run_is_left_untouched(tmp_path):
    from tiny import model

    settings = drift.Settings(rounds=1, conversations=2, sampling=SMALL.sampling)
    drift.run(model(), BOT, tmp_path / "drift", settings)
    before = everything(tmp_path)
    with pytest.raises(AnotherRun, match="`holdfast drift`"):
        calibrate_tiny(tmp_path / "drift", suite=BOT)
    assert everything(tmp_path) == before
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "summary.json").write_text('{"command": "trace"}')
    with pytest.raises(AnotherRun, match="`holdfast trace`"):
        calibrate_tiny(tmp_path / "trace", suite=BOT)


def test_invalid_input_is_refused_before_the_model_is_loaded(tmp_path, capsys, monkeypatch):
    (tmp_path / "hotel.yaml").write_text(FILE)
    short = ["--rounds", "1", "--max-new-tokens", "40", "--conversations", "2"]
    (tmp_path / "other").mkdir()
    command = ["drift", "--suite", str(tmp_path / "hotel.yaml"), *short]
    assert cli.main([*command, "--out", str(tmp_path / "other")]) == 0
    capsys.readouterr()

    def load(arguments):
        raise AssertionError("the model is not to be loaded")

    monkeypatch.setattr("holdfast.cli.fix.calibrate.load_model", load)
    calibrated = ["calibrate", "--suite", str(tmp_path / "hotel.yaml")]
    before = everything(tmp_path)
    for options, message in (
        (["--out", str(tmp_path / "other")], "`holdfast drift`"),
        (["--out", str(tmp_path / "other"), "--dry-run"], "`holdfast drift`"),
        (["--sweep", "boost:factor=2,3", "--sweep", "boost:factor=3"], "'boost:factor=3'"),
        (["--sweep", "boost:factor=0.5"], "not 0.5"),
        (["--draws", "1"], "2 conversations"),
    ):
        assert cli.main(changed([*calibrated, "--out", str(tmp_path / "new")], *options)) == 2
        assert message in capsys.readouterr().err
    assert everything(tmp_path) == before


def test_the_closest_setting_is_named_if_none_is_chosen():
    """The choice is made on one half, although the table shows both."""
    halves = synthetic({"none": ([0.5, 0.5], [60, 60]), "weak": ([0.6, 0.6], [57, 59.8])}, 80)
    noise = np.tile([8.0, -8.0, -8.0, 8.0], 20)
    weak = halves.candidates[1]
    weak = dataclasses.replace(weak, capability=weak.capability + noise)
    calibration = dataclasses.replace(halves, candidates=(halves.none, weak), questions=1600)
    choice = pick(calibration, 2)
    line = answer(calibration, choice)
    assert choice.none_fits and choice.near.method == "weak"
    chosen_on, on_all = re.findall(r"(\+0.10 \[.*?\]), points lost (\+\d\.\d)", line)
    assert chosen_on == ("+0.10 [+0.00, +0.18]", "+3.0")
    assert on_all == ("+0.10 [+0.05, +0.14]", "+1.6")
    drop = calibration.drop(choice.near)
    times = 2 * ((drop.high - drop.low) / 2 / 0.4) ** 2
    assert times_needed(calibration, choice) == pytest.approx((1, times))
    assert sizes_needed(calibration, choice) == ("draws", 1, math.ceil(times * 1600), 80)
    dear = sampled(0.2, 9, 5)
    assert sizes_needed(dear, pick(dear, 2)) is None
    assert "--budget (11 " in next_step(dear, pick(dear, 2))
    worse = synthetic({"none": ([0.5, 0.5], [60, 60]), "weak": ([0.4, 0.4], [60, 60])}, 80)
    assert "--sweep" in next_step(worse, pick(worse, 3))


def test_uninformative_prompts_are_named(tmp_path):
    first, uninformative, advice = unprompted_lines(read_run(run_with_baseline(tmp_path / "shop")))
    assert re.search(r"score 0\.\d\d", first) and "--out" in advice
    assert uninformative.startswith("Uninformative") and "no-discount (1.00 " in uninformative
    (few,) = unprompted_lines(read_run(run_with_baseline(tmp_path / "few", 4)))
    assert "too few" in few


@pytest.mark.slow
def test_a_planned_calibration_goes_on_and_asks_its_baseline_once(tmp_path, capsys):
    (tmp_path / "hotel.yaml").write_text(FILE)
    folder = tmp_path / "run"
    command = ["calibrate", "--suite", str(tmp_path / "hotel.yaml"), "--sweep", "boost:factor=2"]
    command += ["--draws", "5", "--rounds", "1", "--ask-at", "1", "--max-new-tokens", "40"]
    command += ["--questions", "4", "--out", str(folder)]
    assert cli.main([*command, "--baseline", "--dry-run"]) == 0
    planned = "conversations asked without a prompt 10 10 10".split()
    assert planned in [line.split() for line in capsys.readouterr().out.splitlines()]
    assert cli.main(command) == 0, "after a smaller dry run"
    plain = capsys.readouterr().out
    records = (folder / "stability" / "records.jsonl").read_bytes()
    baseline = "Without a system prompt"
    assert baseline not in plain and 'id="baseline"' not in page_in(folder)
    assert cli.main([*command, "--baseline"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (line,) = [line for line in lines if line.startswith(baseline)]
    assert [output_line for output_line in lines if output_line != line] == plain.splitlines()
    assert "too few" in line and baseline in page_in(folder)
    assert (folder / "stability" / "records.jsonl").read_bytes() == records
    assert cli.main(command) == 0
    assert baseline in capsys.readouterr().out and baseline in page_in(folder)


def test_a_calibration_whose_replies_are_all_cut_is_refused(tmp_path, capsys):
    (tmp_path / "hotel.yaml").write_text(FILE)
    command = ["calibrate", "--suite", str(tmp_path / "hotel.yaml"), "--sweep", "boost:factor=2"]
    command += ["--draws", "5", "--rounds", "1", "--ask-at", "1", "--max-new-tokens", "3"]
    command += ["--questions", "4", "--out", str(tmp_path / "run")]
    assert cli.main(command) == 1
    assert "the method none can be" in capsys.readouterr().err


def page_in(folder: Path) -> str:
    return (folder / "report.html").read_text()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
