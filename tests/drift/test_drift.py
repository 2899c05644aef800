"""The benchmark end to end on a tiny model: protocol, tokens, resuming, refusals."""

import asyncio
import itertools
import json
import multiprocessing
import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from scripted_model import Scripted, ScriptedModel
from short_drift import QUICK, SUITE, texts, without_time
from synthetic_run import as_json, write_run
from tiny import model

from holdfast import Repetition, Sampling, SplitSoftmax, drift, report
from holdfast.drift.concurrent_dialogs import hold_dialog
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_records import least_tokens
from holdfast.drift.pairing import draw_pairing
from holdfast.drift.resolved_settings import user_prompt_of
from holdfast.drift.turn_repetition import with_repetition
from holdfast.errors import PromptError, RecordsError, UsageError
from holdfast.models.requests import Reply
from holdfast.records import read_run

LONG = drift.Settings(2, 40, batch=2, sampling=Sampling(max_new_tokens=8), seed=5)


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


class Says(Scripted):
    """A model that always gives the same reply."""

    def __init__(self, reply):
        super().__init__()
        self.reply = reply

    def text(self, request):
        return self.reply


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
    settings = replace(BRIEF, rounds=1, conversations=1, probe_at="after-round", adoption=False)
    record = as_json(drift.run(scripted, SUITE, tmp_path / "run", settings))[0]
    lines = [m["content"] for m in scripted.requests[-1].messages][1:]
    assert lines == [*(turn["text"] for turn in record["turns"]), record["probes"][0]["question"]]


def test_dialogs_that_fill_the_context_end_early_without_failing_the_run(tmp_path):
    settings = drift.Settings(rounds=5, conversations=2)
    records = as_json(drift.run(Scripted(context=4), SUITE, tmp_path / "run", settings))
    assert [record["ended"] for record in records] == [{"round": 3, "why": "context"}] * 2
    assert [turn["round"] for turn in records[0]["turns"]] == [1, 1, 2, 2, 3]
    assert {probe["round"] for probe in records[0]["probes"]} == {1, 2}
    with pytest.raises(PromptError, match=r"'case-\w+'.*shorter prompt"):
        drift.run(Scripted(context=1), SUITE, tmp_path / "none", settings)


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


def test_least_tokens_counts_each_token_of_each_view_once():
    views = ("agent", (1, 2, 3)), ("agent", (1, 2, 3, 4)), ("agent", (1, 2, 9)), ("user", (1, 2))
    assert least_tokens(views) == 3 + 1 + 1 + 2


def test_hardly_any_token_is_forwarded_twice(tmp_path):
    run = drift.run(model(), SUITE, tmp_path / "run", QUICK)
    tokens = [record["tokens"] for record in as_json(run)]
    forwarded, least = (sum(count[key] for count in tokens) for key in ("forwarded", "least"))
    assert least <= forwarded <= 1.15 * least


def test_repeating_gives_the_same_records_and_draws_do_not_depend_on_the_batch(tmp_path):
    runs = [drift.run(model(), SUITE, tmp_path / name, QUICK) for name in ("one", "two")]
    assert without_time(runs[0]) == without_time(runs[1])
    fives = drift.run(model(), SUITE, tmp_path / "three", replace(QUICK, batch=5))
    assert texts(fives) == texts(runs[0])  # float32 on a tiny model: rounding decides no token here


def exact():
    """The tiny model in float64, where the rest of the batch changes no digit of a record."""
    return model(dtype="float64")


def run_in_child(out: Path) -> None:
    """Makes or resumes the run, in the test's own process or in one that is killed."""
    import torch

    torch.set_num_threads(1)
    drift.run(exact(), SUITE, out, LONG, [(), (SplitSoftmax(0.3),)])


