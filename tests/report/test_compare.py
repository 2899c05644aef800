"""`holdfast compare`: what differs, and differences no louder than their intervals."""

import itertools
import json
import random
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from browsing import TEXT_COLOURS, js, look, needs_browser, open_browser, open_details, set_screen
from fast_set import only_fast
from paths import ROOT
from synthetic_run import conversation_of, write_run

from holdfast.analysis.comparison_limits import methods_alone
from holdfast.analysis.run_comparison import compare_folders
from holdfast.analysis.statistics import paired_difference, unpaired_difference
from holdfast.analysis.verdicts import verdict_on
from holdfast.cli import main
from holdfast.errors import HoldfastError, RecordsError, UsageError
from holdfast.records import open_run
from holdfast.records.comparison_summary import ComparisonSummary
from holdfast.report.compare_page import comparison_page, comparison_summary
from holdfast.report.compare_sentences import compare_title
from holdfast.report.compare_tables import compare_markdown, compare_text

browser = pytest.fixture(scope="module")(open_browser)
RULES = ("signs", "brief")


def write(
    folder,
    keeps,
    *,
    conversations=40,
    rounds=3,
    seed=0,
    starters=0,
    model="small",
    agent="bot",
    rules=RULES,
    kinds=None,
    judge=None,
    question="What?",
    prompt="Be brief.",
    settings=None,
    method="none",
    planned=None,
    versions=None,
    dtype=None,
):
    """A run in which each rule is kept with a given chance; pairs begin with the same words.

    Args:
        keeps: the chance for each rule.
        starters: the number of the first of the words that conversations begin with.
        planned: the conversations of the settings, if the run has not held all of them.
    """
    protocol = {"rounds": rounds, "conversations": planned or conversations, "seed": seed}
    protocol |= {"probe_at": "in-place"} | (settings or {})
    identity = {"model": model, "suite": "mine", "methods": [method], "settings": protocol}
    about = {"command": "drift", "created": "2026-11-21T03:10:00+00:00"}
    about |= {"versions": versions or {"holdfast": "0.3.0"}, "dtype": dtype}
    probe_fields = {"question": question} | ({"judge": judge} if judge else {})
    person = {"id": agent, "category": "rules", "system_prompt": prompt}
    with open_run(folder, identity, about) as run:
        for number in range(conversations):
            draw = random.Random(f"{number} {seed}")
            probes = []
            for round_number, rule in itertools.product(range(1, rounds + 1), rules):
                kind = {"rule_kind": kinds[rule]} if kinds else {}
                score = float(draw.random() < keeps[rule])
                probe = {"round": round_number, "rule": rule, "score": score}
                probes.append({**probe, **kind, **probe_fields})
            turn = {"round": 1, "speaker": "user", "text": f"Hello {number + starters}"}
            run.append(
                conversation_of(
                    method=method, conversation=number, agent=person, turns=[turn], probes=probes
                )
            )
    return folder


def equal(value=0.5):
    return dict.fromkeys(RULES, value)


def overall(comparison):
    return comparison.methods[0].overall


# Pairs and intervals


def test_conversations_that_began_alike_are_pairs(tmp_path):
    old = write(tmp_path / "old", {"signs": 0.9, "brief": 0.9})
    new = write(tmp_path / "new", {"signs": 0.9, "brief": 0.3}, model="large")
    compared = compare_folders([old, new])
    (item,) = compared.methods
    assert (item.pairs, item.rounds, item.prompts) == (40, (1, 2, 3), 1)
    assert [row.group for row in item.rows] == ["", "bot, signs", "bot, brief"]
    signs, brief = item.of("rule")
    assert signs.over_rounds.mean == 0 and signs.over_rounds.sign == 0
    assert brief.over_rounds.sign == -1
    assert overall(compared).over_rounds.sign == -1
    assert compared.causes(item) == ["model"]
    assert compare_title(compared).startswith("new keeps its prompt worse than old on this prompt")
    # the pairs are those of the same number, and the statistics those of the rest of the code
    scores = [
        np.array(
            [np.mean([probe.score for probe in record.probes]) for record in run.conversations]
        )
        for run in compared.runs
    ]
    expected = paired_difference(scores[1], scores[0], error=0.04)
    assert overall(compared).over_rounds == verdict_on(expected)


@pytest.mark.parametrize("change", [{"seed": 1}, {"starters": 500}])
def test_conversations_that_did_not_begin_alike_are_compared_as_two_samples(tmp_path, change):
    old = write(tmp_path / "old", equal(0.8))
    new = write(tmp_path / "new", equal(0.4), **change)
    compared = compare_folders([old, new])
    assert compared.methods[0].pairs == 0
    assert any("did not begin alike" in line for line in compared.limits)
    scores = [
        np.array([np.mean([p.score for p in record.probes]) for record in run.conversations])
        for run in compared.runs
    ]
    expected = unpaired_difference(scores[1], scores[0], error=0.04)
    assert overall(compared).over_rounds == verdict_on(expected)
    assert overall(compared).over_rounds.sign == -1


