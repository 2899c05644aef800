"""Calibrations: sweeps, questions in dialogs, resuming, and what is refused."""

import dataclasses
import importlib.util
import itertools
import json

import numpy as np
import pytest
from calibrations import ITEMS, REPLIES
from short_drift import SUITE
from small_calibration import GREEDY, SMALL, calibrate_tiny, history_of
from synthetic_run import as_json
from tiny import model

from holdfast import drift, methods
from holdfast.analysis.calibration_reading import half_of, read_calibration
from holdfast.analysis.choosing import calibrated_settings, pick, write_method_file
from holdfast.drift.cases import CATEGORIES
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import ParameterOutOfRange, RecordsError, UnknownName, UsageError
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_table import table
from holdfast.study.calibration_plan import CalibrationPlan, choose_prompts
from holdfast.study.capability import load_capability


@pytest.fixture(scope="module")
def sweep_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("calibrate") / "run"
    return out, *calibrate_tiny(out)


# The dialogs of a sweep


def test_pairs_are_drawn_in_rotation():
    settings = drift.Settings(pairs="all", conversations=14)
    pairings = [draw_pairing(SUITE, settings, number) for number in range(14)]
    pairs = [(pairing.agent.id, pairing.user.id) for pairing in pairings]
    ids = [case.id for case in SUITE.cases]
    assert pairs[:6] == pairs[6:12] == list(itertools.permutations(ids, 2))
    assert pairs[12:] == pairs[:2]
    alike = drift.Settings(conversations=14)
    starters = [draw_pairing(SUITE, alike, number).starter for number in range(14)]
    assert [pairing.starter for pairing in pairings] == starters and len(set(starters)) == 2
    for number, pairs in itertools.product(range(40), (1, 2, 3, 4, 20)):  # each pair in both halves
        assert half_of(number, pairs) != half_of(number + pairs, pairs)
    assert sum(half_of(number, 20) for number in range(20)) == 10


def test_one_prompt_per_category_or_those_named():
    starter = drift.load_suite("starter")
    by_category = choose_prompts(starter)
    assert sorted(case.category for case in by_category.cases) == sorted(CATEGORIES)
    assert by_category == choose_prompts(starter)
    by_id = choose_prompts(SUITE, ["case-rain", "case-bread"])
    assert [case.id for case in by_id.cases] == ["case-rain", "case-bread"]
    with pytest.raises(UnknownName, match=r"'case-ran'.*'case-rain'"):
        choose_prompts(SUITE, ["case-ran", "case-bread"])
    with pytest.raises(UsageError) as excinfo:
        choose_prompts(SUITE)
    assert (excinfo.value.option, excinfo.value.value) == ("prompts", 1)


def without_seconds(records):
    untimed = ({name: value for name, value in row.items() if name != "seconds"} for row in records)
    return sorted(json.dumps(record, sort_keys=True) for record in untimed)


def test_questions_are_asked_in_the_dialogs_of_the_same_method(sweep_run):
    _, stability, questions = sweep_run
    names = ["none", *(f"split-softmax:exponent={value}" for value in (0.7, 0.3))]
    names += ["repetition:probability=0.5", "repetition:probability=1"]
    assert stability.manifest.identity.to_json()["methods"] == names
    assert stability.manifest.identity.to_json()["settings"]["pairs"] == "all"
    dialogs = {(r["method"], r["conversation"]): r for r in as_json(stability)}
    of_questions = {(r["method"], r["conversation"]) for r in as_json(questions)}
    assert of_questions == set(dialogs) == set(itertools.product(names, range(12)))
    tiny = model()
    for record in as_json(questions):
        dialog = dialogs[record["method"], record["conversation"]]
        numbers = [n for n in range(14) if n % 12 == record["conversation"]]
        assert [probe["probe"] for probe in record["probes"]] == numbers
        assert record["turns"] == [turn for turn in dialog["turns"] if turn["round"] < 2]
        assert record["tokens"]["forwarded"] > 0
        if record["conversation"] not in (0, 5):
            continue
        history = history_of(record, record["turns"])
        for probe in record["probes"]:
            if record["method"] == "repetition:probability=0.5":
                continue  # its draws depend on the conversation
            item = ITEMS.items[probe["probe"]]
            chat = [*history, {"role": "user", "content": item.question}]
            alone = tiny.score(chat, item.replies, methods.parse(record["method"]))
            assert probe["log_probabilities"] == pytest.approx(alone.log_probabilities, abs=1e-3)
            right = float(int(np.argmax(probe["log_probabilities"])) == item.answer)
            assert probe["likeliest"] == probe["score"] == right
            reply = tiny.generate(chat, methods.parse(record["method"]), GREEDY)
            assert probe["reply"] == reply.text


def test_items_of_one_dialog_share_its_history(sweep_run):
    _, _, questions = sweep_run
    plain = [r for r in as_json(questions) if r["method"] == "none"]
    tokens = {r["conversation"]: r["tokens"]["forwarded"] for r in plain}
    assert tokens[0] < 2 * tokens[2], "two questions cost less than twice one"


@pytest.mark.slow
def test_the_last_reply_is_scored_without_a_method(sweep_run):
    out, _, questions = sweep_run
    last_replies = [record for record in as_json(questions) if "last_reply" in record]
    assert {record["method"] for record in last_replies} == set(
        questions.manifest.identity.to_json()["methods"]
    )
    for record in last_replies[::5]:
        *before, last = record["turns"]
        alone = model().score(history_of(record, before), [last["text"]])
        last_reply = record["last_reply"]
        assert last_reply["tokens"] == alone.tokens[0]
        assert last_reply["log_probability"] == pytest.approx(alone.log_probabilities[0], abs=1e-4)
    calibration = read_calibration(out)
    assert all(candidate.perplexity > 1 for candidate in calibrated_settings(calibration))


