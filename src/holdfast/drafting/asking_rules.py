"""Rules about what needs the user's word first: "do not push unless asked", "ask before you delete
files", and items below "Ask first".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.drafting.clauses import ADVERBS, CODES, NEVER, all_known, names_in
from holdfast.drafting.commands import command_pattern, is_command, is_runnable, path_glob
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.rules_file import Statement


@dataclass(frozen=True)
class _Act:
    """An act to ask about.

    Args:
        ways: the ways to name it.
        command: the pattern of the commands that do it.
        word: the pattern of a word for it in a question.
    """

    ways: tuple[re.Pattern[str], ...]
    command: str
    word: str


def _act(words: str, command: str, word: str) -> _Act:
    return _Act(forms(words), command, word)


_THINGS = r"(?: (?:any|the|your|new|these|code|files|all|changes?|anything|it|a|an|git|to git))*"
_TO = (
    r"(?: (?:to|on|onto) (?:the |a |any )?(?:remote|origin|repo(?:sitory)?|GitHub|branch"
    r"|`?(?:main|master|origin|develop)`?)(?: branch)?)?"
)
_NEW = r"(?: (?:an?|any|new|the|draft|GitHub))*"
_INSTALLS = (
    r"(?:npm (?:install|i|add)|pnpm (?:add|install)|yarn add|bun (?:add|install)|pip3? install"
    r"|uv (?:add|pip install)|poetry add|cargo add|go get|gem install|bundle add"
    r"|composer require|dotnet add) [^-\s]"
)
_ACTS = (
    _act(rf"force[ -]?push(?:ing)?{_TO}|(?:use|using) `?--force`?",
         r"git push(?=.* (?:--force\S*|-f)(?!\S))", r"force"),
    _act(rf"(?:git |auto-?)?commit(?:ting|s)?{_THINGS}|(?:make|making|create|creating)"
         r"(?: any| new| a| git)* commits?|`git commit`|run(?:ning)? `git commit`",
         r"git commit(?!\S)", r"\bcommit"),
    _act(rf"(?:git |auto-?)?push(?:ing|es)?{_THINGS}{_TO}|`git push`|run(?:ning)? `git push`",
         r"git push(?!\S)", r"\bpush"),
    _act(rf"(?:open|opening|create|creating|submit|submitting|raise|raising|make|making|publish"
         rf"|publishing){_NEW} (?:PRs?|pull[ -]requests?|merge requests?)|`gh pr create`",
         r"(?:gh pr create|glab mr create)(?!\S)", r"\b(?:PRs?|MR|pull|merge) ?"),
    _act(rf"(?:open|opening|create|creating|file|filing){_NEW} issues?",
         r"gh issue create(?!\S)", r"\bissue"),
    _act(r"comment(?:ing)? on (?:an? |any )?(?:GitHub )?(?:issues?|PRs?|pull requests?)",
         r"gh (?:issue|pr) comment(?!\S)", r"\bcomment"),
    _act(rf"merg(?:e|ing){_NEW}(?: PRs?| pull requests?| branch(?:es)?)?(?: (?:in)?to"
         r" `?(?:main|master)`?)?", r"(?:git merge|gh pr merge)(?!\S)", r"\bmerg"),
    _act(r"rebas(?:e|ing)(?: branch(?:es)?)?", r"git rebase(?!\S)", r"\brebas"),
    _act(r"amend(?:ing)?(?: (?:any |existing )?commits?)?",
         r"git commit(?=.* --amend)", r"\bamend"),
    _act(r"create or switch (?:git )?branches", r"git (?:checkout|switch)(?!\S)(?!.* --)",
         r"\bbranch"),
    _act(rf"(?:create|creating|switch|switching|make|making){_NEW}(?: git)? branch(?:es)?",
         r"git (?:checkout -[bB]|switch -[cC]|branch [^-\s])", r"\bbranch"),
    _act(rf"(?:add|adding|install|installing|introduc(?:e|ing)|chang(?:e|ing))"
         rf"(?: or (?:use|add|install))?{_NEW}(?: (?:application|project|app)['’]s)?"
         r"(?: (?:third-party|npm|external|production|runtime|python|project|major|heavy|package))*"
         r" (?:dependency|dependencies|packages?|librar(?:y|ies)|modules)",
         _INSTALLS, r"\b(?:depend|packag|librar|instal|add)"),
    _act(rf"(?:delet(?:e|ing)|remov(?:e|ing)){_NEW}(?: existing)? files?(?: or (?:directories"
         r"|folders))?", r"(?:git )?rm(?!\S)", r"\b(?:delet|remov)"),
    _act(r"deploy(?:ing)?(?: anything)?(?: to (?:prod|production))?",
         r"(?:(?:npm|pnpm|yarn|make) (?:run )?deploy|vercel|wrangler deploy|firebase deploy"
         r"|fly deploy|netlify deploy)(?!\S)", r"\bdeploy"),
    _act(rf"publish(?:ing)?{_NEW}(?: packages?)?(?: to (?:npm|PyPI))?",
         r"(?:(?:npm|pnpm|yarn|bun|cargo|uv|poetry) publish|twine upload)(?!\S)", r"\bpublish"),
    _act(rf"(?:create|creating|cut|cutting|publish|publishing){_NEW} releases?",
         r"gh release create(?!\S)", r"\brelease"),
)  # fmt: skip

_ASKED = (
    r"(?:(?:you(?:['’]re| are)?|I|the user|user|a human|a maintainer|the developer|it is|it['’]s"
    r"|they|has|have|been|being|is|are|was|were|for|to do so|to|so|do so|do it|me|us|specifically"
    r"|explicitly|explicit|directly|first|clear|my|your|the|a|user['’]?s?|human|prior|maintainer"
    r"|of|from|by|by the user|in this session|you|that|this) )*"
    r"(?:ask(?:s|ed|ing)?|request(?:s|ed|ing)?|instruct(?:s|ed|ions?)?|told|tells?|say so|says so"
    r"|permission|approv(?:al|es?|ed)|consent|confirm(?:s|ed|ation|ing)?|authoriz(?:ation|ed|es)"
    r"|permitted|direction|go-ahead|sign-off)"
    r"(?: (?:for|or|approves?|that|exact|action|current|conversation|you|to|so|do|it|this|that"
    r"|the user|by|first|explicitly|me|us|from|of|for|a|human"
    r"|user|maintainer|in|the|request|them|otherwise|action|approval|permission|session|prompt))*"
)
_EDITS = (
    r"(?:edit|modify|change|touch|alter|update|delete|remove|editing|modifying|changing|touching"
    r"|altering|updating|deleting|removing|change[sd]? to|changes to|edits to|modifications to)"
)
_BEFORE_ASKING = (
    r"(?:ask|check with|confirm with|get (?:explicit |user |human |my )*(?:approval|permission"
    r"|confirmation)|request"
    r" (?:approval|permission)|confirm|wait for (?:explicit |user |human |my )*(?:approval"
    r"|confirmation"
    r"|permission|instruction|instructions))"
    r"(?: (?:me|the user|user|first|for (?:explicit )?(?:permission|approval|confirmation)"
    r"|permission|from (?:me|the user)|explicitly|a human))*"
)
_ASK_FIRST = re.compile(
    r"^\W*(?:⚠️ ?)?(?:ask (?:first|before\b.*)|(?:require|need)s? (?:explicit )?(?:user |human )?"
    r"(?:approval|permission|confirmation).*|(?:get|ask for) (?:approval|permission) (?:first"
    r"|before).*|(?:stop and )?ask (?:me|the user)(?: first| before)?.*|never without asking"
    r"|(?:do not|don['’]t|never) (?:do )?(?:these )?without (?:asking|permission"
    r"|approval))[\s:.]*$",
    re.I,
)


_SO = r"(?: (?:yourself|autonomously|on your own|automatically|proactively))?"


def _without_asking(never: str) -> tuple[re.Pattern[str], ...]:
    return forms(
        rf"{ADVERBS}{never}(?P<acts>.+?){_SO},? (?:unless|until|if not) {_ASKED}",
        rf"{ADVERBS}{never}(?P<acts>.+?){_SO},? without (?:first )?{_ASKED}",
    )


_NEVER_WITHOUT_ASKING = _without_asking(f"{NEVER} ")
_WITHOUT_ASKING_BELOW = _without_asking("")  # below "Do not"
_ASK_BEFORE = forms(
    rf"{ADVERBS}{_BEFORE_ASKING},? (?:before|prior to) (?P<acts>.+)",
    rf"before (?P<acts>.+?),? {_BEFORE_ASKING}",
    rf"only (?P<acts>.+?) (?:when|if|after|with|once|upon) {_ASKED}",
    rf"(?P<acts>.+?) only (?:when|if|after|with|once|upon) {_ASKED}",
    r"(?P<acts>.+?) (?:requires?|needs?) (?:explicit |user |human |prior )*"
    r"(?:approval|permission|confirmation|consent)",
    rf"no (?P<acts>.+?) (?:unless|without) {_ASKED}",
)


def ask_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not push unless asked; ask before adding dependencies."""
    above = (re.sub(r"[*`]", "", name) for name in (statement.label, *statement.under[-1:]))
    below = any(map(_ASK_FIRST.match, above))
    ways = _NEVER_WITHOUT_ASKING + (_WITHOUT_ASKING_BELOW if prohibits else ()) + _ASK_BEFORE
    match = whole_match(ways, clause)
    if match is None and not below:
        return None
    acts = match["acts"] if match else clause
    acts = re.sub(r"^(?:the |any |you )+", "", acts.strip(" ,"), flags=re.I)
    return _edits(acts) or _commands(acts)


