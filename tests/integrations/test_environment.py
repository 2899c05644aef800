"""Each file here is skipped if a package is missing, by
`pytest.importorskip(NAME, reason="make integrations installs it")`; that environment has them all.
"""

import sys
from pathlib import Path

import pytest
from optional_packages import is_installed, optional


@pytest.mark.skipif(
    Path(sys.prefix).name != ".venv-integrations",
    reason=f"the environment is {sys.prefix}, not that of `make integrations`",
)
def test_no_integration_test_is_skipped_for_a_missing_package():
    test_files = [name for name, command in optional().items() if command == "make integrations"]
    assert len(test_files) >= 7
    assert not [name for name in test_files if not is_installed(name)]
