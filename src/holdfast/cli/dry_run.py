"""`--dry-run` of a drift run: records its first few conversations, and estimates the rest."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast import methods
from holdfast.cli.drift_run import DriftRun
from holdfast.cli.estimates import Measured, PricedOptions, WorkItem, print_estimate
from holdfast.cli.progress import Bar, duration, note
from holdfast.drift.asking_baseline import FOLDER as BASELINE
from holdfast.drift.asking_baseline import UNSTEERED
from holdfast.drift.pairing import draw
from holdfast.drift.remaining import count_replies, missing_numbers
from holdfast.methods import Method
from holdfast.models.model_names import is_url
from holdfast.plurals import count_of
from holdfast.records import Conversation, read_run

# the most conversations to run, and at most a quarter of those left
MAX_LOCAL_CONVERSATIONS = 8
MAX_ENDPOINT_CONVERSATIONS = 2
MIN_SECONDS = 45.0  # after which it ends, once there is a reply of each conversation
LATE_SECONDS = 60.0  # after which it says why it has not


@dataclass
class _Pace:
    """The progress of a dry run, which ends in time."""

    bar: Bar
    fewest: int  # replies before it may end: one of each conversation
    most: int  # replies up to which it may end: in the last round, conversations are about to end
    began: float = field(default_factory=time.monotonic)
    done: int = 0  # replies
    seconds: float = 0.0  # until the last of them
    is_over: bool = False  # whether it has gone on for long enough

    def __call__(self, done: int, tokens: int = 0) -> None:
        self.bar(done, tokens)
        if not done or self.is_over:
            return
        self.done, self.seconds = self.done + done, time.monotonic() - self.began
        self.is_over = self.fewest <= self.done < self.most and self.seconds > MIN_SECONDS


def estimate_run(
    arguments: PricedOptions, run: DriftRun, *more: WorkItem, baseline: bool = False
) -> None:
    """Runs the first missing conversations of one method, and prints an estimate for all.

    Args:
        arguments: the options of the command.
        run: the conversations.
        more: work of the command beside the conversations.
        baseline: whether the probes are asked without a system prompt too.
    """
    users = run.cast.read()
    rounds = run.settings.rounds
    all_numbers = run.numbers
    by_name = {methods.spec_of(steering): steering for steering in run.methods}
    missing = missing_numbers(run.out, list(by_name), all_numbers)
    name = next((name for name in by_name if missing[name]), "")
    left = sum(map(len, missing.values()))
    numbers = missing.get(name, [])[: how_many(arguments.model, left, run.settings.batch)]
    records, measured = _measure(run, name, by_name.get(name, ()), numbers)
    endings = [record.ended for record in records if record.ended]
    if full := [end.round for end in endings if end.why == "context"]:
        note(
            f"{len(full)} of {len(records)} conversations filled the model's context, the first in"
            f" round {min(full)} of {rounds}; give fewer --rounds, or leave out the oldest ones"
            " with --context cut."
        )
    kind = "conversations" if run.cast.dialogs is None else "dialogs"
    times = f", with {len(by_name)} methods" if len(by_name) > 1 else ""
    part = WorkItem(
        f"{kind} of {count_of(rounds, 'round')}{times}",
        len(by_name) * len(all_numbers),
        left,
        len(by_name) * count_replies(run.suite, run.settings, users, all_numbers),
    )
    if baseline:
        pairings = [draw(run.suite, run.settings, users, number) for number in all_numbers]
        probes = sum(len(pairing.probes) for pairing in pairings)
        unasked = len(missing_numbers(run.out / BASELINE, [UNSTEERED], all_numbers)[UNSTEERED])
        without_prompt = "conversations asked without a prompt"
        more = (*more, WorkItem(without_prompt, len(all_numbers), unasked, probes))
    parts = [part, *more]
    print_estimate(arguments, parts, measured, run.out)


def how_many(model: str, left: int, batch: int) -> int:
    """How many conversations a dry run has, of those left."""
    side_by_side = (
        MAX_ENDPOINT_CONVERSATIONS if is_url(model) else min(MAX_LOCAL_CONVERSATIONS, batch)
    )
    return min(side_by_side, math.ceil(left / 4))


def _measure(
    run: DriftRun, name: str, steering: Sequence[Method], numbers: Sequence[int]
) -> tuple[list[Conversation], Measured]:
    """Runs the conversations of these numbers, as far as there is time."""
    rounds = run.settings.rounds
    count = len(numbers)
    if not numbers:
        return [], Measured([], 0, 0, 0, 0.0)
    replies = count_replies(run.suite, run.settings, run.cast.read(), numbers)
    # a recorded dialog is computed with its first reply, so that the others say little of the pace
    may_stop = run.cast.dialogs is None and rounds > 2
    title = f"--dry-run: {count} of {count_of(len(run.numbers), 'conversation')}"
    with Bar(replies, title=title, waves=1) as bar:
        pace = _Pace(bar, count, replies * (rounds - 1) // rounds if may_stop else 0)
        warning = threading.Timer(LATE_SECONDS, bar.note, [_late_note(count, may_stop)])
        warning.daemon = True
        warning.start()
        try:
            run.converse_some(steering, numbers, pace, lambda number: pace.is_over)
        finally:
            warning.cancel()
    if pace.is_over:
        note(
            f"--dry-run stops after {duration(pace.seconds)}, with {pace.done} of"
            f" {count_of(replies, 'reply')} done; conversations that have not ended are not kept."
        )
    ended = [
        record
        for record in read_run(run.out).conversations
        if record.method == name and record.conversation in numbers
    ]
    tokens = [record.tokens for record in ended]
    return ended, Measured(tokens, count, replies, pace.done, pace.seconds)


def _late_note(count: int, may_stop: bool) -> str:
    """Why a dry run does not stop after this many conversations."""
    conversations = count_of(count, "conversation")
    why = f"{conversations} have not ended; it stops with them"
    if may_stop:
        why = f"{conversations} have too few replies so far; it stops once each has one"
    return f"--dry-run takes longer than {duration(LATE_SECONDS)}, because {why}."