# Results and resuming


@pytest.mark.slow
def test_an_interrupted_sweep_resumes(sweep_run, tmp_path):
    _, stability, questions = sweep_run
    calibrate_tiny(tmp_path / "run")
    for name in ("stability", "capability"):
        path = tmp_path / "run" / name / "records.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:-7]) + lines[-7][:50])
    with pytest.raises(RecordsError, match=r"not finished.*repeat"):
        read_calibration(tmp_path / "run")
    resumed = calibrate_tiny(tmp_path / "run")
    assert without_seconds(as_json(resumed[0])) == without_seconds(as_json(stability))
    assert without_seconds(as_json(resumed[1])) == without_seconds(as_json(questions))
    with pytest.raises(RecordsError, match=r"holds another run"):
        calibrate_tiny(tmp_path / "run", plan=dataclasses.replace(SMALL, seed=1))


def test_a_calibration_writes_findings_figures_and_a_method_file(sweep_run, tmp_path):
    out, stability, questions = sweep_run
    calibration = read_calibration(out)
    assert [
        candidate.method for candidate in calibration.candidates
    ] == stability.manifest.identity.to_json()["methods"]
    by_hand = {}
    for record in as_json(questions):
        score = np.mean([probe["score"] for probe in record["probes"]])
        by_hand.setdefault(record["method"], []).append(100 * score)
    for candidate in calibration.candidates:
        mean = np.mean(by_hand[candidate.method])
        assert np.nanmean(candidate.capability) == pytest.approx(mean)
        assert calibration.drop(candidate).mean == pytest.approx(np.mean(by_hand["none"]) - mean)
    assert calibration.report.sum() == 6 and calibration.chance == pytest.approx(100 / len(REPLIES))
    choice = pick(calibration, 100)
    write_method_file(calibration, choice, tmp_path / "method.json")
    assert methods.spec_of(methods.parse(str(tmp_path / "method.json"))) == choice.method
    method_file = json.loads((tmp_path / "method.json").read_text())
    assert method_file["model_fingerprint"] == model().fingerprint
    assert "split-softmax:exponent=0.3" in table(calibration)
    files = write_calibration_figures(calibration, 1.0, tmp_path)
    kinds = itertools.product(("trade_off", "by_round"), ("svg", "png"))
    assert [path.name for path in files] == [f"{name}.{kind}" for name, kind in kinds]
    svg = files[0].read_text()
    assert "split-softmax, exponent" in svg and "Pareto front" in svg and "0.3" in svg


@pytest.mark.slow
def test_a_calibration_accepts_more_sweeps_and_refuses_more_draws(sweep_run, tmp_path):
    narrow = calibrate_tiny(tmp_path / "run", sweeps=("split-softmax:exponent=0.7,0.3",))
    assert len(narrow[0].manifest.identity.to_json()["methods"]) == 3
    with pytest.raises(RecordsError, match=r"draws is 2 .* 3 "):
        calibrate_tiny(tmp_path / "run", plan=dataclasses.replace(SMALL, draws=3))
    wide = calibrate_tiny(tmp_path / "run")
    assert without_seconds(as_json(wide[0])) == without_seconds(as_json(sweep_run[1]))
    assert without_seconds(as_json(wide[1])) == without_seconds(as_json(sweep_run[2]))
    assert len(read_calibration(tmp_path / "run").candidates) == 5
    with pytest.raises(RecordsError, match="sweeps"):
        calibrate_tiny(tmp_path / "run", sweeps=("split-softmax:exponent=0.7,0.3",))


# Refusals


def test_invalid_calibrations_are_refused(tmp_path):
    for spec in ("knowlege", "mmlu:", "perplexity", "mmlu"):
        with pytest.raises(UnknownName, match=f"no capability '{spec}'"):
            load_capability(spec)
    if importlib.util.find_spec("lm_eval") is None:
        with pytest.raises(UsageError, match=r"lm-eval:arc_easy needs lm-evaluation-harness"):
            load_capability("lm-eval:arc_easy")
    with pytest.raises(ParameterOutOfRange, match=r"questions.*3"):
        load_capability("knowledge", 3)
    with pytest.raises(UsageError, match="boost:factor=3"):
        calibrate_tiny(tmp_path / "twice", sweeps=("boost:factor=2,3", "boost:factor=3,4"))
    with pytest.raises(UsageError) as excinfo:
        calibrate_tiny(
            tmp_path,
            suite=choose_prompts(SUITE, ["case-rain", "case-bread"]),
            plan=CalibrationPlan(draws=1),
        )
    assert (excinfo.value.option, excinfo.value.value) == ("draws", 2)
    with pytest.raises(ParameterOutOfRange) as excinfo:
        CalibrationPlan(rounds=2)
    assert (excinfo.value.option, excinfo.value.value) == ("ask_at", 4)
    assert excinfo.value.allowed == "up to 3"
    assert str(excinfo.value).endswith("give ask_at=3, or more rounds.")
    with pytest.raises(UsageError) as excinfo:
        CalibrationPlan(reading="guessed")
    assert (excinfo.value.option, excinfo.value.value) == ("reading", "guessed")
    assert list(tmp_path.iterdir()) == [tmp_path / "twice"] or not list(tmp_path.iterdir())
