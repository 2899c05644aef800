"""The plan of a calibration: how many conversations under which prompts, the settings to compare,
and how answers are read.
"""

import dataclasses
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import drift
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.drift.user_scripts import UserTurns
from holdfast.errors import ParameterOutOfRange, UsageError, option
from holdfast.generation.sampling import Sampling
from holdfast.methods import Method, Sweep, parse_sweep, spec_of
from holdfast.plurals import count_of
from holdfast.records import MANIFEST, read_run
from holdfast.records.identity import CalibrationIdentity
from holdfast.seeds import seed_of
from holdfast.validation import ranges

READINGS = ("likeliest", "written")  # ways to read an answer
DEFAULT_SWEEPS = (
    "split-softmax:exponent=0.9,0.7,0.5,0.3",
    "repetition:probability=0.25,0.5,1",
    "guidance:scale=1.25,1.5,2",
    "boost:factor=2,4,8",
    "spotlight:target=0.1,0.2,0.4",
)
DEFAULT_CONVERSATIONS = 60  # per steering at least, if the user gives no number of draws
MIN_TO_RECOMMEND = 2 * MIN_SAMPLES  # one half is to choose a setting, the other to report on it


@dataclass(frozen=True)
class CalibrationPlan:
    """How a calibration is run.

    Args:
        draws: conversations per ordered pair of prompts. For a single prompt, conversations with
            each persona, or with a user model that has no prompt.
        rounds: per conversation.
        ask_at: the round in which the user asks the question; the rounds before it are its history.
        reading: how an answer is read: the "likeliest" of the options, or the letter in the
            "written" reply.
        seed: of all random draws.
        system_as: "role", or "first-user" for models and endpoints without a system role.
        sampling: how the dialogs are sampled.
        answering: how the written answers are sampled.
        batch: how many conversations run side by side.
        conversations: instead of `draws`, the number per setting, each between two newly drawn
            prompts (or a prompt and a persona). Intervals are then over prompts too, and hold for
            other prompts of the same kind; with `draws`, they hold only for the prompts used.
        sweeps: methods, each with one or several values of a parameter, as `methods.parse_sweep`
            reads them.
        user_turns: scripted user messages, instead of a user model.

    Raises:
        ParameterOutOfRange: a number is outside its range.
        UsageError: the reading is unknown.
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
    sweeps: Sequence[str] = DEFAULT_SWEEPS
    user_turns: UserTurns | None = None

    def __post_init__(self) -> None:
        for name in ("draws", "rounds", "ask_at", "batch"):
            ranges.whole_number("calibrate", name, getattr(self, name), 1)
        ranges.whole_number("calibrate", "seed", self.seed, 0)
        if self.conversations is not None:
            ranges.whole_number("calibrate", "conversations", self.conversations, 4)
        if self.ask_at > self.rounds + 1:
            raise ParameterOutOfRange(
                f"calibrate takes {option('ask_at')} up to {self.rounds + 1}, with"
                f" {count_of(self.rounds, 'round')} before it, not {self.ask_at}; give"
                f" {option('ask_at', self.rounds + 1)}, or more {option('rounds')}.",
                option="ask_at",
                value=self.ask_at,
                allowed=f"up to {self.rounds + 1}",
            )
        if self.reading not in READINGS:
            raise UsageError(
                f"calibrate takes {option('reading')} as {' or '.join(READINGS)}, not"
                f" {self.reading!r}.",
                option="reading",
                value=self.reading,
                allowed=READINGS,
            )

    @property
    def parsed_sweeps(self) -> list[Sweep]:
        """The sweeps, parsed.

        Raises:
            UsageError: two of them have the same setting.
        """
        sweeps = [self.sweeps] if isinstance(self.sweeps, str) else self.sweeps
        parsed = [parse_sweep(sweep) for sweep in sweeps]
        names = [spec_of(methods) for sweep in parsed for methods in sweep.steerings]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            raise UsageError(
                f"The setting {duplicate!r} is given twice; give it once.",
                option="sweeps",
                value=duplicate,
            )
        return parsed

    @property
    def steerings(self) -> list[tuple[Method, ...]]:
        """The methods at every point of the sweeps, after () for the model without any."""
        return [(), *(methods for sweep in self.parsed_sweeps for methods in sweep.steerings)]

    @property
    def identity(self) -> dict[str, Any]:
        """The plan as a part of a run's identity, which has sweeps and user turns elsewhere."""
        fields = dataclasses.asdict(dataclasses.replace(self, sweeps=(), user_turns=None))
        del fields["sweeps"], fields["user_turns"]
        return fields


