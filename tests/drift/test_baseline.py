"""The probes without a system prompt: asked beside a run, and what they say about its measures."""

import copy
import html
import json
from dataclasses import replace

import numpy as np
import pytest
from drift_sentences import opening_of
from scripted_model import Scripted
from shop import DISCOUNT, NEVER_SAID, SHOP, SIGNED, SIGNS, TENT, Shop, run_with_baseline
from short_drift import SUITE
from tiny import model, tokenizer

from holdfast import drift, report
from holdfast.analysis import statistics
from holdfast.analysis.estimate_rows import is_never_followed, rule_rows
from holdfast.analysis.prompt_effect import _verdict, baseline_beside
from holdfast.analysis.series import read_series
from holdfast.cli import main
from holdfast.drift.asking_baseline import ask_baseline, read_baseline
from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import RecordsError
from holdfast.records import read_run
from holdfast.records.identity import DefaultPrompt
from holdfast.report.baseline_sentences import baseline_lines
from holdfast.report.score_phrases import fall_text

RULES = (Rule("signs", (TENT,), SIGNED), Rule("price", (DISCOUNT,), NEVER_SAID))
BOTH = Case("both", "rules", "Sign every message with Robin. Never offer a discount.", rules=RULES)


# Asking

SETTINGS = drift.Settings(rounds=1, conversations=60, batch=8)


def test_every_question_is_asked_alone_and_scored_by_its_measure(tmp_path):
    before = drift.run(Shop(), SHOP, tmp_path / "run", SETTINGS).records
    shop, progress = Shop(), []
    running = drift.Running(progress=lambda n, tokens: progress.append(n))
    run = ask_baseline(shop, SHOP, tmp_path / "run", SETTINGS, running=running)
    assert read_run(tmp_path / "run").records == before, "the run itself is as it was"
    assert sum(progress) == 60 and len(run.records) == 60
    for record, request in zip(run.records, shop.requests, strict=True):
        pairing = draw_pairing(SHOP, SETTINGS, record.conversation)
        (question,) = pairing.stability_questions
        assert [dict(message) for message in request.messages] == [
            {"role": "system", "content": ""},  # so that no template inserts a prompt of its own
            {"role": "user", "content": question},
        ]
        assert not request.methods and request.sampling == SETTINGS.sampling
        (probe,) = record.probes
        assert (probe.question, probe.measure) == (question, pairing.agent.rules[0].measure.name)
        assert probe.score == float(pairing.agent.id == "no-discount")
    assert len({request.seed for request in shop.requests}) == 60


def test_a_baseline_resumes_and_can_be_extended(tmp_path):
    folder = run_with_baseline(tmp_path / "run", 20)
    path = folder / "baseline" / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]))
    shop = Shop()
    assert len(ask_baseline(shop, SHOP, folder, drift.Settings(conversations=30)).records) == 30
    assert len(shop.requests) == 25
    with pytest.raises(RecordsError, match="seed"):
        ask_baseline(Shop(), SHOP, folder, drift.Settings(seed=1))
    assert read_baseline(tmp_path) is None


