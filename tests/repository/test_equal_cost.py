"""Fixes at equal cost: the lead of a setting, and questions about what was said."""

import random
import sys

import numpy as np
import pytest
from paths import ROOT
from synthetic_run import conversation_of

from holdfast import drift
from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.statistics import estimate
from holdfast.records.identity import CalibrationIdentity

BENCHMARKS = ROOT / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import equal_cost  # noqa: E402
import recall  # noqa: E402
from group_intervals import interval_over_groups  # noqa: E402

CONVERSATIONS = 40


def setting(name: str, sweep: int | None, stability: float, capability: float, noise=0.0):
    """A setting whose conversations vary together with those of the other settings."""
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 0.1, CONVERSATIONS)
    setting_noise = np.random.default_rng(1).normal(0, noise, CONVERSATIONS)
    scores = stability + shared + setting_noise, capability + 10 * shared
    return Candidate(name, sweep, "", np.zeros((CONVERSATIONS, 8)), *scores, 0)


NONE = setting("none", None, 0.7, 90)
MILD, STRONG = setting("a", 0, 0.8, 88), setting("a", 0, 0.9, 80)
DEAR = setting("b", 1, 0.75, 70)


def lead_of(candidate: Candidate) -> dict:
    settings = (NONE, MILD, STRONG, DEAR, candidate)
    names, halves = tuple((name, "x") for name in "abc"), np.zeros(CONVERSATIONS, bool)
    calibration = Calibration(settings, names, halves, CalibrationIdentity())
    everyone = range(CONVERSATIONS)
    return equal_cost.lead(calibration, candidate, [[MILD, STRONG], [DEAR]], 0.95, everyone)


@pytest.mark.parametrize(
    ("stability", "capability", "ahead"),
    [
        (0.8, 88, 0.0),  # a published setting itself
        (0.85, 84, 0.0),  # half-way between two
        (0.9, 84, 0.05),
        (0.8, 84, -0.05),
        (0.95, 60, 0.05),  # beyond the costliest, whose stability counts
        (0.75, 89, 0.0),  # between a setting and no fix
        (0.7, 95, 0.0),  # free, without a gain
    ],
)
def test_a_lead_is_measured_against_the_mixture_of_equal_cost(stability, capability, ahead):
    lead = lead_of(setting("c", 2, stability, capability))
    assert lead["mean"] == pytest.approx(ahead, abs=1e-4)
    assert lead["low"] == pytest.approx(ahead, abs=1e-3), "all resamples shift alike"
    assert lead["high"] == pytest.approx(ahead, abs=1e-3)


def test_the_interval_of_a_noisy_lead_contains_it():
    candidate = setting("c", 2, 0.9, 84, noise=0.1)
    lead = lead_of(candidate)
    expected = 0.05 + np.mean(candidate.stability - setting("c", 2, 0.9, 84).stability)
    assert lead["mean"] == pytest.approx(expected, abs=1e-4)
    assert lead["low"] < lead["mean"] < lead["high"] and lead["high"] - lead["low"] > 0.02


def test_groups_are_resampled_whole():
    rng = np.random.default_rng(0)
    values = rng.normal(0.05, 0.1, CONVERSATIONS)
    alone = interval_over_groups(values, range(CONVERSATIONS))
    total = estimate(values, None)
    assert alone["mean"] == pytest.approx(total.mean, abs=1e-4)
    assert [alone["low"], alone["high"]] == pytest.approx([total.low, total.high], abs=1e-4)
    repeated = np.repeat(values, 4)
    groups = np.repeat(np.arange(CONVERSATIONS), 4).tolist()
    grouped = interval_over_groups(repeated, groups)
    assert grouped == alone, "four conversations that are alike tell no more than one"
    assert interval_over_groups(repeated, range(len(repeated)))["low"] > alone["low"]
    uneven = np.array([1.0, 1.0, 1.0, 0.0])
    assert interval_over_groups(uneven, list("aaab"))["mean"] == 0.75
    assert interval_over_groups(np.array([1.0, np.nan, 0.0]), list("aab"))["mean"] == 0.5


def test_stages_of_many_prompts_share_no_family():
    explore, confirm = (equal_cost.STAGES[name] for name in ("explore-many", "confirm-many"))
    first, later = (equal_cost.prompts_of(stage).cases for stage in (explore, confirm))
    families = [{equal_cost.family_of(case.id) for case in cases} for cases in (first, later)]
    assert not families[0] & families[1] and list(map(len, families)) == [33, 33]
    assert not set(explore.seeds) & set(confirm.seeds)
    chose = {case.id for case in drift.load_suite("starter").cases[::2]}
    assert not chose & {case.id for case in later}, "the prompts that chose heads are left out"


def test_stages_share_neither_prompts_nor_seeds():
    explore, confirm = equal_cost.STAGES["explore"], equal_cost.STAGES["confirm"]
    families = [equal_cost.prompts_of(stage).cases for stage in (explore, confirm)]
    assert not {case.id for case in families[0]} & {case.id for case in families[1]}
    prompts = [{case.system_prompt for case in cases} for cases in families]
    assert not prompts[0] & prompts[1]
    assert not set(explore.seeds) & set(confirm.seeds)
    assert [len(cases) for cases in families] == [explore.prompts, confirm.prompts]


def test_recall_asks_for_a_fact_mentioned_earlier_in_the_chat():
    turns = [
        {"round": number, "speaker": speaker, "text": f"{speaker} {number}"}
        for number in range(1, 6)
        for speaker in ("user", "agent")
    ]
    record = conversation_of(turns=turns)
    positions = set()
    for seed in range(30):
        chat, replies, answer = recall.recall_question(record, random.Random(seed))
        mention = next(at for at, turn in enumerate(chat) if " is called " in turn["content"])
        positions.add(mention)
        name = replies[answer].split()[0]
        assert chat[mention]["content"].endswith(f" is called {name}.")
        assert [turn["role"] for turn in chat] == ["system", *["user", "assistant"] * 4, "user"]
        assert all(reply.split()[0] in chat[-1]["content"] for reply in replies)
        assert len(set(replies)) == 4
        assert "agent 3" in chat[-2]["content"] or mention == len(chat) - 3
        assert not any("4" in turn["content"] for turn in chat[1:]), "asked as the fourth turn"
    assert positions == {1, 3, 5, 7}
