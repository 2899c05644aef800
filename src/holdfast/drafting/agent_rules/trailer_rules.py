"""Rules about what commit messages end with, or must not mention: trailers and credits.

For example:

    All commits must be signed off.           -> commit_includes(trailer="^Signed-off-by:")
    Never add `Co-Authored-By:` to commits.   -> commit_message("^(?!.*co-authored-by:)")
"""

import re

from holdfast.drafting.agent_rules.commit_rules import commit_rule, is_about_commits
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import NEVER, TAIL, form, forms, literal, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of

# --- Trailers that commits need

_TRAILER_WORDS = r"(?: (?:lines?|trailers?|footers?|tags?))*"
_TRAILER = re.compile(
    r"[`\"“]?(?P<name>Signed-off-by|Co-authored-by|Assisted-by|Change-Id|Generated-by):?"
    rf"[^`\"”]{{0,90}}?[`\"”]?{_TRAILER_WORDS}",
    re.I,
)
_COMMITS = re.compile(
    r"(?:(?:the|all|any|every|each|your|git|AI|agent-authored|AI-assisted|AI-generated) )*"
    r"(?:commits?(?: messages?| trailers?)?|patch(?:es)?)",
    re.I,
)
_ADDS = ("add", "include", "append", "use", "put", "insert", "contain", "have", "carry")
_ADD = one_of(*_ADDS[:6])
_PLACES = (Relation.TO, Relation.IN, Relation.ON)


