"""Writes the suite `starter`: held-out instructions of every family the default model was trained
for.

`python training/starter_suite.py src/holdfast/assets/suites/starter.yaml`
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from cases import held_out_cases, starters

PER_FAMILY = 5
SEED = 3  # different from the seeds for choosing and reporting checkpoints

HEADER = """# Written by training/starter_suite.py: {count} held-out instructions, {per_family} of each family the default model was trained for.
# Frames, values and probe wordings were never seen in training; ids that end in "-new" have a phrase that was not seen either.
"""


def main() -> None:
    cases = []
    for case in held_out_cases(PER_FAMILY, SEED):
        unseen = case.pop("unseen_phrase")
        case["id"] += "-new" if unseen else ""
        cases.append(case)
    text = yaml.safe_dump(
        {"name": "starter", "starters": starters(60, SEED), "cases": cases},
        sort_keys=False,
        allow_unicode=True,
        width=140,
    )
    Path(sys.argv[1]).write_text(
        HEADER.format(count=len(cases), per_family=PER_FAMILY) + text, encoding="utf-8"
    )
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
