"""Reasoning that a model wrote into the text of its reply, apart from the reply itself.

A server that knows its model puts the reasoning into a field of its own; others leave it in the
content, between markers of the model's template. A reader of the chat is not shown it, and rules
for the reply do not apply to it.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class SplitReply(NamedTuple):
    """A reply as the model wrote it, in two."""

    reasoning: str
    reply: str


@dataclass(frozen=True)
class _Markers:
    """The patterns that open and close reasoning; case is ignored."""

    opening: str
    closing: str
    # Templates that end the prompt with the opening leave only the closing in the reply.
    opening_may_be_in_prompt: bool = True
    # the openings that pair with a closing inside the reasoning, if more than `opening` do
    nested: str = ""

    @cached_property
    def opening_at_start(self) -> re.Pattern[str]:
        return re.compile(r"\s*" + self.opening, re.IGNORECASE)

    @cached_property
    def inside(self) -> re.Pattern[str]:
        """Either marker inside a block."""
        opening = self.nested or self.opening
        return re.compile(f"(?P<opening>{opening})|{self.closing}", re.IGNORECASE)

    @cached_property
    def either(self) -> re.Pattern[str]:
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

# every marker has one of these characters; the last alternative is gpt-oss without its tokens
_MAY_HAVE_MARKERS = re.compile(r"[<\[◁]|\A\s*analysis")
_HARMONY_START = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
_HARMONY_MESSAGE = re.compile(
    r"<\|channel\|>(?P<channel>\w+)(?P<recipient>[^<]*)(?:<\|constrain\|>\w*\s*)?<\|message\|>"
    # a message ends at a token that another message follows, or at the end; it may mention others
    r"(?P<text>.*?)(?=(?:<\|(?:end|return|call)\|>)?\s*"
    r"(?:<\|start\|>|<\|channel\|>\w+[^<]*(?:<\|constrain\|>\w*\s*)?<\|message\|>|\Z))",
    re.DOTALL,
)
# gpt-oss where the server dropped the special tokens and kept the words between them.
_HARMONY_WITHOUT_TOKENS = re.compile(
    r"\s*analysis(?=\S)(?P<reasoning>.*?)assistantfinal", re.DOTALL
)

_RESPONSE_START, _RESPONSE_END = "<|START_RESPONSE|>", "<|END_RESPONSE|>"  # Command A
_QUOTES = tuple("`'\"“”‘’«»")
_SAME_ON_BOTH_SIDES = ("`", "'", '"')
_BLANK_LINE = "\n\n"
_BLANKS = (" ", "\t")
_SENTENCE_MARKS = ".,;:!?)"


def split_reasoning(text: str) -> SplitReply:
    """The reasoning at the beginning of a reply, and the reply without it.

    Only what leads the text is reasoning: a reply that mentions a marker further on, or in code,
    stays as it is. Several leading blocks are joined by a blank line. A block that is never closed
    was cut while the model was thinking, so its reply is empty. A closing marker alone ends
    reasoning whose opening stood in the prompt.

    A marker with spaces on both sides, or with one before it at the end of a line, is taken for a
    word of a sentence, unless a blank line follows: templates put line breaks around markers, or
    nothing.

    Args:
        text: a reply as the model or server gave it.

    Returns:
        Reasoning and reply. Without reasoning, "" and `text`, unchanged.
    """
    if not _MAY_HAVE_MARKERS.search(text):
        return SplitReply("", text)
    if _HARMONY_START.match(text):
        return _split_harmony(text)
    if dropped := _HARMONY_WITHOUT_TOKENS.match(text):
        return SplitReply(dropped["reasoning"].strip(), text[dropped.end() :].lstrip())
    blocks = _leading_blocks(text)
    if not blocks:
        return _split_at_closing(text)
    reasoning = "\n\n".join(block.reasoning for block in blocks if block.reasoning)
    return SplitReply(reasoning, _without_response_tokens(blocks[-1].reply))


def _leading_blocks(text: str) -> list[SplitReply]:
    """The blocks at the beginning of `text`, without markers, each with the text after it."""
    blocks: list[SplitReply] = []
    rest = text
    while block := _leading_block(rest):
        blocks.append(block)
        rest = block.reply
    return blocks


def _leading_block(text: str) -> SplitReply | None:
    """The block at the beginning of `text` and the text after it; None if there is no block."""
    for markers in _MARKERS:
        opening = markers.opening_at_start.match(text)
        if opening is None:
            continue
        end, after = _end_of_block(text, opening.end(), markers)
        return SplitReply(text[opening.end() : end].strip(), text[after:])
    return None


def _end_of_block(text: str, start: int, markers: _Markers) -> tuple[int, int]:
    """Where the block that begins before `start` ends, and where the text after it begins.

    Blocks may be nested. Markers that the reasoning only mentions do not count. If no closing is
    left for the block, the first one ends it.
    """
    depth = 1
    first: tuple[int, int] | None = None  # where the first closing is
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
    """Reasoning and reply of a text that has a closing marker and no opening before it."""
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
    """Tells markers that a text mentions from those that it uses; `start` is where it begins."""

    def __init__(self, text: str, start: int):
        self._text = text
        self._start = start
        self._starts = dict[str, list[int]]()  # of strings, in ascending order

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
        """Whether quotation marks enclose the marker, the first of which opens a quotation."""
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
    """A reply without the tokens that Command A puts around it."""
    text = text.strip().removeprefix(_RESPONSE_START).removesuffix(_RESPONSE_END)
    return text.strip()


def _split_harmony(text: str) -> SplitReply:
    """Reasoning and reply in the channels of gpt-oss: only `final` is the reply.

    What it says before a tool call, in `commentary`, counts as reasoning.
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
