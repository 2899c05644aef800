"""`--dry-run`: runs and records the first few conversations, and estimates the rest."""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast import methods
from holdfast.cli.output import DriftRun
from holdfast.cli.progress import Bar, duration, note
from holdfast.common.model_names import is_url
from holdfast.drift.pairing import draw
from holdfast.drift.work import count_replies, missing_numbers
from holdfast.errors import UsageError
from holdfast.report.wording import aligned, count_of

# the most conversations to run, for a model in this process and for an endpoint, and at most half
# of those left
LOCAL, REMOTE = 8, 2


@dataclass(frozen=True)
class WorkItem:
    """Units of work: how many at most, how many are left, and the requests they take."""

    name: str
    units: int
    left: int
    requests: int


def check_prices(arguments: argparse.Namespace) -> None:
    """Refuses prices that have no effect or make no sense, before anything runs."""
    for option, price in (("--price-in", arguments.price_in), ("--price-out", arguments.price_out)):
        if price is not None and not arguments.dry_run:
            raise UsageError(f"{option} {price:g} is for --dry-run; add it, or leave this out.")
        if price is not None and not 0 <= price < float("inf"):
            raise UsageError(f"{option} takes a price from 0 upwards, not {price:g}.")


def estimate_run(arguments: argparse.Namespace, run: DriftRun, *more: WorkItem) -> None:
    """Runs the first missing conversations of one method, and prints an estimate for all."""
    given, count, rounds = run.cast.read(), run.settings.conversations, run.settings.rounds
    by_name = {methods.spell(setting): setting for setting in run.methods}
    missing = missing_numbers(run.out, list(by_name), count)
    name = next((name for name in by_name if missing[name]), "")
    left = sum(map(len, missing.values()))
    most = min(REMOTE if is_url(arguments.model) else LOCAL, (left + 1) // 2)
    numbers = missing.get(name, [])[:most]
    records, began = [], time.monotonic()
    if numbers:
        piece = replace(run.settings, conversations=numbers[-1] + 1)
        title = f"--dry-run: {len(numbers)} of {count_of(count, 'conversation')}"
        with Bar(len(numbers) * rounds, title=title) as bar:
            data = replace(run, settings=piece, methods=[by_name[name]]).converse(bar)
        records = [r for r in data.records if r["method"] == name and r["conversation"] in numbers]
    seconds = time.monotonic() - began
    ended = [record.get("ended") or {} for record in records]
    if full := [end["round"] for end in ended if end.get("why") == "context"]:
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
    if getattr(arguments, "baseline", False):
        probes = sum(len(draw(run.suite, run.settings, given, n).probes) for n in range(count))
        more = (*more, WorkItem("conversations asked without a prompt", count, count, probes))
    print(*estimate_lines(arguments, [part, *more], records, seconds, run.out), sep="\n")


def estimate_lines(
    arguments: argparse.Namespace,
    parts: Sequence[WorkItem],
    records: Sequence[dict[str, Any]],
    seconds: float,
    out: Path,
) -> list[str]:
    """A table of the parts, and the tokens, cost and time left, going by the records just made."""
    first, done = parts[0], len(records)
    parts = [replace(first, left=first.left - done), *parts[1:]]
    rows: list[tuple[str, ...]] = [("part", "at most", "left", "requests")]
    for part in parts:
        rows.append((part.name, *(f"{n:,}" for n in (part.units, part.left, part.requests))))
    if not records:
        return [*aligned(rows), f"The {first.name} are recorded in {out}: nothing was measured."]
    lines = [*aligned(rows), f"Measured on {done} of the {first.name}, recorded in {out}."]
    per_unit = [part.requests / part.units for part in parts]
    requests = sum(count * part.left for count, part in zip(per_unit, parts, strict=True))
    scale = requests / (per_unit[0] * done)
    tokens = [record.get("tokens", {}) for record in records]
    if all("read" in counts for counts in tokens):
        read, written = (scale * sum(row[way] for row in tokens) for way in ("read", "written"))
        texts = [f"{float(f'{number:.2g}'):,.0f}" for number in (read, written)]
        lines.append(
            f"Tokens left: about {texts[0]} read and {texts[1]} written, in at most"
            f" {requests:,.0f} requests."
        )
        price_in, price_out = arguments.price_in or 0.0, arguments.price_out or 0.0
        if cost := (read * price_in + written * price_out) / 1e6:
            lines.append(
                f"Cost of these: about {cost:,.{2 if cost >= 1 else 4}f}, at {price_in:g} a million"
                f" read and {price_out:g} a million written, with none of them cached."
            )
    else:
        lines.append("Tokens left: unknown, as not every reply came with its tokens.")
    pace = f", at the pace of {done} side by side, without loading the model"
    if is_url(arguments.model):
        scale *= min(1.0, done / arguments.concurrency)
        pace = f", if {arguments.concurrency} at a time are each as fast as those"
        if limit := arguments.requests_per_minute:
            pace += f"; at least {duration(60 * requests / limit)} at {limit:g} requests a minute"
    return [*lines, f"Time left: about {duration(scale * seconds)}{pace}."]
