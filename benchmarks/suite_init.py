"""Measures precision and recall of `holdfast suite init` on public rules files.

Before the command was run, the lines of the files were labelled by hand: which of them the measures
of the package can decide, and by which measure. The drafts of the command were then judged by hand,
rule by rule. `suite_init_labels.json` has the labels (repository, commit, path and line, with
hashes and no text of the files) and the judgements. The files themselves are not in the repository;
FOLDER has some as OWNER+NAME/PATH, at the commit of the labels.

Each set was unseen when it was first measured, and used to develop the command afterwards. So only
the numbers `at_first_sight` say how well the command does on other files; those of the present
version, `now`, say how far the forms seen so far are covered, in the files that FOLDER has. The
comments on `GROUPS` say how each set was chosen.

    python benchmarks/suite_init.py FOLDER --out benchmarks/results/suite_init.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stamp import measured_on, write_record

from holdfast.analysis.statistics import SCORES, estimate
from holdfast.drafting.drafted_files import statements_of
from holdfast.drafting.drafts import Undrafted
from holdfast.drafting.line_rules import draft

LABELS = Path(__file__).parent / "suite_init_labels.json"
# The sets, in groups that are also counted together. In each group, a set was drafted after
# improvements suggested by the one before it.
GROUPS = {
    # Mostly from known repositories. Labelled before there were measures of written code, of
    # questions, of pull requests and of joint changes, and drafted before clauses were read by a
    # grammar.
    "before_the_grammar": ["first", "second", "third", "fourth"],
    # Mostly from known repositories, after both.
    "with_the_grammar": ["fifth", "sixth"],
    # From small repositories drawn at random, once checklists and lists of prohibitions were read.
    "with_lists": ["seventh", "eighth"],
    # Half from small repositories drawn at random, half from known ones.
    "with_forms": ["ninth", "tenth"],
    # Prompts of chat bots besides rules files.
    "with_never": ["eleventh", "twelfth", "thirteenth"],
    # Once libraries, options of commands, names of branches and further kinds of rules were read;
    # half of the fourteenth is from small repositories drawn at random.
    "with_more_kinds": ["fourteenth", "fifteenth"],
    # Half from small repositories drawn at random, once most readers matched one grammar. Labelled
    # by somebody who had seen no source of the command, and who counted every line that a measure
    # could decide.
    "with_one_grammar": ["sixteenth"],
    # Once tables, code blocks below sentences and names of folders in headings were read; labelled
    # by people who knew which measures there are.
    "with_blocks": ["seventeenth", "eighteenth", "nineteenth"],
    # Drawn at random, by the commits in a public index's lists, with many files without a single
    # decidable line. The labels count every line that a measure could decide. The twenty-first was
    # drafted once the wrong drafts of the twentieth were mended.
    "drawn_before": ["twentieth", "twenty-first"],
    # Drawn in the same way, once the wrong drafts of the twenty-first were mended.
    "drawn_after": ["twenty-second"],
    # Chosen by such commits as well, mostly from lists of files in folders of larger repositories,
    # so more of their lines are decidable. The twenty-third was drafted once statements about code,
    # steps of procedures and headings of parts were refused, and names of folders, types, branches
    # of commits and bare commands were read; the twenty-sixth after improvements that all drafts
    # and missed lines of these sets suggested.
    "drawn_later": ["twenty-third", "twenty-fourth", "twenty-fifth", "twenty-sixth"],
    # Drawn by such commits too, from lists of names that no earlier set was drawn from, a
    # quarter of them prompts of chat bots and agents, in any language; drafted before their wrong
    # drafts were mended.
    "drawn_last": ["twenty-seventh"],
}
# The forms of rules, by the measures that decide them; every other measure is of a reply.
FORMS = {
    "prohibition": (
        "code_not_written",
        "command_not_run",
        "commit_branch",
        "commit_excludes",
        "file_not_touched",
        "text_kept",
        "tool_not_called",
    ),
    "requirement": (
        "changes_together",
        "code_written",
        "command_run",
        "commit_includes",
        "commit_message",
        "prefers",
        "pull_request",
        "runs_after",
        "runs_before",
        "tool_called",
    ),
    "gate": ("asks_before",),
}


class DraftedRule(NamedTuple):
    """A rule that is drafted from a line of a file."""

    line: int
    kind: str
    measure: dict[str, Any]  # as a suite has it


@cache  # a file is counted in its set, and in all
def drafted_in(path: Path, text: str) -> list[DraftedRule]:
    """The rules that the command drafts from a file."""
    rules = []
    statements, of_bot = statements_of(path, text)
    for statement in statements:
        drafts = draft(statement, of_bot)
        if not isinstance(drafts, Undrafted):
            rules += [DraftedRule(statement.line, rule.kind, rule.measure.entry) for rule in drafts]
    return rules


def share(part: int, whole: int) -> dict[str, Any]:
    """A share with its exact binomial interval."""
    scores = np.array([1.0] * part + [0.0] * (whole - part))
    mean = estimate(scores, SCORES)
    return {"of": whole, "count": part, "share": mean.mean, "low": mean.low, "high": mean.high}


def path_of(file: dict[str, Any], folder: Path) -> Path:
    """Where a labelled file is, if the folder has it."""
    return folder / file["repo"].replace("/", "+") / file["path"]


def text_of(file: dict[str, Any], folder: Path) -> str:
    """The text of a labelled file; stops if it is of another commit."""
    path = path_of(file, folder)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise SystemExit(f"{path} is not the file of commit {file['commit']}; fetch that one.")
    return content.decode()


def form_of(measure: str | None) -> str:
    """The form of a rule that this measure decides: "prohibition" for "command_not_run"."""
    return next((form for form, measures in FORMS.items() if measure in measures), "reply")


def measure_set(files: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Precision and recall over a set of files, and by kind; drafts without a judgement are named.

    A line is found if a rule is drafted from it, and all rules drafted from it are right.
    """
    right: Counter[str] = Counter()
    drafted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    decidable: Counter[str] = Counter()
    unjudged = []
    for file in files:
        judgements = {
            (row["line"], json.dumps(row["measure"])): row["right"] for row in file["drafted"]
        }
        right_by_line: dict[int, list[bool]] = {}
        for line, kind, measure in drafted_in(path_of(file, folder), text_of(file, folder)):
            is_right = judgements.get((line, json.dumps(measure)))
            if is_right is None:
                unjudged.append(f"{file['repo']} {file['path']}:{line} {json.dumps(measure)}")
                continue
            drafted[kind] += 1
            right[kind] += is_right
            right_by_line.setdefault(line, []).append(is_right)
        for label in file["decidable"]:
            decidable[label["kind"]] += 1
            found[label["kind"]] += all(right_by_line.get(label["line"], [False]))
    kinds = sorted({*drafted, *decidable})
    return {
        "files": len(files),
        "precision": share(right.total(), drafted.total()),
        "recall": share(found.total(), decidable.total()),
        "by_kind": {
            kind: {
                "precision": share(right[kind], drafted[kind]),
                "recall": share(found[kind], decidable[kind]),
            }
            for kind in kinds
        },
        "unjudged": unjudged,
    }