def test_the_order_of_records_does_not_change_the_pairs(tmp_path):
    """A run with several workers writes its records in any order."""
    old = write(tmp_path / "old", equal(0.8))
    new = write(tmp_path / "new", equal(0.5))
    expected = overall(compare_folders([old, new])).over_rounds
    lines = (new / "records.jsonl").read_bytes().splitlines(keepends=True)
    (new / "records.jsonl").write_bytes(b"".join(reversed(lines)))
    assert overall(compare_folders([old, new])).over_rounds == expected


def test_few_conversations_have_no_verdict(tmp_path):
    old = write(tmp_path / "old", equal(1.0), conversations=12)
    new = write(tmp_path / "new", equal(0.0), conversations=12)
    compared = compare_folders([old, new])
    row = overall(compared)
    assert row.over_rounds.mean == -1 and row.over_rounds.sign == 0
    assert compare_title(compared).startswith("Cannot tell whether new or old")


@pytest.mark.slow
def test_two_equal_models_are_rarely_called_different(tmp_path):
    """Of a family of rules, one is wrongly called different in at most 5% of comparisons."""
    rules = tuple(f"rule-{number}" for number in range(8))
    wrong = tried = 0
    for trial in range(60):
        folders = [
            write(
                tmp_path / f"{trial}-{side}",
                dict.fromkeys(rules, 0.6),
                conversations=24,
                rounds=1,
                rules=rules,
                seed=2 * trial + side,
            )
            for side in (0, 1)
        ]
        (item,) = compare_folders(folders).methods
        tried += 1
        wrong += any(row.over_rounds.sign for row in item.of("rule"))
    assert wrong / tried <= 0.05 + 2.33 * (0.05 * 0.95 / tried) ** 0.5


def test_a_rule_significant_only_on_its_own_interval_has_no_verdict(tmp_path):
    """The verdict on one of many rules needs a wider interval than is printed."""
    rules = tuple(f"rule-{number}" for number in range(12))
    keeps = {**dict.fromkeys(rules, 1.0), "rule-3": 0.8}
    old = write(tmp_path / "old", dict.fromkeys(rules, 1.0), rules=rules, rounds=1)
    new = write(tmp_path / "new", keeps, rules=rules, rounds=1)
    (item,) = compare_folders([old, new]).methods
    (row,) = [row for row in item.rows if row.group == "bot, rule-3"]
    assert row.over_rounds.excludes_zero
    assert row.over_rounds.sign == 0
    assert row.over_rounds.why.startswith("one of 24 comparisons")


def test_the_same_run_twice_shows_no_difference(tmp_path):
    old = write(tmp_path / "old", equal())
    shutil.copytree(old, tmp_path / "new")
    compared = compare_folders([old, tmp_path / "new"])
    assert compared.contrasts == () and compared.causes(compared.methods[0]) == []
    assert "none of 40 differ" in compare_title(compared)


# Rows, and the notes below a table


def test_a_kind_that_repeats_another_row_is_neither_shown_nor_counted(tmp_path):
    rules = ("signs", "greets", "brief", "polite")
    chances = dict.fromkeys(rules, 0.5)
    kinds = {"signs": "closing", "greets": "opening", "brief": "format", "polite": "format"}
    folders = [
        write(tmp_path / name, chances, rules=rules, kinds=kinds, rounds=1, seed=seed)
        for seed, name in enumerate(("old", "new"))
    ]
    (item,) = compare_folders(folders).methods
    assert [row.group for row in item.of("kind")] == ["format"]
    folders = [
        write(tmp_path / name, chances, rules=rules, kinds=dict.fromkeys(rules, "format"))
        for name in ("a", "b")
    ]
    (item,) = compare_folders(folders).methods
    assert item.of("kind") == []  # it has all rules
    keeps = {**dict.fromkeys(rules, 1.0), "greets": 0.82}
    folders = [
        write(tmp_path / name, chances, rules=rules, kinds=kinds, rounds=1)
        for name, chances in (("before", dict.fromkeys(rules, 1.0)), ("now", keeps))
    ]
    (item,) = compare_folders(folders).methods
    (row,) = [row for row in item.rows if row.group == "bot, greets"]
    assert row.over_rounds.why.startswith("one of 10 comparisons")  # 4 rules and 1 kind, twice


