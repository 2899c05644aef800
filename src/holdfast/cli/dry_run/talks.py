"""The plan of commands that hold conversations: how many, and the first few of them for real."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.dry_run import Part, pieces, plan
from holdfast.cli.options import command_line
from holdfast.cli.progress import Bar

if TYPE_CHECKING:
    from holdfast.drift import Cast, Settings, Suite
    from holdfast.methods import Method
    from holdfast.models.metered import Meter
    from holdfast.models.protocol import ChatModel


@dataclass(frozen=True)
class Talks:
    """Conversations that a command holds, by the arguments of `drift.run`.

    Args:
        cast: who takes part beside the agent; None: nobody.
        at_most: whether the command may stop before it has held all.
        measured: with how many of the methods the first ones are held.
    """

    model: ChatModel
    suite: Suite
    out: Path
    settings: Settings
    methods: Sequence[Sequence[Method]]
    cast: Cast | None = None
    at_most: bool = False
    measured: int | None = None


def plan_talks(
    arguments: argparse.Namespace,
    talks: Talks,
    more: Sequence[Part] = (),
) -> None:
    """Holds the first conversations that are missing, and prints what the whole comes to.

    Args:
        arguments: of the command.
        talks: its conversations.
        more: what else the command does, behind the conversations.
    """
    from holdfast import drift, methods
    from holdfast.drift.counting import count_replies, missing_numbers
    from holdfast.report.wording import count_of

    settings, cast = talks.settings, talks.cast or drift.Cast()
    count, given = settings.conversations, cast.read()
    names = [methods.spell(method) for method in talks.methods]
    before = missing_numbers(talks.out, names, count)
    chosen = next(filter(None, before.values()), [])[: pieces(arguments, count)]

    def first(meter: Meter) -> int:
        other = None if cast.user_model is None else meter.on(cast.user_model)
        methods = talks.methods[: talks.measured]
        title = f"--dry-run: {len(chosen)} of {count_of(count, 'conversation')}"
        total = len(methods) * len(chosen) * settings.rounds
        with Bar(total, title=title) as bar:
            run = drift.run(
                meter.on(talks.model),
                talks.suite,
                talks.out,
                replace(settings, conversations=max(chosen) + 1),  # what the folder is to hold
                methods,
                cast=replace(cast, user_model=other),
                running=drift.Running(progress=bar, command=command_line()),
                numbers=[chosen],
            )
        _warn_of_context(run.records, settings.rounds)
        after = missing_numbers(talks.out, names, count)
        return sum(map(len, before.values())) - sum(map(len, after.values()))

    replies = count_replies(talks.suite, settings, given, range(count))
    rounds = count_of(settings.rounds, "round")
    what = f"{'conversations' if cast.dialogs is None else 'dialogs'} of {rounds}"
    part = Part(
        what if len(names) == 1 else f"{what}, with {len(names)} methods",
        len(names) * count,
        sum(map(len, before.values())),
        len(names) * replies,
        talks.at_most,
    )
    plan(arguments, [part, *more], first, len(chosen), talks.out)


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


def unprompted(talks: Talks) -> Part:
    """What `--baseline` asks."""
    from holdfast import drift
    from holdfast.drift.pairing import draw

    given = (talks.cast or drift.Cast()).read()
    count = talks.settings.conversations
    pairings = (draw(talks.suite, talks.settings, given, n) for n in range(count))
    asked = sum(len(pairing.probes) for pairing in pairings)
    return Part("conversations asked without a prompt", count, count, asked)
