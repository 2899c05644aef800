"""What commands say when they refuse something."""

from __future__ import annotations

import re


def refusal_in(capsys) -> str:
    """What a command told on the error output, but for the line that says a model loads."""
    return re.sub(r"holdfast: loading .* \.\.\.\n", "", capsys.readouterr().err)
