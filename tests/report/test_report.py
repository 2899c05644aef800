"""The page and the table of a report: rows, figures, escaping and refusals."""

import base64
import gzip
import json
import math
import re

import pytest
from drift_sentences import numbers_in, opening_of, prompts_run, record, run_of
from jinja2 import StrictUndefined
from page_outline import Outline, read_page
from synthetic_run import METHODS, NASTY, write_run

from holdfast import report
from holdfast.analysis.estimate_rows import MIN_UNITS, category_rows, row_of
from holdfast.analysis.prompt_rows import prompt_rows
from holdfast.analysis.row_differences import compare_rows
from holdfast.analysis.series import label_runs, read_series
from holdfast.analysis.statistics import SCORES, Estimate, estimate_columns
from holdfast.errors import RecordsError, UsageError
from holdfast.records import Conversation, Ended, open_run, read_run
from holdfast.report import wording
from holdfast.report.charts import Chart, Curve, round_top
from holdfast.report.conversations import pack, script_chunks, script_json
from holdfast.report.score_phrases import describe_conversations
from holdfast.report.shortfalls import early_end_sentence
from holdfast.report.template_environment import template_environment
from holdfast.report.wording import mean_text, percent, plain, signed, signed_number, two_places

# a percentile of 10,000 resamples of scores with sd 0.5 and n = 60 moves by about 0.0015
BOOTSTRAP_NOISE = 0.006


def page_of(folder, out):
    """The text of a run's page."""
    return report.write([folder], out).read_text(encoding="utf-8")


# Rows and labels


def test_categories_are_those_of_the_scored_prompt(tmp_path):
    records = [record(0, [1.0], [0.0]), record(1, [0.0], [1.0], category="language")]
    series = read_series(run_of(tmp_path, records))[0]
    stability, adoption = (
        {row.group: row.points[0].mean for row in category_rows(series, kind)}
        for kind in ("stability", "adoption")
    )
    assert [stability, adoption] == [{"pattern": 1.0, "language": 0.0}, {"persona": 0.5}]
    assert category_rows(series, "adoption")[0].drawn[0].low is None, "n = 2 has no interval"


def test_prompts_are_ordered_by_mean_stability(tmp_path):
    scores = ("firm", [1.0, 1.0]), ("loose", [1.0, 0.0]), ("loose", [0.0, 0.0])
    records = [record(n, stability, agent=agent) for n, (agent, stability) in enumerate(scores)]
    rows = prompt_rows(read_series(run_of(tmp_path, records))[0])
    assert [(row.id, row.n, row.first, row.last) for row in rows] == [
        ("loose", 2, 0.5, 0.0),
        ("firm", 1, 1.0, 1.0),
    ]
    assert [row.stability for row in rows] == [0.25, 1.0]


def test_adoption_of_a_prompt_comes_from_conversations_whose_user_has_it(tmp_path):
    swapped = record(0, [1.0], [0.75], agent="b")
    swapped["user"] = {"id": "a", "category": "pattern", "system_prompt": "Be a."}
    series = read_series(run_of(tmp_path, [swapped, record(1, [1.0], [0.25])]))[0]
    rows = {row.id: row for row in prompt_rows(series)}
    adopted = [rows[name].adopted_last_round for name in ("a", "b")]
    assert adopted == [0.75, 0.25]


def test_folders_are_labelled_by_the_parts_that_differ(tmp_path):
    assert label_runs([tmp_path / "a"]) == [""]
    assert label_runs([tmp_path / "a", tmp_path / "b"]) == ["a", "b"]
    assert label_runs([tmp_path / "x" / "run", tmp_path / "y" / "run"]) == ["x/run", "y/run"]
    with pytest.raises(UsageError) as excinfo:
        label_runs([tmp_path / "a", tmp_path / "a"])
    assert (excinfo.value.option, excinfo.value.value) == ("folders", tmp_path / "a")


@pytest.mark.slow
def test_page_says_where_the_probe_was_asked(tmp_path):
    for probe_at, description in (
        ("in-place", "before anything has been said"),
        ("after-round", "round 1 is probed after one exchange"),
    ):
        write_run(tmp_path / probe_at, conversations=3, rounds=2, probe_at=probe_at)
        page = page_of(tmp_path / probe_at, tmp_path / f"{probe_at}.html")
        assert description in page
        assert f'"probedAfter":{"true" if probe_at == "after-round" else "false"}' in page


