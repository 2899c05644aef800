"""Measures of the commits that an agent makes: their messages, and the files in them."""

import re
from collections.abc import Collection

from holdfast.errors import UsageError
from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_action import Action, Pattern, check_patterns
from holdfast.measures.agent_acts.edits.path_globs import Globs, is_among
from holdfast.measures.agent_acts.git.agent_commits import CommitFiles, CommitMessage, commits_in
from holdfast.measures.agent_acts.git.commit_actions import is_commit
from holdfast.measures.agent_acts.git.git_branches import commit_branches_in
from holdfast.measures.agent_acts.path_names import is_pattern, may_be_folder
from holdfast.measures.patterns import matches
from holdfast.measures.reasons import explain_mismatch
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn


@measure(
    check=lambda pattern: check_patterns(pattern), when_cut=WhenCut.IF_BROKEN, reads_earlier=True
)
def commit_message(turn: AssistantTurn, pattern: Pattern) -> Score | Undecided | None:
    """Share of the turn's commit messages that match the regular expression; turns without a
    commit do not count.

    With `pattern: '^(fix|feat): '`, the command "git commit -m 'fix: total'" scores 1, and
    "git commit -m Fixed" 0.
    """
    messages = [commit.message for commit in commits_in(turn) if commit.message.is_worded]
    shown = [
        (text, message) for message in messages if (text := message.text_for(pattern)) is not None
    ]
    others = [(text, message) for text, message in shown if text and not matches(pattern, text)]
    broken = [text for text, message in others if not message.may_fit(pattern)]
    if broken:
        reason = explain_mismatch("the message", broken[0], pattern)
        return Score(1 - len(broken) / len(shown), reason)
    if others or len(shown) < len(messages):
        return Undecided("the log does not show the message of a commit")
    if not shown:
        return None
    return Score(1.0, "every message matches the rule's pattern")


@measure(
    check=lambda pattern: check_patterns(pattern), when_cut=WhenCut.IF_BROKEN, reads_earlier=True
)
def commit_branch(turn: AssistantTurn, pattern: Pattern) -> Score | Undecided | None:
    """Share of the turn's commits on a branch whose name matches the regular expression; turns
    without a commit do not count. The branch is known from the log, from what Git prints, and from
    the commands that check one out.

    With `pattern: ^feat/`, the command "git checkout -b feat/a && git commit -m a" scores 1, and
    "git checkout main && git commit -m a" 0.
    """
    branches = [_branch_of(action) for action in actions_of(turn.calls) if is_commit(action)]
    others = [branch for branch in branches if branch and not matches(pattern, branch)]
    if not branches:
        return None
    if others:
        return Score(1 - len(others) / len(branches), f"a commit was made on {others[0]}")
    if "" in branches:
        return Undecided("the log does not show the branch of a commit")
    return Score(1.0, "every commit is on a branch that the rule's pattern matches")


def _branch_of(commit: Action) -> str:
    """Returns the branch of a commit; "" if the log does not show it."""
    shown = set(commit_branches_in(commit.result))
    return shown.pop() if len(shown) == 1 else commit.branch


def _check(name: str, paths: Globs | None, trailer: str | None) -> None:
    check_patterns(trailer)
    if (paths is None) is (trailer is None):
        raise UsageError(
            f"The measure {name!r} takes either paths or a trailer; give one of the two.",
            value=name,
        )


