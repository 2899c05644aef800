"""Scores of replies to the tasks of PASTA, checked by hand."""

import json
import math
import random

import pytest

from holdfast.analysis.task_results import MIN_FLUENCY
from holdfast.papers.zhang2024 import catalogue, data
from holdfast.papers.zhang2024.catalogue import BIOS, COUNTERFACT, JSON, PRONOUNS

EXACT = 1e-12  # both sides are float64 sums of a few dozen terms


JSON_REPLIES = [  # reply, valid JSON in it, "nurse" as the occupation in it
    ('{"name": "Ann", "occupation": "nurse"}', 1, 1),
    ('Sure! {"name": "Ann", "occupation": "Nurse"}\nI hope this helps. {"name": ', 1, 1),
    ('{"name": "Ann \\"Annie\\" Lee", "occupation": "nurse"}', 1, 1),
    ('{"name": "Ann "Annie" Lee", "occupation": "nurse"}', 0, 0),
    ("{'name': 'Ann', 'occupation': 'nurse'}", 0, 0),
    ("{“name”: “Ann”, “occupation”: “nurse”}", 0, 0),
    ('{"name": "Ann", "occupation": "nurse",}', 0, 0),
    ('{"name": "Ann", "occupation": "nurse"', 0, 0),
    ('{"name": , "occupation": , }', 0, 0),
    ('{"name": "nurse", "occupation": "chef"}', 1, 0),
    ('{"name": "Ann", "occupation": "nursery owner"}', 1, 0),
    ('{"Name": "Ann", "Occupation": "head nurse"}', 1, 1),
    ('{"job": "nurse"}', 1, 1),
    ('{"person": {"name": "Ann", "occupation": ["chef", "nurse"]}}', 1, 1),
    ('{name} {"occupation": "nurse"}', 1, 1),
    ('{"occupation": "chef"} {"occupation": "nurse"}', 1, 0),
    ('{"occupation": NaN}', 0, 0),
    ('["nurse"]', 0, 0),
    ("{}", 1, 0),
    ("Ann is a nurse.", 0, 0),
    ("", 0, 0),
]
PRONOUN_REPLIES = [  # reply, she and he changed, all changed
    ("Ann is a nurse. They like their cat.", 1, 1),
    ("They're a nurse, and they've been one for years.", 1, 1),
    ("Ann is a nurse. They like her cat.", 1, 0),
    ("They like him, and the house is hers.", 1, 0),
    ("They taught himself chess.", 1, 0),
    ("They taught themselves chess; the house is theirs, not Sheila's or the heron's.", 1, 1),
    ("They like it. She's a nurse.", 0, 0),
    ("They like it, but HE does not.", 0, 0),
    ("They like it. He'd say so.", 0, 0),
    ("He likes them.", 0, 0),
    ("Their cat is here.", 0, 0),
    ("Ann is a nurse.", 0, 0),
    ("", 0, 0),
]


def json_by_substrings(reply: str) -> bool:
    """Whether the standard library parses some substring from a "{" to a "}"."""
    ends = [i for i, c in enumerate(reply) if c == "}"]
    for start in (i for i, c in enumerate(reply) if c == "{"):
        for end in ends:
            try:
                json.loads(reply[start : end + 1], parse_constant=lambda name: 1 / 0)
            except (ValueError, ZeroDivisionError):
                continue
            return True
    return False


def entropy_by_hand(tokens: list[str]) -> float:
    """(2/3 H2 + 4/3 H3) / 2 in bits, each n-gram's probability counted one by one."""
    total = 0.0
    for n, weight in ((2, 2 / 3), (3, 4 / 3)):
        grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        total += weight * -sum(
            grams.count(g) / len(grams) * math.log(grams.count(g) / len(grams)) / math.log(2)
            for g in set(grams)
        )
    return total / 2


