"""The error messages of commands."""

import re


def refusal_in(capsys) -> str:
    """A command's error output, without the lines on loading or connecting to a model."""
    return re.sub(r"holdfast: (loading|connecting to) .* \.\.\.\n", "", capsys.readouterr().err)
