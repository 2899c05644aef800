"""The fingerprint of a set of logs, which identifies a run of their scores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping


def digest(value: object) -> bytes:
    """The SHA-256 of a value, written as JSON."""
    return hashlib.sha256(_as_json(value)).digest()


def log_fingerprint(
    files: Iterable[str], formats: Mapping[str, int], dialogs: Iterable[bytes]
) -> str:
    """The SHA-256 of a set of logs, in hexadecimal.

    Args:
        files: the SHA-256 of each file in hexadecimal; "" for a file that was not read.
        formats: the number of dialogs in each format.
        dialogs: the digest of each dialog.
    """
    whole = hashlib.sha256(_as_json([*files]))
    whole.update(_as_json(dict(formats)))
    for dialog in dialogs:
        whole.update(dialog)
    return whole.hexdigest()


def _as_json(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")
