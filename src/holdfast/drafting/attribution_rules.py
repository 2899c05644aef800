"""Rules about who a commit names: sign-offs, co-authors and other credits of an agent."""

import re

from holdfast.drafting.clauses import ADVERBS, NEVER, TAIL
from holdfast.drafting.commit_rules import commit_rule, is_about_commits
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.rules_file import Statement

_SIGN_OFF = (
    r"(?:(?:DCO|developer certificate of origin) )?(?:sign(?:ed)?[ -]?offs?|signed-off-by)"
    r"(?: \((?:DCO|developer certificate of origin)\))?"
)
_COMMITS = (
    r"(?:(?:all|every|each|any|your|the|git|of|its|their|own) )*commits?(?: messages?| logs?)?"
)
_WITH_OPTION = r" ?(?:with|using|via|by|\(| - |:)?(?: (?:passing|using|adding|the))*"
_OPTION = r"(?-i:--signoff|-[a-z]{0,3}s[a-z]{0,3})(?: [^`]*)?`"
_SIGNING = rf"`(?:git commit )?{_OPTION}"
_FOR = (
    r"(?: (?:flag|option))?\)?(?: (?:to|for|so|per|as|under|in) "
    r"(?:(?!\b(?:if|when|unless|only|not)\b).)*| \(DCO\))?"
)
_SIGNED_OFF = forms(
    rf"(?:when committing,? )?{ADVERBS}(?:use|run) (?:the )?`git commit {_OPTION}"
    rf"(?: (?:when committing|(?:to|for|on|with|in) {_COMMITS}))?{_FOR}",
    rf"(?:when committing,? )?{ADVERBS}commit (?:with|using) (?:the )?{_SIGNING}{_FOR}",
    rf"{ADVERBS}(?:use|pass|add|include) (?:the )?{_SIGNING}(?: (?:flag|option))?"
    rf" (?:when committing|(?:to|for|on|with|in) {_COMMITS}|to sign[ -]?off {_COMMITS}){_FOR}",
    rf"{ADVERBS}sign[ -]?off(?: on)? {_COMMITS}(?:{_WITH_OPTION} ?{_SIGNING})?{_FOR}",
    rf"{ADVERBS}sign {_COMMITS}(?:{_WITH_OPTION}(?: the)? DCO)?{_WITH_OPTION} ?{_SIGNING}{_FOR}",
    rf"{_COMMITS} (?:must|should|need to|have to|are required to) (?:always )?be"
    rf" (?:DCO )?(?:signed[ -]?off(?:{_WITH_OPTION} ?{_SIGNING})?"
    rf"|signed{_WITH_OPTION} ?{_SIGNING}){_FOR}",
    rf"{_COMMITS} (?:(?:must|should) (?:have|include|contain|carry)|(?:need|require)s?)"
    rf" (?:an? |the )?[`\"]?{_SIGN_OFF}:?[`\"]?(?: (?:lines?|trailers?|footers?|tags?))?"
    rf"(?:{_WITH_OPTION} ?{_SIGNING})?{_FOR}",
    rf"{_SIGN_OFF} (?:is |are )?(?:required|mandatory)(?: (?:on|for|in) {_COMMITS})?"
    rf"(?:{_WITH_OPTION} ?{_SIGNING})?{_FOR}",
    rf"{_SIGN_OFF}{_WITH_OPTION} ?{_SIGNING}",
)
_SIGN_OFF_LABEL = forms(
    rf"sign(?:[ -]?off)?(?: {_COMMITS})?", rf"{_SIGN_OFF}(?: required)?", r"DCO"
)
_OPTION_ALONE = forms(rf"(?:always |use |run )*{_SIGNING}{_FOR}")
_SIGNING_OFF = (
    rf"(?:add|include|use|put|append|insert|write|forge)(?: an?| any| the| your)? "
    rf"(?:[`\"]?{_SIGN_OFF}:?[^`\"]{{0,40}}[`\"]?(?: (?:lines?|trailers?|footers?|tags?))?"
    rf"|{_SIGNING}(?: (?:flag|option))?)(?: (?:to|in|on|for|with) {_COMMITS})?{TAIL}",
    rf"(?:run|use) {_SIGNING}{TAIL}",
    rf"sign[ -]?off(?: on)? {_COMMITS}(?:{_WITH_OPTION} ?{_SIGNING})?{TAIL}",
)
_KIND_OF_AGENT = re.compile(r"^(?:AI|coding|automated) (?=(?:agents?|assistants?)\b)", re.I)
_NEVER_SIGNED_OFF = forms(*(rf"(?:(?:always|please) )*{NEVER} {act}" for act in _SIGNING_OFF))
_SIGNED_OFF_BELOW = forms(*_SIGNING_OFF)  # below "Do not"


