"""Rules about who a commit names: sign-offs, co-authors and other credits of an agent."""

import re

from holdfast.drafting.clauses import Clause
from holdfast.drafting.commit_statements import commit_rule, is_about_commits
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    NEVER,
    TAIL,
    any_words,
    forbid,
    forms,
    one_of,
    whole_match,
)

# --- Sign-offs

_LINES = r"(?: (?:lines?|trailers?|footers?|tags?))?"
_DCO = r"(?:DCO|developer certificate of origin)"
_SIGN_OFF = rf"(?:(?:{_DCO} )?(?:sign(?:ed)?[ -]?offs?|signed-off-by)(?: \({_DCO}\))?)"
_COMMITS = (
    any_words("all", "every", "each", "any", "your", "the", "git", "of", "its", "their", "own")
    + r"commits?(?: messages?| logs?)?"
)
# `git commit -s`, `--signoff`, `-sm "message"`
_OPTION = r"(?-i:--signoff|-[a-z]{0,3}s[a-z]{0,3})(?: [^`]*)?`"
_SIGNING = rf"`(?:git commit )?{_OPTION}"
_WITH = r" ?(?:with|using|via|by|\(| - |:)?(?: (?:passing|using|adding|the))*"
_WITH_OPTION = rf"(?:{_WITH} ?{_SIGNING})"
_WHEN_COMMITTING = r"(?:when committing,? )?"
# a purpose, which is not a condition: "to agree to the DCO"
_FOR = (
    r"(?: (?:flag|option))?\)?(?: (?:to|for|so|per|as|under|in)"
    r" (?:(?!\b(?:if|when|unless|only|not)\b).)*| \(DCO\))?"
)
_MUST = r"(?:must|should|need to|have to|are required to)"
_SIGNED_OFF = forms(
    {
        "When committing, use `git commit -s`": (
            rf"{_WHEN_COMMITTING}{ADVERBS}(?:use|run) (?:the )?`git commit {_OPTION}"
            rf"(?: (?:when committing|(?:to|for|on|with|in) {_COMMITS}))?{_FOR}"
        ),
        "Always commit with the `-s` flag": (
            rf"{_WHEN_COMMITTING}{ADVERBS}commit (?:with|using) (?:the )?{_SIGNING}{_FOR}"
        ),
        "Pass `--signoff` when committing": (
            rf"{ADVERBS}(?:use|pass|add|include) (?:the )?{_SIGNING}(?: (?:flag|option))?"
            rf" (?:when committing|(?:to|for|on|with|in) {_COMMITS}|to sign[ -]?off {_COMMITS})"
            rf"{_FOR}"
        ),
        "Sign off every commit": (
            rf"{ADVERBS}sign[ -]?off(?: on)? {_COMMITS}{_WITH_OPTION}?{_FOR}"
        ),
        "Sign all commits with DCO using `git commit -s`": (
            rf"{ADVERBS}sign {_COMMITS}(?:{_WITH}(?: the)? DCO)?{_WITH_OPTION}{_FOR}"
        ),
        "All commits must be signed off": (
            rf"{_COMMITS} {_MUST} (?:always )?be (?:DCO )?"
            rf"(?:signed[ -]?off{_WITH_OPTION}?|signed{_WITH_OPTION}){_FOR}"
        ),
        "Every commit needs a Signed-off-by line": (
            rf"{_COMMITS} (?:(?:must|should) (?:have|include|contain|carry)|(?:need|require)s?)"
            rf" (?:an? |the )?[`\"]?{_SIGN_OFF}:?[`\"]?{_LINES}{_WITH_OPTION}?{_FOR}"
        ),
        "DCO sign-off is required on all commits": (
            rf"{_SIGN_OFF} (?:is |are )?(?:required|mandatory)(?: (?:on|for|in) {_COMMITS})?"
            rf"{_WITH_OPTION}?{_FOR}"
        ),
        "Sign-off via `git commit --signoff`": rf"{_SIGN_OFF}{_WITH_OPTION}",
    }
)
_SIGN_OFF_LABEL = forms(
    {
        "Sign off commits": rf"sign(?:[ -]?off)?(?: {_COMMITS})?",
        "Signed-off-by required": rf"{_SIGN_OFF}(?: required)?",
        "DCO": r"DCO",
    }
)
_OPTION_ALONE = forms(
    {"Always use `git commit -s`": rf"{any_words('always', 'use', 'run')}{_SIGNING}{_FOR}"}
)
_SIGNING_OFF = forbid(
    {
        "add `Signed-off-by` lines to commits": (
            rf"(?:add|include|use|put|append|insert|write|forge)(?: an?| any| the| your)? "
            rf"(?:[`\"]?{_SIGN_OFF}:?[^`\"]{{0,40}}[`\"]?{_LINES}"
            rf"|{_SIGNING}(?: (?:flag|option))?)(?: (?:to|in|on|for|with) {_COMMITS})?{TAIL}"
        ),
        "use `git commit -s`": rf"(?:run|use) {_SIGNING}{TAIL}",
        "sign off commits": rf"sign[ -]?off(?: on)? {_COMMITS}{_WITH_OPTION}?{TAIL}",
    }
)
_KIND_OF_AGENT = re.compile(r"^(?:AI|coding|automated) (?=(?:agents?|assistants?)\b)", re.I)

