"""Measures of capability in calibrations: facts, knowledge, perplexity, MMLU, the harness."""

import dataclasses
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from calibrations import ITEMS
from paths import ROOT
from scripted_model import Scripted
from short_drift import SUITE
from small_calibration import SMALL, SWEEPS, calibrate_tiny
from synthetic_run import as_json

import holdfast
from holdfast import Sampling
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.errors import HoldfastError, ModelError, UsageError
from holdfast.report.calibration_table import table
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.capability import default_capability, load_capability
from holdfast.study.capability_items import Item

MMLU = ROOT.parent / "shared" / "data" / "mmlu"


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
