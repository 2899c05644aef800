"""Rules about Git: what is never done with it, and how new branches are named.

    Never push to `main`.                    -> command_not_run("git push(?=.* main)")
    Branch names must start with `feature/`. -> command_not_run("git switch -c (?!feature/)")
    Never commit to `main`.                  -> commit_branch("^(?!main$)")

The patterns of commands are shortened above: they also cover refspecs, and the other ways to make a
branch.
"""

import re
from collections.abc import Sequence
from itertools import chain

from holdfast.drafting.agent_rules.command_rules import forbid_commands, forbid_matches
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.acts import Act, acts_in, acts_of
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of, command_pattern
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODES,
    NEVER,
    form,
    forms,
    literal,
    whole_match,
)
from holdfast.drafting.grammar.instruction_words import COMPARISONS, Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.rules_file import Statement

# --- What is never done

# "`main` or `develop` branches"
_BRANCHES = re.compile(
    r"(?:the )?(?P<branches>`?[\w./-]+`?(?:(?: or |, | and |/)`?[\w./-]+`?)*)(?: branch(?:es)?)?",
    re.I,
)
_USUAL_BRANCHES = ("main", "master", "develop", "dev", "trunk", "production", "staging")
_COMMITS = ("", "commits", "changes", "code", "anything", "directly", "new commits")
_PLACES = (Relation.TO, Relation.ON, Relation.IN)
# the branch that an item of a list is about: "`main` - production. *Do not push directly.*"
_THESE = re.compile(r"(?:them|it|(?:this|these|that|those|either) branch(?:es)?)(?: directly)?")
_THIS_ONE = re.compile(r"it\b|this\b|that\b")
_SAYS_BRANCH = re.compile(r"\bbranch(?:es)?\b", re.I)
_ITS_BRANCH = re.compile(r"`(?P<branch>[\w./-]+)`(?: branch)?\s*[—–:(-]")


def push_rule(clause: Clause) -> list[Draft]:
    """Reads "never push to `main`" and "open a PR instead of pushing to `main`"; "never commit or
    push to `main`" is a rule about commits too.
    """
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or not _forbids_pushing(instruction):
        return []
    names = _known_branches(instruction, clause)
    if not names:
        return []
    drafts = forbid_matches("git push" + _pushed_to(any_of(map(re.escape, names))))
    commits_too = "commit" in instruction.verbs and instruction.modality is Modality.NEVER
    return [*drafts, *(_forbid_commits_on(names) if commits_too else [])]


def _forbids_pushing(instruction: Instruction) -> bool:
    """Whether an instruction forbids pushing, or orders another act instead of it."""
    if instruction.modality is Modality.NEVER:
        is_push = "push" in instruction.verbs and instruction.does(["push", "commit"])
        return is_push and instruction.object.lower() in _COMMITS and instruction.has_only(*_PLACES)
    rejected = instruction.rejected_object or ""
    others = (*COMPARISONS, *_PLACES, Relation.THEN)
    is_order = instruction.modality is Modality.MUST and instruction.has_only(*others)
    return is_order and re.fullmatch("(?:directly )?pushing", rejected, re.I) is not None


def _known_branches(instruction: Instruction, clause: Clause) -> list[str]:
    """The branches after "to", if each has a usual name or stands in backticks."""
    opening = clause.statement.opening
    named = _ITS_BRANCH.match(opening)
    places = instruction.texts_of(*_PLACES)
    if named and not places and "directly" in clause.text:
        return [named["branch"]]
    if len(places) == 1 and _THESE.fullmatch(places[0]) and _SAYS_BRANCH.search(opening):
        branches = codes_in(opening)
        is_certain = len(branches) == 1 or not _THIS_ONE.match(places[0])
        return branches if is_certain else []  # "it" may be either of two
    names = _branch_list(instruction)
    are_known = all(name in _USUAL_BRANCHES or f"`{name}`" in clause.text for name in names)
    return names if are_known else []


