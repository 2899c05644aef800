"""Rules about the trailers of a commit: "never add `Co-Authored-By:` lines", "include an
`Assisted-by:` trailer in every commit".
"""

import re

from holdfast.drafting.agent_rules.commit_statements import commit_rule
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import NEVER, TAIL, forms, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Modality, instruction_of

_LINE = r"(?: (?:lines?|trailers?|footers?|tags?))*"
_TRAILER = re.compile(
    r"[`\"“]?(?P<name>Signed-off-by|Co-authored-by|Assisted-by|Change-Id|Generated-by):?"
    rf"[^`\"”]{{0,90}}?[`\"”]?{_LINE}",
    re.I,
)
_COMMITS = re.compile(
    r"(?:(?:the|all|any|every|each|your|git|agent-authored|AI-assisted|AI-generated) )*"
    r"commits?(?: messages?| trailers?)?",
    re.I,
)
_ADD = one_of("add", "include", "append", "use", "put", "insert")
_IN_COMMITS = r" (?:to|in|on)(?: (?:the|all|any|every|each|your|git))* commits?(?: messages?)?"
# what else is said to name the agent: "or any agent attribution"
_CREDIT = one_of("attributions?", "signatures?", "credits?", "trailers?", "footers?", "lines?")
_CO_AUTHOR = (
    r"(?:(?:an?|any|Claude|AI|agent) )*[`\"“]?"
    + one_of(r"co-?authored-by:?(?: [\w<>@. -]+)?", "co-?authors?")
    + rf"[`\"”]?{_LINE}"
)
_NO_CO_AUTHORS = forms(
    {
        "Never add `Co-Authored-By:` lines or any agent attribution to commits": (
            rf"(?:{NEVER} {_ADD}|no) {_CO_AUTHOR}(?:,? or (?:[\w-]+ ){{0,3}}{_CREDIT})?"
            rf"(?:{_IN_COMMITS})?{TAIL}"
        ),
        "Commits carry no co-author trailer": (
            rf"(?:git )?commits? (?:carry|have|include|contain)s? no {_CO_AUTHOR}"
        ),
    }
)


def trailer_rule(clause: Clause) -> list[Draft]:
    """Reads "include an `Assisted-by:` trailer in every commit"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.MUST:
        return []
    trailer = _TRAILER.fullmatch(instruction.object)
    place = instruction.text_of(Relation.TO, Relation.IN, Relation.ON) or ""
    is_added = re.fullmatch(_ADD, instruction.verbs[0]) and instruction.has_only(
        Relation.TO, Relation.IN, Relation.ON
    )
    if trailer is None or not is_added or not _COMMITS.fullmatch(place):
        return []
    spec = measure("commit_includes", trailer=f"(?i)^{trailer['name']}:")
    return [Draft("commit", "requirement", spec)]


def co_author_rule(clause: Clause) -> list[Draft]:
    """Reads "never add `Co-Authored-By:` lines to commits" and "commits carry no co-author"."""
    text = f"never {clause.text}" if clause.is_prohibited else clause.text
    if whole_match(_NO_CO_AUTHORS, text) is None:
        return []
    name = r"[^\n]*(?:claude|anthropic)" if re.search("claude", text, re.I) else ""
    return commit_rule(rf"(?si)\A(?!.*co-authored-by:{name})", "prohibition")
