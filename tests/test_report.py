"""The report: statistics checked against plain computations, wording, and escaping."""

import base64
import gzip
import json
import math
import operator
import random
import re
import statistics as plain_statistics
from dataclasses import replace

import numpy as np
import pytest
from drift_sentences import (
    NEXT_STEPS,
    opening_of,
    prompts_run,
    record,
    run_of,
    series_of,
)
from jinja2 import StrictUndefined
from oracles import clopper_pearson
from page_outline import Outline, read_page
from synthetic_run import METHODS, NASTY, write_run

from holdfast import report
from holdfast.analysis.estimates import LEAST_DRAWN, category_rows, compare, row_of
from holdfast.analysis.outcome import Outcome, findings_of
from holdfast.analysis.prompt_rows import by_prompt
from holdfast.analysis.series import label_runs, read_series
from holdfast.analysis.statistics import (
    DIFFERENCES,
    RESAMPLES,
    SCORES,
    Estimate,
    change,
    estimate,
    estimate_columns,
    paired_difference,
    row_means,
    unpaired_difference,
)
from holdfast.analysis.summary import results_of
from holdfast.errors import RecordsError, UsageError
from holdfast.records import Conversation, Ended, open_run, read_run
from holdfast.report import sentences, wording
from holdfast.report.charts import Chart, Curve, round_top
from holdfast.report.conversations import pack, script_chunks, script_json
from holdfast.report.next_step import finding_of, next_step
from holdfast.report.page import environment
from holdfast.report.sentences import counted
from holdfast.report.shortfalls import early_end
from holdfast.report.wording import signed

# a percentile of 10,000 resamples of scores with sd 0.5 and n = 60 moves by about 0.0015
BOOTSTRAP_NOISE = 0.006


def page_of(folder, out):
    """The text of a run's page."""
    return report.write([folder], out).read_text(encoding="utf-8")


def test_mean_and_deviation_of_known_values():
    item = estimate(np.array([0.0, 1.0, 1.0, 0.0]), SCORES)
    assert item.n == 4 and item.mean == 0.5
    assert item.sd == pytest.approx(math.sqrt(1 / 3))
    low, high = clopper_pearson(2, 4)
    assert (item.low, item.high) == pytest.approx((low, high), abs=BOOTSTRAP_NOISE)


def test_interval_agrees_with_resampling_by_hand():
    """Random weights, one of them on an unseen conversation with the worst or the best score."""
    generator = random.Random(5)
    values = [generator.choice([0.0, 0.0, 0.3, 1.0]) for _ in range(60)]

    def means(unseen):
        for _ in range(RESAMPLES):
            weights = [generator.expovariate(1) for _ in range(61)]
            yield sum(map(operator.mul, weights, [*values, unseen])) / sum(weights)

    item = estimate(np.array(values), SCORES)
    low, high = (sorted(means(unseen)) for unseen in SCORES)
    assert item.low == pytest.approx(low[int(0.025 * RESAMPLES)], abs=BOOTSTRAP_NOISE)
    assert item.high == pytest.approx(high[int(0.975 * RESAMPLES)], abs=BOOTSTRAP_NOISE)
    assert item.mean == pytest.approx(plain_statistics.fmean(values))
    assert item.sd == pytest.approx(plain_statistics.stdev(values))


def test_interval_covers_the_truth_as_often_as_it_says():
    """At least 95% of 400 samples of size 40."""
    generator = np.random.default_rng(2)
    # each column is one sample; the true mean is 2/3
    items = estimate_columns(generator.beta(2, 1, (40, 400)), SCORES)
    covered = sum(item.low <= 2 / 3 <= item.high for item in items)
    assert covered / 400 >= 0.95


def test_no_interval_for_fewer_than_two():
    alone = Estimate(1, 0.7, None, None, None)
    assert estimate(np.array([0.7]), SCORES) == alone and not alone.excludes_zero
    assert estimate(np.array([]), SCORES) == Estimate(0, None, None, None, None)
    assert estimate(np.array([np.nan, 0.7, np.nan]), SCORES) == alone


def test_missing_rounds_are_left_out():
    values = np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 0.0], [0.0, np.nan]])
    first, second = estimate_columns(values, SCORES)
    assert (first.n, first.mean) == (4, 0.5)
    assert (second.n, second.mean) == (2, 0.5)
    assert change(values).n == 2 and change(values).mean == 0.0
    means = row_means(np.array([[0.0, 1.0], [np.nan, 0.25], [np.nan, np.nan]]))
    assert means.tolist()[:2] == [0.5, 0.25]


