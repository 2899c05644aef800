"""What is wrong with an actor, in words of ours."""

from __future__ import annotations

import re
from typing import Any

from holdfast.errors import ModelError
from holdfast.integrations.ray.actor import Description, versions


def check_versions(there: dict[str, str], node: str) -> None:
    """Refuses a machine with other software than this one's.

    Raises:
        ModelError: names the first difference.
    """
    for name, version in versions().items():
        if there.get(name) != version:
            raise ModelError(
                f"{name} is {version} here and {there.get(name)} on {node}; install the same"
                " versions on every machine."
            )


def check_alike(first: Description, here: str, other: Description, there: str) -> None:
    """Refuses an actor whose model would give other replies.

    Args:
        first, here: what the first actor told, and where it is.
        other, there: another.

    Raises:
        ModelError: names both machines.
    """
    for name in ("fingerprint", "runtime"):
        seen, instead = getattr(first, name), getattr(other, name)
        if seen != instead:
            raise ModelError(
                f"The {name} of {first.name!r} is {seen} on {here} and {instead} on {there}; give"
                " every machine the same files and the same kind of device."
            )


def as_ours(error: Any, node: str) -> Exception:
    """What an actor raised, and not what Ray makes of it."""
    import ray

    if isinstance(error, ray.exceptions.RaySystemError):  # what was sent could not be read
        last = str(error).strip().splitlines()[-1]
        return ModelError(
            f"What is done cannot be read on {node} ({last}); put modules of your own, as"
            " measures have, where every machine's Python finds them."
        )
    cause: Exception = error.cause
    return cause


def reason_of(error: Exception) -> str:
    """Why an actor is gone, in a few words of Ray's."""
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))
    if missing := re.findall(r"ModuleNotFoundError: (No module named '[^']+')", text):
        return f"{missing[-1]} there; install the same on every machine"
    why = re.search(r"is dead because (.+?)(?:\. |\.?$)", text, re.MULTILINE)
    return (why[1] if why else " ".join(text.split()))[:200].rstrip(".")