# --- Trailers

_TRAILER = (
    r"[`\"“]?(?P<name>Signed-off-by|Co-authored-by|Assisted-by|Change-Id|Generated-by):?"
    rf"[^`\"”]{{0,90}}?[`\"”]?{_LINES}"
)
_ALL_COMMITS = (
    r"(?:(?:the|all|every|each|your|git|agent-authored|AI-assisted|AI-generated) )*commits?"
    r"(?: messages?)?"
)
_TRAILER_REQUIRED = forms(
    {
        "AI commits must carry an `Assisted-by:` trailer": (
            rf"{any_words('all', 'every', 'AI', 'agent', 'your', 'each')}commits?(?: messages?)?"
            r"(?: you (?:author|make|create))? (?:must |should )*"
            rf"(?:carry|include|have|contain|be signed with) (?:an? |the )?{_TRAILER}.{{0,60}}"
        ),
        "Add an `Assisted-by:` line to every commit": (
            rf"{ADVERBS}(?:add|include|append|use) (?:an? |the )?{_TRAILER}"
            rf" (?:to|in|on|at the end of) {_ALL_COMMITS}"
        ),
    }
)

# --- Credits of an agent

_AGENTS = one_of(
    *("claude(?: code)?", "AI", "agent", "LLM", "assistant", "bot", "copilot", "anthropic"),
    *("tool", "model", "generated", "codex", "cursor", "gpt", "chatgpt", "automated"),
    *("co-author(?:ship)?", "coauthor"),
)
# "any Claude or AI"
_AGENT = rf"(?:(?:any |an? |the |your |or |and |,? ?)*{_AGENTS}s?(?:[-/, ]+| or | and )?)+"
_CREDIT = one_of(
    *("attributions?", "signatures?", "credits?", "trailers?", "footers?", "lines?", "tags?"),
    *("co-?authors?", "mentions?", "references?", "sign-?offs?", "advertising", "branding"),
    "co-?author(?:ship|ed-by)?",
)
_CREDITS = rf"{_AGENT}[- ]?(?:{_CREDIT}(?:,? (?:or |and )?)?)+"
# "`Co-Authored-By: Claude` lines"
_CO_AUTHOR = (
    r"(?:(?:an?|any|the|claude|AI|agent|`?claude`? as|yourself as(?: an?)?) )*"
    r"[`\"“]?(?:co-?authored-?by:?(?: [\w<>@. ]+)?|co-?authors?(?= (?:line|trailer|tag|footer)))"
    r"[`\"”]?"
    r"(?: (?:lines?|trailers?|tags?|footers?|attributions?|agents?|headers?"
    r"|(?:for |naming |with )(?:claude|AI|an AI|agents?)(?: agents?| tools?)?))*"
)
_GENERATED_BY = r"[\"“`](?:🤖 )?generated (?:with|by)[^\"”`]*[\"”`](?: (?:lines?|footers?|text))*"
_ADD = r"(?:(?:add|include|put|append|use|insert|mention|write|sign)(?: commits with)? )?"
_PARTS_OF_COMMITS = one_of(
    *"the any your git all commits? messages? trailers? and or PRs? descriptions?".split(),
    *("commit messages?", "PR descriptions", "pull requests?"),
)
_IN_COMMITS = rf"(?:(?: (?:to|in|on|from))? (?:{_PARTS_OF_COMMITS}[, /]*)+)?"
_NO = rf"(?:(?:{NEVER}|no|without) )"
_CO_AUTHORS = forbid(
    {
        "add Co-Authored-By: Claude or any agent attribution to commits": (
            rf"{_ADD}{_CO_AUTHOR}(?:,? or (?:any |other )*{_CREDITS})?{_IN_COMMITS}{TAIL}"
        )
    },
    _NO,
)
_HAVE_NO_CO_AUTHOR = forms(
    {
        "commits carry no Co-Authored-By": (
            rf"(?:git )?commits? (?:messages? )?(?:carry|have|include|contain)s? no {_CO_AUTHOR}"
        )
    }
)
_CREDITING = forbid(
    {
        "add AI attribution in commit messages": (
            rf"{_ADD}(?:{_CREDITS}|{_GENERATED_BY}){_IN_COMMITS}{TAIL}"
        )
    },
    _NO,
)
_AGENT_NAME = r"(?:claude code|claude|AI|anthropic|chatgpt|copilot)"
_AGENT_NAMES = rf"[\"“`]?(?P<names>{_AGENT_NAME}(?:(?:,| or|, or) {_AGENT_NAME})*)[\"”`]?"
_NAMED_IN_COMMITS = forms(
    {
        "never mention Claude or AI in commit messages": (
            rf"{NEVER} (?:mention|reference|credit|include|add) {_AGENT_NAMES}"
            rf" in (?:the |any |git )*commit messages?{TAIL}"
        ),
        "commit messages must not mention Claude": (
            rf"commit messages? {NEVER} (?:mention|reference|credit|include|contain)"
            rf" {_AGENT_NAMES}{TAIL}"
        ),
    }
)
# a message that credits no agent
_CREDITS_PATTERN = (
    r"(?si)\A(?!.*(?:co-authored-by:[^\n]*(?:claude|copilot|cursor|codex|gpt|gemini"
    r"|\bai\b|bot)|generated (?:with|by)))"
)


