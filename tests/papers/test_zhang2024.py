"""The reproduction of PASTA: planted numbers, the smallest scale, and refusals."""

import html
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from page_outline import read_page
from refusals import refusal_in

from holdfast import tasks
from holdfast.analysis.statistics import SCORES, estimate
from holdfast.analysis.task_results import TaskScores
from holdfast.analysis.verdicts import CONTRADICTED, NOT_JUDGED, UNDECIDED
from holdfast.cli import main
from holdfast.methods import Ranking
from holdfast.papers.findings import Claim, claim_that
from holdfast.papers.zhang2024 import reproduction as zhang2024
from holdfast.papers.zhang2024.profiling import ContinuationSample, ReplySample
from holdfast.papers.zhang2024.profiling.profiling_samples import task_samples
from holdfast.papers.zhang2024.reproduction.comparisons import (
    RowClaim,
    best_less_worst,
    claim_of,
    judge_within_reach,
    share_of_best,
)
from holdfast.papers.zhang2024.reproduction.study import Study


def test_a_task_becomes_samples_with_its_emphasis_and_its_correct_answer():
    settings = tasks.Settings(samples=5, split="train")
    data = tasks.load_data([tasks.SYNTHETIC], settings)
    for name, task in tasks.CATALOGUE.items():
        draws = tasks.draw_samples(data, task, settings)
        for sample, item in zip(draws, task_samples(data, task, settings), strict=True):
            content = item.messages[0]["content"]
            assert content == sample.prompts[0]
            emphasised = {content[first:last] for _, first, last in item.emphasis}
            assert emphasised == set(sample.emphasis)
            assert isinstance(item, ContinuationSample if task.chooses else ReplySample)
            if isinstance(item, ContinuationSample):
                assert item.continuations[item.right] == sample.target
            else:
                assert item.score(sample.reply) == 1.0, name
                assert item.score("I do not know.") == 0.0, name


def test_picking_extremes_does_not_find_differences_in_noise():
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((400, 30))
    # picked and compared on the same samples, the difference would be far larger
    assert best_less_worst(noise).low < 0.1
    assert noise.mean(0).max() - noise.mean(0).min() > 0.15
    apart = noise + np.linspace(0, 1, 30)
    assert 0.7 < best_less_worst(apart).mean < 1.2


def test_the_best_number_of_heads_is_uncertain_if_scores_are_close():
    rng = np.random.default_rng(0)
    noise = rng.random((60, 3))
    clear = share_of_best(noise * 0.1 + [0.0, 0.5, 0.0], [2, 4, 16], 32)
    assert (clear.n, clear.mean, clear.low, clear.high) == (60, 0.125, 0.125, 0.125)
    blurred = share_of_best(noise, [2, 4, 16], 32)
    assert (blurred.low, blurred.high) == (2 / 32, 0.5)


def test_head_sets_of_every_strategy_and_the_smallest_k_that_shares_a_head(tmp_path):
    study = Study(zhang2024.Zhang2024Setup(None, tmp_path, zhang2024.SCALES["smallest"]))
    heads = [(0, head) for head in range(8)]
    orders = {"json": heads, "pronouns": heads, "bios": heads, "counterfact": heads[::-1]}
    study.__dict__["rankings"] = {name: Ranking(tuple(order)) for name, order in orders.items()}
    assert study.sizes == [2, 6]
    first, last = [heads[:2], heads[:6]], [heads[6:], heads[2:]]
    for strategy, task, expected in (
        ("multi-task", "json", [heads[2:6]]),
        ("task-agnostic", "counterfact", first),
        ("task-specific", "counterfact", last),
        ("union", "json", [heads[:2] + heads[6:], heads]),
    ):
        assert study.candidates(strategy, task) == [*map(frozenset, expected)]
    study.__dict__["sizes"] = [1, 2]  # too few for a common head
    assert study.candidates("multi-task", "json") == [frozenset(heads[3:5])]  # k = 5


@pytest.mark.slow
def test_the_smallest_scale_makes_every_table_and_figure_and_resumes(tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["reproduce", "zhang2024", "--scale", "smallest", "--out", str(out)]) == 0
    output = capsys.readouterr().out
    names = [f"Table {number}" for number in (1, 4, 5, 7, 11, 14)] + ["Figure 2", "Figure 3"]
    assert list(dict.fromkeys(re.findall(r"^((?:Table|Figure) \d+):", output, re.M))) == names
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "img" in read_page(out / "index.html").tags
    assert page.count("<section id=") == 8
    assert page.count("<table>") == 6
    assert page.count("data:image/png;base64,") == 8
    findings = json.loads((out / "findings.json").read_text())
    assert all((out / image).exists() for figure in findings for image in figure["images"])
    claims = [claim for figure in findings for claim in figure["claims"]]
    page_text = html.unescape(page)
    assert all(claim["evidence"] and claim["text"] in page_text for claim in claims)
    verdicts = {claim["verdict"] for claim in claims}
    assert UNDECIDED in verdicts <= {UNDECIDED, NOT_JUDGED}, "six samples say nothing"
    first = findings[0]["rows"]
    assert first[1][0] == "zero-shot"
    boost = "Boost, task-specific heads"
    names = {"PASTA, multi-task", "Boost, all heads", "split-softmax, the same heads", boost}
    assert names <= {row[0] for row in first}
    assert re.search(rf"{boost} less Boost, all heads [+-]", findings[0]["how"])
    assert all(len(row) == len(figure["rows"][0]) for figure in findings for row in figure["rows"])
    records = {path: path.stat().st_mtime_ns for path in out.rglob("records.jsonl")}
    assert main(["reproduce", "zhang2024", "--scale", "smallest", "--out", str(out)]) == 0
    assert capsys.readouterr().out == output
    assert {path: path.stat().st_mtime_ns for path in out.rglob("records.jsonl")} == records


