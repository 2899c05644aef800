"""Reports rule by rule, on a bot that breaks its rules in known rounds."""

import json
import re

import numpy as np
import pytest
from drift_sentences import opening_of
from fast_set import only_fast
from scripted_model import ScriptedModel

from holdfast import drift, report
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.estimate_rows import EstimateRow, first_broken, is_never_followed, rule_rows
from holdfast.analysis.outcome import Outcome
from holdfast.analysis.row_differences import rule_differences
from holdfast.analysis.series import read_series
from holdfast.analysis.summary import summarise
from holdfast.records import read_run
from holdfast.report.baseline_sentences import baseline_hint
from holdfast.report.score_phrases import broken_text, fall_text

BREAKS_IN = {"signs": 3, "cheap": 1}  # from this round on; the third rule is always kept
RULES = tuple(drift.Rule(name, (f"{name}?",), {"regex": "kept"}) for name in (*BREAKS_IN, "short"))
METHODS = ("none", "boost:factor=4")
SUITE = drift.Suite("bot", (drift.Case("tony", "rules", "Be Tony.", rules=RULES),), ("hello",))


class Forgetful(ScriptedModel):
    """A model that breaks each rule from its round on, except in every fourth conversation."""

    def text(self, request):
        chat = request.messages
        rule, number = chat[-1]["content"].rstrip("?"), len(chat) // 2
        _, conversation = request.thread or (None, 0)  # a baseline's probes have no thread
        is_broken = number >= BREAKS_IN.get(rule, 99) and conversation % 4
        return "broken" if is_broken else "kept"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    settings = drift.Settings(rounds=4, conversations=24)
    return drift.run(Forgetful(), SUITE, tmp_path_factory.mktemp("rules") / "run", settings)


class Wavering(Forgetful):
    """Never signs; from round 2 on, few conversations are cheap, but in round 3 most are."""

    def text(self, request):
        chat, conversation = request.messages, request.thread[1]
        rule, number = chat[-1]["content"].rstrip("?"), len(chat) // 2
        less = number > 1 and conversation % 6 >= (5 if number == 3 else 1)
        is_kept = {"signs": False, "cheap": not less}.get(rule, True) or request.methods
        return "kept" if is_kept else "broken"


@pytest.fixture(scope="module")
def wavering(tmp_path_factory):
    settings = drift.Settings(rounds=5, conversations=24)
    folder = tmp_path_factory.mktemp("wavering") / "run"
    return drift.run(Wavering(), SUITE, folder, settings, METHODS)


# Scores by rule and round


def test_each_rule_has_its_scores_by_round(run):
    rows = rule_rows(read_series(run))
    assert [row.group for row in rows] == ["signs", "cheap", "short"]
    means = [[point.mean for point in row.points] for row in rows]
    assert means == [[1, 1, 0.25, 0.25], [0.25] * 4, [1] * 4]
    expected = [([0, 0, 18, 0], 6, 24), ([18, 0, 0, 0], 6, 24), ([0, 0, 0, 0], 24, 24)]
    assert [(row.first_broken_by_round, row.kept_throughout, row.n) for row in rows] == expected


def test_the_round_in_which_a_rule_was_lost_is_reported(run):
    rows = rule_rows(read_series(run))
    falls = ["followed less from round 3", "no clear fall", "no clear fall"]
    assert [fall_text(row) for row in rows] == falls
    first, _, last = (broken_text(row) for row in rows)
    assert re.fullmatch(".*round 3: 18; .*6 of 24", first)
    assert last == "kept throughout: 24 of 24"


def test_a_rule_lost_only_in_the_last_round_is_reported_for_that_round(run):
    three = [read_series(run)[0].until(3)]
    assert fall_text(rule_rows(three)[0]).endswith("in round 3")
    assert opening_of(three)[0].startswith("In round 3,") and "“signs”" in opening_of(three)[0]


def test_first_broken_skips_unmeasured_rounds():
    values = np.array([[1, np.nan, 0.4], [0.5, 1, 1], [np.nan, 0, 0]])
    assert first_broken(values) == [3, 0, 2]


