"""`--dry-run` of a drift run: records its first few conversations, and estimates the rest."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast import methods
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.estimates import Measured, PricedOptions, WorkItem, print_estimate
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.progress_bar import Bar
from holdfast.drift.asking_baseline import FOLDER as BASELINE
from holdfast.drift.asking_baseline import UNSTEERED
from holdfast.drift.pairing import draw_conversation
from holdfast.drift.remaining import count_replies, missing_numbers
from holdfast.methods import Method
from holdfast.models.model_names import is_url
from holdfast.plurals import count_of, duration
from holdfast.records import Conversation, read_run

# a dry run has at most this many conversations, and at most a quarter of those left
MAX_LOCAL_CONVERSATIONS = 8
MAX_ENDPOINT_CONVERSATIONS = 2
MIN_SECONDS = 45.0  # a dry run lasts at least this long, if its conversations do not end before
LATE_SECONDS = 60.0  # after this time, it says why it has not ended


@dataclass
class _Pace:
    """The progress of a dry run; decides when it has run for long enough.

    It may be cut short once there is a reply of each conversation, but not in the last round, when
    the conversations are about to end anyway.
    """

    bar: Bar
    min_replies: int  # after which it may be cut short
    max_replies: int  # before which it may be cut short
    began: float = field(default_factory=time.monotonic)
    done: int = 0  # replies so far
    seconds: float = 0.0  # until the latest reply
    is_over: bool = False  # whether it has run for long enough

    def __call__(self, done: int, tokens: int = 0) -> None:
        self.bar(done, tokens)
        if not done or self.is_over:
            return
        self.done += done
        self.seconds = time.monotonic() - self.began
        may_stop = self.min_replies <= self.done < self.max_replies
        self.is_over = may_stop and self.seconds > MIN_SECONDS


def estimate_run(
    arguments: PricedOptions, run: DriftRun, *more: WorkItem, baseline: bool = False
) -> None:
    """Runs the first missing conversations of one method, and prints an estimate for all.

    Args:
        arguments: the options of the command.
        run: the conversations.
        more: work that the command does besides the conversations.
        baseline: whether the command also asks the probes without a system prompt.
    """
    by_spec = {methods.spec_of(steering): steering for steering in run.methods}
    missing = missing_numbers(run.out, list(by_spec), run.numbers)
    left = sum(map(len, missing.values()))
    size = dry_run_size(arguments.model, left, run.settings.batch)
    # the first method whose conversations are not all recorded yet
    spec = next((spec for spec in by_spec if missing[spec]), "")
    measured = _measure(run, by_spec.get(spec, ()), missing.get(spec, [])[:size])
    parts = [_conversations_item(run, list(by_spec.values()), left), *more]
    if baseline:
        parts.append(_baseline_item(run))
    print_estimate(arguments, parts, measured, run.out)


def _conversations_item(
    run: DriftRun, steerings: Sequence[Sequence[Method]], left: int
) -> WorkItem:
    """The conversations under all methods, of which `left` are not recorded yet."""
    kind = "conversations" if run.cast.dialogs is None else "dialogs"
    name = f"{kind} of {count_of(run.settings.rounds, 'round')}"
    count = len(steerings)
    if count > 1:
        name = f"{name}, with {count} methods"
    replies = count_replies(run.suite, run.settings, run.numbers, run.cast)
    compiled = map(methods.compile_methods, steerings)
    retries = sum(retry.retries for steering in compiled for retry in steering.retries)
    return WorkItem(name, count * len(run.numbers), left, count * replies, retries * replies)


def _baseline_item(run: DriftRun) -> WorkItem:
    """The probes that --baseline asks without a system prompt."""
    numbers = run.numbers
    pairings = [draw_conversation(run.suite, run.settings, number, run.cast) for number in numbers]
    probes = sum(len(pairing.stability_questions) for pairing in pairings)
    unasked = missing_numbers(run.out / BASELINE, [UNSTEERED], numbers)[UNSTEERED]
    return WorkItem("conversations asked without a prompt", len(numbers), len(unasked), probes)


def dry_run_size(model: str, left: int, batch: int) -> int:
    """How many of the conversations left a dry run holds, all side by side."""
    limit = min(MAX_LOCAL_CONVERSATIONS, batch)
    if is_url(model):
        limit = MAX_ENDPOINT_CONVERSATIONS
    return min(limit, math.ceil(left / 4))


def _measure(run: DriftRun, steering: Sequence[Method], numbers: Sequence[int]) -> Measured:
    """Runs the conversations with these numbers under one method, as far as time allows."""
    rounds = run.settings.rounds
    count = len(numbers)
    if not numbers:
        return Measured([], 0, 0, 0, 0.0)
    replies = count_replies(run.suite, run.settings, numbers, run.cast)
    # most of a recorded dialog is computed with its first reply, so a few replies show no pace
    may_stop = run.cast.dialogs is None and rounds > 2
    max_replies = replies * (rounds - 1) // rounds if may_stop else 0
    title = f"--dry-run: {count} of {count_of(len(run.numbers), 'conversation')}"
    with Bar(replies, title=title, waves=1) as bar:
        pace = _Pace(bar, count, max_replies)
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
        if record.method == methods.spec_of(steering) and record.conversation in numbers
    ]
    _note_full_contexts(ended, rounds)
    tokens = [record.tokens for record in ended]
    return Measured(tokens, count, replies, pace.done, pace.seconds)


def _late_note(count: int, may_stop: bool) -> str:
    """Says why a dry run of this many conversations has not ended yet."""
    conversations = count_of(count, "conversation")
    late = f"--dry-run takes longer than {duration(LATE_SECONDS)}"
    if may_stop:
        return (
            f"{late}, because {conversations} have too few replies so far; it stops once each has"
            " one."
        )
    return f"{late}, because {conversations} have not ended; it stops with them."


def _note_full_contexts(records: Sequence[Conversation], rounds: int) -> None:
    """Says how many conversations filled the model's context before their last round, if any."""
    endings = [record.ended for record in records if record.ended]
    if full := [end.round for end in endings if end.why == "context"]:
        note(
            f"{len(full)} of {len(records)} conversations filled the model's context, the first in"
            f" round {min(full)} of {rounds}; give fewer --rounds, or leave out the oldest ones"
            " with --context cut."
        )