def _branch_list(instruction: Instruction) -> list[str]:
    """The branches after "to" in an instruction about pushing."""
    places = instruction.texts_of(*_PLACES)
    match = _BRANCHES.fullmatch(places[0]) if len(places) == 1 else None
    if match is None:
        return []
    names = re.split(r" or | and |, |/(?=main|master)", match["branches"].replace("`", ""))
    return [name for name in names if name not in ("origin", "upstream")]


def _pushed_to(branch: str) -> str:
    """The part of a pattern that finds a branch among what is pushed, also as `+main`."""
    return rf"(?=.*[ :+](?:refs/heads/)?{branch}(?!\S))"


# names that are only those of branches, where `src` or production may be something else
_MAIN_BRANCHES = {"main", "master", "develop", "trunk"}
_SAYS_ONE_BRANCH = re.compile(r"\bbranch\b", re.I)  # `release` branches may have any names
_WORKS = ("commit", "make", "do", "change")
_WORK = re.compile(
    r"(?:(?:any|all|the|your|code|new|direct|feature) )*"
    r"(?:commits?|changes?|code|work|anything|development)?",
    re.I,
)
_MAIN = r"`?(?:main|master|develop|dev|trunk)`?"
_ON_MAIN = (
    rf"(?:on|to|in) (?:the )?(?P<rejected>{_MAIN}(?:(?: or |, |/){_MAIN})*)(?: branch(?:es)?)?"
)
_WORK_ON_MAIN = forms(
    {
        "Never work directly on the `main` branch": (
            rf"{NEVER} (?:work|develop|code|implement (?:features|changes))(?: directly)?"
            rf" {_ON_MAIN}"
        ),
        "Always work on a feature branch, never directly on `main`": (
            rf"{ADVERBS}(?:work|commit|develop|make (?:all )?(?:your )?changes) (?:on|in) (?:an? )?"
            r"(?:new )?(?:feature |topic |separate |dedicated )*branch(?:es)?,?"
            rf" (?:and )?(?:never|not) (?:directly )?{_ON_MAIN}"
        ),
    }
)


def commit_branch_rule(clause: Clause) -> list[Draft]:
    """Reads "never commit to `main`" and "always work on a feature branch, never on `main`"."""
    if match := None if clause.is_prohibited else whole_match(_WORK_ON_MAIN, clause.text):
        return _forbid_commits_on(_branch_names_in(match["rejected"]))
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.NEVER:
        return []
    is_of_commits = instruction.does(_WORKS) and _WORK.fullmatch(instruction.object) is not None
    is_always = instruction.has_only(*_PLACES)
    names = _known_branches(instruction, clause) if is_of_commits and is_always else []
    are_branches = set(names) <= _MAIN_BRANCHES or _SAYS_ONE_BRANCH.search(clause.text)
    return _forbid_commits_on(names) if names and are_branches else []


def _branch_names_in(text: str) -> list[str]:
    """The branches of a list such as "`main` or master"."""
    return re.findall(r"[\w.-]+", re.sub(r"\bor\b|`", " ", text))


def _forbid_commits_on(branches: Sequence[str]) -> list[Draft]:
    """Forbids commits on some branches."""
    pattern = rf"^(?!{any_of(map(literal, branches))}$)"
    return [Draft("commit", "prohibition", measure("commit_branch", pattern=pattern))]


_FORCED = ("git push --force", "git push --force-with-lease")
_OF_GIT = re.compile(r"\b(?:git|push\w*|rebas\w*|branch\w*|commit\w*)\b", re.I)
_NAMES_FORCING = re.compile(
    r"force-push(?:es|ing)?|(?:(?:blind|bare|plain|raw) )?`(?:git push )?--force`", re.I
)


