"""Acts that rules name in words, such as "deploy to production", and the commands that do them.

For example:

    "deploy to production"      -> acts_in -> [deploying: `vercel`, `fly deploy`, ...]
    "commit, push or open a PR" -> acts_in -> [committing, pushing, opening a pull request]
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holdfast.drafting.grammar.clause_tokens import read_tokens
from holdfast.drafting.grammar.forms import one_of
from holdfast.drafting.grammar.instruction_words import GERUNDS, PARTICIPLES, VERBS, Relation
from holdfast.drafting.grammar.instructions import Instruction

_ENDS = r"(?!\S)"  # where a word of a command ends


class Act(NamedTuple):
    """An act that has commands.

    Args:
        verbs: the verbs for it: "open", "create".
        things: the objects of these verbs: "pull request"; "" if the verb is enough.
        command: the pattern of the commands that do it.
        word: the pattern of a word by which a question refers to it.
        places: words for the place that it is done to, "" for anywhere: "push to *the remote*".
        event: the pattern of the commands before which others are run, if not all of `command`.
        nouns: words that name the act without a verb: "before every *commit*".
    """

    verbs: frozenset[str]
    things: frozenset[str]
    command: str
    word: str
    places: frozenset[str]
    event: str
    nouns: frozenset[str]

    @property
    def gate(self) -> str:
        """The pattern of the commands before which others are run."""
        return self.event or self.command


def _define(
    verbs: str,
    things: str,
    command: str,
    word: str,
    *,
    places: str = "",
    event: str = "",
    nouns: str = "",
) -> Act:
    """An act as in `Act`, with "|" between the words of each kind."""
    verb_words, thing_words, place_words, noun_words = (
        frozenset(words.split("|")) for words in (verbs, things, places, nouns)
    )
    return Act(verb_words, thing_words, command, word, place_words, event, noun_words)


_CHANGES = "|change|code|anything|file|work|it|them|commit|stuff|result|branch|everything"
_REMOTES = "|remote|origin|repo|repository|github|git|upstream|remote repository"
_BRANCHES = f"{_REMOTES}|branch|main|master|develop|main branch|remote branch"
_REQUESTS = "pr|pull request|merge request|pull-request|mr"
_INSTALLS = one_of(
    *("npm (?:install|i|add)", "pnpm (?:add|install)", "yarn add", "bun (?:add|install)"),
    *("pip3? install", "uv (?:add|pip install)", "poetry add", "cargo add", "go get"),
    *("gem install", "bundle add", "composer require", "dotnet add"),
)
# after "add": "a package" may be meant, "a call to the API" and "tests" are not
_A_PACKAGE = (
    r"(?!(?:an?|the|this|that|it|them|some|any|more|another|to|your|my|our|tests?|types?|docs?"
    r"|comments?|logs?|logging|support|validation|caching|errors?|fields?|columns?|checks?"
    r"|examples?)\b)[`\"']?[@\w][@\w./-]*+[`\"']?(?: (?:v\d|\d+\.)[\w.]*+)?(?=[.,;:!?\s]*"
    r"(?:$|(?:to|as|for|and|with|via|if|please|from|in|into|first|instead)\b))"
)
# "the httpx client": a package by its name and its kind
_THE_PACKAGE = (
    r"(?:the|an?) (?!(?:api|http|https|rest|web|test|new|old|same|other|custom|database|db)\b)"
    r"[`\"']?[a-z@][\w@./-]*[`\"']? (?:client|SDK|crate|gem|driver|bindings?|plugin)\b"
)
_DEPLOYS = one_of(
    *("(?:npm|pnpm|yarn|make) (?:run )?deploy", "vercel", "wrangler deploy", "firebase deploy"),
    *("fly deploy", "netlify deploy", "terraform apply", "pulumi up", "cdk deploy"),
    *("az deployment", "kubectl apply", "serverless deploy", "gcloud (?:app|run) deploy"),
)
_PUBLISHES = one_of("(?:npm|pnpm|yarn|bun|cargo|uv|poetry) publish", "twine upload")
_FORCED = r"git push(?=.* (?:--force\S*|-f)(?!\S))"
_REWRITES = (
    r"git (?:rebase|filter-branch|filter-repo|commit(?=.* --amend)|push(?=.* (?:--force|-f)))"
)
# `git merge main` brings another branch up to date
_MERGES_INTO_MAIN = (
    rf"(?:git merge(?! (?:origin/)?(?:main|master|develop){_ENDS})|gh pr merge"
    rf"|glab mr merge){_ENDS}"
)
_MERGED = f"|branch|it|change|code|commit|{_REQUESTS}"
_COMMIT = rf"git commit{_ENDS}"
_TAGS = r"git tag (?!-l\b|--list\b)"
ACTS = (
    _define(
        "commit|auto-commit",
        _CHANGES,
        _COMMIT,
        r"\bcommit",
        places=_REMOTES,
        nouns="commit",
    ),
    _define("make|create", "commit", _COMMIT, r"\bcommit"),
    _define(
        "push|auto-push",
        f"{_CHANGES}|commit",
        rf"git push{_ENDS}",
        r"\bpush",
        places=_BRANCHES,
        nouns="push",
    ),
    _define("force-push", _CHANGES, _FORCED, "force", places=_BRANCHES, nouns="force-push"),
    _define("pull", "|change", rf"git pull{_ENDS}", r"\bpull", places=_REMOTES),
    _define(
        "open|create|submit|raise|make|publish|file|update",
        _REQUESTS,
        rf"(?:gh pr create|glab mr create){_ENDS}",
        r"\b(?:PRs?|MR|pull|merge) ?",
        places=_REMOTES,
        event=rf"gh pr create{_ENDS}",
        nouns=_REQUESTS,
    ),
    _define(
        "request",
        "review|code review",
        rf"gh pr create{_ENDS}",
        r"\breview",
        nouns="review|code review",
    ),
    _define(
        "submit",
        "|change|code|work|it",
        rf"(?:git push|gh pr create){_ENDS}",
        r"\bsubmit",
        nouns="submission",
    ),
    _define("open|create|file|submit|raise", "issue", rf"gh issue create{_ENDS}", r"\bissue"),
    _define("close", "issue", rf"gh issue close{_ENDS}", r"\bclos"),
    _define("close", _REQUESTS, rf"gh pr close{_ENDS}", r"\bclos"),
    _define(
        "comment",
        "",
        rf"gh (?:issue|pr) comment{_ENDS}",
        r"\bcomment",
        places="|issue|pr|pull request",
    ),
    _define("merge", _REQUESTS, rf"(?:gh pr merge|glab mr merge){_ENDS}", r"\bmerg"),
    _define(
        "merge",
        _MERGED,
        _MERGES_INTO_MAIN,
        r"\bmerg",
        places="main|master|develop|main branch|default branch",
    ),
    _define("merge", _MERGED, rf"(?:git merge|gh pr merge){_ENDS}", r"\bmerg", nouns="merge"),
    _define(
        "use|do|perform|squash",
        "squash merge|squash-merge|squash merging",
        r"(?:gh pr merge|git merge)(?=.* --squash)",
        r"\bsquash",
        nouns="squash merge|squash-merge|squash",
    ),
    _define(
        "use|run|execute",
        "ssh|ssh command|ssh session|remote command",
        rf"ssh{_ENDS}",
        r"\b(?:ssh|remote (?:command|host|machine|server|shell))",
        nouns="ssh command|ssh session",
    ),
    _define("rebase", "|branch|commit", rf"git rebase{_ENDS}", r"\brebas"),
    _define("amend", "|commit", r"git commit(?=.* --amend)", r"\bamend"),
    _define("switch|change", "branch", rf"git (?:checkout|switch){_ENDS}(?!.* --)", r"\bbranch"),
    _define("delete|remove", "branch", r"git branch -[dD]", r"\bbranch"),
    _define(
        "make|create|open|start",
        "branch|feature branch|topic branch",
        r"git (?:checkout -[bB]|switch -[cC]|branch [^-\s])",
        r"\bbranch",
    ),
    _define(
        "add|install|introduce|change|use|bring",
        "dependency|package|library|module",
        rf"{_INSTALLS} [^-\s]",
        rf"\b(?:depend|packag|librar|instal|add(?:ing)? (?:{_A_PACKAGE}|{_THE_PACKAGE}))",
        nouns="dependency|package|library",
    ),
    _define(
        "run|perform|execute|do|use",
        "destructive git operation|destructive git command|destructive git action",
        r"git (?:reset(?=.* --hard)|clean(?=.* -\w*f)|branch -D"
        r"|push(?=.* (?:--force\S*|-f)(?!\S)))",
        r"\b(?:reset|clean|force|delet|discard|destructive|branch)",
        nouns="destructive git operation|destructive git command|destructive git action",
    ),
    _define("delete|remove", "file|directory|folder", rf"(?:git )?rm{_ENDS}", r"\b(?:delet|remov)"),
    _define("rewrite", "history", _REWRITES, r"\b(?:rebas|rewrit|amend|force)"),
    _define(
        "change|update|modify|edit|alter|touch",
        "gitconfig",
        rf"git config(?! (?:--get|--list|-l){_ENDS})",
        r"\bconfig",
    ),
    _define("revert", "|commit|change", rf"git revert{_ENDS}", r"\brevert"),
    _define("create|push", "tag", _TAGS, r"\btag"),
    _define("tag", "release", _TAGS, r"\btag"),
    _define(
        "delete|remove|recreate|re-create|move|overwrite",
        "tag",
        r"git (?:tag(?=.* -[dfa]*[df]\b)|push(?=.* (?::refs/tags/|(?:--delete|-d) v?\d+\.)))",
        r"\btag",
    ),
    _define(
        "deploy",
        "|anything|resource|change|app|application|code",
        rf"{_DEPLOYS}{_ENDS}",
        r"\bdeploy",
        places="|prod|production",
        nouns="deployment|deploy",
    ),
    _define(
        "publish", "|package|anything", rf"{_PUBLISHES}{_ENDS}", r"\bpublish", places="|npm|pypi"
    ),
    _define("create|cut|publish|make", "release", rf"gh release create{_ENDS}", r"\brelease"),
)
# words before a thing that leave nothing out
_FILLERS = frozenset(
    """the any a an your my our new existing all these each every other another draft git github
    third-party npm external runtime python project major heavy production app's application's
    project's code file local remote published previous explicit single azure some current
    shared collaborative""".split()
)
# words that leave some changes out: "before committing large changes"
_OF_SOME = frozenset("large larger big bigger breaking significant risky complex schema".split())
_SUBJECTS = frozenset("you i we agents they having being are is to".split())
_IRREGULAR_SINGULARS = {"branches": "branch", "dependencies": "dependency", "libraries": "library"}
_OTHER_ACT = re.compile(r"[a-z][a-z `'-]*", re.I)  # "any new feature"
_PLACES = (Relation.TO, Relation.ON, Relation.IN)
_JOINT = re.compile(r",? or |,? and |, |/(?=\w)")
_GIT_CONFIG = re.compile(r"\bgit config(?:uration)?(?: (?:settings|files?))?\b", re.I)


def singular(word: str) -> str:
    """A noun without the ending of its plural."""
    if word in _IRREGULAR_SINGULARS:
        return _IRREGULAR_SINGULARS[word]
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word.removesuffix("s") if not word.endswith("ss") else word


def split_list(text: str) -> list[str]:
    """The parts of a list such as "commit, push or run `a or b`"; code spans stay whole."""
    without_code = re.sub(r"`[^`]*`", lambda match: "\x00" * len(match[0]), text)
    parts: list[str] = []
    start = 0
    for joint in _JOINT.finditer(without_code):
        parts.append(text[start : joint.start()].strip())
        start = joint.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def act_named(text: str) -> Act | None:
    """The act that a text names: "you commit any changes", "pushing to the remote", "every commit",
    "a pull request"; None if it names none, or one that is limited.
    """
    text = _GIT_CONFIG.sub("gitconfig", text)
    words = [token.word or token.text for token in read_tokens(text.strip(" .,"))]
    while words and words[0] in _SUBJECTS:
        words = words[1:]
    if not words:
        return None
    if words[:2] in (["force", "push"], ["force", "pushing"], ["force", "pushes"]):
        words = ["force-push", *words[2:]]
    verb = GERUNDS.get(words[0], words[0])
    if verb in VERBS and (act := _act_with_verb(verb, words[1:])):
        return act
    if words[-2:-1] in (["is"], ["are"]) and words[-1] in PARTICIPLES:  # "a PR is opened"
        return _act_with_verb(PARTICIPLES[words[-1]], words[:-2])
    if words[0] == "git" and words[1:]:
        return act_named(" ".join(words[1:]))
    thing, place = _thing_and_place(words)
    if place:
        return None
    return next((act for act in ACTS if thing and thing in act.nouns), None)


def _act_with_verb(verb: str, words: Sequence[str]) -> Act | None:
    """The act of a verb and the words after it."""
    thing, place = _thing_and_place(words)
    for act in ACTS:
        if verb in act.verbs and thing in act.things and place in act.places:
            return act
    return None


def _thing_and_place(words: Sequence[str]) -> tuple[str, str]:
    """The thing that some words name, without fillers and in the singular, and the place after
    "to".
    """
    words = [word for word in words if word not in ("directly", "manually", "yourself")]
    place = ""
    for preposition in ("to", "on", "onto", "into", "against"):
        if preposition in words:
            at = words.index(preposition)
            place = _without_fillers(words[at + 1 :])
            words = words[:at]
            break
    return _without_fillers(words), place


def _without_fillers(words: Sequence[str]) -> str:
    """Words without leading fillers and backticks, the last one in the singular."""
    rest = [word.strip("`") for word in words]
    while len(rest) > 1 and rest[0] in _FILLERS:
        rest = rest[1:]
    is_limited = not _OF_SOME.isdisjoint(rest)
    is_of_change = rest[-1:] in (["change"], ["changes"])
    if is_of_change and len(rest) <= 3 and not is_limited:  # "code changes"
        return "change"
    if rest and rest[0] in _FILLERS - {"code", "file", "git", "github"}:
        rest = rest[1:]
    return " ".join([*rest[:-1], singular(rest[-1])]) if rest else ""


def acts_in(text: str, *, may_name_others: bool = False) -> list[Act]:
    """The acts of a list such as "commit, push or open a PR"; [] if one of them is not known.

    A verb without a thing has the thing of the next one, and a thing without a verb the verb of the
    one before: "create, switch, or delete branches", "delete files or folders".

    Args:
        may_name_others: whether acts without a known command, such as "any new feature", are left
            out.
    """
    text = text.strip(" .,")
    is_list = len(split_list(text)) > 1
    if not is_list and (act := act_named(text)):
        return [act]
    acts: list[Act] = []
    verbs_before_thing: list[str] = []  # "create" and "switch" of "create, switch, or delete ..."
    last_verb = ""
    for part in split_list(text):
        first, _, thing = part.partition(" ")
        begins_with_verb = first.lower() in VERBS | GERUNDS.keys()
        act = act_named(part)
        if act is None and not begins_with_verb:
            act = act_named(f"{last_verb} {part}")
        if act is None and begins_with_verb and not thing:
            verbs_before_thing.append(first)
            continue
        if act is None and not (may_name_others and _OTHER_ACT.fullmatch(part)):
            return []
        if act or thing:
            earlier = [act_named(f"{verb} {thing}") for verb in verbs_before_thing]
            acts += filter(None, [*earlier, act])
            verbs_before_thing = []
        if act and begins_with_verb:
            last_verb = first
    return list(dict.fromkeys(acts))


def acts_of(instruction: Instruction, *further: Relation) -> list[Act]:
    """The acts that an instruction is about; [] if one of them is not known, or limited.

    Args:
        further: relations of circumstances that do not belong to the act: "without".
    """
    places = [f"to {text}" for text in instruction.texts_of(*_PLACES)]
    if not instruction.has_only(*_PLACES, *further):
        return []
    verbs = " or ".join(instruction.verbs)
    return acts_in(" ".join([verbs, instruction.object, *places]).strip())


def gate_of(acts: Iterable[Act]) -> str:
    """The pattern of the commands of some acts, before which others are run."""
    patterns = list(dict.fromkeys(act.gate for act in acts))
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"
