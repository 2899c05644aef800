"""Rules about the names of new branches: "branch names: `feature/description`"."""

import re
from collections.abc import Sequence

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import ADVERBS, CODES, forms, whole_match
from holdfast.drafting.rules_file import Statement

_NAMING = r"(?:(?: |-)(?:naming|names?|prefix(?:es)?|conventions?|format|pattern|strategy))"
_NAMES_LABEL = forms(
    {"Branch naming convention": rf"(?:git |feature )?branch(?:es)?{_NAMING}*(?: \([^()]*\))?"}
)
_NAMES_ALONE = forms(  # behind such a label, or below such a heading
    {
        "use `feature/description` or `fix/description`": (
            rf"(?:use |follow )?(?P<names>{CODES})(?:,? etc\.?)?"
        )
    }
)
_NAMING_RULES = forms(
    {
        "Branch names must start with `feature/`": (
            r"(?:all |new |git |feature )*branch(?:es| names)?"
            r" (?:must |should )?(?:always )?(?:be )?(?:named|follow|use|start with|begin with"
            rf"|prefixed with)(?: the)?(?: pattern| format| prefix)?:? (?P<names>{CODES})"
        ),
        "Create branches with the prefix `claude/`": (
            rf"{ADVERBS}(?:create|name|prefix|start)(?: all| new| your| every)*"
            r" branch(?:es)?(?: names)?"
            rf" (?:with|as|like|named)(?: the)?(?: prefix(?:es)?| format)? (?P<names>{CODES})"
        ),
    }
)
_NAME = re.compile(r"(?P<first>[<\[{(]?[\w-]+[>\]})]?)/.*")  # `feature/xyz`, `<type>/<name>`
_ANY_WORD = re.compile(r"[<\[{(].*|type|kind|category|prefix|username|user|name|author", re.I)
_REMOTES = {"origin", "upstream", "remotes"}  # `origin/main` is a branch of one of these
_NEW_BRANCH = r"git (?:checkout -[bB]|switch -[cC]|branch(?! -)) "
_NO_NAME = r"\d*&?[<>]|&>|\S*[$`]"  # a redirection, or a name that only the shell knows


def branches_below(statement: Statement) -> list[Draft]:
    """Reads a code block with `<type>/<description>` right below the heading "Branch naming"."""
    if len(statement.block) != 1 or not whole_match(_NAMES_LABEL, statement.text.strip("# *:")):
        return []
    return _branch_names([statement.block[0].strip()])


def branch_name_rule(clause: Clause) -> list[Draft]:
    """Reads "branch names: `feature/description`, `fix/description`"."""
    if clause.is_prohibited:
        return []
    above = (clause.statement.label, *clause.statement.under[-1:])
    is_labelled = any(whole_match(_NAMES_LABEL, name.strip(" :.")) for name in above)
    match = whole_match(_NAMING_RULES + (_NAMES_ALONE if is_labelled else ()), clause.text)
    return _branch_names(codes_in(match["names"])) if match else []


def _branch_names(examples: Sequence[str]) -> list[Draft]:
    """The rule that new branches have names like these examples; [] if an example has no part
    before a slash.
    """
    names = [_NAME.fullmatch(example) for example in examples]
    firsts = [name["first"] for name in names if name]
    if len(firsts) < len(names) or not firsts or _REMOTES & set(firsts):
        return []
    if any(map(_ANY_WORD.fullmatch, firsts)):
        begins = r"[\w.-]+/"
    else:
        begins = any_of(map(_escape, firsts)) + "/"
    spec = measure("command_not_run", command=rf"{_NEW_BRANCH}(?!{begins}|{_NO_NAME})\S")
    return [Draft("command", "requirement", spec)]


def _escape(name: str) -> str:
    return re.escape(name).replace(r"\-", "-")
