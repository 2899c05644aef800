"""The benchmark end to end: what each side is shown, what is recorded, and what is refused."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from scripted_model import Scripted, ScriptedModel
from short_drift import QUICK, SUITE
from synthetic_run import as_json
from tiny import model

from holdfast import Repetition, Sampling, SplitSoftmax, drift, report
from holdfast.drift.concurrent_dialogs import hold_dialog
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_records import least_tokens
from holdfast.drift.pairing import draw_pairing
from holdfast.drift.turn_repetition import with_repetition
from holdfast.errors import PromptError, UsageError
from holdfast.models.requests import Reply
from holdfast.records import read_run

# The protocol


def test_views_and_probes_match_the_paper(tmp_path):
    scripted = Scripted()
    settings = drift.Settings(rounds=2, conversations=1, seed=1)
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings))[0]
    pairing = draw_pairing(SUITE, settings, 0)
    s_b, s_a = pairing.agent.system_prompt, pairing.user.system_prompt
    views = [[message["content"] for message in request.messages] for request in scripted.requests]
    a1, b1, a2 = (turn["text"] for turn in record["turns"][:3])
    p_b, p_a = (probe.question for probe in pairing.round_probes)
    assert views == [
        [s_b, a1],
        [s_a, f"You asked: {a1}\nI answered: {b1}"],
        [s_b, p_b],
        [s_b, p_a],  # round 1: before any dialog
        [s_b, a1, b1, p_b],
        [s_b, a1, b1, p_a],
        [s_b, a1, b1, a2],
    ]
    assert [probe["kind"] for probe in record["probes"]] == ["stability", "adoption"] * 2
    assert record["user"]["id"] == pairing.user.id != pairing.agent.id == record["agent"]["id"]


def test_a_dialog_held_on_its_own_equals_that_of_a_run(tmp_path):
    settings = drift.Settings(rounds=3, conversations=1, seed=1)
    record = as_json(drift.run(Scripted(), SUITE, tmp_path / "run", settings))[0]
    dialog = Dialog(draw_pairing(SUITE, settings, 0))
    asyncio.run(hold_dialog(Scripted(), dialog, (), settings))
    speakers = {"agent": dialog.pairing.agent, "user": dialog.pairing.user}
    assert [turn.to_json() for turn in with_repetition(dialog.turns, speakers)] == record["turns"]
    assert len(record["turns"]) == 6
    assert [probe.to_json() for probe in dialog.probes] == record["probes"]
    assert len(record["probes"]) == 6


def test_after_round_probes_follow_the_agents_turn(tmp_path):
    scripted = Scripted()
    settings = drift.Settings(
        rounds=1, conversations=1, seed=2, probe_at="after-round", adoption=False
    )
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings))[0]
    lines = [m["content"] for m in scripted.requests[-1].messages][1:]
    assert lines == [*(turn["text"] for turn in record["turns"]), record["probes"][0]["question"]]


def test_an_unprompted_user_keeps_agents_starters_and_probes(tmp_path):
    scripted = Scripted()
    settings = drift.Settings(rounds=2, conversations=4, seed=4)
    control = replace(settings, user_prompt="empty")
    records = as_json(drift.run(scripted, SUITE, tmp_path / "control", control))
    main = as_json(drift.run(Scripted(), SUITE, tmp_path / "main", settings))
    assert [r["agent"] for r in records] == [r["agent"] for r in main]
    assert [r["turns"][0]["text"] for r in records] == [r["turns"][0]["text"] for r in main]
    assert {probe["kind"] for r in records for probe in r["probes"]} == {"stability"}
    assert all(r["user"] == {"id": None, "category": None, "system_prompt": ""} for r in records)
    views = [request.messages for request in scripted.requests if request.thread[0] == "user"]
    assert not any(message["role"] == "system" for view in views for message in view)


def test_several_probes_a_round_and_several_methods_on_the_same_pairs(tmp_path):
    brief = Sampling(max_new_tokens=6)
    settings = drift.Settings(2, 2, probes_per_round=3, sampling=brief, batch=2)
    fixes = [(), (SplitSoftmax(0.3),), (Repetition(1.0),)]
    run = drift.run(model(), SUITE, tmp_path / "run", settings, fixes)
    names = ["none", "split-softmax:exponent=0.3", "repetition:probability=1"]
    assert [r["method"] for r in as_json(run)] == [name for name in names for _ in range(2)]
    assert all(len(record["probes"]) == 2 * 2 * 3 for record in as_json(run))
    firsts = [
        [(p["question"], p["probe"]) for p in r["probes"]]
        for r in as_json(run)
        if r["conversation"] == 0
    ]
    assert firsts[0] == firsts[1] == firsts[2]
    mass = {r["method"]: [t["mass"] for t in r["turns"][1::2]] for r in as_json(run)}
    assert all(0 < value < 1 for values in mass.values() for value in values)
    assert mass[names[1]][0] > mass["none"][0]


# Batches and tokens


class Replicated(ScriptedModel):
    """A model with two replicas, which counts the conversations that are held at once."""

    independent = False
    replicas = 2

    def __init__(self):
        self.open = Counter()
        self.most = 0

    async def call_with_session(self, function, *arguments):
        return await function(self, *arguments)

    async def generate(self, request):
        number = request.thread.conversation
        self.open[number] += 1
        self.most = max(self.most, len(+self.open))
        await asyncio.sleep(0.001)
        self.open[number] -= 1
        return Reply("bread", None, "stop")


def test_every_replica_holds_as_many_conversations_as_a_batch_has(tmp_path):
    settings = replace(QUICK, conversations=12, batch=2)
    model_of_two = Replicated()
    drift.run(model_of_two, SUITE, tmp_path / "run", settings)
    assert model_of_two.most == 4


def test_least_tokens_counts_each_token_of_each_view_once():
    views = ("agent", (1, 2, 3)), ("agent", (1, 2, 3, 4)), ("agent", (1, 2, 9)), ("user", (1, 2))
    assert least_tokens(views) == 3 + 1 + 1 + 2


def test_hardly_any_token_is_forwarded_twice(tmp_path):
    run = drift.run(model(), SUITE, tmp_path / "run", QUICK)
    tokens = [record["tokens"] for record in as_json(run)]
    forwarded, least = (sum(count[key] for count in tokens) for key in ("forwarded", "least"))
    assert least <= forwarded <= 1.15 * least


def test_batches_are_given_anew_for_every_method(tmp_path):
    def batches():
        yield [0, 1]
        # by now the first batch is in the folder
        yield [2] if len(read_run(tmp_path / "run").records) >= 2 else []

    settings = replace(QUICK, conversations=3)
    methods = ["none", "boost:factor=2"]
    run = drift.run(Scripted(), SUITE, tmp_path / "run", settings, methods, batches=batches)
    keys = {(record.method, record.conversation) for record in run.conversations}
    assert keys == {(method, number) for method in methods for number in range(3)}


# Records


def test_dialogs_that_fill_the_context_end_early_without_failing_the_run(tmp_path):
    settings = drift.Settings(rounds=5, conversations=2)
    records = as_json(drift.run(Scripted(context=4), SUITE, tmp_path / "run", settings))
    assert [record["ended"] for record in records] == [{"round": 3, "why": "context"}] * 2
    assert [turn["round"] for turn in records[0]["turns"]] == [1, 1, 2, 2, 3]
    assert {probe["round"] for probe in records[0]["probes"]} == {1, 2}
    with pytest.raises(PromptError, match=r"'case-\w+'.*shorter prompt"):
        drift.run(Scripted(context=1), SUITE, tmp_path / "none", settings)


def test_a_lone_surrogate_is_recorded_read_back_and_shown(tmp_path):
    class HalfACharacter(ScriptedModel):
        def text(self, request):
            return "half \ud83d"

    run = drift.run(HalfACharacter(), SUITE, tmp_path / "run", QUICK)
    texts = {turn["text"] for record in as_json(run) for turn in record["turns"][1:]}
    assert texts == {"half \ud83d"}
    page = report.write([tmp_path / "run"], tmp_path / "page.html")
    assert "half" in page.read_text(encoding="utf-8")


def test_the_kind_and_polarity_of_a_rule_are_recorded_and_exported(tmp_path):
    case = SUITE.cases[0]
    rule = replace(case.rules[0], kind="closing", polarity="gate")
    kinds = replace(SUITE, cases=(replace(case, rules=[rule]),))
    run = drift.run(Scripted(), kinds, tmp_path / "run", replace(QUICK, conversations=1))
    assert {probe.rule_kind for probe in run.conversations[0].probes} == {"closing"}
    columns = run.to_columns()
    assert set(columns["rule_kind"]) == {"closing"} and set(columns["polarity"]) == {"gate"}


# Refusals


def test_methods_the_model_cannot_apply_are_refused_before_anything_is_written(tmp_path):
    fix = SplitSoftmax(0.5, heads=[(0, 1), (2, 4)])
    with pytest.raises(UsageError, match=r"head 4 in layer 2, but this model has 4 heads"):
        drift.run(model(), SUITE, tmp_path / "run", QUICK, [(), (fix,)])
    assert not (tmp_path / "run").exists()


def test_settings_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"rounds.*0"):
        drift.Settings(rounds=0)
    with pytest.raises(UsageError, match="given twice"):
        drift.run(Scripted(), SUITE, tmp_path / "run", QUICK, [(), ()])
    single = drift.Suite("one", SUITE.cases[:1], SUITE.starters)
    message = r"'one' has only 1 system prompt, and so none.*a persona, or an empty prompt"
    with pytest.raises(UsageError, match=message):
        drift.run(Scripted(), single, tmp_path / "run", replace(QUICK, user_prompt="suite"))
    with pytest.raises(UsageError, match=r"'one' has no personas.*another user prompt"):
        drift.run(Scripted(), single, tmp_path / "run", replace(QUICK, user_prompt="persona"))
