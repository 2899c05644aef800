"""The GPU benchmark, as far as it runs without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

THROUGHPUT = Path(__file__).parents[1] / "benchmarks" / "throughput.py"


def test_the_throughput_of_a_tiny_shape_is_recorded(tmp_path):
    record = tmp_path / "record.json"
    done = subprocess.run(
        [sys.executable, THROUGHPUT, "--rehearse", "--repetitions", "1", "--out", record],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    result = json.loads(record.read_text())
    assert result["measured_on"]["commit"] and result["shape"]["num_hidden_layers"] == 2
    assert [row["rows"] for row in result["rows"]] == [1, 3]
    for row in result["rows"]:
        assert row["plain"]["of_plain"] == 1
        for variant in ("plain", "nothing steered", "everything steered"):
            assert row[variant]["first_seconds"] > row[variant]["step_seconds"] > 0
            assert row[variant]["tokens_per_second"] > 0