def test_each_note_below_a_table_is_marked_in_the_rows_that_it_explains(tmp_path):
    rules = tuple(f"rule-{number}" for number in range(12))
    keeps = {**dict.fromkeys(rules, 1.0), "rule-3": 0.8}
    old = write(tmp_path / "old", dict.fromkeys(rules, 1.0), rules=rules, rounds=1)
    new = write(tmp_path / "new", keeps, rules=rules, rounds=1)
    compared = compare_folders([old, new])
    note = "cannot tell: one of 24 comparisons needs a wider interval, and that includes 0"
    for text in (compare_text(compared), compare_markdown(compared)):
        notes = [line for line in text.splitlines() if "wider interval" in line]
        (mark,) = [line.split()[0] for line in notes if line.strip().endswith(note)]
        before, after = text.replace("\n    ", " ").split(f"cannot tell {mark}", 1)
        assert before.splitlines()[-1].lstrip("| ").startswith("bot, rule-3")
        assert f"cannot tell {mark}" in after.splitlines()[0]  # of the last round
        assert after.count(f"cannot tell {mark}") == 1
    (item,) = compared.methods
    reasons = {row.group: row.over_rounds.why for row in item.rows}
    assert "wider interval, [" in reasons["bot, rule-3"]


def test_rules_are_aligned_by_id_kind_and_judge(tmp_path):
    three = (*RULES, "polite")
    chances = dict.fromkeys(three, 0.5)
    kinds = {"signs": "closing", "brief": "length", "polite": "tone"}
    old = write(tmp_path / "old", chances, rules=three, kinds=kinds)
    new = write(tmp_path / "new", chances, kinds={**kinds, "brief": "format"})
    compared = compare_folders([old, new])
    assert [row.group for row in compared.methods[0].rows] == [""]  # of the one rule left
    limits = " ".join(compared.limits)
    assert "bot, brief" in limits and "Only old has a score of bot, polite" in limits
    judged_run = write(tmp_path / "judged", equal(), judge="large")
    with pytest.raises(RecordsError):
        compare_folders([write(tmp_path / "plain", equal()), judged_run])


def test_only_shared_rounds_count(tmp_path):
    old, new = (
        write(tmp_path / "old", equal(), rounds=3),
        write(tmp_path / "new", equal(), rounds=5),
    )
    compared = compare_folders([old, new])
    assert compared.methods[0].rounds == (1, 2, 3)
    assert any("Rounds after 3 are only in new" in line for line in compared.limits)


@pytest.mark.parametrize(
    ("alone", "message"),
    [
        (["repair"], "Only b has repair, which is not compared."),
        (["repair", "hold"], "Only b has repair and hold, which are not compared."),
    ],
)
def test_methods_that_one_run_has_alone_are_named(alone, message):
    first, run = (
        SimpleNamespace(label=label, methods=("none", *methods))
        for label, methods in (("a", ()), ("b", alone))
    )
    assert methods_alone(first, run) == [message]


# Other runs


def test_what_differs_is_listed_with_its_cause(tmp_path):
    old = write(tmp_path / "old", equal())
    changes = {"settings": {"sampling": {"temperature": 0.5}}, "prompt": "Be very brief."}
    new = write(tmp_path / "new", equal(), model="large", question="Which?", **changes)
    compared = compare_folders([old, new])
    contrasts = {item.name: item.values for item in compared.contrasts}
    assert contrasts["model"] == ("small", "large")
    assert contrasts["settings.sampling.temperature"] == ("–", "0.5")
    assert contrasts["prompt of bot"] == ("Be brief.", "Be very brief.")
    assert compared.causes(compared.methods[0]) == ["model", "temperature", "prompts"]
    assert any("different questions" in line for line in compared.limits)
    assert "cannot be put down to one of them" in " ".join(compare_text(compared).split())


def test_versions_of_later_runs_alone_are_listed_last(tmp_path):
    old = write(tmp_path / "old", equal(), dtype="float32")
    versions = {"holdfast": "0.4.0", "peft": "0.18.0"}
    new = write(tmp_path / "new", equal(), dtype="bfloat16", versions=versions)
    contrasts = [(item.name, item.values) for item in compare_folders([old, new]).contrasts]
    assert contrasts == [
        ("versions.holdfast", ("0.3.0", "0.4.0")),
        ("dtype", ("float32", "bfloat16")),
        ("versions.peft", ("–", "0.18.0")),
    ]


def test_an_unfinished_run_is_compared_and_reported_as_unfinished(tmp_path):
    old = write(tmp_path / "old", equal())
    new = write(tmp_path / "new", equal(), conversations=30, planned=40)
    compared = compare_folders([old, new])
    assert compared.methods[0].pairs == 30
    assert any(line.startswith("new is not finished: it has 30 of 40") for line in compared.limits)


def test_runs_with_one_method_each_are_compared_across_methods(tmp_path):
    old = write(tmp_path / "old", equal())
    new = write(tmp_path / "new", equal(), method="boost:factor=2")
    compared = compare_folders([old, new])
    assert compared.causes(compared.methods[0]) == ["method"]
    assert "new (boost:factor=2)" in compare_title(compared)


