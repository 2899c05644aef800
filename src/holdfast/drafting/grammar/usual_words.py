"""Rewrites a clause in the words that the grammar knows.

For example:

    "Omit semicolons"                      -> "no semicolons"
    "Ensure that `.env` is not committed"  -> "`.env` must not be committed"
"""

import re

_WE_USE = re.compile(
    r"^(?:we|(?:this|the|our) (?:project|repo|repository|codebase|workspace|monorepo))"
    r" uses? (?=\S)|^(?:(?:all|our|the) )?(?:[A-Z]\w+ )?(?:unit )?tests use (?=`)",
    re.I,
)
_FORCE_PUSH = re.compile(r"\bforce (?=push)", re.I)
_OMIT = re.compile(r"^(?:always )?(?:omit|leave out) (?:all |any |the )?", re.I)
_CHECK_IN = re.compile(r"(?<=n[o'’]t )check in (?=`)|(?<=never )check in (?=`)", re.I)
# says again what a condition named: "if you change `ui/`, run the checks *for that package*"
_FOR_THAT = re.compile(r" for that (?:package|folder|module|app)(?: too| as well)?\b", re.I)
# "no direct pushes to main allowed"
_NONE_ALLOWED = re.compile(r"^(no .+?) (?:(?:are|is) )?(?:allowed|permitted)$", re.I)
# "`web/` must not depend on `db/`"
_DEPEND = re.compile(r"(?<=\bnot )depend (?:directly )?on (?=`|the )", re.I)
_WORK_ON = re.compile(r"(?<=never )work on (?:or develop )?", re.I)
_STRESSED_NO = re.compile(
    r"^(?:(?:absolutely|strictly|definitely|leave) no|(?:absolutely )?zero(?= [a-z-]+s\b)) ", re.I
)
_TODOS = re.compile(r"\btodo['’]?s\b", re.I)  # also "todo's"
_LEFT_WHITESPACE = re.compile(
    r"\bleave (?:any )?(?:trailing whitespace|whitespace at the end of (?:the )?lines?)", re.I
)
# "all tests pass (`make test`)" and "all tests must pass: `make test`" are "`make test` passes"
_CHECKS_PASS = re.compile(
    r"\b(?:(?:all|the|your|existing|unit) )*(?:tests?|build|lint(?:er|ing)?|type ?checks?|checks?)"
    r" (?:pass(?:es)?|succeeds?|(?:is|are) (?:clean|green)|must pass)(?: locally)?"
    r"(?: \((?=`[^`]+`\))|: (?=`[^`]+`$))(`[^`]+`)\)?",
    re.I,
)
# "for Rust changes" is "after Rust changes"
_FOR_CHANGES = re.compile(
    r"\b[Ff]or (?=(?:(?:any|every|all|each) )?(?:[A-Z][\w#+]* |code )?"
    r"(?:changes?|edits?|modifications?)(?:$|[,:]| (?:to|in|under|of)\b))"
)
_BLOCKED_PUSHES = re.compile(
    r"^direct pushes to (\S+(?: branch)?) (?:are|is) (?:blocked|rejected|disabled|prevented)\b.*",
    re.I,
)
_DIRECT_ACCESS = re.compile(
    r"\b(?P<never>never|no|not) (?:use )?direct (?P<codes>`[^`]+`) (?:access|usage|use)\b", re.I
)
_REINTRODUCE = re.compile(
    r"(?<=n[o'’]t )(?:re-?introduce|re-?create|bring back|re-?add) (?=`[^`]*/)"
    r"|(?<=never )(?:re-?introduce|re-?create|bring back|re-?add) (?=`[^`]*/)",
    re.I,
)
_ASKING_FOR_REVIEW = re.compile(
    r"\b(?:asking|submitting|sending|handing)"
    r"(?: (?:it|them|(?:the |your )?(?:changes|code|work|PR)))?"
    r" (?:for|to) (?:a )?(?:(?:human|peer|final|code) )*review\b",
    re.I,
)
# "ensure that `.env` is not committed": an order, where "`.env` is not committed" is a description
_ENSURES_NOT = re.compile(
    r"^(?:(?:always|please) )?(?:ensure|make sure|be sure|see to it|verify|check)(?: that)?"
    r" (?P<subject>[^,;:]{1,80}?) (?:is|are) (?:not|never) (?=(?:being )?[a-z-]+(?:ed|en)\b)",
    re.I,
)
# "keep `src/core/` free of `print`"
_FREE_OF = re.compile(
    r"^(?:(?:always )?keep (?P<kept>[^,;:]{1,60}?)"
    r"|(?P<place>[^,;:]{1,60}?) (?:must|should) (?:always )?(?:be(?: kept)?|stay|remain)) free"
    r" (?:of|from) (?:any |all )?(?P<what>(?:`[^`]*`|[^;:`])+)$",
    re.I,
)
# "there must be no `print`"
_THERE_MUST_BE_NO = re.compile(
    r"^there (?:(?:must|should|shall|can) (?:be no|never be|not be)|(?:is|are) to be no)"
    r" (?:any )?(?=\S)",
    re.I,
)
# "only `src/api/` may call `fetch()`", "nothing outside `src/api/` may call `fetch()`"
_ONLY_THERE = re.compile(
    r"^(?:only (?:code |files )?(?:in |inside |under )?"
    r"|(?:nothing|no code|no files?|no other (?:code|files?)) outside (?:of )?)(?:the )?"
    r"(?P<place>`[^`]*[/.][^`]*`)"
    r" (?:may|can|should|must|is allowed to|are allowed to)(?: ever| directly)?"
    r" (?P<verb>use|call|import|access|read|touch|import from)(?: directly)?"
    r" (?P<what>`[^`]+`)(?: directly)?$",
    re.I,
)
# "the domain layer never imports FastAPI"
_NEVER_IMPORTS = re.compile(
    r"^(?P<place>(?:the |all )?(?:`[^`]+`|[\w-]+ (?:layer|code|module|package|crate|classes)))"
    r" never (?P<verb>import|depend)s?(?P<on> on)? ",
    re.I,
)
_BELOW_FOLDER = re.compile(
    r"\b(?P<files>anything|everything|(?:any )?files?) (?:below|beneath|underneath) (?=`[^`]+/`)",
    re.I,
)
_WHEN_RUNNING = re.compile(r"^when running (?:shell |any )?commands, ", re.I)
_FETCH_THERE = re.compile(
    r"\b(?P<never>never|do not|don['’]t) fetch (?:data )?directly (?=(?:from|in|inside) )", re.I
)