def forced_push_rule(clause: Clause) -> list[Draft]:
    """Reads "never force-push to `main`"; a place such as "shared branches" limits nothing."""
    instruction = _prohibition_in(clause)
    if instruction is None or not instruction.has_only(*_PLACES, Relation.WHEN):
        return []
    names_forcing = _NAMES_FORCING.fullmatch(instruction.object) is not None
    if "--force" in instruction.object and not _OF_GIT.search(clause.context):
        return []  # `npm install` has such an option too
    if not (names_forcing or instruction.does(["force-push"])):
        return []
    # a line that names --force-with-lease recommends it instead of --force
    statement = clause.statement
    is_leased = "--force-with-lease" in f"{statement.label} {statement.text}"
    forced = _FORCED[:1] if is_leased else _FORCED
    pattern = any_of(map(command_pattern, forced))
    place = instruction.text_of(*_PLACES) or ""
    if names := _known_branches(instruction, clause):
        return forbid_matches(pattern + _pushed_to(any_of(map(re.escape, names))))
    return forbid_matches(pattern) if "`" not in place else []


_UNVERIFIED = ("git commit --no-verify", "git push --no-verify")
_HOOKS = re.compile(
    r"(?:(?:any|git|commit|pre-?commit|pre-push|them|it|these) ?)*(?:hooks?|checks)?", re.I
)
_PRE_COMMIT = re.compile(r"(?:running )?(?:the )?pre-?commit(?: hooks)?", re.I)
# "The hook changes the message and the commit succeeds - no `--no-verify`"
_DESCRIBES = re.compile(
    r"(?:the|a|this|it) [^`,;.—–-]* (?:completes?|succeeds?|works?|goes) ", re.I
)


def hook_rule(clause: Clause) -> list[Draft]:
    """Reads "do not skip hooks", "never use `--no-verify`" and "never commit without the hooks"."""
    instruction = _prohibition_in(clause)
    if instruction is None or _DESCRIBES.match(clause.statement.text):
        return []
    if _skips_hooks(instruction) or _uses_no_verify(instruction):
        return forbid_commands(_UNVERIFIED)
    left_out = instruction.text_of(Relation.WITHOUT) or ""
    is_commit = instruction.does(["commit"]) and _PRE_COMMIT.fullmatch(left_out) is not None
    return forbid_commands(_UNVERIFIED[:1]) if is_commit else []


def _skips_hooks(instruction: Instruction) -> bool:
    """Whether an instruction is about skipping hooks: "skip checks with `--no-verify`"."""
    option = instruction.text_of(Relation.WITH) or ""
    names_hooks = "--no-verify" in option or "hook" in instruction.object
    return (
        instruction.does(["skip", "bypass", "disable"])
        and names_hooks
        and _HOOKS.fullmatch(instruction.object) is not None
        and instruction.has_only(Relation.WITH, Relation.WHEN)
    )


def _uses_no_verify(instruction: Instruction) -> bool:
    """Whether an instruction is about the option: "pass `--no-verify` to `git commit`"."""
    return (
        re.fullmatch("`?--no-verify`?", instruction.object) is not None
        and instruction.does(["use", "pass", "add", "run"])
        and instruction.has_only(Relation.WHEN, Relation.WITH, Relation.TO, Relation.ON)
    )


# what is not pushed or committed at all, rather than only a certain thing: "never commit it"
_ANY_OBJECT = re.compile(
    r"(?:(?:any|an?|the|new|existing|previous|published|shared|GitHub|git|code) ?)*(?:PRs?"
    r"|pull requests?|issues?|branch(?:es)?|commits?|changes?|code|anything|releases?|tags?"
    r"|packages?"
    r"|history)?",
    re.I,
)


def amend_rule(clause: Clause) -> list[Draft]:
    """Reads "never amend commits" and "do not use `--amend`"."""
    instruction = _prohibition_in(clause)
    if instruction is None or not instruction.has_only():
        return []
    amends = instruction.does(["amend"]) and _ANY_OBJECT.fullmatch(instruction.object) is not None
    uses_option = "--amend" in instruction.object and instruction.does(["use", "pass", "run"])
    return forbid_commands(["git commit --amend"]) if amends or uses_option else []


