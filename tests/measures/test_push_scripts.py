"""Scripts that run `git push`, and scripts that only name it; the lists were written first."""

import json

import pytest
from agent_turns import ran
from paths import ROOT

from holdfast.measures import build

SCRIPTS = json.loads((ROOT / "tests/data/push_scripts.json").read_text(encoding="utf-8"))


def runs_push(script: str) -> bool:
    score = build({"name": "command_not_run", "command": r"git push(?!\S)"}).score_turn(ran(script))
    return score is not None and score.value == 0


@pytest.mark.parametrize("script", SCRIPTS["runs"])
def test_a_push_is_found_however_it_is_run(script):
    assert runs_push(script)


@pytest.mark.parametrize("script", SCRIPTS["does_not_run"])
def test_a_push_that_is_only_named_is_none(script):
    assert not runs_push(script)