@pytest.mark.parametrize(("reply", "valid", "right"), JSON_REPLIES)
def test_json_replies_scored_by_hand(reply, valid, right):
    ann = data.Biography("Ann", "nurse", "Ann is a nurse.", "Ann is a nurse.", "")
    sample = JSON.ask(ann, "original")
    assert JSON.score(sample, reply) == {"format": valid, "prediction": right}
    assert json_by_substrings(reply) == bool(valid)


def test_json_is_found_if_and_only_if_a_substring_parses():
    rng = random.Random(0)
    pieces = ('{"a": ', '"b": ', ": ", ", ", " ", "null", "\\", *'{}"1[]x', "{}")
    replies = ["".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(600)]
    has_json = [catalogue.first_object(reply) is not None for reply in replies]
    assert has_json == [json_by_substrings(reply) for reply in replies] and 20 < sum(has_json) < 580
    assert catalogue.first_object('{"a":' * 100_000) is None


def test_an_occupation_of_several_words_matches_only_as_a_whole():
    assert catalogue.holds_target({"occupation": "Senior Software_Engineer"}, "software engineer")
    assert not catalogue.holds_target({"occupation": "engineer of software"}, "software engineer")
    assert not catalogue.holds_target({"occupation": "adjunct"}, "dj")
    assert not catalogue.holds_target({"occupation": None}, "dj")


@pytest.mark.parametrize(("reply", "changed", "every"), PRONOUN_REPLIES)
def test_pronoun_replies_scored_by_hand(reply, changed, every):
    assert PRONOUNS.score(None, reply) == {"accuracy": changed, "all changed": every}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She sold her house and he saw her.", "They sold their house and they saw them."),
        ("The cat is hers. Her cat knows him.", "The cat is theirs. Their cat knows them."),
        ("He taught himself; his dog saw her.", "They taught themselves; their dog saw them."),
        ("They saw the heron there, in Sheffield.", "They saw the heron there, in Sheffield."),
    ],
)
def test_pronouns_are_changed_in_any_text(text, expected):
    assert data.change_pronouns(text) == expected


def test_fluency_is_the_weighted_entropy_of_n_grams():
    words = "the old town is far from the river and the garden is far from the old town".split()
    assert catalogue.fluency(" ".join(words)) == pytest.approx(entropy_by_hand(words), abs=EXACT)
    marks = entropy_by_hand("They're here , aren't they ? They're here , aren't they ?".split())
    repeated = catalogue.fluency("They're here, aren't they? They're here, aren't they?")
    assert repeated == pytest.approx(marks, abs=EXACT)
    assert catalogue.fluency("no " * 50) == 0
    assert catalogue.fluency("one two three four five six seven eight nine") is None
    ten = catalogue.fluency("one two three four five six seven eight nine ten")
    # all different: log2 of 9 bigrams and of 8 trigrams
    assert ten == pytest.approx((2 / 3 * math.log2(9) + 4 / 3 * 3) / 2, abs=EXACT)
    assert ten > MIN_FLUENCY


def test_choices_scored_by_hand():
    person = data.Biography("Ann", "nurse", "Ann is a nurse.", "Ann is a nurse. She likes tea.", "")
    sample = BIOS.ask(person, "original", ("chef", "judge", "nurse"))
    assert BIOS.score(sample, [(-3.0, -9.0, -2.5)]) == {"accuracy": 1}
    assert BIOS.score(sample, [(-2.0, -9.0, -2.5)]) == {"accuracy": 0}
    other_prompts = ("The instrument of Ann is the", "Ann is heard on the")
    fact = data.ChangedFact("Ann", "{} plays the", "harp", "flute", other_prompts)
    sample = COUNTERFACT.ask(fact, "original")
    scores = COUNTERFACT.score(sample, [(-1.0, -2.0), (-2.0, -1.0), (-3.0, -4.0)])
    assert scores == {"efficacy": 1, "paraphrase": 0.5}
    assert COUNTERFACT.score(sample, [(-1.0, -1.0)]) == {"efficacy": 0}
