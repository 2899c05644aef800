"""`--dry-run`: runs and records the first few conversations, and says what the rest will take."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.loading import is_url
from holdfast.cli.output import command_line
from holdfast.cli.progress import Bar, duration
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.drift import Cast, Settings, Suite
    from holdfast.methods import Method
    from holdfast.models.protocol import ChatModel

LOCAL, REMOTE = 8, 2  # conversations that are run: of a model in this process, of an endpoint


@dataclass(frozen=True)
class WorkItem:
    """One kind of work that a command does.

    Args:
        name: of its units, in the plural.
        units: how many there are.
        left: how many of them are not recorded.
        requests: the most replies and scores that all units ask for; None where nobody knows.
        at_most: whether the command may do with fewer units.
    """

    name: str
    units: int
    left: int
    requests: int | None
    at_most: bool = False


@dataclass(frozen=True)
class DriftRun:
    """The conversations of a command: arguments of `drift.run`.

    Args:
        at_most: whether the command may stop before it has held all of them.
    """

    model: ChatModel
    suite: Suite
    out: Path
    settings: Settings
    methods: Sequence[Sequence[Method]]
    cast: Cast
    at_most: bool = False

    def baseline(self) -> WorkItem:
        """The requests of `--baseline`."""
        from holdfast.drift.pairing import draw

        given, count = self.cast.read(), self.settings.conversations
        pairings = (draw(self.suite, self.settings, given, n) for n in range(count))
        requests = sum(len(pairing.probes) for pairing in pairings)
        return WorkItem("conversations asked without a prompt", count, count, requests)

    def ask_baseline(self) -> None:
        """Asks the probes of `--baseline`, with a bar."""
        from holdfast import drift

        count = self.settings.conversations
        title = f"baseline: {count:,} probes without the system prompt"
        with Bar(count, "probe", title) as bar:
            running = drift.Running(progress=bar, command=command_line())
            drift.ask_baseline(
                self.model, self.suite, self.out, self.settings, cast=self.cast, running=running
            )


def check_prices(arguments: argparse.Namespace) -> None:
    """Refuses prices that have no effect or make no sense, before anything runs.

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


def estimate_conversations(
    arguments: argparse.Namespace, run: DriftRun, more: Sequence[WorkItem] = ()
) -> None:
    """Holds the first missing conversations of one method, and prints what the command will take.

    Args:
        arguments: of the command.
        run: its conversations.
        more: what else the command does.
    """
    from holdfast import drift, methods
    from holdfast.drift.work import count_replies, missing_numbers
    from holdfast.report.wording import count_of

    settings, given = run.settings, run.cast.read()
    count, rounds = settings.conversations, settings.rounds
    by_name = {methods.spell(setting): setting for setting in run.methods}
    missing = missing_numbers(run.out, list(by_name), count)
    name = next((name for name in by_name if missing[name]), "")
    numbers = missing.get(name, [])[: REMOTE if is_url(arguments.model) else LOCAL]
    records, began = [], time.monotonic()
    if numbers:
        title = f"--dry-run: {len(numbers)} of {count_of(count, 'conversation')}"
        with Bar(len(numbers) * rounds, title=title) as bar:
            records = drift.run(
                run.model,
                run.suite,
                run.out,
                replace(settings, conversations=max(numbers) + 1),  # what the folder will hold
                [by_name[name]],
                cast=run.cast,
                running=drift.Running(progress=bar, command=command_line()),
                numbers=[numbers],
            ).records
    seconds = time.monotonic() - began
    records = [r for r in records if r["method"] == name and r["conversation"] in numbers]
    _warn_of_context(records, rounds)
    kind = "conversations" if run.cast.dialogs is None else "dialogs"
    times = f", with {len(by_name)} methods" if len(by_name) > 1 else ""
    part = WorkItem(
        f"{kind} of {count_of(rounds, 'round')}{times}",
        len(by_name) * count,
        sum(map(len, missing.values())),
        len(by_name) * count_replies(run.suite, settings, given, range(count)),
        run.at_most,
    )
    print("\n".join(estimate_lines(arguments, [part, *more], records, seconds, run.out)))


def _warn_of_context(records: Sequence[dict[str, Any]], rounds: int) -> None:
    """Says on the error output where conversations of so many rounds do not fit."""
    ended = [record.get("ended") or {} for record in records]
    if full := [end["round"] for end in ended if end.get("why") == "context"]:
        print(
            f"holdfast: {len(full)} of {len(records)} conversations filled the model's context, the"
            f" first in round {min(full)} of {rounds}; give fewer --rounds, or leave out the oldest"
            " ones with --context cut.",
            file=sys.stderr,
        )


def estimate_lines(
    arguments: argparse.Namespace,
    parts: Sequence[WorkItem],
    records: Sequence[dict[str, Any]],
    seconds: float,
    out: Path,
) -> list[str]:
    """A table of the parts, and the tokens, money and time that are left.

    Args:
        arguments: of the command, with `DryRunOptions`.
        parts: what the command does.
        records: of the units of the first part that were just run.
        seconds: that they took.
        out: the folder that holds them.
    """
    from holdfast.report.wording import aligned

    first, done = parts[0], len(records)
    left = [part.left - done * (part is first) for part in parts]
    rows = [("part", "in all", "left", "requests")]
    for part, rest in zip(parts, left, strict=True):
        requests_text = "unknown" if part.requests is None else f"{part.requests:,}"
        units = f"{'at most ' * part.at_most}{part.units:,}"
        rows.append((part.name, units, f"{rest:,}", requests_text))
    if not records:
        line = f"The {first.name} are recorded in {out}: nothing was measured."
        return [*aligned(rows), line]
    per_unit = [(part.requests or part.units) / part.units for part in parts]
    requests = sum(count * rest for count, rest in zip(per_unit, left, strict=True))
    scale = requests / (per_unit[0] * done)
    most = "" if first.requests is None else f", in at most {requests:,.0f} requests"
    lines = [
        *aligned(rows),
        f"Measured on {done} of the {first.name}, recorded in {out}.",
        *_token_lines(arguments, [record.get("tokens", {}) for record in records], scale, most),
    ]
    if is_url(arguments.model):
        scale *= min(1.0, done / arguments.concurrency)
        note = f", if {arguments.concurrency} at a time are each as fast as those"
        if pace := arguments.requests_per_minute:
            note += f"; at least {duration(60 * requests / pace)} at {pace:g} requests a minute"
    else:
        note = f", at the pace of {done} side by side, without loading the model"
    return [*lines, f"Time left: about {duration(scale * seconds)}{note}."]


def _token_lines(
    arguments: argparse.Namespace, tokens: Sequence[dict[str, int]], scale: float, most: str
) -> list[str]:
    """The tokens that are left, and what they cost."""
    if not all("read" in counts for counts in tokens):
        return ["Tokens left: unknown, as not every reply came with its tokens."]
    read, written = (scale * sum(counts[way] for counts in tokens) for way in ("read", "written"))
    about_read, about_written = (f"{float(f'{number:.2g}'):,.0f}" for number in (read, written))
    lines = [f"Tokens left: about {about_read} read and {about_written} written{most}."]
    if (arguments.price_in, arguments.price_out) != (None, None):
        price_in, price_out = arguments.price_in or 0.0, arguments.price_out or 0.0
        cost = (read * price_in + written * price_out) / 1e6
        lines.append(
            f"Cost of these: about {cost:,.{2 if cost >= 1 else 4}f}, at {price_in:g} a million"
            f" read and {price_out:g} a million written, with none of them cached."
        )
    return lines
