"""Rules against a command that permit it behind a wrapper: "Use `uv run pytest`, not `pytest`"."""

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace

from holdfast.drafting.commands import any_of
from holdfast.drafting.drafts import Draft
from holdfast.measures.command_wrappers import unwrap

_CODE = re.compile(r"`([^`]+)`")


def permit_wrapped(drafts: Iterable[Draft], text: str) -> list[Draft]:
    """Returns the rules of a statement, in which a forbidden command is permitted behind each
    wrapper that the statement puts in front of it.

    Measures see through wrappers, so `pytest` alone would also forbid `uv run pytest`.
    """
    return [_permit(draft, text) if _is_prohibition(draft) else draft for draft in drafts]


def _is_prohibition(draft: Draft) -> bool:
    return draft.polarity == "prohibition" and draft.measure.get("name") == "command_not_run"


def _permit(draft: Draft, text: str) -> Draft:
    pattern = str(draft.measure["command"])
    prefixes = [_prefix_of(code, pattern) for code in _CODE.findall(text)]
    if not (named := [re.escape(prefix).replace("\\ ", " ") for prefix in prefixes if prefix]):
        return draft
    command = rf"(?!{any_of(named)} ){pattern}"
    return replace(draft, measure={**draft.measure, "command": command})


def _prefix_of(code: str, pattern: str) -> str:
    """Returns the wrappers in front of the command that a pattern matches; "" without any."""
    try:
        words = tuple(shlex.split(code))
    except ValueError:
        return ""
    command = words
    while command and not re.match(pattern, " ".join(command)):
        inner = unwrap(command)
        command = inner[0] if inner else ()
    return " ".join(words[: len(words) - len(command)]) if command else ""