@pytest.mark.slow
def test_a_run_killed_20_times_and_resumed_equals_an_uninterrupted_one(tmp_path):
    run_in_child(tmp_path / "whole")
    whole = (tmp_path / "whole" / "records.jsonl").stat().st_size
    # forks from a process that has imported everything
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["test_drift"])
    out, rng, kills, sizes = tmp_path / "killed", random.Random(0), 0, set()

    def bytes_written() -> int:
        return (out / "records.jsonl").stat().st_size if (out / "records.jsonl").exists() else 0

    for attempt in range(20):
        # kills by the size of the records, not by time, so that slow machines are hit mid-run too
        goal = bytes_written() + (whole * rng.random() / 20 if attempt % 4 else 0)
        child = server.Process(target=run_in_child, args=(out,))
        child.start()
        while child.is_alive() and bytes_written() < goal:
            time.sleep(0.001)
        child.join(rng.random() * 0.02)
        kills += child.is_alive()
        child.kill()
        child.join()
        sizes.add(bytes_written())
    assert kills == 20 and len(sizes) > 8, (kills, sizes)
    run_in_child(out)
    assert without_time(read_run(out)) == without_time(read_run(tmp_path / "whole"))


@pytest.mark.slow
def test_an_extended_run_equals_one_made_at_once(tmp_path):
    few = replace(QUICK, rounds=2)
    eight = replace(few, conversations=8)
    fixes = [(SplitSoftmax(0.3),), (Repetition(1.0),)]
    whole = drift.run(exact(), SUITE, tmp_path / "whole", eight, [(), *fixes])
    out = tmp_path / "extended"
    drift.run(exact(), SUITE, out, few, [()])
    drift.run(exact(), SUITE, out, few, [fixes[0]])  # another method
    drift.run(exact(), SUITE, out, eight, [fixes[1], ()])  # more, in another order of methods
    extended = drift.run(exact(), SUITE, out, eight, [fixes[0]])
    assert texts(extended) == texts(whole)
    assert without_time(extended) == without_time(whole)
    identity = extended.manifest.identity.to_json()
    assert identity["methods"] == whole.manifest.identity.to_json()["methods"]
    assert identity["settings"]["conversations"] == 8
    fewer = drift.run(exact(), SUITE, out, replace(few, conversations=2), [()])
    assert len(fewer.records) == 24


def test_a_smaller_command_completes_its_part_of_the_run(tmp_path):
    running, batches = drift.Running(progress=stop_after(30)), [[0], [1, 2], [3, 4]]
    with pytest.raises(KeyboardInterrupt):  # each has 11 replies
        drift.run(
            Scripted(), SUITE, tmp_path / "run", QUICK, running=running, batches=lambda: batches
        )
    few = replace(QUICK, conversations=2)
    run = drift.run(Scripted(), SUITE, tmp_path / "run", few)
    assert run.manifest.identity.to_json()["settings"]["conversations"] == QUICK.conversations
    assert {0, 1} <= {record["conversation"] for record in as_json(run)} < set(range(5))


def stop_after(replies: int):
    counts = []

    def progress(done: int, tokens: int) -> None:
        counts.append(done)
        if len(counts) > replies:
            raise KeyboardInterrupt

    return progress


def test_more_rounds_are_refused_with_the_reason(tmp_path):
    drift.run(Scripted(), SUITE, tmp_path / "run", QUICK)
    message = r"rounds is 3 there and 4 here \(finished dialogs are recorded as text, .*\)"
    with pytest.raises(RecordsError, match=message):
        drift.run(Scripted(), SUITE, tmp_path / "run", replace(QUICK, rounds=4))


