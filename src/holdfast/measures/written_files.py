"""Measures of the text that an agent writes into files, with whatever tool."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from holdfast.measures.agent_acts.actions import actions_of, edits_of
from holdfast.measures.agent_acts.agent_action import Pattern, check_patterns
from holdfast.measures.agent_acts.edits.comments import is_about_comments, without_comments
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.edits.path_globs import Globs, is_among
from holdfast.measures.agent_acts.edits.quoted_code import without_quoted_code
from holdfast.measures.agent_acts.git.commit_actions import calls_since_commit, is_commit
from holdfast.measures.agent_acts.written_texts import WrittenTexts, mentions
from holdfast.measures.arguments import Flag, takes
from holdfast.measures.patterns import count, find
from holdfast.measures.reasons import missing_literal, quote, quote_pattern, quote_words
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn, ToolCall

EVERY_FILE = "*"
_LINES = "m"  # the flag by which ^ and $ match at the ends of lines

Within = Annotated[Literal["turn", "commit"], takes("one of turn, commit", "turn")]


@measure(check=lambda pattern, **_: check_patterns(pattern), when_cut=WhenCut.IF_BROKEN)
def code_not_written(
    turn: AssistantTurn, pattern: Pattern, files: Globs = EVERY_FILE, comments: Flag = False
) -> Score | Undecided | None:
    r"""0 if the regular expression occurs in lines that are added to files with these paths; turns
    that write no such file do not count. ^ and $ are ends of lines. Comments are searched only with
    `comments`, or if the expression is about them, as `TODO`, `noqa` and `//` are; so is code
    that a text in quotation marks names, such as "print(".

    With `pattern: print\(, files: '*.py'`, the command "echo 'a = 1' > a.py" scores 1, and
    "echo 'print(1)' > a.py" 0.
    """
    edits = _writing_edits(turn, files)
    if not edits:
        return None
    reads_comments = comments or is_about_comments(pattern)
    for edit in edits:
        if (text := _match_in(edit, pattern, comments=reads_comments)) is not None:
            return Score(0.0, f"{quote(text)} was written to {edit.path}")
    return _find_hidden(edits) or Score(1.0, "not written")


@measure(check=lambda pattern, **_: check_patterns(pattern), when_cut=WhenCut.NOT_JUDGED)
def code_written(
    turn: AssistantTurn, pattern: Pattern, files: Globs = EVERY_FILE, whole: Flag = False
) -> Score | Undecided | None:
    """Share of the written files with these paths in whose added lines the regular expression
    occurs; turns that write no such file do not count. With `whole`, only files count that are
    written from beginning to end, as new ones are. ^ and $ are ends of lines.

    With `pattern: '^# Copyright', files: '*.py'`, the command "echo '# Copyright Pip' > a.py"
    scores 1, and "echo 'a = 1' > a.py" 0.
    """
    edits = _writing_edits(turn, files)
    if whole:
        edits = [edit for edit in edits if edit.is_whole or not edit.path]
    by_file: dict[str, list[FileEdit]] = {}
    for edit in edits:
        by_file.setdefault(edit.path, []).append(edit)
    if not by_file:
        return None
    lacking: list[str] = []
    for path, edits_of_file in by_file.items():
        if any(_match_in(edit, pattern) is not None for edit in edits_of_file):
            continue
        if hidden := _find_hidden(edits_of_file):
            return hidden
        lacking.append(path)
    if not lacking:
        return Score(1.0, "written")
    first = lacking[0]
    text = "\n".join(piece for edit in by_file[first] for piece in edit.added)
    reason = missing_literal(first, text, pattern)
    reason = reason or f"nothing in {first} matches {quote_pattern(pattern)}"
    return Score(1 - len(lacking) / len(by_file), reason)


def _writing_edits(turn: AssistantTurn, files: Globs) -> list[FileEdit]:
    """Returns the changes that put text into these files, or into an unknown file."""
    edits = [edit for edit in edits_of(turn.calls) if edit.writes]
    return [edit for edit in edits if not edit.path or is_among(edit.path, files)]


def _find_hidden(edits: Sequence[FileEdit]) -> Undecided | None:
    """Returns a result that names the first file whose new text is not shown; None without one."""
    hidden = next((edit for edit in edits if not edit.is_shown), None)
    if hidden is None:
        return None
    return Undecided(f"the log does not show what was written to {hidden.path or 'a file'}")


def _match_in(edit: FileEdit, pattern: str, *, comments: bool = True) -> str | None:
    """Returns the first match of a pattern in the text that an edit adds; None without one.

    Args:
        comments: whether comments are searched too, and code that is named in a text.
    """
    for piece in edit.added:
        match = find(pattern, piece, _LINES)
        if match is not None and not comments:
            code = without_comments(piece, edit.path)
            code = without_quoted_code(code, edit.path, is_whole=edit.is_whole)
            match = find(pattern, code, _LINES)
        if match is not None:
            return str(match[0])
    return None


@measure(when_cut=WhenCut.NOT_JUDGED, reads_earlier=True)
def changes_together(
    turn: AssistantTurn, changed: Globs, also: Globs, within: Within = "turn"
) -> Score | Undecided | None:
    """1 if a turn that changes a file with a path of `changed` changes one of `also` too; other
    turns do not count. `within: commit` scores commits instead, by the changes since the last one.

    With `changed: '*.py', also: CHANGELOG.md`, the command "touch a.py CHANGELOG.md" scores 1, and
    "touch a.py" 0.
    """
    if within == "turn":
        return _score_together(edits_of(turn.calls), changed, also)
    if not any(map(is_commit, actions_of(turn.calls))):
        return None
    scores: list[Score] = []
    for edits in _edits_by_commit(turn.earlier, turn.calls):
        score = _score_together(edits, changed, also)
        if isinstance(score, Undecided):
            return score
        if score is not None:
            scores.append(score)
    if not scores:
        return None
    value = sum(score.value for score in scores) / len(scores)
    return Score(value, min(scores, key=lambda score: score.value).reason)


def _score_together(
    edits: Sequence[FileEdit], changed: Globs, also: Globs
) -> Score | Undecided | None:
    """Scores changes of files: 1 if a file of `changed` comes with one of `also`."""
    paths = [edit.path for edit in edits]
    first = next((path for path in paths if path and is_among(path, changed)), None)
    second = next((path for path in paths if path and is_among(path, also)), None)
    if "" in paths and (first is None or second is None):
        return Undecided("the log does not show which files a patch changed")
    if first is None:
        return None
    if second is None:
        partners = [also] if isinstance(also, str) else [*also]
        return Score(0.0, f"{first} was changed without {quote_words(partners)}")
    return Score(1.0, f"{first} and {second} were changed")


def _edits_by_commit(
    earlier: Sequence[ToolCall], calls: Sequence[ToolCall]
) -> Iterator[list[FileEdit]]:
    """Yields for each commit among the calls the changes since the commit before it."""
    before = calls_since_commit(earlier)
    edits: list[FileEdit] = []
    for action in actions_of([*before, *calls]):
        if is_commit(action):
            if action.position >= len(before):
                yield edits
            edits = []
        edits += action.edits


@measure(check=lambda pattern, **_: check_patterns(pattern), when_cut=WhenCut.IF_BROKEN)
def text_kept(
    turn: AssistantTurn, pattern: Pattern, files: Globs = EVERY_FILE
) -> Score | Undecided | None:
    """0 if edits of a file with these paths remove more matches of the regular expression than they
    add; turns that edit no such file do not count. ^ and $ are ends of lines. A file that is
    written as a whole loses the text that it had, if the log shows it.

    With `pattern: TODO`, an edit of "# TODO: a" to "# TODO: b" scores 1, and to "# done" 0.
    """
    lost = Counter[str]()
    hidden: Undecided | None = None
    calls = [*turn.earlier, *turn.calls]
    texts = WrittenTexts(turn.earlier)
    for action in actions_of(turn.calls):
        before = calls[: len(turn.earlier) + action.position]
        for edit in action.edits:
            if edit.path and not is_among(edit.path, files):
                continue
            change = _matches_lost(edit, pattern, texts, before)
            if isinstance(change, Undecided):
                hidden = hidden or change
            elif change is not None:
                lost[edit.path] += change
        texts.note(action.edits)
    removed = next((path for path, number in lost.items() if number > 0), None)
    if removed is not None:
        return Score(0.0, f"text that the rule protects was removed from {removed}")
    return hidden or (Score(1.0, "kept") if lost else None)


def _matches_lost(
    edit: FileEdit, pattern: str, texts: WrittenTexts, before: Sequence[ToolCall]
) -> int | Undecided | None:
    """Returns how many more matches an edit removes than it adds.

    Args:
        before: all calls before the edit.

    Returns:
        None for a new file; an `Undecided` if the log does not show the texts.
    """
    if not edit.is_shown:
        return _find_hidden([edit])
    added = sum(count(pattern, piece, _LINES) for piece in edit.added)
    if not edit.is_whole:
        removed = sum(count(pattern, piece, _LINES) for piece in edit.removed)
        return removed - added if edit.added or edit.removed else None
    text = texts.of(edit.path)
    if text is not None:
        return count(pattern, text, _LINES) - added
    if added:
        return 0
    if any(mentions(call, edit.path) for call in before):
        return Undecided(f"the log does not show the text of {edit.path} before it was rewritten")
    return None  # nothing mentioned the file before