_COMMENTING = form(
    "Never comment on GitHub issues or pull requests",
    rf"{NEVER} (?:comment|reply|post(?: comments?| replies)?|leave comments?) (?:on|to|in)"
    r" (?:(?:any|an?|the|GitHub|open|existing) )*(?:issues?|PRs?|pull requests?|discussions?)"
    r"(?:(?:,? (?:or|and) |, |/)(?:issues?|PRs?|pull requests?|discussions?))*",
)


def comment_rule(clause: Clause) -> list[Draft]:
    """Reads "never comment on issues or pull requests"."""
    if clause.is_prohibited or whole_match(_COMMENTING, clause.text) is None:
        return []
    return forbid_matches(r"gh (?:issue|pr) (?:comment|review)(?!\S)")


_GIT_CONFIG = re.compile(r"(?:your )?git config(?:uration)?", re.I)
_BY_PEOPLE = re.compile(r"\b(?:users?|humans?|maintainers?|developers?)\b", re.I)
_ANYWHERE = re.compile(r"(?:the )?(?:remote|repo|repository|origin|GitHub)?", re.I)
_PUSHED = re.compile(r"(?:pushing|committing)\b[^`]*", re.I)
_FORBIDDEN_VERBS = frozenset(
    "rebase merge open create make submit commit push rewrite delete recreate re-create close"
    " publish deploy".split()
)
# branches that are not rebased, while others may be
_SHARED = re.compile(r"\b(?:shared|public|published|others['’]?|someone else['’]s)\b", re.I)


def git_act_rule(clause: Clause) -> list[Draft]:
    """Reads "never commit" and "do not open pull requests", which forbid an act altogether."""
    instruction = _prohibition_in(clause)
    if instruction and _GIT_CONFIG.fullmatch(instruction.object):
        return _forbid_acts(acts_of(instruction))
    if clause.is_prohibited and len(listed := acts_in(clause.text)) > 1:
        if _SHARED.search(clause.text):
            listed = [act for act in listed if "git rebase" not in act.gate]
        return _forbid_acts(listed)
    if instruction is None or not instruction.does(_FORBIDDEN_VERBS):
        return []
    if not _ANY_OBJECT.fullmatch(instruction.object) or _is_about_one_place(instruction, clause):
        return []
    return _forbid_acts(acts_of(instruction, Relation.WHEN))


def _is_about_one_place(instruction: Instruction, clause: Clause) -> bool:
    """Whether an act is forbidden for one file or branch only, which the clause may not name."""
    verbs = set(instruction.verbs)
    if verbs == {"commit"} and not clause.begins_statement and "`" in clause.statement.text:
        return True  # "secrets are in `.env` (never commit)" is about this file
    if verbs & {"commit", "push", "rebase"} and _SHARED.search(clause.text):
        return True
    is_direct = re.search(r"\bdirectly\b", clause.text) is not None
    if is_direct and not _BY_PEOPLE.search(clause.statement.text):
        return True  # about a branch that another sentence names
    # "never commit to `main`" allows other commits
    return not _ANYWHERE.fullmatch(instruction.text_of(*_PLACES) or "")


def _forbid_acts(acts: Sequence[Act]) -> list[Draft]:
    """Forbids the commands of some acts; [] if there are none."""
    return forbid_matches(any_of(act.gate for act in acts)) if acts else []


