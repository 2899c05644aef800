"""Each test here runs in the environment of `make integrations`.

A file of tests begins with `pytest.importorskip("PACKAGE", reason="make integrations installs it")`
for each package that `make test` does not install, which thus skips it by name.
"""

import importlib.util
import sys
from pathlib import Path

import pytest
from test_package import integrations


@pytest.mark.skipif(
    Path(sys.prefix).name != ".venv-integrations",
    reason=f"the environment is {sys.prefix}, not that of `make integrations`",
)
def test_no_test_of_an_integration_is_skipped_for_want_of_its_package():
    missing = [name for name in sorted(integrations()) if not importlib.util.find_spec(name)]
    assert len(integrations()) >= 7
    assert not missing
