"""Conversations shared out to forked processes: the same replies, and every way to end."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from test_drift import QUICK, SUITE, texts
from tiny import chat, model

from holdfast import drift, tasks
from holdfast.errors import KnobOutOfRange, ModelError, UnknownName, UsageError
from holdfast.methods import Kind
from holdfast.models.forked import how_many
from holdfast.records import read_run
from holdfast.study.profiling import Choice, profile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="replicas are forked")

SIX = replace(QUICK, rounds=2, conversations=6, batch=6, pairs="balanced")


@dataclass(frozen=True)
class Ends:
    """A method that ends its process, or raises, in the conversation of one agent."""

    word: str
    error: Exception | None = None
    name: ClassVar[str] = "ends"
    kind: ClassVar[Kind] = Kind.MESSAGES

    def edit(self, messages, seed):
        if self.word in messages[0]["content"]:
            if self.error is None:
                os.kill(os.getpid(), signal.SIGKILL)
            raise self.error
        return messages


@pytest.mark.parametrize("count", (2, 3))
def test_replicas_say_what_one_process_says(tmp_path, count):
    methods, seen = ["none", "split-softmax:exponent=0.5"], []
    alone = drift.run(model(), SUITE, tmp_path / "alone", SIX, methods)
    apart = drift.run(
        model(),
        SUITE,
        tmp_path / "apart",
        SIX,
        methods,
        running=drift.Running(
            replicas=count, progress=lambda done, tokens: seen.append((done, tokens)), traces=True
        ),
    )
    assert texts(apart) == texts(alone)
    assert sum(done for done, _ in seen) == 2 * SIX.conversations * SIX.rounds
    assert sum(tokens for _, tokens in seen) > 0
    assert len(list((tmp_path / "apart" / "traces").glob("*.npz"))) == 12


def test_a_run_goes_on_with_other_replicas(tmp_path):
    few = replace(SIX, conversations=2)
    drift.run(model(), SUITE, tmp_path / "run", few)
    resumed = drift.run(model(), SUITE, tmp_path / "run", SIX, running=drift.Running(replicas=3))
    assert texts(resumed) == texts(drift.run(model(), SUITE, tmp_path / "whole", SIX))
    again = (tmp_path / "run" / "records.jsonl").read_bytes()
    drift.run(model(), SUITE, tmp_path / "run", SIX, running=drift.Running(replicas=2))
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == again


def test_a_replica_that_is_killed_is_named_and_the_others_end(tmp_path):
    with pytest.raises(ModelError, match=r"exit code -9.*repeat the command.*fewer replicas="):
        drift.run(model(), SUITE, tmp_path, SIX, [Ends("rain")], running=drift.Running(replicas=6))
    kept = {record["agent"]["id"] for record in read_run(tmp_path).records}
    assert kept and "case-rain" not in kept


@pytest.mark.parametrize(
    ("error", "told"),
    (
        (ValueError("seen 7"), "seen 7"),
        (UnknownName("colour", "pinc", ["pink"]), "There is no colour 'pinc'"),
    ),
)
def test_an_error_of_a_replica_is_raised_here(tmp_path, error, told):
    with pytest.raises(Exception, match=told) as raised:
        drift.run(
            model(), SUITE, tmp_path, SIX, [Ends("rain", error)], running=drift.Running(replicas=6)
        )
    if isinstance(error, ValueError):
        assert raised.type is ValueError
        assert "in edit" in "".join(raised.value.__notes__)
    assert read_run(tmp_path).records


def test_an_error_here_ends_the_replicas(tmp_path):
    def progress(done, tokens):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drift.run(
            model(), SUITE, tmp_path, SIX, running=drift.Running(replicas=2, progress=progress)
        )
    assert multiprocessing.active_children() == []


def test_replicas_end_with_the_process_that_began_them(tmp_path):
    script = f"""
import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}]
from dataclasses import replace
from test_drift import LONG, SUITE
from tiny import chat, model
from holdfast import drift, tasks
settings = replace(LONG, conversations=4000)
drift.run(model(), SUITE, {str(tmp_path / "run")!r}, settings, running=drift.Running(replicas=2))
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    records = tmp_path / "run" / "records.jsonl"
    try:
        wait_for(lambda: records.exists() and records.stat().st_size)
        children = children_of(parent.pid)
        assert len(children) == 2
    finally:
        parent.kill()
        parent.wait()
    wait_for(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


def children_of(process: int) -> list[int]:
    told = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in told.split()]


def wait_for(condition, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_how_many(monkeypatch):
    tiny = model()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert tiny.replicas == torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert tiny.replicas == 1

    class Four:
        name, replicas = "four", 4

    assert [how_many(Four(), n, None) for n in (1, 8, 16, 31, 200)] == [1, 1, 2, 3, 4]
    assert [how_many(Four(), n, 3) for n in (1, 2, 200)] == [1, 2, 3]
    with pytest.raises(KnobOutOfRange, match="not 0"):
        how_many(Four(), 8, 0)


def test_a_model_elsewhere_is_refused_before_anything_is_written(tmp_path):
    class Elsewhere:
        name, replicas, independent, session = "far", 0, True, None

        def check(self, methods):
            pass

    with pytest.raises(UsageError, match=r"replicas=.*2 is for.*far is not"):
        drift.run(Elsewhere(), SUITE, tmp_path / "run", SIX, running=drift.Running(replicas=2))
    assert not (tmp_path / "run").exists()


def test_other_work_is_shared_out_too(tmp_path):
    """Batches of samples, of questions without a prompt, and groups of samples under every head."""
    settings = tasks.Settings(("json",), samples=6, batch=2)
    data = tasks.load_data([tasks.SYNTHETIC], settings)
    wide = model(max_position_embeddings=2048)
    samples = [Choice(chat("", f"{name} is a cook."), ("cook",), (" a", " b")) for name in "ABCD"]
    told = []
    for count in (1, 2):
        out = tmp_path / str(count)
        runs = [
            tasks.run(wide, data, out / "tasks", settings, ["pasta:alpha=0.1"], replicas=count),
            drift.ask_baseline(
                wide,
                SUITE,
                out / "run",
                replace(SIX, batch=2),
                running=drift.Running(replicas=count),
            ),
        ]
        profile(wide, samples, out / "profile", replicas=count)
        runs.append(read_run(out / "profile"))
        told.append([sorted(map(untimed, run.records)) for run in runs])
    assert told[0] == told[1] and [len(records) for records in told[0]] == [12, 6, 4]


def untimed(record):
    return json.dumps({k: v for k, v in record.items() if k != "seconds"}, sort_keys=True)