def signed_off(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Sign off every commit (`git commit -s`); never add `Signed-off-by` lines."""
    trailer = "(?i)^Signed-off-by:"
    plain = re.sub(
        r"^(?:AI|coding|automated) (?=(?:agents?|assistants?)\b)", "", clause, flags=re.I
    )
    if whole_match(_NEVER_SIGNED_OFF + (_SIGNED_OFF_BELOW if prohibits else ()), plain):
        spec = {"name": "commit_excludes", "trailer": trailer}
        return [Draft("commit", "prohibition", spec)]
    labelled = whole_match(_SIGN_OFF_LABEL, statement.label) and whole_match(_OPTION_ALONE, clause)
    if prohibits or not (labelled or whole_match(_SIGNED_OFF, clause)):
        return None
    return [Draft("commit", "requirement", {"name": "commit_includes", "trailer": trailer})]


_TRAILER = (
    r"[`\"“]?(?P<name>Signed-off-by|Co-authored-by|Assisted-by|Change-Id|Generated-by):?"
    r"[^`\"”]{0,90}?[`\"”]?(?: (?:lines?|trailers?|footers?|tags?))?"
)
_TRAILER_REQUIRED = forms(
    r"(?:all |every |AI |agent |your |each )*commits?(?: messages?)?"
    r"(?: you (?:author|make|create))? (?:must |should )*"
    rf"(?:carry|include|have|contain|be signed with) (?:an? |the )?{_TRAILER}.{{0,60}}",
    rf"{ADVERBS}(?:add|include|append|use) (?:an? |the )?{_TRAILER}"
    r" (?:to|in|on|at the end of) (?:(?:the|all|every|each|your|git|agent-authored"
    r"|AI-assisted|AI-generated) )*commits?(?: messages?)?",
)


def commit_trailer(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commits carry an `Assisted-by:` trailer."""
    match = whole_match(_TRAILER_REQUIRED, clause)
    if match is None or prohibits:
        return None
    spec = {"name": "commit_includes", "trailer": f"(?i)^{match['name']}:"}
    return [Draft("commit", "requirement", spec)]


_AGENT = (
    r"(?:(?:any |an? |the |your |or |and |,? ?)*(?:claude(?: code)?|AI|agent|LLM|assistant|bot"
    r"|copilot|anthropic|tool|model|generated|codex|cursor|gpt|chatgpt|automated|co-author(?:ship)?"
    r"|coauthor)s?(?:[-/, ]+| or | and )?)+"
)
_CREDIT = (
    r"(?:attributions?|signatures?|credits?|trailers?|footers?|lines?|tags?|co-?authors?|mentions?"
    r"|references?|sign-?offs?|advertising|branding|co-?author(?:ship|ed-by)?)"
)
_CREDITS = rf"{_AGENT}[- ]?(?:{_CREDIT}(?:,? (?:or |and )?)?)+"
_CO_AUTHOR = (
    r"(?:(?:an?|any|the|claude|AI|agent|`?claude`? as|yourself as(?: an?)?) )*"
    r"[`\"“]?co-?authored-?by:?(?: [\w<>@. ]+)?[`\"”]?"
    r"(?: (?:lines?|trailers?|tags?|footers?|attributions?|agents?|headers?"
    r"|(?:for |naming |with )(?:claude|AI|an AI|agents?)(?: agents?| tools?)?))*"
)
_GENERATED_BY = r"[\"“`](?:🤖 )?generated (?:with|by)[^\"”`]*[\"”`](?: (?:lines?|footers?|text))*"
_ADD = r"(?:(?:add|include|put|append|use|insert|mention|write|sign)(?: commits with)? )?"
_IN_COMMITS = (
    r"(?:(?: (?:to|in|on|from))? (?:(?:the|any|your|git|all|commits?|commit messages?|messages?"
    r"|trailers?|and|or|PRs?|PR descriptions|pull requests?|descriptions?)[, /]*)+)?"
)
_NO = rf"(?:(?:{NEVER}|no|without) )"
_OR_CREDITS = rf"(?:,? or (?:any |other )*{_CREDITS})?"
_NO_CO_AUTHOR = forms(
    rf"{_NO}{_ADD}{_CO_AUTHOR}{_OR_CREDITS}{_IN_COMMITS}{TAIL}",
    rf"(?:git )?commits? (?:messages? )?(?:carry|have|include|contain)s? no {_CO_AUTHOR}",
)
_NO_CREDIT = forms(rf"{_NO}{_ADD}(?:{_CREDITS}|{_GENERATED_BY}){_IN_COMMITS}{TAIL}")
# below "Do not"
_CO_AUTHOR_BELOW = forms(rf"{_ADD}{_CO_AUTHOR}{_OR_CREDITS}{_IN_COMMITS}{TAIL}")
_CREDIT_BELOW = forms(rf"{_ADD}(?:{_CREDITS}|{_GENERATED_BY}){_IN_COMMITS}{TAIL}")
_AGENT_NAME = r"(?:claude code|claude|AI|anthropic|chatgpt|copilot)"
_NAMED_IN_COMMITS = forms(
    rf"{NEVER} (?:mention|reference|credit|include|add) [\"“`]?(?P<names>{_AGENT_NAME}"
    rf"(?:(?:,| or|, or) {_AGENT_NAME})*)[\"”`]? in (?:the |any |git )*commit messages?{TAIL}",
    rf"commit messages? {NEVER} (?:mention|reference|credit|include|contain) [\"“`]?"
    rf"(?P<names>{_AGENT_NAME}(?:(?:,| or|, or) {_AGENT_NAME})*)[\"”`]?{TAIL}",
)
_CREDITS_PATTERN = (
    r"(?si)\A(?!.*(?:co-authored-by:[^\n]*(?:claude|copilot|cursor|codex|gpt|gemini"
    r"|\bai\b|bot)|generated (?:with|by)))"
)


def no_attribution(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not add Co-Authored-By lines, or AI attribution, to commits."""
    if whole_match(_NO_CO_AUTHOR + (_CO_AUTHOR_BELOW if prohibits else ()), clause):
        named = r"[^\n]*(?:claude|anthropic)" if re.search("claude", clause, re.I) else ""
        return commit_rule(rf"(?si)\A(?!.*co-authored-by:{named})", "prohibition")
    if match := whole_match(_NAMED_IN_COMMITS, clause):
        names = "|".join(map(re.escape, re.split(r",? or |, ", match["names"])))
        return commit_rule(rf"(?si)\A(?!.*\b(?:{names})\b)", "prohibition")
    about_commits = is_about_commits(statement) or re.search(r"\bcommit", clause, re.I)
    if about_commits and whole_match(_NO_CREDIT + (_CREDIT_BELOW if prohibits else ()), clause):
        return commit_rule(_CREDITS_PATTERN, "prohibition")
    return None
