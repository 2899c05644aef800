"""Emphasis: the parts of a chat that a user marks as important, which attention methods then
emphasise in place of the system prompt.

A part is given as its text (with its occurrence, if the chat has it more than once), as a range of
characters of one message, or by asterisks in a message. All parts of a chat form one set. While a
chat is edited and rendered, private-use characters mark where they begin and end.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holdfast.chat.messages import Message, Messages
from holdfast.chat.nearest import nearest
from holdfast.errors import PromptError, UsageError, shortened

Span = tuple[int, int]  # first and last character (exclusive)


class TextRange(NamedTuple):
    """Characters of a message."""

    message: int  # its number, counted from 0
    first: int
    last: int  # exclusive


class EmphasisedChat(NamedTuple):
    """A chat without marks, and the ranges that are emphasised in it."""

    messages: tuple[Message, ...]
    ranges: tuple[TextRange, ...]


# a text, a text and which occurrence of it (from 1), or a range
Part = str | tuple[str, int] | tuple[int, int, int]

_MAX_OCCURRENCES = 1_000  # occurrences of a text that are counted in a message, at most


def resolve(messages: Messages, emphasis: Sequence[Part]) -> tuple[TextRange, ...]:
    """The emphasised ranges of a chat: sorted, disjoint, without leading or trailing white space.
    Ranges that this function returned are returned unchanged.

    Raises:
        PromptError: a text is in no message; the error shows the nearest match.
        UsageError: a text occurs more than once and its occurrence is not given; a range is outside
            its message; a part is only white space.
    """
    check_parts(emphasis)
    ranges = sorted(_trimmed(messages, _find(messages, part), part) for part in emphasis)
    disjoint: list[TextRange] = []
    for current in ranges:
        before = disjoint[-1] if disjoint else None
        if before and before.message == current.message and current.first <= before.last:
            disjoint[-1] = before._replace(last=max(before.last, current.last))
        else:
            disjoint.append(current)
    return tuple(disjoint)


def edit_emphasised(
    messages: Messages, emphasis: Sequence[TextRange], edit: Callable[[Messages], Messages]
) -> EmphasisedChat:
    """The chat as a function edits it, and the emphasis in it: text that the function repeats is
    emphasised everywhere.
    """
    if not emphasis:
        return EmphasisedChat(tuple(edit(messages)), ())
    mark = unused_character([message["content"] for message in messages])
    return take_marks(edit(put_marks(messages, emphasis, mark)), mark)


def read_marks(messages: Messages) -> EmphasisedChat:
    r"""The chat without its marks, and the ranges they emphasise: `*like this*`; `\*` is a `*`."""
    pieces = [_pieces_of(number, message["content"]) for number, message in enumerate(messages)]
    return _joined(messages, pieces)


def put_marks(messages: Messages, ranges: Sequence[TextRange], mark: str) -> tuple[Message, ...]:
    """The chat with `mark` before and after each range."""
    marked = list(messages)
    for number, first, last in sorted(ranges, reverse=True):
        text = marked[number]["content"]
        marked[number] = {
            **marked[number],
            "content": f"{text[:first]}{mark}{text[first:last]}{mark}{text[last:]}",
        }
    return tuple(marked)


def take_marks(messages: Messages, mark: str) -> EmphasisedChat:
    """The chat without `mark`, and the ranges that were enclosed in pairs of it."""
    return _joined(messages, [message["content"].split(mark) for message in messages])


def _joined(messages: Messages, pieces: Sequence[Sequence[str]]) -> EmphasisedChat:
    """The chat whose messages consist of these pieces, each second one emphasised."""
    plain: list[Message] = []
    ranges: list[TextRange] = []
    for number, (message, parts) in enumerate(zip(messages, pieces, strict=True)):
        plain.append({**message, "content": "".join(parts)})
        ranges += [TextRange(number, *span) for span in spans_between(parts)]
    return EmphasisedChat(tuple(plain), tuple(ranges))


def spans_between(pieces: Sequence[str]) -> list[Span]:
    """The spans of the second, fourth, ... of these pieces in their concatenation."""
    spans: list[Span] = []
    position = 0
    for index, piece in enumerate(pieces):
        if index % 2:
            spans.append((position, position + len(piece)))
        position += len(piece)
    return spans


def unused_character(texts: Sequence[str]) -> str:
    """A private-use character that neither the texts nor transformers use."""
    in_texts = set().union(*texts)
    characters = map(chr, range(0xF0100, 0xFFFFE))
    return next(character for character in characters if character not in in_texts)


def check_parts(emphasis: Sequence[Part]) -> None:
    """Refuses blank texts and occurrences below 1; whether a chat has the parts is not checked."""
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


def _find(messages: Messages, part: Any) -> TextRange:
    """The range of a part that `check_parts` allows."""
    if isinstance(part, str):
        return _find_text(messages, part, None)
    if len(part) == 2:
        return _find_text(messages, *part)
    return _checked_range(messages, tuple(part))


def _checked_range(messages: Messages, part: tuple[int, int, int]) -> TextRange:
    number, first, last = part
    size = f"there are {len(messages)} messages"
    if 0 <= number < len(messages):
        length = len(messages[number]["content"])
        if 0 <= first < last <= length:
            return TextRange(number, first, last)
        size = f"message {number} has {length} characters"
    raise UsageError(
        f"The emphasised range {part} is not in the chat: {size}, both counted from 0; give"
        " (message, first, last).",
        option="emphasis",
        value=part,
    )


def _find_text(messages: Messages, text: str, occurrence: int | None) -> TextRange:
    places = [
        TextRange(number, start, start + len(text))
        for number, message in enumerate(messages)
        for start in _starts(message["content"], text)
    ]
    if not places:
        near = nearest(text, [message["content"] for message in messages])
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
    starts: list[int] = []
    start = content.find(text)
    while start >= 0 and len(starts) < _MAX_OCCURRENCES:
        starts.append(start)
        start = content.find(text, start + 1)
    return starts


def _trimmed(messages: Messages, whole: TextRange, part: Part) -> TextRange:
    number, first, last = whole
    text = messages[number]["content"][first:last]
    if not text.strip():
        raise UsageError(
            f"The emphasis {shortened(part)} holds no word, only white space; emphasise a text.",
            option="emphasis",
            value=part,
        )
    first += len(text) - len(text.lstrip())
    last -= len(text) - len(text.rstrip())
    return TextRange(number, first, last)


def _pieces_of(number: int, content: str) -> list[str]:
    """A message split at its marks: each second piece is emphasised. Escapes are read first."""
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
            f"Message {number + 1} has a mark without a partner at character {start}"
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