_EDITS_OF = forms(
    rf"(?:{_EDITS}(?:(?: or |, |/| and ){_EDITS})* )(?:(?:the|any|files in|files under|in) )*"
    rf"(?P<files>{CODES})(?: files?| directory| folder)?"
)


def _edits(acts: str) -> list[Draft] | None:
    """Editing the files of a list of paths."""
    match = whole_match(_EDITS_OF, acts)
    names = [name for name, _ in names_in(match["files"])] if match else []
    globs = all_known([path_glob(name) for name in names])
    if globs is None:
        return None
    stems = [re.escape(name.strip("/*.").rpartition("/")[2].partition(".")[0]) for name in names]
    word = "|".join([r"\b(?:edit|modif|chang|touch|updat|delet|remov)", *filter(None, stems)])
    return [_asks({"changed": globs[0] if len(globs) == 1 else globs}, word)]


_SUCH_AS = re.compile(
    r"^(?:run|use|running|using) (?:any )?(?:destructive |dangerous |risky )+(?:git |shell )?"
    r"(?:commands?|operations?) (?:like|such as) (?=`)",
    re.I,
)
_JOINT = re.compile(r",? or |,? and |, |/(?=\w)")
_CODE_ACT = re.compile(
    r"(?:(?P<runs>run|running|execute|executing|use|using) )?`(?P<code>[^`]+)`"
    r"(?: anything| commands?)?"
)
# an act that has no command, and is left to the reader
_OTHER_ACT = re.compile(r"(?:(?:any|the|a|an|your|new|git) )*[a-z]+(?:ing|e|t|y|s)? [a-z `]+$")


