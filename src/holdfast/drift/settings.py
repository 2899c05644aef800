"""How a drift benchmark is run; every field changes results, so every field is part of a run's
identity.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import knobs
from holdfast.chat.messages import SYSTEM_AS
from holdfast.drift.window import CONTEXTS, SUMMARY_PROMPT
from holdfast.errors import UsageError
from holdfast.sampling import Sampling

USER_PROMPTS = ("auto", "suite", "persona", "empty", "replayed", "scripted")
PROBE_AT = ("in-place", "after-round")
PAIRS = ("random", "balanced", "all", "in-turn")


@dataclass(frozen=True)
class Settings:
    """The protocol of Li et al. (2024), section 3.1, and its options.

    Args:
        rounds: a round is one user turn and one agent turn.
        conversations: how many, each between an agent under a prompt of the suite and a user model.
        seed: of pairs, starters and every draw.
        sampling: of all replies.
        user_prompt: "suite" (the user model has another system prompt of the suite), "persona" (it
            has one of the suite's personas, which nothing measures) or "empty" (it has none: Figure
            3 B). "auto": personas where the suite has some, else the suite where it has two
            prompts, else none. "replayed", where dialogs are: nobody knows. "scripted", where the
            user's messages are given: nobody.
        system_as: "role", or "first-user" for models and endpoints without a system role.
        probes_per_round: of each rule and kind; the same questions at every round.
        probe_at: "in-place" (round i's probe stands in place of the i-th user turn) or
            "after-round" (it follows the i-th agent turn, as in the released code).
        adoption: whether the agent is asked the user's probe too.
        trace: whether the attention mass on the agent's prompt is recorded, where the model shows
            it.
        divergence: whether it is recorded how far the distributions of the agent's replies lie from
            those under a fresh dialog (`drift.divergence`), where the model tells them.
        pairs: "random" (drawn); "balanced" (all ordered pairs in turn, each prompt the agent
            equally often from the start); "all" (the same pairs, with the agent's prompt
            changing last); or "in-turn" (the prompts are the agent's in turn, and the user model is
            drawn, so that the conversations of one prompt are drawn alike).
        context: what happens where the model's context leaves no room for a reply: "stop" (the
            dialog ends), "cut" (as many of the oldest rounds are left out as it takes), "slide"
            (all but the last `window` rounds are left out, and more where it takes more) or
            "summarise" (the model summarises the older half of the rounds). The system prompt
            always stays.
        window: rounds that "slide" shows, the one that is spoken included.
        summary_prompt: what "summarise" asks; None: `window.SUMMARY_PROMPT`.
        batch: conversations that run side by side; one that is over makes room for the next.

    Raises:
        KnobOutOfRange: a number outside its range.
        UsageError: an unknown choice.
    """

    rounds: int = 8
    conversations: int = 200
    seed: int = 0
    sampling: Sampling = Sampling()
    user_prompt: str = "auto"
    system_as: str = "role"
    probes_per_round: int = 1
    probe_at: str = "in-place"
    adoption: bool = True
    trace: bool = True
    divergence: bool = False
    pairs: str = "random"
    batch: int = 48
    context: str = "stop"
    window: int | None = None
    summary_prompt: str | None = None

    def __post_init__(self) -> None:
        for name in ("rounds", "conversations", "probes_per_round", "batch"):
            knobs.whole_number("drift", name, getattr(self, name), 1)
        knobs.whole_number("drift", "seed", self.seed, 0)
        for name, choices in (
            ("user_prompt", USER_PROMPTS),
            ("system_as", SYSTEM_AS),
            ("probe_at", PROBE_AT),
            ("pairs", PAIRS),
            ("context", CONTEXTS),
        ):
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"drift takes {name} as {' or '.join(choices)}, not {getattr(self, name)!r}."
                )
        self._check_window()

    def _check_window(self) -> None:
        if self.context == "slide" and self.window is None:
            raise UsageError(
                "--context=slide needs the number of rounds that are shown; give it with --window."
            )
        if self.context != "slide" and self.window is not None:
            raise UsageError(
                f"The window {self.window!r} is for --context=slide, not for"
                f" {self.context!r}; leave out --window, or choose that context."
            )
        if self.window is not None:
            knobs.whole_number("drift", "window", self.window, 1)
        if self.context == "summarise":
            if self.summary_prompt is None:
                object.__setattr__(self, "summary_prompt", SUMMARY_PROMPT)
        elif self.summary_prompt is not None:
            raise UsageError(
                f"The summary prompt {self.summary_prompt!r} is for --context=summarise, not for"
                f" {self.context!r}; leave it out."
            )
