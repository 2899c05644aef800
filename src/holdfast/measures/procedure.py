"""Measures of how an agent goes about its work: in which order, and with which of several tools."""

from collections.abc import Sequence

from holdfast.errors import UsageError
from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_action import Action, Pattern, check_patterns
from holdfast.measures.agent_acts.edits.path_globs import Globs, touches
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.measures.wording.command_words import commands_in_words

UNKNOWN_FILES = Undecided("the log does not show which files a patch changed")


@measure(
    check=lambda first, then: check_patterns(first, then),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def runs_before(turn: AssistantTurn, first: Pattern, then: Pattern) -> Score | None:
    """1 if a command that begins with a match of `first` came before every one that begins with a
    match of `then`, and since the previous such one; turns without a `then` command do not count.
    Calls of other tools are matched as the tool's name and its arguments in JSON.

    With `first: make test, then: git commit`, the command "make test && git commit -m a" scores 1,
    and "git commit -m a" 0.
    """
    actions = list(actions_of(turn.calls, turn.earlier))
    if not any(action.matches(then) for action in actions):
        return None
    ready = _ready_by(turn.earlier, first, then)
    reason = ""
    for action in actions:
        if action.matches(first):
            ready = action
        if action.matches(then):
            if ready is None:
                required = commands_in_words(first) or "the command that has to come first"
                return Score(0.0, f"{action.label} ran without {required} before it")
            reason = f"{ready.label} came before {action.label}"
            ready = None
    return Score(1.0, reason)


def _ready_by(calls: Sequence[ToolCall], first: str, then: str) -> Action | None:
    """Returns the last command that matches `first`, if none that matches `then` came after it."""
    for call in reversed(calls):  # parses only the end of a long session
        for action in reversed(list(actions_of([call]))):
            if action.matches(then):
                return None
            if action.matches(first):
                return action
    return None


def _check_after(run: str, after: str | None, changed: Globs | None) -> None:
    check_patterns(run, after)
    check_one_of("runs_after", "after", after, changed)


def check_one_of(name: str, option: str, command: str | None, changed: Globs | None) -> None:
    if (command is None) is (changed is None):
        raise UsageError(
            f"The measure {name!r} takes either {option} (a command) or changed (files); give one"
            " of the two.",
            value=name,
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
    these do not count. Calls of other tools are matched as the tool's name and its arguments in
    JSON.

    With `run: make lint, changed: '*.py'`, the command "touch a.py && make lint" scores 1, and
    "make lint && touch a.py" 0.
    """
    cause = ""
    done = ""  # the last command that matches `run`
    is_due = False  # whether `run` has to follow
    is_hidden = False  # whether a file was changed since `run`, and it is not known which
    for action in actions_of(turn.calls, turn.earlier):
        if action.matches(run):
            done = action.label
            is_due = False
            is_hidden = False
            continue
        if event := event_in(action, after, changed):
            cause = event
            is_due = True
        elif changed is not None:
            is_hidden = is_hidden or any(not edit.path for edit in action.edits)
    if is_hidden and not is_due:
        return UNKNOWN_FILES
    if not cause:
        return None
    if is_due:
        required = commands_in_words(run) or "the command that has to follow"
        return Score(0.0, f"{required} did not run after {cause}")
    return Score(1.0, f"{done} ran after {cause}")


def event_in(action: Action, command: str | None, changed: Globs | None) -> str:
    """Returns the part of an action that a rule is about, such as "a change of src/a.ts".

    Returns "" if the action neither runs the command nor changes one of the files.
    """
    if command is not None:
        return action.label if action.matches(command) else ""
    if changed is None:
        return ""
    path = next((edit.path for edit in action.edits if touches(edit, changed)), "")
    return f"a change of {path}" if path else ""


@measure(
    check=lambda use, rather_than: check_patterns(use, rather_than), when_cut=WhenCut.IF_BROKEN
)
def prefers(turn: AssistantTurn, use: Pattern, rather_than: Pattern) -> Score | None:
    """Share of commands that begin with a match of `use` among those that begin with a match of
    either; turns with neither do not count. Calls of other tools are matched as the tool's name and
    its arguments in JSON.

    With `use: pnpm, rather_than: npm`, the command "pnpm test" scores 1, and
    "pnpm test && npm test" 0.5.
    """
    good = 0
    others: list[str] = []
    for action in actions_of(turn.calls, turn.earlier):
        if action.matches(use):
            good += 1
        elif program := action.program_matching(rather_than):
            others.append(program)
    if not good and not others:
        return None
    reason = f"`{others[0]}` was used" if others else "kept"
    return Score(good / (good + len(others)), reason)
