"""Reasoning that a model wrote into the text of its reply, apart from the reply itself.

A server that knows its model puts the reasoning into a field of its own; others leave it in the
content, between markers of the model's template. A reader of the chat is not shown it, and rules
for the reply do not apply to it.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Markers:
    """The patterns that open and close reasoning; case is ignored."""

    opening: str
    closing: str
    # Templates that end the prompt with the opening leave only the closing in the reply.
    opening_may_be_in_prompt: bool = True


MARKERS = (
    Markers(r"<think>", r"</think>"),  # DeepSeek, Qwen, GLM, SmolLM3
    Markers(r"<thinking>", r"</thinking>"),
    Markers(r"<thought>", r"</thought>"),
    Markers(r"<reasoning>", r"</reasoning>"),
    Markers(r"<seed:think>", r"</seed:think>"),  # Seed-OSS
    Markers(r"\[THINK\]", r"\[/THINK\]"),  # Magistral
    Markers(r"◁think▷", r"◁/think▷"),  # Kimi
    Markers(r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # Command A
    Markers(r"<\|channel>thought", r"<channel\|>", opening_may_be_in_prompt=False),  # Gemma 4
    # Open WebUI's exports
    Markers(r'<details\s+type="reasoning"[^>]*>', r"</details>", opening_may_be_in_prompt=False),
)

HARMONY_START = re.compile(r"\s*(?:<\|start\|>assistant)?<\|channel\|>")
HARMONY_MESSAGE = re.compile(
    r"<\|channel\|>(?P<channel>\w+)(?P<recipient>[^<]*)(?:<\|constrain\|>\w*\s*)?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:start|end|return|call|channel)\|>|\Z)",
    re.DOTALL,
)
# gpt-oss where the server dropped the special tokens and kept the words between them.
HARMONY_WITHOUT_TOKENS = re.compile(r"\s*analysis(?=\S)(?P<reasoning>.*?)assistantfinal", re.DOTALL)

RESPONSE_TOKENS = re.compile(r"<\|(?:START|END)_RESPONSE\|>")
QUOTES = "`'\"“”‘’«»"
_SENTENCE_MARKS = tuple(".,;:!?)")


def split_reasoning(text: str) -> tuple[str, str]:
    """The reasoning at the beginning of a reply, and the reply without it.

    Only what leads the text is reasoning: a reply that mentions a marker further on, or in code,
    stays as it is. Several leading blocks are joined by a blank line. A block that is never closed
    was cut while the model was thinking, so its reply is empty. A closing marker alone ends
    reasoning whose opening stood in the prompt.

    Args:
        text: a reply as the model or server gave it.

    Returns:
        Reasoning and reply. Without reasoning, "" and `text`, unchanged.
    """
    if HARMONY_START.match(text):
        return _split_harmony(text)
    if dropped := HARMONY_WITHOUT_TOKENS.match(text):
        return dropped["reasoning"].strip(), text[dropped.end() :].lstrip()
    blocks, rest = _leading_blocks(text)
    if not blocks:
        return _split_at_closing(text)
    reasoning = "\n\n".join(block for block in blocks if block)
    return reasoning, RESPONSE_TOKENS.sub("", rest).strip()


def _leading_blocks(text: str) -> tuple[list[str], str]:
    """The blocks at the beginning of `text`, without markers, and what follows the last one."""
    blocks, rest = [], text
    while block := _leading_block(rest):
        blocks.append(block[0])
        rest = block[1]
    return blocks, rest


def _leading_block(text: str) -> tuple[str, str] | None:
    """The block at the beginning of `text` and the text after it; None if there is no block."""
    for markers in MARKERS:
        opening = re.compile(r"\s*" + markers.opening, re.IGNORECASE).match(text)
        if opening is None:
            continue
        start, end, after = opening.end(), *_end_of_block(text, opening.end(), markers)
        return text[start:end].strip(), text[after:]
    return None


def _end_of_block(text: str, start: int, markers: Markers) -> tuple[int, int]:
    """Where the block that begins before `start` ends, and where the text after it begins.

    Blocks may be nested. A marker that the reasoning mentions is none. If that leaves no closing
    for the block, its first closing ends it.
    """
    depth, first = 1, None
    pattern = re.compile(f"(?P<opening>{markers.opening})|{markers.closing}", re.IGNORECASE)
    for marker in pattern.finditer(text, start):
        if not marker["opening"]:
            first = first or marker.span()
        if _is_mention(text[start : marker.start()], text[marker.end() :]):
            continue
        depth += 1 if marker["opening"] else -1
        if depth == 0:
            return marker.span()
    return first or (len(text), len(text))


def _split_at_closing(text: str) -> tuple[str, str]:
    """Reasoning and reply of a text that has a closing marker and no opening before it."""
    for markers in MARKERS:
        if not markers.opening_may_be_in_prompt:
            continue
        for closing in re.finditer(markers.closing, text, re.IGNORECASE):
            before, after = text[: closing.start()], text[closing.end() :]
            if re.search(markers.opening, before, re.IGNORECASE):
                break
            if not _is_mention(before, after):
                return before.strip(), RESPONSE_TOKENS.sub("", after).strip()
    return "", text


def _is_mention(before: str, after: str) -> bool:
    """Whether a marker between these texts is quoted, in code, or a word of a sentence."""
    if before.count("```") % 2 or before.rpartition("\n")[2].count("`") % 2:
        return True
    if before and after and before[-1] in QUOTES and after[0] in QUOTES:
        return True
    stands_alone = before[-1:] in ("", "\n") or after[:1] in ("", "\n")
    is_word = before[-1:].isspace() and (after[:1].isspace() or after[:1] in _SENTENCE_MARKS)
    return is_word and not stands_alone


def _split_harmony(text: str) -> tuple[str, str]:
    """Reasoning and reply in the channels of gpt-oss: only `final` is the reply."""
    reasoning: list[str] = []
    reply: list[str] = []
    for message in HARMONY_MESSAGE.finditer(text):
        part = message["text"].strip()
        if part:
            (reply if message["channel"] == "final" else reasoning).append(part)
    return "\n\n".join(reasoning), "\n\n".join(reply)
