"""The folder of a run that is given none: what it is named after."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Container
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.drift.cases import Suite

# what a run can be extended by, what its folder is named after anyhow, and what changes no result
_UNNAMED = {
    "command",
    "run",
    "default",
    "kept",
    "model",
    "endpoint_model",
    "suite",
    "seed",
    "conversations",
    "method",
    "out",
    "report",
    "allow_code",
    "force_judge",
    "trust_remote_code",
    "api_key_env",
    "user_api_key_env",
    "concurrency",
    "timeout",
    "requests_per_minute",
    "batch_size",
    "replicas",
    "ray",
    "engine",
    "dry_run",
    "price_in",
    "price_out",
}


def folder_name(
    arguments: argparse.Namespace,
    suite: Suite,
    what: str = "drift",
    unnamed: Container[str] = (),
) -> str:
    """Named after the model, the suite, the seed, and every setting that is not the default.

    A suite of the user's own is named with what it holds: who edits a prompt and repeats the
    command gets a run of the new prompt, and keeps that of the old one.

    Args:
        arguments: of the command.
        suite: as it was loaded.
        what: the name begins with.
        unnamed: further options that make no other run.
    """
    from holdfast.drift.suites import SHIPPED

    names = [arguments.endpoint_model or arguments.model, arguments.suite, str(arguments.seed)]
    if arguments.suite not in SHIPPED:
        names.insert(2, suite.fingerprint[:8])
    parts = [_plain(name.split("/")[-1]) for name in names]
    for option, value in vars(arguments).items():
        named = option not in _UNNAMED and option not in unnamed
        if named and value != arguments.default(option):
            text = (
                ""
                if value is True
                else _plain("_".join(map(str, value)) if isinstance(value, list) else str(value))
            )
            if len(text) > 20:  # a file's name has an end; a persona may not
                text = hashlib.sha256(repr(value).encode("utf-8", "replace")).hexdigest()[:8]
            parts.append(f"{option}_{text}".rstrip("_"))
    return f"{what}-" + "-".join(parts)


def _plain(text: str) -> str:
    return "".join(ch if ch.isalnum() or ch == "." else "_" for ch in text)
