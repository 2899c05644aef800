"""The Triton kernels against the formulas, in a process whose environment selects Triton's
interpreter, or not, before transformers imports Triton.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from paths import ROOT

PLUGIN = ROOT / "plugins" / "holdfast-vllm" / "tests"
CASES = [Path(__file__).with_name("step_kernel_cases.py"), PLUGIN / "kernel_cases.py"]


def run(*arguments: str | Path, **environment: str) -> str:
    """Returns what a Python process prints; if it fails, fails the test with that output."""
    pytest.importorskip("triton", reason="triton is not installed; it comes with torch for CUDA")
    command, env = [sys.executable, *arguments], os.environ | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.stem)
def test_the_kernels_match_the_formulas_in_the_interpreter(cases):
    interpreted = {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    output = run("-m", "pytest", "-p", "no:cacheprovider", cases, **interpreted)
    assert " passed" in output and "skipped" not in output


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_the_kernels_match_the_formulas_on_a_gpu():
    output = run("-m", "pytest", "-p", "no:cacheprovider", *CASES, TRITON_INTERPRET="0")
    assert " passed" in output and "skipped" not in output
