"""Describes what a record was measured on; every benchmark's record has it as "measured_on"."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.analysis.statistics import Estimate
    from holdfast.records import Run

ROOT = Path(__file__).parent.parent
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "scipy")


def measured_on(model=None, fingerprints: dict[str, str] | None = None) -> dict:
    """The commit, the kind of machine, the versions, and the model's fingerprint.

    Args:
        model: a `holdfast` model, if the numbers are for one model.
        fingerprints: by name, if they are for several models.
    """
    stamp: dict = {"commit": commit(), "machine": machine(), "python": platform.python_version()}
    stamp["versions"] = {name: version(name) for name in PACKAGES}
    if model is not None:
        stamp["fingerprint"] = model.fingerprint
    if fingerprints is not None:
        stamp["fingerprints"] = fingerprints
    return stamp


def measured_in(runs: Sequence[Run], at: str | None) -> dict:
    """The stamp of runs of one model, made at the commit `at`, or at the present one."""
    stamp = measured_on()
    if at:
        stamp["commit"] = at
    stamp["fingerprint"] = runs[0].manifest.identity.model_fingerprint
    return stamp


def write_record(record: dict, out: Path | None) -> None:
    """Prints a record, and writes it to a file if there is to be one."""
    if out is not None:
        write_json(record, out)
    print(json.dumps(record, indent=1))


def write_json(record: dict, out: Path) -> None:
    """Writes a record to a file, whose folder it makes."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")


def estimate_json(result: Estimate) -> dict:
    """An estimate as records have it: `n`, and `mean`, `low` and `high` to four digits."""
    numbers = {"mean": result.mean, "low": result.low, "high": result.high}
    rounded = {name: None if x is None else round(x, 4) for name, x in numbers.items()}
    return {"n": result.n, **rounded}


def commit() -> str:
    """The commit that is checked out, with "+changes" if tracked files in `src` or Python files in
    `benchmarks` differ.
    """
    try:
        head = _git("rev-parse", "HEAD").strip()
        changed = _git(
            "status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks/*.py"
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown: not a git checkout"
    return head + ("+changes" if changed.strip() else "")


def machine() -> str:
    """The kind of machine, in words: processor, cores available to this process, accelerator."""
    import torch

    model = platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip()
            for line in cpuinfo.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    accelerator = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"{model}, {cores} cores, {accelerator}"


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout
