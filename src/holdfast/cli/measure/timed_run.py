"""Holds as many conversations of a drift run as fit into a given time.

It prints the plan before, and what was recorded after:

    holdfast: 12 replies a minute: 4 conversations of 6 rounds to begin with, [...]
    holdfast: 9 conversations recorded, of at most 40, in runs/try-qwen-0.5b-bot-0.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.cli.measure.pilot import SUFFICIENT_CONVERSATIONS, SUFFICIENT_ROUNDS, Pilot, RunPlan
from holdfast.cli.measure.time_box import ConversationGroup, Deadlines, TimeBox
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.progress_bar import pace as pace_of
from holdfast.drift.remaining import count_replies, missing_numbers
from holdfast.drift.resolved_settings import prepare
from holdfast.errors import HoldfastError
from holdfast.generation.sampling import Sampling
from holdfast.models.model_names import is_url
from holdfast.plurals import count_of, duration
from holdfast.records import RECORDS

# a run is refused if its first conversations would take this many times the time
_MAX_TIMES = 2
# how many times --minutes to suggest if no conversation ended in time
_SUGGESTED_TIMES = 4
# the share of --minutes that the conversations which lack for a verdict may take after the time
_VERDICT_OVERTIME = 0.25


@dataclass(frozen=True)
class TimedRun:
    """A drift run and the time for its conversations.

    Attributes:
        run: all conversations that the run may have.
        model: the value of --model.
        plan: how long they are.
        pilot: the pace of the model.
        seconds: how long they may take.
        minutes: the value of --minutes, of which loading and timing the model have taken a part.
    """

    run: DriftRun
    model: str
    plan: RunPlan
    pilot: Pilot
    seconds: float
    minutes: float

    def converse(self) -> None:
        """Holds the missing conversations until the time is up.

        Raises:
            HoldfastError: there is no time for any, or none has ended.
        """
        total = self.run.settings.conversations
        missing = self._missing()
        if not missing:
            note(f"{self.run.out} has all {total} conversations; `holdfast drift` adds more.")
            return
        first = self.pilot.first_group(self.plan, self.seconds, len(missing))
        expected = first * self.pilot.seconds_of(self.plan.rounds, self.plan.max_new_tokens)
        max_seconds = _MAX_TIMES * self.seconds
        if not self.pilot.knows_pace:
            expected = min(expected, max_seconds)
        elif expected > max_seconds and len(missing) == total:
            raise self._too_slow_to_begin(first, expected)
        note_plan(self.plan, self.pilot, first, max(self.seconds, expected), self.minutes)
        if is_url(self.model):
            note(f"at most {self._count_replies(missing):,} requests to {self.model}.")
        begun = self._hold_groups(missing, TimeBox(self.seconds, first, expected))
        left = self._missing()
        recorded = count_of(total - len(left), "conversation")
        line = f"{recorded} recorded, of at most {total}, in {self.run.out}"
        if given_up := len(begun.intersection(left)):
            line = f"{line}; {given_up} more had not ended when the time was up"
        note(f"{line}.")

    def _hold_groups(self, missing: Sequence[int], box: TimeBox) -> set[int]:
        """Holds conversations group by group, then those that lack for a verdict.

        Returns the numbers of the conversations that were begun.

        Raises:
            HoldfastError: none has ended.
        """
        began = time.monotonic()
        begun: set[int] = set()
        for numbers in box.groups(missing):
            begun.update(numbers)
            self._run_group(numbers, box.deadlines)
        left = self._missing()
        if len(left) == self.run.settings.conversations:
            raise self._none_ended()
        if numbers := self._numbers_for_verdict(missing, left, time.monotonic() - began):
            begun.update(numbers)
            end = time.monotonic() + self._max_overtime
            self._run_group(numbers, Deadlines(end, end, end))
        return begun

    def _run_group(self, numbers: Sequence[int], deadlines: Deadlines) -> None:
        """Holds conversations side by side, until they have ended or are given up."""
        title = count_of(len(numbers), "conversation")
        with Bar(self._count_replies(numbers), title=title, waves=1) as bar:
            group = ConversationGroup(numbers, self.plan.rounds, bar, deadlines, self._has_records)
            self.run.converse_some((), numbers, group, group.should_stop)

    @property
    def _max_overtime(self) -> float:
        """How many seconds the conversations that lack for a verdict may take after the time."""
        return _VERDICT_OVERTIME * 60 * self.minutes

    def _numbers_for_verdict(
        self, missing: Sequence[int], left: Sequence[int], seconds: float
    ) -> Sequence[int]:
        """The conversations to hold after the time, so that there are enough for a verdict.

        [] if there are enough, or if the others would take too long at the pace so far.

        Args:
            missing, left: the numbers that the folder lacked at first, and those it lacks now.
            seconds: how long the conversations that have ended since took.
        """
        total = self.run.settings.conversations
        recorded = total - len(left)
        needed = MIN_SAMPLES - recorded
        ended = len(missing) - len(left)
        if needed <= 0 or total < MIN_SAMPLES or not ended:
            return []
        expected = needed * seconds / ended
        if expected > self._max_overtime:
            return []
        note(
            f"{count_of(recorded, 'conversation')} recorded, and a verdict takes {MIN_SAMPLES}:"
            f" going on with {needed} more, for about {duration(expected)}, and at most"
            f" {duration(self._max_overtime)}."
        )
        return left[:needed]

    def _missing(self) -> list[int]:
        """The numbers of the conversations that the folder lacks."""
        numbers = range(self.run.settings.conversations)
        return missing_numbers(self.run.out, ["none"], numbers)["none"]

    def _count_replies(self, numbers: Sequence[int]) -> int:
        """How many replies these conversations have, at most."""
        run = self.run
        settings, cast = prepare(run.model, run.suite, run.settings, run.cast)
        return count_replies(run.suite, settings, numbers, cast)

    def _has_records(self) -> bool:
        """Whether a conversation of the run has ended."""
        records = self.run.out / RECORDS
        return records.is_file() and records.stat().st_size > 0

    def _too_slow_to_begin(self, first: int, expected: float) -> HoldfastError:
        """The error if the first conversations would take `expected` seconds."""
        return HoldfastError(
            f"The model is slow here: {count_of(first, 'conversation')} of"
            f" {count_of(self.plan.rounds, 'round')} would take about {duration(expected)}, for"
            f" which --minutes {self.minutes:g} is too short; repeat the command with --minutes"
            f" {math.ceil(expected / 60)}.",
            option="minutes",
            value=self.minutes,
        )

    def _none_ended(self) -> HoldfastError:
        """The error if no conversation has ended in time."""
        return HoldfastError(
            f"No conversation of {count_of(self.plan.rounds, 'round')} ended in time, so there is"
            f" nothing to show: the model is too slow here for --minutes {self.minutes:g}; repeat"
            f" the command with --minutes {math.ceil(_SUGGESTED_TIMES * self.minutes)}.",
            option="minutes",
            value=self.minutes,
        )


def note_plan(plan: RunPlan, pilot: Pilot, first: int, seconds: float, minutes: float) -> None:
    """Prints the model's pace, and the conversations that were chosen to suit it.

    Args:
        first: how many conversations begin.
        seconds: how long they should take.
        minutes: those of --minutes, which were too short if replies or rounds were shortened.
    """
    conversations = (
        f"{count_of(first, 'conversation')} of {count_of(plan.rounds, 'round')} to begin with, with"
        f" replies of at most {plan.max_new_tokens} tokens"
    )
    if not pilot.knows_pace:
        note(
            f"the model gave no more than its first token in that time: {conversations}, for at"
            f" most about {duration(seconds)}."
        )
        return
    per_conversation = pilot.seconds_of(plan.rounds, plan.max_new_tokens)
    pace = pace_of(pilot.per_round * plan.rounds / per_conversation, "reply")
    note(f"{pace}: {conversations}, for about {duration(seconds)}.")
    shortened = []
    usual = []
    if plan.rounds < SUFFICIENT_ROUNDS:
        shortened.append(count_of(plan.rounds, "round"))
        usual.append(count_of(SUFFICIENT_ROUNDS, "round"))
    if plan.max_new_tokens < Sampling.max_new_tokens:
        shortened.append(f"replies of at most {plan.max_new_tokens} tokens")
        usual.append(f"replies of up to {Sampling.max_new_tokens} tokens")
    if shortened:
        needed = SUFFICIENT_CONVERSATIONS * pilot.seconds_of(
            SUFFICIENT_ROUNDS, Sampling.max_new_tokens
        )
        suggested = max(math.ceil(1.2 * needed / 60), math.floor(minutes) + 1)
        note(
            f"there is time for only {' and '.join(shortened)}; for {' and '.join(usual)}, give"
            f" --minutes {suggested} and another --out."
        )