def trailer_rule(clause: Clause) -> list[Draft]:
    """Reads "include an `Assisted-by:` trailer in every commit"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.MUST:
        return []
    if not instruction.object and len(clause.statement.block) == 1:
        return _trailer_in_block(instruction, clause.statement.block[0])
    trailer = _TRAILER.fullmatch(instruction.object)
    place = instruction.text_of(*_PLACES) or ""
    is_added = re.fullmatch(_ADD, instruction.verbs[0]) and instruction.has_only(*_PLACES)
    if trailer is None or not is_added:
        return []
    names_value = not place and ": " in trailer[0]  # which only a commit has
    is_of_commits = names_value or _COMMITS.fullmatch(place)
    return _require(trailer["name"]) if is_of_commits else []


def _trailer_in_block(instruction: Instruction, line: str) -> list[Draft]:
    """Reads "commits must include:", above a code block of one line."""
    place = instruction.text_of(Relation.IN) or ""
    name = re.match(r"([A-Z]\w*(?:-\w+)+): ", line)
    if name is None or not instruction.does(_ADDS) or not _COMMITS.fullmatch(place):
        return []
    return _require(name[1])


_SIGNED_OFF = form(
    "All commits must be signed off",
    r"(?:(?:all|every|each|your|git) )*commits?(?: messages?)? (?:must|should|need to|have to)"
    r" (?:always )?(?:be )?(?:signed[- ]off|sign(?:ed)? off|DCO signed|have a sign-?off)"
    r"|(?:always )?sign[- ]off (?:on )?(?:(?:all|every|each|your) )*commits?"
    r"|(?:always )?(?:use|commit with) `(?:git commit )?(?:-s|--signoff)`",
)


def sign_off_rule(clause: Clause) -> list[Draft]:
    """Reads "all commits must be signed off"."""
    plain = re.sub(r" \(`[^`]*`\)| (?:with|using|via|by) `[^`]*`$", "", clause.text)
    is_signed = whole_match(_SIGNED_OFF, plain) or whole_match(_SIGNED_OFF, clause.text)
    if clause.is_prohibited or is_signed is None:
        return []
    return _require("Signed-off-by")


def _require(trailer: str) -> list[Draft]:
    """Requires that commits have a trailer of this name."""
    spec = measure("commit_includes", trailer=f"(?i)^{trailer}:")
    return [Draft("commit", "requirement", spec)]


# --- Co-authors, which commits must not have

_IN_COMMITS = r" (?:to|in|on)(?: (?:the|all|any|every|each|your|git))* commits?(?: messages?)?"
# what else is said to name the agent: "or any agent attribution"
_CREDIT = one_of("attributions?", "signatures?", "credits?", "trailers?", "footers?", "lines?")
_CO_AUTHOR = (
    r"(?:(?:an?|any|Claude|AI|agent) )*[`\"“]?"
    + one_of(r"co-?authored-by:?(?: [\w<>@. -]+)?", "co-?authors?")
    + rf"[`\"”]?{_TRAILER_WORDS}"
)
_NO_CO_AUTHORS = forms(
    {
        "Never add `Co-Authored-By:` lines or any agent attribution to commits": (
            rf"(?:{NEVER} {_ADD}|no) {_CO_AUTHOR}(?:/[\"“][^\"”]{{1,40}}[\"”])?{_TRAILER_WORDS}"
            rf"(?:,? or (?:[\w-]+ ){{0,3}}{_CREDIT})?"
            rf"(?:{_IN_COMMITS})?{TAIL}"
        ),
        "Never add yourself as a co-author": (
            rf"{NEVER} (?:add|list|include|credit|mention) (?:Claude(?: Code)?|yourself|AI|the AI"
            r"|any AI|the agent|an agent|Copilot|Codex) as (?:an? |the )?co-?author"
            rf"(?:{_IN_COMMITS})?"
        ),
        "Commits carry no co-author trailer": (
            rf"(?:git )?commits? (?:carry|have|include|contain)s? no {_CO_AUTHOR}"
        ),
    }
)


def co_author_rule(clause: Clause) -> list[Draft]:
    """Reads "never add `Co-Authored-By:` lines to commits" and "commits carry no co-author"."""
    text = f"never {clause.text}" if clause.is_prohibited else clause.text
    if whole_match(_NO_CO_AUTHORS, text) is None:
        return []
    name = r"[^\n]*(?:claude|anthropic)" if re.search("claude", text, re.I) else ""
    return _forbid(f"co-authored-by:{name}")


# --- Credits of agents, which commits must not have

# the names of agents, in a message that credits one
_AGENTS = "claude|anthropic|copilot|openai|chatgpt|codex|gemini|cursor|aider"
_CREDITS = (
    rf"co-authored-by:[^\n]*(?:{_AGENTS})"
    rf"|generated (?:with|by|using) [^\n]{{0,20}}(?:{_AGENTS}|\bai\b)"
)
_NO_CREDIT = forms(
    {
        "Never add AI attribution to commits": (
            rf"(?:{NEVER} (?:{_ADD}|leave|mention) |no )(?:(?:any|an?) )?"
            r"(?:(?:AI|AI-generated|LLM|Claude|Claude Code|agent|assistant|tool|bot)[- /])+"
            r"(?:attributions?|signatures?|credits?|co-?authors?|footers?|trailers?|branding)"
            r"(?: lines?)?"
            r"(?: (?:to|in|on|from) (?:(?:any|all|the|your|git) )*commits?(?: messages?)?"
            r"(?: (?:or|and) (?:PRs?|pull requests?)(?: descriptions?)?)?)?"
        ),
    }
)
_QUOTED_IN_COMMITS = re.compile(
    rf"(?:{NEVER} (?:{_ADD}|write|mention|say) |no )[\"“`](?P<text>[^\"”`]{{4,60}})[\"”`]"
    r"(?: (?:lines?|footers?|trailers?|text))?"
    r" (?:to|in|on) (?:(?:any|all|the|your|git) )*commits?(?: messages?)?"
    r"(?: (?:or|and) (?:PRs?|pull requests?)(?: (?:descriptions?|bodies))?)?",
    re.I,
)
_MENTIONED_IN_COMMITS = re.compile(
    rf"{NEVER} (?:mention|reference|credit|name)"
    r" (?P<name>Claude|Copilot|Codex|Gemini|Cursor)(?: Code)?"
    r" in (?:(?:any|all|the|your|git) )*commits?(?: messages?)?",
    re.I,
)
_CREDIT_ALONE = re.compile(  # below "Commits"
    rf"(?:{NEVER} (?:{_ADD}|write) |no )[\"“`](?P<text>(?:generated|co-authored|created|written)\b"
    r"[^\"”`]{4,50})[\"”`](?: (?:lines?|footers?|trailers?|text))?",
    re.I,
)


def attribution_rule(clause: Clause) -> list[Draft]:
    """Reads "no AI attribution in commits" and "never write \"Generated with X\" in commits"."""
    text = f"never {clause.text}" if clause.is_prohibited else clause.text
    if match := _QUOTED_IN_COMMITS.fullmatch(text):
        return _forbid(literal(match["text"]))
    if match := _MENTIONED_IN_COMMITS.fullmatch(text):
        return _forbid(rf"\b{literal(match['name'].lower())}\b")
    if (match := _CREDIT_ALONE.fullmatch(text)) and is_about_commits(clause.statement):
        return _forbid(literal(match["text"]))
    about = (clause.text, clause.statement.label, *clause.statement.under[-1:])
    if whole_match(_NO_CREDIT, text) and any(re.search("commit", name, re.I) for name in about):
        return _forbid(rf"(?:{_CREDITS})")
    return []


def _forbid(pattern: str) -> list[Draft]:
    """Forbids what a pattern finds in the messages of commits, in capital letters or small ones."""
    return commit_rule(rf"(?si)\A(?!.*{pattern})", "prohibition")
