"""The error messages of commands."""

import re

from holdfast.cli import main


def refusal_in(capsys) -> str:
    """A command's error output, without the lines on loading or connecting to a model."""
    return re.sub(r"holdfast: (loading|connecting to) .* \.\.\.\n", "", capsys.readouterr().err)


def error_of(capsys, argv: list[str], code: int) -> str:
    """The error message of a command that exits with `code`."""
    try:
        assert main(argv) == code
    except SystemExit as leaving:  # argparse's own refusals
        assert leaving.code == code
    message = refusal_in(capsys)
    assert "Traceback" not in message
    return message
