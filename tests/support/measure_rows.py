"""The tables of replies in tests/data that measures are tested on."""

import json
from typing import Any

from paths import ROOT


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    lines = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
