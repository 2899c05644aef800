"""Rules about what needs the user's word first: "do not push unless asked", "ask before you delete
files", and items below "Ask first".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.drafting.clauses import all_known, names_in
from holdfast.drafting.commands import command_pattern, is_command, is_runnable
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODES,
    NEVER,
    Form,
    any_words,
    first_match,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.path_globs import path_glob
from holdfast.drafting.rules_file import Statement


@dataclass(frozen=True)
class _Act:
    """An act to ask about.

    Args:
        form: the ways to name it.
        command: the pattern of the commands that do it.
        word: the pattern of a word for it in a question.
    """

    form: Form
    command: str
    word: str


def _act(example: str, *ways: str, command: str, word: str) -> _Act:
    (form,) = forms({example: one_of(*ways)})
    return _Act(form, command, word)


_ENDS = r"(?!\S)"
_NEW = r"(?: (?:an?|any|new|the|draft|GitHub))*"
# "push *any changes to git*"
_THINGS = r"(?: (?:any|the|your|new|these|code|files|all|changes?|anything|it|a|an|git|to git))*"
# "push *to the remote*"
_TO = (
    r"(?: (?:to|on|onto) (?:the |a |any )?(?:remote|origin|repo(?:sitory)?|GitHub|branch"
    r"|`?(?:main|master|origin|develop)`?)(?: branch)?)?"
)
_OPENING = one_of(
    *"open opening create creating submit submitting raise raising make making".split(),
    *"publish publishing".split(),
)
_REQUESTS = r"(?:PRs?|pull[ -]requests?|merge requests?)"
_ADDING = one_of(*("add", "adding", "install", "installing", "introduc(?:e|ing)", "chang(?:e|ing)"))
_KINDS_OF_DEPENDENCY = one_of(
    *"third-party npm external production runtime python project major heavy package".split()
)
_DEPENDENCIES = r"(?:dependency|dependencies|packages?|librar(?:y|ies)|modules)"
_INSTALLS = one_of(
    *("npm (?:install|i|add)", "pnpm (?:add|install)", "yarn add", "bun (?:add|install)"),
    *("pip3? install", "uv (?:add|pip install)", "poetry add", "cargo add", "go get"),
    *("gem install", "bundle add", "composer require", "dotnet add"),
)
_DEPLOYS = one_of(
    *("(?:npm|pnpm|yarn|make) (?:run )?deploy", "vercel", "wrangler deploy", "firebase deploy"),
    *("fly deploy", "netlify deploy", "terraform apply", "pulumi up", "cdk deploy"),
    *("az deployment", "kubectl apply", "serverless deploy", "gcloud (?:app|run) deploy"),
)
_PUBLISHES = one_of("(?:npm|pnpm|yarn|bun|cargo|uv|poetry) publish", "twine upload")
_ACTS = (
    _act(
        "force-push to the main branch",
        rf"force[ -]?push(?:ing)?{_TO}",
        r"(?:use|using) `?--force`?",
        command=r"git push(?=.* (?:--force\S*|-f)(?!\S))",
        word="force",
    ),
    _act(
        "commit any changes",
        rf"(?:git |auto-?)?commit(?:ting|s)?{_THINGS}",
        r"(?:make|making|create|creating)(?: any| new| a| git)* commits?",
        r"`git commit`",
        r"run(?:ning)? `git commit`",
        command=rf"git commit{_ENDS}",
        word=r"\bcommit",
    ),
    _act(
        "push changes to the remote",
        rf"(?:git |auto-?)?push(?:ing|es)?{_THINGS}{_TO}",
        r"`git push`",
        r"run(?:ning)? `git push`",
        command=rf"git push{_ENDS}",
        word=r"\bpush",
    ),
    _act(
        "open new pull requests",
        rf"{_OPENING}{_NEW} {_REQUESTS}",
        r"`gh pr create`",
        command=rf"(?:gh pr create|glab mr create){_ENDS}",
        word=r"\b(?:PRs?|MR|pull|merge) ?",
    ),
    _act(
        "file an issue",
        rf"(?:open|opening|create|creating|file|filing){_NEW} issues?",
        command=rf"gh issue create{_ENDS}",
        word=r"\bissue",
    ),
    _act(
        "comment on GitHub issues",
        r"comment(?:ing)? on (?:an? |any )?(?:GitHub )?(?:issues?|PRs?|pull requests?)",
        command=rf"gh (?:issue|pr) comment{_ENDS}",
        word=r"\bcomment",
    ),
    _act(
        "merge the branch into main",
        rf"merg(?:e|ing){_NEW}(?: PRs?| pull requests?| branch(?:es)?)?"
        r"(?: (?:in)?to `?(?:main|master)`?)?",
        command=rf"(?:git merge|gh pr merge){_ENDS}",
        word=r"\bmerg",
    ),
    _act(
        "rebase branches",
        r"rebas(?:e|ing)(?: branch(?:es)?)?",
        command=rf"git rebase{_ENDS}",
        word=r"\brebas",
    ),
    _act(
        "amend existing commits",
        r"amend(?:ing)?(?: (?:any |existing )?commits?)?",
        command=r"git commit(?=.* --amend)",
        word=r"\bamend",
    ),
    _act(
        "create or switch branches",
        r"create or switch (?:git )?branches",
        command=rf"git (?:checkout|switch){_ENDS}(?!.* --)",
        word=r"\bbranch",
    ),
    _act(
        "make a new branch",
        rf"(?:create|creating|switch|switching|make|making){_NEW}(?: git)? branch(?:es)?",
        command=r"git (?:checkout -[bB]|switch -[cC]|branch [^-\s])",
        word=r"\bbranch",
    ),
    _act(
        "add third-party dependencies",
        rf"{_ADDING}(?: or (?:use|add|install))?{_NEW}(?: (?:application|project|app)['’]s)?"
        rf"(?: {_KINDS_OF_DEPENDENCY})* {_DEPENDENCIES}",
        command=rf"{_INSTALLS} [^-\s]",
        word=r"\b(?:depend|packag|librar|instal|add)",
    ),
    _act(
        "delete existing files or folders",
        rf"(?:delet(?:e|ing)|remov(?:e|ing)){_NEW}(?: existing)? files?"
        r"(?: or (?:directories|folders))?",
        command=rf"(?:git )?rm{_ENDS}",
        word=r"\b(?:delet|remov)",
    ),
    _act(
        "deploy anything to production",
        r"deploy(?:ing)?(?: anything| (?:\w+ )?resources| changes)?(?: to (?:prod|production))?",
        command=rf"{_DEPLOYS}{_ENDS}",
        word=r"\bdeploy",
    ),
    _act(
        "publish packages to npm",
        rf"publish(?:ing)?{_NEW}(?: packages?)?(?: to (?:npm|PyPI))?",
        command=rf"{_PUBLISHES}{_ENDS}",
        word=r"\bpublish",
    ),
    _act(
        "cut a release",
        rf"(?:create|creating|cut|cutting|publish|publishing){_NEW} releases?",
        command=rf"gh release create{_ENDS}",
        word=r"\brelease",
    ),
)

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
_WITHOUT_ASKING_BELOW = forms(  # below "Do not"
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
    }
)
_WARNING_SIGN = r"\W*(?:⚠️ ?)?"
# headings and labels of lists of acts
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


def ask_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not push unless asked; ask before adding dependencies."""
    ways = _NEVER_WITHOUT_ASKING + (_WITHOUT_ASKING_BELOW if prohibits else ()) + _ASK_BEFORE
    match = whole_match(ways, clause)
    if match is None and not any(map(_is_ask_first, (statement.label, *statement.under[-1:]))):
        return None
    acts = match["acts"] if match else clause
    acts = re.sub(r"^(?:the |any |you )+", "", acts.strip(" ,"), flags=re.I)
    return _edits(acts) or _commands(acts)


