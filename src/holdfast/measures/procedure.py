"""Measures of how an agent goes about its work: the order of what it does."""

from collections.abc import Sequence

from holdfast.errors import UsageError
from holdfast.measures.actions import (
    Action,
    Globs,
    Pattern,
    actions_of,
    check_patterns,
    is_among,
)
from holdfast.measures.registry import Score, Undecided, WhenCut, measure, verdict
from holdfast.measures.turns import AssistantTurn, ToolCall


@measure(
    check=lambda first, then: check_patterns(first, then),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def runs_before(turn: AssistantTurn, first: Pattern, then: Pattern) -> Score | None:
    """1 if a command that begins with a match of `first` came before every one that begins with a
    match of `then`, and since the previous such one; turns without a `then` command do not count.
    Calls of other tools are matched as the tool's name and its arguments in JSON."""
    actions = list(actions_of(turn.calls))
    if not any(action.matches(then) for action in actions):
        return None
    ready, kept = _came_last(turn.earlier, first, then), list[bool]()
    for action in actions:
        if action.matches(first):
            ready = True
        if action.matches(then):
            kept.append(ready)
            ready = False
    return Score(
        float(all(kept)), f"{first} {'came' if all(kept) else 'did not come'} before {then}"
    )


def _came_last(calls: Sequence[ToolCall], first: str, then: str) -> bool:
    """Whether a command that matches `first` came after the last that matches `then`."""
    for call in reversed(calls):  # of a long session, only its end has to be parsed
        for action in reversed(list(actions_of([call]))):
            if action.matches(then):
                return False
            if action.matches(first):
                return True
    return False


def _check_after(run: str, after: str | None, changed: Globs | None) -> None:
    check_patterns(run, after)
    if (after is None) is (changed is None):
        raise UsageError(
            "The measure 'runs_after' takes one of after (a command) and changed (files); give one"
            " of the two.",
            value="runs_after",
        )


@measure(check=_check_after, when_cut=WhenCut.NOT_JUDGED)
def runs_after(
    turn: AssistantTurn,
    run: Pattern,
    after: Pattern | None = None,
    changed: Globs | None = None,
) -> Score | Undecided | None:
    """1 if a command that begins with a match of `run` comes after the last one that begins with a
    match of `after`, or after the last change of a file with a path of `changed`; turns without
    these do not count. Calls of other tools are matched as in `runs_before`.
    """
    cause, is_due, is_hidden = "", False, False
    for action in actions_of(turn.calls):
        if action.matches(run):
            is_due = is_hidden = False
            continue
        if event := _event(action, after, changed):
            cause, is_due = event, True
        elif changed is not None:
            is_hidden = is_hidden or any(not edit.path for edit in action.edits)
    if is_hidden and not is_due:
        return Undecided("the log does not show which files a patch changed")
    if not cause:
        return None
    return verdict(not is_due, f"{run} {'did not come' if is_due else 'came'} after {cause}")


def _event(action: Action, after: str | None, changed: Globs | None) -> str:
    """What a command has to follow, if this action is it; else an empty text."""
    if after is not None:
        return after if action.matches(after) else ""
    paths = [edit.path for edit in action.edits if edit.path and changed is not None]
    return next((path for path in paths if is_among(path, changed or "*")), "")
