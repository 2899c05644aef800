"""The report as readers use it: in a real browser, by keyboard, at several widths."""

import itertools
import time

import pytest
from browsing import (
    TEXT_COLOURS,
    click,
    focus,
    js,
    keys,
    look,
    needs_browser,
    number_of,
    open_browser,
    open_details,
    requests,
    set_screen,
    text_of,
    wait,
)
from hostile_pages import hostile, rewrite
from shop import run_with_baseline
from synthetic_run import as_json, write_run

from holdfast import report
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.series import label_runs
from holdfast.records import read_run
from holdfast.report.drift_page import render_page

READER_FITS = (
    "const b = document.querySelector('#reader-body'); return b.scrollWidth <= b.clientWidth"
)
pytestmark = needs_browser
browser = pytest.fixture(scope="module")(open_browser)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with hostile texts, two methods, a control, and so much text that it is packed."""
    root = tmp_path_factory.mktemp("browser")
    control = {"methods": ("none",), "empty_user": True}
    folders = [
        write_run(root / "main", conversations=90, nasty=True),
        write_run(root / "control", conversations=30, nasty=True, **control),
    ]
    out = write_page(folders, root / "report.html")
    assert "data-packed" in out.read_text(encoding="utf-8")
    return out


def write_page(folders, out):
    """Writes only the page, without its figure files."""
    runs, labels = [read_run(folder) for folder in folders], label_runs(folders)
    results = [results_of(run, label) for run, label in zip(runs, labels, strict=True)]
    out.write_text(render_page(results), encoding="utf-8")
    return out


def visit(browser, page, width=1280, dark=False, fragment=""):
    """Opens the page afresh at the given width and discards earlier logs."""
    set_screen(browser, width, dark)
    browser.get("about:blank")
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(page.as_uri() + fragment)


@pytest.mark.parametrize("width", [1280, 800, 390, 320])
def test_page_fits_loads_nothing_external_and_logs_no_error(browser, page, width):
    visit(browser, page, width)
    wait(browser, "document.querySelectorAll('.row').length")
    look(browser, f"page-{width}")
    assert browser.get_log("browser") == []
    assert {url for url in requests(browser) if not url.startswith("data:")} == {page.as_uri()}
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth")
    open_details(browser)
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth"), "every table open"
    assert not js(browser, "window.hacked")


@pytest.mark.slow
def test_the_measures_fit_side_by_side(browser, tmp_path):
    """The reason for an undecided difference wraps, so nothing needs scrolling."""
    visit(browser, report.write([run_with_baseline(tmp_path / "run")], tmp_path / "page.html"), 800)
    open_details(browser)
    wide = "[...document.querySelectorAll('#baseline .scroll')]"
    fits = js(browser, f"{wide}.map((e) => e.scrollWidth <= e.clientWidth)")
    assert fits == [True, True]
    assert "none of 25 differ" in browser.find_element("css selector", "#baseline .why").text


@pytest.mark.parametrize("dark", [False, True])
def test_text_is_readable_on_its_background(browser, page, dark):
    visit(browser, page, dark=dark)
    wait(browser, "document.querySelectorAll('.row').length")
    look(browser, f"page-{'dark' if dark else 'light'}")
    assert browser.execute_script(TEXT_COLOURS) == []


def test_controls_images_and_regions_have_accessible_names(browser, page):
    visit(browser, page)
    wait(browser, "document.querySelectorAll('.row').length")
    tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    used = "button link slider combobox searchbox checkbox radio image region".split()
    visible = [node for node in tree if not node.get("ignored")]
    controls = [node for node in visible if node["role"]["value"] in used]
    assert [node["role"] for node in controls if not node.get("name", {}).get("value")] == []
    roles = {node["role"]["value"] for node in visible}
    assert {"main", "navigation", "banner", "contentinfo"} <= roles
    heads = "[...document.querySelectorAll('main h1, main h2, main h3')]"
    levels = js(browser, f"{heads}.map((h) => +h.tagName[1])")
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels))


def test_a_chart_can_be_read_with_the_arrow_keys(browser, page):
    from selenium.webdriver.common.keys import Keys

    visit(browser, page)
    focus(browser, ".plot")
    keys(browser, Keys.HOME)
    plot = "document.querySelector('.plot')"
    assert "Round 1:" in js(browser, f"{plot}.getAttribute('aria-valuetext')")
    keys(browser, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert js(browser, f"{plot}.getAttribute('aria-valuenow')") == "3"
    assert js(browser, f"{plot}.nextElementSibling.textContent").startswith("round 3")
    assert js(browser, f"{plot}.querySelector('.cursor').getAttribute('visibility')") == "visible"
    keys(browser, Keys.END, Keys.ARROW_RIGHT)
    assert js(browser, f"{plot}.getAttribute('aria-valuenow')") == "8"


def test_skip_link_and_whiskers_by_keyboard(browser, page):
    from selenium.webdriver.common.keys import Keys

    visit(browser, page)
    keys(browser, Keys.TAB)
    assert js(browser, "document.activeElement.className") == "skip"
    keys(browser, Keys.ENTER)
    assert js(browser, "document.activeElement.id") == "main"
    focus(browser, "[data-hides=no-whisker]")
    display = "getComputedStyle(document.querySelector('.whisker')).display"
    assert js(browser, display) == "none", "off until asked for"
    deviations = "[...document.querySelectorAll('.sd')].filter((n) => n.checkVisibility()).length"
    assert js(browser, deviations) == 0
    keys(browser, Keys.SPACE)
    assert js(browser, display) != "none"
    assert js(browser, deviations) > 0


@pytest.mark.parametrize("width", [1280, 390])
def test_a_conversation_is_opened_read_and_left_by_keyboard(browser, page, width):
    from selenium.webdriver.common.keys import Keys

    visit(browser, page, width)
    wait(browser, "document.querySelectorAll('.row').length")
    focus(browser, ".row")
    keys(browser, Keys.ENTER)
    wait(browser, "document.querySelectorAll('#reader-body .bubble').length")
    look(browser, f"reader-{width}")
    selectors = "['.round', '.bubble', '.probe', '.probe .reason']"
    count = "document.querySelectorAll('#reader-body ' + s).length"
    assert js(browser, f"{selectors}.map((s) => {count})") == [8, 16, 16, 16]
    assert browser.execute_script(READER_FITS)
    assert js(browser, "document.querySelector('#reader').contains(document.activeElement)")
    browser.execute_script("window.before = document.querySelector('#reader-body').textContent")
    focus(browser, "#reader-methods [aria-pressed=false]")
    keys(browser, Keys.ENTER)
    wait(
        browser,
        "document.querySelector('#reader-body .bubble') &&"
        " document.querySelector('#reader-body').textContent !== window.before",
    )
    assert "split-softmax" in text_of(browser, "#reader-methods [aria-pressed=true]")
    keys(browser, Keys.ESCAPE) if width == 1280 else browser.back()
    wait(browser, "!document.querySelector('#reader').open && !location.hash")
    assert js(browser, "document.activeElement.className") == "row"
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_dialog_and_replies_that_ended_early_say_so(browser, tmp_path, width):
    records = as_json(read_run(write_run(tmp_path / "run", conversations=4, rounds=2)))
    for number in (0, 1):  # the first conversation, under both methods
        records[number]["ended"] = {"round": 2, "why": "filter", "reason": "<img src=x>"}
        records[number]["turns"][1]["stop_reason"] = "refusal"
    rewrite(tmp_path / "run", records)
    visit(browser, write_page([tmp_path / "run"], tmp_path / "page.html"), width)
    wait(browser, "document.querySelectorAll('.row').length")
    rows = js(browser, "[...document.querySelectorAll('.row')].map((row) => row.textContent)")
    assert ["ended in round 2" in row for row in rows] == [True, True] + [False] * 6
    click(browser, ".row")
    wait(browser, "document.querySelectorAll('#reader-body .bubble').length")
    look(browser, f"ended-{width}")
    end, names, images = browser.execute_script(
        "const body = document.querySelector('#reader-body'); return ["
        " body.querySelector('.ended').textContent, body.querySelector('.turn.agent .name').textContent,"
        " body.querySelectorAll('img').length]"
    )
    assert end == "The dialog ended in round 2, as it met a content filter: <img src=x>."
    assert "a refusal" in names and images == 0
    assert browser.execute_script(READER_FITS)
    assert browser.get_log("browser") == []


def test_hostile_texts_are_shown_as_text(browser, page):
    visit(browser, page)
    wait(browser, "document.querySelectorAll('.row').length")
    checks = browser.execute_async_script("""
      const done = arguments[0];
      setAddress = () => {};  // a browser warns of 210 addresses within a second
      (async () => {
        let text = "";
        for (const entry of entries) { await openReader(entry); text += document.getElementById("reader-body").textContent; }
        done([text.includes("</script><script>window.hacked = 1</script>"), text.includes("<img src=x onerror="), text.includes("(empty reply)"),
              document.querySelectorAll("#reader-body img, #reader-body script").length, Boolean(window.hacked)]);
      })();
    """)
    assert checks == [True, True, True, 0, False]
    assert browser.get_log("browser") == []


def test_an_inline_script_would_be_refused(browser, page):
    """The content security policy is in force: even markup that got through could not run."""
    visit(browser, page)
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked = 1\">')"
    )
    time.sleep(0.3)
    assert not js(browser, "window.hacked")
    logged = [entry["message"] for entry in browser.get_log("browser")]
    assert any("Content Security Policy" in message for message in logged)


def test_filters_count_what_they_show(browser, page):
    visit(browser, page)
    wait(browser, "document.querySelectorAll('.row').length")
    assert text_of(browser, "#count") == "90 of 90 conversations, in 210 of 210 rows"
    assert "30 to 90 conversations of 8 rounds" in text_of(browser, ".facts")
    assert number_of(browser, ".row") == 10
    click(browser, "#more")
    assert number_of(browser, ".row") == 50
    for name, value, rule in (
        ("series", "1", "e.seriesAt === 1"),
        ("category", "language", "e.agent.category === 'language'"),
        ("score", "lost", "e.first > 0.5 && e.last <= 0.5"),
        ("score", "held", "e.stability.every((v) => v === null || v > 0.5)"),
        ("score", "adopted", "e.lastAdoption !== null && e.lastAdoption >= 0.5"),
    ):
        count, right = browser.execute_script(f"""
          const form = document.querySelector('#filters'); form.reset();
          form.elements['{name}'].value = '{value}';
          form.dispatchEvent(new Event('input', {{bubbles: true}}));
          return [listed.length, entries.filter((e) => {rule}).length];
        """)
        assert count == right > 0, (name, value)
        assert text_of(browser, "#count").endswith(f" of 90 conversations, in {count} of 210 rows")


def test_prompts_are_sorted_and_lead_to_their_conversations(browser, page):
    visit(browser, page)
    wait(browser, "document.querySelectorAll('.row').length")
    rows = "[...document.querySelectorAll('#prompt-table tbody tr')].filter((r) => !r.hidden)"
    column = rows + ".map((r) => +r.cells[{0}].dataset.value)"
    assert (mean := js(browser, f"{column.format(6)}")) == sorted(mean) and len(mean) > 10
    heads = "document.querySelectorAll('#prompt-table th button')"
    for _ in range(2):
        browser.execute_script(f"{heads}[5].click()")
    changes = js(browser, f"{column.format(5)}")
    assert changes == sorted(changes, reverse=True)
    assert text_of(browser, "#prompt-table th[aria-sort]") == "Change"
    browser.execute_script("document.querySelector('#prompts details').open = true")
    prompt = browser.execute_script(
        "const b = document.querySelector('#prompt-table [data-prompt]'); b.click(); return b.dataset.prompt"
    )
    all_listed = "listed.every((e) => e.agent.id === arguments[0] && e.seriesAt === 0)"
    assert browser.execute_script(f"return listed.length > 0 && {all_listed}", prompt)
    wait(browser, "document.querySelectorAll('#reader-body .bubble').length")
    assert js(browser, "document.querySelector('#reader').open && current === listed[0]")
    click(browser, "#close")
    wait(browser, "document.activeElement.dataset.prompt !== undefined")
    assert js(browser, "document.activeElement.dataset.prompt") == prompt


@pytest.mark.slow
def test_long_parts_are_folded_on_a_phone(browser, tmp_path):
    """Hundreds of prompts and conversations must not make the page too long to scroll through."""
    heights = []
    for count in (60, 300):
        folder = write_run(tmp_path / str(count), conversations=count, prompts=count)
        visit(browser, write_page([folder], tmp_path / f"{count}.html"), width=390)
        wait(browser, "document.querySelectorAll('.row').length")
        heights.append(js(browser, "document.documentElement.scrollHeight"))
    assert heights[1] < heights[0] + 400, heights
    assert max(heights) < 11_500


def test_a_link_to_a_conversation_opens_it(browser, page):
    visit(browser, page, fragment="#conversation-57")
    wait(browser, "document.querySelectorAll('#reader-body .bubble').length")
    assert js(browser, "[current.number, current.seriesAt]") == [57, 0]


FIRST = [("in-place", "probes"), ("after-round", "turn user")]


@pytest.mark.parametrize(("probe_at", "first"), FIRST)
def test_probes_appear_where_they_were_asked(browser, tmp_path, probe_at, first):
    run = write_run(tmp_path / "run", conversations=2, probe_at=probe_at)
    out = write_page([run], tmp_path / "page.html")
    visit(browser, out, fragment="#conversation-0")
    wait(browser, "document.querySelectorAll('#reader-body .bubble').length")
    assert js(browser, "document.querySelector('.round').children[1].className") == first


def test_the_theme_can_be_chosen(browser, page):
    visit(browser, page, dark=True)
    background = "return getComputedStyle(document.body).backgroundColor"
    dark = browser.execute_script(background)
    click(browser, "#theme")
    visit(browser, page, dark=True)  # it is kept
    light = browser.execute_script(background)
    browser.execute_script("localStorage.clear()")
    visit(browser, page)
    assert dark != light == browser.execute_script(background)


@pytest.mark.slow
def test_many_long_conversations_open_fast(browser, tmp_path):
    folder = write_run(tmp_path / "run", conversations=400)
    out = write_page([folder], tmp_path / "report.html")
    assert out.stat().st_size < 6_000_000
    visit(browser, out)
    wait(browser, "document.querySelectorAll('.row').length")
    entry = "const t = performance.getEntriesByType('navigation')[0];"
    timing = browser.execute_script(f"{entry} return t.domComplete - t.responseEnd")
    assert timing < 10_000  # milliseconds; under 300 on an idle machine


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True), (320, False)])
def test_pages_of_other_commands_fit_and_can_be_read(browser, tmp_path, width, dark):
    out = hostile(tmp_path)
    visit(browser, out, width, dark)
    look(browser, f"document-{width}")
    assert browser.get_log("browser") == []
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth")
    open_details(browser)
    assert js(browser, "document.documentElement.scrollWidth <= innerWidth"), "every table open"
    assert browser.execute_script(TEXT_COLOURS) == []
    assert not js(browser, "window.hacked")
