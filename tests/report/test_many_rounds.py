"""Runs of many rounds, as the terminal, the curves and the page's tables show them."""

import re
from itertools import pairwise

import pytest
from browsing import js, open_browser, set_screen, wait
from synthetic_run import write_run

from holdfast import report
from holdfast.analysis.series import read_series
from holdfast.records import read_run
from holdfast.report.charts import rounds_to_number
from holdfast.report.series_charts import panel

browser = pytest.fixture(scope="module")(open_browser)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Run folders, by number of rounds."""
    root = tmp_path_factory.mktemp("runs")
    return {n: write_run(root / str(n), conversations=4, rounds=n) for n in (8, 32, 100)}


@pytest.mark.parametrize("rounds", (1, 2, 8, 12, 13, 17, 25, 32, 50, 99, 100, 128, 1000, 5000))
def test_an_axis_numbers_the_first_the_last_and_round_numbers_between(rounds):
    ticks = rounds_to_number(rounds)
    assert ticks[0] == 1 and ticks[-1] == rounds and len(ticks) <= 14
    assert list(ticks) == sorted(set(ticks))
    if rounds > 12:
        gaps = [last - first for first, last in pairwise(ticks)]
        assert min(gaps) > max(gaps) / 2 or gaps[0] == min(gaps) >= max(gaps) // 2 - 1
        assert all(tick % gaps[1] == 0 for tick in ticks[1:-1])


def test_curves_of_many_rounds_have_no_dots(runs):
    for rounds, folder in runs.items():
        chart = panel(read_series(read_run(folder)), "stability").chart
        assert {curve.has_dots for curve in chart.curves} == {rounds == 8}


@pytest.mark.slow
def test_tables_of_many_rounds_have_a_row_for_each(runs, tmp_path):
    for rounds, folder in runs.items():
        text = report.write([folder], tmp_path / f"{rounds}.html").read_text()
        widest = max(row.count("<t") for row in re.findall(r"<tr.*?</tr>", text, re.S))
        assert widest <= 24, f"{rounds} rounds make a table of {widest} columns"
        down = len(re.findall(r'<tr><th scope="row">\d+</th>', text))
        assert down == (0 if rounds == 8 else 4 * rounds), "panels, mass, two kinds of categories"


def test_the_terminal_lists_the_rounds_that_an_axis_numbers(runs):
    for rounds, folder in runs.items():
        table = report.table(read_run(folder))
        header = re.search(r"^  round((?: +\d+)+)$", table, re.M)
        numbers = tuple(map(int, header[1].split()))
        assert numbers == (tuple(range(1, 9)) if rounds == 8 else rounds_to_number(rounds))


@pytest.mark.slow
def test_a_page_of_many_rounds_fits_a_phone(runs, browser, tmp_path):
    page = report.write([runs[100]], tmp_path / "page.html")
    for width in (390, 1280):
        set_screen(browser, width)
        browser.get(page.as_uri())
        wait(browser, "document.querySelectorAll('#rows .cells i').length >= 100")
        browser.execute_script("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert js(browser, "document.documentElement.scrollWidth") <= width
