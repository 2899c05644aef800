"""Reasoning that a model wrote into the text of its reply, apart from the reply itself.

A server that knows its model puts the reasoning into a field of its own; others leave it in the
content, between markers of the model's template. A reader of the chat is not shown it, and rules
for the reply do not apply to it.
"""

import re
from dataclasses import dataclass
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
    r"(?P<text>.*?)(?=<\|(?:start|end|return|call|channel)\|>|\Z)",
    re.DOTALL,
)
# gpt-oss where the server dropped the special tokens and kept the words between them.
_HARMONY_WITHOUT_TOKENS = re.compile(
    r"\s*analysis(?=\S)(?P<reasoning>.*?)assistantfinal", re.DOTALL
)

_RESPONSE_START, _RESPONSE_END = "<|START_RESPONSE|>", "<|END_RESPONSE|>"  # Command A
_QUOTES = tuple("`'\"“”‘’«»")
_BLANKS = (" ", "\t")
_SENTENCE_MARKS = ".,;:!?)"


def split_reasoning(text: str) -> SplitReply:
    """The reasoning at the beginning of a reply, and the reply without it.

    Only what leads the text is reasoning: a reply that mentions a marker further on, or in code,
    stays as it is. Several leading blocks are joined by a blank line. A block that is never closed
    was cut while the model was thinking, so its reply is empty. A closing marker alone ends
    reasoning whose opening stood in the prompt.

    A marker with spaces on both sides, or with one before it at the end of a line, is taken for a
    word of a sentence: templates put line breaks around markers, or nothing.

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
    blocks, rest = _leading_blocks(text)
    if not blocks:
        return _split_at_closing(text)
    reasoning = "\n\n".join(block for block in blocks if block)
    return SplitReply(reasoning, _without_response_tokens(rest))


def _leading_blocks(text: str) -> tuple[list[str], str]:
    """The blocks at the beginning of `text`, without markers, and what follows the last one."""
    blocks, rest = [], text
    while block := _leading_block(rest):
        blocks.append(block[0])
        rest = block[1]
    return blocks, rest


def _leading_block(text: str) -> tuple[str, str] | None:
    """The block at the beginning of `text` and the text after it; None if there is no block."""
    for markers in _MARKERS:
        opening = re.compile(r"\s*" + markers.opening, re.IGNORECASE).match(text)
        if opening is None:
            continue
        end, after = _end_of_block(text, opening.end(), markers)
        return text[opening.end() : end].strip(), text[after:]
    return None


def _end_of_block(text: str, start: int, markers: _Markers) -> tuple[int, int]:
    """Where the block that begins before `start` ends, and where the text after it begins.

    Blocks may be nested. Markers that the reasoning only mentions do not count. If no closing is
    left for the block, the first one ends it.
    """
    depth, first = 1, None
    pattern = re.compile(
        f"(?P<opening>{markers.nested or markers.opening})|{markers.closing}", re.IGNORECASE
    )
    for marker in pattern.finditer(text, start):
        before, after = text[start : marker.start()], text[marker.end() :]
        if not marker["opening"] and not _is_quoted(before, after):
            first = first or marker.span()
        if _is_mention(before, after):
            continue
        depth += 1 if marker["opening"] else -1
        if depth == 0:
            return marker.span()
    return first or (len(text), len(text))


def _split_at_closing(text: str) -> SplitReply:
    """Reasoning and reply of a text that has a closing marker and no opening before it."""
    for markers in _MARKERS:
        if not markers.opening_may_be_in_prompt:
            continue
        pattern = re.compile(f"(?P<opening>{markers.opening})|{markers.closing}", re.IGNORECASE)
        for marker in pattern.finditer(text):
            before, after = text[: marker.start()], text[marker.end() :]
            if _is_mention(before, after):
                continue
            if marker["opening"]:
                break
            return SplitReply(before.strip(), _without_response_tokens(after))
    is_wrapped = text.lstrip().startswith(_RESPONSE_START)
    return SplitReply("", _without_response_tokens(text) if is_wrapped else text)


def _is_mention(before: str, after: str) -> bool:
    """Whether a marker between these texts is quoted, in code, or a word of a sentence."""
    if before.count("```") % 2 or before.rpartition("\n")[2].count("`") % 2:
        return True
    if _is_quoted(before, after):
        return True
    follows_a_word = before[-1:] in _BLANKS
    return follows_a_word and (not after or after[0].isspace() or after[0] in _SENTENCE_MARKS)


def _is_quoted(before: str, after: str) -> bool:
    return before[-1:] in _QUOTES and after[:1] in _QUOTES


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
        if part:
            (reply if message["channel"] == "final" else reasoning).append(part)
    return SplitReply("\n\n".join(reasoning), "\n\n".join(reply))
