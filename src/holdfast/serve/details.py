"""What is told of single tokens beside the text: the mass on the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.serve.generation import Generation
from holdfast.serve.speaking import Spoken

_DIGITS = 4  # of masses


class Details:
    """Tells of the tokens of one choice, as they come.

    Args:
        generation: of the choice.
        trace: False, True for the mean mass, "heads" for every head as well.
    """

    def __init__(self, generation: Generation, trace: bool | str):
        self.trace = trace
        self._span = sum(last - first for first, last in generation.span_ranges)
        self._seen = len(generation.prompt_ids)  # tokens that the next one's query sees

    def masses(self, tokens: Sequence[Spoken]) -> list[dict[str, Any]]:
        """Text and mass of each token, and the share that attention spread evenly over all tokens
        in sight would give.
        """
        told = []
        for spoken in tokens:
            token = spoken.token
            entry: dict[str, Any] = {"text": spoken.text, **self._shares(token.mass)}
            if self.trace == "heads" and token.heads is not None:
                entry["heads"] = [
                    [round(head, _DIGITS) for head in layer] for layer in token.heads.tolist()
                ]
            told.append(entry)
            self._seen += 1
        return told

    def end(self, mass: float) -> dict[str, Any]:
        """The same of the token that ended the reply, which has no text."""
        return self._shares(mass)

    def _shares(self, mass: float | None) -> dict[str, Any]:
        return {
            "mass": None if mass is None else round(mass, _DIGITS),
            "uniform": round(self._span / self._seen, _DIGITS) if self._span else None,
        }
