"""The words for rules on the acts of a coding agent: commands, files and commits.

For example, for `{"name": "runs_before", "first": "npm test", "then": "git push"}`:

    wording:  "Always run the tests before you push."
    order:    "Just push it now."
"""

import re
from collections.abc import Sequence

from holdfast.measures.wording.command_words import command_cues, runner_words
from holdfast.measures.wording.wordings import (
    OBLIGATION,
    Arguments,
    Cues,
    MeasureWords,
    OrderAboutIt,
    Wording,
    always,
)

# --- Commands

# orders a step without the one that should come before it: "*just* push it", "push *anyway*"
_AT_ONCE = (
    r"\b(?:just|simply|straight|directly|immediately|right (?:away|now)|anyway|as (?:it )?is)\b"
)
# says that a step may come later: "the tests *can wait*"
_WAITS = r"\b(?:can (?:\w+ )?wait|later|afterwards?|another time)\b"
# says that one step comes before another: "test *before* you push", "push when CI is *green*"
_BEFORE = r"\b(?:before|first|precedes?|pass(?:es|ed)?|green|then)\b"


def _forbidden_command(arguments: Arguments) -> Sequence[Wording]:
    return [Wording(forbidden=patterns) for patterns in command_cues(arguments["command"])]


def _orders_for_command(command: str) -> Cues:
    return Cues(forbidden=tuple(command_cues(command)))


def _order_of_commands(arguments: Arguments) -> Sequence[Wording]:
    """Returns the wordings of "run X before Y" and "never Y without X"."""
    first = runner_words(arguments["first"])
    if not first:
        return ()
    wordings: list[Wording] = []
    for patterns in command_cues(arguments["then"]):
        lacking = rf"\b(?:without|before|until|unless)\b.*{first}"
        never = rf"\b(?:never|not|no|nothing)\b.*(?:{patterns[0]}).*{lacking}"
        wordings.append(Wording((first, _BEFORE, OBLIGATION, *patterns), asks=True))
        wordings.append(Wording((never, *patterns)))
    return wordings


def _orders_to_skip(first: str, then: str | None) -> Cues:
    """Returns the cues of orders against "X before Y", such as "just Y" or "no X this time"."""
    at_once = tuple((*cue, _AT_ONCE) for cue in command_cues(then)) if then else ()
    checks = runner_words(first)
    waits = ((checks, _WAITS),) if checks else ()
    return Cues(forbidden=(*at_once, *waits), demanded=checks, demanded_lasts=False)


# --- Files

# orders a change of a file: "*bump* the version in package.json"
_CHANGES = (
    r"\b(?:add|adjust|bump|change|correct|create|delete|edit|extend|fix|insert|modify|move|patch"
    r"|put|remove|rename|replace|rewrite|set|tweak|update|write)\b"
)
# orders a change of what was named before: "*fix it there*"
_CHANGES_IT = (
    rf"{_CHANGES} (?:it|this|that|them)(?: (?:there|now|please|too|directly|in place))*\W*$"
)
# speaks of a change of a file, in prohibitions: "leave migrations *alone*", "do not *touch* .env"
_TOUCHES = (
    rf"{_CHANGES}|\b(?:avoid|touch\w*|edit\w*|chang\w+|alone|limits|hands|modif\w+|untouched)\b"
)
# names of folders that do not tell files apart
_COMMON_FOLDERS = frozenset("src lib app docs doc test tests packages".split())


def _names_of_path(path: str) -> str:
    """Returns a pattern for the names of a file and its folder; "" if it has none.

    People call migrations/* "the migration" too.
    """
    segments = [part for part in re.split(r"[/*?]+", path.casefold()) if part]
    telling = [part for part in segments if part not in _COMMON_FOLDERS] or segments
    names = [re.escape(part) for part in dict.fromkeys([*segments[-1:], *telling])]
    names += [re.escape(part[:-1]) for part in telling if part.endswith("s") and len(part) > 4]
    if ".env" in segments:
        names += ["env(?:ironment)? file"]
    if any("lock" in part for part in segments[-1:]):
        names += ["lock ?files?"]
    if any(part == "alembic" or part.startswith("migrat") for part in segments):
        names += ["migrations?"]
    return rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])" if names else ""


def _untouched_file(arguments: Arguments) -> Sequence[Wording]:
    file = _names_of_path(arguments["path"])
    return (Wording(forbidden=(file, _TOUCHES)),) if file else ()


def _orders_to_change(arguments: Arguments) -> Cues:
    """Returns the cues of orders to change a file, which they may name by its folder."""
    file = _names_of_path(arguments["path"])
    if not file:
        return Cues()
    return Cues(forbidden=((_CHANGES, file),), forbidden_it=(OrderAboutIt(_CHANGES_IT, file),))


def _names_of_files(globs: Sequence[str] | str) -> str:
    """Returns a pattern for the names of files; "" if they have none.

    CHANGELOG.md is also "the changelog", but index.md is not "the index". What is left out *from* a
    file is not the file.
    """
    names: list[str] = []
    for glob in [globs] if isinstance(globs, str) else globs:
        name = glob.casefold().rpartition("/")[2]
        stem = name.partition(".")[0]
        names += [name, stem] if stem in ("changelog", "readme") else [name]
    plain = [re.escape(name) for name in dict.fromkeys(names) if name and "*" not in name]
    files = "|".join(plain)
    return rf"(?<![\w-])(?<!from )(?<!from the )(?:{files})(?![\w-])" if plain else ""


# --- Questions to the user, branches, and messages of commits

# "push without *asking*"
_ASKING = r"asking|ask|confirm\w*|permission|questions?"
# "do not commit *to the release branch* this time"
_BRANCH = r"\b(?:on|to) (?:main|master|(?:the|this) (?:\w+ )?branch)\b"
# "commit it without the *ticket number*"
_PART_OF_MESSAGE = r"\b(?:ticket|prefix|scope|issue)(?: (?:number|id|key))?s?\b"

AGENT_WORDS = {
    "command_not_run": MeasureWords(
        wordings=_forbidden_command,
        orders_against=lambda arguments: _orders_for_command(arguments["command"]),
    ),
    "prefers": MeasureWords(
        orders_against=lambda arguments: _orders_for_command(arguments["rather_than"])
    ),
    "runs_before": MeasureWords(
        wordings=_order_of_commands,
        orders_against=lambda arguments: _orders_to_skip(arguments["first"], arguments["then"]),
    ),
    "runs_after": MeasureWords(
        orders_against=lambda arguments: _orders_to_skip(arguments["run"], arguments.get("after"))
    ),
    "asks_before": MeasureWords(
        orders_against=always(Cues(demanded=_ASKING, demanded_lasts=False))
    ),
    "file_not_touched": MeasureWords(wordings=_untouched_file, orders_against=_orders_to_change),
    "changes_together": MeasureWords(
        orders_against=lambda arguments: Cues(
            demanded=_names_of_files(arguments["also"]), demanded_lasts=False
        )
    ),
    "commit_branch": MeasureWords(
        orders_against=always(Cues(demanded=_BRANCH, demanded_lasts=False))
    ),
    "commit_message": MeasureWords(
        orders_against=always(Cues(demanded=_PART_OF_MESSAGE, demanded_lasts=False))
    ),
}
