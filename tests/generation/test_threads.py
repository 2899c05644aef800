"""Idle OpenMP threads spin briefly, then sleep, and oneDNN keeps few compiled products, unless set
by the user; imports change nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from holdfast.generation.cpu_threads import release_threads

NAMES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY")
SHOW = f"; import os; print(*map(os.environ.get, {NAMES}))"


def settings_after(script: str, **by_user: str) -> str:
    """The settings after a script, in a process that starts with only those of the user."""
    settings = ("OMP_WAIT", "GOMP", "KMP", "ONEDNN")
    clean = {name: v for name, v in os.environ.items() if not name.startswith(settings)}
    words, captured = [sys.executable, "-c", script + SHOW], {"capture_output": True, "text": True}
    result = subprocess.run(words, env=clean | by_user, **captured, timeout=300)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()[-1]


@pytest.mark.slow
def test_threads_spin_briefly_once_the_loader_is_imported():
    assert settings_after("import holdfast; holdfast.load") == "10000 PASSIVE 64"


def test_threads_spin_briefly_in_a_command_by_default():
    assert settings_after("from holdfast.cli import main; main(['methods'])") == "10000 PASSIVE 64"


@pytest.mark.slow
def test_settings_of_the_user_are_kept():
    assert (
        settings_after("import holdfast; holdfast.load", OMP_WAIT_POLICY="ACTIVE")
        == "None ACTIVE 64"
    )
    assert settings_after("import holdfast; holdfast.load", GOMP_SPINCOUNT="1000") == "1000 None 64"
    values = settings_after("import holdfast; holdfast.load", ONEDNN_PRIMITIVE_CACHE_CAPACITY="9")
    assert values == "10000 PASSIVE 9"


@pytest.mark.slow
def test_importing_changes_nothing_and_neither_does_loading_after_torch():
    assert settings_after("import holdfast, holdfast.cli, holdfast.methods") == "None None None"
    assert settings_after("import torch, holdfast; holdfast.load") == "None None None"


def threads_of_process() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def computed_on_threads() -> set[str]:
    """Computes with three threads, one of them this one; returns those that began."""
    torch.set_num_threads(3)  # which may start threads of another pool
    before = threads_of_process()
    assert float((torch.ones(2**22) * 2).sum()) == 2**23
    return threads_of_process() - before


def threads_after_release() -> tuple[int, set[str]]:
    """The number of threads that this one computes with besides itself, and those of them that
    outlive the release.
    """
    team = computed_on_threads()
    release_threads()
    end = time.monotonic() + 5
    while team & threads_of_process() and time.monotonic() < end:
        time.sleep(0.01)
    remaining = team & threads_of_process()
    assert len(computed_on_threads()) == len(team)  # it can compute again
    return len(team), remaining


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
@pytest.mark.skipif(
    not list(Path(torch.__file__).parent.glob("lib/libgomp*")), reason="another OpenMP than GNU's"
)
def test_the_threads_of_a_thread_that_computes_no_more_are_ended():
    """Otherwise each step in another thread wakes its own threads hundreds of times."""
    before = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(threads_after_release).result() == (2, set())
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU, threads are left alone")
def test_decode_steps_of_a_small_model_use_one_thread_and_then_restore_the_number(monkeypatch):
    from tiny import chat, model

    from holdfast import Sampling
    from holdfast.generation import cpu_threads
    from holdfast.generation.decoder import Decoder

    thread_counts, forward = {"prefill": set(), "decode": set()}, Decoder._forward_and_draw

    def watch(self, first):
        joins = len(self.slots.lengths) > 0 and not any(self.slots.lengths)
        thread_counts["prefill" if joins else "decode"].add(torch.get_num_threads())
        return forward(self, first)

    monkeypatch.setattr(Decoder, "_forward_and_draw", watch)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    options = {"sampling": Sampling(max_new_tokens=8)}
    try:
        replies = [model().generate(chat("be nice", "hello"), **options)]
        assert thread_counts == {"prefill": {2}, "decode": {1}} and torch.get_num_threads() == 2
        for value in (100, 16_000_000):
            monkeypatch.setattr(cpu_threads, "_MAX_SMALL_PARAMETERS", value)
            if value > 100:
                monkeypatch.setenv("OMP_NUM_THREADS", "2")  # the user's setting wins
            thread_counts["decode"].clear()
            replies.append(model().generate(chat("be nice", "hello"), **options))
            assert thread_counts["decode"] == {2}
        assert replies[0] == replies[1] == replies[2]
    finally:
        torch.set_num_threads(before)
