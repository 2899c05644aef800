"""How a drift benchmark is run: the protocol, who takes part, and how the run is carried out.

Every field of `Settings` changes results, so every field is part of a run's identity.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.chat.messages import SYSTEM_AS
from holdfast.drift.judges import Judging
from holdfast.drift.progress import Progress, ignored
from holdfast.drift.recorded_dialogs import Dialogs, read_dialogs
from holdfast.drift.user_scripts import UserSource, UserTurns, read_user_turns
from holdfast.errors import UsageError, option
from holdfast.generation.sampling import Sampling
from holdfast.models.protocol import ChatModel
from holdfast.validation import ranges

USER_PROMPTS = ("auto", "suite", "persona", "empty", "replayed", "scripted")
PROBE_AT = ("in-place", "after-round")
PAIRS = ("random", "balanced", "all", "in-turn")
CONTEXTS = ("stop", "cut", "slide", "summarise", "compact")
_CHOICES = {
    "user_prompt": USER_PROMPTS,
    "system_as": SYSTEM_AS,
    "probe_at": PROBE_AT,
    "pairs": PAIRS,
    "context": CONTEXTS,
}
SUMMARY_PROMPT = (
    "Summarise the conversation below in at most 100 words. Keep names, facts, wishes and promises."
)


@dataclass(frozen=True)
class Settings:
    """The protocol of Li et al. (2024), section 3.1, and its options.

    Args:
        rounds: a round is one user turn and one agent turn.
        conversations: how many, each between an agent under a prompt of the suite and a user model.
        seed: of pairs, starters and every draw.
        sampling: of all replies.
        user_prompt: of the user model: "suite" (another system prompt of the suite), "persona" (one
            of the suite's personas, which nothing measures), "empty" (none: Figure 3 B) or "auto"
            (the first of persona, suite and empty that the suite has). A run of dialogs has
            "replayed", and one of user turns "scripted".
        system_as: "role", or "first-user" for models and endpoints without a system role.
        probes_per_round: per rule and kind; the same questions at every round.
        probe_at: "in-place" (round i's probe takes the place of the i-th user turn) or
            "after-round" (it follows the i-th agent turn, as in the released code).
        adoption: whether the agent is asked the user's probe too.
        trace: whether the attention mass on the agent's prompt is recorded, if it is known.
        pairs: "random" (drawn); "balanced" (all ordered pairs in turn, each prompt the agent
            equally often from the start); "all" (the same pairs, the agent's prompt changing last);
            or "in-turn" (each prompt is the agent's in turn, and the user model is drawn).
        context: if the model's context leaves no room for a reply, "stop" ends the dialog, "cut"
            leaves out as many of the oldest rounds as it takes, "summarise" has the model summarise
            the older half of the rounds, and "compact" the agent's system prompt with them. "slide"
            shows only the last `window` rounds from the start, and fewer if needed.
        window: rounds that "slide" shows, including the current one, or that "summarise" and
            "compact" show before they summarise; None: as many as there is room for.
        summary_prompt: the prompt of "summarise" and "compact"; None: `SUMMARY_PROMPT`.
        canary: whether a harmless fact is added to the agent's system prompt and asked for in every
            round, as a server that truncates the prompt loses it at once.
        recall: whether the agent is asked for its rules in the first and the last round, to
            distinguish a rule that it no longer knows from one that it knows and breaks.
        probe_every: probes are asked in the first round, the last, and each whose number is a
            multiple of this.
        batch: conversations that run concurrently; one that is over makes room for the next.

    Raises:
        ParameterOutOfRange: a number outside its range.
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
    pairs: str = "random"
    batch: int = 48
    context: str = "stop"
    window: int | None = None
    summary_prompt: str | None = None
    canary: bool = False
    recall: bool = False
    probe_every: int = 1

    def __post_init__(self) -> None:
        for name in ("rounds", "conversations", "probes_per_round", "probe_every", "batch"):
            ranges.whole_number("drift", name, getattr(self, name), 1)
        ranges.whole_number("drift", "seed", self.seed, 0)
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"drift takes {option(name)} as {' or '.join(choices)}, not"
                    f" {getattr(self, name)!r}."
                )
        if self.context == "slide" and self.window is None:
            raise UsageError(
                "--context=slide needs the number of rounds that are shown; give it with --window."
            )
        if self.context in ("stop", "cut") and self.window is not None:
            raise UsageError(
                f"The window {self.window!r} is for --context slide, summarise or compact, not for"
                f" {self.context!r}; leave out --window, or choose one of these."
            )
        if self.window is not None:
            ranges.whole_number("drift", "window", self.window, 1)
        if self.summarises:
            if self.summary_prompt is None:
                object.__setattr__(self, "summary_prompt", SUMMARY_PROMPT)
        elif self.summary_prompt is not None:
            raise UsageError(
                f"The summary prompt {self.summary_prompt!r} is for --context summarise or"
                f" compact, not for {self.context!r}; leave it out."
            )

    def probes_in(self, number: int) -> bool:
        """Whether round `number` is probed."""
        return number in (1, self.rounds) or number % self.probe_every == 0

    @property
    def summarises(self) -> bool:
        """Whether a summary replaces the rounds that are left out."""
        return self.context in ("summarise", "compact")


@dataclass(frozen=True)
class Cast:
    """Who takes part besides the agent; part of a run's identity.

    Args:
        user_model: plays the user model; None: the agent's model plays both.
        dialogs: recorded dialogs, or their file (`read_dialogs`): they are replayed in
            place of self-chats, and the model answers only the probes.
        user_turns: the user's messages, or their file (`read_user_turns`): they are sent in
            place of a user model's.
        judging: how the judges of the suite are loaded, if it has any.
    """

    user_model: ChatModel | None = None
    dialogs: Dialogs | Path | str | None = None
    judging: Judging = Judging()
    user_turns: UserTurns | Path | str | None = None

    def read(self) -> UserSource | None:
        """The dialogs or the user turns, read from their file if one was given."""
        users = {
            "--dialogs": self.dialogs,
            "--user-turns": self.user_turns,
            "--user-model": self.user_model,
        }
        options = [
            f"{option} {getattr(user, 'name', user)}"
            for option, user in users.items()
            if user is not None
        ]
        if len(options) > 1:
            raise UsageError(
                f"{' and '.join(options)} both say what the user says; leave out one of them."
            )
        if isinstance(self.dialogs, (Path, str)):
            return read_dialogs(self.dialogs)
        if isinstance(self.user_turns, (Path, str)):
            return read_user_turns(self.user_turns)
        return self.dialogs or self.user_turns


@dataclass(frozen=True)
class Running:
    """How a run is carried out; no record depends on it.

    Args:
        traces: whether the mass of every head at every generated token of the agent is saved too
            (`records.traces`).
        progress: called with how many replies were answered since the last call, turns and probes
            (`drift.remaining.count_replies` says how many there are), and the tokens forwarded for
            them; those of conversations that were finished before a run is resumed are reported at
            once, with no tokens.
        command: the command line, for the manifest.
        should_stop: asked after each reply, and every second, about each conversation by its
            number; once it is true, a conversation that has not ended is given up. The run returns
            once this is so of all.
    """

    traces: bool = False
    progress: Progress = ignored
    command: str = ""
    should_stop: Callable[[int], bool] = lambda number: False
