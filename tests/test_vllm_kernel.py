"""The kernel of the vLLM plug-in for GPUs, by Triton's interpreter where there is none."""

from pathlib import Path

import pytest
import torch
from test_triton import run

CASES = Path(__file__).parent / "vllm_kernel_cases.py"


def test_it_matches_the_formula_in_the_interpreter():
    printed = run(
        "-m", "pytest", "-p", "no:cacheprovider", CASES,
        TRITON_INTERPRET="1", CUDA_VISIBLE_DEVICES="",
    )  # fmt: skip
    assert " passed" in printed and "skipped" not in printed


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_it_matches_the_formula_on_a_gpu():
    printed = run("-m", "pytest", "-p", "no:cacheprovider", CASES, TRITON_INTERPRET="0")
    assert " passed" in printed and "skipped" not in printed
