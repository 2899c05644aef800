"""Rules that share probes: one reply, scored by every rule; and IFEval's accuracies."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from scripted_model import ScriptedModel
from synthetic_run import as_json, conversation_of

from holdfast import drift, report
from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.series import read_series
from holdfast.analysis.summary import summarise
from holdfast.drift.cases import _fingerprinted
from holdfast.drift.remaining import count_replies
from holdfast.errors import RecordsError, RequestFailed
from holdfast.models.requests import Reply
from holdfast.records import Run
from holdfast.records.identity import Manifest

SHARED_PROBE = ("Name a fruit.",)


def rule(name, pattern, probes=SHARED_PROBE):
    return drift.Rule(name, probes, {"regex": pattern})


SHARING_RULES = (rule("a", "apple"), rule("b", "berry"), rule("c", "cherry"))
SETTINGS = drift.Settings(rounds=3, conversations=4, user_prompt="empty")


def suite_of(*rules):
    return drift.Suite("fruit", (drift.Case("bot", "rules", "Be.", rules=rules),), ("hello",))


SEPARATE = suite_of(rule("a", "apple", ("Which apple?",)), rule("b", "berry", ("Which berry?",)))


class Fruity(ScriptedModel):
    """A model that drops one more fruit every round and records what it is asked."""

    fruits = ("apple", "berry", "cherry")

    def __init__(self, fails=()):
        self.fails, self.asked = fails, []

    async def generate(self, request):
        messages = request.messages
        self.asked.append((messages[-1]["content"], request.seed))
        number = sum(message["role"] == "user" for message in messages)
        if messages[-1]["content"] in SHARED_PROBE and number in self.fails:
            raise RequestFailed("too long", "context")
        words = (
            " ".join(self.fruits[: 4 - number]) if messages[-1]["content"] in SHARED_PROBE else "-"
        )
        return Reply(f"{words} {request.seed}", None, "stop")


def record(number, scores, agent="bot"):
    """The record of a conversation; scores are [round][rule]."""
    prompt = {"id": agent, "category": "rules", "system_prompt": "Be."}
    probes = [
        {"round": at, "rule": f"r{index}", "score": float(score)}
        for at, row in enumerate(scores, start=1)
        for index, score in enumerate(row)
    ]
    for probe in probes:
        if probe["rule"] != "r0":
            probe["reply_of"] = "r0"
    return conversation_of(conversation=number, agent=prompt, probes=probes)


# One reply for several rules


def test_one_reply_is_drawn_and_scored_by_every_rule(tmp_path):
    model = Fruity()
    run = drift.run(model, suite_of(*SHARING_RULES), tmp_path / "run", SETTINGS)
    probes = [seed for question, seed in model.asked if question in SHARED_PROBE]
    assert len(probes) == len(set(probes)) == 4 * 3  # one of a round and conversation
    for record in as_json(run):
        for number in (1, 2, 3):
            entries = [probe for probe in record["probes"] if probe["round"] == number]
            assert [probe["rule"] for probe in entries] == ["a", "b", "c"]
            assert [probe.get("reply_of") for probe in entries] == [None, "a", "a"]
            assert len({probe["reply"] for probe in entries}) == 1
            expected = [1.0, float(number < 3), float(number < 2)]
            assert [probe["score"] for probe in entries] == expected
    replies = count_replies(suite_of(*SHARING_RULES), SETTINGS, range(4))
    assert replies == 4 * (3 + 2 * 3 - 1)


def test_sharing_probes_changes_no_draws_of_the_first_rule_or_of_unshared_probes(tmp_path):
    apart = rule("d", "apple", ("And now?",))
    seeds = []
    for name, rules in (("whole", (*SHARING_RULES, apart)), ("few", (SHARING_RULES[0], apart))):
        model = Fruity()
        run = drift.run(model, suite_of(*rules), tmp_path / name, SETTINGS)
        seeds.append(sorted(model.asked))
        scored_rules = {probe["rule"] for record in as_json(run) for probe in record["probes"]}
        assert scored_rules == {own_rule.id for own_rule in rules}
    assert seeds[0] == seeds[1]


def test_rules_with_the_same_list_of_probes_are_asked_the_same_ones(tmp_path):
    many = tuple(f"{name}?" for name in "uvwxyz")
    rules = [rule("a", "-", many), rule("b", "-", many)]
    settings = replace(SETTINGS, conversations=8, probes_per_round=2)
    run = drift.run(Fruity(), suite_of(*rules), tmp_path / "run", settings)
    questions = set()
    for record in as_json(run):
        questions_of = {name: [] for name in "ab"}
        for probe in record["probes"]:
            questions_of[probe["rule"]].append(probe["question"])
        assert questions_of["a"] == questions_of["b"]
        questions |= set(questions_of["a"])
        assert [probe["rule"] for probe in record["probes"][:4]] == ["a", "a", "b", "b"]
    assert len(questions) > 2


def test_an_unanswered_probe_is_missing_for_every_rule(tmp_path):
    run = drift.run(Fruity(fails=(2,)), suite_of(*SHARING_RULES), tmp_path / "run", SETTINGS)
    missing = [probe["rule"] for probe in as_json(run)[0]["unanswered"]]
    assert missing == ["a", "b", "c"]
    accuracy = accuracy_of(read_series(run)[0])
    assert [point.mean for point in accuracy["prompt"]] == [1.0, None, 0.0]
    assert [point.n for point in accuracy["instruction"]] == [4, 0, 4]


def test_the_baseline_asks_once_and_every_rule_scores(tmp_path):
    suite = suite_of(*SHARING_RULES)
    drift.run(Fruity(), suite, tmp_path / "run", SETTINGS)
    model = Fruity()
    baseline_run = drift.ask_baseline(model, suite, tmp_path / "run", SETTINGS)
    assert len(model.asked) == 4
    for row in as_json(baseline_run):
        assert [probe["rule"] for probe in row["probes"]] == ["a", "b", "c"]
        assert len({probe["reply"] for probe in row["probes"]}) == 1


# Fingerprints


def plain_fingerprint(suite):
    """The fingerprint as it was before rules shared probes."""
    content = {"starters": suite.starters, "cases": [_fingerprinted(case) for case in suite.cases]}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_only_suites_whose_rules_share_probes_have_new_fingerprints(tmp_path):
    for suite in (drift.load_suite("core"), drift.load_suite("starter"), SEPARATE):
        assert suite.fingerprint == plain_fingerprint(suite)
    shared = suite_of(*SHARING_RULES)
    assert shared.fingerprint != plain_fingerprint(shared)

    drift.run(Fruity(), shared, tmp_path / "run", SETTINGS)
    alone = suite_of(SHARING_RULES[0])
    with pytest.raises(RecordsError, match=r"suite .*run;"):
        drift.run(Fruity(), alone, tmp_path / "run", SETTINGS)


# Accuracies


def series_of(records, tmp_path):
    manifest = Manifest.read({"identity": {"methods": ["none"]}})
    return read_series(Run(tmp_path, manifest, tuple(records)))[0]


def test_accuracies_are_those_of_ifeval(tmp_path):
    """Prompt level: 1 of 2; instruction level: 4 of 5, not the mean of 2/3 and 1."""
    records = [record(0, [[1, 1, 0], [0, 0, 0]]), record(1, [[1, 1], [1, 0]], "other")]
    accuracy = accuracy_of(series_of(records, tmp_path))
    assert [point.mean for point in accuracy["prompt"]] == [0.5, 0.0]
    assert [point.mean for point in accuracy["instruction"]] == [0.8, 0.2]
    first = accuracy["instruction"][0]
    assert (first.n, first.sd) == (2, None) and 0 < first.low < 2 / 3
    assert first.high == pytest.approx(1.0, abs=0.02)


def test_the_interval_of_instruction_accuracy_is_that_of_a_ratio(tmp_path):
    """Compared with the textbook's standard error of a ratio of means."""
    draws = np.random.default_rng(0)
    sizes = draws.integers(1, 4, size=400)
    rows = [(draws.random(size) < 0.7).astype(float) for size in sizes]
    records = [record(number, [row]) for number, row in enumerate(rows)]
    (point,) = accuracy_of(series_of(records, tmp_path))["instruction"]
    followed, totals = np.array([row.sum() for row in rows]), sizes
    share = followed.sum() / totals.sum()
    error = np.sqrt(((followed - share * totals) ** 2).sum()) / totals.sum()
    assert point.mean == pytest.approx(share)
    assert point.low == pytest.approx(share - 1.96 * error, abs=0.005)
    assert point.high == pytest.approx(share + 1.96 * error, abs=0.005)


