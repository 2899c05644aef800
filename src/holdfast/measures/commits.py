"""Measures of the commits that an agent makes: their messages, and the files in them."""

from holdfast.errors import UsageError
from holdfast.measures.actions import Globs, Pattern, check_patterns, is_among
from holdfast.measures.agent_commits import SIGN_OFF, Commit, commits_in
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
    """
    shown: list[str] = []
    broken: list[str] = []
    is_any_unknown = False
    for commit in commits_in(turn):
        if not commit.is_worded:
            continue
        message = commit.message_for(pattern)
        if message is None:
            is_any_unknown = True
            continue
        shown.append(message)
        if message and not matches(pattern, message):
            if commit.may_fit(pattern):
                is_any_unknown = True
            else:
                broken.append(message)
    if broken:
        reason = explain_mismatch("the message", broken[0], pattern)
        return Score(1 - len(broken) / len(shown), reason)
    if is_any_unknown:
        return Undecided("the log does not show the message of a commit")
    if not shown:
        return None
    return Score(1.0, "every message matches the rule's pattern")


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
    """
    return _share(turn, paths, trailer, wanted=True)


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
    """
    return _share(turn, paths, trailer, wanted=False)


def _share(
    turn: AssistantTurn, paths: Globs | None, trailer: str | None, *, wanted: bool
) -> Score | Undecided | None:
    """Scores the commits by whether each includes a path or a trailer, which is wanted or not."""
    commits = list(commits_in(turn))
    if not commits:
        return None
    if paths is not None:
        part = "files"
        thing = " or ".join([paths] if isinstance(paths, str) else paths)
        includes = [_has_path(commit, paths) for commit in commits]
    else:
        part = "message"
        thing = "a line that matches the rule's pattern"
        includes = [_has_trailer(commit, trailer or "") for commit in commits]
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


def _has_path(commit: Commit, paths: Globs) -> bool | None:
    """Whether a commit includes a file with one of these paths; None if that is not known."""
    if any(is_among(path, paths) for path in commit.paths):
        return True
    return False if commit.is_all_shown else None


def _has_trailer(commit: Commit, trailer: str) -> bool | None:
    """Whether a line below the subject of a commit matches; None if that is not known."""
    below = (commit.message or "").strip().splitlines()[1:]
    added = [*commit.trailers, *([SIGN_OFF] if commit.is_signed_off else [])]
    if any(matches(trailer, line.strip()) for line in (*below, *added)):
        return True
    if commit.message is None or commit.may_fit(trailer):
        return None
    return False
