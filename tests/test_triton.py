"""The Triton kernels, the vLLM plug-in's among them: against the formula, and compiled for GPUs
that need not be there.

Triton decides as it is imported whether its functions are interpreted, and transformers imports it.
So the cases run in processes of their own, whose environment says so from the start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from holdfast.attention.cuda import is_covered

HERE = Path(__file__).parent
CASES = [HERE / "triton_cases.py", HERE / "vllm_kernel_cases.py"]
SHARED = {86: 99 * 1024, 90: 227 * 1024}  # bytes that a program can have, by capability


def run(*arguments: str | Path, **environment: str) -> str:
    """What a process of Python prints; fails the test with it if the process fails."""
    pytest.importorskip("triton", reason="triton is not installed; it comes with torch for CUDA")
    done = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.stem)
def test_the_kernels_match_the_formula_in_the_interpreter(cases):
    printed = run(
        "-m", "pytest", "-p", "no:cacheprovider", cases,
        TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="",
    )  # fmt: skip
    assert " passed" in printed and "skipped" not in printed


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.stem)
def test_the_kernels_match_the_formula_on_a_gpu(cases):
    printed = run("-m", "pytest", "-p", "no:cacheprovider", cases, TRITON_INTERPRET="0")
    assert " passed" in printed and "skipped" not in printed


def test_the_kernels_compile_for_gpus_that_are_not_here(tmp_path):
    """Matrix units, copies that run ahead, and room for all: what interpreting cannot show."""
    printed = run(
        HERE / "triton_compile.py",
        TRITON_INTERPRET="0",
        TRITON_CACHE_DIR=str(tmp_path),
        TRITON_DEFAULT_FP_FUSION="1",
    )
    kernels = [json.loads(line) for line in printed.splitlines()]
    names = [(kernel["kernel"], kernel["capability"]) for kernel in kernels]
    assert names == [
        ("_attend_split", 90),
        ("_merge_splits", 90),
        ("_attend_block", 90),
        ("_attend_block", 90),
        ("_attend_split", 86),
        ("_attend_block", 86),
    ]
    for kernel in kernels:
        assert kernel["shared_bytes"] <= SHARED[kernel["capability"]], kernel
        assert kernel["stack_bytes"] <= 128, kernel  # registers that did not fit
        if kernel["kernel"] != "_merge_splits":
            assert kernel["matrix_units"] and kernel["buffers"] >= 2, kernel


def test_the_benchmark_for_gpus_runs_through_at_a_tiny_shape(tmp_path):
    record = tmp_path / "record.json"
    benchmark = HERE.parent / "benchmarks" / "attention.py"
    run(
        benchmark, "--device", "cuda", "--rehearse", "--threads", "1", "--out", record,
        TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="",
    )  # fmt: skip
    written = json.loads(record.read_text())
    assert written["measured_on"]["commit"] and written["span"] == 7
    assert [row["work"].split(",")[0] for row in written["rows"]] == ["decode", "prefill"]
    for row in written["rows"]:
        for variant in ("flash", "eager", "kernels", "kernels+trace", "holdfast"):
            low, high = row[variant]["quartiles"]
            assert 0 < low <= row[variant]["median"] <= high


def test_kernels_are_not_for_the_cpu():
    states = torch.zeros(1, 1, 1, 64)
    assert not is_covered(states, states, states)
