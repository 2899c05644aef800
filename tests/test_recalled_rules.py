"""`--recall`: the agent is asked for its rules, in forks of the first and the last round."""

import pytest
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.drift.cases import Case, Rule
from holdfast.drift.suites import parse_suite
from holdfast.errors import UsageError

SIGN = Rule("sign", ("Hi?",), {"name": "ends_with", "word": "Tony"}, recalled={"regex": "Tony"})
SHORT = Rule("short", ("Hi?",), {"name": "at_most_words", "count": 9}, recalled={"regex": "nine"})
FREE = Rule("free", ("Hi?",), {"regex": "o"})
SUITE = drift.Suite("bots", (Case("tony", "rules", "Rules.", rules=(SIGN, SHORT, FREE)),), ("Hi!",))


class Remembers(ScriptedModel):
    """States that it signs with Tony, and does so in its first reply only."""

    def text(self, request):
        if "your instructions" in request.messages[-1]["content"]:
            return "I sign with Tony."
        return "Hello." if len(request.messages) > 2 else "Hello. Tony"


def run_of(suite, folder, **more):
    settings = drift.Settings(rounds=4, conversations=2, user_prompt="empty", recall=True, **more)
    return drift.run(Remembers(), suite, folder, settings)


@pytest.mark.parametrize("probe_at", ["in-place", "after-round"])
def test_rules_are_asked_for_in_the_first_and_the_last_round(tmp_path, probe_at):
    for record in run_of(SUITE, tmp_path / "run", probe_at=probe_at).conversations:
        recalled = [probe for probe in record.probes if probe.kind == "recall"]
        assert [(probe.round, probe.rule, probe.score) for probe in recalled] == [
            (1, "sign", 1),
            (1, "short", 0),
            (4, "sign", 1),
            (4, "short", 0),
        ]
        assert all("your instructions" not in turn.text for turn in record.turns)


def test_a_suite_that_cannot_recognise_its_rules_is_refused(tmp_path):
    suite = drift.Suite("bots", (Case("tony", "rules", "Rules.", rules=(FREE,)),), ("Hi!",))
    with pytest.raises(UsageError) as raised:
        run_of(suite, tmp_path / "run")
    assert (raised.value.option, raised.value.value) == ("recall", "tony")


def test_text_and_recalled_are_read_from_yaml_and_change_the_fingerprint():
    yaml = """
cases:
  - id: tony
    system_prompt: Sign with Tony.
    probe: Hi?
    measure: {name: ends_with, word: Tony}
"""
    more = "    text: End every reply with Tony.\n    recalled: {regex: Tony}\n"
    plain, stated = (parse_suite(text, "bots.yaml", "bots") for text in (yaml, yaml + more))
    (rule,) = stated.cases[0].all_rules
    assert rule.text == "End every reply with Tony."
    assert (rule.recalled.score("Tony").value, rule.recalled.score("Ann").value) == (1, 0)
    assert plain.fingerprint != stated.fingerprint