def test_folders_that_cannot_be_compared_are_refused(tmp_path):
    run, data = write(tmp_path / "run", equal()), ROOT / "tests" / "data/recorded/schema-3"
    with pytest.raises(UsageError):
        compare_folders([run])
    with pytest.raises(UsageError):
        compare_folders([run, run])
    with pytest.raises(UsageError) as excinfo:
        compare_folders([run, tmp_path / "nowhere"])
    assert excinfo.value.option == str(tmp_path / "nowhere")
    for name in ("tasks", "calibrate/capability"):
        with pytest.raises(RecordsError):
            compare_folders([run, data / name])
    with pytest.raises(RecordsError) as excinfo:
        compare_folders([run, write(tmp_path / "other", equal(), agent="cat")])
    assert excinfo.value.allowed == ["bot"]
    late = write(tmp_path / "late", equal(), settings={"probe_at": "after-round"})
    with pytest.raises(RecordsError) as excinfo:
        compare_folders([run, late])
    assert excinfo.value.option == "probe_at"
    empty = write(tmp_path / "empty", equal(), conversations=0, planned=4)
    with pytest.raises(HoldfastError):
        compare_folders([run, empty])


# The command and its page


def test_the_command_prints_tables_json_and_markdown(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old = write(tmp_path / "old", {"signs": 0.9, "brief": 0.9})
    new = write(tmp_path / "new", {"signs": 0.9, "brief": 0.3}, model="a|b <img src=x> @team")
    words = ["compare", str(old), str(new)]
    assert main(words) == 0
    output = capsys.readouterr().out
    assert "bot, brief" in output and "lower" in output and "compare.html" in output
    assert main([*words, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    compared = compare_folders([old, new])
    read_again = ComparisonSummary.model_validate(summary)
    assert read_again.model_dump() == comparison_summary(compared).model_dump()
    assert summary["schema"] == 1 and summary["runs"] == ["old", "new"]
    assert [row["over_rounds"]["verdict"] for row in summary["methods"][0]["rows"]] == [
        "lower",
        "cannot tell",
        "lower",
    ]
    assert main([*words, "--markdown", "--out", "page.html"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("### new keeps its prompt worse than old") and "| --- |" in text
    assert "<img" not in text and "@team" not in text and "a|b" not in text
    assert text == compare_markdown(compare_folders([old, new])) + "\n"


def test_more_than_two_runs_are_each_compared_with_the_first(tmp_path):
    folders = [
        write(tmp_path / name, equal(share), model=name)
        for name, share in (("a", 0.9), ("b", 0.5), ("c", 0.2))
    ]
    compared = compare_folders(folders)
    assert [(m.against, m.run) for m in compared.methods] == [("a", "b"), ("a", "c")]
    assert [[series.run for series in figure] for figure in compared.figures] == [
        ["a", "b"],
        ["a", "c"],
    ]
    page = comparison_page(compared)
    assert "c keeps its prompt worse than a" in page
    assert "<h3>a and b</h3>" in page and "<h3>a and c</h3>" in page


def test_a_figure_shows_the_first_run_as_it_is_compared_with_the_other_of_that_figure(tmp_path):
    """The rules, conversations and rounds that two runs share depend on both."""
    first = write(tmp_path / "a", {"signs": 1.0, "brief": 0.0})
    second = write(tmp_path / "b", equal(), rules=("signs",))
    third = write(tmp_path / "c", equal(), rules=("brief",), conversations=24, rounds=2)
    figures = compare_folders([first, second, third]).figures
    assert [[item.run for item in figure] for figure in figures] == [["a", "b"], ["a", "c"]]
    beside_second, beside_third = (figure[0] for figure in figures)
    assert np.array_equal(beside_second.stability, np.ones((40, 3)))
    assert np.array_equal(beside_third.stability, np.zeros((24, 2)))
    assert [record.conversation for record in beside_third.records] == list(range(24))


@needs_browser
@pytest.mark.parametrize("dark", only_fast([False, True], True))
@pytest.mark.parametrize("width", only_fast([400, 1200], 400))
def test_the_page_fits_and_can_be_read(browser, tmp_path, width, dark):
    folders = [write_run(tmp_path / str(n), conversations=60, seed=n) for n in (0, 1)]
    page = tmp_path / "compare.html"
    page.write_text(comparison_page(compare_folders(folders)), encoding="utf-8")
    set_screen(browser, width, dark)
    browser.get(page.as_uri())
    open_details(browser)
    look(browser, f"compare-{width}-{'dark' if dark else 'light'}")
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth")
    assert browser.execute_script(TEXT_COLOURS) == []
    assert js(browser, "document.querySelectorAll('.plot').length") == 1
    assert browser.get_log("browser") == []
