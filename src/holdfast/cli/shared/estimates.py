"""The estimate of a dry run: how long the rest of a command takes, and how much it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel

from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.options import DryRunOptions
from holdfast.drift.progress import GROWTH, cost_share
from holdfast.errors import UsageError
from holdfast.models.model_names import is_url
from holdfast.plurals import count_of, duration
from holdfast.records import Tokens
from holdfast.report.wording import aligned

MIN_SHOWN_COST = 0.0001  # a smaller cost is shown as "less than" this


class PricedOptions(Protocol):
    """The options that an estimate depends on, from `ModelOptions` and `DryRunOptions`."""

    model: str
    concurrency: int
    requests_per_minute: float | None
    price_in: float | None
    price_out: float | None


@dataclass(frozen=True)
class WorkItem:
    """A part of a command's work, in units such as conversations.

    Args:
        name: of the units, in the plural.
        units: how many there are, at most.
        replies: of all units, at most.
        redraws: how many further requests draw a reply again, at most.
    """

    name: str
    units: int
    units_left: int
    replies: int
    redraws: int = 0

    @property
    def requests(self) -> int:
        """How many requests all units take, at most."""
        return self.replies + self.redraws

    @property
    def replies_per_unit(self) -> float:
        return self.replies / self.units

    @property
    def replies_left(self) -> float:
        return self.replies_per_unit * self.units_left

    @property
    def redraws_left(self) -> float:
        return self.redraws / self.units * self.units_left


@dataclass(frozen=True)
class Measured:
    """The conversations that a dry run ran.

    Args:
        tokens: the tokens of each conversation that ended, and so was recorded.
        count: how many conversations were begun.
        replies: how many replies these conversations have in all.
        done: how many of those replies were given.
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
        """How long the conversations take as a whole.

        It is an estimate if some of them have not ended, and None if no reply was given.
        """
        if not self.done:
            return None
        if self.is_whole:
            return self.seconds
        return self.seconds / cost_share(self.done / self.replies, GROWTH)


class EstimateDocument(BaseModel):
    """The rest of a command, as its dry run estimates it.

    Attributes:
        folder: the folder of the run, which keeps the conversations that ended.
        measured: how many conversations ended.
        requests: how many requests are left, at most.
        seconds: the time left, at the pace of the dry run; None if nothing was measured.
        tokens_read, tokens_written: the tokens left; None if unknown.
        cost: the cost of these tokens; None without prices, or if the tokens are unknown.
    """

    folder: Path
    measured: int
    requests: int
    seconds: float | None = None
    tokens_read: float | None = None
    tokens_written: float | None = None
    cost: float | None = None


@dataclass(frozen=True)
class _Remaining:
    """The remaining work of a command, as far as its dry run can tell."""

    replies: float  # at most
    requests: float  # at most; more than the replies if some are drawn again
    seconds: float | None  # at the pace of the dry run; None if nothing was measured
    read: float | None  # tokens; None if unknown
    written: float | None  # likewise

    def cost(self, price_in: float, price_out: float) -> float:
        """The cost of the tokens, given the prices of a million read and a million written."""
        return ((self.read or 0.0) * price_in + (self.written or 0.0) * price_out) / 1e6


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


def print_estimate(
    arguments: PricedOptions, parts: Sequence[WorkItem], measured: Measured, out: Path
) -> None:
    """Prints an estimate of a command's parts, of which the dry run measured the first."""
    first, *others = parts
    parts = [replace(first, units_left=first.units_left - measured.ended), *others]
    rest = _estimate(parts, measured)
    print(*_estimate_lines(arguments, parts, measured, rest, out), sep="\n")
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


