"""`--dry-run`: what a long command comes to, measured on its first piece, which is recorded.

A command says of which parts it is made, and does the first piece of the first part for real. What
it counts is exact; what is measured on that piece and carried over to the rest is told as "about".
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.options import is_url
from holdfast.cli.progress import duration
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.models.metered import Meter

HERE, THERE = 8, 2  # conversations that are measured: of a model in this process, of an endpoint


@dataclass(frozen=True)
class Part:
    """One kind of thing that a command does.

    Args:
        what: its units are called, in the plural.
        units: how many there are.
        left: how many of them are not recorded.
        requests: replies and scores that all of them ask the model for, at most; None where the
            first piece tells.
        at_most: whether the command may do with fewer units.
    """

    what: str
    units: int
    left: int
    requests: int | None
    at_most: bool = False


@dataclass(frozen=True)
class Measured:
    """The first piece.

    Args:
        units: of the first part.
        together: how many of them ran side by side, at most.
        meter: what was asked for them.
        seconds: that they took.
    """

    units: int
    together: int
    meter: Meter
    seconds: float


def add_dry_run(add) -> None:
    """Adds the plan in place of the command, and what an endpoint charges."""
    add(
        "--dry-run",
        action="store_true",
        help=(
            "run only the first few conversations (or samples), which are kept, estimate the whole"
            " command, and stop"
        ),
    )
    for way, what in (("in", "read"), ("out", "written")):
        add(
            f"--price-{way}",
            type=float,
            metavar="PRICE",
            help=f"with --dry-run: the price of a million tokens {what}, in any currency",
        )


def check_prices(arguments: argparse.Namespace) -> None:
    """Refuses prices that play no part, or cannot be, before anything runs.

    Raises:
        UsageError: names the option.
    """
    for option, price in (("--price-in", arguments.price_in), ("--price-out", arguments.price_out)):
        if price is None:
            continue
        if not arguments.dry_run:
            raise UsageError(f"{option} {price:g} is for --dry-run; add it, or leave this out.")
        if not 0 <= price < float("inf"):
            raise UsageError(f"{option} takes a price from 0 upwards, not {price:g}.")


def pieces(arguments: argparse.Namespace, units: int) -> int:
    """How many units are measured side by side."""
    return min(THERE if is_url(arguments.model) else HERE, units)


def plan(
    arguments: argparse.Namespace,
    parts: Sequence[Part],
    first: Callable[[Meter], int],
    together: int,
    out: Path,
) -> None:
    """Does the first piece, and prints what the command comes to.

    Args:
        arguments: of the command, with those of `add_dry_run`.
        parts: what it does; the first piece is of the first part.
        first: does units of that part with models on the meter, and returns how many.
        together: of these run side by side, at most.
        out: the folder that holds them.
    """
    from holdfast.models.metered import Meter

    meter, began = Meter(), time.monotonic()
    done = first(meter) if parts[0].left else 0
    measured = Measured(done, together, meter, time.monotonic() - began)
    for line in lines_of(arguments, parts, measured, out):
        print(line)


def lines_of(
    arguments: argparse.Namespace, parts: Sequence[Part], measured: Measured, out: Path
) -> list[str]:
    """The plan, line by line."""
    each = [_requests_each(part, measured) for part in parts]
    left = [part.left - (measured.units if part is parts[0] else 0) for part in parts]
    rows = [("part", "in all", "left", "requests")]
    for part, rest, asked in zip(parts, left, each, strict=True):
        about = "about " if part.requests is None else ""
        units = f"{'at most ' if part.at_most else ''}{part.units:,}"
        rows.append((part.what, units, f"{rest:,}", f"{about}{asked * part.units:,.0f}"))
    if not measured.units:
        return [*_table(rows), f"The {parts[0].what} are recorded in {out}: nothing was measured."]
    told = (
        f"Measured on {measured.units} of the {parts[0].what}, recorded in {out}:"
        f" {measured.meter.requests:,} requests in {duration(measured.seconds)}."
    )
    requests = [asked * rest for asked, rest in zip(each, left, strict=True)]
    return [*_table(rows), told, *_estimates(arguments, left[0], requests, measured)]


def _requests_each(part: Part, measured: Measured) -> float:
    """How many requests a unit of a part comes to."""
    if part.requests is None:
        return measured.meter.requests / max(measured.units, 1)
    return part.requests / part.units


def _estimates(
    arguments: argparse.Namespace, left: int, requests: Sequence[float], measured: Measured
) -> list[str]:
    """Tokens, time and money of what is left.

    Args:
        arguments: of the command.
        left: units of the first part.
        requests: of what is left of each part.
        measured: the first piece. The first part grows by its units, the others by their requests.
    """
    meter, lines = measured.meter, []
    scale = left / measured.units
    if asked := meter.requests or requests[0] / max(scale, 1e-9):
        scale += sum(requests[1:]) / asked
    if counted := meter.requests - meter.uncounted:
        factor = scale * meter.requests / counted
        read, written = meter.read * factor, meter.written * factor
        lines.append(
            f"Tokens left: about {_rounded(read)} read and {_rounded(written)} written, in at most"
            f" {sum(requests):,.0f} requests."
        )
        lines += _cost(arguments, read, written)
    else:
        lines.append("Tokens left: nobody told those of the first piece, so they are not known.")
    seconds = measured.seconds * scale * _side_by_side(arguments, measured)
    pace = _pace(arguments, measured, sum(requests))
    return [*lines, f"Time left: about {duration(seconds)}{pace}."]


def _cost(arguments: argparse.Namespace, read: float, written: float) -> list[str]:
    """What the tokens cost, where a price is given."""
    if arguments.price_in is None and arguments.price_out is None:
        return []
    price_in, price_out = arguments.price_in or 0.0, arguments.price_out or 0.0
    cost = (read * price_in + written * price_out) / 1e6
    return [
        f"Cost of these: about {cost:,.{2 if cost >= 1 else 4}f}, at {price_in:g} a million read"
        f" and {price_out:g} a million written, with none of them cached."
    ]


def _side_by_side(arguments: argparse.Namespace, measured: Measured) -> float:
    """Of the measured time, what a unit takes where as many run side by side as an endpoint is
    asked for.
    """
    if not is_url(arguments.model):
        return 1.0
    return min(1.0, measured.together / arguments.concurrency)


def _pace(arguments: argparse.Namespace, measured: Measured, requests: float) -> str:
    """What the time rests on."""
    if not is_url(arguments.model):
        return (
            f", at the pace of {measured.together} side by side; more are faster."
            " Loading the model is not in it"
        )
    told = f", if {arguments.concurrency} at a time are each as fast as those"
    if arguments.requests_per_minute:
        least = duration(60 * requests / arguments.requests_per_minute)
        told += f"; at least {least} at {arguments.requests_per_minute:g} requests a minute"
    return told


def _rounded(tokens: float) -> str:
    """Two digits of a number that is only about right."""
    digits = max(0, len(str(int(tokens))) - 2)
    return f"{round(tokens, -digits):,.0f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
