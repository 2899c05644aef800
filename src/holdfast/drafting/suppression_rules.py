"""Rules against comments that silence a tool: "never disable ESLint rules"."""

import re

from holdfast.drafting.clauses import Clause
from holdfast.drafting.code_files import forbid_code
from holdfast.drafting.code_tokens import DOCUMENTS, CodeToken
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import TAIL, any_words, forbid, one_of

_OF_TYPES = r"@ts-(?:ignore|expect-error|nocheck)\b|#\s*type:\s*ignore\b"
_OF_PYTHON_LINTERS = r"#\s*(?:ruff:\s*)?noqa\b"
_OF_CLIPPY = r"#!?\[allow\("
_OF_LINTERS = "|".join(
    (
        *(r"\b(?:eslint|oxlint|stylelint)-disable", r"\bbiome-ignore\b", _OF_PYTHON_LINTERS),
        *(r"\bpylint:\s*disable\b", r"//\s*nolint\b", r"\brubocop:disable\b", _OF_CLIPPY),
    )
)
# a tool as people name it, and the pattern of the comments that silence it
_TOOLS = {
    "eslint": r"\beslint-disable",
    "biome": r"\bbiome-ignore\b",
    "stylelint": r"\bstylelint-disable",
    "clippy": _OF_CLIPPY,
    "ruff": _OF_PYTHON_LINTERS,
    "flake8": _OF_PYTHON_LINTERS,
    "pylint": r"\bpylint:\s*disable\b",
    "mypy": r"#\s*type:\s*ignore\b",
    "pyright": r"#\s*(?:type|pyright):\s*ignore\b",
    "rubocop": r"\brubocop:disable\b",
    "swiftlint": r"\bswiftlint:disable\b",
    "phpstan": r"@phpstan-ignore",
    "typescript": r"@ts-(?:ignore|expect-error|nocheck)\b",
    "type": _OF_TYPES,
    "type[- ]check(?:er|ing)?": _OF_TYPES,
    "lint(?:er|ing)?": _OF_LINTERS,
}
_TOOL = rf"(?P<tool>{one_of(*_TOOLS)})"
_FINDINGS = one_of(
    *("rules?", "errors?", "warnings?", "lints?", "checks?", "diagnostics?", "violations?"),
    *("failures?", "issues?"),
)
_SILENCE = one_of(*"suppress disable silence bypass".split(), "turn off")
_SILENCING = forbid(
    {
        "suppress ESLint warnings": (
            rf"{_SILENCE}(?: (?:or|and) {_SILENCE})? {any_words('the', 'any', 'all')}{_TOOL}"
            rf" {_FINDINGS}(?: with comments| inline| in code)?{TAIL}"
        ),
        "silence the linter": (
            rf"(?:suppress|silence) (?:the )?(?P<tool>lint(?:er|ing)|type[- ]checker){TAIL}"
        ),
    }
)


def suppression_rule(clause: Clause) -> list[Draft]:
    """Reads "never suppress lint warnings"."""
    match = _SILENCING.match(clause.text, clause.is_prohibited)
    if match is None:
        return []
    tool = match["tool"].lower()
    pattern = next(look for name, look in _TOOLS.items() if re.fullmatch(name, tool))
    return forbid_code([CodeToken(pattern, ("*", DOCUMENTS))], [], clause.statement)