def test_a_task_that_the_model_always_fails_is_not_judged():
    zeros = np.zeros((30, 4))
    claims = (Claim("it helps.", CONTRADICTED, "None of 30."),)
    (claim,) = judge_within_reach(claims, "json", zeros[:, 0], zeros)
    assert (claim.verdict, claim.text) == (NOT_JUDGED, "it helps.")
    assert claim.evidence.startswith("None of 30. ") and "scores 0 on json" in claim.evidence
    assert judge_within_reach(claims, "json", zeros, np.eye(30)) == claims, (
        "one head lifts one sample"
    )
    assert judge_within_reach(claims, "json", zeros[:10]) == claims, "ten samples show nothing"
    nothing = estimate(np.array([]), SCORES)
    assert claim_that("it helps.", nothing, 1, "Empty.").verdict == NOT_JUDGED


def test_a_row_excluded_for_its_fluency_is_named_in_the_evidence():
    def row(scores, fluency):
        n = len(scores)
        return TaskScores(
            "counterfact", "x", np.arange(n), {"efficacy": scores}, (), fluency, n, 0, 0
        )

    rows = {"zero-shot": row(np.zeros(30), 4.1), "PASTA": row(np.ones(30), 2.05)}
    study = SimpleNamespace(test_results={"counterfact": rows})
    claim = claim_of(study, RowClaim("it helps.", "PASTA", "zero-shot"))
    assert claim.verdict == NOT_JUDGED
    assert "PASTA is excluded" in claim.evidence and "fluency 2.05, under 3" in claim.evidence


@pytest.mark.slow
def test_running_one_task_leaves_claims_about_the_others_unjudged(tmp_path):
    out = tmp_path / "run"
    command = ["reproduce", "zhang2024", "--scale", "smallest", "--task", "counterfact"]
    assert main([*command, "--out", str(out)]) == 0
    figures = json.loads((out / "findings.json").read_text())
    verdicts = {
        f"{figure['kind']} {figure['number']}": [claim["verdict"] for claim in figure["claims"]]
        for figure in figures
    }
    assert verdicts["Table 4"] == [NOT_JUDGED] * 4
    assert verdicts["Table 11"] == verdicts["Table 14"] == [NOT_JUDGED]
    assert verdicts["Table 1"] == [UNDECIDED, UNDECIDED, NOT_JUDGED, *[UNDECIDED] * 3]
    assert "The task pronouns was not run." in (out / "index.html").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in figures[0]["rows"]}
    assert rows["PASTA, multi-task"] == rows["PASTA, task-specific"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--scale tiny", ["'tiny'", "small"]),
        ("--base default", ["--base", "zhang2024"]),
        ("--model http://localhost:9/v1 --endpoint-model far", ["endpoint", "local --model"]),
        ("--data nowhere.csv", ["nowhere.csv"]),
        ("--task jason", ["'jason'", "json"]),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(arguments, words, tmp_path, capsys):
    command = ["reproduce", "zhang2024", *arguments.split(), "--out", str(tmp_path / "run")]
    assert main(command) == 2
    message = refusal_in(capsys)
    assert all(word in message for word in words) and message.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_heads_are_profiled_on_a_task_given_by_name(tmp_path, capsys):
    out, few, none = (tmp_path / name for name in ("heads", "few", "none"))
    command = ["profile", "--task", "counterfact", "--top", "4", "--out"]
    too_few = [*command, str(few), "--count", "4", "--by", "accuracy"]
    assert main(too_few) == 1  # too few to detect a gain
    assert not (few / "heads.json").exists()
    capsys.readouterr()
    assert main([*command, str(out), "--count", "24", "--by", "probability"]) == 0
    assert "4 heads" in capsys.readouterr().out
    listed = json.loads((out / "heads.json").read_text())
    assert sum(len(heads) for layer, heads in listed.items() if layer != "made_for") == 4
    assert len(json.loads((out / "counterfact" / "profile.json").read_text())["ranking"]) == 32
    assert main(["profile", "--out", str(none)]) == 2
    assert "--task or --samples" in capsys.readouterr().err
    clash = tmp_path / "json.jsonl"
    row = {"messages": [{"role": "user", "content": "a *b*"}], "continuations": ["c"], "right": 0}
    clash.write_text(json.dumps(row) + "\n")
    clashing = ["profile", "--task", "json", "--samples", str(clash), "--out", str(none)]
    assert main(clashing) == 2
    assert "are called 'json'" in capsys.readouterr().err
