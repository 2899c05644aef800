"""The fingerprint of a set of logs, which identifies a run of their scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping


def digest(value: object) -> bytes:
    """The SHA-256 of a JSON value."""
    return hashlib.sha256(_as_json(value)).digest()


def log_fingerprint(
    files: Iterable[str], formats: Mapping[str, int], dialogs: Iterable[bytes]
) -> str:
    """SHA-256, in hexadecimal.

    Args:
        files: the SHA-256 of each file in hexadecimal; "" for one that was not read.
        formats: how many dialogs are in each format.
        dialogs: the digest of each.
    """
    whole = hashlib.sha256(_as_json([*files]))
    whole.update(_as_json(dict(formats)))
    for dialog in dialogs:
        whole.update(dialog)
    return whole.hexdigest()


def _as_json(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")
