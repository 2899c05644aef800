"""Runs that are repeated, interrupted, extended, or were begun by an older version."""

import json
import multiprocessing
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_model import Scripted
from short_drift import QUICK, SUITE, texts, without_time
from synthetic_run import as_json, write_run
from tiny import model

from holdfast import Repetition, Sampling, SplitSoftmax, drift, report
from holdfast.errors import RecordsError
from holdfast.records import read_run


def exact():
    """The tiny model in float64, where the rest of the batch changes no digit of a record."""
    return model(dtype="float64")


# The same command again


def test_repeating_gives_the_same_records_and_draws_do_not_depend_on_the_batch(tmp_path):
    runs = [drift.run(model(), SUITE, tmp_path / name, QUICK) for name in ("one", "two")]
    assert without_time(runs[0]) == without_time(runs[1])
    fives = drift.run(model(), SUITE, tmp_path / "three", replace(QUICK, batch=5))
    assert texts(fives) == texts(runs[0])  # float32 on a tiny model: rounding decides no token here


LONG = drift.Settings(2, 40, batch=2, sampling=Sampling(max_new_tokens=8), seed=5)


def run_in_child(out: Path) -> None:
    """Makes or resumes the run, in the test's own process or in one that is killed."""
    import torch

    torch.set_num_threads(1)
    drift.run(exact(), SUITE, out, LONG, [(), (SplitSoftmax(0.3),)])


@pytest.mark.slow
def test_a_run_killed_20_times_and_resumed_equals_an_uninterrupted_one(tmp_path):
    run_in_child(tmp_path / "whole")
    whole = (tmp_path / "whole" / "records.jsonl").stat().st_size
    # forks from a process that has imported everything
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["test_resumed_runs"])
    out, rng, kills, sizes = tmp_path / "killed", random.Random(0), 0, set()

    def bytes_written() -> int:
        return (out / "records.jsonl").stat().st_size if (out / "records.jsonl").exists() else 0

    for attempt in range(20):
        # kills by the size of the records, not by time, so that slow machines are hit mid-run too
        goal = bytes_written() + (whole * rng.random() / 20 if attempt % 4 else 0)
        child = server.Process(target=run_in_child, args=(out,))
        child.start()
        while child.is_alive() and bytes_written() < goal:
            time.sleep(0.001)
        child.join(rng.random() * 0.02)
        kills += child.is_alive()
        child.kill()
        child.join()
        sizes.add(bytes_written())
    assert kills == 20 and len(sizes) > 8, (kills, sizes)
    run_in_child(out)
    assert without_time(read_run(out)) == without_time(read_run(tmp_path / "whole"))


# More or less than before


@pytest.mark.slow
def test_an_extended_run_equals_one_made_at_once(tmp_path):
    few = replace(QUICK, rounds=2)
    eight = replace(few, conversations=8)
    fixes = [(SplitSoftmax(0.3),), (Repetition(1.0),)]
    whole = drift.run(exact(), SUITE, tmp_path / "whole", eight, [(), *fixes])
    out = tmp_path / "extended"
    drift.run(exact(), SUITE, out, few, [()])
    drift.run(exact(), SUITE, out, few, [fixes[0]])  # another method
    drift.run(exact(), SUITE, out, eight, [fixes[1], ()])  # more, in another order of methods
    extended = drift.run(exact(), SUITE, out, eight, [fixes[0]])
    assert texts(extended) == texts(whole)
    assert without_time(extended) == without_time(whole)
    identity = extended.manifest.identity.to_json()
    assert identity["methods"] == whole.manifest.identity.to_json()["methods"]
    assert identity["settings"]["conversations"] == 8
    fewer = drift.run(exact(), SUITE, out, replace(few, conversations=2), [()])
    assert len(fewer.records) == 24


def stop_after(replies: int):
    counts = []

    def progress(done: int, tokens: int) -> None:
        counts.append(done)
        if len(counts) > replies:
            raise KeyboardInterrupt

    return progress


def test_a_smaller_command_completes_its_part_of_the_run(tmp_path):
    running, batches = drift.Running(progress=stop_after(30)), [[0], [1, 2], [3, 4]]
    with pytest.raises(KeyboardInterrupt):  # each has 11 replies
        drift.run(
            Scripted(), SUITE, tmp_path / "run", QUICK, running=running, batches=lambda: batches
        )
    few = replace(QUICK, conversations=2)
    run = drift.run(Scripted(), SUITE, tmp_path / "run", few)
    assert run.manifest.identity.to_json()["settings"]["conversations"] == QUICK.conversations
    assert {0, 1} <= {record["conversation"] for record in as_json(run)} < set(range(5))


def test_more_rounds_are_refused_with_the_reason(tmp_path):
    drift.run(Scripted(), SUITE, tmp_path / "run", QUICK)
    message = r"rounds is 3 there and 4 here \(finished dialogs are recorded as text, .*\)"
    with pytest.raises(RecordsError, match=message):
        drift.run(Scripted(), SUITE, tmp_path / "run", replace(QUICK, rounds=4))


# Manifests of older versions


def older_manifest(folder):
    """The manifest of a run as a version without checksums wrote it, and its settings."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest = {name: value for name, value in manifest.items() if "crc32" not in name}
    return manifest, manifest["identity"]["settings"]


def test_an_older_manifest_without_a_setting_is_resumed(tmp_path):
    drift.run(Scripted(), SUITE, tmp_path / "run", QUICK)
    path = tmp_path / "run" / "manifest.json"
    manifest, settings = older_manifest(tmp_path / "run")
    del settings["adoption"], settings["sampling"]["top_p"]
    path.write_text(json.dumps(manifest))
    assert len(drift.run(Scripted(), SUITE, tmp_path / "run", QUICK).records) == 5
    assert read_run(tmp_path / "run").manifest.identity.to_json()["settings"]["adoption"] is True
    path.write_text(json.dumps(manifest))
    with pytest.raises(RecordsError, match=r"adoption is true there and false here"):
        drift.run(Scripted(), SUITE, tmp_path / "run", replace(QUICK, adoption=False))


@pytest.mark.slow
def test_a_run_that_could_have_measured_divergences_is_resumed_if_it_did_not(tmp_path):
    folder = write_run(tmp_path / "run", conversations=2, rounds=2)
    page = report.write([folder], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "ivergence" not in page
    for has_divergence in (False, True):
        drift.run(Scripted(), SUITE, tmp_path / str(has_divergence), QUICK)
        manifest, settings = older_manifest(tmp_path / str(has_divergence))
        settings["divergence"] = has_divergence
        (tmp_path / str(has_divergence) / "manifest.json").write_text(json.dumps(manifest))
    assert len(drift.run(Scripted(), SUITE, tmp_path / "False", QUICK).records) == 5
    with pytest.raises(RecordsError, match=r"divergence is true there and false here"):
        drift.run(Scripted(), SUITE, tmp_path / "True", QUICK)
