"""Finds the span of a block in the prompts that its code forwards.

For example:

    [{"role": "system", "content": "Be brief."}, ...]  -> the tokens of "Be brief." in each prompt
    [(0, 12)]                                         -> the first 12 tokens of each prompt
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.chat.messages import read_message
from holdfast.errors import PromptError, UsageError

Range = tuple[int, int]  # first and last token (exclusive)


@dataclass(frozen=True)
class SpanSearch:
    """The span of a block, as it is searched for in each prompt.

    Args:
        texts: the system prompts.
        ranges: token ranges, in place of texts.
        begins_chat: whether the chat begins with the only system prompt, so that the first
            occurrence of its text is meant.
    """

    texts: Sequence[bytes] = ()
    ranges: Sequence[Range] = ()
    begins_chat: bool = False

    def find(self, ids: Sequence[int], bytes_of: Callable[[int], bytes]) -> tuple[bool, ...]:
        """Finds the span in a prompt; returns True for each of its tokens.

        Args:
            ids: the tokens of the prompt.
            bytes_of: returns the bytes of a token's text.

        Raises:
            PromptError: the prompt does not contain the span.
        """
        span = np.zeros(len(ids), bool)
        for first, last in self.ranges:
            if not 0 <= first < last <= len(ids):
                raise PromptError(
                    f"The span ({first}, {last}) is not inside the prompt of {len(ids)} tokens;"
                    " give its first and last (exclusive) token, counted from 0."
                )
            span[first:last] = True
        if self.texts:
            span |= self._find_system_prompts([bytes_of(token) for token in ids])
        return tuple(span.tolist())

    def _find_system_prompts(self, pieces: Sequence[bytes]) -> np.ndarray:
        """Finds the tokens of the system prompts among the texts of all tokens, bool [token].

        Raises:
            PromptError: the prompt does not contain one of them, or more than once.
        """
        ends = np.cumsum([len(piece) for piece in pieces])
        starts = ends - [len(piece) for piece in pieces]
        text = b"".join(pieces)
        span = np.zeros(len(pieces), bool)
        for system_prompt in self.texts:
            count = text.count(system_prompt)
            first = text.find(system_prompt)
            if not count or (count > 1 and not self.begins_chat):
                raise PromptError(
                    f"The system prompt {system_prompt.decode()[:60]!r} occurs in the prompt"
                    f" {count} times, not once; pass the chat that you send, or the span's"
                    " tokens as [(first, last)]."
                )
            span |= (starts < first + len(system_prompt)) & (ends > first)
        return span


def read_hold(hold: Any) -> SpanSearch:
    """Reads the argument `hold` of a block.

    Raises:
        UsageError: `hold` is neither a chat nor ranges, or the chat has no system prompt.
    """
    items = list(hold) if isinstance(hold, (list, tuple)) else []
    if items and all(isinstance(item, dict) for item in items):
        items = [read_message(number, message) for number, message in enumerate(items, 1)]
        texts = [
            message["content"].strip().encode()
            for message in items
            if message["role"] == "system" and message["content"].strip()
        ]
        if not texts:
            raise UsageError(
                "The chat has no system prompt to steer towards; add a message with the role"
                " 'system', or give tokens as [(first, last)]."
            )
        return SpanSearch(texts, begins_chat=len(texts) == 1 and items[0]["role"] == "system")
    pairs = [tuple(item) for item in items if isinstance(item, (list, tuple))]
    if not items or len(pairs) != len(items) or any(len(pair) != 2 for pair in pairs):
        raise UsageError(
            "steering takes the messages of a chat, or tokens as [(first, last)], not"
            f" {hold!r:.80}."
        )
    return SpanSearch(ranges=pairs)
