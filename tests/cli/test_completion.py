"""`holdfast completion`: the script knows every command, and making it changes nothing."""

import subprocess
import sys

import approved
import pytest
from command_lines import command_parsers

from holdfast.cli import main
from holdfast.cli.look_up.completion import completion_script


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_knows_every_command_and_option(shell):
    script = completion_script(shell)
    for name in command_parsers():
        assert name in script
    assert "max-new-tokens" in script and "everyday" not in script.splitlines()[0]


@pytest.mark.slow
def test_the_completion_script_needs_no_torch():
    program = (
        "import sys; from holdfast.cli import main; main(['completion', 'bash']);"
        "print({'torch', 'transformers'} & {*sys.modules}, file=sys.stderr)"
    )
    environment = {"PYTHONPATH": str(approved.DATA.parents[1] / "src")}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stderr.strip() == "set()" and "_holdfast" in result.stdout


def test_completion_leaves_the_help_as_it_is(capsys):
    completion_script("bash")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "Measure:" in capsys.readouterr().out
