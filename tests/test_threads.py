"""Idle OpenMP threads spin briefly, then sleep, and oneDNN keeps few compiled products, unless set
by the user; imports change nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

NAMES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
SHOW = f"; import os; print(*map(os.environ.get, {NAMES}))"


def settings_after(script: str, **by_user: str) -> str:
    """The settings after a script, in a process that starts with only those of the user."""
    settings = ("OMP_WAIT", "GOMP", "KMP", "ONEDNN")
    clean = {name: v for name, v in os.environ.items() if not name.startswith(settings)}
    words, captured = [sys.executable, "-c", script + SHOW], {"capture_output": True, "text": True}
    ran = subprocess.run(words, env=clean | by_user, **captured, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


@pytest.mark.slow
def test_threads_spin_briefly_once_the_loader_is_imported():
    assert settings_after("import holdfast; holdfast.load") == "10000 PASSIVE 128"


def test_threads_spin_briefly_in_a_command_by_default():
    assert settings_after("from holdfast.cli import main; main(['methods'])") == "10000 PASSIVE 128"


@pytest.mark.slow
def test_settings_of_the_user_are_kept():
    assert (
        settings_after("import holdfast; holdfast.load", OMP_WAIT_POLICY="ACTIVE")
        == "None ACTIVE 128"
    )
    assert (
        settings_after("import holdfast; holdfast.load", GOMP_SPINCOUNT="1000") == "1000 None 128"
    )
    kept = settings_after("import holdfast; holdfast.load", ONEDNN_PRIMITIVE_CACHE_CAPACITY="9")
    assert kept == "10000 PASSIVE 9"


@pytest.mark.slow
def test_importing_changes_nothing_and_neither_does_loading_after_torch():
    assert settings_after("import holdfast, holdfast.cli, holdfast.methods") == "None None None"
    assert settings_after("import torch, holdfast; holdfast.load") == "None None None"


THREADS_BEFORE_AND_AFTER = """
import os, time
import torch
from holdfast.generation.cpu_threads import release_threads

torch.set_num_threads(3)
numbers = torch.ones(2**22)
assert float((numbers * 2).sum()) == 2**23
before = len(os.listdir("/proc/self/task"))
release_threads()
time.sleep(0.5)
print(before - len(os.listdir("/proc/self/task")), float((numbers * 2).sum()) == 2**23)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@pytest.mark.skipif(
    not list(Path(torch.__file__).parent.glob("lib/libgomp*")), reason="another OpenMP than GNU's"
)
def test_the_threads_of_a_thread_that_computes_no_more_are_ended():
    """Otherwise each step in another thread wakes its own threads hundreds of times."""
    command = [sys.executable, "-c", THREADS_BEFORE_AND_AFTER]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.split() == ["2", "True"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU, threads are left alone")
def test_decode_steps_of_a_small_model_use_one_thread_and_then_restore_the_number(monkeypatch):
    from tiny import chat, model

    from holdfast import Sampling
    from holdfast.generation import cpu_threads as threads
    from holdfast.generation.decoder import Decoder

    seen, advance = {"admit": set(), "step": set()}, Decoder._advance

    def watched(self, first):
        joins = len(self.slots.lengths) > 0 and not any(self.slots.lengths)
        seen["admit" if joins else "step"].add(torch.get_num_threads())
        return advance(self, first)

    monkeypatch.setattr(Decoder, "_advance", watched)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    options = {"sampling": Sampling(max_new_tokens=8)}
    try:
        replies = [model().generate(chat("be nice", "hello"), **options)]
        assert seen == {"admit": {2}, "step": {1}} and torch.get_num_threads() == 2
        for value in (100, 16_000_000):
            monkeypatch.setattr(threads, "_MAX_SMALL_PARAMETERS", value)
            if value > 100:
                monkeypatch.setenv("OMP_NUM_THREADS", "2")  # the user's setting wins
            seen["step"].clear()
            replies.append(model().generate(chat("be nice", "hello"), **options))
            assert seen["step"] == {2}
        assert replies[0] == replies[1] == replies[2]
    finally:
        torch.set_num_threads(before)
