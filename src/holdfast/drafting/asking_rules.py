"""Rules about what needs the user's approval: "do not push unless asked", "ask before you delete
files", and items below "Ask first".
"""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import Clause, all_or_none, names_in
from holdfast.drafting.commands import command_pattern, is_command, is_runnable
from holdfast.drafting.drafts import Draft, Spec
from holdfast.drafting.forms import (
    ADVERBS,
    CODES,
    NEVER,
    any_words,
    first_match,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.named_acts import act_of
from holdfast.drafting.path_globs import glob_argument, path_glob

# --- Ways to ask for approval

_BEFORE_ASKED = any_words(
    *("you(?:['’]re| are)?", "I", "the user", "user", "a human", "a maintainer", "the developer"),
    *("it is", "it['’]s", "they", "has", "have", "been", "being", "is", "are", "was", "were"),
    *("for", "to do so", "to", "so", "do so", "do it", "me", "us", "specifically", "explicitly"),
    *("explicit", "directly", "first", "clear", "my", "your", "the", "a", "user['’]?s?", "human"),
    *("prior", "maintainer", "of", "from", "by", "by the user", "in this session", "you", "that"),
    "this",
)
_AFTER_ASKED = one_of(
    *"for or approves? that exact action current conversation you to so do it this".split(),
    *("the user", "by", "first", "explicitly", "me", "us", "from", "of", "a", "human", "user"),
    *"maintainer in the request them otherwise approval permission session prompt".split(),
)
# "the user explicitly asks you to", "prior approval by a maintainer"
_ASKED = (
    _BEFORE_ASKED
    + one_of(
        *("ask(?:s|ed|ing)?", "request(?:s|ed|ing)?", "instruct(?:s|ed|ions?)?", "told", "tells?"),
        *("say so", "says so", "permission", "approv(?:al|es?|ed)", "consent", "direction"),
        *("confirm(?:s|ed|ation|ing)?", "authoriz(?:ation|ed|es)", "permitted", "go-ahead"),
        "sign-off",
    )
    + rf"(?: {_AFTER_ASKED})*"
)
_GRANT = r"(?:approval|permission|confirmation)"
_GRANTED_BY = any_words("explicit", "user", "human", "my")
# "ask the user first", "get explicit approval from the user"
_ASKING = (
    one_of(
        *("ask", "check with", "confirm with", rf"get {_GRANTED_BY}{_GRANT}", "confirm"),
        r"request (?:approval|permission)",
        rf"wait for {_GRANTED_BY}(?:{_GRANT}|instruction|instructions)",
    )
    + rf"(?: (?:me|the user|user|first|for (?:explicit )?{_GRANT}|permission"
    r"|from (?:me|the user)|explicitly|a human))*"
)
_BY_ITSELF = r"(?: (?:yourself|autonomously|on your own|automatically|proactively))?"
_WITHOUT_ASKING = {
    "push anything unless asked": rf"(?P<acts>.+?){_BY_ITSELF},? (?:unless|until|if not) {_ASKED}",
    "push anything without permission": (
        rf"(?P<acts>.+?){_BY_ITSELF},? without (?:first )?{_ASKED}"
    ),
}
_NEVER_WITHOUT_ASKING = forms(
    {f"never {text}": f"{ADVERBS}{NEVER} {act}" for text, act in _WITHOUT_ASKING.items()}
)
_WITHOUT_ASKING_BELOW = forms(  # below "Do not:"
    {text: f"{ADVERBS}{act}" for text, act in _WITHOUT_ASKING.items()}
)
_WHEN = r"(?:when|if|after|with|once|upon)"
_ASK_BEFORE = forms(
    {
        "ask the user before pushing": rf"{ADVERBS}{_ASKING},? (?:before|prior to) (?P<acts>.+)",
        "before pushing, ask the user": rf"before (?P<acts>.+?),? {_ASKING}",
        "only push when the user asks": rf"only (?P<acts>.+?) {_WHEN} {_ASKED}",
        "push only with explicit permission": rf"(?P<acts>.+?) only {_WHEN} {_ASKED}",
        "pushing requires explicit approval": (
            r"(?P<acts>.+?) (?:requires?|needs?) (?:explicit |user |human |prior )*"
            r"(?:approval|permission|confirmation|consent)"
        ),
        "no pushing unless asked": rf"no (?P<acts>.+?) (?:unless|without) {_ASKED}",
        "never push yourself, wait for explicit approval": (
            rf"{ADVERBS}{NEVER} (?P<acts>.+?){_BY_ITSELF}(?:[,;]| -| –| —)"
            rf" (?:but |always )*{_ASKING}"
        ),
    }
)
_WARNING_SIGN = r"\W*(?:⚠️ ?)?"
# headings and labels of lists of acts that need approval
_ASK_FIRST = forms(
    {
        "⚠️ Ask first:": rf"{_WARNING_SIGN}ask (?:first|before\b.*)",
        "Require explicit approval": (
            rf"{_WARNING_SIGN}(?:require|need)s? (?:explicit )?(?:user |human )?{_GRANT}.*"
        ),
        "Get approval first": (
            rf"{_WARNING_SIGN}(?:get|ask for) (?:approval|permission) (?:first|before).*"
        ),
        "Stop and ask the user": (
            rf"{_WARNING_SIGN}(?:stop and )?ask (?:me|the user)(?: first| before)?.*"
        ),
        "Never without asking": (
            rf"{_WARNING_SIGN}(?:never without asking|(?:do not|don['’]t|never) (?:do )?(?:these )?"
            r"without (?:asking|permission|approval))"
        ),
    }
)

# --- Acts that need approval

_EDIT = one_of(
    *"edit modify change touch alter update delete remove editing modifying changing".split(),
    *"touching altering updating deleting removing".split(),
    *("change[sd]? to", "changes to", "edits to", "modifications to"),
)
_EDITS_OF = forms(
    {
        "edit or delete files in `infra/`": (
            rf"{_EDIT}(?:(?: or |, |/| and ){_EDIT})* (?:(?:the|any|files in|files under|in) )*"
            rf"(?P<files>{CODES})(?: files?| directory| folder)?"
        )
    }
)
_SUCH_AS = forms(
    {
        "run destructive git commands such as `git reset`": (
            r"^(?:run|use|running|using) (?:any )?(?:destructive |dangerous |risky )+"
            r"(?:git |shell )?(?:commands?|operations?) (?:like|such as) (?=`)"
        )
    }
)
_JOINT = re.compile(r",? or |,? and |, |/(?=\w)")
_CODE_ACT = forms(
    {
        "running `make ship`": (
            r"(?:(?P<runs>run|running|execute|executing|use|using) )?`(?P<code>[^`]+)`"
            r"(?: anything| commands?)?"
        )
    }
)
# an act without a known command, such as "any new feature": no rule is drafted from it
_OTHER_ACT = re.compile(r"(?:(?:any|the|a|an|your|new|git) )*[a-z]+(?:ing|e|t|y|s)? [a-z `]+$")
# the last objects of an act that was understood: "delete files, *badges, or content*"
_FURTHER_OBJECT = re.compile(r"(?:or |any )*[a-z]+s|content", re.I)


def ask_rule(clause: Clause) -> list[Draft]:
    """Reads "do not push unless asked" and "ask before adding dependencies"."""
    ways = _NEVER_WITHOUT_ASKING + _ASK_BEFORE
    if clause.is_prohibited:
        ways += _WITHOUT_ASKING_BELOW
    match = whole_match(ways, clause.text)
    above = (clause.statement.label, *clause.statement.under[-1:])
    if match is None and not any(map(_is_ask_first, above)):
        return []
    acts = match["acts"] if match else clause.text
    acts = re.sub(r"^(?:the |any |you )+", "", acts.strip(" ,"), flags=re.I)
    return _edits(acts) or _commands(acts)


def _is_ask_first(heading: str) -> bool:
    """Whether the acts listed below a heading need the user's approval."""
    plain = re.sub(r"[*`]", "", heading)
    return whole_match(_ASK_FIRST, re.sub(r"[\s:.]+$", "", plain)) is not None


def _edits(acts: str) -> list[Draft]:
    """The rule about editing the listed paths; [] if the acts are anything else."""
    match = whole_match(_EDITS_OF, acts)
    names = [name for name, _ in names_in(match["files"])] if match else []
    globs = all_or_none([path_glob(name) for name in names])
    if globs is None:
        return []
    stems = [re.escape(name.strip("/*.").rpartition("/")[2].partition(".")[0]) for name in names]
    word = "|".join([r"\b(?:edit|modif|chang|touch|updat|delet|remov)", *filter(None, stems)])
    return [_require_approval_of_change(globs, word)]


def _commands(acts: str) -> list[Draft]:
    """The rules about running the listed commands, or about acts that have commands; [] if one of
    the acts is not understood.
    """
    if introduction := first_match(_SUCH_AS, acts):
        acts = acts[introduction.end() :]
    drafts: list[Draft] = []
    parts = [acts.strip()] if act_of(acts.strip()) else _split_acts(acts)
    for part in parts:
        code = whole_match(_CODE_ACT, part)
        if act := act_of(part):
            command = act.command
            if branch := re.search(r"\bto `?(main|master|develop)`?", part):
                to_branch = rf"git push(?=.*[ :]{branch[1]}(?!\S))"
                command = command.replace("git push", to_branch)
            drafts.append(_require_approval_of_command(command, act.word))
        elif code and _is_run(code):
            command = command_pattern(code["code"])
            drafts.append(_require_approval_of_command(command, _word_for(code["code"])))
        elif not (_OTHER_ACT.match(part) or (drafts and _FURTHER_OBJECT.fullmatch(part))):
            return []
    return drafts


def _split_acts(acts: str) -> list[str]:
    """The acts of a list such as "commit, push or run `a or b`"; code spans stay whole."""
    without_code = re.sub(r"`[^`]*`", lambda match: "\x00" * len(match[0]), acts)
    parts: list[str] = []
    start = 0
    for joint in _JOINT.finditer(without_code):
        parts.append(acts[start : joint.start()].strip())
        start = joint.end()
    parts.append(acts[start:].strip())
    return [part for part in parts if part]


def _is_run(match: re.Match[str]) -> bool:
    """Whether the code span of an act is a command, by itself or by the verb before it."""
    names_running = (match["runs"] or "").startswith(("run", "execut"))
    return is_command(match["code"]) or (names_running and is_runnable(match["code"]))


def _word_for(command: str) -> str:
    """A pattern of the words by which a question refers to a command: "push" for `git push`."""
    words = [word for word in re.findall(r"[A-Za-z]{3,}", command) if word != "run"]
    return rf"\b(?:{'|'.join(map(re.escape, (words[1:] or words)[:4]))})"


def _require_approval_of_command(command: str, word: str) -> Draft:
    """Requires the user's approval of the commands that a pattern matches."""
    spec = {"name": "asks_before", "command": command, **_approval(word)}
    return Draft("command", "gate", spec)


def _require_approval_of_change(globs: Sequence[str], word: str) -> Draft:
    """Requires the user's approval of a change of these files."""
    spec = {"name": "asks_before", "changed": glob_argument(globs), **_approval(word)}
    return Draft("file", "gate", spec)


def _approval(word: str) -> Spec:
    """The arguments that find a question about an act, and an order of it, by a word for it."""
    pattern = f"(?i){word}"
    return {"asking": pattern, "ordered": pattern}
