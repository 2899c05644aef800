"""Commands print what was approved."""

import sys

import approved
import pytest

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="argparse words its help differently in each version"
)


@pytest.fixture(scope="module")
def texts():
    return approved.texts()


@pytest.mark.parametrize("name", [*approved.COMMANDS, *approved.SENTENCES])
def test_a_command_prints_what_was_approved(texts, name):
    expected = (approved.APPROVED / f"{name}.txt").read_text()
    assert texts[name] == expected, "review it, and run `make approve`"


def test_no_approved_text_has_a_traceback_or_names_a_machine(texts):
    for name, text in texts.items():
        assert "Traceback" not in text and "/tmp" not in text and "/root" not in text, name
