"""`holdfast lm-eval`: lm-evaluation-harness's own command, which knows Holdfast's models."""

from __future__ import annotations

import argparse
import sys

from holdfast.cli.options import check_extra

_MODEL = ("--model", "-M", "--config", "-C")
_OTHERS = ("ls", "validate", "-h", "--help")  # commands of the harness that take no model


def add_parser(commands) -> None:
    # no prefix of options is its own, so that all words are the harness's
    command = commands.add_parser(
        "lm-eval",
        help="lm-evaluation-harness's own command, with --model holdfast",
        add_help=False,
        prefix_chars="\0",
    )
    command.add_argument("words", nargs=argparse.REMAINDER)
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    check_extra("lm-eval", ["lm_eval"])
    from lm_eval.__main__ import cli_evaluate

    from holdfast.integrations.lm_eval import NAME, register

    register()
    words = list(arguments.words)
    named = any(word.partition("=")[0] in _MODEL for word in words)
    if words and words[0] not in _OTHERS and not named:
        words += ["--model", NAME]
    sys.argv[:] = ["holdfast lm-eval", *words]
    cli_evaluate()
