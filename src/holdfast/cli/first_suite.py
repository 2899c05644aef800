"""The suite of a first run: the rules of a bot's prompt that a conversation can test."""

import hashlib
from pathlib import Path

from holdfast.cli.drift import plain_name
from holdfast.cli.progress import note_if_long
from holdfast.common.files import write_whole
from holdfast.common.plurals import plural
from holdfast.drafting.probing import PROBES, probed
from holdfast.drafting.suite_text import (
    DraftedFile,
    DraftedRule,
    draft_lines,
    sentence_of,
    suite_text,
)
from holdfast.errors import UsageError

_SHOWN = 90  # characters of a line of the prompt


def draft_rules(prompt: Path) -> DraftedFile:
    """The rules of a prompt that a conversation can test; prints them, and the other lines."""
    note_if_long(prompt)
    file = probed(draft_lines(prompt))
    print(f"{prompt}: {plural(len(file.rules), 'rule')} drafted.")
    for rule in file.rules:
        print(f"  rule {rule.id}: {_shortened(sentence_of(rule.statement))}")
    others = [line for line in file.lines if not isinstance(line, DraftedRule)]
    if others:
        print("No rule, and so not measured:")
    for statement, undrafted in others:
        print(f"  line {statement.line}: {_shortened(sentence_of(statement))}")
        print(f"    {undrafted.reason}")
    if not file.rules:
        raise UsageError(
            f"No line of {prompt} is a rule that a measure decides; say a rule as in “Always reply"
            " in German.”, “Keep replies under 60 words.”, “Never use emojis.” or “End every reply"
            ' with "Ciao!"”, or write the rules and their questions into a suite, as `holdfast docs'
            " measuring` shows, and give it to `holdfast drift --suite FILE.yaml`.",
            option="prompt",
            value=str(prompt),
        )
    return file


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1].rstrip()}…"


def write_suite(drafted: DraftedFile, folder: Path) -> Path:
    """Writes the drafted suite; one that is there already, and may have been edited, stays."""
    digest = hashlib.sha256(drafted.text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    file = folder / f"try-{plain_name(drafted.path.stem)}-{digest}.yaml"
    if file.exists():
        print(f"Suite: {file}, which exists already and is used unchanged.")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, suite_text([drafted], PROBES), "another folder with --out")
        print(f"Suite: {file}, to edit.")
    return file
