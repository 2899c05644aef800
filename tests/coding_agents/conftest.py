"""The suite of the hooks, and a session under it."""

import pytest
from hook_sessions import RULES, Session


@pytest.fixture
def rules(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


@pytest.fixture
def session(rules, capsys, monkeypatch):
    return Session(rules, capsys, monkeypatch)
