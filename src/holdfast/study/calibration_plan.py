"""How a calibration is run."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import knobs
from holdfast.errors import KnobOutOfRange, UsageError
from holdfast.measures.text import plural
from holdfast.sampling import Sampling

READINGS = ("likeliest", "written")


@dataclass(frozen=True)
class Plan:
    """How a calibration is run.

    Args:
        draws: conversations of every ordered pair of prompts; of a single prompt, with every
            persona, or with a user model without a prompt.
        rounds: of each conversation.
        ask_at: the user turn that is the question; the rounds before it are its history.
        reading: what counts as the answer: the "likeliest" of the options (a gate chooses between
            them as it chooses between tokens), or the letter in the "written" reply.
        seed: of everything.
        system_as: "role", or "first-user" for models and endpoints without a system role.
        sampling: of the dialogs.
        answering: of the written answers.
        batch: conversations side by side.
        conversations: in place of `draws`, so many of every setting, each between two prompts (or a
            prompt and a persona) that are drawn anew. Intervals are then over prompts too, and hold
            for other prompts of the same kind; those of draws hold for the prompts that talk.

    Raises:
        KnobOutOfRange: a number outside its range.
        UsageError: an unknown reading.
    """

    draws: int = 5
    rounds: int = 8
    ask_at: int = 4
    reading: str = "likeliest"
    seed: int = 0
    system_as: str = "role"
    sampling: Sampling = Sampling()
    answering: Sampling = Sampling(temperature=0, max_new_tokens=64)
    batch: int = 40
    conversations: int | None = None

    def __post_init__(self) -> None:
        for name in ("draws", "rounds", "ask_at", "batch"):
            knobs.whole_number("calibrate", name, getattr(self, name), 1)
        knobs.whole_number("calibrate", "seed", self.seed, 0)
        if self.conversations is not None:
            knobs.whole_number("calibrate", "conversations", self.conversations, 4)
        if self.ask_at > self.rounds + 1:
            raise KnobOutOfRange(
                f"calibrate takes ask_at up to {self.rounds + 1}, with"
                f" {plural(self.rounds, 'round')} before it, not {self.ask_at}."
            )
        if self.reading not in READINGS:
            raise UsageError(
                f"calibrate takes reading as {' or '.join(READINGS)}, not {self.reading!r}."
            )
