"""A server that cuts off the system prompt is distinguished from a model that drifts."""

import contextlib
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from chat_server import KEY, Server, completion
from drift_sentences import series_of
from synthetic_run import as_json

from holdfast import drift
from holdfast.analysis.context_summary_effect import context_summary_effect
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import DIFFERENCES, SCORES, estimate
from holdfast.analysis.summary import write_summary
from holdfast.analysis.truncation import truncation_of
from holdfast.analysis.verdicts import verdict_on
from holdfast.cli import main
from holdfast.generation.sampling import Sampling
from holdfast.measures import build
from holdfast.models.connecting import connect
from holdfast.records import read_run
from holdfast.records.drift_summary import ScoresAroundSummary
from holdfast.report.context_section import RAISE_CONTEXT, survival_lines, truncation_lines
from holdfast.report.next_step import next_step
from holdfast.report.terminal import table
from holdfast.report.wording import plain

BREAD = drift.Case("bread", "x", "Talk about bread.", ("What?",), build({"regex": "bread"}))
SUITE = drift.Suite("bread", (BREAD,), ("hello there",))
SAMPLING = Sampling(temperature=1, top_p=1, max_new_tokens=9)
LIMIT = 57  # the server's context in tokens, which are words here


def truncating_server(*, keeps_prompt=False, limit=LIMIT, counts_cached=True, forgets_after=10**9):
    """A server that reads and counts only the end of a chat that does not fit, as Ollama does."""
    seen_words = set()

    def answer(body, number):
        if body is None:
            return 200, {}, json.dumps({"object": "list", "data": [{"id": "tiny"}]})
        words = [word for message in body["messages"] for word in message["content"].split()]
        system = body["messages"][0]["content"].split()
        all_words, count = words, len(words)
        if count > limit:
            words = (system if keeps_prompt else []) + words[-limit // 2 :]
            count = len(words)
        fresh = frozenset(all_words) - seen_words
        seen_words.update(fresh)
        match = re.search(r"lucky number is (\d+)", " ".join(words))
        if "lucky number" in body["messages"][-1]["content"]:
            knows = match and len(all_words) < forgets_after
            text = f"It is {match[1]}." if knows else "I do not know."
        else:
            text = "bread is good to eat" if "bread." in words else "rain is good for all"
        usage = {"prompt_tokens": count if counts_cached else len(fresh), "completion_tokens": 5}
        return completion(text, usage=usage)

    return answer


@pytest.fixture
def measure(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def run(answer, canary=True, **fields):
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(Server(answer))
            model = connect(server.url, "tiny", max_retries=0, timeout=10)
            settings = drift.Settings(8, 12, sampling=SAMPLING, canary=canary, **fields)
            return drift.run(model, SUITE, tmp_path / "run", settings)

    return run


# Servers that truncate


@pytest.mark.slow
def test_a_prompt_that_a_server_cuts_off_is_not_called_drift(measure):
    run = measure(truncating_server())
    (series,) = read_series(run)
    cut = truncation_of(series)
    assert set(cut.from_round.values()) == {6} and len(cut.from_round) == 12
    assert cut.verdict == "prompt lost" and cut.most_prompt_tokens <= LIMIT
    assert (cut.canary_before.mean, cut.canary_after.mean) == (1, 0)
    text = " ".join(table(run).split())
    loss, totals, recall_line, meaning_line = truncation_lines([series])
    assert "round 6" in loss and f"{cut.most_prompt_tokens:,}" in totals and "12 of 12" in totals
    assert "1.00" in recall_line and "0.00" in recall_line and "not drift" in meaning_line
    assert all(line in text for line in (loss, totals, recall_line, meaning_line))
    assert "drifts" not in text and "100% on probes in round 5" in text
    assert results_of(run).findings.stability.series.rounds == 5, "the outcome is of these rounds"
    assert RAISE_CONTEXT in next_step(results_of(run))
    truncation = json.loads(write_summary(run.folder).read_text())["results"][0]["truncation"]
    assert truncation["verdict"] == "prompt lost" and set(truncation["from_round"].values()) == {6}
    record = as_json(run)[0]
    code = re.search(r"\d+", record["canary"])[0]
    assert record["agent"]["system_prompt"] == "Talk about bread."
    kinds = [probe["kind"] for probe in record["probes"]]
    assert kinds.count("canary") == 8 and record["probes"][-1]["question"].endswith("?")
    assert any(code in p["reply"] for p in record["probes"] if p["kind"] == "canary")


@pytest.mark.slow
def test_a_server_that_drops_only_older_messages_keeps_the_prompt(measure):
    run = measure(truncating_server(keeps_prompt=True))
    cut = truncation_of(read_series(run)[0])
    assert cut.verdict == "prompt kept" and cut.canary_after.mean == 1
    assert "round 6" in truncation_lines(read_series(run))[0]
    assert RAISE_CONTEXT not in next_step(results_of(run))


@pytest.mark.slow
def test_token_counts_alone_do_not_show_what_was_left_out(measure):
    run = measure(truncating_server(), canary=False)
    assert truncation_of(read_series(run)[0]).verdict == "cannot tell"
    first, *_, last = truncation_lines(read_series(run))
    assert "round 7" in first and "--canary" in last
    assert "canary" not in as_json(run)[0]


@pytest.mark.slow
def test_a_check_blames_the_server_too(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    suite = tmp_path / "bread.yaml"
    suite.write_text(
        "cases:\n- id: bread\n  system_prompt: Talk about bread.\n  probes: [What?]\n"
        "  measure: {regex: bread}\nstarters: [hello there]\n"
    )
    command = ["check", str(suite), "--canary", "--budget", "30", "--min-stability", "0.5"]
    with Server(truncating_server()) as server:
        code = main([*command, "--model", server.url, "--out", str(tmp_path / "run")])
    output = capsys.readouterr().out
    lines = truncation_lines(read_series(read_run(tmp_path / "run")))
    assert code == 1 and len(lines) == 4 and all(line in output for line in lines)
    assert "not drift" in (tmp_path / "run" / "report.html").read_text()


# Servers and models that only seem to


@pytest.mark.slow
def test_a_server_that_leaves_cached_tokens_out_of_its_count_is_not_blamed(measure):
    run = measure(truncating_server(limit=10**6, counts_cached=False))
    assert truncation_of(read_series(run)[0]).verdict != "prompt lost"


@pytest.mark.slow
def test_a_model_that_forgets_is_not_mistaken_for_a_server_that_truncates(measure):
    run = measure(truncating_server(limit=10**6, forgets_after=LIMIT))
    series = read_series(run)[0]
    assert truncation_of(series) is None
    last = [p["score"] for p in as_json(run)[0]["probes"] if p["kind"] == "canary"]
    assert last[0] == 1 and last[-1] == 0
    assert "server" not in table(run)


# Summaries in place of older rounds


@pytest.mark.slow
@pytest.mark.parametrize("context", ("summarise", "compact"))
def test_only_compaction_loses_a_rule_that_its_summary_leaves_out(measure, context):
    def answer(body, number):
        if body is None:
            return truncating_server()(body, number)
        first, last = body["messages"][0]["content"], body["messages"][-1]["content"]
        if first.startswith("Summarise"):
            is_first_summary = "hello" in first and "Summary of our" not in first
            if "System:" in first:  # only the first summary of a compaction reads the prompt
                reads_prompt = "System: Talk about bread." in first
                assert reads_prompt == (context == "compact" and is_first_summary)
            return completion("They greeted each other.")
        prompt = first if body["messages"][0]["role"] == "system" else ""
        if last == "What?" and context == "compact":
            assert ("bread." in prompt) != ("They greeted" in prompt)
        return completion("bread is good" if "bread." in prompt else "rain is good")

    run = measure(answer, canary=False, context=context, window=4)
    overall, _ = context_summary_effect(read_series(run)[0])
    assert (overall.before.mean, overall.after.mean) == (1, 1 if context == "summarise" else 0)
    numbers, prompt = survival_lines(read_series(run), run)
    assert plain(overall.before) in numbers.partition(plain(overall.after))[2]
    assert ("stays" in prompt) == (context == "summarise")
    assert all(line in " ".join(table(run).split()) for line in (numbers, prompt))
    rows = json.loads(write_summary(run.folder).read_text())["results"][0]["summarised"]
    assert [row["rule"] for row in rows] == [None, "bread"] and rows[0]["after"]["n"] == 12
    omitted = [p.get("left_out", 0) for p in as_json(run)[0]["probes"]]
    rounds = [p["round"] for p in as_json(run)[0]["probes"]]
    assert all(n - n_left <= 4 for n, n_left in zip(rounds, omitted, strict=True))
    assert max(omitted) >= 4


@pytest.mark.parametrize(("n", "lower"), [(30, 1), (19, 0)])
def test_a_rule_is_called_less_kept_after_a_summary_only_if_that_is_clear(
    monkeypatch, tmp_path, n, lower
):
    """One rule falls in every conversation, the other stays; 19 conversations are too few."""
    (series,) = series_of(tmp_path, lambda i: 1.0, lambda i: 1.0, n)
    before_scores, half_scores = np.ones(n), np.tile([0.0, 0.4], n)[:n]

    def scores(rule, after):
        difference = verdict_on(estimate(after - before_scores, DIFFERENCES))
        return ScoresAroundSummary(
            rule=rule,
            before=estimate(before_scores, SCORES),
            after=estimate(after, SCORES),
            difference=difference,
        )

    rows = (scores(None, half_scores), scores("signs", half_scores), scores("name", before_scores))
    monkeypatch.setattr("holdfast.report.context_section.context_summary_effect", lambda _: rows)
    run = SimpleNamespace(identity_as=lambda kind: SimpleNamespace(settings=drift.Settings()))
    lines = survival_lines([series], run)
    assert len(lines) == 2 + lower
    assert not lower or re.findall(r"\d+", lines[1]) == ["1", "2"]