def sign_off_rule(clause: Clause) -> list[Draft]:
    """Reads "sign off every commit (`git commit -s`)" and "never add `Signed-off-by` lines"."""
    trailer = "(?i)^Signed-off-by:"
    if _SIGNING_OFF.match(_KIND_OF_AGENT.sub("", clause.text), clause.is_prohibited):
        spec = {"name": "commit_excludes", "trailer": trailer}
        return [Draft("commit", "prohibition", spec)]
    is_about_signing = whole_match(_SIGN_OFF_LABEL, clause.statement.label) is not None
    is_required = whole_match(_SIGNED_OFF, clause.text) or (
        is_about_signing and whole_match(_OPTION_ALONE, clause.text)
    )
    if clause.is_prohibited or not is_required:
        return []
    return [Draft("commit", "requirement", {"name": "commit_includes", "trailer": trailer})]


def trailer_rule(clause: Clause) -> list[Draft]:
    """Reads "AI commits must carry an `Assisted-by:` trailer"."""
    match = whole_match(_TRAILER_REQUIRED, clause.text)
    if match is None or clause.is_prohibited:
        return []
    spec = {"name": "commit_includes", "trailer": f"(?i)^{match['name']}:"}
    return [Draft("commit", "requirement", spec)]


def attribution_rule(clause: Clause) -> list[Draft]:
    """Reads "do not add Co-Authored-By lines, or AI attribution, to commits"."""
    text = clause.text
    if _CO_AUTHORS.match(text, clause.is_prohibited) or whole_match(_HAVE_NO_CO_AUTHOR, text):
        name = r"[^\n]*(?:claude|anthropic)" if re.search("claude", text, re.I) else ""
        return commit_rule(rf"(?si)\A(?!.*co-authored-by:{name})", "prohibition")
    if match := whole_match(_NAMED_IN_COMMITS, text):
        names = "|".join(map(re.escape, re.split(r",? or |, ", match["names"])))
        return commit_rule(rf"(?si)\A(?!.*\b(?:{names})\b)", "prohibition")
    about_commits = is_about_commits(clause.statement) or re.search(r"\bcommit", text, re.I)
    if about_commits and _CREDITING.match(text, clause.is_prohibited):
        return commit_rule(_CREDITS_PATTERN, "prohibition")
    return []
