"""Rules about the form of a commit message as a whole: `[scope] Summary`, a prefix, no prefix."""

import re

from holdfast.drafting.commit_statements import (
    MESSAGES,
    commit_rule,
    is_about_commits,
    is_of_something_else,
)
from holdfast.drafting.conventional_commits import type_prefix
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import ADVERBS, NEVER, forms, whole_match
from holdfast.drafting.rules_file import Statement

_QUOTED = r"[`\"“]([^`\"”“]+)[`\"”]"

# --- A format such as `[scope] Summary`

# the parts of "[scope]", "type(scope):" or "area:" and the summary behind them
_SHAPE = re.compile(
    r"(?P<first>\[[\w -]+\]|\w+)?(?P<scope>\([\w ./|-]+\))?(?:!?\??)(?P<colon>:)?"
    r" ?[A-Za-z][\w .'-]*(?:\.\.\.|…)?"
)
_SHAPE_BELOW = forms(  # in the first line of a code block
    {
        "Use the following commit message format": (
            r"(?:use (?:the|this)(?: following)? )?commit(?: message)? format"
            r"(?: for commit messages)?"
        )
    }
)
_SHAPE_RULES = forms(
    {
        "Commit messages must follow the format `[scope] Summary`": (
            r"(?:all )?commit messages? (?:must |should )?(?:follow|use|have)(?: the)?"
            rf" format {_QUOTED}"
        ),
        "Use the `type(scope): summary` format": (
            rf"(?:use|follow) the {_QUOTED} format(?: for (?:all )?commit messages)?"
        ),
    }
)


def message_shape(shape: str) -> str | None:
    """The pattern of a shape such as `[scope] Summary` or `type(scope): summary`; None if it has
    neither brackets nor a colon, so that any text would fit it.
    """
    parts = _SHAPE.fullmatch(re.sub(r"[<>]", "", shape))
    if parts is None:
        return None
    is_bracketed = (parts["first"] or "").startswith("[")
    if not (parts["colon"] or is_bracketed):
        return None
    first = r"\[[^\]\n]+\]" if is_bracketed else r"[\w-]+"
    scope = r"(?:\([^)\n]+\))?!?" if parts["scope"] or parts["colon"] else ""
    return rf"\A{first}{scope}{parts['colon'] or ''} \S"


def commit_format_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow the format `[scope] Summary`."""
    if prohibits:
        return None
    shape = ""
    if statement.block and whole_match(_SHAPE_BELOW, clause):
        shape = statement.block[0].strip()
    elif match := whole_match(_SHAPE_RULES, clause):
        about = " ".join((clause, statement.label, *statement.under[-1:])).lower()
        shape = match[1] if "commit" in about else ""
    pattern = message_shape(shape) if shape else None
    return commit_rule(pattern, "requirement") if pattern else None


# --- A prefix, or none

_OF_MESSAGES = rf"{MESSAGES}(?: titles?| subjects?)*"
_STARTS = r"(?:must |should )?(?:start|begin|be prefixed)s?"
_UP_TO_40_SIGNS = r".{0,40}"
_PREFIX = forms(
    {
        "Prefix all commit messages with `[area]`": (
            rf"{ADVERBS}(?:prefix|start|begin)(?: all| your| the| every| each)* {_OF_MESSAGES}"
            rf" with (?:the |an? )?{_QUOTED}(?: prefix)?{_UP_TO_40_SIGNS}"
        ),
        "Every commit message must start with `[area]`": (
            rf"(?:all |every )?{MESSAGES} {_STARTS} with {_QUOTED}{_UP_TO_40_SIGNS}"
        ),
        "Use `area:` commit prefixes": (
            rf"{ADVERBS}use {_QUOTED} (?:commit )?prefix(?:es)?(?: for {MESSAGES})?"
            r"(?: matching the scope)?"
        ),
    }
)
_TYPES = r"(?:(?:`\w+:`(?:,? (?:and|or) |, |/)?)+)(?:,? etc\.?)?"  # "`feat:`, `fix:`, etc."
_NO_TYPES = forms(
    {
        "Do not use prefixes such as `feat:` or `fix:`": (
            rf"(?:{NEVER} (?:use|add|include|write) |no )(?:Conventional Commits? )?"
            rf"(?:(?:type )?prefix(?:es)?(?: like| such as)? )?{_TYPES}(?: prefix(?:es)?)?"
        ),
        "Never use Conventional Commits prefixes": (
            rf"{NEVER} use (?:conventional|semantic) commits?(?: type)?"
            r"(?: prefix(?:es)?| format)?"
        ),
    }
)
_NO_PREFIX = forms(
    {
        "Do not prefix PR titles or commit subjects with `[codex]`": (
            rf"{NEVER} prefix (?:PR titles (?:or|and) )?{_OF_MESSAGES}(?: or PR titles)?"
            rf" with {_QUOTED}"
        )
    }
)
_AND_TITLES = re.compile(r"PR titles (?:or|and) ")
_IN_BRACKETS = re.compile(r"\[([\w<> -]+)\]")
_SHORT_TAG = 3  # letters; a longer word in brackets stands for any: `[area]`


def commit_prefix_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Prefix commit messages with `[area]`; do not use prefixes such as `feat:`."""
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause, re.I)
    if prohibits or not about or is_of_something_else(_AND_TITLES.sub("", clause)):
        return None
    if whole_match(_NO_TYPES, clause):
        return commit_rule(rf"\A(?!{type_prefix()})", "prohibition")
    if never := whole_match(_NO_PREFIX, clause):
        return commit_rule(rf"\A(?!{re.escape(never[1])})", "prohibition")
    match = whole_match(_PREFIX, clause)
    pattern = _prefix_pattern(match[1]) if match else None
    return commit_rule(pattern, "requirement") if pattern else None


def _prefix_pattern(prefix: str) -> str | None:
    """The pattern of messages that begin with `[area]` or `area:`; None for another prefix."""
    if bracketed := _IN_BRACKETS.fullmatch(prefix):
        is_fixed = bracketed[1].islower() and len(bracketed[1]) <= _SHORT_TAG
        tag = re.escape(bracketed[1]) if is_fixed else r"[^\]\n]+"
        return rf"\A\[{tag}\]"
    if re.fullmatch(r"[\w/-]+:", prefix):
        return rf"\A{re.escape(prefix)}"
    return None
