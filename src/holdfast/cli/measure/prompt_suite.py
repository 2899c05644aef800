"""The suite that `holdfast try` drafts from a bot's prompt.

It prints the rules, the other lines and where the suite is:

    bot.txt: 4 rules drafted.
      rule at-most-40-words: Answer in at most 40 words.
      [...]
    Not measured, as no measure was found for these lines:
      line 5: Never mention fines.
        needs a judge
    Suite: runs/try-bot.yaml, to edit.
"""

import hashlib
import itertools
from pathlib import Path
from typing import NamedTuple

from holdfast.cli.shared.notes import note_if_long
from holdfast.drafting.drafted_files import DraftedFile, UndraftedLine, draft_lines
from holdfast.drafting.probing import probed
from holdfast.drafting.prohibited_statements import state_in_full
from holdfast.drafting.suite_text import sentence_of, suite_text
from holdfast.errors import UsageError, cut
from holdfast.files import write_whole
from holdfast.plurals import count_of

_MAX_LINE_LENGTH = 90  # characters of a line of the prompt that are printed


def draft_rules(prompt: Path) -> DraftedFile:
    """Drafts the rules of a prompt that a conversation can test; keeps its other lines, too.

    Raises:
        UsageError: no rule could be drafted; then the lines are printed.
    """
    note_if_long(prompt)
    drafted = probed(draft_lines(prompt))
    if not drafted.rules:
        print_draft(drafted)
        raise _no_rule(drafted)
    return drafted


def print_draft(drafted: DraftedFile) -> None:
    """Prints the rules of a prompt, then its other lines with the reason why they are not rules."""
    print(f"{drafted.path}: {count_of(len(drafted.rules), 'rule')} drafted.")
    for rule in drafted.rules:
        print(
            f"  rule {rule.id}: {cut(sentence_of(state_in_full(rule.statement)), _MAX_LINE_LENGTH)}"
        )
    others = [line for line in drafted.lines if isinstance(line, UndraftedLine)]
    if others:
        print("Not measured, as no measure was found for these lines:")
    for statement, undrafted in others:
        print(f"  line {statement.line}: {cut(sentence_of(statement), _MAX_LINE_LENGTH)}")
        print(f"    {undrafted.reason}")


def _no_rule(drafted: DraftedFile) -> UsageError:
    """The error for a prompt without rules, under which a run would have nothing to measure."""
    return UsageError(
        f"No line of {drafted.path} is a rule that a measure can check; write one like “Always"
        " reply in German.”, “Keep replies under 60 words.”, “Never use emojis.” or “End every"
        ' reply with "Ciao!"”, or put the rules and their questions into a suite, as `holdfast'
        " docs measuring` shows, and give it to `holdfast drift --suite FILE.yaml`.",
        option="prompt",
        value=str(drafted.path),
    )


class FirstSuite(NamedTuple):
    """The suite of a first run: the rules of the prompt that a conversation can test."""

    spec: str  # the value for `--suite`
    name: str  # part of the name of the run's folder


def write_suite(drafted: DraftedFile, folder: Path) -> FirstSuite:
    """Writes the drafted suite, unless an earlier run wrote it, and prints where it is.

    The file's first line identifies the version of the prompt, so that the user may edit the other
    lines. If the prompt has changed since, its suite gets a new name, with the next number.
    """
    text = suite_text([drafted])
    digest = hashlib.sha256(drafted.text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    first_line = f"# `holdfast try` drafted this from version {digest} of {drafted.path.name}.\n"
    for number in itertools.count(1):
        name = drafted.path.stem if number == 1 else f"{drafted.path.stem}-{number}"
        file = folder / f"try-{name}.yaml"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, first_line + text, "another folder with --out")
            print(f"Suite: {file}, to edit.")
            return FirstSuite(str(file), name)
        earlier = file.read_text(encoding="utf-8", errors="replace")
        if earlier.startswith(first_line):
            print(f"Suite: {file}, which exists already and is used unchanged.")
            is_edited = earlier != first_line + text
            return FirstSuite(str(file), f"{name}-edited" if is_edited else name)
    raise AssertionError("there is always a next number")
