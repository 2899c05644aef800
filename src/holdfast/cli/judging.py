"""What `holdfast drift` asks and tells of the judges of a suite."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.drift.judges import Agreement, Judging


def add_judging(add) -> None:
    """Adds whether a judge may score that agrees little with labelled replies."""
    add(
        "--force-judge",
        action="store_true",
        help="let judges score that agree little with the labelled replies of their rules",
    )


def judging_of(arguments: argparse.Namespace) -> Judging:
    """How judges are had; what each is worth is told before anything else is asked."""
    from holdfast.drift.judges import Judging

    return Judging(force=arguments.force_judge, tell=_tell)


def _tell(agreement: Agreement) -> None:
    from holdfast.report.judges import agreement_line

    print(f"holdfast: {agreement_line(agreement)}", file=sys.stderr)
