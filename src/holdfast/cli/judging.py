"""The judges of a suite: their option, and how well they agree with labelled replies."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.drift.judges import Agreement, Judging


def add_judging(add) -> None:
    """Adds whether a judge may score that agrees little with labelled replies."""
    add(
        "--force-judge",
        bool,
        "use judges even if they agree poorly with the labelled replies of their rules",
    )


def judging_of(arguments: argparse.Namespace) -> Judging:
    """How judges are had: each is loaded once in a command, however many runs it makes, and what it
    is worth is told once, before anything else is asked.
    """
    from holdfast.drift.judges import Judging, load_judge
    from holdfast.report.judges import agreement_line

    @functools.cache
    def tell(agreement: Agreement) -> None:
        print(f"holdfast: {agreement_line(agreement)}", file=sys.stderr)

    return Judging(functools.cache(load_judge), arguments.force_judge, tell)