def _is_ask_first(heading: str) -> bool:
    """Whether what is below a heading needs the user's word."""
    plain = re.sub(r"[*`]", "", heading)
    return whole_match(_ASK_FIRST, re.sub(r"[\s:.]+$", "", plain)) is not None


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
# an act that has no command, and is left to the reader
_OTHER_ACT = re.compile(r"(?:(?:any|the|a|an|your|new|git) )*[a-z]+(?:ing|e|t|y|s)? [a-z `]+$")


def _commands(acts: str) -> list[Draft] | None:
    """Running commands, or acts that have one; None if one of them is not understood."""
    if introduction := first_match(_SUCH_AS, acts):
        acts = acts[introduction.end() :]
    drafts = []
    for part in _joined_acts(acts):
        if act := next((act for act in _ACTS if whole_match([act.form], part)), None):
            branch = re.search(r"\bto `?(main|master|develop)`?", part)
            if branch and not act.command.startswith("git push"):
                return None
            to = rf"(?=.*[ :]{branch[1]}(?!\S))" if branch else ""
            command = act.command.replace("git push", f"git push{to}")
            drafts.append(_asks({"command": command}, act.word))
        elif (code := whole_match(_CODE_ACT, part)) and _is_run(code):
            drafts.append(
                _asks({"command": command_pattern(code["code"])}, _word_for(code["code"]))
            )
        elif not _OTHER_ACT.match(part):
            return None
    return drafts or None


def _joined_acts(acts: str) -> list[str]:
    """The acts of a list, which is not cut within code spans."""
    hidden = re.sub(r"`[^`]*`", lambda match: "\x00" * len(match[0]), acts)
    cuts = [0, *(position for match in _JOINT.finditer(hidden) for position in match.span())]
    parts = [acts[a:b].strip() for a, b in zip(cuts[::2], [*cuts[1::2], len(acts)], strict=True)]
    return [part for part in parts if part]


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
