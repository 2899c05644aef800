"""`--dry-run`: runs and records the first few conversations, and estimates the rest."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from holdfast import methods
from holdfast.cli.drift_run import DriftRun
from holdfast.cli.json_output import write_document
from holdfast.cli.options import DryRunOptions
from holdfast.cli.progress import Bar, duration, note
from holdfast.common.model_names import is_url
from holdfast.common.progress import GROWTH, cost_share
from holdfast.drift.asking_baseline import FOLDER as BASELINE
from holdfast.drift.asking_baseline import UNSTEERED
from holdfast.drift.pairing import draw
from holdfast.drift.remaining import count_replies, missing_numbers
from holdfast.errors import UsageError
from holdfast.methods import Method
from holdfast.records import Conversation, read_run
from holdfast.report.wording import aligned, count_of

# the most conversations to run, and at most a quarter of those left
MOST_IN_PROCESS = 8
MOST_ON_ENDPOINT = 2
ENOUGH_SECONDS = 45.0  # after which it ends, once there is a reply of each conversation
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
        self.is_over = self.fewest <= self.done < self.most and self.seconds > ENOUGH_SECONDS


@dataclass(frozen=True)
class Measured:
    """The conversations that a dry run ran."""

    records: Sequence[Conversation]  # of those that ended
    count: int  # conversations
    replies: int  # of all of them
    done: int  # replies that were answered
    seconds: float

    @property
    def is_whole(self) -> bool:
        return len(self.records) == self.count

    @property
    def seconds_of_all(self) -> float:
        """The seconds that whole conversations take; estimated, if time was up before the end."""
        if self.is_whole:
            return self.seconds
        return self.seconds / cost_share(self.done / self.replies, GROWTH)


class EstimateDocument(BaseModel):
    """The rest of a command, as its dry run estimates it.

    Attributes:
        folder: of the run, in which the conversations that ended are kept.
        measured: conversations that ended.
        requests: at most.
        seconds: at the pace of the dry run; None if nothing was measured.
        tokens_read, tokens_written: None if unknown.
        cost: at the prices given; None without prices or tokens.
    """

    folder: Path
    measured: int
    requests: int
    seconds: float | None = None
    tokens_read: float | None = None
    tokens_written: float | None = None
    cost: float | None = None


@dataclass(frozen=True)
class WorkItem:
    """Units of work: how many at most, how many are left, and the requests they take."""

    name: str
    units: int
    left: int
    requests: int  # that all `units` take


def check_prices(arguments: DryRunOptions) -> None:
    """Refuses prices that have no effect or make no sense, before anything runs."""
    for option, price in (("--price-in", arguments.price_in), ("--price-out", arguments.price_out)):
        if price is not None and not arguments.dry_run:
            raise UsageError(
                f"{option} {price:g} is for --dry-run; add it, or leave this out.",
                option=option.removeprefix("--"),
                value=price,
            )
        if price is not None and not 0 <= price < float("inf"):
            raise UsageError(
                f"{option} takes a price from 0 upwards, not {price:g}.",
                option=option.removeprefix("--"),
                value=price,
            )


class PricedOptions(Protocol):
    """The options that an estimate depends on: those of `ModelOptions` and `DryRunOptions`."""

    model: str
    concurrency: int
    requests_per_minute: float | None
    price_in: float | None
    price_out: float | None


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
    given, count, rounds = run.cast.read(), run.settings.conversations, run.settings.rounds
    by_name = {methods.spec_of(setting): setting for setting in run.methods}
    missing = missing_numbers(run.out, list(by_name), count)
    name = next((name for name in by_name if missing[name]), "")
    left = sum(map(len, missing.values()))
    side_by_side = (
        MOST_ON_ENDPOINT if is_url(arguments.model) else min(MOST_IN_PROCESS, run.settings.batch)
    )
    numbers = missing.get(name, [])[: min(side_by_side, math.ceil(left / 4))]
    measured = _measure(run, name, by_name.get(name, ()), numbers)
    records = measured.records
    ended = [record.ended for record in records if record.ended]
    if full := [end.round for end in ended if end.why == "context"]:
        note(
            f"{len(full)} of {len(records)} conversations filled the model's context, the first in"
            f" round {min(full)} of {rounds}; give fewer --rounds, or leave out the oldest ones"
            " with --context cut."
        )
    kind = "conversations" if run.cast.dialogs is None else "dialogs"
    times = f", with {len(by_name)} methods" if len(by_name) > 1 else ""
    part = WorkItem(
        f"{kind} of {count_of(rounds, 'round')}{times}",
        len(by_name) * count,
        left,
        len(by_name) * count_replies(run.suite, run.settings, given, range(count)),
    )
    if baseline:
        probes = sum(len(draw(run.suite, run.settings, given, n).probes) for n in range(count))
        unasked = len(missing_numbers(run.out / BASELINE, [UNSTEERED], count)[UNSTEERED])
        more = (*more, WorkItem("conversations asked without a prompt", count, unasked, probes))
    parts = [part, *more]
    print(*estimate_lines(arguments, parts, measured, run.out), sep="\n")
    write_document(_estimate(arguments, parts, measured, run.out))


def _measure(
    run: DriftRun, name: str, setting: Sequence[Method], numbers: Sequence[int]
) -> Measured:
    """Runs the conversations of these numbers, as far as there is time."""
    rounds, count = run.settings.rounds, len(numbers)
    if not numbers:
        return Measured([], 0, 0, 0, 0.0)
    replies = count_replies(run.suite, run.settings, run.cast.read(), numbers)
    # a recorded dialog is computed with its first reply, so that the others say little of the pace
    may_stop = run.cast.dialogs is None and rounds > 2
    title = f"--dry-run: {count} of {count_of(run.settings.conversations, 'conversation')}"
    with Bar(replies, title=title, waves=1) as bar:
        pace = _Pace(bar, count, replies * (rounds - 1) // rounds if may_stop else 0)
        warning = threading.Timer(LATE_SECONDS, bar.note, [_late_note(count, may_stop)])
        warning.daemon = True
        warning.start()
        try:
            run.converse_some(setting, numbers, pace, lambda: pace.is_over)
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
    return Measured(ended, count, replies, pace.done, pace.seconds)


def _late_note(count: int, may_stop: bool) -> str:
    what = count_of(count, "conversation")
    until = f"{what} have too few replies so far; it stops once each has one"
    return (
        f"--dry-run takes longer than {duration(LATE_SECONDS)}, because"
        f" {until if may_stop else f'{what} have not ended; it stops with them'}."
    )


def _estimate(
    arguments: PricedOptions, parts: Sequence[WorkItem], measured: Measured, out: Path
) -> EstimateDocument:
    """The estimate for other programs."""
    ended = len(measured.records)
    if not measured.count:
        requests = sum(part.requests * part.left // part.units for part in parts)
        return EstimateDocument(folder=out.resolve(), measured=0, requests=requests)
    left = remaining([replace(parts[0], left=parts[0].left - ended), *parts[1:]], measured)
    price_in, price_out = arguments.price_in or 0.0, arguments.price_out or 0.0
    return EstimateDocument(
        folder=out.resolve(),
        measured=ended,
        requests=round(left.requests),
        seconds=left.seconds,
        tokens_read=left.read,
        tokens_written=left.written,
        cost=None if left.read is None else left.cost(price_in, price_out) or None,
    )


@dataclass(frozen=True)
class Remaining:
    """An estimate of what is left of a command, by what its dry run measured."""

    requests: float  # at most
    seconds: float  # at the pace of the dry run
    read: float | None  # tokens; None if unknown
    written: float | None

    def cost(self, price_in: float, price_out: float) -> float:
        """The price of its tokens, given those of a million."""
        return ((self.read or 0.0) * price_in + (self.written or 0.0) * price_out) / 1e6


def remaining(parts: Sequence[WorkItem], measured: Measured) -> Remaining:
    """The estimate for parts of which the first was measured, and less is left by now."""
    per_unit = [part.requests / part.units for part in parts]
    requests = sum(count * part.left for count, part in zip(per_unit, parts, strict=True))
    seconds = requests / (per_unit[0] * measured.count) * measured.seconds_of_all
    tokens = [record.tokens for record in measured.records]
    if not tokens or any(None in (counts.read, counts.written) for counts in tokens):
        return Remaining(requests, seconds, None, None)
    scale = requests / (per_unit[0] * len(tokens))
    read = scale * sum(counts.read or 0 for counts in tokens)
    written = scale * sum(counts.written or 0 for counts in tokens)
    return Remaining(requests, seconds, read, written)


def estimate_lines(
    arguments: PricedOptions,
    parts: Sequence[WorkItem],
    measured: Measured,
    out: Path,
) -> list[str]:
    """A table of the parts, and the tokens, cost and time left, going by what was just measured."""
    first, ended = parts[0], len(measured.records)
    parts = [replace(first, left=first.left - ended), *parts[1:]]
    rows: list[tuple[str, ...]] = [("part", "at most", "left", "requests")]
    for part in parts:
        rows.append((part.name, *(f"{n:,}" for n in (part.units, part.left, part.requests))))
    if not measured.count:
        return [*aligned(rows), f"The {first.name} are recorded in {out}: nothing was measured."]
    if measured.is_whole:
        basis = f"Measured on {ended} of the {first.name}, recorded in {out}."
    else:
        basis = (
            f"Measured on {measured.done} of the {count_of(measured.replies, 'reply')} of"
            f" {measured.count} of the {first.name}; {ended} that ended are recorded in {out}."
        )
    left = remaining(parts, measured)
    tokens = _token_lines(arguments, left, any_ended=ended > 0)
    return [*aligned(rows), basis, *tokens, _time_line(arguments, left, measured)]


def _token_lines(arguments: PricedOptions, left: Remaining, *, any_ended: bool) -> list[str]:
    """The tokens left and, given prices, their cost."""
    if not any_ended:
        return ["Tokens left: unknown, as no conversation has ended."]
    if left.read is None or left.written is None:
        return ["Tokens left: unknown, as not every reply came with its tokens."]
    read, written = (f"{float(f'{tokens:.2g}'):,.0f}" for tokens in (left.read, left.written))
    lines = [
        f"Tokens left: about {read} read and {written} written, in at most {left.requests:,.0f}"
        " requests."
    ]
    price_in, price_out = arguments.price_in or 0.0, arguments.price_out or 0.0
    if cost := left.cost(price_in, price_out):
        lines.append(
            f"Cost of these: about {cost:,.{2 if cost >= 1 else 4}f}, at {price_in:g} a million"
            f" read and {price_out:g} a million written, with none of them cached."
        )
    return lines


def _time_line(arguments: PricedOptions, left: Remaining, measured: Measured) -> str:
    """The time left, at the pace of the conversations that were measured."""
    seconds, ran = left.seconds, measured.count
    if not is_url(arguments.model):
        return (
            f"Time left: about {duration(seconds)}, at the pace of {ran} side by side, without"
            " loading the model."
        )
    at_once = arguments.concurrency
    if left.requests:  # one conversation takes as long as before, however many are at work
        seconds = max(seconds * min(1.0, ran / at_once), measured.seconds_of_all)
    if (limit := arguments.requests_per_minute) is None:
        return (
            f"Time left: about {duration(seconds)}, if {at_once} at a time are each as fast as"
            " those."
        )
    return (
        f"Time left: about {duration(seconds)}, if {at_once} at a time are each as fast as those;"
        f" at least {duration(60 * left.requests / limit)} at {limit:g} requests a minute."
    )
