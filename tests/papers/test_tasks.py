"""Runs of the tasks of PASTA: resuming, extending, records, refusals, the command."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from page_outline import read_page
from refusals import refusal_in
from scripted_model import Scripted
from synthetic_run import as_json
from tiny import model

import holdfast
from holdfast import records, tasks
from holdfast.analysis.task_results import average, read_results
from holdfast.cli import main
from holdfast.errors import ModelError, RecordsError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Pasta, Repetition
from holdfast.papers.zhang2024 import catalogue, data, synthetic
from holdfast.papers.zhang2024.catalogue import JSON
from holdfast.papers.zhang2024.data import BIOGRAPHIES, FACTS
from holdfast.papers.zhang2024.task_samples import demonstrations, draw_samples, request_of
from holdfast.report.task_tables import table


def long_tiny():
    return model(max_position_embeddings=4096)


BASELINES = ("zero-shot", "marked", "few-shot")
SMALL = tasks.Settings(samples=3, baselines=BASELINES, draws=2, batch=2, demonstrations=1)


def small_data(settings: tasks.Settings = SMALL) -> data.Data:
    shape = synthetic.TextShape((2, 2), 0.5, 0)
    return synthetic.make_data(settings.seed, settings.split, settings.samples, shape)


@pytest.fixture(autouse=True, scope="module")
def short_replies():
    """A random model never ends a reply: 12 tokens show as much as 256."""
    short = {name: replace(task, max_new_tokens=12) for name, task in tasks.CATALOGUE.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.papers.zhang2024.evaluate.CATALOGUE", short)
        yield


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> records.Run:
    """A run of every task under three baselines, uninterrupted."""
    return tasks.run(long_tiny(), small_data(), tmp_path_factory.mktemp("whole"), SMALL)


def untimed_records(run: records.Run) -> list[dict]:
    steady = ({**record, "seconds": 0} for record in as_json(run))
    return sorted(steady, key=lambda record: (record["method"], record["conversation"]))


# Resumed and extended runs


# one task, two samples, each in a batch of its own
SMALLEST = replace(
    SMALL, tasks=SMALL.tasks[:1], baselines=BASELINES[:2], samples=2, draws=1, batch=1
)


@pytest.mark.parametrize(
    ("settings", "total", "end"),
    [(SMALLEST, 4, 2), pytest.param(SMALL, 48, 29, marks=pytest.mark.slow)],
)
def test_interrupted_and_resumed_equals_uninterrupted(tmp_path, settings, total, end):
    data = small_data(settings)
    uninterrupted = tasks.run(long_tiny(), data, tmp_path / "whole", settings)
    assert len(uninterrupted.records) == total
    remaining, out = [end], tmp_path / "parts"

    def stop(samples: int, tokens: int = 0) -> None:
        remaining[0] -= samples
        if remaining[0] < 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tasks.run(long_tiny(), data, out, settings, (), tasks.Running(progress=stop))
    path = out / records.RECORDS
    lines = path.read_bytes().splitlines(keepends=True)
    assert 1 < len(lines) < total
    # as if killed in the middle of a batch and of a line
    path.write_bytes(b"".join(lines[:-2]) + lines[-1][:30])
    counts: list[int] = []
    running = tasks.Running(progress=lambda samples, tokens=0: counts.append(samples))
    resumed = tasks.run(long_tiny(), data, out, settings, (), running)
    assert untimed_records(resumed) == untimed_records(uninterrupted) and sum(counts) == total


def test_another_run_in_the_folder_is_refused(tmp_path, uninterrupted):
    other_model = model(max_position_embeddings=4096, seed=1)
    with pytest.raises(RecordsError, match=r"has changed since|dtype is"):
        tasks.run(other_model, small_data(), uninterrupted.folder, SMALL)
    with pytest.raises(RecordsError, match=r"seed is 0"):
        tasks.run(long_tiny(), small_data(), uninterrupted.folder, replace(SMALL, seed=9))
    with pytest.raises(RecordsError, match=r"samples is 3 .* 2 "):
        tasks.run(long_tiny(), small_data(), uninterrupted.folder, replace(SMALL, samples=2))
    with pytest.raises(RecordsError, match="`holdfast tasks`"):
        holdfast.report.write([uninterrupted.folder], tmp_path / "page.html")


@pytest.mark.parametrize(
    ("settings", "tasks_at_first"), [(SMALLEST, 1), pytest.param(SMALL, 2, marks=pytest.mark.slow)]
)
def test_an_extended_run_equals_one_made_at_once(tmp_path, settings, tasks_at_first):
    data = small_data(settings)
    at_once = tasks.run(long_tiny(), data, tmp_path / "whole", settings)
    first = settings.tasks[:tasks_at_first]
    part = replace(settings, tasks=first, baselines=("zero-shot",), draws=1)
    before = tasks.run(long_tiny(), data, tmp_path / "run", part)
    assert 0 < len(before.records) < len(at_once.records)
    extended = tasks.run(long_tiny(), data, tmp_path / "run", settings)
    assert untimed_records(extended) == untimed_records(at_once)


# Results


def test_records_and_table_agree(uninterrupted):
    run = uninterrupted
    results = {(result.task, result.variant): result for result in read_results(run)}
    assert list(results) == list(itertools.product(tasks.CATALOGUE, BASELINES))
    for (task, variant), result in results.items():
        rows = [r["scores"] for r in as_json(run) if (r["task"], r["variant"]) == (task, variant)]
        assert set(result.scores) == set(tasks.CATALOGUE[task].metrics)
        for name, values in result.scores.items():
            assert np.mean(values) == pytest.approx(np.mean([scores[name] for scores in rows]))
        assert len(result.draws) == (2 if variant == "few-shot" else 0)
    assert results["json", "zero-shot"].replies == 0
    assert results["bios", "zero-shot"].replies == 3
    assert results["bios", "few-shot"].replies == 6
    for record in as_json(run):
        if record["task"] == "bios":
            (values,) = record["log_probabilities"]
            assert len(values) == 28
            likeliest = synthetic.OCCUPATIONS[int(np.argmax(values))]
            assert record["scores"]["accuracy"] == float(likeliest == record["target"])
    zero = [result for (_, variant), result in results.items() if variant == "zero-shot"]
    numbers, means = average(zero)
    assert numbers.tolist() == [0, 1, 2]
    method_means = [np.mean([v.mean() for v in result.scores.values()]) for result in zero]
    assert means.mean() == pytest.approx(np.mean(method_means))
    text = table(run)
    assert "counterfact: 3 test samples" in text and "efficacy" in text
    assert "few-shot (2 draws)" in text
    assert re.search(r"^Average\b", text, re.MULTILINE)


def test_a_single_draw_of_demonstrations_is_in_the_singular(tmp_path):
    text = result_of(tmp_path, "one draw", [4.0, 4.0], draw=1)
    assert "marked (1 draw)" in text and "zero-shot (" not in text


def result_of(tmp_path, name: str, fluencies: list[float | None], draw: int = 0) -> str:
    settings = {"tasks": ["pronouns"], "split": "test", "instruction": "original"}
    identity = {"settings": settings, "variants": ["zero-shot", "marked"]}
    values = {"zero-shot": [4.5] * len(fluencies), "marked": fluencies}
    with records.open_run(tmp_path / name, identity, {"command": "tasks"}) as run:
        for variant in values:
            for number, value in enumerate(values[variant]):
                scores = {"accuracy": float(variant == "marked"), "all changed": 0.0}
                record = {"method": f"pronouns {variant}", "conversation": number}
                record |= {"task": "pronouns", "variant": variant, "scores": scores}
                record["draw"] = draw if variant == "marked" else 0
                run.append(records.TaskSample.model_validate({**record, "fluency": value}))
    return table(records.read_run(tmp_path / name))


def test_degenerate_results_are_excluded_and_reported(tmp_path):
    fine = result_of(tmp_path, "fine", [4.0, 2.0, 4.0, 4.0])
    assert "accuracy +1.00 [-0.18, +1.00]" in fine
    (line,) = [line for line in fine.splitlines() if "fluency under" in line]
    assert re.findall(r"[\d.]*\d", line) == ["4", "1", "3.0", "0"]
    poor = result_of(tmp_path, "poor", [2.0, 2.0, 4.0, None])
    assert re.search(r"marked: excluded .* 2\.67, .* 3\.0", poor)
    assert "minus zero-shot" not in poor
    # excluded but still shown
    assert re.search(r"1\.00 \[0\.\d\d, 1\.00\]", poor) and "2.67" in poor
    assert "excluded" not in result_of(tmp_path, "short", [2.0, None, None, None])


def test_a_run_without_a_finished_sample_has_no_results(tmp_path):
    records.open_run(tmp_path, {}, {"command": "tasks"}).close()
    with pytest.raises(RecordsError, match="no finished sample"):
        read_results(records.read_run(tmp_path))


# Baselines and methods


def test_few_shot_shows_training_samples_and_draws_differ():
    settings = tasks.Settings(tasks=("json",), samples=4, baselines=("few-shot",))
    dataset, task = synthetic.make_data(0, "test", 4), JSON
    chats = [demonstrations(dataset, task, settings, draw) for draw in (1, 2, 1)]
    assert chats[0] == chats[2] != chats[1]
    assert [m["role"] for m in chats[0]] == ["user", "assistant"] * 3
    train = {person.text for person in dataset.items[BIOGRAPHIES]["train"]}
    for prompt, reply in zip(chats[0][::2], chats[0][1::2], strict=True):
        assert any(prompt["content"].startswith(text) for text in train)
        assert catalogue.first_object(reply["content"])["name"] in prompt["content"]
    within = tasks.Settings(tasks=("json",), samples=300, split="train", baselines=("few-shot",))
    dataset = synthetic.make_data(0, "train", 300)
    prompt = {sample.prompts[0] for sample in draw_samples(dataset, task, within)}
    assert len(prompt) == 300
    assert not prompt & {message["content"] for message in demonstrations(dataset, task, within, 1)}


def test_methods_steer_towards_the_emphasised_part(tmp_path):
    settings = tasks.Settings(samples=2, draws=1)
    fixes = [(Pasta(1.0),), (Pasta(0.001),)]
    run = tasks.run(long_tiny(), small_data(), tmp_path / "a", settings, fixes)
    answers = {(record["method"], record["conversation"]): record for record in as_json(run)}
    differ = 0
    for (method, number), record in answers.items():
        if method.endswith(" zero-shot"):
            task = record["task"]
            nothing = answers[f"{task} pasta:alpha=1", number]
            assert (nothing["scores"], nothing["reply"]) == (record["scores"], record["reply"])
            differ += answers[f"{task} pasta:alpha=0.001", number]["reply"] != record["reply"]
    assert differ >= 4  # of 8 random replies
    user = {"role": "user", "content": "say it now"}
    messages = [user, {"role": "assistant", "content": "it"}, user]
    request = request_of(messages, ("it",), (Pasta(0.01),), Sampling(), 0)
    assert request.emphasis == ((2, 4, 6),) and request.methods == (Pasta(0.01),)
    with pytest.raises(UsageError) as excinfo:
        tasks.run(long_tiny(), small_data(), tmp_path / "b", settings, [(Repetition(1.0),)])
    assert (excinfo.value.option, excinfo.value.value) == ("method", "repetition")
    assert not (tmp_path / "b").exists()


def test_variants_are_baselines_by_draw_and_methods_that_differ():
    variants = tasks.variants_of(tasks.Settings(baselines=("few-shot",), draws=2), [()])
    names = [("zero-shot", 0), ("few-shot", 1), ("few-shot", 2)]
    assert [(variant.name, variant.draw) for variant in variants] == names
    assert tasks.variants_of(JSON_ONLY, [()]) == tasks.variants_of(JSON_ONLY)
    repeated = [(Pasta(0.5),), (Pasta(0.5),)]
    for settings, method_lists, option, value in (
        (JSON_ONLY, repeated, "method", "pasta:alpha=0.5"),
        (tasks.Settings(baselines=()), (), "baselines", None),
    ):
        with pytest.raises(UsageError) as excinfo:
            tasks.variants_of(settings, method_lists)
        assert (excinfo.value.option, excinfo.value.value) == (option, value)


def test_harder_synthetic_data_have_a_fingerprint_of_their_own():
    hard = tasks.load_data(["synthetic"], JSON_ONLY, synthetic.TextShape((16, 16), 1.0))
    assert hard.fingerprint != tasks.load_data(["synthetic"], JSON_ONLY).fingerprint
    assert hard.items[BIOGRAPHIES]["test"][0].text.count(".") == 17
    with pytest.raises(UsageError) as excinfo:
        tasks.load_data(["synthetic", "synthetic"], JSON_ONLY)
    assert (excinfo.value.option, excinfo.value.value) == ("data", "synthetic")


# Refusals and the command


JSON_ONLY = tasks.Settings(tasks=("json",), samples=2)


def test_data_that_lack_what_a_task_needs_are_refused(tmp_path):
    facts = data.Data("facts only", "x", {FACTS: {"test": [], "train": []}})
    test = {"test": small_data().items[BIOGRAPHIES]["test"]}
    untrained = data.Data("no training", "x", {BIOGRAPHIES: test})
    counterfact = replace(JSON_ONLY, tasks=("counterfact",))
    few_shot = replace(JSON_ONLY, baselines=("few-shot",))
    for dataset, settings, message in (
        (facts, JSON_ONLY, "json needs biographies"),
        (facts, counterfact, "0 test samples"),
        (untrained, few_shot, "0 training samples"),
    ):
        with pytest.raises(UsageError, match=message):
            tasks.run(long_tiny(), dataset, tmp_path / "a", settings)


def test_a_model_that_scores_no_replies_is_refused_for_a_choice(tmp_path):
    with pytest.raises(ModelError, match=r"scripted .*bios"):
        two_tasks = replace(JSON_ONLY, tasks=("json", "bios"))
        tasks.run(Scripted(), small_data(), tmp_path / "a", two_tasks)


REPEATED = ["--task", "json", "--method", "repetition:probability=1", "--samples", "2"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--task", "jsn"], "There is no task 'jsn'; did you mean 'json'?"),
        (["--task", "json", "--task", "json"], "The task 'json' is given twice"),
        (["--instruction", "shortened"], "The task bios has no shortened instruction"),
        (["--samples", "0"], "samples as a whole number from 1 upwards, not 0"),
        (["--task", "json", "--data", "nowhere.json"], "nowhere.json does not exist"),
        (REPEATED, "repetition works on a system prompt"),
        (
            ["--task", "json", "--method", "attenuate:factor=0.1"],
            "attenuate works on earlier replies, and tasks have none",
        ),
        (["--method", "past:alpha=0.01"], "did you mean 'pasta'?"),
    ],
)
def test_the_command_answers_bad_input_with_one_sentence(tmp_path, capsys, argv, message):
    assert main(["tasks", "--out", str(tmp_path / "out"), *argv]) == 2
    stderr = refusal_in(capsys)
    assert stderr.startswith("holdfast: ") and message in stderr and stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_command_runs_every_task_on_the_default_model(tmp_path, capsys):
    argv = "tasks --samples 4 --baseline zero-shot --baseline quoted --out".split()
    argv.append(str(tmp_path / "out"))
    assert main(argv) == 0
    first = capsys.readouterr().out
    assert all(f"{name}: 4 test samples" in first for name in tasks.CATALOGUE)
    assert re.search(r"^Average\b", first, re.MULTILINE)
    before = (tmp_path / "out" / "summary.json").read_bytes()
    assert main(argv) == 0 and capsys.readouterr().out == first
    assert (tmp_path / "out" / "summary.json").read_bytes() == before
    read_page(tmp_path / "out" / "report.html")
    run = records.read_run(tmp_path / "out")
    assert len(run.records) == 4 * 2 * 4 and run.manifest.identity.to_json()["model"] == "default"
