"""Finds words of messages in a rendered chat.

Words that might also come from elsewhere (another message, a tool, the template itself) are found
by a second rendering with marks around them, written here as *, and in fact characters that no text
uses:

    <|system|>Be kind.<|user|>Hello.<|assistant|>
    <|system|>*Be kind.*<|user|>Hello.<|assistant|>
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.chat.emphasis import Span, TextRange, spans_between, unused_character
from holdfast.chat.messages import Message, Messages
from holdfast.chat.nearest import find_nearest
from holdfast.errors import PromptError, shortened

# characters; a template may write a shorter text, such as a number, by chance
_MIN_DISTINCTIVE = 8


@dataclass(frozen=True)
class RenderedChat:
    """A rendered chat, in which words of its messages can be found.

    Args:
        text: the rendered chat.
        messages: the chat, with its system prompt placed.
        template: the source of the template, whose own words are not those of a message.
        write: renders other messages the same way.
        with_tools: whether the chat has tools, which may have the same words as a message.
    """

    text: str
    messages: tuple[Message, ...]
    template: str
    write: Callable[[Messages], str]
    with_tools: bool = False

    def find(self, words: Mapping[int, str]) -> tuple[Span, ...] | None:
        """Finds the spans of words, given by the number of their message; None if some are lost."""
        spans = None
        if not (self.with_tools and words):
            spans = self._find_certain(words)
        return self._find_marked(words) if spans is None else spans

    def _find_certain(self, words: Mapping[int, str]) -> tuple[Span, ...] | None:
        """Finds the spans of words that no other part of the text can have produced.

        None if that is not certain for one of them.
        """
        spans = []
        for number, wanted in words.items():
            others = [message for other, message in enumerate(self.messages) if other != number]
            if (
                len(wanted) < _MIN_DISTINCTIVE
                or any(wanted in message["content"] for message in others)
                or any(wanted in message["role"] for message in self.messages)
                or wanted in self.template
                or self.text.count(wanted) != 1
            ):
                return None
            start = self.text.index(wanted)
            spans.append((start, start + len(wanted)))
        return tuple(sorted(spans))

    def _find_marked(self, words: Mapping[int, str]) -> tuple[Span, ...] | None:
        """Finds the spans in a second rendering, with marks around the words.

        None if the marks change other text as well, or do not enclose exactly the words.
        """
        mark = unused_character([self.text, *(message["content"] for message in self.messages)])
        marked = list(self.messages)
        for number, wanted in words.items():
            before, after = marked[number]["content"].split(wanted, 1)
            marked[number] = {
                **marked[number],
                "content": f"{before}{mark}{wanted}{mark}{after}",
            }
        pieces = self.write(marked).split(mark)
        expected = Counter(words.values())
        between_marks = Counter(pieces[1::2])
        if (
            "".join(pieces) != self.text
            or len(pieces) % 2 == 0
            or not expected <= between_marks
            or between_marks.keys() != expected.keys()
        ):
            return None
        return tuple(spans_between(pieces))


def emphasised_spans(
    text: str, messages: Messages, ranges: Sequence[TextRange], pieces: Sequence[str]
) -> tuple[Span, ...]:
    """Returns the spans of the emphasised texts, which are every second piece of a rendering that
    was split at its marks.

    Raises:
        PromptError: the template repeats, leaves out or rewrites an emphasised text.
    """
    emphasised = Counter(messages[number]["content"][first:last] for number, first, last in ranges)
    between_marks = Counter(pieces[1::2])
    if "".join(pieces) == text and len(pieces) % 2 and emphasised == between_marks:
        return tuple(spans_between(pieces))
    for words, count in between_marks.items():
        if len(pieces) % 2 and count > emphasised[words] > 0:
            raise PromptError(
                f"The chat template repeats the emphasised {shortened(words)}; use a model whose"
                " template leaves messages as they are.",
                option="emphasis",
                value=words,
            )
    missing = (words for words, count in emphasised.items() if between_marks[words] < count)
    lost = next(missing, next(iter(emphasised)))
    near = find_nearest(lost, [text])
    hint = f"; the nearest in the rendered prompt is {shortened(near)}" if near else ""
    raise PromptError(
        f"The chat template leaves out or rewrites the emphasised {shortened(lost)}{hint};"
        " use a model whose template leaves messages as they are.",
        option="emphasis",
        value=lost,
        allowed=near,
    )
