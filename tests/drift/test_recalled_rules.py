"""`--recall`: the agent is asked for its rules, in forks of the first and the last round."""

import dataclasses
import re

import pytest
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.analysis.recalled_rules import recall_rows
from holdfast.cli import main
from holdfast.drift.cases import Case, Rule
from holdfast.drift.prompt_rules import CaseRules
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.measures.turns import When

SIGN = Rule(
    "sign",
    ("Hi?",),
    {"name": "ends_with", "word": "Tony"},
    recalled={"regex": "Tony"},
    kind="closing",
)
SHORT = Rule(
    "short",
    ("Hi?",),
    {"name": "at_most_words", "count": 9},
    recalled={"regex": "nine"},
    kind="length",
)
FREE = Rule("free", ("Hi?",), {"regex": "o"})
SUITE = drift.Suite("bots", (Case("tony", "rules", "Rules.", rules=(SIGN, SHORT, FREE)),), ("Hi!",))


class Remembers(ScriptedModel):
    """States that it signs with Tony, and does so in its first reply only."""

    def text(self, request):
        if "your instructions" in request.messages[-1]["content"]:
            return "I sign with Tony."
        return "Hello." if len(request.messages) > 2 else "Hello. Tony"


# Recall


def run_of(suite, folder, **fields):
    settings = drift.Settings(rounds=4, conversations=2, user_prompt="empty", recall=True, **fields)
    return drift.run(Remembers(), suite, folder, settings)


@pytest.mark.parametrize("probe_at", ["in-place", "after-round"])
def test_rules_are_asked_for_in_the_first_and_the_last_round(tmp_path, probe_at):
    conversations = run_of(SUITE, tmp_path / "run", probe_at=probe_at).conversations
    assert len(conversations) == 2
    for record in conversations:
        recalled = [probe for probe in record.probes if probe.kind == "recall"]
        assert [(probe.round, probe.rule, probe.score) for probe in recalled] == [
            (1, "sign", 1),
            (1, "short", 0),
            (4, "sign", 1),
            (4, "short", 0),
        ]
        assert all("your instructions" not in turn.text for turn in record.turns)


def test_broken_rules_that_are_still_stated_are_counted(tmp_path, capsys):
    run = run_of(SUITE, tmp_path / "run")
    everything, closing, length = recall_rows(run)
    assert (everything.stated_first.mean, everything.stated_last.mean) == (0.5, 0.5)
    # in the last round, the signature is broken and stated, the length kept and not stated
    assert (closing.kind, closing.broken, closing.stated_of_broken.mean) == ("closing", 2, 1)
    assert (length.kind, length.broken, length.stated_of_kept.mean) == ("length", 0, 0)
    assert length.stated_of_broken.n == 0
    assert main(["map", str(run.folder), "--out", str(tmp_path / "map")]) == 0
    lines = capsys.readouterr().out.splitlines()
    lines_below = lines[next(n for n, line in enumerate(lines) if "broken there" in line) :]
    (line,) = [line for line in lines_below if line.split()[:2] == ["closing", "1.00"]]
    assert re.split(r" {2,}", line.strip())[3] == "2"


def test_a_list_of_rules_that_was_cut_off_is_no_evidence_for_those_it_did_not_reach(tmp_path):
    class Cut(Remembers):
        async def generate(self, request):
            reply = await super().generate(request)
            if "your instructions" in request.messages[-1]["content"]:
                assert request.sampling.max_new_tokens == 300
                return dataclasses.replace(reply, stop_reason="length")
            return reply

    settings = drift.Settings(
        rounds=2,
        conversations=1,
        user_prompt="empty",
        recall=True,
        sampling=Sampling(max_new_tokens=20),
    )
    (record,) = drift.run(Cut(), SUITE, tmp_path / "run", settings).conversations
    stated = [probe for probe in record.probes if probe.kind == "recall"]
    assert {(probe.rule, probe.score) for probe in stated} == {("sign", 1)}
    missed = [probe for probe in record.unscored if probe.kind == "recall"]
    assert {(probe.rule, probe.why) for probe in missed} == {("short", "cut")}


