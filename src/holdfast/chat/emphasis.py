"""Emphasis: the parts of a chat that a user marks as important, which attention methods then
emphasise in place of the system prompt.

A part is given as its text (with its occurrence, if the chat has it more than once), as a range of
characters of one message, or by asterisks in a message. In the chat [{"role": "user", "content":
"Be kind, be brief."}], these are the same part:

    "be brief"    ("be brief", 1)    (0, 9, 17)    "Be kind, *be brief*."

All parts of a chat form one set. While a chat is edited and rendered, private-use characters mark
where they begin and end.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.chat.messages import Message, Messages
from holdfast.chat.nearest import find_nearest
from holdfast.errors import PromptError, UsageError, shortened
from holdfast.plurals import count_of

Span = tuple[int, int]  # first and last character (exclusive)
# a text, a text and which occurrence of it (from 1), or a range
Part = str | tuple[str, int] | tuple[int, int, int]


class TextRange(NamedTuple):
    """A range of characters of one message."""

    message: int  # its number, counted from 0
    first: int
    last: int  # exclusive


class EmphasisedChat(NamedTuple):
    """A chat without marks, and the ranges that are emphasised in it."""

    messages: tuple[Message, ...]
    ranges: tuple[TextRange, ...]


# --- Finding parts in a chat

_MAX_OCCURRENCES = 1_000  # occurrences of a text that are counted in a message, at most


def resolve(messages: Messages, emphasis: Sequence[Part]) -> tuple[TextRange, ...]:
    """Finds the emphasised ranges of a chat: sorted, disjoint, and without surrounding white space.

    Ranges that this function has returned come back unchanged.

    Raises:
        PromptError: a text is in no message; the error shows the nearest match.
        UsageError: a text occurs more than once and its occurrence is not given; a range is outside
            its message; a part is only white space.
    """
    check_parts(emphasis)
    ranges = sorted(_trim(messages, _find(messages, part), part) for part in emphasis)
    disjoint: list[TextRange] = []
    for current in ranges:
        before = disjoint[-1] if disjoint else None
        if before and before.message == current.message and current.first <= before.last:
            disjoint[-1] = before._replace(last=max(before.last, current.last))
        else:
            disjoint.append(current)
    return tuple(disjoint)


def check_parts(emphasis: Sequence[Part]) -> None:
    """Refuses blank texts and occurrences below 1; does not look whether a chat has the parts."""
    if isinstance(emphasis, str):  # a sequence of texts to a type checker
        raise UsageError(
            f"Emphasis is a list of parts, not {shortened(emphasis)}; put it into one, as in"
            " emphasis=['like this'].",
            option="emphasis",
            value=emphasis,
        )
    for part in emphasis:
        text: object = part
        occurrence = 1
        if not isinstance(part, str) and len(part) == 2:
            text, occurrence = part
        if (isinstance(text, str) and not text.strip()) or occurrence < 1:
            raise UsageError(
                "Emphasis is a text, (text, occurrence from 1) or (message, first, last), not"
                f" {shortened(part)}.",
                option="emphasis",
                value=part,
            )


def _find(messages: Messages, part: Part) -> TextRange:
    """Finds a part that `check_parts` has accepted."""
    if isinstance(part, str):
        return _find_text(messages, part, None)
    if len(part) == 2:
        text, occurrence = part
        return _find_text(messages, text, occurrence)
    return _check_range(messages, TextRange(*part))


def _check_range(messages: Messages, part: TextRange) -> TextRange:
    """Returns a range that is inside its message; refuses any other."""
    number, first, last = part
    size = f"it has {count_of(len(messages), 'message')}"
    if 0 <= number < len(messages):
        length = len(messages[number]["content"])
        if 0 <= first < last <= length:
            return part
        size = f"message {number} has {length} characters"
    raise UsageError(
        f"The emphasised range {tuple(part)} is not in the chat: {size}; give (message, first,"
        " last), counted from 0.",
        option="emphasis",
        value=tuple(part),
    )


def _find_text(messages: Messages, text: str, occurrence: int | None) -> TextRange:
    """Finds an occurrence of a text, counted from 1; None expects the chat to have only one."""
    places = [
        TextRange(number, start, start + len(text))
        for number, message in enumerate(messages)
        for start in _starts(message["content"], text)
    ]
    if not places:
        near = find_nearest(text, [message["content"] for message in messages])
        hint = f"; the nearest is {shortened(near)}" if near else ""
        raise PromptError(
            f"The emphasised {shortened(text)} is in no message{hint}; give it as it is written"
            " there.",
            option="emphasis",
            value=text,
            allowed=near,
        )
    if occurrence is None and len(places) > 1:
        raise UsageError(
            f"The emphasised {shortened(text)} occurs {len(places)} times in the chat; say which,"
            f" as in ({shortened(text)}, 1), or give a range.",
            option="emphasis",
            value=text,
            allowed=len(places),
        )
    if (occurrence or 1) > len(places):
        raise UsageError(
            f"The emphasised {shortened(text)} occurs {len(places)} times in the chat, so there is"
            f" no occurrence {occurrence}.",
            option="emphasis",
            value=occurrence,
            allowed=len(places),
        )
    return places[(occurrence or 1) - 1]


def _starts(content: str, text: str) -> list[int]:
    """Where a text begins in a content, including occurrences that overlap."""
    starts: list[int] = []
    start = content.find(text)
    while start >= 0 and len(starts) < _MAX_OCCURRENCES:
        starts.append(start)
        start = content.find(text, start + 1)
    return starts


def _trim(messages: Messages, whole: TextRange, part: Part) -> TextRange:
    """The range without surrounding white space; `part` is its form before it was resolved."""
    number, first, last = whole
    text = messages[number]["content"][first:last]
    if not text.strip():
        raise UsageError(
            f"The emphasis {shortened(part)} is only white space; emphasise a text.",
            option="emphasis",
            value=part,
        )
    first += len(text) - len(text.lstrip())
    last -= len(text) - len(text.rstrip())
    return TextRange(number, first, last)


# --- Marks around parts


def edit_emphasised(
    messages: Messages, emphasis: Sequence[TextRange], edit: Callable[[Messages], Messages]
) -> EmphasisedChat:
    """Edits a chat and carries its emphasis along: if the edit copies emphasised text, every copy
    is emphasised.
    """
    if not emphasis:
        return EmphasisedChat(tuple(edit(messages)), ())
    mark = unused_character([message["content"] for message in messages])
    return take_marks(edit(put_marks(messages, emphasis, mark)), mark)


def put_marks(messages: Messages, ranges: Sequence[TextRange], mark: str) -> tuple[Message, ...]:
    """Puts `mark` before and after each range of a chat."""
    marked = list(messages)
    for number, first, last in sorted(ranges, reverse=True):
        text = marked[number]["content"]
        marked[number] = {
            **marked[number],
            "content": f"{text[:first]}{mark}{text[first:last]}{mark}{text[last:]}",
        }
    return tuple(marked)


def take_marks(messages: Messages, mark: str) -> EmphasisedChat:
    """Removes `mark` from a chat; the ranges between pairs of it are the emphasis."""
    return _join_pieces(messages, [message["content"].split(mark) for message in messages])


def _join_pieces(messages: Messages, pieces: Sequence[Sequence[str]]) -> EmphasisedChat:
    """Joins the pieces of each message, of which every second one is emphasised."""
    plain: list[Message] = []
    ranges: list[TextRange] = []
    for number, (message, parts) in enumerate(zip(messages, pieces, strict=True)):
        plain.append({**message, "content": "".join(parts)})
        ranges += [TextRange(number, *span) for span in spans_between(parts)]
    return EmphasisedChat(tuple(plain), tuple(ranges))


def spans_between(pieces: Sequence[str]) -> list[Span]:
    """The spans of the second, fourth, ... of these pieces once they are joined."""
    spans: list[Span] = []
    position = 0
    for index, piece in enumerate(pieces):
        if index % 2:
            spans.append((position, position + len(piece)))
        position += len(piece)
    return spans


def unused_character(texts: Sequence[str]) -> str:
    """Returns a private-use character that neither the texts nor transformers use."""
    in_texts = set().union(*texts)
    characters = map(chr, range(0xF0100, 0xFFFFE))
    return next(character for character in characters if character not in in_texts)


# --- Asterisks


def read_marks(messages: Messages) -> EmphasisedChat:
    r"""Reads the emphasis in `*asterisks*` and removes them from the chat; `\*` is a plain `*`."""
    pieces = [
        _split_at_asterisks(number, message["content"]) for number, message in enumerate(messages)
    ]
    return _join_pieces(messages, pieces)


def _split_at_asterisks(number: int, content: str) -> list[str]:
    r"""Splits a message at its asterisks; every second piece is emphasised, and `\*` is text."""
    pieces = [""]
    starts: list[int] = []  # of the marks
    last = 0
    for match in re.finditer(r"\\?\*", content):
        pieces[-1] += content[last : match.start()]
        last = match.end()
        if match[0] == "*":
            pieces.append("")
            starts.append(match.start())
        else:
            pieces[-1] += "*"
    pieces[-1] += content[last:]
    if len(pieces) % 2 == 0:
        start = starts[-1]
        raise UsageError(
            f"Message {number + 1} has an asterisk without a partner at character {start}"
            f" ({shortened(content[start : start + 40])}); close it, or write \\* for an asterisk."
        )
    for start, piece in zip(starts[::2], pieces[1::2], strict=True):
        if not piece.strip():
            raise UsageError(
                f"Message {number + 1} emphasises nothing at character {start}"
                f" ({shortened(content[start : start + 20])}); write *like this*, and \\* for an"
                " asterisk."
            )
    return pieces
