"""The text of a reply while it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_UNFINISHED = "�"  # what a tokenizer writes for bytes that are no character yet


class Pieces:
    """Tells a reply's text piece by piece; a character of several tokens is told when it is
    complete.

    Args:
        tokenizer: of the model that draws.
        tell: takes each piece; all of them joined are the reply.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, tell: Callable[[str], None]):
        self.tokenizer, self.tell = tokenizer, tell
        self.token_ids: list[int] = []
        self.told = ""

    def add(self, token: int) -> None:
        """Takes the next token."""
        self.token_ids.append(token)
        text = str(self.tokenizer.decode(self.token_ids, skip_special_tokens=True))
        if not text.endswith(_UNFINISHED):
            self.finish(text)

    def finish(self, text: str) -> None:
        """Tells what is missing of `text`."""
        if text.startswith(self.told) and len(text) > len(self.told):
            self.tell(text[len(self.told) :])
            self.told = text
