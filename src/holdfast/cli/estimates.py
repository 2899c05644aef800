"""The estimate of a dry run: what is left of a command, by what was measured of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from holdfast.cli.json_output import write_document
from holdfast.cli.options import DryRunOptions
from holdfast.cli.progress import duration
from holdfast.drift.progress import GROWTH, cost_share
from holdfast.errors import UsageError
from holdfast.models.model_names import is_url
from holdfast.plurals import count_of
from holdfast.records import Tokens
from holdfast.report.wording import aligned

MIN_SHOWN_COST = 0.0001  # that is shown as a number


def check_prices(arguments: DryRunOptions) -> None:
    """Refuses prices that have no effect or make no sense, before anything runs."""
    for option, price in (("--price-in", arguments.price_in), ("--price-out", arguments.price_out)):
        if price is not None and not arguments.dry_run:
            raise UsageError(
                f"{option} {price:g} only applies with --dry-run; add --dry-run or drop {option}.",
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
    """The options that an estimate depends on: of `ModelOptions` and `DryRunOptions`."""

    model: str
    concurrency: int
    requests_per_minute: float | None
    price_in: float | None
    price_out: float | None


@dataclass(frozen=True)
class WorkItem:
    """Units of work: how many at most, how many are left, and the requests they take."""

    name: str
    units: int
    units_left: int
    requests: int  # that all `units` take


@dataclass(frozen=True)
class Measured:
    """The conversations that a dry run ran.

    Args:
        tokens: of each conversation that ended, and is recorded.
        count: how many conversations were begun.
        replies: how many replies these have in all.
        done: how many of the replies were answered.
        seconds: how long that took.
    """

    tokens: Sequence[Tokens]
    count: int
    replies: int
    done: int
    seconds: float

    @property
    def ended(self) -> int:
        return len(self.tokens)

    @property
    def is_whole(self) -> bool:
        return self.ended == self.count

    @property
    def seconds_of_all(self) -> float | None:
        """The seconds that whole conversations take; estimated, if time was up before the end, and
        None if no reply was answered.
        """
        if not self.done:
            return None
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


def print_estimate(
    arguments: PricedOptions, parts: Sequence[WorkItem], measured: Measured, out: Path
) -> None:
    """Prints the estimate of the parts of a command, of which the first was measured."""
    first, *others = parts
    parts = [replace(first, units_left=first.units_left - measured.ended), *others]
    rest = _remaining(parts, measured)
    print(*_lines(arguments, parts, measured, rest, out), sep="\n")
    price_in = arguments.price_in or 0.0
    price_out = arguments.price_out or 0.0
    write_document(
        EstimateDocument(
            folder=out.resolve(),
            measured=measured.ended,
            requests=round(rest.requests),
            seconds=rest.seconds,
            tokens_read=rest.read,
            tokens_written=rest.written,
            cost=None if rest.read is None else rest.cost(price_in, price_out) or None,
        )
    )


@dataclass(frozen=True)
class _Remaining:
    """An estimate of what is left of a command, by what its dry run measured."""

    requests: float  # at most
    seconds: float | None  # at the pace of the dry run; None if nothing was measured
    read: float | None  # tokens; None if unknown
    written: float | None

    def cost(self, price_in: float, price_out: float) -> float:
        """The price of its tokens, given those of a million."""
        return ((self.read or 0.0) * price_in + (self.written or 0.0) * price_out) / 1e6


def _remaining(parts: Sequence[WorkItem], measured: Measured) -> _Remaining:
    """The estimate for the parts; the first was measured, and has that many units less left."""
    per_unit = [part.requests / part.units for part in parts]
    requests = sum(count * part.units_left for count, part in zip(per_unit, parts, strict=True))
    if (seconds := measured.seconds_of_all) is None:
        return _Remaining(requests, None, None, None)
    seconds *= requests / (per_unit[0] * measured.count)
    tokens = measured.tokens
    if not tokens or any(None in (counts.read, counts.written) for counts in tokens):
        return _Remaining(requests, seconds, None, None)
    scale = requests / (per_unit[0] * len(tokens))
    read = scale * sum(counts.read or 0 for counts in tokens)
    written = scale * sum(counts.written or 0 for counts in tokens)
    return _Remaining(requests, seconds, read, written)


def _lines(
    arguments: PricedOptions,
    parts: Sequence[WorkItem],
    measured: Measured,
    rest: _Remaining,
    out: Path,
) -> list[str]:
    """A table of the parts, and the tokens, cost and time left, going by what was just measured."""
    rows: list[tuple[str, ...]] = [("part", "at most", "left", "requests")]
    for part in parts:
        rows.append((part.name, f"{part.units:,}", f"{part.units_left:,}", f"{part.requests:,}"))
    table = aligned(rows)
    ended = measured.ended
    if not measured.count:
        return [*table, f"The {parts[0].name} are recorded in {out}: nothing was measured."]
    if rest.seconds is None:
        replies = count_of(measured.replies, "reply")
        return [*table, f"Nothing was measured: none of the {replies} was answered."]
    if measured.is_whole:
        basis = f"Measured on {ended} of the {parts[0].name}, recorded in {out}."
    else:
        finished = "none has finished"
        if ended:
            are = "is" if ended == 1 else "are"
            finished = f"the {ended} that finished {are} recorded in {out}"
        basis = (
            f"Measured on {measured.done} of the {count_of(measured.replies, 'reply')} in"
            f" {count_of(measured.count, 'conversation')}; {finished}."
        )
    tokens = _token_lines(arguments, rest, any_ended=ended > 0)
    return [*table, basis, *tokens, _time_line(arguments, rest.requests, rest.seconds, measured)]


def _token_lines(arguments: PricedOptions, rest: _Remaining, *, any_ended: bool) -> list[str]:
    """The tokens left and, given prices, their cost."""
    if not any_ended:
        return ["Tokens left: unknown, as no conversation has ended."]
    if rest.read is None or rest.written is None:
        return ["Tokens left: unknown, as not every reply came with its tokens."]
    read = _two_digits(rest.read)
    written = _two_digits(rest.written)
    lines = [
        f"Tokens left: about {read} read and {written} written, in at most {rest.requests:,.0f}"
        " requests."
    ]
    price_in = arguments.price_in or 0.0
    price_out = arguments.price_out or 0.0
    if cost := rest.cost(price_in, price_out):
        decimals = 2 if cost >= 1 else 4
        amount = f"about {cost:,.{decimals}f}"
        if cost < MIN_SHOWN_COST:
            amount = f"less than {MIN_SHOWN_COST}"
        lines.append(
            f"Cost of these: {amount}, at {price_in:g} a million read and {price_out:g} a million"
            " written, with none of them cached."
        )
    return lines


def _two_digits(tokens: float) -> str:
    """A number of tokens, rounded to two digits."""
    return f"{float(f'{tokens:.2g}'):,.0f}"


def _time_line(
    arguments: PricedOptions, requests: float, seconds: float, measured: Measured
) -> str:
    """The time left, at the pace of the conversations that were measured."""
    ran = measured.count
    if not is_url(arguments.model):
        return (
            f"Time left: about {duration(seconds)}, at the pace of {ran} side by side, without"
            " loading the model."
        )
    at_once = arguments.concurrency
    if requests:  # one conversation takes as long as before, however many are at work
        seconds = max(seconds * min(1.0, ran / at_once), measured.seconds_of_all or 0.0)
    if (limit := arguments.requests_per_minute) is None:
        return (
            f"Time left: about {duration(seconds)}, if {at_once} conversations at a time each"
            " take as long as those measured."
        )
    return (
        f"Time left: about {duration(seconds)}, if {at_once} conversations at a time each take"
        f" as long as those measured; at least {duration(60 * requests / limit)} at {limit:g}"
        " requests a minute."
    )