@measure(
    check=lambda paths, trailer: _check("commit_includes", paths, trailer),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def commit_includes(
    turn: AssistantTurn, paths: Globs | None = None, trailer: Pattern | None = None
) -> Score | Undecided | None:
    """Share of the turn's commits that include a file with one of these paths, or that have a line
    below the subject, such as a trailer, that the regular expression matches.

    With `paths: CHANGELOG.md`, the command "git commit -m a a.py CHANGELOG.md" scores 1, and
    "git commit -m a a.py" 0.
    """
    return _score_inclusion(turn, paths, trailer, wanted=True)


@measure(
    check=lambda paths, trailer: _check("commit_excludes", paths, trailer),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def commit_excludes(
    turn: AssistantTurn, paths: Globs | None = None, trailer: Pattern | None = None
) -> Score | Undecided | None:
    """Share of the turn's commits that include no file with one of these paths, or that have no
    line below the subject, such as a trailer, that the regular expression matches.

    With `paths: .env`, the command "git commit -m a a.py" scores 1, and "git commit -m a a.py .env"
    0.
    """
    return _score_inclusion(turn, paths, trailer, wanted=False)


def _score_inclusion(
    turn: AssistantTurn, paths: Globs | None, trailer: str | None, *, wanted: bool
) -> Score | Undecided | None:
    """Scores the commits by whether each includes a path or a trailer.

    Args:
        wanted: whether it has to include it, or must not.
    """
    commits = list(commits_in(turn))
    if not commits:
        return None
    if paths is not None:
        part = "files"
        thing = " or ".join([paths] if isinstance(paths, str) else paths)
        includes = [_has_path(commit.files, paths, wanted=wanted) for commit in commits]
    else:
        part = "message"
        thing = "a line that matches the rule's pattern"
        includes = [_has_trailer(commit.message, trailer or "") for commit in commits]
    if None in includes:
        return Undecided(f"the log does not show the {part} of a commit")
    good = includes.count(wanted)
    bad = len(commits) - good
    if not bad:
        return Score(1.0, f"{'every' if wanted else 'no'} commit includes {thing}")
    verb = "without" if wanted else "with"
    if len(commits) == 1:
        return Score(0.0, f"the commit was made {verb} {thing}")
    return Score(good / len(commits), f"{bad} of {len(commits)} commits were made {verb} {thing}")


def _has_path(files: CommitFiles, globs: Globs, *, wanted: bool) -> bool | None:
    """Whether a commit includes a file with one of these paths; None if that is not known.

    A file that is not wanted may be deleted.
    """
    paths = [path for path in files.paths if wanted or path not in files.removed]
    if any(is_among(path, globs) for path in paths):
        return True
    may_have = any(is_among(path, globs) for path in files.possible_paths)
    may_have = may_have or any(_may_hold(path, globs) for path in paths)
    named = [globs] if isinstance(globs, str) else globs
    is_shown = files.is_all_shown or all(_is_left_out(glob, files.excluded) for glob in named)
    return False if is_shown and not may_have else None


def _is_left_out(glob: str, excluded: Collection[str]) -> bool:
    """Whether a path that a rule names, or the same pattern, was left out of a commit."""
    if glob in excluded:
        return True
    return not is_pattern(glob) and any(is_among(path, glob) for path in excluded)


def _may_hold(path: str, globs: Globs) -> bool:
    """Whether an operand may be a folder, or a pattern, with a file that globs match.

    A glob may match the end of a path, so that any folder may hold the file.
    """
    if not is_pattern(path):
        return may_be_folder(path)
    all_globs = [globs] if isinstance(globs, str) else globs
    ends = [_fixed_end(glob) for glob in all_globs if not glob.startswith("!")]
    end = _fixed_end(path)
    return any(end.endswith(other) or other.endswith(end) for other in ends)


def _fixed_end(pattern: str) -> str:
    """Returns the end that all paths have which a pattern matches: ".md" of "docs/*.md"."""
    return re.split(r"[*?\]}/]", pattern)[-1]


def _has_trailer(message: CommitMessage, trailer: str) -> bool | None:
    """Whether a line below the subject of a message matches; None if that is not known.

    Git ignores the case of a trailer's name, and so does this.
    """
    if any(matches(trailer, line.strip(), "i") for line in message.lines_below()):
        return True
    is_shown = message.text is not None and not message.may_fit(trailer)
    return False if is_shown else None