# Numbers and intervals


@pytest.mark.parametrize("share", [number / 200 for number in range(1, 200, 2)])
def test_a_number_is_rounded_in_one_way_however_it_was_added_up(share):
    """As 0.725, 0.7249999999999999 and 72.5%."""
    sums = (share, math.nextafter(share, 0), math.nextafter(share, 1), share + 1e-13)
    assert len({two_places(number) for number in sums}) == 1
    assert len({signed_number(number) for number in sums}) == 1
    assert {percent(number) for number in sums} == {f"{round(100 * float(two_places(share)))}%"}
    estimates = [Estimate(20, number, 0.1, share, share) for number in sums]
    assert {plain(value).split()[0] for value in estimates} == {two_places(share)}
    assert {mean_text(value) for value in estimates} == {two_places(share)}


def test_numbers_are_written_with_their_sign_and_no_minus_zero():
    assert wording.signed(Estimate(9, -0.001, 0.1, -0.02, 0.03)) == "0.00 [-0.02, +0.03]"
    assert wording.plain(Estimate(9, 0.5, 0.1, 0.25, 0.75)) == "0.50 [0.25, 0.75]"
    assert wording.plain(Estimate(1, 0.5, None, None, None)) == "0.50"
    falls = Estimate(50, -0.321, 0.1, -0.391, -0.256)
    assert wording.points(falls) == "-32 points (95% interval -39 to -26)"
    assert numbers_in(wording.points_apart(falls)) == [32, 95, 26, 39]
    estimate = Estimate(50, 0.01, 0.1, -0.391, 0.004)
    assert wording.points(estimate) == "+1 point (95% interval -39 to 0)"


@pytest.mark.parametrize("mean", [-0.004, 0.004, 0.005, 0.0051, -0.015, 0.115])
def test_points_and_shares_are_rounded_alike(mean):
    value = Estimate(50, mean, 0.1, -0.2, 0.2)
    share, number = wording.signed(value).split()[0], wording.points(value).split()[0]
    assert round(100 * float(share)) == int(number) and not number.startswith(("-0", "+0"))


@pytest.mark.parametrize(
    ("low", "high", "signed", "points"),
    [
        (-0.05, -0.003, "[-0.05, -0.003]", "0.3 to 5"),
        (0.0004, 0.05, "[+0.0004, +0.05]", "0.04 to 5"),
        (-0.05, 0.003, "[-0.05, 0.00]", "-5 to 0"),
    ],
)
def test_an_interval_that_excludes_zero_shows_no_zero_endpoint(low, high, signed, points):
    value = Estimate(50, (low + high) / 2, 0.1, low, high)
    assert wording.signed(value).endswith(signed)
    apart = wording.points_apart if value.excludes_zero else wording.points
    assert f"(95% interval {points})" in apart(value)


def test_only_a_run_of_many_prompts_makes_claims_about_other_prompts(tmp_path):
    first, change, *_ = opening_of(prompts_run(tmp_path / "many", 24, 5))
    assert "these 24 prompts" not in first
    assert numbers_in(change)[1:6] == [95, 39, 59, 21, 71], "for these prompts, and for others"
    first, change, few = opening_of(prompts_run(tmp_path / "few", 6, 10))
    assert "these 6 prompts" in first and len(numbers_in(change)) == 5
    assert numbers_in(few) == [6, 20]


@pytest.mark.slow
def test_page_terminal_and_summary_have_the_interval_for_other_prompts(tmp_path):
    folder = write_run(tmp_path / "run", conversations=60, prompts=40)
    run = read_run(folder)
    value = row_of(read_series(run)[0], "stability").change.other_prompts
    range = f"other prompts [{value.low:+.2f}, {value.high:+.2f}]"
    assert opening_of(read_series(run))[1] in " ".join(report.table(run).split())
    page = page_of(folder, tmp_path / "page.html")
    assert range.replace("-", "\N{MINUS SIGN}") in page
    none, split = json.loads(report.write_summary(folder).read_text())["results"]
    other_prompts = none["change"]["stability"]["other_prompts"]
    ends = {"low": pytest.approx(value.low, abs=1e-6), "high": pytest.approx(value.high, abs=1e-6)}
    assert other_prompts == {"prompts": value.prompts, **ends}
    assert split["against"]["stability"]["last_round"]["other_prompts"]["prompts"] >= 20


