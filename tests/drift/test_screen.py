"""`benchmarks/screen.py`, which finds the prompts that a model follows."""

import sys
from dataclasses import replace

import pytest
from paths import ROOT
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.drift.cases import Case, Rule
from holdfast.drift.suites import load_suite

sys.path.insert(0, str(ROOT / "benchmarks"))
import screen

EVERYDAY = load_suite("everyday")


def test_screening_asks_only_the_first_half_of_the_probes():
    for case, screened in zip(
        EVERYDAY.cases, screen.with_screening_probes(EVERYDAY).cases, strict=True
    ):
        for rule, screened_rule in zip(case.rules, screened.rules, strict=True):
            assert screened_rule.probes == rule.probes[:3]
    with pytest.raises(SystemExit, match="'one' has one probe"):
        screen.with_screening_probes(
            replace(EVERYDAY, cases=(Case("one", "a", "Be.", ("Hi?",), "one_word"),))
        )


BOTS = load_suite("bots")


class Obeys(ScriptedModel):
    """A model that signs as it is told to, and never says sorry."""

    def text(self, request):
        has_rule = any("Sign with Tony" in message["content"] for message in request.messages)
        return "Ciao. Tony" if has_rule else "Ciao."


def test_the_screen_has_a_row_for_each_rule(tmp_path):
    probes = ("Hi?", "Hello?")
    signs = Rule("signs", probes, {"name": "ends_with", "word": "Tony"}, kind="closing")
    proud = Rule("proud", probes, {"name": "never_contains", "words": ["sorry"]}, kind="forbidden")
    long = Rule("long", probes, {"name": "long_reply", "words": 20})
    pizza = Case("pizza-1", "shop", "Sign with Tony.", rules=(signs, proud, long))
    single = Case(
        "tony-1", "shop", "Sign with Tony.", probes, {"name": "ends_with", "word": "Tony"}
    )
    suite = replace(BOTS, cases=(pizza, single), personas=())
    settings = drift.Settings(rounds=1, conversations=4, user_prompt="empty", pairs="in-turn")
    run = drift.run(Obeys(), suite, tmp_path, settings)
    drift.ask_baseline(Obeys(), suite, tmp_path, settings)
    first, second = rows = screen.prompt_rows(suite, run)
    results = {rule["id"]: (rule["kept"], rule["passes"]) for rule in first["rules"]}
    assert results == {"signs": (True, True), "proud": (True, False), "long": (False, False)}
    assert (first["passes"], first["prompted"], first["unprompted"]) == (False, 0.1, 1)
    assert second["passes"] and "rules" not in second
    assert screen.kinds_of(rows) == {
        "closing": {"rules": 1, "kept": 1, "passes": 1},
        "forbidden": {"rules": 1, "kept": 1, "passes": 0},
    }
