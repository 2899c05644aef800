"""Resuming a run: wherever it was interrupted, no record is lost or duplicated."""

import ast
from pathlib import Path

import pytest
from small_records import ABOUT, IDENTITY, METHODS, record
from synthetic_run import as_json

import holdfast
from holdfast.cli import main
from holdfast.records import batches, open_run, read_run, resume

NUMBERS, SIZE = range(11), 4


def work(folder: Path, alone: bool, stop: int | None = None) -> list[tuple[int, ...]]:
    """Records both methods in batches; is interrupted after `stop` records."""
    done, count = [], 0
    with open_run(folder, IDENTITY, ABOUT) as run:
        for name in METHODS:
            for batch in resume(run, name, batches(NUMBERS, SIZE), independent=alone):
                assert batch.num_finished == len(batch.numbers) - len(batch.to_run)
                if batch.to_run:
                    done.append(batch.to_run)
                for number in reversed(batch.to_run):  # records may finish in any order
                    if count == stop:
                        raise KeyboardInterrupt
                    batch.append(record(number, name))
                    count += number in batch.missing
    return done


def keys(folder: Path) -> list[tuple[str, int]]:
    return [(row["method"], row["conversation"]) for row in as_json(read_run(folder))]


@pytest.mark.parametrize("alone", (False, True))
@pytest.mark.parametrize("stop", range(2 * len(NUMBERS)))
def test_interrupting_at_any_record_loses_and_duplicates_nothing(tmp_path, stop, alone):
    with pytest.raises(KeyboardInterrupt):
        work(tmp_path, alone, stop)
    before = keys(tmp_path)
    assert len(before) == stop
    resumed = work(tmp_path, alone)
    after = keys(tmp_path)
    assert after[:stop] == before
    assert sorted(after) == sorted((name, number) for name in METHODS for number in NUMBERS)
    rest = 2 * len(NUMBERS) - stop
    assert sum(map(len, resumed)) == rest if alone else rest <= sum(map(len, resumed)) < rest + SIZE
    assert work(tmp_path, alone) == []


def test_whole_batches_are_rerun_unless_results_are_independent(tmp_path):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        for number in (0, 1, 2, 3, 5):
            run.append(record(number))
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        whole = [batch.to_run for batch in resume(run, "none", batches(NUMBERS, SIZE))]
        alone = [
            batch.to_run for batch in resume(run, "none", batches(NUMBERS, SIZE), independent=True)
        ]
    assert whole == [(), (4, 5, 6, 7), (8, 9, 10)] and alone == [(), (4, 6, 7), (8, 9, 10)]


@pytest.mark.slow
def test_every_run_resumes_through_the_shared_helper():
    users = []
    for path in sorted(Path(holdfast.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        names = {name.removeprefix("records.") for name in called}
        if "open_run" in names and path.parent.name != "records":
            users.append(path.stem)
            assert "resume" in names, f"{path} opens a run without records.resume"
    assert len(users) >= 5, users


@pytest.mark.parametrize(
    ("stop", "message"), [(0, "nothing was finished"), (1, "finished work is in")]
)
def test_an_interrupted_command_promises_only_what_it_kept(
    tmp_path, monkeypatch, capsys, stop, message
):
    def interrupt(model, suite, out, *_, **__):
        work(out, False, stop)

    monkeypatch.setattr("holdfast.drift.run", interrupt)
    out = tmp_path / "run"
    assert main(["drift", "--out", str(out), "--conversations", "2"]) == 130
    assert message in capsys.readouterr().err
