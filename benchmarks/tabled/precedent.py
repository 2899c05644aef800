"""What prompt and precedent are worth, from the records in results/precedent, one per model."""

from __future__ import annotations

import json
from typing import Any

from tabled.reading import RESULTS, markdown

FOLDER = RESULTS / "precedent"
_COLUMNS = (
    ("kept", True, "kept replies, with the prompt"),
    ("kept", False, "kept replies, without it"),
    ("broken", True, "broken replies, with the prompt"),
    ("broken", False, "broken replies, without it"),
)


def precedent_table() -> str:
    """The score of the next reply after k kept or broken replies, with the prompt and without it,
    and what each is worth at the most replies.
    """
    parts = []
    for file in sorted(FOLDER.glob("*.json")):
        record = json.loads(file.read_text())
        result = next(r for r in record["results"] if r["rules"] == "all")
        cells = {(c["history"], c["seen"], c["prompted"]): c["score"] for c in result["cells"]}
        rows = [["earlier replies in view", *(head for *_, head in _COLUMNS)]]
        for depth in result["depths"]:
            seen = depth["seen"]
            scores = (cells[history, seen, prompted] for history, prompted, _ in _COLUMNS)
            rows.append([str(seen), *map(_share, scores)])
        deepest = result["depths"][-1]
        parts += [
            f"`{record['model']}`, {record['conversations']} pairs of histories"
            f" (`{record['command']}`), of which {result['used']} of {result['of']} rules can be"
            " told apart; scores with their 95% intervals over pairs:",
            "\n".join(markdown(rows)),
            f"After {deepest['seen']} replies that broke the rules, the prompt is worth"
            f" {_difference(deepest['prompt_after_broken'])}; with the prompt in view, kept replies"
            f" are worth {_difference(deepest['precedent'])} against broken ones.",
        ]
    return "\n\n".join(parts)


def _share(estimate: dict[str, Any]) -> str:
    return f"{estimate['mean']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


def _difference(estimate: dict[str, Any]) -> str:
    return f"{estimate['mean']:+.2f} [{estimate['low']:+.2f}, {estimate['high']:+.2f}]"