# What is left out or refused


def test_the_short_terminal_table_has_only_sentences_and_stability(tmp_path):
    run = read_run(write_run(tmp_path / "run", conversations=12))
    text = report.table(run)
    sentences, rounds, compared = text.strip().split("\n\n")
    assert sentences.startswith("Only 12 conversations, too few for a verdict")
    assert "11 of 12 conversations" in sentences.replace("\n", " ")
    title, head, *rows = rounds.splitlines()
    assert describe_conversations(read_series(run)) in title
    assert head.split() == ["round", *"12345678"]
    for row, item in zip(rows, read_series(run), strict=True):
        means = [f"{point.mean:.2f}" for point in estimate_columns(item.stability, SCORES)]
        assert row.split() == [item.method, *means]
    difference = row_of(read_series(run)[1], "stability"), row_of(read_series(run)[0], "stability")
    assert METHODS[1] in compared and signed(compare_rows(*difference).last_round) in compared
    assert "n = 12" in compared.splitlines()[-1]
    assert max(map(len, text.splitlines())) <= 100


def test_table_and_page_of_one_conversation_have_no_intervals_and_say_why(tmp_path):
    text = report.table(run_of(tmp_path / "run", [record(0, [1.0, 0.5])]))
    assert "0.50" in text and "[" not in text.replace("[95% interval]", "")
    page = page_of(tmp_path / "run", tmp_path / "page.html")
    assert "No intervals" in text and 'class="band' not in page
    assert "No intervals" in page and "adoption" not in text


def test_a_run_without_conversations_is_refused(tmp_path):
    run = run_of(tmp_path / "new", [])
    for function, *arguments in (
        (report.table, run),
        (report.write, [tmp_path / "new"], tmp_path / "report.html"),
        (report.write_summary, tmp_path / "new"),
    ):
        with pytest.raises(RecordsError) as excinfo:
            function(*arguments)
        assert excinfo.value.value == tmp_path / "new"


def test_a_run_without_mass_categories_or_adoption_has_no_such_sections(tmp_path):
    run_of(tmp_path / "run", [record(i, [1.0, 0.5], category=None) for i in range(3)])
    page = page_of(tmp_path / "run", tmp_path / "page.html")
    for name in ("attention", "categories", "methods"):
        assert f'id="{name}"' not in page and f'href="#{name}"' not in page
    figures = {path.name for path in (tmp_path / "page_figures").iterdir()}
    assert figures == {"drift.svg", "drift.png"} and 'value="adopted"' not in page


def test_errors_say_what_to_do_instead(tmp_path):
    with pytest.raises(UsageError) as excinfo:
        report.write([], tmp_path / "page.html")
    assert excinfo.value.option == "folders"
    run_of(tmp_path / "run", [record(0, [1.0])])
    with pytest.raises(UsageError) as excinfo:
        report.write([tmp_path / "run"], tmp_path)
    assert (excinfo.value.option, excinfo.value.value) == ("--out", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match=r"page\.html"):
        report.write([tmp_path / "run"], tmp_path / "file" / "page.html")


# Texts of models on the page


@pytest.fixture(scope="module")
def page_path(tmp_path_factory):
    """A page of a main run and its control, both with hostile texts."""
    root = tmp_path_factory.mktemp("report")
    control = {"methods": ("none",), "empty_user": True}
    folders = [
        write_run(root / "main", conversations=30, nasty=True),
        write_run(root / "control", conversations=30, nasty=True, **control),
    ]
    return report.write(folders, root / "out" / "page.html")


def test_page_loads_nothing_external_and_its_ids_are_unique(page_path):
    assert read_page(page_path).sources == ["data:,"]


def test_no_text_of_a_model_becomes_markup(page_path):
    text = page_path.read_text(encoding="utf-8")
    outline = read_page(page_path)
    assert outline.scripts.count(None) == 1, "one script that runs: the page's own"
    assert "img" not in outline.tags
    assert "<script>window.hacked" not in text and "<img src=x" not in text


