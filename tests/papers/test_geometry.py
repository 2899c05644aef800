"""`holdfast geometry`: findings, figures and refusals, on a tiny model."""

import math

import numpy as np
import pytest
from page_outline import read_page
from scripted_model import Scripted
from short_drift import SUITE
from synthetic_run import conversation_of
from tiny import chat, model

from holdfast import drift
from holdfast.analysis.hidden_geometry import Geometry, effective_dimension, opening_angle
from holdfast.analysis.summary import write_geometry_summaries
from holdfast.chat.prompt import render
from holdfast.errors import ModelError
from holdfast.papers.li2024 import geometry
from holdfast.report.geometry_report import (
    geometry_lines,
    geometry_page,
    write_geometry_figures,
)

SMALL = drift.Settings(conversations=2, rounds=2, adoption=False)


@pytest.mark.slow
def test_a_study_reports_and_draws_its_findings(tmp_path):
    results = geometry.study(model(), SUITE, tmp_path / "out", SMALL)
    lines = geometry_lines(results, 2)
    text = (tmp_path / "out" / "geometry.json").read_text()
    assert results == Geometry.model_validate_json(text)
    weights = model().hf_model.get_input_embeddings().weight
    assert np.allclose(
        results.embedding_norms, weights.detach().norm(dim=-1).cpu().numpy(), atol=1e-5
    )
    assert [spread.round for spread in results.hidden_states] == [1, 2]
    for spread in results.hidden_states:
        assert all(1 <= dimension <= 48 for dimension in spread.dimension.values())
    assert any("Hidden states" in line for line in lines)
    files = write_geometry_figures(results, tmp_path / "out")
    names = [f"{name}.{kind}" for name in ("norms", "hidden_states") for kind in ("svg", "png")]
    assert [path.name for path in files] == names
    assert all(path.stat().st_size > 2000 for path in files)
    write_geometry_summaries(results, tmp_path / "out")
    path = tmp_path / "out" / "report.html"
    path.write_text(geometry_page(results, lines, tmp_path / "out"), encoding="utf-8")
    page = read_page(path)
    assert page.tags.count("img") == 2
    assert {"states", "norms", "about"} <= set(page.ids)
    assert (tmp_path / "out" / "dialogs" / "summary.json").is_file()


def test_tokens_are_attributed_to_their_speaker():
    tiny = model()
    dialog = (1, "user", "the river"), (1, "agent", "the old town"), (2, "user", "the river")
    turns = [{"round": round, "speaker": who, "text": text} for round, who, text in dialog]
    agent = {"id": "bot", "category": None, "system_prompt": "be the garden"}
    record = conversation_of(agent=agent, turns=turns)
    hidden, owners = geometry._read_dialog(tiny, record)
    assert hidden.shape == (3, len(owners), 48)
    prompt = render(chat("be the garden", "the river", "the old town", "the river"), tiny.tokenizer)
    texts = dict.fromkeys(owners, "")
    for token, owner in zip(prompt.token_ids, owners, strict=True):
        texts[owner] += tiny.tokenizer.decode([token])
    assert texts[0, "system"] == "be the garden"
    assert texts[1, "user"] == texts[2, "user"] == "the river"
    assert texts[1, "agent"] == "the old town"


def test_a_model_that_shows_no_embeddings_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"scripted.*embeddings"):
        geometry.study(Scripted(), SUITE, tmp_path, SMALL)


def test_dimension_and_angle_of_known_clouds():
    rng = np.random.default_rng(2)
    assert effective_dimension(np.eye(7)) == pytest.approx(7)
    line = np.outer(rng.random(9) + 1, rng.random(5))
    assert effective_dimension(line) == pytest.approx(1)
    ball = rng.standard_normal((20_000, 6))
    assert effective_dimension(ball) == pytest.approx(6, rel=0.01)
    turns = np.linspace(0, 2 * math.pi, 40, endpoint=False)
    ring = np.array([(math.cos(t), math.sin(t), 2.0) for t in turns])
    assert opening_angle(ring) == pytest.approx(math.atan(0.5))
