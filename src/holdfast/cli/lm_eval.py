"""`holdfast lm-eval`: lm-evaluation-harness's own command, with Holdfast's models registered."""

import argparse
import sys
from typing import Annotated

from holdfast.cli.json_output import write_document
from holdfast.cli.options import Arg, Command, Options
from holdfast.extras import check_extra
from holdfast.integrations.lm_eval import NAME, register

_MODEL = ("--model", "-M", "--config", "-C")
_OTHERS = ("ls", "validate", "-h", "--help")  # commands of the harness that take no model


class LmEvalArguments(Options):
    words: Annotated[list[str], Arg(positional=True, nargs=argparse.REMAINDER, action="store")]


def run(arguments: LmEvalArguments) -> None:
    check_extra("lm-eval", ["lm_eval"])
    from lm_eval.__main__ import cli_evaluate

    register()
    words = list(arguments.words)
    write_document({"arguments": words})
    named = any(word.partition("=")[0] in _MODEL for word in words)
    if words and words[0] not in _OTHERS and not named:
        words += ["--model", NAME]
    sys.argv[:] = ["holdfast lm-eval", *words]
    cli_evaluate()


COMMAND = Command(
    "lm-eval",
    "lm-evaluation-harness's own command, with --model holdfast",
    run,
    LmEvalArguments,
    # no word is parsed as an option, so that all are passed on to the harness
    parser={"add_help": False, "prefix_chars": "\0"},
)