def test_a_suite_that_cannot_recognise_its_rules_is_refused(tmp_path):
    suite = drift.Suite("bots", (Case("tony", "rules", "Rules.", rules=(FREE,)),), ("Hi!",))
    with pytest.raises(UsageError) as excinfo:
        run_of(suite, tmp_path / "run")
    assert (excinfo.value.option, excinfo.value.value) == ("recall", "tony")


def test_text_and_recalled_are_read_from_yaml_and_change_the_fingerprint():
    yaml = """
cases:
  - id: tony
    system_prompt: Sign with Tony.
    probe: Hi?
    measure: {name: ends_with, word: Tony}
"""
    recall_lines = "    text: End every reply with Tony.\n    recalled: {regex: Tony}\n"
    plain, stated = (parse_suite(text, "bots.yaml", "bots") for text in (yaml, yaml + recall_lines))
    (rule,) = stated.cases[0].rules
    assert rule.text == "End every reply with Tony."
    assert (rule.recalled.score("Tony").value, rule.recalled.score("Ann").value) == (1, 0)
    assert plain.fingerprint != stated.fingerprint


# The rules of a prompt, for reminders


def test_a_reminder_of_the_rules_says_those_of_the_agents_prompt(tmp_path):
    reminders: list[str] = []

    class Seen(Remembers):
        def text(self, request):
            edited = request.compiled.edit(request.messages, request.editing_seed)
            reminders.extend(m["content"] for m in edited if "[Reminder" in m["content"])
            return super().text(request)

    short = dataclasses.replace(SHORT, text="Write at most nine words.")
    sign = dataclasses.replace(SIGN, text="Sign with Tony.")
    suite = drift.Suite("bots", (Case("tony", "rules", "Rules.", rules=(sign, short)),), ("Hi!",))
    settings = drift.Settings(rounds=3, conversations=1, user_prompt="empty")
    drift.run(Seen(), suite, tmp_path / "run", settings, ["reminder:every=2,text=rules"])
    openings = {text.partition("]")[0] for text in reminders}
    assert openings == {"[Reminder: Sign with Tony. Write at most nine words."}
    reminders.clear()
    drift.run(Seen(), SUITE, tmp_path / "plain", settings, ["reminder:every=2,text=rules"])
    assert {text.partition("]")[0] for text in reminders} == {"[Reminder: Rules."}


def test_the_rules_of_a_prompt_are_chosen_by_kind():
    sign = dataclasses.replace(SIGN, text="Sign.")
    short = dataclasses.replace(SHORT, text="Be brief.")
    rules = CaseRules(Case("tony", "rules", "Rules.", rules=(sign, short)))
    assert rules.texts == ("Sign.", "Be brief.")
    assert rules.of_kinds(["closing"]).texts == ("Sign.",)
    assert rules.of_kinds(["closing"]).broken("Hi?", "word " * 10) == ("Sign.",)
    assert rules.of_kinds(["tone"]).texts == ()
    with pytest.raises(UsageError) as unknown:
        rules.of_kinds(["closng"])
    assert (unknown.value.option, unknown.value.value) == ("kinds", "closng")
    plain = dataclasses.replace(FREE, text="Say o.")
    with pytest.raises(UsageError):
        CaseRules(Case("tony", "rules", "Rules.", rules=(plain,))).of_kinds(["closing"])


def test_rules_that_the_last_reply_broke_are_found_by_the_rules_of_a_case():
    never = Rule("never", ("Hi?",), {"regex": "^(?!.*cheap)"}, text="Never say cheap.")
    asks = dataclasses.replace(never, id="asks", text="Ask first.", when=When(user="order"))
    sign = dataclasses.replace(SIGN, text="Sign with Tony.")
    rules = CaseRules(Case("tony", "rules", "Rules.", rules=(sign, SHORT, never, asks)))
    assert rules.texts == ("Sign with Tony.", "Rules.", "Never say cheap.", "Ask first.")
    assert rules.broken("Hello?", "It is cheap. Tony") == ()  # a rule that is only for probes
    assert rules.broken("My order?", "It is cheap.") == ("Sign with Tony.", "Ask first.")
    assert rules.broken("My order?", "Which one? Tony") == ()
