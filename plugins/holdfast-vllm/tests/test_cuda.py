"""The CUDA backend, as far as it runs without a GPU."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_cuda_cases_pass_in_tritons_interpreter():
    """Triton decides on import whether its functions are interpreted."""
    cases = Path(__file__).parent / "cuda_cases.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", cases],
        env={**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
