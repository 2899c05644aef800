"""Separates the reasoning that a model wrote into the text of its reply from the reply itself.

    split_reasoning("<think>They want two.</think>Two.") == ("They want two.", "Two.")

A server that knows its model puts the reasoning into a separate field; others leave it in the
content, between markers of the model's template. Readers of the chat do not see it, and rules for
the reply do not apply to it.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class SplitReply(NamedTuple):
    """The text that a model wrote, split into reasoning and reply."""

    reasoning: str
    reply: str


@dataclass(frozen=True)
class _Markers:
    """The patterns that open and close reasoning; case is ignored.

    Args:
        opening: the marker before the reasoning.
        closing: the marker after it.
        opening_may_be_in_prompt: whether a reply may have the closing marker alone, because the
            template ends the prompt with the opening one.
        nested: matches every opening that pairs with a closing marker inside the reasoning; "" if
            only `opening` does.
    """

    opening: str
    closing: str
    opening_may_be_in_prompt: bool = True
    nested: str = ""

    @cached_property
    def opening_at_start(self) -> re.Pattern[str]:
        """An opening marker at the beginning of a text."""
        return re.compile(r"\s*" + self.opening, re.IGNORECASE)

    @cached_property
    def inside(self) -> re.Pattern[str]:
        """An opening or closing marker inside the reasoning."""
        opening = self.nested or self.opening
        return re.compile(f"(?P<opening>{opening})|{self.closing}", re.IGNORECASE)

    @cached_property
    def either(self) -> re.Pattern[str]:
        """An opening or closing marker anywhere in a text."""
        return re.compile(f"(?P<opening>{self.opening})|{self.closing}", re.IGNORECASE)


_MARKERS = (
    _Markers(r"<think>", r"</think>"),  # DeepSeek, Qwen, GLM, SmolLM3
    _Markers(r"<thinking>", r"</thinking>"),
    _Markers(r"<thought>", r"</thought>"),
    _Markers(r"<reasoning>", r"</reasoning>"),
    _Markers(r"<seed:think>", r"</seed:think>"),  # Seed-OSS
    _Markers(r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    _Markers(r"◁think▷", r"◁/think▷"),  # Kimi
    _Markers(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A
    _Markers(r"<\|channel>thought", r"<channel\|>", opening_may_be_in_prompt=False),  # Gemma 4
    # aider's history
    _Markers(r"<thinking-content-\w+>", r"</thinking-content-\w+>", opening_may_be_in_prompt=False),
    # Open WebUI's exports
    _Markers(
        r'<details\s+type="reasoning"[^>]*>',
        r"</details>",
        opening_may_be_in_prompt=False,
        nested=r"<details\b[^>]*>",
    ),
)

# Every marker has one of these characters; the last alternative is gpt-oss without its tokens.
_MAY_HAVE_MARKERS = re.compile(r"[<\[◁]|\A\s*analysis")
_HARMONY_START = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
# A message of gpt-oss, such as <|channel|>analysis<|message|>Let me think.<|end|>
_HARMONY_RECIPIENT = r"[^<]* (?: <\|constrain\|> \w* \s* )? <\|message\|>"  # " to=functions.add"
_HARMONY_MESSAGE = re.compile(
    rf"""
    <\|channel\|> (?P<channel> \w+ ) {_HARMONY_RECIPIENT}
    (?P<text> .*? )
    # The text may mention these tokens; it ends where another message follows, or at the end.
    (?=
        (?: <\|(?:end|return|call)\|> )? \s*
        (?: <\|start\|> | <\|channel\|> \w+ {_HARMONY_RECIPIENT} | \Z )
    )
    """,
    re.DOTALL | re.VERBOSE,
)
# gpt-oss after a server has dropped the special tokens and kept the words between them
_HARMONY_WITHOUT_TOKENS = re.compile(
    r"\s*analysis(?=\S)(?P<reasoning>.*?)assistantfinal", re.DOTALL
)

# Command A puts these tokens around a reply.
_RESPONSE_START = "<|START_RESPONSE|>"
_RESPONSE_END = "<|END_RESPONSE|>"

_QUOTES = tuple("`'\"“”‘’«»")
_SAME_ON_BOTH_SIDES = ("`", "'", '"')
_BLANK_LINE = "\n\n"
_BLANKS = (" ", "\t")
_SENTENCE_MARKS = ".,;:!?)"


def split_reasoning(text: str) -> SplitReply:
    """Splits a text into the reasoning at its beginning and the reply after it.

    Only the beginning of a text can be reasoning: a reply that mentions a marker further on, or in
    code, stays as it is. Several blocks of reasoning are joined by a blank line. A block without an
    end was cut off while the model was thinking, so the reply is empty. A closing marker alone ends
    reasoning whose opening marker was in the prompt.

    A marker with spaces on both sides, or with one before it at the end of a line, is taken for a
    word of a sentence, unless a blank line follows: templates put line breaks around markers, or
    nothing.

    Args:
        text: a reply as the model or server gave it.

    Returns:
        Reasoning and reply. If there is no reasoning, "" and `text`, unchanged.
    """
    if not _MAY_HAVE_MARKERS.search(text):
        return SplitReply("", text)
    if _HARMONY_START.match(text):
        return _split_harmony(text)
    if words := _HARMONY_WITHOUT_TOKENS.match(text):
        return SplitReply(words["reasoning"].strip(), text[words.end() :].lstrip())
    blocks = _leading_blocks(text)
    if not blocks:
        return _split_at_closing(text)
    reasoning = "\n\n".join(block.reasoning for block in blocks if block.reasoning)
    return SplitReply(reasoning, _without_response_tokens(blocks[-1].reply))


def _leading_blocks(text: str) -> list[SplitReply]:
    """The blocks of reasoning at the beginning of `text`, each with the text that follows it."""
    blocks: list[SplitReply] = []
    rest = text
    while block := _leading_block(rest):
        blocks.append(block)
        rest = block.reply
    return blocks


def _leading_block(text: str) -> SplitReply | None:
    """The block of reasoning at the beginning of `text` and the text after it; None without one."""
    for markers in _MARKERS:
        opening = markers.opening_at_start.match(text)
        if opening is None:
            continue
        end, after = _find_closing(text, opening.end(), markers)
        return SplitReply(text[opening.end() : end].strip(), text[after:])
    return None


def _find_closing(text: str, start: int, markers: _Markers) -> tuple[int, int]:
    """The positions at which the closing marker of the block at `start` begins and ends.

    Blocks may be nested. Markers that the reasoning only mentions do not count. If none is left to
    close the block, its first closing marker does; without any, both positions are the end of the
    text.
    """
    depth = 1
    first: tuple[int, int] | None = None  # the first closing marker
    mentions = _Mentions(text, start)
    for marker in markers.inside.finditer(text, start):
        if not marker["opening"] and not mentions.is_quoted(*marker.span()):
            first = first or marker.span()
        if mentions.is_mention(*marker.span()):
            continue
        depth += 1 if marker["opening"] else -1
        if depth == 0:
            return marker.span()
    return first or (len(text), len(text))


def _split_at_closing(text: str) -> SplitReply:
    """Splits a text at a closing marker without an opening one before it, if it has one."""
    mentions = _Mentions(text, 0)
    for markers in _MARKERS:
        if not markers.opening_may_be_in_prompt:
            continue
        for marker in markers.either.finditer(text):
            if mentions.is_mention(*marker.span()):
                continue
            if marker["opening"]:
                break
            before = text[: marker.start()]
            after = text[marker.end() :]
            return SplitReply(before.strip(), _without_response_tokens(after))
    is_wrapped = text.lstrip().startswith(_RESPONSE_START)
    return SplitReply("", _without_response_tokens(text) if is_wrapped else text)


class _Mentions:
    """Tells whether a text, read from `start`, uses a marker or only mentions it."""

    def __init__(self, text: str, start: int):
        self._text = text
        self._start = start
        self._starts = dict[str, list[int]]()  # by string: where it occurs, in ascending order

    def is_mention(self, begin: int, end: int) -> bool:
        """Whether the marker at these positions is quoted, in code, or a word of a sentence."""
        text = self._text
        is_in_block = self._count("```", self._start, begin) % 2
        is_in_code = self._count("`", self._line_start(begin), begin) % 2
        if is_in_block or is_in_code:
            return True
        if self.is_quoted(begin, end):
            return True
        follows_a_word = begin > self._start and text[begin - 1] in _BLANKS
        if not follows_a_word or text.startswith(_BLANK_LINE, end):
            return False
        return end == len(text) or text[end].isspace() or text[end] in _SENTENCE_MARKS

    def is_quoted(self, begin: int, end: int) -> bool:
        """Whether quotation marks enclose the marker, and the first of them opens a quotation."""
        mark = self._text[begin - 1 : begin] if begin > self._start else ""
        if mark not in _QUOTES or self._text[end : end + 1] not in _QUOTES:
            return False
        return mark not in _SAME_ON_BOTH_SIDES or bool(
            self._count(mark, self._line_start(begin), begin) % 2
        )

    def _line_start(self, at: int) -> int:
        return max(self._text.rfind("\n", self._start, at) + 1, self._start)

    def _count(self, part: str, begin: int, end: int) -> int:
        """How often a part occurs between two positions, without searching the text again."""
        if part not in self._starts:
            matches = re.compile(re.escape(part)).finditer(self._text, self._start)
            self._starts[part] = [match.start() for match in matches]
        starts = self._starts[part]
        return bisect_left(starts, end) - bisect_left(starts, begin)


def _without_response_tokens(text: str) -> str:
    """Removes the tokens that Command A puts around a reply."""
    text = text.strip().removeprefix(_RESPONSE_START).removesuffix(_RESPONSE_END)
    return text.strip()


def _split_harmony(text: str) -> SplitReply:
    """Splits the channels of gpt-oss: only `final` is the reply.

    The channel `commentary`, in which it announces tool calls, counts as reasoning.
    """
    reasoning: list[str] = []
    reply: list[str] = []
    for message in _HARMONY_MESSAGE.finditer(text):
        part = message["text"].strip()
        if part and message["channel"] == "final":
            reply.append(part)
        elif part:
            reasoning.append(part)
    return SplitReply("\n\n".join(reasoning), "\n\n".join(reply))
