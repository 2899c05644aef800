"""Writes knowledge questions for the default model, with four choices, including sums that were
never asked in training.

`python training/knowledge_questions.py src/holdfast/assets/knowledge.jsonl`
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from knowledge import ask

COUNT = 300
SEED = 5


def questions(count: int, seed: int) -> list[dict]:
    """Distinct questions; the same question with different choices counts as the same."""
    rng = random.Random(f"knowledge questions {seed}")
    rows: dict[str, dict] = {}
    while len(rows) < count:
        question = ask(rng, with_choices=True, test=True)
        text = question.text.partition(" A) ")[0]  # without the list of the choices
        answer = question.choices.index(question.answer)
        row = {"question": text, "choices": question.choices, "answer": answer}
        rows.setdefault(text, row)
    return list(rows.values())


def main() -> None:
    rows = questions(COUNT, SEED)
    Path(sys.argv[1]).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} questions")


if __name__ == "__main__":
    main()