def test_pairing_removes_variation_between_conversations():
    """A constant gain is clear on pairs, however different the conversations are."""
    baseline = np.linspace(0, 0.8, 60)
    paired = paired_difference(baseline + 0.1, baseline)
    assert paired.mean == pytest.approx(0.1) and paired.excludes_zero
    assert not unpaired_difference(baseline + 0.1, baseline).excludes_zero


def test_probes_of_a_round_are_averaged_within_their_conversation(tmp_path):
    records = [record(0, [[1.0, 0.0, 0.5], 1.0], mass=0.2), record(1, [1.0, [0.0, 0.5]])]
    series = read_series(run_of(tmp_path, records))[0]
    assert series.stability.tolist() == [[0.5, 1.0], [1.0, 0.25]]
    assert np.isnan(series.adoption).all()
    assert series.mass[0].tolist() == [0.2, 0.2] and np.isnan(series.mass[1]).all()


def test_rows_follow_conversation_numbers_and_methods_start_with_none(tmp_path):
    records = [record(1, [0.1], method="m:k=1"), record(0, [0.2], method="m:k=1")]
    records += [record(1, [0.3]), record(0, [0.4])]
    series = read_series(run_of(tmp_path, records))
    assert [(item.method, item.label) for item in series] == [("none", "none"), ("m:k=1", "m")]
    assert [item.stability[:, 0].tolist() for item in series] == [[0.4, 0.3], [0.2, 0.1]]


def test_only_shared_conversations_are_compared(tmp_path):
    records = [record(0, [1.0, 0.2]), record(1, [1.0, 0.4])]
    records += [record(1, [1.0, 0.9], method="m"), record(5, [1.0, 0.0], method="m")]
    plain, method = read_series(run_of(tmp_path, records))
    found = compare(row_of(method, "stability"), row_of(plain, "stability"))
    assert found.n == 1 and found.last.mean == pytest.approx(0.5)
    assert found.mean.mean == pytest.approx(0.25)


def test_unmatched_conversations_are_not_compared(tmp_path):
    def stability(name, n, agent):
        run = run_of(tmp_path / name, [record(n, [1.0], agent=agent)])
        return row_of(read_series(run)[0], "stability")

    one, other, apart = stability("1", 0, "x"), stability("2", 0, "y"), stability("3", 7, "x")
    assert compare(one, other) is None and compare(one, apart) is None


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
    rows = by_prompt(read_series(run_of(tmp_path, records))[0])
    assert [(row.id, row.n, row.first, row.last, row.mean) for row in rows] == [
        ("loose", 2, 0.5, 0.0, 0.25),
        ("firm", 1, 1.0, 1.0, 1.0),
    ]


def test_adoption_of_a_prompt_comes_from_conversations_whose_user_has_it(tmp_path):
    swapped = record(0, [1.0], [0.75], agent="b")
    swapped["user"] = {"id": "a", "category": "pattern", "system_prompt": "Be a."}
    series = read_series(run_of(tmp_path, [swapped, record(1, [1.0], [0.25])]))[0]
    rows = {row.id: row for row in by_prompt(series)}
    assert (rows["a"].adopted, rows["b"].adopted) == (0.75, 0.25)


def test_folders_are_labelled_by_the_parts_that_differ(tmp_path):
    assert label_runs([tmp_path / "a"]) == [""]
    assert label_runs([tmp_path / "a", tmp_path / "b"]) == ["a", "b"]
    assert label_runs([tmp_path / "x" / "run", tmp_path / "y" / "run"]) == ["x/run", "y/run"]
    with pytest.raises(UsageError) as raised:
        label_runs([tmp_path / "a", tmp_path / "a"])
    assert (raised.value.option, raised.value.value) == ("folders", tmp_path / "a")


def test_the_opening_of_a_run_that_drifts(tmp_path):
    series = series_of(tmp_path, lambda i: 1.0, lambda i: float(i % 4 == 0), adoption=[0.0, 0.25])
    assert findings_of(series[0]).outcome is Outcome.DRIFTS
    verdict, change, adopts = opening_of(series)
    assert numbers_in(verdict) == [25, 2, 100, 1], "of the last round, and of the first"
    assert numbers_in(change) == [75, 95, 54, 87, 40], "points, their interval, conversations"
    assert numbers_in(adopts) == [25, 2, 0, 1, 25, 95, 14, 32]