def summed(counts: list[dict[str, Any]]) -> Counter[str]:
    """The sums of what several sets counted."""
    keys = ("drafted", "right", "decidable", "found")
    return Counter({key: sum(row.get(key, 0) for row in counts) for key in keys})


def shares_of(counts: Counter[str]) -> dict[str, Any]:
    """Precision and recall of what was counted."""
    return {
        "precision": share(counts["right"], counts["drafted"]),
        "recall": share(counts["found"], counts["decidable"]),
    }


def at_first_sight(labels: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Precision and recall of each set, and of each group, when it was first measured.

    By form too, if that was counted.
    """
    sets = labels["sets"]
    counts = labels["at_first_sight"]
    rows = {}
    for group, names in ({name: [name] for name in counts} | GROUPS).items():
        chosen = [counts[name] for name in names]
        total = summed(chosen)
        rows[group] = {"files": sum(len(sets[name]) for name in names), **shares_of(total)}
        if all("by_form" in row for row in chosen):
            forms = sorted({form for row in chosen for form in row["by_form"]})
            rows[group]["by_form"] = {
                form: shares_of(summed([row["by_form"].get(form, {}) for row in chosen]))
                for form in forms
            }
    return rows


def measure_now(labels: dict[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Precision and recall of the present version on the files of each set that the folder has."""
    files_by_set = {
        name: [file for file in files if path_of(file, folder).exists()]
        for name, files in labels["sets"].items()
    }
    files_by_set["all"] = [file for files in files_by_set.values() for file in files]
    return {name: measure_set(files, folder) for name, files in files_by_set.items() if files}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    record = {
        "measured_on": measured_on(),
        "at_first_sight": at_first_sight(labels),
        "now": measure_now(labels, arguments.folder),
    }
    write_record(record, arguments.out)
    if record["now"]["all"]["unjudged"]:
        raise SystemExit("Judge these drafts:\n" + "\n".join(record["now"]["all"]["unjudged"]))


if __name__ == "__main__":
    main()
