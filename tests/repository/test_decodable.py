"""Predicting lost probes: states equal those of whole passes, and AUCs are for unseen families."""

import sys

import numpy as np
import pytest
import torch
from paths import ROOT

import holdfast
from holdfast.records import Conversation

sys.path.insert(0, str(ROOT / "benchmarks"))
import decodable
from probe_states import ProbeTable, read_states
from window import history

FAMILIES, ROUNDS, SIZE = 30, 6, 8


def test_states_read_from_a_shared_cache_equal_those_of_a_whole_pass():
    model = holdfast.load("default")
    texts = ("Hello.", "Hi there!", "What is new?", "Nothing much.")
    speakers = ("user", "agent")
    person = {"id": "a", "category": None, "system_prompt": "Answer in Spanish."}
    turns = [
        {"round": n // 2 + 1, "speaker": speakers[n % 2], "text": text, "stop_reason": "stop"}
        for n, text in enumerate(texts)
    ]
    probe = {"kind": "stability", "probe": 0, "reply": "", "score": 1.0, "reason": ""}
    probes = [{**probe, "round": number, "question": "Where do you live?"} for number in (1, 2, 3)]
    fields = {"method": "none", "conversation": 0, "agent": person, "user": person}
    record = Conversation.model_validate({**fields, "turns": turns, "probes": probes})
    data = read_states(model, record)
    for index, probe in enumerate(record.probes):
        question = {"role": "user", "content": probe.question}
        chat = [*history(record, probe.round - 1), question]
        encoded = holdfast.encode_chats([chat], model.tokenizer)
        span = encoded.span_mask
        with torch.inference_mode(), holdfast.steering(model, span, [], trace=True) as steered:
            hidden = model.hf_model(**encoded.inputs, output_hidden_states=True).hidden_states
        mass = steered.traces[0].mass[:, :, -1].flatten()
        np.testing.assert_allclose(data.head_mass[index], mass, atol=1e-6)
        for row, layer in enumerate((1, 3, 4)):
            np.testing.assert_allclose(data.states[index, row], hidden[layer][0, -1], atol=1e-4)
            expected = hidden[layer][0, span[0]].mean(0)
            np.testing.assert_allclose(data.prompt[index, row], expected, atol=1e-4)


@pytest.mark.parametrize("signal", ["outcome", "category", "nothing"])
def test_a_regression_predicts_for_unseen_families_what_the_states_encode(signal):
    rng = np.random.default_rng(0)
    family = np.repeat(np.arange(FAMILIES), ROUNDS)
    category = family % 2
    outcomes = rng.random(len(family)) < np.where(category, 0.8, 0.3)
    values = {"outcome": outcomes, "category": category, "nothing": np.zeros(len(family))}[signal]
    states = np.zeros((len(family), 1, SIZE))
    states[:, 0, 0] = values
    if signal == "nothing":
        states = rng.normal(size=states.shape)
    table = ProbeTable(
        states=states,
        prompt=rng.normal(size=(FAMILIES, 1, SIZE))[family],
        head_mass=rng.random((len(family), 2)),
        turn_mass=rng.random(len(family)),
        before=rng.random(len(family)),
        kept=outcomes,
        round=np.tile(np.arange(2, ROUNDS + 2), FAMILIES),
        id=np.char.add("name ", family.astype(str)),
        family=np.char.add("name ", family.astype(str)),
        conversation=family.astype(str),
        category=category.astype(str),
    )
    result = decodable.compare(table, "family")["predictors"]["outcome"]
    every, within = result["auc"], result["auc_same_category_and_round"]
    if signal == "outcome":
        assert every["mean"] == within["mean"] == 1
    elif signal == "category":
        assert every["low"] > 0.6
        assert within["low"] == within["mean"] == within["high"] == 0.5
    else:
        assert every["low"] < 0.5 < every["high"]
        assert result["less"]["category and round"]["high"] < 0
