"""The page of a check: its verdicts with their evidence, and nothing that contradicts them."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from browsing import click, js, look, needs_browser, open_browser, open_details, set_screen, wait
from page_outline import Outline
from synthetic_run import conversation_of
from three_prompts import ROUNDS, SHARES, SUITE, TERMS, KeepsShares

from holdfast import drift
from holdfast.analysis.check_file import FILE, read_check, write_check
from holdfast.analysis.check_verdicts import cell_verdict, check_prompts
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.series import read_series
from holdfast.analysis.summary import summarise
from holdfast.errors import RecordsError
from holdfast.records import Run
from holdfast.records.check_records import Check, CheckedCell, Terms
from holdfast.records.identity import Manifest
from holdfast.report.check_details import verdict_lines
from holdfast.report.check_junit import write_junit
from holdfast.report.check_section import check_headline, check_lines, check_sections
from holdfast.report.check_sentences import numbers_text
from holdfast.report.drift_page import render_page
from holdfast.study.checking import CheckOptions, check, earlier_conversations

browser = pytest.fixture(scope="module")(open_browser)


def text_of(run):
    """The visible text of a run's page."""
    page = render_page([results_of(run)])
    Outline(page)
    body = re.sub(r"<(style|script|svg).*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_begins_with_the_verdicts_and_calls_nothing_an_example(check_run):
    run, checks = check_run.run, check_run.checks
    text = text_of(run)
    verdicts = "1 of 3 prompts failed, 1 undecided, 1 passed (bar: 0.8 for every rule in every roun"
    assert verdicts in text
    late = checks[1]
    assert "late fails: below 0.8" in text
    assert f"(decided after {late.decided_after} of 8 conversations)." in text
    assert f"8 decided after {late.decided_after}" in text, "in the table"
    assert "example and not a measurement" not in text
    assert "at most 0.017" in text
    rows = [(row.prompt, row.verdict, row.why) for row in section_of(run).rows]
    assert [verdict for _, verdict, _ in rows] == [PASS, FAIL, UNDECIDED]
    assert rows[1][2] == f"below 0.8 in round 3: {numbers_text(late.first_failure)}"
    for line, (_, _, why) in zip(verdict_lines(checks, TERMS), rows, strict=False):
        assert f"  {why} (" in line, "terminal and page say the same"


def section_of(run):
    (section,) = check_sections([read_check(run)], [""], read_series(run))
    return section


def test_a_drift_run_has_no_verdicts(tmp_path):
    settings = drift.Settings(rounds=2, conversations=3)
    run = drift.run(KeepsShares(SHARES), SUITE, tmp_path, settings)
    assert read_check(run) is None and summarise(run).check is None
    assert "Verdicts of the check" not in text_of(run)


def test_page_junit_and_summary_derive_the_verdicts_again(check_run, tmp_path):
    run, checks = check_run.run, check_run.checks
    reread = read_check(run)
    assert (reread.method, reread.terms) == ("none", TERMS)
    derived = [(item.verdict, item.cells, item.first_failure) for item in reread.prompts]
    assert derived == [(item.verdict, item.cells, item.first_failure) for item in checks]
    summary = summarise(run).check
    junit = write_junit(reread, "three", tmp_path / "junit.xml", 1.0)
    kinds = [test[0].tag for test in ElementTree.parse(junit).getroot()[0]]
    assert kinds == ["system-out", "failure", "error"], "those of the verdicts that follow"
    assert [prompt.verdict for prompt in summary.prompts] == [PASS, FAIL, UNDECIDED]
    assert summary.min_stability == 0.8 and summary.error == 0.05
    late = summary.prompts[1]
    assert late.first_failure.round == 3 and late.first_failure.high < 0.8
    assert len(late.cells) == ROUNDS


def records_of(scores, rule_names=(None,), prompt="bot"):
    """Conversations of one prompt; scores are [conversation, round, rule]."""
    agent = {"id": prompt, "category": "rules", "system_prompt": "Be."}

    def record(number, rows):
        probes = [
            {"round": at, "rule": name, "score": float(score)}
            for at, row in enumerate(rows, 1)
            for name, score in zip(rule_names, row, strict=True)
        ]
        return conversation_of(conversation=number, agent=agent, probes=probes)

    return [record(number, rows) for number, rows in enumerate(scores)]


def test_a_failing_prompt_has_a_round_that_shows_it_by_itself():
    """However little each round is below the bar, some capital is as large as the mean of all."""
    terms, draws = Terms(0.9, budget=200), np.random.default_rng(5)
    for _ in range(5):
        scores = (draws.random((200, 8, 1)) < 0.8).astype(float)
        (bot,) = check_prompts(records_of(scores), ["bot"], 8, terms)
        assert (
            bot.verdict == FAIL
            and cell_verdict(bot.first_failure, 0.9) == FAIL
            and bot.first_failure.high < 0.9
        )


def test_a_rule_fails_only_if_its_interval_shows_it():
    terms, names = Terms(0.9), ("kept", "lost")
    scores = np.ones((60, 3, 2))
    scores[:, 2, 1] = 0
    (bot,) = check_prompts(records_of(scores, names)[:8], ["bot"], 3, terms)
    rules = bot.rules
    assert bot.verdict == FAIL and [rule.rule for rule in rules] == ["kept", "lost"]
    decided_by = rules[1].decided_by
    assert rules[1].verdict == FAIL and decided_by.round == 3 and decided_by.high < 0.9
    assert rules[0].verdict == UNDECIDED, "eight conversations show nothing else"
    (bot,) = check_prompts(records_of(np.ones((60, 3, 2)), names), ["bot"], 3, terms)
    assert [rule.verdict for rule in bot.rules] == [PASS, PASS]


def _cell(mean, low, high):
    return CheckedCell(rule=None, round=1, mean=mean, low=low, high=high)


def test_ends_of_intervals_are_rounded_outwards(check_run):
    assert numbers_text(_cell(0.95, 0.8996, 0.9904)) == "0.95 [0.89, 1.00]"
    assert numbers_text(_cell(0.5, 0.29, 0.71)) == "0.50 [0.29, 0.71]"
    assert numbers_text(_cell(None, 0, 1)) == "not answered"


def test_the_verdict_on_a_single_prompt_is_in_the_headline():
    terms = Terms(0.9)
    (bot,) = check_prompts(records_of(np.zeros((8, 2, 1))), ["bot"], 2, terms)
    check_result = Check.of("none", terms, (bot,))
    line = check_headline(check_result)
    assert line.startswith(
        f"bot fails: below 0.9 in round 1: {numbers_text(bot.first_failure)} (decided"
    )
    assert line.endswith("at most 5%.")
    assert check_lines(check_result) == []
    (bot,) = check_prompts(records_of(np.ones((4, 2, 1))), ["bot"], 2, terms)
    line = check_headline(Check.of("none", terms, (bot,)))
    lowest = f"lowest in round 1: {numbers_text(bot.lowest)} (4 conversations)."
    assert line == f"bot is undecided: {lowest}", "which is no verdict, and has no error"


@pytest.mark.parametrize(
    ("count", "words"),
    ((4, "One more prompt did not pass."), (6, "3 more prompts did not pass.")),
)
def test_prompts_that_are_not_named_are_counted(count, words):
    terms = Terms(0.9)
    names = [f"bot{number}" for number in range(count)]
    records = [talk for name in names for talk in records_of(np.zeros((8, 2, 1)), prompt=name)]
    check_result = Check.of("none", terms, tuple(check_prompts(records, names, 2, terms)))
    assert check_lines(check_result)[-1] == words


def test_a_fall_is_on_the_page_without_the_earlier_run(check_run, tmp_path):
    before = check_run.run
    lower, low_bar = {**SHARES, "good": [1.0, 1.0, 0.9, 0.45]}, Terms(0.3, budget=60)
    earlier = earlier_conversations(before.folder, SUITE, "none")
    settings = drift.Settings(rounds=ROUNDS)
    options = CheckOptions(before=earlier)
    run, checks = check(KeepsShares(lower), SUITE, tmp_path, settings, low_bar, options)
    falls = [(item.verdict, item.comparison) for item in checks]
    assert [(item.verdict, item.comparison) for item in read_check(run).prompts] == falls
    text = text_of(run)
    assert "most in round 4" in text and "from 1.00 to 0." in text
    assert "no mean is lower" in text


def test_the_page_without_a_bar_names_the_rule_that_fell(tmp_path):
    kept_scores, lost_scores = np.ones((30, 3, 2)), np.ones((30, 3, 2))
    lost_scores[:, 1:, 1] = 0
    kept_scores[:, :, 0] = 0  # never kept, before and now
    lost_scores[:, :, 0] = 0
    names = ("brief", "signs")
    terms, before = Terms(None, budget=30), {"bot": records_of(kept_scores, names)}
    checks = check_prompts(records_of(lost_scores, names), ["bot"], 3, terms, before)
    verdicts = [(rule.rule, rule.verdict) for rule in checks[0].rules]
    assert verdicts == [("brief", PASS), ("signs", FAIL)]
    write_check(tmp_path, "none", terms, checks, 3)
    run = Run(tmp_path, Manifest(), tuple(records_of(lost_scores, names)))
    reread = read_check(run)
    assert reread.terms == terms and reread.prompts[0].comparison == checks[0].comparison
    headline = check_headline(reread)
    assert headline.startswith("bot fails: fell against the earlier run: rule signs, most in round")
    assert headline.endswith("The chance that this verdict is wrong is at most 5%.")
    (rule, *_) = reread.prompts[0].comparison.rules
    assert (rule.rule, rule.fell, rule.round, rule.before, rule.now) == ("signs", True, 2, 1, 0)


@pytest.mark.parametrize("damage", ["{", "[]", '{"schema": 2}', '{"schema": 1, "prompts": 3}'])
def test_a_damaged_file_is_refused(check_run, tmp_path, damage):
    run, checks = check_run.run, check_run.checks
    run_elsewhere = Run(tmp_path, run.manifest, run.records)
    write_check(tmp_path, "none", TERMS, checks, ROUNDS)
    assert json.loads((tmp_path / FILE).read_text())["prompts"] == ["good", "late", "edge"]
    assert [item.verdict for item in read_check(run_elsewhere).prompts] == [PASS, FAIL, UNDECIDED]
    (tmp_path / FILE).write_text(damage)
    with pytest.raises(RecordsError, match=r"check\.json"):
        read_check(run_elsewhere)


@needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_sees_the_verdicts_and_opens_a_conversation(browser, check_run, tmp_path, width):
    run = check_run.run
    page = tmp_path / "check.html"
    page.write_text(render_page([results_of(run)]), encoding="utf-8")
    set_screen(browser, width)
    browser.get(page.as_uri())
    wait(browser, "document.querySelectorAll('.row').length")
    open_details(browser)
    look(browser, f"check-{width}")
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth")
    words = "return [...document.querySelectorAll('.checked .verdict')].map((e) => e.textContent)"
    assert browser.execute_script(words) == ["passes", "fails", "undecided"]
    after = "getComputedStyle(document.querySelector('.checked .link'), '::after').content"
    assert js(browser, after) == "none", "no arrow of a column to sort by"
    click(browser, ".checked [data-prompt=late]")
    wait(browser, "document.getElementById('reader').open")
    assert "Be late." in js(browser, "document.querySelector('.brief').innerText")
