"""A shard is every n-th conversation of a run, so that several machines can share the run.

A draw depends only on the number of its conversation, so all shards together are the run that a
single machine would make, up to rounding.
"""

import re
from dataclasses import dataclass
from typing import Self

from holdfast.errors import UsageError


@dataclass(frozen=True)
class Shard:
    """One of `parts` parts of a run; `part` counts from 1."""

    part: int = 1
    parts: int = 1

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a shard from a text such as "2/4".

        Raises:
            UsageError: the text is not PART/PARTS, with PART from 1 to PARTS.
        """
        numbers = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip(), re.ASCII)
        if numbers:
            part, parts = map(int, numbers.groups())
            if 1 <= part <= parts:
                return cls(part, parts)
        raise UsageError(
            "drift takes --shard as PART/PARTS, with PART from 1 to PARTS, such as 1/4 to 4/4, not"
            f" {text!r}.",
            option="shard",
            value=text,
        )

    def numbers(self, conversations: int) -> list[int]:
        """The numbers of its conversations: every `parts`-th, so that all shards have all kinds of
        prompts.

        Args:
            conversations: how many conversations the whole run has.
        """
        return list(range(self.part - 1, conversations, self.parts))

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"


WHOLE_RUN = Shard()
