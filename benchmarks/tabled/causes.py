"""How often the causes of `holdfast logs` agree with labels."""

from __future__ import annotations

import json

from tabled.reading import ROOT, markdown, read

_PARTS = {  # the parts of the labelled dialogs, in the order in which they were written
    "develop": "looked at while the code was written",
    "held-out": "written at the same time, and not looked at until after the first run",
    "later": "written after the code, to be harder; looked at since",
    "hand": "written after that, harder still",
    "real": "replies of a 0.5B model under the suite `bots`, arranged by a script",
    "real-without-recalled": "the same, under rules without `recalled`",
    "fresh": "written last, in the tone of real sessions",
}


def causes_table() -> str:
    """The agreement of each part of the labels, in the first run and now."""
    now = read("causes")
    first = json.loads((ROOT / "tests/data/causes/first_run.json").read_text())
    rows = [["transcripts", "breaches", "agree in the first run [95%, over dialogs]", "now"]]
    for part, words in _PARTS.items():
        breaches = str(now[part]["breaches"])
        rows.append([words, breaches, _agreement(first[part]), _agreement(now[part])])
    return "\n".join(markdown(rows))


def _agreement(result: dict) -> str:
    """The share of breaches whose cause is the label, with its interval."""
    low, high = result["interval"]
    return f"{result['agreement']:.2f} [{low:.2f}, {high:.2f}]"
