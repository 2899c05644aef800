"""The protocol of a drift benchmark, who takes part, and how the run is carried out.

Every field of `Settings` changes results, so every field is part of a run's identity.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from holdfast.chat.messages import SYSTEM_AS
from holdfast.drift.judges import Judging
from holdfast.drift.progress import Progress, ignore_progress
from holdfast.drift.recorded_dialogs import RecordedDialogs, read_dialogs
from holdfast.drift.user_scripts import UserTurns, read_user_turns
from holdfast.errors import UsageError, option
from holdfast.generation.sampling import Sampling
from holdfast.models.protocol import ChatModel
from holdfast.plurals import join_with_and
from holdfast.validation import ranges

UserPrompt = Literal["auto", "suite", "persona", "empty", "replayed", "scripted"]
ProbeAt = Literal["in-place", "after-round"]
Pairs = Literal["random", "balanced", "all", "in-turn"]
ContextPolicy = Literal["stop", "cut", "slide", "summarise", "compact"]
_CHOICES: dict[str, tuple[str, ...]] = {
    "user_prompt": get_args(UserPrompt),
    "system_as": SYSTEM_AS,
    "probe_at": get_args(ProbeAt),
    "pairs": get_args(Pairs),
    "context": get_args(ContextPolicy),
}
SUMMARY_PROMPT = (
    "Summarise the conversation below in at most 100 words. Keep names, facts, wishes and promises."
)


@dataclass(frozen=True)
class Settings:
    """The protocol of Li et al. (2024), section 3.1, and its options.

    Args:
        rounds: how many rounds a conversation has; a round is one user turn and one agent turn.
        conversations: how many conversations there are, each between an agent under a prompt of the
            suite and a user model.
        seed: seeds the pairs, the starters and every draw.
        sampling: how all replies are drawn.
        user_prompt: the user model's system prompt: "suite" (another system prompt of the suite),
            "persona" (one of the suite's personas, which are not measured), "empty" (none: Figure 3
            B) or "auto" (the first of persona, suite and empty that the suite has). A run of
            recorded dialogs has "replayed", and a run of user turns "scripted".
        system_as: "role", or "first-user" for models and endpoints without a system role.
        probes_per_round: how many probes are asked for each rule and kind; they are the same in
            every round.
        probe_at: "in-place" (round i's probe takes the place of the i-th user turn) or
            "after-round" (it follows the i-th agent turn, as in the released code).
        adoption: whether the agent is also asked the probes of the user's prompt.
        trace: whether the attention mass on the agent's prompt is recorded, if it is known.
        pairs: "random" (drawn); "balanced" (all ordered pairs in turn, so that from the start each
            prompt is the agent's equally often); "all" (the same pairs, in an order in which the
            agent's prompt changes last); or "in-turn" (each prompt is the agent's in turn, and the
            user model is drawn).
        context: what happens if the model's context leaves no room for a reply. "stop" ends the
            dialog. "cut" leaves out as many of the oldest rounds as necessary. "summarise" has the
            model summarise the older half of the rounds, and "compact" the agent's system prompt
            with them. "slide" shows only the last `window` rounds from the start, and fewer if
            necessary.
        window: how many rounds "slide" shows, including the current one, or how many "summarise"
            and "compact" show before they summarise; None shows as many as there is room for.
        summary_prompt: the prompt of "summarise" and "compact"; None takes `SUMMARY_PROMPT`.
        canary: whether a harmless fact is added to the agent's system prompt and asked for in every
            round, as a server that truncates the prompt loses it at once.
        recall: whether the agent is asked for its rules in the first and the last round, to
            distinguish a rule that it no longer knows from one that it knows and breaks.
        probe_every: probes are asked in the first and the last round, and in each round whose
            number is a multiple of this.
        batch: how many conversations run concurrently on each replica of the model; the end of one
            makes room for the next.

    Raises:
        ParameterOutOfRange: a number is outside its range.
        UsageError: a choice is unknown, or does not go with another.
    """

    rounds: int = 8
    conversations: int = 200
    seed: int = 0
    sampling: Sampling = Sampling()
    user_prompt: UserPrompt = "auto"
    system_as: str = "role"
    probes_per_round: int = 1
    probe_at: ProbeAt = "in-place"
    adoption: bool = True
    trace: bool = True
    pairs: Pairs = "random"
    batch: int = 48
    context: ContextPolicy = "stop"
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
        self._check_context()
        if self.summarises and self.summary_prompt is None:
            object.__setattr__(self, "summary_prompt", SUMMARY_PROMPT)

    def _check_context(self) -> None:
        """Refuses a window that is missing or out of range, and options of another context."""
        if self.context == "slide" and self.window is None:
            raise UsageError(
                f"{option('context', 'slide')} needs the number of rounds to show; give it with"
                f" {option('window')}."
            )
        if self.context in ("stop", "cut") and self.window is not None:
            raise UsageError(
                f"{option('window', self.window)} is for {option('context', 'slide')}, summarise or"
                f" compact, not for {self.context!r}; leave it out, or choose one of these."
            )
        if self.window is not None:
            ranges.whole_number("drift", "window", self.window, 1)
        if self.summary_prompt is not None and not self.summarises:
            raise UsageError(
                f"The summary prompt {self.summary_prompt!r} is for"
                f" {option('context', 'summarise')} or compact, not for {self.context!r}; leave it"
                " out."
            )

    def is_probed(self, number: int) -> bool:
        """Whether round `number` is probed."""
        return number in (1, self.rounds) or number % self.probe_every == 0

    @property
    def summarises(self) -> bool:
        """Whether a summary takes the place of the rounds that are left out."""
        return self.context in ("summarise", "compact")


@dataclass(frozen=True, init=False)
class Cast:
    """Who takes part besides the agent, which is part of a run's identity.

    At most one of `user_model`, `dialogs` and `user_turns` is given; without any, the agent's model
    plays both sides.

    Attributes:
        user_model: plays the user.
        dialogs: recorded dialogs. They are replayed in place of self-chats, and the model answers
            only the probes.
        judging: how the judges of the suite are loaded, if it has any.
        user_turns: scripts of the user's messages, which are sent in place of a user model's.
    """

    user_model: ChatModel | None
    dialogs: RecordedDialogs | None
    judging: Judging
    user_turns: UserTurns | None

    def __init__(
        self,
        user_model: ChatModel | None = None,
        dialogs: RecordedDialogs | Path | str | None = None,
        judging: Judging = Judging(),
        user_turns: UserTurns | Path | str | None = None,
    ) -> None:
        """Reads the dialogs (`read_dialogs`) or user turns (`read_user_turns`) if a file is given.

        Raises:
            UsageError: more than one of dialogs, user turns and user model is given, or a file is
                not what it should be.
        """
        _refuse_two_users(dialogs=dialogs, user_turns=user_turns, user_model=user_model)
        if isinstance(dialogs, (Path, str)):
            dialogs = read_dialogs(dialogs)
        if isinstance(user_turns, (Path, str)):
            user_turns = read_user_turns(user_turns)
        set_field = partial(object.__setattr__, self)
        set_field("user_model", user_model)
        set_field("dialogs", dialogs)
        set_field("judging", judging)
        set_field("user_turns", user_turns)


def _refuse_two_users(**users: object) -> None:
    """Refuses more than one option that says what the user says."""
    given = [
        option(name, str(getattr(user, "name", user)))
        for name, user in users.items()
        if user is not None
    ]
    if len(given) > 1:
        quantifier = "both" if len(given) == 2 else "all"
        raise UsageError(
            f"{join_with_and(given)} {quantifier} say what the user says; leave out all but one."
        )


@dataclass(frozen=True)
class Running:
    """How a run is carried out, on which no record depends.

    Args:
        traces: whether the mass of every head at every generated token of the agent is also saved
            (`records.traces`).
        progress: receives the number of replies since the last call, turns and probes
            (`drift.remaining.count_replies` counts all), and the tokens forwarded for them. The
            replies of conversations that an earlier command finished are reported at once, without
            tokens.
        command: the command line, for the manifest.
        should_stop: called with the number of each conversation, after each reply and every second.
            Once it returns True, the conversation is given up unless it has ended. The run returns
            once all conversations have ended or are given up.
    """

    traces: bool = False
    progress: Progress = ignore_progress
    command: str = ""
    should_stop: Callable[[int], bool] = lambda number: False
