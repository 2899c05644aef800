"""Who the user model of `holdfast drift` is."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.options import check_endpoint_options, is_url, load_model, load_named
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.drift import Settings, Suite
    from holdfast.models.protocol import ChatModel


def add_user_model(add) -> None:
    """Adds another model as the user model."""
    add(
        "--user-model",
        str,
        "another model that plays the user model (default: --model plays both sides)",
        metavar="default|PATH|HUB_ID|URL",
    )
    add(
        "--user-endpoint-model",
        str,
        "with a URL as --user-model: the model's name there (default: the one it lists)",
        metavar="NAME",
    )
    add(
        "--user-api-key-env",
        str,
        "with a URL as --user-model: the variable of its key (default: that of --model)",
        metavar="VAR",
    )
    add_user_turns(add)


def add_user_turns(add) -> None:
    """Adds scripted user messages."""
    add(
        "--user-turns",
        str,
        "scripted user messages in place of a user model: a JSON list of strings per line,"
        " one dialog each; everyday is 40 dialogs that ship",
        metavar="everyday|FILE.jsonl",
    )


def load_user_turns(arguments: argparse.Namespace):
    """The scripts of `--user-turns`; None without.

    Raises:
        UsageError: the file holds none, or another option says who the user is.
    """
    from holdfast.drift.dialogs import read_user_turns

    if arguments.user_turns is None:
        return None
    for name in ("persona", "user_model", "dialogs"):
        if (value := getattr(arguments, name, None)) is not None:
            raise UsageError(
                f"--{name.replace('_', '-')} {value} and --user-turns {arguments.user_turns} both"
                " say what the user says; leave out one of them."
            )
    return read_user_turns(arguments.user_turns)


def load_both(arguments: argparse.Namespace, endpoint: ChatModel | None = None):
    """The model of `--model` and that of `--user-model`, None without one.

    Args:
        arguments: of the command.
        endpoint: the first, where it is behind a URL and connected already.

    Raises:
        HoldfastError: as `load_model` and `load_user_model`.
    """
    if endpoint is None and is_url(arguments.user_model or ""):
        check_endpoint_options(arguments)
        # an address that is wrong is told before a model is loaded
        user_model = load_user_model(arguments)
        return load_model(arguments), user_model
    return endpoint or load_model(arguments), load_user_model(arguments)


def load_user_model(arguments: argparse.Namespace):
    """The model of `--user-model`, placed and paced as that of `--model`; None without one.

    Raises:
        UsageError: an option of an endpoint without an endpoint.
    """
    of_endpoint = {
        "--user-endpoint-model": arguments.user_endpoint_model,
        "--user-api-key-env": arguments.user_api_key_env,
    }
    for option, value in of_endpoint.items():
        if value is not None and not is_url(arguments.user_model or ""):
            raise UsageError(
                f"{option} {value} is for a user model behind a URL, and --user-model is"
                f" {arguments.user_model or 'not given'}; give its address there."
            )
    if arguments.user_model is None:
        return None
    named = copy.copy(arguments)
    named.model = arguments.user_model
    named.endpoint_model = arguments.user_endpoint_model
    named.api_key_env = arguments.user_api_key_env or arguments.api_key_env
    return load_named(named)


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
            f"holdfast: --pairs all goes through {pairs:,} pairs prompt after prompt, and "
            f"--conversations {settings.conversations} is no whole number of rounds through them; "
            "--pairs balanced gives every prompt its share.",
            file=sys.stderr,
        )
    return suite, dataclasses.replace(settings, user_prompt=source)