def choose_prompts(
    suite: drift.Suite, ids: Sequence[str] = (), plan: CalibrationPlan = CalibrationPlan()
) -> drift.Suite:
    """Returns the suite with the cases that a calibration uses.

    These are the named ones; or all cases if the plan draws new pairs; or else one case per
    category, always the same ones. A single case talks to the suite's personas, or to a user model
    without a prompt.

    Raises:
        UsageError: no case is named, only one is chosen, and the suite has others but no personas.
    """
    if ids:
        return suite.only(ids)
    if plan.conversations is not None:
        return suite
    cases: list[drift.Case] = []
    for category in dict.fromkeys(case.category for case in suite.cases):
        candidates = [case for case in suite.cases if case.category == category]
        cases.append(random.Random(seed_of("calibrate", category)).choice(candidates))
    if len(cases) == 1 < len(suite.cases) and not suite.personas:
        raise UsageError(
            f"The suite {suite.name!r} has a single category, so choosing one prompt of each"
            f" category gives one prompt, and a pair needs two; name two or more with"
            f" {option('prompts')}, or one, whose user model then has no prompt.",
            option="prompts",
            value=len(cases),
        )
    return dataclasses.replace(suite, cases=tuple(cases))


def conversations_per_draw(suite: drift.Suite) -> int:
    """Returns how many conversations a draw makes.

    That is one per ordered pair of prompts, or for a single prompt one per persona.
    """
    count = len(suite.cases)
    return count * (count - 1) if count > 1 else max(1, len(suite.personas))


def conversations_per_steering(suite: drift.Suite, plan: CalibrationPlan) -> int:
    """Returns how many conversations every steering has.

    Raises:
        UsageError: there are fewer than four.
    """
    if plan.conversations is not None:
        return plan.conversations
    count = conversations_per_draw(suite) * plan.draws
    if count < 4:
        options = "--draws or --prompts" if len(suite.cases) > 1 else "--draws"
        verb = "makes" if plan.draws == 1 else "make"
        raise UsageError(
            f"{count_of(plan.draws, 'draw')} of {count_of(len(suite.cases), 'prompt')} {verb}"
            f" {count_of(count, 'conversation')}, and at least 4 are needed; use more {options}.",
            option="draws",
            value=count,
            allowed="from 4 upwards",
        )
    return count


def default_draws(suite: drift.Suite, out: Path | str) -> int:
    """Returns the number of draws if the user gives none.

    That is the number of the calibration in the folder, or else enough for `DEFAULT_CONVERSATIONS`,
    and at least 5.
    """
    folder = Path(out) / "capability"  # a dry run makes only stability/, with few conversations
    if (folder / MANIFEST).is_file():
        draws = read_run(folder).identity_as(CalibrationIdentity).plan.draws
        return CalibrationPlan().draws if draws is None else draws
    return max(CalibrationPlan().draws, _draws_for(DEFAULT_CONVERSATIONS, suite))


def _draws_for(conversations: int, suite: drift.Suite) -> int:
    """Returns how many draws make at least this many conversations per steering."""
    return math.ceil(conversations / conversations_per_draw(suite))


def why_too_small(
    suite: drift.Suite, questions: int, num_wanted: int, plan: CalibrationPlan
) -> str | None:
    """Explains why a calibration is too small to recommend a setting; None if it is not.

    Args:
        questions: how many questions the capability has.
        num_wanted: how many the user wanted; a file may have fewer.
    """
    too_few = []
    conversations = conversations_per_steering(suite, plan)
    if conversations < MIN_TO_RECOMMEND:
        cure = f"use --draws {_draws_for(MIN_TO_RECOMMEND, suite)}"
        if plan.conversations is not None:
            cure = f"use --conversations {MIN_TO_RECOMMEND}"
        too_few.append(f"{conversations} conversations ({cure})")
    if questions < MIN_TO_RECOMMEND:
        cure = f"use --questions {MIN_TO_RECOMMEND}"
        if questions < num_wanted:
            cure = "its file has no more; give --capability a longer one"
        too_few.append(f"{questions} questions ({cure})")
    if not too_few:
        return None
    return (
        f"too small to recommend a setting: {' and '.join(too_few)}; {MIN_TO_RECOMMEND} of each are"
        f" needed, {MIN_SAMPLES} to choose on and {MIN_SAMPLES} others to report on."
    )


def calibration_settings(suite: drift.Suite, plan: CalibrationPlan) -> drift.Settings:
    """Returns the protocol of the conversations under every steering, in the folder `stability`."""
    return drift.Settings(
        rounds=plan.rounds,
        conversations=conversations_per_steering(suite, plan),
        seed=plan.seed,
        sampling=plan.sampling,
        system_as=plan.system_as,
        adoption=False,
        trace=False,
        pairs="all" if plan.conversations is None else "random",
        batch=plan.batch,
    )
