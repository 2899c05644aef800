"""What commands say when they refuse something."""

import re


def refusal_in(capsys) -> str:
    """What a command told on the error output, but for lines on what loads or is asked."""
    return re.sub(r"holdfast: (loading|connecting to) .* \.\.\.\n", "", capsys.readouterr().err)