def _prohibition_in(clause: Clause) -> Instruction | None:
    """The instruction of a clause if it forbids something, and whenever that is done."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.NEVER:
        return None
    is_always = all(map(_PUSHED.fullmatch, instruction.texts_of(Relation.WHEN)))
    return instruction if is_always else None


# --- The names of new branches

_NAMING = r"(?:(?: |-)(?:naming|names?|prefix(?:es)?|conventions?|format|pattern|strategy))"
_NAMES_LABEL = form(
    "Branch naming convention", rf"(?:git |feature )?branch(?:es)?{_NAMING}*(?: \([^()]*\))?"
)


def branches_below(statement: Statement) -> list[Draft]:
    """Reads a code block with `<type>/<description>` right below the heading "Branch naming"."""
    if len(statement.block) != 1 or not whole_match(_NAMES_LABEL, statement.text.strip("# *:")):
        return []
    return _branch_names([statement.block[0].strip()])


_NAMES_ALONE = form(  # after such a label, or below such a heading
    "use `feature/description` or `fix/description`",
    rf"(?:use |follow )?(?P<names>{CODES})(?:,? etc\.?)?",
)
_NAMING_RULES = forms(
    {
        "Branch names must start with `feature/`": (
            r"(?:all |new |git |feature )*branch(?:es| names)?"
            r" (?:must |should |are )?(?:always )?(?:be )?(?:named|follow|use|start with|begin with"
            rf"|prefixed with)(?: the)?(?: pattern| format| prefix)?:? (?P<names>{CODES})"
        ),
        "Use `feat/` or `fix/` branch prefixes": (
            rf"{ADVERBS}use (?:the )?(?P<names>{CODES}) (?:as )?branch(?: name)? prefix(?:es)?"
        ),
        "Create branches with the prefix `claude/`": (
            rf"{ADVERBS}(?:create|name|prefix|start)(?: all| new| your| every)*"
            r" branch(?:es)?(?: names)?"
            rf" (?:with|as|like|named)(?: the)?(?: prefix(?:es)?| format)? (?P<names>{CODES})"
            r"(?: \((?:e\.g\.|for example|such as),? `[^`]+`\))?"
        ),
        "Always create a new branch named `feat/<name>` before implementing": (
            rf"{ADVERBS}create an? (?:new )?(?:git |feature )?branch"
            rf" (?:named|called|name|like)(?: as| like)? (?P<names>{CODES})"
            r"(?: (?:before|for|when) [^`]+)?"
        ),
    }
)
_CREATES_NAMED = re.compile(rf"{ADVERBS}create an? (?:new )?(?:git |feature )?branch nam", re.I)
# after such a label, names without backticks: "feature/<topic>, fix/<ticket>"
_BARE_NAMES = re.compile(
    r"(?<![\w`/])[a-z]+/(?:<[\w -]+>|\{[\w -]+\}|\[[\w -]+\]|[\w-]+|\*)(?![\w`/])"
)
_PLACEHOLDER = r"(?:<[\w -]+>|\{[\w -]+\}|\[[\w -]+\]|\([\w -]+\))"
# `feature/xyz`, `<type>/<name>`, `<author>-bot/`
_NAME = re.compile(rf"(?P<first>(?:{_PLACEHOLDER}|[\w-])+)/.*")
_ANY_WORD = re.compile(rf"{_PLACEHOLDER}|type|kind|category|prefix|username|user|name|author", re.I)
_OF_ONE_VERSION = re.compile(r"[\w-]+/v?\d[\w.-]*")  # `release/2.4.2` is the name of one branch
_REMOTES = {"origin", "upstream", "remotes"}  # `origin/main` is a branch of one of these
_NEW_BRANCH = r"git (?:checkout -[bB]|switch -[cC]|branch(?! -)) "
_NO_NAME = r"\d*&?[<>]|&>|\S*[$`]"  # a redirection, or a name that only the shell knows


def branch_name_rule(clause: Clause) -> list[Draft]:
    """Reads "branch names: `feature/description`, `fix/description`"."""
    if clause.is_prohibited:
        return []
    statement = clause.statement
    is_labelled = _is_below_branch_names(statement)
    is_naming = is_labelled or _CREATES_NAMED.match(clause.text) is not None
    text = _BARE_NAMES.sub(r"`\g<0>`", clause.text) if is_naming else clause.text
    match = whole_match(_NAMING_RULES + (_NAMES_ALONE if is_labelled else ()), text)
    if match and statement.label and not whole_match(_GENERAL_LABEL, statement.label):
        return _branch_names_of_kinds(statement)
    if match is None:
        return []
    names = codes_in(match["names"])
    if statement.label:
        return _branch_names(names)
    around = (statement.earlier_items, statement.later_items)
    earlier, later = ([n["name"] for n in map(_NAME_FIRST.match, items) if n] for items in around)
    return _branch_names([*earlier, *names, *later])


def _is_below_branch_names(statement: Statement) -> bool:
    """Whether a label or a heading says that a statement is about the names of branches."""
    label, *headings = (name.strip(" :.") for name in (statement.label, *statement.under[-2:]))
    if whole_match(_NAMES_LABEL, label):
        return True
    if not headings:
        return False
    is_naming = _NAMING_HEADING.fullmatch(headings[-1]) is not None  # "Naming", below "Branches"
    is_of_branches = _ABOUT_BRANCHES.fullmatch(headings[0]) is not None
    return whole_match(_NAMES_LABEL, headings[-1]) is not None or (is_naming and is_of_branches)


_NAME_FIRST = re.compile(r"`(?P<name>[^`/]+/[^`]*)`")  # an item that begins with a name
_ABOUT_BRANCHES = re.compile(r"(?:git )?branch(?:es|ing)?(?: creation| strategy| rules)?", re.I)
_NAMING_HEADING = re.compile(r"(?:(?:naming|names?)(?: conventions?| format| pattern)?)", re.I)
_GENERAL_LABEL = _NAMES_LABEL + form(
    "Format", r"(?:use|always|format|pattern|names?|naming|prefix(?:es)?|conventions?|examples?)"
)
_KIND_OF_BRANCH = re.compile(rf"[\w -]{{2,30}}: (?P<names>{CODES})\W*")


def _branch_names_of_kinds(statement: Statement) -> list[Draft]:
    """Reads the list of which an item such as "Feature: `feature/name`" is one: each kind of branch
    has its own names, so that a new branch has a name of one of them.
    """
    others = (*statement.earlier_items, *statement.later_items)
    items = [_KIND_OF_BRANCH.fullmatch(item) for item in others]
    if not items or None in items:
        return []
    names = [codes_in(item["names"]) for item in items if item]
    earlier = names[: len(statement.earlier_items)]
    later = names[len(statement.earlier_items) :]
    return _branch_names([*chain(*earlier), *codes_in(statement.text), *chain(*later)])


def _branch_names(examples: Sequence[str]) -> list[Draft]:
    """The rule that new branches have names like these examples; [] if an example has no part
    before a slash.
    """
    names = [_NAME.fullmatch(example) for example in examples]
    firsts = [name["first"] for name in names if name]
    if len(firsts) < len(names) or not firsts or _REMOTES & set(firsts):
        return []
    if len(examples) == 1 and _OF_ONE_VERSION.fullmatch(examples[0]):
        return []
    if any(map(_ANY_WORD.fullmatch, firsts)):
        begins = r"[\w.-]+/"
    else:
        begins = any_of(dict.fromkeys(map(_first_part, firsts))) + "/"
    spec = measure("command_not_run", command=rf"{_NEW_BRANCH}(?!{begins}|{_NO_NAME})\S")
    return [Draft("command", "requirement", spec)]


def _first_part(name: str) -> str:
    """The pattern of the first part of a name, such as `<author>-bot`, with its placeholders."""
    parts = re.split(rf"({_PLACEHOLDER})", name)
    return "".join(r"[\w.]+" if number % 2 else literal(part) for number, part in enumerate(parts))
