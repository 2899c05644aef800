"""Rules about pull requests: their title, body, base branch and state."""

import re

from holdfast.drafting.clauses import ADVERBS, CODES, NEVER
from holdfast.drafting.commit_rules import CONVENTIONAL, conventional_pattern, message_shape
from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement

_PR = r"(?:(?:all |every |each |any |your |the |new )*(?:PRs?|pull[ -]requests?))"
_TITLE = rf"(?:{_PR}(?:['’]s)? titles?|titles? (?:of|for) {_PR})"
_BODY = rf"(?:{_PR}(?:['’]s)? (?:body|bodies|descriptions?)|(?:body|description)s? of {_PR})"
_MUST = r"(?:must |should |need to |always |is |are |has to |have to )*"
_QUOTED = r"(?:`(?P<code>[^`]+)`|[\"“](?P<quoted>[^\"”“]{1,60})[\"”])"


def _pull_request(polarity: str, **fields: object) -> list[Draft]:
    spec = {"name": "pull_request", **fields}
    return [Draft("commit", "prohibition" if polarity == "no" else "requirement", spec)]


def _is_about(statement: Statement, what: str) -> bool:
    return any(
        re.search(what, name, re.I) for name in (statement.label, *statement.under[-1:]) if name
    )


def pr_title(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """PR titles follow Conventional Commits."""
    label = rf"(?:{_TITLE}|titles?(?: format)?|PR titles?(?: format)?)"
    labelled = re.fullmatch(label, statement.label, re.I) and (
        re.search(r"\bPR|pull", statement.label, re.I) or _is_about(statement, r"\bPRs?\b|pull")
    )
    about = rf"(?:{_TITLE} {_MUST}|{ADVERBS}(?:use|follow|write) )"
    named = rf"(?:follow(?:s|ing)?|use|be|in|using|adhere to|match)* ?(?:the )?{CONVENTIONAL}"
    if prohibits:
        return None
    with_title = re.search(_TITLE, clause, re.I) or labelled
    if with_title and re.fullmatch(
        rf"(?:{about}|{ADVERBS})?(?:{named})(?: for (?:all )?{_TITLE}| in {_TITLE})?.{{0,3}}",
        clause, re.I,
    ):  # fmt: skip
        return _pull_request("", title=conventional_pattern(statement.text))
    forms = (
        rf"{_TITLE} {_MUST}(?:start|begin|be prefixed|prefixed) with (?:the )?(?:prefix )?"
        rf"{_QUOTED}.*",
        rf"{ADVERBS}(?:prefix|start|begin) {_TITLE} with {_QUOTED}",
    )
    if match := next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None):
        start = match["code"] or match["quoted"]
        return _pull_request("", title=rf"\A{re.escape(start)}") if "<" not in start else None
    match = re.fullmatch(
        rf"(?:{ADVERBS}keep )?{_TITLE} {_MUST}(?:under|below|at most|within|to|be under) (\d+)"
        r" (?:characters|chars)", clause, re.I,
    )  # fmt: skip
    if match:
        return _pull_request("", title=rf"\A.{{1,{match[1]}}}\Z")
    return _shaped(clause, bool(labelled))


def _shaped(clause: str, labelled: bool) -> list[Draft] | None:
    """A title of a shape such as `[scope] Summary` or `type(scope): summary`."""
    match = re.fullmatch(
        rf"(?:{_TITLE} {_MUST}(?:use|follow|be|have|match|format)?(?: the)?(?: format| form)?:? ?"
        rf"|{ADVERBS}(?:format|use) {_TITLE}(?: as| the format)? ?)`([^`]+)`.{{0,40}}"
        + (r"|`([^`]+)`(?: format)?" if labelled else ""),
        clause, re.I,
    )  # fmt: skip
    shape = next(filter(None, match.groups()), "") if match else ""
    pattern = message_shape(shape)
    return _pull_request("", title=pattern) if pattern else None