def test_hostile_names_are_escaped_everywhere(tmp_path):
    evil = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    texts = {"method": evil, "agent": evil, "category": evil}
    identity = {"model": evil, "suite": evil}
    about = {"command": "drift", "argv": evil, "versions": {evil: evil}}
    with open_run(tmp_path / "run", identity, about) as run:
        for i in range(3):
            row = record(i, [1.0, 0.5], [0.0, 0.1], **texts)
            run.append(Conversation.model_validate(row))
    outline = Outline(page_of(tmp_path / "run", tmp_path / "p.html"))
    assert outline.scripts.count(None) == 1 and "img" not in outline.tags


def test_script_json_cannot_leave_its_element():
    for text in [*NASTY, "]]>", "<!--<script>", "\u2028\u2029"]:
        packed = script_json({"text": text})
        assert not re.search(r"[<>&\u2028\u2029]", packed)
        assert json.loads(packed) == {"text": text}


def test_every_conversation_is_on_the_page_with_its_scores_and_reasons(tmp_path):
    series = read_series(read_run(write_run(tmp_path / "run", conversations=60, nasty=True)))
    index, chunks = pack(series)
    assert len(index["rows"]) == 120 == sum(map(len, chunks))
    numbers = set()
    for position, (at, number, agent, *_) in enumerate(index["rows"]):
        item = series[at]
        source = next(r for r in item.records if r.conversation == number)
        body = chunks[position // index["perChunk"]][position % index["perChunk"]]
        assert index["prompts"][agent]["text"] == source.agent.system_prompt
        assert [turn[2] for turn in body["turns"]] == [turn.text for turn in source.turns]
        assert [(index["questions"][p[2]], p[3], p[5]) for p in body["probes"]] == [
            (p.question, p.reply, p.reason) for p in source.probes
        ]
        scores = [p.score for p in source.probes]
        assert [p[4] for p in body["probes"]] == pytest.approx(scores, abs=1e-4)
        numbers.add((at, number))
    assert len(numbers) == 120
    packed = script_chunks([*chunks, ["x" * 700_000]])
    assert all(chunk.is_packed for chunk in packed)
    assert json.loads(gzip.decompress(base64.b64decode(packed[0].text))) == json.loads(
        json.dumps(chunks[0])
    )
    assert sum(len(chunk.text) for chunk in packed) < len(script_json(chunks))


def test_the_conversation_view_says_how_a_dialog_and_its_replies_ended(tmp_path):
    records = [record(number, [1.0, 0.5]) for number in range(3)]
    records[1]["ended"] = {"round": 2, "why": "filter", "reason": "no <b>more</b>."}
    records[1]["turns"][0]["stop_reason"] = "length"
    records[1]["turns"][1]["stop_reason"] = "refusal"
    records[1]["probes"][0]["stop_reason"] = "tool_calls"
    index, ((whole, ended, _),) = pack(read_series(run_of(tmp_path / "run", records)))
    assert [row[6] for row in index["rows"]] == [None, 2, None]
    assert whole["ended"] is None
    assert ended["ended"] == early_end_sentence(Ended(**records[1]["ended"]))
    assert "no <b>more</b>" in ended["ended"] and {turn[3] for turn in whole["turns"]} == {""}
    cut_turn, refused_turn = (turn[3] for turn in ended["turns"][:2])
    assert "cut" in cut_turn and "refusal" in refused_turn
    assert ended["probes"][0][8] == "a tool call" and ended["probes"][1][8] == ""
    page = page_of(tmp_path / "run", tmp_path / "page.html")
    assert "content filter" in page and "<b>more" not in page


def test_every_template_escapes():
    assert template_environment().autoescape is True
    assert template_environment().undefined is StrictUndefined
    source = "{{ text }}{{ text|whole }}{{ text|minus }}{{ text|spaced }}"
    html = template_environment().from_string(source).render(text="<b>_round 1")
    assert "<b>" not in html and html.count("&lt;b&gt;") == 4


# Figures and charts


@pytest.mark.slow
def test_figures_are_written_as_svg_and_png_and_are_the_same_each_time(page_path, tmp_path):
    folder = page_path.with_name("page_figures")
    kinds = ("drift", "mass", "categories_stability", "categories_adoption")
    files = {f"{name}.{kind}" for name in kinds for kind in ("svg", "png")}
    assert {path.name for path in folder.iterdir()} == files
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    runs = [page_path.parents[1] / name for name in ("main", "control")]
    second = report.write(runs, tmp_path / "page.html")
    assert second.read_bytes() == page_path.read_bytes()
    for path in folder.iterdir():
        assert (tmp_path / "page_figures" / path.name).read_bytes() == path.read_bytes(), path.name


@pytest.mark.parametrize(("count", "is_drawn"), [(3, True), (10, False)])
def test_a_figure_shows_each_rule_of_a_bot_if_they_are_few(tmp_path, count, is_drawn):
    records = [
        record(number, [1.0, number % 2], agent="bot") | {"method": method}
        for method in ("none", "m")
        for number in range(4)
    ]
    for entry in records:
        entry["probes"] = [
            probe | {"rule": f"rule {rule}", "probe": rule}
            for probe in entry["probes"]
            for rule in range(count)
        ]
    run_of(tmp_path / "run", records)
    report.write([tmp_path / "run"], tmp_path / "page.html")
    figure = tmp_path / "page_figures" / "rules.svg"
    assert figure.exists() == is_drawn
    if is_drawn:
        text = figure.read_text(encoding="utf-8")
        assert all(f">rule {rule}<" in text for rule in range(count))
        assert text.count('id="curve') == 2 * count


def test_prompts_are_ranked_only_if_drawn_often_enough(tmp_path):
    few = [record(i, [1.0, i / 9], agent=f"p{i}") for i in range(8)]
    often = [record(i, [1.0, float(i % 2)], agent=f"p{i % 2}") for i in range(2 * MIN_UNITS)]
    alone = [record(i, [1.0, i / 9]) for i in range(8)]
    pages = []
    for name, records in (("few", few), ("often", often), ("alone", alone)):
        run_of(tmp_path / name, records)
        pages.append(page_of(tmp_path / name, tmp_path / f"{name}.html"))
    assert ["no prompt was" in page for page in pages[:2]] == [True, False]
    assert ["Most stable" in page for page in pages] == [False, True, False]
    assert "no ranking" not in pages[2] and 'id="prompts"' in pages[2], "one has no rank"


def test_names_with_dollars_and_underscores_are_drawn_as_they_are(tmp_path):
    names = ("$x^{", "_hidden")
    runs = [(number, name) for number in range(3) for name in names]
    records = [record(i, [1.0, 0.5], method=name, category="a$b$") for i, name in runs]
    run_of(tmp_path / "run", records)
    report.write([tmp_path / "run"], tmp_path / "page.html")
    svg = (tmp_path / "page_figures" / "drift.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in svg for name in names)


def line_chart(chart):
    """The SVG of a chart."""
    return str(template_environment().get_template("charts.svg.j2").module.line_chart(chart))


def test_a_wider_line_is_explained():
    template = template_environment().from_string(
        '{% import "parts.html.j2" as parts with context %}{{ parts.covered_note([chart]) }}'
    )
    low, high = ([Estimate(30, mean, None, None, None)] * 2 for mean in (0.2, 0.9))
    apart = Chart("t", "d", [Curve("a", low, 0), Curve("b", high, 1)], 2)
    covered = Chart("t", "d", [Curve("a", low, 0), Curve("b", low, 1)], 2)
    assert template.render(chart=apart).strip() == ""
    assert "wider where another one would hide it" in template.render(chart=covered)


def test_chart_puts_values_where_they_belong():
    points = [Estimate(9, 1.0, 0.3, 0.9, 1.0), Estimate(9, 0.0, 0.3, 0.0, 0.1)]
    svg = line_chart(Chart("t<", "d", [Curve("a<b", points, 0)], 2))
    assert 'aria-label="t&lt;. d"' in svg
    assert re.search(r'class="curve s0" points="34\.0,12\.0 418\.0,260\.0"', svg)
    whisker = re.search(r'class="whisker s0" d="([^"]*)"', svg)[1]
    assert whisker.count("h4") == 2, "ends beyond 0 and 1 have no cap"
    single = line_chart(Chart("t", "d", [Curve("one", points[:1], 0)], 1))
    assert single.count("interval") == 1


@pytest.mark.parametrize(
    ("largest", "top"),
    [(0.0, 1.0), (0.148, 0.2), (0.41, 0.6), (0.31, 0.4), (1.0, 1.0), (0.02, 0.02)],
)
def test_axes_end_on_round_numbers(largest, top):
    assert round_top([largest]) == pytest.approx(top)