def test_rules_with_separate_replies_have_no_accuracy(tmp_path):
    run = drift.run(Fruity(), SEPARATE, tmp_path / "run", SETTINGS)
    assert accuracy_of(read_series(run)[0]) is None
    assert summarise(run).to_json()["results"][0]["accuracy"] is None
    assert "Accuracy," not in report.table(run)
    separate = record(0, [[1, 1]])
    probes = tuple(probe.model_copy(update={"reply_of": None}) for probe in separate.probes)
    mixed = [separate.model_copy(update={"probes": probes}), record(1, [[1, 1]])]
    assert accuracy_of(series_of(mixed, tmp_path)) is None


def test_page_summary_and_terminal_show_both_accuracies(tmp_path):
    run = drift.run(Fruity(), suite_of(*SHARING_RULES), tmp_path / "run", SETTINGS)
    accuracy = summarise(run).to_json()["results"][0]["accuracy"]
    assert [point["mean"] for point in accuracy["prompt_level"]] == [1.0, 0.0, 0.0]
    assert [point["mean"] for point in accuracy["instruction_level"]] == [1.0, 0.666667, 0.333333]
    text = report.table(run)
    accuracy = "Accuracy, none, at round 1 and round 3:\n  prompt level: 1.00 ["
    assert accuracy in text
    page = report.write([run.folder], tmp_path / "report.html").read_text()
    assert 'id="accuracy"' in page and "Instruction level" in page