@pytest.mark.slow
def test_the_prompt_that_a_template_inserts_is_left_out_and_named(tmp_path):
    default = "{% if messages[0]['role'] != 'system' %}<sys>You are Tiny.</s>{% endif %}"
    tokens = copy.deepcopy(tokenizer())
    tokens.chat_template = tokens.chat_template.replace("<s>", "<s>" + default, 1)
    tiny, settings = replace(model(), tokenizer=tokens), drift.Settings(rounds=1, conversations=4)
    default_prompt = DefaultPrompt(text="You are Tiny.", can_be_left_out=True)
    run = drift.run(tiny, SHOP, tmp_path / "run", settings)
    baseline_run = ask_baseline(tiny, SHOP, tmp_path / "run", settings)
    assert run.manifest.default_system_prompt == default_prompt
    assert baseline_run.manifest.default_system_prompt == default_prompt
    assert "default_system_prompt" not in run.manifest.identity.to_json()
    baseline = baseline_beside(run, read_series(run)[0])
    sentence = "Without a system prompt this template inserts 'You are Tiny.'"
    assert sentence in " ".join(baseline_lines(baseline))
    page = report.write([tmp_path / "run"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.unescape(page).count(sentence) == 2
    shop = Shop()
    ask_baseline(shop, SHOP, tmp_path / "asked", settings)
    reply = tiny.generate(shop.requests[0].messages)
    assert tokens.decode(reply.prompt_ids).startswith("<s><sys></s><user>")


@pytest.mark.slow
def test_the_command_measures_a_baseline_only_on_request(tmp_path, capsys):
    command = "drift --conversations 2 --rounds 1 --max-new-tokens 8 --out".split()
    command.append(str(tmp_path / "run"))
    assert main(command) == 0
    records = (tmp_path / "run" / "records.jsonl").read_bytes()
    before = capsys.readouterr().out
    assert main([*command, "--baseline"]) == 0
    run = read_run(tmp_path / "run")
    (line,) = baseline_lines(baseline_beside(run, read_series(run)[0]))
    after = " ".join(capsys.readouterr().out.split())
    assert line in after and line not in " ".join(before.split())
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == records


# Verdicts


@pytest.mark.parametrize(
    ("prompted", "unprompted", "verdict"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0], "never followed"),
        ([0, 0, 0, 0], [1, 1, 1, 1], "made worse"),
        ([0.4, 0.4, 0.4, 0.4], [0.4, 0.4, 0.4, 0.4], "never followed"),  # too low to keep a rule
        ([1, 1, 1, 1], [1, 1, 1, 1], "uninformative"),
        ([0.9, 0.9, 0.9, 0.9], [1, 1, 1, 1], "uninformative"),
        ([0.6, 0.6, 0.6, 0.6], [0.6, 0.65, 0.6, 0.6], "uninformative"),
        ([1, 1, 1, 1], [1, 0, 0, 0], "discriminates"),
        ([0.2, 0.2, 0.2, 0.2], [0.8, 0.9, 0.8, 0.9], "made worse"),
        ([1, 0, 1, 0], [0, 1, 0, 1], "cannot tell"),
    ],
)
def test_the_verdict_on_a_rule_follows_from_both_scores(prompted, unprompted, verdict):
    def verdict_of(n):
        scores = np.tile(np.array([prompted, unprompted], dtype=float), n // 4)
        without = statistics.estimate(scores[1], statistics.SCORES)
        never = is_never_followed(scores[0][:, None], statistics.ERROR)
        return _verdict(statistics.paired_difference(*scores), without, never_followed=never)

    assert verdict_of(40) == verdict
    assert verdict_of(16) == "cannot tell"


def test_measures_that_do_not_discriminate_are_marked(tmp_path):
    run = read_run(run_with_baseline(tmp_path / "run"))
    baseline = baseline_beside(run, read_series(run)[0])
    rows = {row.name: row for row in (*baseline.measures, *baseline.cases)}
    assert rows["never_contains"].verdict == rows["no-discount"].verdict == "uninformative"
    assert rows["never_contains"].unprompted.mean == rows["never_contains"].prompted.mean == 1
    assert rows["ends_with"].verdict == rows["signs"].verdict == "discriminates"
    assert (rows["ends_with"].prompted.mean, rows["ends_with"].unprompted.mean) == (1, 0)
    assert baseline.all.n == 60
    assert baseline.all.unprompted.mean == pytest.approx(rows["no-discount"].n / 60)
    lines = baseline_lines(baseline)
    assert "higher" in lines[0] and len(lines) == 2
    assert "never_contains (1.00" in lines[1] and "ends_with" not in lines[1]
    table = report.table(run)
    assert all(" ".join(line.split()) in " ".join(table.split()) for line in lines)
    assert max(map(len, table.splitlines())) <= 100
    page = report.write([tmp_path / "run"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'id="baseline"' in page and "<strong>uninformative</strong>" in page


def test_a_measure_whose_rules_are_never_followed_is_called_so(tmp_path):
    class Unsigned(Shop):
        def text(self, request):
            return "Take the green one."

    suite, settings = Suite("shop", (SIGNS,), ("Hello.",)), drift.Settings(conversations=24)
    run = drift.run(Unsigned(), suite, tmp_path / "run", settings)
    ask_baseline(Unsigned(), suite, tmp_path / "run", settings)
    baseline = baseline_beside(run, read_series(run)[0])
    rows = (baseline.all, *baseline.measures, *baseline.cases)
    assert [(row.name, row.verdict) for row in rows] == [
        ("all", "never followed"),
        ("ends_with", "never followed"),
        ("signs", "never followed"),
    ]
    assert any(line.startswith("Never followed, in any") for line in baseline_lines(baseline))


def test_too_few_conversations_give_no_verdict_on_the_measures(tmp_path):
    run = read_run(run_with_baseline(tmp_path / "run", 12))
    baseline = baseline_beside(run, read_series(run)[0])
    assert {row.verdict for row in (*baseline.measures, *baseline.cases)} == {"cannot tell"}
    (line,) = baseline_lines(baseline)
    assert "1.00 [0.73, 1.00]" in line and "too few" in line


def test_each_rule_of_a_prompt_has_its_own_verdict(tmp_path):
    one_bot = Suite("bot", (BOTH,), ("Hello.",))
    settings = drift.Settings(rounds=1, conversations=24)
    run = drift.run(Shop(), one_bot, tmp_path / "run", settings)
    ask_baseline(Shop(), one_bot, tmp_path / "run", settings)
    baseline = baseline_beside(run, read_series(run)[0])
    verdicts = {row.name: row.verdict for row in baseline.cases}
    assert verdicts == {"both · signs": "discriminates", "both · price": "uninformative"}
    assert {row.n for row in baseline.cases} == {24}


# Reports


def test_an_uninformative_rule_is_not_counted_as_lost(tmp_path):
    """Both rules are broken in round 2, and by the fix mostly in round 1; one is uninformative."""

    class Losing(Shop):
        def text(self, request):
            messages = request.messages
            first = messages[0]["content"].startswith("Sign")
            breaks_rule = len(messages) > 3 or (request.methods and request.seed % 7)
            return "A discount." if breaks_rule else "Take Robin" if first else "Take one."

    suite, settings = Suite("bot", (BOTH,), ("Hello.",)), drift.Settings(rounds=2, conversations=24)
    run = drift.run(Losing(), suite, tmp_path / "run", settings, ("none", "boost:factor=2"))
    ask_baseline(Losing(), suite, tmp_path / "run", settings)
    series = read_series(run)
    baseline = baseline_beside(run, series[0])
    assert baseline.by_rule and baseline.verdict_on("both", "price") == "uninformative"
    assert baseline.verdict_on(None, "price") == "uninformative"
    assert baseline.verdict_on("both", "signs") == "discriminates"
    first, _, left_out, _, losses = opening_of(series, baseline)
    assert "“signs”" in first and "round 2" in first and "price" not in first
    assert "“price”" in left_out and "uninformative" in left_out
    assert "“signs” (0%)" in losses and "price" not in losses
    assert "“price”" in opening_of(series)[0], "without a baseline it counts as lost"
    page = report.write([run.folder], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "The same by measure" in page and left_out in page
    lines = [fall_text(row, baseline) for row in rule_rows(series) if row.rule == "price"]
    assert len(lines) == 2 == page.count(lines[0]), "once for each method"


def test_the_summary_of_a_run_contains_its_baseline(tmp_path):
    run = read_run(run_with_baseline(tmp_path / "run"))
    rows = baseline_beside(run, read_series(run)[0])
    (method,) = json.loads(report.write_summary(tmp_path / "run").read_text())["results"]
    baseline = method["baseline"]
    assert baseline["all"]["n"] == 60 and baseline["all"]["difference"]["verdict"] == "higher"
    for kind, expected in (("measures", rows.measures), ("cases", rows.cases)):
        verdicts = [(row.name, row.verdict) for row in expected]
        assert [(row["name"], row["verdict"]) for row in baseline[kind]] == verdicts
    useless = next(row for row in baseline["measures"] if row["name"] == "never_contains")
    assert useless["difference"]["verdict"] == "cannot tell"
    assert useless["difference"]["why"].startswith("none of ")


def test_a_run_without_a_baseline_does_not_mention_it(tmp_path):
    run = drift.run(Scripted(), SUITE, tmp_path / "run", drift.Settings(rounds=1, conversations=2))
    assert baseline_beside(run, read_series(run)[0]) is None
    assert "discriminate" not in report.table(run)
    page = report.write([tmp_path / "run"], tmp_path / "p.html").read_text(encoding="utf-8")
    assert 'id="baseline"' not in page
