"""A shard: every n-th conversation of a run, so that several machines share one run.

Draws depend on a conversation's own number, so the shards together are the run that one machine
would have made, up to rounding.
"""

import re
from dataclasses import dataclass
from typing import Self

from holdfast.errors import UsageError


@dataclass(frozen=True)
class Shard:
    """Part `part` of `parts`, counted from 1."""

    part: int = 1
    parts: int = 1

    @classmethod
    def read(cls, text: str) -> Self:
        """The shard that a text such as "2/4" names.

        Raises:
            UsageError: it is not two whole numbers of which the first is from 1 to the second.
        """
        numbers = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip(), re.ASCII)
        if numbers:
            part, parts = map(int, numbers.groups())
            if 1 <= part <= parts:
                return cls(part, parts)
        raise UsageError(
            f"drift takes --shard as PART/PARTS, such as 1/4 to 4/4, not {text!r}.",
            option="shard",
            value=text,
        )

    def numbers(self, conversations: int) -> list[int]:
        """Its share of a run's conversations, by number; every `parts`-th, so that each shard has
        its share of each kind of prompt.
        """
        return list(range(self.part - 1, conversations, self.parts))

    def __str__(self) -> str:
        return f"{self.part}/{self.parts}"


WHOLE_RUN = Shard()