def numbers_in(text):
    """The numbers of a sentence, in order."""
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


def test_the_opening_does_not_claim_what_chance_explains(tmp_path):
    records = [
        record(i, [float(i % 10 != 0), float(i % 10 not in (1, 2))], [float(i % 20 == 0), 0.05])
        for i in range(40)
    ]
    series = read_series(run_of(tmp_path, records))
    assert findings_of(series[0]).outcome is Outcome.UNDECIDED
    verdict, interval, adopts = opening_of(series)
    assert numbers_in(verdict)[0] == 80 and "drifts" not in verdict
    assert numbers_in(interval) == [40, -10, 95, -29, 10] and "chance" in interval
    assert numbers_in(adopts)[0] == 5 and "no clear" in adopts


@pytest.mark.parametrize(
    ("n", "method", "outcome"),
    [
        (3, "none", Outcome.TOO_FEW),
        (19, "none", Outcome.TOO_FEW),
        (20, "none", Outcome.DRIFTS),
        (20, "boost:factor=2", Outcome.DRIFTS),
    ],
)
def test_the_headline_needs_20_conversations_and_names_a_lone_method(tmp_path, n, method, outcome):
    series = series_of(tmp_path, lambda i: 1.0, lambda i: 0.5, n, method=method)
    headline = opening_of(series)[0]
    assert findings_of(series[0]).outcome is outcome
    assert ("drifts" in headline) == (n >= 20) and ("50%" in headline)
    assert (f"{n} conversations" in headline) == (n < 20)
    assert ("boost:factor=2" in headline) == (method != "none")


def test_a_difference_that_rounding_would_hide_is_shown(tmp_path):
    series = series_of(tmp_path, lambda i: 0.9049, lambda i: 0.8951, n=800)
    assert re.findall(r"[\d.]+%", opening_of(series)[0]) == ["89.5%", "90.5%"]


SPLIT = {"methods": ("none", "split-softmax:exponent=0.5")}
REPEAT = {"methods": ("repeat-prompt:probability=1.0",)}


@pytest.mark.parametrize(
    "shape",
    [
        {"conversations": 1, "rounds": 1},
        {"conversations": 24, "rounds": 1},
        {"conversations": 24, "rounds": 12, **REPEAT},
        {"conversations": 60, "rounds": 16, "prompts": 40},
        {"conversations": 60, "rounds": 4, "prompts": 5, **REPEAT},
    ],
    ids=str,
)
def test_the_first_line_is_short(tmp_path, shape):
    series = read_series(read_run(write_run(tmp_path / "run", **shape)))
    first, *rest = opening_of(series)
    assert len(first.split()) <= sentences.MAX_WORDS == 25, first
    assert all(line.endswith(".") and "None" not in line for line in (first, *rest))


@pytest.mark.slow
def test_page_says_where_the_probe_was_asked(tmp_path):
    for probe_at, said in (
        ("in-place", "before anything has been said"),
        ("after-round", "round 1 already carries one exchange"),
    ):
        write_run(tmp_path / probe_at, conversations=3, rounds=2, probe_at=probe_at)
        page = page_of(tmp_path / probe_at, tmp_path / f"{probe_at}.html")
        assert said in page
        assert f'"probedAfter":{"true" if probe_at == "after-round" else "false"}' in page


def test_headline_of_one_round(tmp_path):
    (headline,) = opening_of(read_series(run_of(tmp_path, [record(0, [0.5])])))
    assert "50%" in headline and "1 conversation" in headline


@pytest.mark.parametrize(
    ("better", "n", "verb", "numbers"),
    [
        (lambda i: 0.5 + i % 2 / 2, 40, "still", [75, 2, 50]),
        (lambda i: i % 2 / 10, 40, "only", [5, 2, 20]),
        (lambda i: i % 2 / 2, 40, "chance", [25, 2, 0]),
        (lambda i: 0.5 + i % 2 / 2, 4, "too few", [75, 2]),
    ],
)
def test_the_fix_is_reported_with_the_paired_difference(tmp_path, better, n, verb, numbers):
    records = [record(i, [1.0, 0.25]) for i in range(n)]
    records += [record(i, [1.0, better(i)], method="m") for i in range(n)]
    line = sentences.fix(read_series(run_of(tmp_path, records)))
    assert verb in line and numbers_in(line)[:3] == numbers