def _commands(acts: str) -> list[Draft] | None:
    """Running commands, or acts that have one; None if one of them is not understood."""
    acts = _SUCH_AS.sub("", acts)
    hidden = re.sub(r"`[^`]*`", lambda match: "\x00" * len(match[0]), acts)
    cuts = [0, *(position for match in _JOINT.finditer(hidden) for position in match.span())]
    parts = [acts[a:b].strip() for a, b in zip(cuts[::2], [*cuts[1::2], len(acts)], strict=True)]
    drafts = []
    for part in filter(None, parts):
        if act := next((act for act in _ACTS if whole_match(act.ways, part)), None):
            branch = re.search(r"\bto `?(main|master|develop)`?", part)
            if branch and not act.command.startswith("git push"):
                return None
            to = rf"(?=.*[ :]{branch[1]}(?!\S))" if branch else ""
            command = act.command.replace("git push", f"git push{to}")
            drafts.append(_asks({"command": command}, act.word))
        elif (code := _CODE_ACT.fullmatch(part)) and _is_run(code):
            drafts.append(
                _asks({"command": command_pattern(code["code"])}, _word_for(code["code"]))
            )
        elif not _OTHER_ACT.match(part):
            return None
    return drafts or None


def _is_run(match: re.Match[str]) -> bool:
    is_said_to_run = (match["runs"] or "").startswith(("run", "execut"))
    return is_command(match["code"]) or (is_said_to_run and is_runnable(match["code"]))


def _word_for(command: str) -> str:
    """The pattern of a word of a command that a question about it has: "push" of `git push`."""
    words = [word for word in re.findall(r"[A-Za-z]{3,}", command) if word != "run"]
    return rf"\b(?:{'|'.join(map(re.escape, (words[1:] or words)[:4]))})"


def _asks(about: dict[str, str | Sequence[str]], word: str) -> Draft:
    pattern = f"(?i){word}"
    spec = {"name": "asks_before", **about, "asking": pattern, "ordered": pattern}
    return Draft("command" if "command" in about else "file", "gate", spec)
