"""Broken replies, and what they cost a method that gains stability by producing them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from paths import ROOT
from synthetic_run import conversation_of

from holdfast.analysis.broken_replies import broken_share, is_broken, non_word_share
from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.choosing import pick
from holdfast.records.identity import CalibrationIdentity, PlanIdentity
from holdfast.report.calibration_sentences import answer
from holdfast.report.calibration_table import table

# from two models, most strongly steered, labelled by a reader; one rule was tuned on them
LABELLED = json.loads((ROOT / "tests" / "data" / "steered_replies.json").read_text("utf-8"))


def test_a_reader_agrees_on_what_is_broken():
    agreed = [reply["broken"] == is_broken(reply["text"]) for reply in LABELLED]
    assert len(agreed) == 107 and sum(agreed) >= 99
    # intact replies are seldom called broken
    assert sum(is_broken(reply["text"]) for reply in LABELLED if not reply["broken"]) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "My name is Alma Verhoeven, and I live near Scheveningen.",
        "The phosphorylation of guanosine is reversible.",
        "J'aime les châteaux de la Loire, n'est-ce pas ?",
        "Mae hi'n braf heddiw ac rydym yn mynd i'r traeth",  # Welsh, which has no list
        "ผมชอบกินข้าว",
        "Arr matey, avast ye scurvy dogs!",
        "My T-shirt had an X-ray print.",
        "42",
        "😀",
    ],
)
def test_names_rare_words_and_other_scripts_are_words(text):
    assert non_word_share(text) == 0 and not is_broken(text)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("A-B-l-m-o-n-y", 1.0),
        ("It is A-l-m-a here", 0.667),
        ("uncantio algo dimnche fribbit", 0.75),
        ("", 0.0),
    ],
)
def test_strung_letters_and_unknown_words_are_not_words(text, share):
    assert non_word_share(text) == pytest.approx(share, abs=0.001)


def test_only_replies_of_the_agent_count_towards_the_broken_share():
    dialog = ("user", ""), ("agent", "A-B-l-m-o-n-y"), ("agent", "Fine.")
    turns = [{"round": 1, "speaker": who, "text": text} for who, text in dialog]
    replies = {"reply": ""}, {"reply": "Good."}, {"reply": "", "reply_of": "first"}
    probes = [{"round": 1, "score": 1.0, **reply} for reply in replies]
    assert broken_share(conversation_of(turns=turns, probes=probes)) == 0.5


def calibration(broken_part):
    """A calibration whose one setting is more stable but breaks this share of its replies."""
    full, count = np.ones((80, 1)), 80
    points = np.full(count, 60.0)
    noise = np.tile([0.0, 0.02], 40)
    none = Candidate("none", None, "", full, 0.5 + noise, points, 0, np.zeros(count), noise + 1)
    spread = np.clip(broken_part + np.tile([-0.05, 0.05], 40), 0, 1)
    fix = Candidate("fix", 0, "1", full, 0.8 + noise[::-1], points, 0, spread, noise + 2)
    plan = PlanIdentity(conversations=80, draws=5)
    about = CalibrationIdentity(capability="knowledge", plan=plan)
    return Calibration((none, fix), (("fix", "strength"),), np.arange(count) % 2 == 1, about, 80)


def test_a_setting_that_breaks_replies_is_not_recommended():
    sound = pick(calibration(0.05), 10)
    assert sound.method == "fix" and sound.recommended
    wrecked = calibration(0.4)
    choice = pick(wrecked, 10)
    assert choice.method == "none" and not choice.recommended and not choice.none_fits
    assert "does not break" in answer(wrecked, choice)
    text = table(wrecked)
    assert "fix (+40 [+34, +43] points)" in text and "40%" in text
    assert f"{np.exp(2.01):.1f}" in text  # the perplexity


def test_old_calibrations_have_no_health():
    old = calibration(0.4)
    old = replace(old, candidates=tuple(replace(c, broken=None, nats=None) for c in old.candidates))
    assert pick(old, 10).method == "fix" and "Not recommended" not in table(old)