def pr_state(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """PRs target `develop`; open pull requests as drafts."""
    if prohibits:
        return None
    branch = r"`?(?P<base>[\w./-]+?)`?(?: branch)?"
    forms = (
        rf"{_PR} {_MUST}(?:target|be opened against|opened against|be against|go to|go into"
        rf"|based on|be based on|be made against|be submitted to) (?:the )?{branch}",
        rf"{ADVERBS}(?:open|create|target|submit|base|make) {_PR} (?:against|to|on|at|into|for)"
        rf" (?:the )?{branch}",
        rf"{ADVERBS}(?:open|create|submit) {_PR} (?:on|from) an? [\w -]*branch targeting {branch}",
        rf"{ADVERBS}target (?:the )?{branch} (?:branch )?(?:for|in|with) {_PR}",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    if match and not match["base"].lower().startswith(("a", "the", "draft")):
        in_code = f"`{match['base']}`" in clause or match["base"] in ("main", "master", "develop")
        return _pull_request("", base=rf"\A{re.escape(match['base'])}\Z") if in_code else None
    if (
        re.fullmatch(
            rf"{ADVERBS}(?:open|create|submit|make|keep)(?: an?| all| new)? "
            r"(?:draft (?:PRs?|pull[ -]requests?)|(?:PRs?|pull[ -]requests?|it|them) (?:as|in)"
            r" (?:an? )?drafts?)(?: (?:mode|state|by default|first|initially))*",
            clause,
            re.I,
        )
        or re.fullmatch(
            rf"when (?:you )?(?:create|open|creating|opening)(?: an?)? (?:PRs?|pull[ -]requests?), "
            rf"{ADVERBS}(?:create|open) (?:it|them) as (?:an? )?drafts?(?: PRs?)?",
            clause,
            re.I,
        )
        or re.fullmatch(rf"{_PR} {_MUST}(?:be )?(?:opened|created|open) as drafts?", clause, re.I)
    ):
        return _pull_request("", draft=True)
    if re.fullmatch(rf"{NEVER} (?:open|create)(?: a)? draft (?:PRs?|pull requests?)", clause, re.I):
        return _pull_request("no", draft=False)
    return None


def pr_body(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Include `Fixes #` in the PR body; PR descriptions have "Summary" and "Test plan"."""
    where = rf"(?:(?:in|to|of|at the (?:top|end|bottom) of) (?:the )?{_BODY})"
    label = _is_about(statement, rf"^(?:{_BODY}|PR body|PR description)")
    no = re.fullmatch(
        rf"{NEVER} (?:add|include|put|write|use)(?: an?| any| the)? (?P<what>.+?)"
        rf"(?: (?:section|heading|checklist|footer|line)s?)?(?: {where})",
        clause,
        re.I,
    )
    if no:
        words = re.findall(r"[\"“`]([^\"”“`]+)[\"”`]", no["what"])
        rest = re.sub(r"[\"“`][^\"”“`]+[\"”`]|[/,]| or | and ", " ", no["what"]).strip()
        if words and rest in ("", "section", "heading", "headings"):
            either = "|".join(map(re.escape, words))
            return _pull_request("no", body=rf"(?si)\A(?!.*(?:{either}))")
        return None
    match = re.fullmatch(
        rf"{ADVERBS}(?:add|include|put|write|have|use) (?:the |an? )?(?:line |text )?{_QUOTED}"
        rf"(?: somewhere)? {where}",
        clause,
        re.I,
    )
    if match and not prohibits:
        text = match["code"] or match["quoted"]
        text = re.split(r"<|\{|#?\d|#N\b|#X", text)[0].strip()
        return _pull_request("", body=re.escape(text)) if len(text) > 2 else None
    match = re.fullmatch(
        rf"{_BODY} {_MUST}(?:include|have|contain|use)(?: the)?(?: sections?| headings?)?:? "
        rf"(?P<sections>(?:{CODES})|(?:[\"“][^\"”]+[\"”](?:,? (?:and )?)?)+)(?: sections?)?",
        clause,
        re.I,
    )
    if match and not prohibits and (label or "section" in clause.lower() or "#" in clause):
        names = re.findall(r"[\"“`]#*\s*([^\"”“`]+)[\"”`]", match["sections"])
        return _pull_request("", sections=names) if names else None
    return None