def test_numbers_are_written_with_their_sign_and_no_minus_zero():
    assert wording.signed(Estimate(9, -0.001, 0.1, -0.02, 0.03)) == "0.00 [-0.02, +0.03]"
    assert wording.plain(Estimate(9, 0.5, 0.1, 0.25, 0.75)) == "0.50 [0.25, 0.75]"
    assert wording.plain(Estimate(1, 0.5, None, None, None)) == "0.50"
    falls = Estimate(50, -0.321, 0.1, -0.391, -0.256)
    assert wording.points(falls) == "-32 points (95% interval -39 to -26)"
    assert numbers_in(wording.points_apart(falls)) == [32, 95, 26, 39]
    one = Estimate(50, 0.01, 0.1, -0.391, 0.004)
    assert wording.points(one) == "+1 point (95% interval -39 to 0)"


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


def test_the_interval_for_other_prompts_resamples_whole_prompts(tmp_path):
    """Conversations of one prompt are identical here, so only the prompts set the interval."""
    many = row_of(prompts_run(tmp_path / "many", 24, 5)[0], "stability").change
    of_prompts = estimate(np.array([-1.0, 0.0] * 12), DIFFERENCES)
    others = many.other_prompts
    assert (others.prompts, others.low, others.high) == (
        24,
        pytest.approx(of_prompts.low, abs=BOOTSTRAP_NOISE),
        pytest.approx(of_prompts.high, abs=BOOTSTRAP_NOISE),
    )
    assert others.low < many.low < many.high < others.high
    few = row_of(prompts_run(tmp_path / "few", 19, 5)[0], "stability").change
    assert few.other_prompts is None


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
    told = none["change"]["stability"]["other_prompts"]
    ends = {"low": pytest.approx(value.low, abs=1e-6), "high": pytest.approx(value.high, abs=1e-6)}
    assert told == {"prompts": value.prompts, **ends}
    assert split["against"]["stability"]["last_round"]["other_prompts"]["prompts"] >= 20


@pytest.mark.parametrize("case", NEXT_STEPS)
def test_a_next_step_is_one_sentence_with_its_commands(case):
    first, *commands = next_step(NEXT_STEPS[case]).splitlines()
    assert first.startswith("Next: ") and first.count("Next") == 1
    assert all(line.startswith(("holdfast ", "or search ")) for line in commands)


def test_the_commands_of_the_next_step_repeat_the_options_of_the_run():
    commands = {case: next_step(finding).splitlines()[1:] for case, finding in NEXT_STEPS.items()}
    assert commands["few conversations"] == ["holdfast drift --conversations 20"]
    serve = "holdfast serve --model m --default-method boost:factor=4"
    assert commands["a fix that helps"][-1] == serve
    search = "holdfast calibrate --model m --suite bot"
    assert commands["a drift"][-1] == search
    assert "repetition:probability=1" in commands["a drift behind an API"][0]
    assert search not in commands["a drift behind an API"]
    assert commands["stable"][0].startswith("holdfast check bot --model m")
    for case in ("replayed dialogs", "breakdown", "a fix that helps behind an API"):
        assert commands[case] == []


def test_the_next_step_of_a_run_is_read_from_its_records_and_command(tmp_path):
    records = [record(i, [1.0, float(i % 4 == 0)]) for i in range(40)]
    records += [record(i, [1.0, 1.0], method="m") for i in range(40)]
    about = {"command": "drift", "argv": "holdfast drift --model 'a b' --suite=x.yaml --top-p 1"}
    with open_run(tmp_path, {}, about) as run:
        for item in records:
            run.append(Conversation.model_validate(item))
    run = read_run(tmp_path)
    results = results_of(run)
    found = finding_of(results)
    assert (found.model, found.suite, found.fix) == (("--model", "a b"), "x.yaml", "m")
    assert found.outcome is Outcome.DRIFTS and found.helps
    alone = finding_of(replace(results, series=results.series[:1]))
    assert alone.outcome is Outcome.DRIFTS and not alone.fix
    searched = "--suite x.yaml --top-p 1 --rounds 2 --ask-at 3 --sweep split-softmax:"
    assert searched in next_step(alone)