def test_a_fall_that_rests_on_too_few_scores_is_not_called_none(run):
    row = rule_rows(read_series(run))[0]
    values = row.values.copy()
    values[:5, -1] = np.nan  # five of 24 conversations were cut in the last round
    values[:5, 2] = np.nan
    few = EstimateRow(row.series, row.measure, values, row.members, row.group, row.case, row.rule)
    assert few.change.n == 19 and few.change.mean < -0.5
    assert fall_text(few) == (
        "scored in both the first round and the last in 19 of 24 conversations, too few to tell"
        " (that takes 20)"
    )


# Rules that are never followed


def test_a_rule_that_was_never_followed_is_reported_as_such(wavering):
    rows = rule_rows(read_series(wavering)[:1])
    never, less, steady = (fall_text(row) for row in rows)
    assert "0 of 24" in never and re.findall(r"\d", less) == ["2", "2", "4", "5"]
    assert not re.search(r"\d", steady)
    assert [row.never_followed for row in rows] == [True, False, False]
    lower = [(row.lower_in_rounds, row.lower_from_round) for row in rows]
    assert lower == [((), None), ((2, 4, 5), 2), ((), None)]


def test_a_rule_that_is_hardly_ever_followed_counts_as_never_followed(tmp_path):
    class Rarely(Forgetful):
        def text(self, request):
            return "kept" if request.thread[1] == 5 else "broken"

    settings = drift.Settings(rounds=2, conversations=40)
    run = drift.run(Rarely(), SUITE, tmp_path / "run", settings)
    series = read_series(run)
    falls = {"never followed (less than 20% everywhere)"}
    assert {fall_text(row) for row in rule_rows(series)} == falls
    assert opening_of(series)[0].endswith("“signs”, “cheap” and “short”.")


def test_conversations_without_a_score_do_not_show_that_a_rule_is_never_followed():
    """In 30 conversations, the replies to a rule were judged in a few, and broke it."""
    values = np.full((30, 2), np.nan)
    values[:19] = 0.0
    assert not is_never_followed(values, error=0.05), "19 are too few"
    values[19, 1] = 0.0
    assert is_never_followed(values, error=0.05)


# The first sentence


