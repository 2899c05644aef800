"""Rules against comments that silence a tool: "never disable ESLint rules"."""

import re

from holdfast.drafting.clauses import Clause
from holdfast.drafting.code_files import forbid_code
from holdfast.drafting.code_tokens import DOCUMENTS, CodeToken
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, one_of, whole_match
from holdfast.drafting.instructions import Modality, instruction_of

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
_SILENCE = ("suppress", "disable", "silence", "bypass")
_WITH_COMMENTS = re.compile(r"(?:inline )?(?:comments|code)", re.I)
_SILENCED = forms(
    {
        "ESLint warnings": rf"(?:(?:the|any|all) )*{_TOOL} {_FINDINGS}(?: inline)?",
        "the linter": r"(?:the )?(?P<tool>lint(?:er|ing)|type[- ]checker)",
    }
)


def suppression_rule(clause: Clause) -> list[Draft]:
    """Reads "never suppress lint warnings"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.NEVER:
        return []
    places = [text for word, text in instruction.circumstances if word in ("in", "with")]
    is_always = instruction.has_only("in", "with") and all(map(_WITH_COMMENTS.fullmatch, places))
    match = whole_match(_SILENCED, instruction.object)
    if match is None or not is_always or not instruction.does(_SILENCE):
        return []
    tool = match["tool"].lower()
    pattern = next(look for name, look in _TOOLS.items() if re.fullmatch(name, tool))
    return forbid_code([CodeToken(pattern, ("*", DOCUMENTS))], [], clause.statement)
