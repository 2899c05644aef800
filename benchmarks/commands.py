"""Runs commands of `holdfast` in this process."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from holdfast.cli import main


def run(command: Sequence[str]) -> None:
    """Runs a command; if it fails or is stopped, so does the benchmark, with its exit code."""
    if code := main(list(command)):
        sys.exit(code)
