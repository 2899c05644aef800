"""`holdfast lm-eval`: the command of lm-evaluation-harness, with Holdfast's models registered."""

import argparse
import sys
from typing import Annotated

from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.json_output import write_document
from holdfast.extras import check_extra
from holdfast.integrations.lm_eval import NAME, register

_MODEL_OPTIONS = ("--model", "-M", "--config", "-C")  # options that choose a model
_WITHOUT_MODEL = ("ls", "validate", "-h", "--help")  # commands of the harness that take no model


class LmEvalArguments(Options):
    words: Annotated[list[str], Arg(positional=True, nargs=argparse.REMAINDER, action="store")]


def run(arguments: LmEvalArguments) -> None:
    check_extra("lm-eval", "lm-eval", ["lm_eval"])
    from lm_eval.__main__ import cli_evaluate

    register()
    words = list(arguments.words)
    write_document({"arguments": words})
    has_model = any(word.partition("=")[0] in _MODEL_OPTIONS for word in words)
    if words and words[0] not in _WITHOUT_MODEL and not has_model:
        words += ["--model", NAME]
    sys.argv[:] = ["holdfast lm-eval", *words]
    cli_evaluate()


COMMAND = Command(
    "lm-eval",
    run,
    LmEvalArguments,
    # no word begins with a NUL, so none is parsed as an option: all are passed on to the harness
    parser={"add_help": False, "prefix_chars": "\0"},
)
