"""SIGTERM, which commands take for an interruption."""

import os
import signal
import sys
import time

import pytest

from holdfast.cli.shared import interrupts
from holdfast.cli.shared.exit_codes import TERMINATED
from holdfast.cli.shared.interrupts import Terminated, interrupting_on_sigterm


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)  # the handler runs before this ends


def test_sigterm_that_comes_twice_at_once_is_one():
    """`timeout` signals the command and then its group."""
    with pytest.raises(Terminated), interrupting_on_sigterm():
        try:
            terminate()
        finally:
            terminate()


def test_sigterm_that_comes_again_later_ends_the_process(monkeypatch, capfd):
    monkeypatch.setattr(interrupts, "_SAME_SIGNAL", 0.0)
    monkeypatch.setattr(interrupts.os, "_exit", sys.exit)
    with pytest.raises(Terminated), interrupting_on_sigterm():
        try:
            terminate()
        finally:
            with pytest.raises(SystemExit, match=str(TERMINATED)):
                terminate()
    assert "terminated" in capfd.readouterr().err