def older_manifest(folder):
    """The manifest of a run as a version without checksums wrote it, and its settings."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest = {name: value for name, value in manifest.items() if "crc32" not in name}
    return manifest, manifest["identity"]["settings"]


def test_an_older_manifest_without_a_setting_is_resumed(tmp_path):
    drift.run(Scripted(), SUITE, tmp_path / "run", QUICK)
    path = tmp_path / "run" / "manifest.json"
    manifest, settings = older_manifest(tmp_path / "run")
    del settings["adoption"], settings["sampling"]["top_p"]
    path.write_text(json.dumps(manifest))
    assert len(drift.run(Scripted(), SUITE, tmp_path / "run", QUICK).records) == 5
    assert read_run(tmp_path / "run").manifest.identity.to_json()["settings"]["adoption"] is True
    path.write_text(json.dumps(manifest))
    with pytest.raises(RecordsError, match=r"adoption is true there and false here"):
        drift.run(Scripted(), SUITE, tmp_path / "run", replace(QUICK, adoption=False))


@pytest.mark.slow
def test_a_run_that_could_have_measured_divergences_is_resumed_if_it_did_not(tmp_path):
    folder = write_run(tmp_path / "run", conversations=2, rounds=2)
    page = report.write([folder], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "ivergence" not in page
    for has_divergence in (False, True):
        drift.run(Scripted(), SUITE, tmp_path / str(has_divergence), QUICK)
        manifest, settings = older_manifest(tmp_path / str(has_divergence))
        settings["divergence"] = has_divergence
        (tmp_path / str(has_divergence) / "manifest.json").write_text(json.dumps(manifest))
    assert len(drift.run(Scripted(), SUITE, tmp_path / "False", QUICK).records) == 5
    with pytest.raises(RecordsError, match=r"divergence is true there and false here"):
        drift.run(Scripted(), SUITE, tmp_path / "True", QUICK)


def test_a_lone_surrogate_is_recorded_read_back_and_shown(tmp_path):
    run = drift.run(Says("half \ud83d"), SUITE, tmp_path / "run", QUICK)
    texts = {turn["text"] for record in as_json(run) for turn in record["turns"][1:]}
    assert texts == {"half \ud83d"}
    page = report.write([tmp_path / "run"], tmp_path / "page.html")
    assert "half" in page.read_text(encoding="utf-8")


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


def rule(word: str, *probes: str) -> drift.Rule:
    probes = probes or (f"Where is the {word}?", f"Who took the {word}?")
    return drift.Rule(word, probes, {"regex": word})


RULES = tuple(map(rule, ("bread", "rain", "music")))
BOT = drift.Case("bot", "rules", "Talk about bread, rain and music.", rules=RULES)
PERSONAS = (drift.Persona("ada", "You are Ada."), drift.Persona("max", "You are Max."))
ONE_BOT = drift.Suite("bot", (BOT,), ("hello there", "how are you?"))
BRIEF = drift.Settings(rounds=2, conversations=6, seed=2)


def test_one_bot_with_several_rules_is_probed_for_each_at_every_round(tmp_path):
    run = drift.run(Scripted(), ONE_BOT, tmp_path / "run", BRIEF)
    assert run.manifest.identity.to_json()["settings"]["user_prompt"] == "empty"
    expected = list(itertools.product((1, 2), ("bread", "rain", "music")))
    for record in as_json(run):
        assert [(p["round"], p["rule"]) for p in record["probes"]] == expected
        assert {(p["kind"], p["probe"]) for p in record["probes"]} == {("stability", 0)}
        questions = [p["question"] for p in record["probes"]]
        assert questions[:3] == questions[3:]
        assert record["user"] == {"id": None, "category": None, "system_prompt": ""}
    assert len({r["probes"][0]["question"] for r in as_json(run)}) == 2, "drawn per conversation"


def test_each_rule_is_scored_by_its_own_measure(tmp_path):
    speaking_model = Says("bread and rain")
    record = as_json(drift.run(speaking_model, ONE_BOT, tmp_path / "run", BRIEF))[0]
    assert {p["rule"]: p["score"] for p in record["probes"]} == {"bread": 1, "rain": 1, "music": 0}


def test_a_rule_draws_the_same_probe_whatever_other_rules_there_are():
    alone = replace(ONE_BOT, cases=(replace(BOT, rules=BOT.rules[1:2]),))
    for number in range(6):
        (probe,) = draw_pairing(alone, BRIEF, number).round_probes
        assert probe in draw_pairing(ONE_BOT, BRIEF, number).round_probes


def test_a_persona_prompts_the_user_model_and_adoption_is_not_probed(tmp_path):
    scripted = Scripted()
    suite = replace(ONE_BOT, personas=PERSONAS)
    records = as_json(drift.run(scripted, suite, tmp_path / "run", BRIEF))
    assert {r["user"]["id"] for r in records} == {"ada", "max"}
    assert {p["kind"] for r in records for p in r["probes"]} == {"stability"}
    user_prompts = [q.messages[0]["content"] for q in scripted.requests if q.thread[0] == "user"]
    assert user_prompts == [r["user"]["system_prompt"] for r in records]
    assert all(r["user"]["category"] is None for r in records)
    plain = as_json(drift.run(Scripted(), ONE_BOT, tmp_path / "plain", BRIEF))
    for record, row in zip(plain, records, strict=True):
        assert (record["agent"], record["turns"][0]) == (row["agent"], row["turns"][0])
        questions = [[p["question"] for p in r["probes"]] for r in (record, row)]
        assert questions[0] == questions[1]


def test_the_source_of_the_user_prompt_follows_from_the_suite_unless_given():
    with_personas = replace(SUITE, personas=PERSONAS)
    for suite, choice, source in (
        (SUITE, "auto", "suite"),
        (ONE_BOT, "auto", "empty"),
        (replace(ONE_BOT, personas=PERSONAS), "auto", "persona"),
        (with_personas, "auto", "persona"),
        (with_personas, "suite", "suite"),
        (with_personas, "empty", "empty"),
    ):
        assert user_prompt_of(suite, replace(BRIEF, user_prompt=choice)) == source


def test_rules_of_both_speakers_are_probed_if_the_user_is_a_bot_too(tmp_path):
    suite = replace(SUITE, cases=(BOT, SUITE.cases[1]))
    records = as_json(drift.run(Scripted(), suite, tmp_path / "run", BRIEF))
    assert len(records) == BRIEF.conversations
    for record in records:
        probes = [p for p in record["probes"] if p["round"] == 1]
        first = [(p["kind"], p.get("rule"), p["probe"]) for p in probes]
        names, no_rule = [("bread", 0), ("rain", 0), ("music", 0)], [(None, 0)]
        agent, user = (names, no_rule) if record["agent"]["id"] == "bot" else (no_rule, names)
        expected = [("stability", *name) for name in agent] + [("adoption", *name) for name in user]
        assert first == expected


@pytest.mark.parametrize("personas", [(), PERSONAS])
def test_balanced_pairs_meet_equally_often_from_the_start(personas):
    suite = replace(SUITE, personas=personas)
    settings = replace(BRIEF, pairs="balanced")
    pairings = [draw_pairing(suite, settings, number) for number in range(6)]
    pairs = [(pairing.agent.id, pairing.user.id) for pairing in pairings]
    assert len(set(pairs)) == 6 and all(agent != user for agent, user in pairs)
    for end in range(1, 7):
        assert max(Counter(agent for agent, _ in pairs[:end]).values()) == -(-end // 3)
    starters = [draw_pairing(suite, BRIEF, number).starter for number in range(6)]
    assert [pairing.starter for pairing in pairings] == starters
    later_pairings = [draw_pairing(suite, settings, number + 6) for number in range(6)]
    assert [(pairing.agent.id, pairing.user.id) for pairing in later_pairings] == pairs


def test_all_pairs_with_personas_combine_every_case_with_every_persona():
    suite = replace(SUITE, personas=PERSONAS)
    pairings = [draw_pairing(suite, replace(BRIEF, pairs="all"), number) for number in range(6)]
    assert len({(pairing.agent.id, pairing.user.id) for pairing in pairings}) == 6


def test_all_pairs_go_through_the_permutations_of_the_cases():
    cases = tuple(replace(SUITE.cases[0], id=name) for name in "abcd")
    suite, settings = replace(SUITE, cases=cases), replace(BRIEF, pairs="all")
    pairings = [draw_pairing(suite, settings, number) for number in range(13)]
    pairs = list(itertools.permutations("abcd", 2))
    assert [(pairing.agent.id, pairing.user.id) for pairing in pairings] == [*pairs, pairs[0]]


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
