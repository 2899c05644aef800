"""Who the user model of `holdfast drift` is."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.drift import Settings, Suite


def with_user_prompt(
    suite: Suite, settings: Settings, personas: Sequence[str] | None
) -> tuple[Suite, Settings]:
    """The suite with the personas of the command line; the settings with who the user model is."""
    from holdfast.drift.cases import personas_of
    from holdfast.drift.pairing import user_prompt_of

    if personas is not None:
        if settings.user_prompt not in ("auto", "persona"):
            raise UsageError(
                "--persona says who the user model is, and so does --user-prompt "
                f"{settings.user_prompt}; give one of the two."
            )
        if not all(text.strip() for text in personas):
            raise UsageError(
                "--persona '' is empty; write who the user model is, or --user-prompt empty for "
                "none."
            )
        suite = dataclasses.replace(suite, personas=personas_of(personas))
    source = user_prompt_of(suite, settings)
    if (settings.user_prompt, source) == ("auto", "empty"):
        print(
            f"holdfast: the suite {suite.name!r} has one system prompt, so the user model talks "
            "without any; say who it is with --persona.",
            file=sys.stderr,
        )
    pairs = len(suite.cases) * (len(suite.cases) - 1)
    if (settings.pairs, source) == ("all", "suite") and settings.conversations % pairs:
        print(
            f"holdfast: --pairs all goes through {pairs:,} pairs prompt after prompt, of which "
            f"{settings.conversations} conversations are no whole number of rounds; "
            "--pairs balanced gives every prompt its share.",
            file=sys.stderr,
        )
    return suite, dataclasses.replace(settings, user_prompt=source)
