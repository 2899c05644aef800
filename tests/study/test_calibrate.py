"""`holdfast calibrate`: sweeps, questions in dialogs, capabilities, resuming, refusals."""

import dataclasses
import gzip
import importlib.util
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from calibrations import ITEMS, REPLIES, sampled
from page_outline import read_page
from paths import ROOT
from scripted_model import Scripted
from short_drift import SUITE
from small_calibration import GREEDY, SMALL, SWEEPS, calibrate_tiny, history_of
from synthetic_run import as_json
from tiny import model

import holdfast
from holdfast import Sampling, SplitSoftmax, cli, drift, methods
from holdfast.analysis.calibration_reading import half_of, read_calibration
from holdfast.analysis.choosing import calibrated_settings, pick, write_method_file
from holdfast.drift.cases import CATEGORIES
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import (
    HoldfastError,
    ModelError,
    ParameterOutOfRange,
    RecordsError,
    UnknownName,
    UsageError,
)
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_table import table
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import DEFAULT_SWEEPS, CalibrationPlan, choose_prompts
from holdfast.study.capability import default_capability, load_capability
from holdfast.study.capability_items import Item

MMLU = ROOT.parent / "shared" / "data" / "mmlu"


@pytest.fixture(scope="module")
def sweep_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("calibrate") / "run"
    return out, *calibrate_tiny(out)