def in_usual_words(text: str) -> str:
    """A clause in the words that the grammar knows: "omit semicolons" is "no semicolons"."""
    text = _WHEN_RUNNING.sub("", _NEVER_IMPORTS.sub(r"\g<place> must not \g<verb>\g<on> ", text))
    if there := _ONLY_THERE.match(text):
        text = f"never {there['verb']} {there['what']} outside {there['place']}"
    text = _BELOW_FOLDER.sub(r"\g<files> in ", text)
    text = _FETCH_THERE.sub(r"\g<never> call `fetch()` ", _THERE_MUST_BE_NO.sub("no ", text))
    if free := _FREE_OF.match(text):
        text = f"no {free['what']} in {free['kept'] or free['place']}"
    text = _FOR_THAT.sub("", _NONE_ALLOWED.sub(r"\1", text))
    text = _ENSURES_NOT.sub(r"\g<subject> must not be ", text)
    text = _LEFT_WHITESPACE.sub("use trailing whitespace", text)
    text = _ASKING_FOR_REVIEW.sub("requesting review", text)
    text = _CHECKS_PASS.sub(r"\1 passes", text)
    text = _FOR_CHANGES.sub("after ", text)
    text = _DIRECT_ACCESS.sub(r"never use \g<codes>", text)
    text = _REINTRODUCE.sub("create or edit ", text)
    text = _BLOCKED_PUSHES.sub(r"never push to \1", text)
    text = _CHECK_IN.sub("commit ", text)
    text = _WORK_ON.sub("edit ", text)
    text = _DEPEND.sub("import from ", text)
    text = _TODOS.sub("TODOs", _STRESSED_NO.sub("no ", text))
    return _OMIT.sub("no ", _WE_USE.sub("use ", _FORCE_PUSH.sub("force-", text)))