def test_the_number_of_conversations_needed_for_a_verdict(tmp_path):
    """Half of 24 conversations fall by 0.3 and half rise: the sd is 0.306, and the mean, 0, is 0.1
    away from a fall that matters. The next look needs 2.81 standard errors, for its 0.5%, and room
    for an unseen conversation.
    """
    series_of(tmp_path, lambda i: 0.5, lambda i: 0.2 if i % 2 else 0.8, n=24)
    found = finding_of(results_of(read_run(tmp_path)))
    assert found.outcome not in (Outcome.DRIFTS, Outcome.HOLDS)
    assert 2.81 * 0.3064 / math.sqrt(90) + 1 / 91 > 0.1 >= 2.81 * 0.3064 / math.sqrt(100) + 1 / 101
    assert found.needed == 100


def test_the_short_terminal_table_has_only_sentences_and_stability(tmp_path):
    run = read_run(write_run(tmp_path / "run", conversations=12))
    text = report.table(run)
    sentences, rounds, compared = text.strip().split("\n\n")
    assert sentences.startswith("11 of 12 conversations")
    title, head, *rows = rounds.splitlines()
    assert counted(read_series(run)) in title
    assert head.split() == ["round", *"12345678"]
    for row, item in zip(rows, read_series(run), strict=True):
        means = [f"{point.mean:.2f}" for point in estimate_columns(item.stability, SCORES)]
        assert row.split() == [item.method, *means]
    difference = row_of(read_series(run)[1], "stability"), row_of(read_series(run)[0], "stability")
    assert METHODS[1] in compared and signed(compare(*difference).last) in compared
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
    for refused, *given in (
        (report.table, run),
        (report.write, [tmp_path / "new"], tmp_path / "report.html"),
        (report.write_summary, tmp_path / "new"),
    ):
        with pytest.raises(RecordsError) as raised:
            refused(*given)
        assert raised.value.value == tmp_path / "new"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A page of a main run and its control, both with hostile texts."""
    root = tmp_path_factory.mktemp("report")
    control = {"methods": ("none",), "empty_user": True}
    folders = [
        write_run(root / "main", conversations=30, nasty=True),
        write_run(root / "control", conversations=30, nasty=True, **control),
    ]
    return report.write(folders, root / "out" / "page.html")


def test_page_loads_nothing_external_and_its_ids_are_unique(written):
    assert read_page(written).sources == ["data:,"]


def test_no_text_of_a_model_becomes_markup(written):
    text = written.read_text(encoding="utf-8")
    outline = read_page(written)
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
    seen = set()
    for place, (at, number, agent, *_) in enumerate(index["rows"]):
        item = series[at]
        source = next(r for r in item.records if r.conversation == number)
        body = chunks[place // index["perChunk"]][place % index["perChunk"]]
        assert index["prompts"][agent]["text"] == source.agent.system_prompt
        assert [turn[2] for turn in body["turns"]] == [turn.text for turn in source.turns]
        assert [(index["questions"][p[2]], p[3], p[5]) for p in body["probes"]] == [
            (p.question, p.reply, p.reason) for p in source.probes
        ]
        scores = [p.score for p in source.probes]
        assert [p[4] for p in body["probes"]] == pytest.approx(scores, abs=1e-4)
        seen.add((at, number))
    assert len(seen) == 120
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
    assert ended["ended"] == early_end(Ended(**records[1]["ended"]))
    assert "no <b>more</b>" in ended["ended"] and {turn[3] for turn in whole["turns"]} == {""}
    cut, refused = (turn[3] for turn in ended["turns"][:2])
    assert "cut" in cut and "refusal" in refused
    assert ended["probes"][0][8] == "a tool call" and ended["probes"][1][8] == ""
    page = page_of(tmp_path / "run", tmp_path / "page.html")
    assert "content filter" in page and "<b>more" not in page


@pytest.mark.slow
def test_figures_are_written_as_svg_and_png_and_are_the_same_each_time(written, tmp_path):
    folder = written.with_name("page_figures")
    kinds = ("drift", "mass", "categories_stability", "categories_adoption")
    files = {f"{name}.{kind}" for name in kinds for kind in ("svg", "png")}
    assert {path.name for path in folder.iterdir()} == files
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    runs = [written.parents[1] / name for name in ("main", "control")]
    again = report.write(runs, tmp_path / "page.html")
    assert again.read_bytes() == written.read_bytes()
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
    drawn = tmp_path / "page_figures" / "rules.svg"
    assert drawn.exists() == is_drawn
    if is_drawn:
        text = drawn.read_text(encoding="utf-8")
        assert all(f">rule {rule}<" in text for rule in range(count))
        assert text.count('id="curve') == 2 * count


def test_prompts_are_ranked_only_if_drawn_often_enough(tmp_path):
    few = [record(i, [1.0, i / 9], agent=f"p{i}") for i in range(8)]
    often = [record(i, [1.0, float(i % 2)], agent=f"p{i % 2}") for i in range(2 * LEAST_DRAWN)]
    alone = [record(i, [1.0, i / 9]) for i in range(8)]
    pages = []
    for name, records in (("few", few), ("often", often), ("alone", alone)):
        run_of(tmp_path / name, records)
        pages.append(page_of(tmp_path / name, tmp_path / f"{name}.html"))
    assert ["no prompt was" in page for page in pages[:2]] == [True, False]
    assert ["Most stable" in page for page in pages] == [False, True, False]
    assert "no ranking" not in pages[2] and 'id="prompts"' in pages[2], "one has no rank"


def test_every_template_escapes():
    assert environment().autoescape is True
    assert environment().undefined is StrictUndefined
    source = "{{ text }}{{ text|whole }}{{ text|minus }}{{ text|spaced }}"
    made = environment().from_string(source).render(text="<b>_round 1")
    assert "<b>" not in made and made.count("&lt;b&gt;") == 4


def test_names_with_dollars_and_underscores_are_drawn_as_they_are(tmp_path):
    names = ("$x^{", "_hidden")
    runs = [(number, name) for number in range(3) for name in names]
    records = [record(i, [1.0, 0.5], method=name, category="a$b$") for i, name in runs]
    run_of(tmp_path / "run", records)
    report.write([tmp_path / "run"], tmp_path / "page.html")
    drawn = (tmp_path / "page_figures" / "drift.svg").read_text(encoding="utf-8")
    assert all(f">{name}<" in drawn for name in names)


def test_a_run_without_mass_categories_or_adoption_has_no_such_sections(tmp_path):
    run_of(tmp_path / "run", [record(i, [1.0, 0.5], category=None) for i in range(3)])
    page = page_of(tmp_path / "run", tmp_path / "page.html")
    for name in ("attention", "categories", "methods"):
        assert f'id="{name}"' not in page and f'href="#{name}"' not in page
    drawn = {path.name for path in (tmp_path / "page_figures").iterdir()}
    assert drawn == {"drift.svg", "drift.png"} and 'value="adopted"' not in page


def test_errors_say_what_to_do_instead(tmp_path):
    with pytest.raises(UsageError) as raised:
        report.write([], tmp_path / "page.html")
    assert raised.value.option == "folders"
    with pytest.raises(UsageError) as raised:
        report.write([tmp_path], tmp_path)
    assert (raised.value.option, raised.value.value) == ("--out", tmp_path)
    run_of(tmp_path / "run", [record(0, [1.0])])
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match=r"page\.html"):
        report.write([tmp_path / "run"], tmp_path / "file" / "page.html")


def drawn(chart):
    """The SVG of a chart."""
    return str(environment().get_template("charts.svg.j2").module.line_chart(chart))


def test_chart_puts_values_where_they_belong():
    points = [Estimate(9, 1.0, 0.3, 0.9, 1.0), Estimate(9, 0.0, 0.3, 0.0, 0.1)]
    svg = drawn(Chart("t<", "d", [Curve("a<b", points, 0)], 2))
    assert 'aria-label="t&lt;. d"' in svg
    assert re.search(r'class="curve s0" points="34\.0,12\.0 418\.0,260\.0"', svg)
    whisker = re.search(r'class="whisker s0" d="([^"]*)"', svg)[1]
    assert whisker.count("h4") == 2, "ends beyond 0 and 1 have no cap"
    single = drawn(Chart("t", "d", [Curve("one", points[:1], 0)], 1))
    assert single.count("interval") == 1


@pytest.mark.parametrize(
    ("largest", "top"),
    [(0.0, 1.0), (0.148, 0.2), (0.41, 0.6), (0.31, 0.4), (1.0, 1.0), (0.02, 0.02)],
)
def test_axes_end_on_round_numbers(largest, top):
    assert round_top([largest]) == pytest.approx(top)
