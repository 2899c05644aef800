"""Reproducing a paper: verdicts on planted numbers, the smallest scale, and refusals."""

import html
import json
import re

import numpy as np
import pytest
from page_outline import read_page
from refusals import refusal_in

from holdfast.analysis.statistics import DIFFERENCES, estimate
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED
from holdfast.cli import main
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, publish


def test_a_verdict_needs_an_interval_on_one_side_of_zero():
    rng = np.random.default_rng(0)
    falls = -0.3 + 0.1 * rng.standard_normal(50)
    whole, some = estimate(falls, DIFFERENCES), estimate(falls[:3], DIFFERENCES)
    for sign, verdict in ((-1, SUPPORTED), (+1, CONTRADICTED)):
        assert claim_that("it falls.", whole, sign, "Change:").verdict == verdict
    few = claim_that("it falls.", some, -1, "Change:")
    expected = f"Change: {in_words(some)}."
    assert few.verdict == UNDECIDED
    assert few.evidence.startswith(expected) and few.evidence.endswith("n = 3, fewer than 20.")
    assert re.fullmatch(r"-0\.\d{3} \[-0\.\d{3}, -0\.\d{3}\] \(n = 50\)", in_words(whole))


def test_no_text_of_a_finding_becomes_markup(tmp_path):
    evil = "</script><script>window.hacked = 1</script><img src=x onerror=alert(1)>\"'"
    (tmp_path / "x.png").write_bytes(b"\x89PNG")
    claims = (Claim(evil, SUPPORTED, evil), Claim("it falls", UNDECIDED, "-0.5"))
    rows = ((evil, "a"), (evil, evil))
    figures = [Figure("3", evil, evil, (tmp_path / "x.png",), claims, rows=rows)]
    out = publish(figures, evil, [evil], tmp_path, lambda line: None)
    page = read_page(out)
    assert page.tags.count("img") == 1 and "figure-3" in page.ids
    text = out.read_text(encoding="utf-8")
    assert "1 supported, 1 undecided" in text and "cannot tell" in text


@pytest.mark.slow
def test_the_smallest_scale_makes_every_figure_and_resumes(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["reproduce", "li2024", "--scale", "smallest", "--out", str(out)]) == 0
    output = capsys.readouterr().out
    assert {number for number in re.findall(r"Figure (\d)", output)} == set("3456789")
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "img" in read_page(out / "index.html").tags
    # Figure 8 needs a base model
    assert page.count("<section id=") == 7 and page.count("data:image/png;base64,") == 6
    assert "No base model" in page
    findings = json.loads((out / "findings.json").read_text())
    assert [figure["number"] for figure in findings] == list("3456789")
    claims = [(figure["number"], claim) for figure in findings for claim in figure["claims"]]
    # a handful of conversations decides nothing; the norms of all embeddings are not a sample
    assert {number for number, claim in claims if claim["verdict"] != UNDECIDED} <= {"7"}
    assert all((out / image).exists() for figure in findings for image in figure["images"])
    page_text = html.unescape(page)
    assert all(claim["evidence"] and claim["text"] in page_text for _, claim in claims)
    records = {path: path.stat().st_mtime_ns for path in out.rglob("records.jsonl")}
    assert len(records) == 5  # Figure 9 reuses the dialogs of Figure 3
    assert main(["reproduce", "li2024", "--scale", "smallest", "--out", str(out)]) == 0
    assert capsys.readouterr().out == output
    assert {path: path.stat().st_mtime_ns for path in out.rglob("records.jsonl")} == records


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--scale tiny", ["'tiny'", "small"]),
        ("--base default", ["default", "base"]),
        ("--model http://localhost:9/v1 --endpoint-model far", ["endpoint", "--endpoint"]),
        ("--capability chess", ["'chess'", "knowledge"]),
    ],
)
def test_an_impossible_reproduction_is_refused_in_one_sentence(arguments, words, tmp_path, capsys):
    assert main(["reproduce", "li2024", *arguments.split(), "--out", str(tmp_path / "run")]) == 2
    message = refusal_in(capsys)
    assert all(word in message for word in words) and message.count("\n") == 1
    assert not (tmp_path / "run").exists()