def without_seconds(records):
    untimed = ({name: value for name, value in row.items() if name != "seconds"} for row in records)
    return sorted(json.dumps(record, sort_keys=True) for record in untimed)


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
def test_a_budget_is_refused_before_the_sweep_if_the_model_guesses(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    command = ["calibrate", "--sweep", "boost:factor=2", "--questions", "24", "--draws", "12"]
    command += ["--rounds", "1", "--ask-at", "1", "--max-new-tokens", "4", "--out", str(out)]
    ids = [case.id for case in drift.load_suite("starter").cases[::60]][:2]
    command += ["--prompts", ",".join(ids)]
    real = read_calibration
    monkeypatch.setattr(
        "holdfast.cli.fix.calibrate.read_calibration",
        lambda folder: dataclasses.replace(real(folder), chance=99.0),
    )
    assert cli.main([*command, "--budget", "5"]) == 1
    refusal = capsys.readouterr().err
    assert "at chance" in refusal and "--budget 5" in refusal
    methods_run = [row["method"] for row in as_json(holdfast.records.read_run(out / "capability"))]
    assert set(methods_run) == {"none"}
    assert cli.main(command) == 0, "goes on without --budget"
    output = capsys.readouterr()
    assert "at chance" in output.err + output.out and "boost:factor=2" in output.out
    assert "--capability" in output.out.splitlines()[-1]


def test_facts_knowledge_and_perplexity_measure_capability(tmp_path):
    facts = load_capability("facts").items
    assert len(facts) == 395 and all(len(set(item.replies)) == 4 for item in facts)
    answers = {item.question: item.replies[item.answer] for item in facts}
    assert answers["What is the capital of Canada?"] == "The capital of Canada is Ottawa."
    assert default_capability("smollm2", "likeliest") == "facts"
    assert default_capability("default", "likeliest") == default_capability("m", "written")
    knowledge = load_capability("knowledge", 300)
    assert len(knowledge.items) == 300 and {len(item.replies) for item in knowledge.items} == {4}
    for item in knowledge.items:
        for letter, reply in zip("ABCD", item.replies, strict=True):
            assert f"{letter}) {reply[:-4]}" in item.question
    some = load_capability("knowledge", 10, seed=3)
    assert some == load_capability("knowledge", 10, seed=3)
    assert some.fingerprint != load_capability("knowledge", 10, seed=4).fingerprint
    words = "the garden is green and the river runs slowly past the old town "
    (tmp_path / "text.txt").write_text(words * 40)
    text = load_capability(f"perplexity:{tmp_path}/text.txt")
    assert text.is_text and len(text.items) == 8 and len(text.items[0].replies[0].split()) == 64
    plan = CalibrationPlan(draws=1, rounds=1, ask_at=2, sampling=Sampling(max_new_tokens=8))
    _, questions = calibrate_tiny(tmp_path / "run", text, ("boost:factor=2,9",), plan)
    plain = [record for record in as_json(questions) if record["method"] == "none"]
    probes = [probe for record in plain for probe in record["probes"]]
    assert sorted(probe["probe"] for probe in probes) == list(range(8))
    for probe in probes:
        assert probe["score"] == probe["log_probabilities"][0] / probe["tokens"] < 0
        assert not probe["reply"]
    calibration = read_calibration(tmp_path / "run")
    assert "nat" in table(calibration) and np.nanmean(calibration.candidates[0].capability) < 0


def test_mmlu_is_read_and_malformed_rows_are_named(tmp_path):
    good = {"subject": "s", "question": "q?", "choices": ["w", "x", "y", "z"], "answer": "2"}
    lines = [json.dumps({**good, "question": f"q{n}?"}) for n in range(6)]
    (tmp_path / "test.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    items = load_capability(f"mmlu:{tmp_path}", 5).items
    assert len(items) == 5 and items[0].answer == 2 and items[0].replies == tuple("ABCD")
    assert "A) w\nB) x\nC) y\nD) z\nAnswer with the letter alone." in items[0].question
    bad = tmp_path / "bad.jsonl"
    for change, option, value in (
        ({"answer": "4"}, "answer", "4"),
        ({"choices": ["w", "x"]}, "choices", ["w", "x"]),
        ({"question": None}, "question", None),
        ({"answer": True}, "answer", True),
        (None, "answer", None),
    ):
        row = {"subject": "s", "question": "q", "choices": []} if not change else {**good, **change}
        bad.write_text("\n".join([lines[0], json.dumps(row)]))
        with pytest.raises(UsageError, match=r"Row 2 of .*bad.jsonl") as excinfo:
            load_capability(f"mmlu:{bad}")
        assert (excinfo.value.option, excinfo.value.value) == (option, value)
    bad.write_text("{")
    with pytest.raises(UsageError, match=r"Line 1 .*bad.jsonl"):
        load_capability(f"mmlu:{bad}")
    with pytest.raises(UsageError) as excinfo:
        load_capability("mmlu:no-such/folder")
    assert excinfo.value.value == str(Path("no-such/folder"))


@pytest.mark.skipif(not MMLU.is_dir(), reason="../shared/data/mmlu is absent")
def test_the_whole_of_mmlu_is_read():
    mmlu = load_capability(f"mmlu:{MMLU}", 20_000)
    assert len(mmlu.items) == 14_042 and {item.answer for item in mmlu.items} == {0, 1, 2, 3}


HARNESS_TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
output_type: {kind}
test_split: test
doc_to_text: "Which is number {{{{number}}}}?"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list: [{{metric: {metric}}}]
"""


def test_tasks_of_the_harness_are_asked(tmp_path):
    """Run by `make integrations`, which installs the harness."""
    pytest.importorskip("lm_eval")
    data, row = tmp_path / "towns.jsonl", {"choices": ["rain", " bread", "town"]}
    data.write_text("\n".join(json.dumps({**row, "number": n, "answer": n % 3}) for n in range(6)))
    kinds = ("towns", "multiple_choice", "acc"), ("writing", "generate_until", "exact_match")
    for name, kind, metric in kinds:
        task = HARNESS_TASK.format(name=name, data=data, kind=kind, metric=metric)
        (tmp_path / f"{name}.yaml").write_text(task)
    capability = load_capability(f"lm-eval:{tmp_path / 'towns.yaml'}")
    assert not capability.lettered and len(capability.items) == 6
    assert Item("Which is number 4?", ("rain", "bread", "town"), 1) in capability.items
    with pytest.raises(UsageError) as raised:
        load_capability(f"lm-eval:{tmp_path / 'writing.yaml'}")
    assert (raised.value.option, raised.value.value) == ("writing", "generate_until")
    with pytest.raises(HoldfastError) as failed:
        load_capability("lm-eval:no_such_task")
    assert failed.value.value == "no_such_task"
    _, questions = calibrate_tiny(tmp_path / "run", capability)
    assert len(questions.records) == 5 * 6
    for probe in (probe for record in as_json(questions) for probe in record["probes"]):
        assert probe["likeliest"] in (0.0, 1.0)


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


def test_an_endpoint_is_scored_by_what_it_writes(tmp_path):
    repeated = dataclasses.replace(SMALL, sweeps=SWEEPS[1:])
    with pytest.raises(ModelError, match=r"scripted .*reading='written'") as excinfo:
        calibrate(Endpoint(), SUITE, ITEMS, tmp_path / "a", repeated)
    assert (excinfo.value.option, excinfo.value.value) == ("reading", "likeliest")
    with pytest.raises(UsageError) as excinfo:
        calibrate(
            Endpoint(),
            SUITE,
            load_capability("facts"),
            tmp_path,
            CalibrationPlan(reading="written"),
        )
    assert (excinfo.value.option, excinfo.value.value) == ("reading", "written")
    remote = holdfast.connect("http://localhost:1/v1", "m")
    with pytest.raises(ModelError, match=r"split-softmax:exponent=0.9 needs attention"):
        calibrate(remote, SUITE, ITEMS, tmp_path / "b", CalibrationPlan(reading="written"))
    plan = CalibrationPlan(draws=1, rounds=1, ask_at=2, reading="written", sweeps=SWEEPS[1:])
    _, questions = calibrate(Endpoint(), SUITE, ITEMS, tmp_path / "c", plan)
    probes = [probe for record in as_json(questions) for probe in record["probes"]]
    assert len(probes) == 3 * 14
    for probe in probes:  # it always says B
        assert probe["log_probabilities"] is None and probe["likeliest"] is None
        assert probe["score"] == float(probe["answer"] == 1)


class Endpoint(Scripted):
    """Answers B to every question."""

    def text(self, request):
        return "bread (B)"


def test_a_missing_method_file_is_explained(tmp_path):
    with pytest.raises(UsageError, match=r"method\.json"):
        methods.parse(str(tmp_path / "method.json"))
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(UsageError, match="recommended nothing"):
        methods.parse(str(tmp_path / "method.json"))


def test_a_sweep_is_the_settings_of_one_parameter():
    heads_and_repetition = "heads=0.1/1.0+repetition:probability=0.5"
    sweep = methods.parse_sweep(f"split-softmax:exponent=0.9,0.5,{heads_and_repetition}")
    assert sweep.name == f"split-softmax:{heads_and_repetition}"
    assert (sweep.parameter, sweep.values) == ("exponent", ("0.9", "0.5"))
    second = f"split-softmax:exponent=0.5,{heads_and_repetition}"
    assert sweep.steerings[1] == methods.parse(second)
    assert all(len(methods.parse_sweep(spec).steerings) >= 3 for spec in DEFAULT_SWEEPS)


def test_a_single_setting_is_a_sweep_of_its_first_parameter():
    point = methods.parse_sweep("repetition:probability=0.5+boost:factor=4")
    assert point.name == "repetition+boost:factor=4"
    assert (point.parameter, point.values) == ("probability", ("0.5",))
    assert point.steerings == (methods.parse("repetition:probability=0.5+boost:factor=4"),)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("boost:factor=2,2.0", "same value twice"),
        ("boost:2,3", "PARAMETER=VALUE,VALUE, not '2'"),
        ("boost:factor=2,0.5", "factor from 1 upwards, not 0.5"),
        ("boost:factr=2,3", "'factr'.*'factor'"),
        ("none+boost:factor=2,3", "'none' cannot be combined"),
        ("boost:factor=2,3+", "empty method"),
        ("boost:factor=2,3+spotlight:target=0.1,0.2", "several values to factor and target"),
    ],
)
def test_a_sweep_that_is_none_is_refused(spec, message):
    with pytest.raises(UsageError, match=message):
        methods.parse_sweep(spec)


def test_a_method_file_stands_for_its_method(tmp_path):
    path = tmp_path / "fix.json"
    path.write_text('{"method": "split-softmax:exponent=0.5", "model_fingerprint": "x"}')
    assert methods.parse(str(path)) == (SplitSoftmax(0.5),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "None for its method"),
        ("{", "not JSON"),
        ('{"method": "other.json"}', "'other.json' for its method"),
    ],
)
def test_a_damaged_method_file_is_refused(tmp_path, text, message):
    path = tmp_path / "fix.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        methods.parse(str(path))


SETTINGS_SWEPT = ["split-softmax:exponent=0.8", "split-softmax:exponent=0.5"]


@pytest.fixture(scope="module")
def too_small(tmp_path_factory):
    """The folder of a calibration with too few conversations, and its command without a budget."""
    out = tmp_path_factory.mktemp("small") / "run"
    ids = [case.id for case in drift.load_suite("starter").cases[::60]][:3]
    command = "calibrate --sweep split-softmax:exponent=0.8,0.5 --questions 8 --draws 1".split()
    command += "--rounds 1 --ask-at 2 --max-new-tokens 12".split()
    command += ["--prompts", ",".join(ids), "--out", str(out)]
    assert cli.main(command) == 0
    return out, command


BUDGET = ["--budget", "100"]


@pytest.mark.slow
def test_a_calibration_that_is_too_small_says_how_large_it_has_to_be(
    too_small, capsys, monkeypatch
):
    out, command = too_small
    monkeypatch.setattr("sys.argv", ["holdfast", *command, *BUDGET])  # a larger run repeats it
    before = (out / "capability" / "records.jsonl").read_bytes()
    (out / "method.json").write_text("of an earlier budget")
    assert cli.main([*command, *BUDGET]) == 1
    output = capsys.readouterr()
    assert "method.json" in output.err and not (out / "method.json").exists()
    refusal, advice, larger = output.out.splitlines()[-3:]
    assert refusal.startswith("Too few conversations") and " 42 " in advice
    assert larger.startswith("holdfast calibrate ") and "--draws 7 --questions 42" in larger
    page = (out / "report.html").read_text()
    headline = page.split("<h1>")[1].split("</h1>")[0]
    assert advice in page
    assert refusal.startswith(headline.removesuffix(".")) and ". " not in headline
    assert (out / "capability" / "records.jsonl").read_bytes() == before
    assert cli.main(command) == 0
    assert capsys.readouterr().out.splitlines()[-3].startswith("Too few conversations")


@pytest.mark.slow
def test_the_command_writes_a_figure_a_page_and_summaries(too_small):
    out, _ = too_small
    assert (out / "trade_off.png").is_file()
    assert read_page(out / "report.html").tags.count("img") == 2
    results = json.loads((out / "summary.json").read_text())["results"]
    assert [row["method"] for row in results] == ["none", *SETTINGS_SWEPT]
    assert all((out / name / "summary.json").is_file() for name in ("stability", "capability"))


@pytest.mark.slow
def test_the_command_writes_a_method_file_that_drift_accepts(
    too_small, tmp_path, capsys, monkeypatch
):
    out, command = too_small
    calibration = sampled(0.2, 1, 5)
    none, fix = calibration.candidates
    calibration = dataclasses.replace(
        calibration,
        candidates=(none, dataclasses.replace(fix, method=SETTINGS_SWEPT[1])),
        about=read_calibration(out).about,
        names=(("split-softmax", "exponent"),),
    )
    monkeypatch.setattr("holdfast.cli.fix.calibrate.read_calibration", lambda folder: calibration)
    assert cli.main([*command, *BUDGET]) == 0
    *_, recommendation, _, last = capsys.readouterr().out.splitlines()
    assert recommendation.startswith(f"Use {SETTINGS_SWEPT[1]}, ")
    assert last.startswith("holdfast serve --model default --")
    file = out / "method.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "model_fingerprint": "another"}))
    drifted = "drift --conversations 1 --rounds 1 --max-new-tokens 40".split()
    drifted += ["--method", str(file), "--out", str(tmp_path / "drift")]
    assert cli.main(drifted) == 0
    assert "another model" in capsys.readouterr().err
    identity = holdfast.records.read_run(tmp_path / "drift").manifest.identity.to_json()
    assert identity["methods"] == [content["method"]]


def test_a_negative_budget_is_refused(capsys):
    assert cli.main(["calibrate", "--budget", "-1"]) == 2 and "budget" in capsys.readouterr().err


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