class Trading(ScriptedModel):
    """Keeps one rule until round 2 and another one from then on, so that their mean stays."""

    def text(self, request):
        chat = request.messages
        late = {"signs": False, "cheap": True}.get(chat[-1]["content"].rstrip("?"))
        return "kept" if late in (None, len(chat) // 2 > 1) else "broken"


def test_a_lost_rule_is_drift_even_if_the_mean_stays(tmp_path):
    drift_run = drift.run(Trading(), SUITE, tmp_path, drift.Settings(rounds=3, conversations=24))
    assert "“signs” less" in opening_of(read_series(drift_run))[0]
    assert results_of(drift_run).findings.outcome is Outcome.DRIFTS


def test_the_first_sentence_names_the_rules(wavering):
    first, second, *_ = opening_of(read_series(wavering))
    assert re.search("never .*“signs” .*“cheap” .*round 2", first)
    assert re.search("39% in round 5, .*67%", second)


def test_too_few_conversations_name_no_rule(tmp_path):
    few = drift.run(Wavering(), SUITE, tmp_path / "run", drift.Settings(rounds=2, conversations=8))
    assert opening_of(read_series(few))[0].startswith("Only 8 conversations,")
    assert fall_text(rule_rows(read_series(few))[0]).startswith("n = 8,")


@pytest.mark.parametrize("rules", (1, 9))
@pytest.mark.parametrize("never", only_fast((0, 1, 5), 0, 1))
@pytest.mark.parametrize("methods", (("none",), METHODS[1:]))
def test_the_first_line_is_short_for_any_number_of_rules(tmp_path, rules, never, methods):
    class Losing(ScriptedModel):
        def text(self, request):
            chat = request.messages
            rule, number = chat[-1]["content"].rstrip("?"), len(chat) // 2
            later = int(rule[-1]) % 3 if rule[-1:].isdigit() else 0
            is_broken = rule.startswith("never") or number > 1 + later
            return "broken" if is_broken else "kept"

    names = [f"never {n}" for n in range(never)] + [f"rule {n}" for n in range(rules)]
    rules = tuple(drift.Rule(name, (f"{name}?",), {"regex": "kept"}) for name in names)
    case = drift.Case("tony", "rules", "Be Tony.", rules=rules)
    suite, settings = drift.Suite("bot", (case,), ("hi",)), drift.Settings(4, 20)
    run = drift.run(Losing(), suite, tmp_path / "run", settings, methods)
    first = opening_of(read_series(run))[0]
    assert len(first.split()) <= 25, first
    assert "less often" in first and ("never follows" in first) == bool(never)


@pytest.mark.parametrize(
    ("worst", "names"),
    [((), "follows 6 rules less often"), (("e",), "follows “e” and 5 more less often")],
)
def test_of_rules_that_lose_the_same_the_first_sentence_names_all_or_none(tmp_path, worst, names):
    class Losing(ScriptedModel):
        def text(self, request):
            chat = request.messages
            rule, number = chat[-1]["content"].rstrip("?"), len(chat) // 2
            is_kept = number == 1 or (rule not in worst and request.thread[1] % 2)
            return "kept" if is_kept else "broken"

    rules = tuple(drift.Rule(name, (f"{name}?",), {"regex": "kept"}) for name in "abcdef")
    suite = drift.Suite("bot", (drift.Case("tony", "rules", "Be Tony.", rules=rules),), ("hi",))
    run = drift.run(Losing(), suite, tmp_path / "run", drift.Settings(2, 24))
    assert names in opening_of(read_series(run))[0]


# Methods


def test_each_rule_is_compared_under_each_method(wavering, tmp_path):
    series = read_series(wavering)
    pairs = rule_differences(series, rule_rows(series))
    compared = [(pair.row.group, pair.row.series.method) for pair in pairs]
    assert compared == [(name, "boost:factor=4") for name in ("signs", "cheap", "short")]
    assert [pair.last_round.mean for pair in pairs] == pytest.approx([1, 5 / 6, 0])
    assert pairs[1].over_all_rounds.mean == pytest.approx((3 * 5 / 6 + 1 / 6) / 5)
    page = report.write([wavering.folder], tmp_path / "report.html").read_text()
    assert "<h3>Rule by method</h3>" in page and "against none" in page
    prompts = page[page.index('id="prompt-table"') :]
    assert all(f">tony · {method}" in prompts for method in ("none", "boost"))
    none, boost = summarise(wavering).to_json()["results"]
    assert [rule["kept_in_any_round"] for rule in none["rules"]] == [0, 24, 24]
    assert [rule["lower_from_round"] for rule in none["rules"]] == [None, 2, None]
    assert none["rules"][1]["lower_in_rounds"] == (2, 4, 5) and none["rules"][1]["against"] is None
    verdicts = [rule["against"]["last_round"]["verdict"] for rule in boost["rules"]]
    assert verdicts == ["higher", "higher", "cannot tell"]


def test_methods_with_unequal_numbers_of_conversations_give_both(tmp_path):
    for method, conversations in (("none", 4), ("boost:factor=4", 2)):
        settings = drift.Settings(rounds=2, conversations=conversations)
        run = drift.run(Forgetful(), SUITE, tmp_path / "run", settings, [method])
    assert "short (n = 2 to 4, too few to tell)" in report.table(run)


# Terminal, page and table


def test_the_terminal_has_a_line_per_rule(run, wavering):
    """One method: first and last round and the loss; several: first of none and last of each."""
    text = report.table(run)
    table = text[text.index("Rule by rule") : text.index("Some rules")].splitlines()
    rows = {line.split()[0]: line for line in table[2:] if line}
    pattern = r"signs +1.00 \[.*\] +0.25 \[.*\]  followed less from round 3"
    assert re.fullmatch(pattern, rows["signs"])
    assert list(rows) == ["signs", "cheap", "short"]
    text = report.table(wavering)
    table = text[text.index("Stability by rule and") : text.index("Some rules")].splitlines()
    heads = [re.split(r" {2,}", line.strip()) for line in table[1:3]]
    assert heads == [["none", "none", "boost:factor=4"], ["round 1", "round 5", "round 5"]]
    assert table[3].split()[0] == "signs" and table[3].endswith("1.00 higher")
    assert table[5].split()[0] == "short" and table[5].endswith("1.00")
    assert len(text.splitlines()) < 40


def test_page_reports_rule_by_rule_and_names_the_rule_of_each_probe(run, tmp_path):
    page = report.write([run.folder], tmp_path / "report.html").read_text()
    assert 'id="rules"' in page and 'href="#rules"' in page
    assert 'id="categories"' not in page
    section = page[page.index('id="rules"') :]
    assert "from round 3" in section and "round 3: 18" in section
    chunk = page[page.index('id="chunk-0">') + len('id="chunk-0">') :]
    probes = json.loads(chunk[: chunk.index("</script>")])[0]["probes"]
    assert [probe[-2] for probe in probes[:3]] == ["signs", "cheap", "short"]


def test_the_table_of_probes_names_rules(run):
    frame = run.to_pandas()
    means = frame.groupby("rule")["score"].mean().to_dict()
    assert means == {"signs": 0.625, "cheap": 0.25, "short": 1.0}


@pytest.mark.parametrize(("category", "has_categories"), [("mine", True), ("rules", False)])
def test_runs_without_rules_have_no_such_section(tmp_path, category, has_categories):
    """A single category has its own section unless it is the default one."""
    case = drift.Case("tony", category, "Be Tony.", ("signs?",), {"regex": "kept"})
    suite, settings = drift.Suite("one", (case,), ("hello",)), drift.Settings(2, 2)
    plain = drift.run(Forgetful(), suite, tmp_path / "run", settings)
    assert rule_rows(read_series(plain)) == [] and "Rule by rule" not in report.table(plain)
    page = report.write([plain.folder], tmp_path / "report.html").read_text()
    assert 'id="rules"' not in page and ('id="categories"' in page) is has_categories


def test_a_run_with_rules_suggests_the_baseline_until_it_has_been_asked(run, tmp_path):
    hint = " ".join(report.table(run).split()[-12:])
    assert baseline_hint(rule_rows(read_series(run))).endswith(hint) and "--baseline" in hint
    settings = drift.Settings(rounds=1, conversations=2)
    baseline_run = drift.run(Forgetful(), SUITE, tmp_path / "run", settings)
    drift.ask_baseline(Forgetful(), SUITE, tmp_path / "run", settings)
    assert "--baseline" not in report.table(baseline_run)


# Several prompts


def test_rules_of_several_prompts_are_distinguished(tmp_path):
    ada = drift.Case("ada", "rules", "Be Ada.", rules=RULES[:1])
    two = drift.Suite("bots", (SUITE.cases[0], ada), ("hello",))
    run = drift.run(Forgetful(), two, tmp_path / "run", drift.Settings(rounds=2, conversations=8))
    rows = rule_rows(read_series(read_run(run.folder)))
    assert {row.group for row in rows} == {"ada, signs", *(f"tony, {rule.id}" for rule in RULES)}
    page = report.write([run.folder], tmp_path / "report.html").read_text()
    assert "fewer than 5 conversations" in page and "Keeps tony" not in page
    assert sum(row.n for row in rows if row.group.endswith("signs")) == 8


def test_rules_of_many_prompts_are_grouped_by_id(tmp_path):
    cases = tuple(drift.Case(f"bot-{i}", "rules", f"Be {i}.", rules=RULES[:2]) for i in range(7))
    settings = drift.Settings(rounds=2, conversations=24)
    run = drift.run(Forgetful(), drift.Suite("bots", cases, ("hello",)), tmp_path / "run", settings)
    rows = rule_rows(read_series(run))
    assert [(row.group, row.n) for row in rows] == [("signs", 24), ("cheap", 24)]
    assert [len(row.points) for row in rows] == [2, 2]