def _estimate(parts: Sequence[WorkItem], measured: Measured) -> _Remaining:
    """Estimates what is left of the parts, of which the first was measured."""
    replies = sum(part.replies_left for part in parts)
    requests = replies + sum(part.redraws_left for part in parts)
    if (seconds := measured.seconds_of_all) is None:
        return _Remaining(replies, requests, None, None, None)
    replies_per_unit = parts[0].replies_per_unit
    seconds *= replies / (replies_per_unit * measured.count)
    tokens = measured.tokens
    if not tokens or any(None in (counts.read, counts.written) for counts in tokens):
        return _Remaining(replies, requests, seconds, None, None)
    scale = replies / (replies_per_unit * len(tokens))
    read = scale * sum(counts.read or 0 for counts in tokens)
    written = scale * sum(counts.written or 0 for counts in tokens)
    return _Remaining(replies, requests, seconds, read, written)


def _estimate_lines(
    arguments: PricedOptions,
    parts: Sequence[WorkItem],
    measured: Measured,
    rest: _Remaining,
    out: Path,
) -> list[str]:
    """A table of the parts, and sentences on the tokens, the cost and the time left."""
    rows: list[tuple[str, ...]] = [("part", "at most", "left", "requests")]
    for part in parts:
        rows.append((part.name, f"{part.units:,}", f"{part.units_left:,}", f"{part.requests:,}"))
    table = aligned(rows)
    ended = measured.ended
    if not measured.count:
        why = f"all of the first part is already recorded in {out}"
        return [*table, f"Nothing was measured, because {why}."]
    if rest.seconds is None:
        replies = count_of(measured.replies, "reply")
        return [*table, f"Nothing was measured: none of the {replies} was answered."]
    basis = _basis_line(parts[0].name, measured, out)
    tokens = _token_lines(arguments, rest, any_ended=ended > 0)
    return [*table, basis, *tokens, _time_line(arguments, rest.replies, rest.seconds, measured)]


def _basis_line(units: str, measured: Measured, out: Path) -> str:
    """Says what the estimate is based on, and what of it is recorded."""
    ended = measured.ended
    if measured.is_whole:
        return f"Measured on {ended} of the {units}, recorded in {out}."
    if not ended:
        recorded = "none has finished"
    elif ended == 1:
        recorded = f"the 1 that finished is recorded in {out}"
    else:
        recorded = f"the {ended} that finished are recorded in {out}"
    return (
        f"Measured on {measured.done} of the {count_of(measured.replies, 'reply')} in"
        f" {count_of(measured.count, 'conversation')}; {recorded}."
    )


def _token_lines(arguments: PricedOptions, rest: _Remaining, *, any_ended: bool) -> list[str]:
    """The tokens left and, given prices, their cost."""
    if not any_ended:
        return ["Tokens left: unknown, as no conversation has ended."]
    if rest.read is None or rest.written is None:
        return ["Tokens left: unknown, as some replies came without a count of their tokens."]
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
            " written, if none of them is cached."
        )
    return lines


def _two_digits(tokens: float) -> str:
    """A number of tokens, rounded to two significant digits."""
    return f"{float(f'{tokens:.2g}'):,.0f}"


def _time_line(arguments: PricedOptions, replies: float, seconds: float, measured: Measured) -> str:
    """The time left, at the pace of the conversations that were measured.

    Args:
        replies: how many are left.
        seconds: how long they take if as many conversations run side by side as were measured.
    """
    if not is_url(arguments.model):
        return (
            f"Time left: about {duration(seconds)}, at the pace of {measured.count} side by side,"
            " without loading the model."
        )
    at_once = arguments.concurrency
    if replies:  # however many run at once, none takes less time than those measured
        seconds = max(seconds * min(1.0, measured.count / at_once), measured.seconds_of_all or 0.0)
    if (limit := arguments.requests_per_minute) is None:
        return (
            f"Time left: about {duration(seconds)}, if {at_once} conversations at a time each"
            " take as long as those measured."
        )
    return (
        f"Time left: about {duration(seconds)}, if {at_once} conversations at a time each take"
        f" as long as those measured; at least {duration(60 * replies / limit)} at {limit:g}"
        " requests a minute."
    )
