"""The plan of `holdfast tasks`: how many samples, and the first batch of them for real."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.dry_run import Part, plan
from holdfast.cli.options import command_line

if TYPE_CHECKING:
    from holdfast.methods import Method
    from holdfast.models.metered import Meter
    from holdfast.models.protocol import ChatModel
    from holdfast.tasks import Data, Settings


def plan_samples(
    arguments: argparse.Namespace,
    model: ChatModel,
    data: Data,
    settings: Settings,
    methods: Sequence[Sequence[Method]],
    total: int,
) -> None:
    """Asks the first batch of samples that is missing, and says what the whole comes to.

    Args:
        arguments: of the command.
        model, data, settings, methods: as of `tasks.run`.
        total: samples of all tasks, in every way that they are asked.
    """
    from holdfast import tasks
    from holdfast.records import MANIFEST, read_run

    out = arguments.out
    recorded = len(read_run(out).records) if (out / MANIFEST).is_file() else 0

    def first(meter: Meter) -> int:
        asked = meter.on(model)
        run = tasks.run(asked, data, out, settings, methods, command=command_line(), first=1)
        return len(run.records) - recorded

    # a sample may be asked and scored in several requests, which the first batch tells
    part = Part("samples", total, total - recorded, None)
    plan(arguments, [part], first, min(settings.batch, settings.samples), out)
