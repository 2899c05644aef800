"""Measures of the commits that an agent makes: their messages, and the files in them."""

from holdfast.errors import UsageError
from holdfast.measures.actions import Globs, Pattern, check_patterns, is_among
from holdfast.measures.agent_commits import SIGN_OFF, Commit, commits_in
from holdfast.measures.patterns import matches
from holdfast.measures.reasons import mismatch
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
    commits = [commit for commit in commits_in(turn) if commit.is_worded]
    messages = [(commit, commit.message_for(pattern)) for commit in commits]
    shown = [message for _, message in messages if message is not None]
    others = [(commit, text) for commit, text in messages if text and not matches(pattern, text)]
    broken = [text for commit, text in others if not commit.may_fit(pattern)]
    if len(shown) - len(others) + len(broken) < len(messages) and not broken:
        return Undecided("the log does not show the message of a commit")
    if not messages:
        return None
    kept = "every message matches the rule's pattern"
    reason = mismatch("the message", broken[0], pattern) if broken else kept
    return Score(1 - len(broken) / len(shown), reason)


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
    turn: AssistantTurn, paths: Globs | None, trailer: str | None, wanted: bool
) -> Score | Undecided | None:
    commits = list(commits_in(turn))
    has = [
        _has_path(commit, paths) if paths is not None else _has_trailer(commit, trailer or "")
        for commit in commits
    ]
    if not commits:
        return None
    if None in has:
        what = "files" if paths is not None else "message"
        return Undecided(f"the log does not show the {what} of a commit")
    kept = sum(value is wanted for value in has)
    sought, broken = _sought(paths), len(has) - kept
    if not broken:
        return Score(1.0, f"{'every' if wanted else 'no'} commit includes {sought}")
    which = "the commit" if len(has) == 1 else f"{broken} of {len(has)} commits"
    verb = "without" if wanted else "with"
    return Score(
        kept / len(has), f"{which} {'was' if len(has) == 1 else 'were'} made {verb} {sought}"
    )


def _sought(paths: Globs | None) -> str:
    """The paths or the line that a rule wants or forbids in a commit, in words."""
    if paths is None:
        return "a line of the form that the rule names"
    return " or ".join([paths] if isinstance(paths, str) else paths)


def _has_path(commit: Commit, paths: Globs) -> bool | None:
    if any(is_among(path, paths) for path in commit.paths):
        return True
    return False if commit.is_all_shown else None


def _has_trailer(commit: Commit, trailer: str) -> bool | None:
    below = (commit.message or "").strip().splitlines()[1:]
    added = [*commit.trailers, *([SIGN_OFF] if commit.is_signed_off else [])]
    if any(matches(trailer, line.strip()) for line in (*below, *added)):
        return True
    return None if commit.message is None or commit.may_fit(trailer) else False
