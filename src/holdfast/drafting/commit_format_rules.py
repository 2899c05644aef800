"""Rules about the form of a commit message as a whole: `[scope] Summary`, a prefix, no prefix."""

import re

from holdfast.drafting.clauses import Clause
from holdfast.drafting.commit_statements import (
    MESSAGES,
    commit_rule,
    is_about_commits,
    is_of_something_else,
)
from holdfast.drafting.conventional_commits import type_prefix
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import ADVERBS, NEVER, forms, whole_match

_QUOTED = r"[`\"“](?P<quoted>[^`\"”“]+)[`\"”]"

# --- A format such as `[scope] Summary`

# the parts of "[scope]", "type(scope):" or "area:", and the summary behind them
_SHAPE = re.compile(
    r"(?P<first>\[[\w -]+\]|\w+)?(?P<scope>\([\w ./|-]+\))?(?:!?\??)(?P<colon>:)?"
    r" ?[A-Za-z][\w .'-]*(?:\.\.\.|…)?"
)
_SHAPE_BELOW = forms(  # a code block follows, and its first line is the format
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
# "`feat:`, `fix:`, etc."
_TYPES = r"(?:(?:`\w+:`(?:,? (?:and|or) |, |/)?)+)(?:,? etc\.?)?"
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
_MAX_FIXED_LETTERS = 3  # a longer word in brackets stands for any word: `[area]`


def commit_format_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages follow the format `[scope] Summary`"."""
    statement = clause.statement
    if clause.is_prohibited:
        return []
    shape = ""
    if statement.block and whole_match(_SHAPE_BELOW, clause.text):
        shape = statement.block[0].strip()
    elif match := whole_match(_SHAPE_RULES, clause.text):
        about = " ".join((clause.text, statement.label, *statement.under[-1:])).lower()
        shape = match["quoted"] if "commit" in about else ""
    pattern = message_shape(shape) if shape else None
    return commit_rule(pattern, "requirement") if pattern else []


def message_shape(shape: str) -> str | None:
    """The pattern of messages with a shape such as `[scope] Summary` or `type(scope): summary`;
    None for a shape without brackets and colon, which any text would fit.
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


def commit_prefix_rule(clause: Clause) -> list[Draft]:
    """Reads "prefix commit messages with `[area]`" and "do not use prefixes such as `feat:`"."""
    text = clause.text
    about = is_about_commits(clause.statement) or re.search(r"\bcommits?\b", text, re.I)
    if clause.is_prohibited or not about or is_of_something_else(_AND_TITLES.sub("", text)):
        return []
    if whole_match(_NO_TYPES, text):
        return commit_rule(rf"\A(?!{type_prefix()})", "prohibition")
    if never := whole_match(_NO_PREFIX, text):
        return commit_rule(rf"\A(?!{re.escape(never['quoted'])})", "prohibition")
    match = whole_match(_PREFIX, text)
    pattern = _prefix_pattern(match["quoted"]) if match else None
    return commit_rule(pattern, "requirement") if pattern else []


def _prefix_pattern(prefix: str) -> str | None:
    """The pattern of messages with a prefix such as `[area]` or `area:`; None for another text."""
    if bracketed := _IN_BRACKETS.fullmatch(prefix):
        word = bracketed[1]
        is_fixed = word.islower() and len(word) <= _MAX_FIXED_LETTERS
        tag = re.escape(word) if is_fixed else r"[^\]\n]+"
        return rf"\A\[{tag}\]"
    if re.fullmatch(r"[\w/-]+:", prefix):
        return rf"\A{re.escape(prefix)}"
    return None
