"""The tables of replies in tests/data that measures are tested on."""

import json
from pathlib import Path
from typing import Any


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    lines = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
