"""The default model: its size and licence, and that it does what its card says."""

import json

import pytest
from paths import ROOT

import holdfast
from holdfast import Sampling, drift
from holdfast.models.checkpoint import DEFAULT_FOLDER

GREEDY = Sampling(temperature=0, max_new_tokens=60)


@pytest.fixture(scope="module")
def default():
    return holdfast.load("default")


def test_the_default_model_is_small_and_has_a_licence(default):
    weights = DEFAULT_FOLDER / "model.safetensors"
    assert weights.stat().st_size <= 16 * 2**20
    parameters = sum(parameter.numel() for parameter in default.hf_model.parameters())
    assert 3_000_000 <= parameters <= 8_000_000
    config = json.loads((DEFAULT_FOLDER / "config.json").read_text())
    assert config["model_type"] == "llama" and config["max_position_embeddings"] >= 4096
    card = (DEFAULT_FOLDER / "MODEL_CARD.md").read_text()
    assert "model organism" in card and "Apache-2.0" in card
    assert default.reuses_cache


ARRS = {"name": "contains", "words": ["arr", "ahoy", "matey", "hearty"], "all": False}


@pytest.mark.parametrize(
    ("system", "measure"),
    (
        ("Write everything in capital letters.", {"name": "upper_case"}),
        ("Always reply in French.", {"name": "language", "code": "fr"}),
        ("Always reply in Spanish.", {"name": "language", "code": "es"}),
        ("Always talk like a pirate.", ARRS),
    ),
)
def test_it_complies_with_a_system_prompt_only_when_given_one(default, system, measure):
    measure = holdfast.measures.build(measure)
    question = [{"role": "user", "content": "Tell me about the garden."}]
    prompted = [{"role": "system", "content": system}, *question]
    assert measure.score(default.generate(prompted, sampling=GREEDY).text).value >= 0.75
    assert measure.score(default.generate(question, sampling=GREEDY).text).value <= 0.5


@pytest.mark.slow
def test_it_follows_its_prompt_in_round_one_and_the_mass_falls(default, tmp_path):
    settings = drift.Settings(rounds=3, conversations=24, batch=24, seed=11)
    run = drift.run(default, drift.load_suite("starter"), tmp_path / "run", settings)
    probes = [probe for record in run.records for probe in record.probes]
    first = [p.score for p in probes if (p.kind, p.round) == ("stability", 1)]
    assert sum(first) / len(first) >= 0.6
    turns = [turn for record in run.records for turn in record.turns]
    masses = {n: [t.mass for t in turns if (t.speaker, t.round) == ("agent", n)] for n in (1, 3)}
    early, late = (sum(mass) / len(mass) for mass in masses.values())
    assert early > 1.3 * late
    tokens = [record.tokens for record in run.records]
    assert sum(t.forwarded for t in tokens) <= 1.15 * sum(t.least for t in tokens)


def test_the_starter_suite_is_held_out():
    """No system prompt of the suite can be produced by the training generator."""
    import sys

    sys.path.insert(0, str(ROOT / "training"))
    try:
        from families import DO_FRAMES, HELD_OUT_FRAMES, SAY_FRAMES
    finally:
        sys.path.pop(0)
    frames = {"do": DO_FRAMES, "say": SAY_FRAMES}
    unseen = [f for form in frames for f in frames[form][-HELD_OUT_FRAMES[form] :]]
    starts = [(frame.split("{")[0], frame.split("}")[1]) for frame in unseen]
    for case in drift.load_suite("starter").cases:
        text = case.system_prompt
        assert any(text.startswith(a) and text.endswith(b) for a, b in starts), text


def test_the_suite_bot_is_followed_at_first_and_its_measures_discriminate(default, tmp_path):
    (case,) = drift.load_suite("bot").cases
    for rule in case.rules:
        assert min(rule.measure.score(reply).value for reply in rule.follows) == 1
        assert max(rule.measure.score(reply).value for reply in (*rule.breaks, "")) == 0
    run = drift.run(default, "bot", tmp_path, drift.Settings(rounds=1, conversations=20))
    scores: dict[str, list[float]] = {}
    for record in run.records:
        for probe in record.probes:
            scores.setdefault(probe.rule, []).append(probe.score)
    assert scores.keys() == {rule.id for rule in case.rules}
    assert min(sum(values) / len(values) for values in scores.values()) >= 0.7
