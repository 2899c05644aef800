"""Drafts a suite from a prompt or an instruction file: each line that reads like a rule that can be
checked, with the measure that fits; the others as comments to fill in. No model is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from holdfast.common.files import read_text
from holdfast.errors import UsageError
from holdfast.measures.language import NAMES

Spec = dict[str, Any]
_NUMBERS = {
    word: number
    for number, word in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
_NUMBER = rf"(\d+|{'|'.join(_NUMBERS)})"
_QUOTED = r"[`\"'“‘]([^`\"'”’]+)[`\"'”’]"
_NEVER = r"\b(?:never|don['’]t|do not|must not|mustn['’]t|may not|avoid|without|no)\b"
_CODES = {name.lower(): code for code, name in NAMES.items()}
_ORDINARY = re.compile(
    r"\b(always|never|must|should|do not|don['’]t|avoid|only|use|prefer|ensure|make sure|keep|"
    r"answer|reply|respond|write|run|say|end|begin|start|mention|refuse)\b",
    re.IGNORECASE,
)
_COMMANDS = r"(?:git|npm|yarn|pnpm|pip|sudo|rm|docker|make|curl|uv|cargo|go|kubectl|terraform|brew)"
_CONVENTIONAL = r"^(feat|fix|docs|style|refactor|perf|test|build|ci|chore|revert)(\(.+\))?!?: \S"


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text.lower()]


def _command(text: str) -> str:
    """The beginning of a command as a regular expression."""
    words = [re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", word) for word in text.split()]
    return " ".join(words) + r"(?!\S)"


def _not_used(text: str) -> Spec:
    """The rule against what stands behind "instead of": a command, or a word."""
    if re.match(_COMMANDS + r"\b", text):
        return {"name": "command_not_run", "command": _command(text)}
    return {"name": "never_contains", "words": [text]}


# what a line has to say, and the measure that it then gets; the first that fits is taken
_PATTERNS: tuple[tuple[str, Callable[[re.Match[str]], Spec | None]], ...] = (
    (rf"{_NEVER} (?:ever )?(?:run|execute|call|use) {_QUOTED}",
     lambda m: {"name": "command_not_run", "command": _command(m[1])}),
    (rf"{_NEVER} (?:ever )?(?:run |use )?({_COMMANDS} [a-z-]+)\b",
     lambda m: {"name": "command_not_run", "command": _command(m[1])}),
    (rf"\b(?:run|execute) {_QUOTED} before (?:every |each |any |you |a )?commit",
     lambda m: {"name": "runs_before", "first": _command(m[1]), "then": "git commit"}),
    (rf"{_NEVER} (?:ever )?(?:edit|modify|touch|change|delete|write to|alter)\b.*?{_QUOTED}",
     lambda m: {"name": "file_not_touched", "path": re.sub("/$", "/*", m[1])}),
    (r"\bconventional commits?\b",
     lambda m: {"name": "commit_message", "pattern": _CONVENTIONAL}),
    (rf"\b(?:use|say|write|prefer) {_QUOTED},? (?:instead of|not|rather than|over) {_QUOTED}",
     lambda m: _not_used(m[2])),
    (rf"\b(?:at most|up to|no more than|maximum|max|within|under) {_NUMBER} (sentence|word)s?\b",
     lambda m: {"name": f"at_most_{m[2].lower()}s", "count": _count(m[1])}),
    (r"\b(?:in|with|exactly|of) (?:one|a single|1) sentence\b",
     lambda m: {"name": "one_sentence"}),
    (rf"\bexactly {_NUMBER} sentences\b",
     lambda m: {"name": "sentence_count", "count": _count(m[1])}),
    (rf"\b(?:end|finish|close|sign)\b.*\bwith\b.*?{_QUOTED}",
     lambda m: {"name": "ends_with", "word": m[1]}),
    (rf"\b(?:begin|start|open)\b.*\bwith\b.*?{_QUOTED}",
     lambda m: {"name": "starts_with", "word": m[1]}),
    (r"\bend\b.*\bwith a question\b|\bask\b.*\bquestion at the end\b",
     lambda m: {"name": "asks_back"}),
    (rf"{_NEVER}.*\bemojis?\b",
     lambda m: {"name": "regex", "regex": r"\A[^\p{Extended_Pictographic}]*\Z"}),
    (r"\b(?:use|with|add|include)\b.*\bemojis?\b", lambda m: {"name": "emoji"}),
    (r"\b(?:in|all) (?:lower ?case|lowercase)\b", lambda m: {"name": "lower_case"}),
    (r"\b(?:in|all) (?:upper ?case|uppercase|capitals|capital letters)\b",
     lambda m: {"name": "upper_case"}),
    (r"\b(?:valid|only|as|in) json\b", lambda m: {"name": "json_object"}),
    (rf"{_NEVER}.*\b(?:bullets?|bullet points|lists?)\b",
     lambda m: {"name": "regex", "regex": r"\A(?!(?s:.*)^\s*([-*•]|\d+\.)\s)", "flags": "m"}),
    (r"\b(?:as|in|use) (?:a )?bullet(?: points?| lists?|s)\b", lambda m: {"name": "bullet_list"}),
    (rf"{_NEVER} (?:ever )?(?:say|mention|use|write|reveal|disclose|include)\b.*?{_QUOTED}",
     lambda m: {"name": "never_contains", "words": [m[1]]}),
    (rf"\b(?:always )?(?:mention|include|say|write|contain)\b.*?{_QUOTED}",
     lambda m: {"name": "contains", "words": [m[1]]}),
    (r"\b(?:in|speak|use|only) (" + "|".join(map(re.escape, _CODES)) + r")\b",
     lambda m: {"name": "language", "code": _CODES[m[1].lower()]}),
)  # fmt: skip


def draft_suite(file: Path | str) -> tuple[str, int, int]:
    """A suite in YAML, drafted from a prompt or a file such as AGENTS.md or CLAUDE.md; how many
    lines got a measure, and how many read like rules and got none.
    """
    path = Path(file)
    text = read_text(path).strip()
    if not text:
        raise UsageError(f"{path} is empty; give a file with a prompt or instructions.")
    rules, left, taken = [], [], set[str]()
    for line in _sentences(text):
        spec = _measure_for(line)
        if spec is not None:
            rules.append((line, _name(line, taken), spec))
        elif _ORDINARY.search(line):
            left.append(line)
    head = {"name": re.sub("[^a-z0-9]+", "-", path.stem.lower()).strip("-") or "prompt"}
    lines = [
        f"# Drafted from {path.name}. Read each rule before you trust its number: the measures are"
        " guesses.",
        "# `holdfast measures` lists all of them; `when: {user: ..., reply: ..., tool: ...}` limits"
        " a rule to some turns.",
        yaml.safe_dump(head, allow_unicode=True).rstrip(),
        "cases:",
        f"  - id: {head['name']}",
        "    system_prompt: |",
        _indented(text, 6),
        "    rules:" if rules else "    rules: []  # fill in at least one",
    ]
    for line, name, spec in rules:
        flow = yaml.safe_dump(
            spec, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000
        )
        lines += [f"      # {line}", f"      - id: {name}", f"        measure: {flow.strip()}"]
    if left:
        lines.append("      # Without a measure; take one, or a judge, or leave them out:")
    for line in left:
        lines += [f"      # {line}", "      # - {id: ..., measure: ...}"]
    return "\n".join(lines) + "\n", len(rules), len(left)


def _sentences(text: str) -> list[str]:
    """The lines of a text without the marks of a list, parted at full stops."""
    lines = [re.sub(r"^\s*(?:[-*+•]|\d+[.)]|#+)\s+", "", line).strip() for line in text.split("\n")]
    inside = False
    sentences = []
    for line in lines:
        if line.startswith("```"):
            inside = not inside
        elif line and not inside:
            sentences += [part.strip() for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])", line)]
    return [sentence for sentence in sentences if sentence]


def _measure_for(line: str) -> Spec | None:
    for pattern, spec in _PATTERNS:
        if match := re.search(pattern, line, re.IGNORECASE):
            return spec(match)
    return None


_SMALL = {"the", "and", "you", "your", "with", "for", "not", "that", "this", "are", "all", "any"}


def _name(line: str, taken: set[str]) -> str:
    words = [word for word in re.findall("[a-z0-9]+", line.lower()) if len(word) > 2]
    name = "-".join([word for word in words if word not in _SMALL][:4]) or "rule"
    names = (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
    free = next(candidate for candidate in names if candidate not in taken)
    taken.add(free)
    return free


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else line for line in text.split("\n"))
