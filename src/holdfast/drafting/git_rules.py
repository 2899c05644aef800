"""Rules about Git: what is never done with it, and the branches that are pushed to or made."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.drafting.clauses import Clause, codes_in
from holdfast.drafting.command_rules import forbid_commands, forbid_matches
from holdfast.drafting.commands import any_of, command_pattern
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODES,
    NEVER,
    TAIL,
    ForbiddenAct,
    any_words,
    forbid,
    forms,
    whole_match,
)
from holdfast.drafting.instructions import is_imperative
from holdfast.drafting.rules_file import Statement

# --- Branches that are not pushed to

_BRANCHES = r"(?P<branches>`?[\w./-]+`?(?:(?: or |, |/)`?[\w./-]+`?)*)(?: branch(?:es)?)?"
_PUSHING = forbid(
    {
        "push commits directly to the `main` branch": (
            r"(?:directly )?(?:commit (?:or|and) push|push)(?: directly)?"
            rf" (?:commits |changes |code )?(?:directly )?(?:to|on) (?:the )?{_BRANCHES}{TAIL}"
        )
    },
    f"{any_words('always', 'please', 'important', 'strictly')}{NEVER} ",
)
_INSTEAD_OF_PUSHING = forms(
    {
        "Open a PR instead of pushing directly to `main`": (
            r"(?P<wanted>(?:[\w-]+ ){1,6})(?:instead of|rather than|never by)"
            r" (?:directly )?pushing(?: directly)?"
            rf" (?:to|on) (?:the )?{_BRANCHES}{TAIL}"
        )
    }
)
_USUAL_BRANCHES = ("main", "master", "develop", "dev", "trunk", "production", "staging")

# --- Names of new branches

_NAMING = r"(?:(?: |-)(?:naming|names?|prefix(?:es)?|conventions?|format|pattern|strategy))"
_NAMES_LABEL = forms(
    {"Branch naming convention": rf"(?:git |feature )?branch(?:es)?{_NAMING}*(?: \([^()]*\))?"}
)
_NAMES_ALONE = forms(  # behind such a label, or below such a heading
    {
        "use `feature/description` or `fix/description`": (
            rf"(?:use |follow )?(?P<names>{CODES})(?:,? etc\.?)?"
        )
    }
)
_NAMING_RULES = forms(
    {
        "Branch names must start with `feature/`": (
            r"(?:all |new |git |feature )*branch(?:es| names)?"
            r" (?:must |should )?(?:always )?(?:be )?(?:named|follow|use|start with|begin with"
            rf"|prefixed with)(?: the)?(?: pattern| format| prefix)?:? (?P<names>{CODES})"
        ),
        "Use `feature/` branches": (
            rf"{ADVERBS}(?:use|create) (?P<names>`[\w-]+/[^`]*`) branch(?:es| names)?"
        ),
        "Create branches with the prefix `claude/`": (
            rf"{ADVERBS}(?:create|name|prefix|start)(?: all| new| your| every)*"
            r" branch(?:es)?(?: names)?"
            rf" (?:with|as|like|named)(?: the)?(?: prefix(?:es)?| format)? (?P<names>{CODES})"
        ),
    }
)
_NAME = re.compile(r"(?P<first>[<\[{(]?[\w-]+[>\]})]?)/.*")  # `feature/xyz`, `<type>/<name>`
_ANY_WORD = re.compile(r"[<\[{(].*|type|kind|category|prefix|username|user|name|author", re.I)
_REMOTES = {"origin", "upstream", "remotes"}  # `origin/main` is a branch of one of these
_NEW_BRANCH = r"git (?:checkout -[bB]|switch -[cC]|branch(?! -)) "
_NO_NAME = r"\d*&?[<>]|&>|\S*[$`]"  # a redirection, or a name that only the shell knows

# --- Acts that have commands

_WHEN_PUSHING = (
    r"(?:when (?:pushing|committing)[^,`]*, )?(?:always |please |make sure to |be sure to )*"
)


class _Act(NamedTuple):
    """An act that is named without a code span, and the commands that do it."""

    act: ForbiddenAct
    commands: tuple[str, ...]


def _act(example: str, pattern: str, *commands: str) -> _Act:
    return _Act(forbid({example: f"{pattern}{TAIL}"}, rf"{_WHEN_PUSHING}{NEVER} "), commands)


_FORCED = ("git push --force", "git push --force-with-lease")
_UNVERIFIED = ("git commit --no-verify", "git push --no-verify")
_ANY_PR = r"(?:an? |any )?(?:PRs?|pull requests?)"
_ACTS = (
    _act(
        "force-push to any shared branches",
        r"force[ -]push(?:es)?(?: (?:to|on) (?:any |shared |remote |collaborative )*"
        r"(?:branch(?:es)?|repos?))?",
        *_FORCED,
    ),
    _act(
        "amend published commits",
        r"amend (?:existing |previous |any |published )?(?:commits|a commit)",
        "git commit --amend",
    ),
    _act("use `--amend`", r"(?:use|pass) `?(?:git commit )?--amend`?", "git commit --amend"),
    _act(
        "skip pre-commit hooks with `--no-verify`",
        r"(?:skip|bypass|disable) (?:the |any )?(?:git |pre-commit |commit )*hooks?"
        r"(?: with `--no-verify`)?",
        *_UNVERIFIED,
    ),
    _act(
        "commit without running pre-commit",
        r"commit without (?:running )?(?:the )?pre-?commit(?: hooks)?",
        "git commit --no-verify",
    ),
    _act(
        "bypass them with `--no-verify`",
        r"bypass(?: them| it| hooks)? with `--no-verify`",
        *_UNVERIFIED,
    ),
    _act("use --no-verify", r"(?:use|pass|add) `?--no-verify`?", *_UNVERIFIED),
    _act("rebase branches", r"rebase(?: branches| commits)?", "git rebase"),
    _act("merge pull requests", r"merge (?:PRs?|pull requests?)", "gh pr merge"),
    _act("open a PR", rf"(?:create|open|submit) {_ANY_PR}", "gh pr create"),
    _act(
        "open an issue",
        r"(?:create|open|submit) (?:an? |any )?(?:GitHub )?issues?",
        "gh issue create",
    ),
    _act("commit changes", r"(?:run )?(?:git )?commit(?: anything| changes| code)?", "git commit"),
    _act(
        "push to the remote",
        r"push(?: anything| changes| code| to (?:the )?remote)?",
        "git push",
    ),
    _act(
        "commit or push changes",
        r"(?:commit (?:or|and|/) ?push|push (?:or|and) commit)(?: changes| code)?",
        "git commit",
        "git push",
    ),
)
_FORCED_TO, _ = _act(
    "force-push to `main`", r"force[ -]push(?:es)? to `?(?P<branch>main|master)`?(?: branch)?"
)
# "do not push directly" is about a branch that another sentence names
_PUSH_DIRECTLY = re.compile(r"\bpush directly\b", re.I)


def push_rule(clause: Clause) -> list[Draft]:
    """Reads "never push to `main`"."""
    match = _PUSHING.match(clause.text, clause.is_prohibited) or _match_instead_of_pushing(clause)
    if match is None:
        return []
    names = re.split(r" or |, |/(?=main|master)", match["branches"].replace("`", ""))
    if not all(name in _USUAL_BRANCHES or f"`{name}`" in clause.text for name in names):
        return []
    return forbid_matches("git push" + _pushed_to(any_of(map(re.escape, names))))


def _match_instead_of_pushing(clause: Clause) -> re.Match[str] | None:
    """The match of "open a PR instead of pushing to `main`"; None if it is not an order."""
    if clause.is_prohibited or re.match("prefer|consider", clause.text, re.I):
        return None
    match = whole_match(_INSTEAD_OF_PUSHING, clause.text)
    return match if match and is_imperative(match["wanted"]) else None


def _pushed_to(branch: str) -> str:
    """The part of a pattern that finds a branch among what is pushed, also as `+main`."""
    return rf"(?=.*[ :+](?:refs/heads/)?{branch}(?!\S))"


def branches_below(statement: Statement) -> list[Draft]:
    """Reads a code block with `<type>/<description>` right below the heading "Branch naming"."""
    if len(statement.block) != 1 or not whole_match(_NAMES_LABEL, statement.text.strip("# *:")):
        return []
    return _branch_names([statement.block[0].strip()])


def branch_name_rule(clause: Clause) -> list[Draft]:
    """Reads "branch names: `feature/description`, `fix/description`"."""
    if clause.is_prohibited:
        return []
    above = (clause.statement.label, *clause.statement.under[-1:])
    is_labelled = any(whole_match(_NAMES_LABEL, name.strip(" :.")) for name in above)
    match = whole_match(_NAMING_RULES + (_NAMES_ALONE if is_labelled else ()), clause.text)
    return _branch_names(codes_in(match["names"])) if match else []


def _branch_names(examples: Sequence[str]) -> list[Draft]:
    """The rule that new branches have names like these examples; [] if an example has no part
    before a slash.
    """
    names = [_NAME.fullmatch(example) for example in examples]
    firsts = [name["first"] for name in names if name]
    if len(firsts) < len(names) or not firsts or _REMOTES & set(firsts):
        return []
    if any(map(_ANY_WORD.fullmatch, firsts)):
        begins = r"[\w.-]+/"
    else:
        begins = any_of(map(_escape, firsts)) + "/"
    spec = {"name": "command_not_run", "command": rf"{_NEW_BRANCH}(?!{begins}|{_NO_NAME})\S"}
    return [Draft("command", "requirement", spec)]


def _escape(name: str) -> str:
    return re.escape(name).replace(r"\-", "-")


def git_act_rule(clause: Clause) -> list[Draft]:
    """Reads "never force-push"."""
    if _PUSH_DIRECTLY.search(clause.text):
        return []
    # a line that names --force-with-lease recommends it instead of --force
    forced = _FORCED[:1] if "--force-with-lease" in clause.statement.text else _FORCED
    for act, commands in _ACTS:
        if act.match(clause.text, clause.is_prohibited):
            return forbid_commands(forced if commands == _FORCED else commands)
    if match := _FORCED_TO.match(clause.text, clause.is_prohibited):
        return forbid_matches(any_of(map(command_pattern, forced)) + _pushed_to(match["branch"]))
    return []
