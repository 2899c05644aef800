"""The decay of attention mass: statistics with known answers, traces, and the command."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from page_outline import read_page
from refusals import refusal_in
from synthetic_run import conversation_of
from tiny import chat, model

from holdfast import Sampling, drift
from holdfast.analysis import decay
from holdfast.analysis.mass_and_score import correlate_mass_and_score
from holdfast.chat.prompt import render
from holdfast.cli import main
from holdfast.errors import ModelError, ParameterOutOfRange, RecordsError, UsageError
from holdfast.records import Conversation, OpenRun
from holdfast.records.traces import TurnTrace, read_traces, write_traces
from holdfast.report.trace_report import correlations_line, trace_lines
from holdfast.study.attention_decay import TracedTurns, check_traceable, traced_settings

LAYERS, HEADS = 2, 3


def dialog(masses: list[list[float]], prompts: list[int], span: int = 6) -> TracedTurns:
    """A dialog whose heads all have these masses in each turn, after prompts of these lengths."""

    def trace(mass, tokens):
        uniform = np.tile(span / (tokens + np.arange(len(mass))), (LAYERS, 1))
        return TurnTrace(np.tile(np.array(mass), (LAYERS, HEADS, 1)), uniform)

    return {n: trace(*turn) for n, turn in enumerate(zip(masses, prompts, strict=True), 1)}


def decay_of(dialogs: list[TracedTurns]) -> decay.Trace:
    """The decay in dialogs whose scores do not matter."""
    scores = np.full((len(dialogs), len(dialogs[0])), 0.5)
    return decay.trace_of("tiny", records_with(scores, scores), dialogs)


def test_even_attention_does_not_differ_from_its_baseline():
    prompts = [[20, 60, 110], [30, 80, 150], [25, 90, 140]]
    masses = [[[6 / (tokens + t) for t in range(12)] for tokens in lengths] for lengths in prompts]
    dialogs = [dialog(*parts) for parts in zip(masses, prompts, strict=True)]
    result = decay_of(dialogs)
    for change in (result.average.within_turns, result.average.between_turns, result.average.slope):
        assert abs(change.difference.mean) < 1e-9
        assert change.uniform.mean < 0
    assert np.allclose(result.curves.average[0], result.curves.uniform[0], atol=1e-5)


def test_a_staircase_falls_only_between_turns():
    steps = [0.4, 0.2, 0.05]
    result = decay_of([dialog([[level] * 9 for level in steps], [20, 50, 90]) for _ in range(3)])
    assert result.average.within_turns.real.mean == pytest.approx(0, abs=1e-9)
    assert result.average.between_turns.real.mean == pytest.approx(np.log(0.05 / 0.4))
    assert result.average.slope.real.mean == pytest.approx(0, abs=1e-9)
    assert [mass.mean for mass in result.average.mass] == pytest.approx(steps)


def test_the_first_query_of_a_turn_does_not_count_in_the_decay_within_turns():
    spiked = [[0.9] + [level] * 8 for level in (0.4, 0.2)]
    result = decay_of([dialog(spiked, [20, 50]) for _ in range(2)])
    assert result.average.within_turns.real.mean == pytest.approx(0, abs=1e-9)


def test_the_head_shown_is_the_one_whose_mass_falls_most():
    turns = dialog([[0.3] * 5, [0.3] * 5], [20, 50])
    turns[2].mass[1, 2] = 0.01
    result = decay_of([turns, turns])
    assert result.shown_head == (1, 2)
    assert result.heads.drop[1][2] == pytest.approx(0.29)


def test_results_of_a_handful_of_dialogs_are_called_an_example():
    rng = np.random.default_rng(0)

    def lines_of(count: int) -> list[str]:
        levels = 0.3 + 0.02 * rng.standard_normal((count, 2)) - [0, 0.15]
        dialogs = [dialog([[first] * 5, [last] * 5], [20, 50]) for first, last in levels]
        records = records_with(levels, levels + 0.1)
        return trace_lines(decay.trace_of("tiny", records, dialogs))

    many = lines_of(30)
    assert "], falls (uniform attention" in many[0] and "they rise together" in many[-1]
    assert len(re.findall(r"0\.\d{3} \[0\.\d{3}, 0\.\d{3}\]", many[0])) == 2
    few = lines_of(5)
    assert re.findall(r"\d+", few[-1]) == ["5", "20"] and len(few) == len(many) + 1
    assert not any(word in line for word in ("falls (", "rise together") for line in few)
    assert few[0].count("cannot tell") == 2 and few[2].count("cannot tell") == 4


def records_with(masses: np.ndarray, scores: np.ndarray) -> list[Conversation]:
    def probes(round_masses, round_scores):
        rows = enumerate(zip(round_masses.tolist(), round_scores.tolist(), strict=True), 1)
        return [{"round": r, "mass": m, "score": s} for r, (m, s) in rows]

    pairs = zip(masses, scores, strict=True)
    return [conversation_of(probes=probes(*pair)) for pair in pairs]


def test_a_planted_correlation_is_found_where_it_was_planted():
    rng = np.random.default_rng(0)
    fall = np.linspace(0.5, 0.1, 6)
    masses = fall + 0.02 * rng.standard_normal((40, 6))
    # scores depend only on the round
    by_round = correlate_mass_and_score(records_with(masses, np.tile(fall, (40, 1))))
    assert by_round.all.r > 0.9 and by_round.within_rounds.r is None
    scores = (masses - fall) * 50 + rng.standard_normal((40, 6))
    planted = correlate_mass_and_score(records_with(masses, scores)).within_rounds
    correlation = np.corrcoef((masses - fall).ravel(), scores.ravel())[0, 1]
    assert planted.r == pytest.approx(correlation, abs=0.03)
    assert 0 < planted.low < planted.r < planted.high


def test_two_dialogs_have_no_correlation_between_them():
    masses, scores = np.array([[0.5, 0.3], [0.4, 0.1]]), np.array([[1.0, 0.5], [0.5, 0.0]])
    between = correlate_mass_and_score(records_with(masses, scores)).between_dialogs
    assert between.r is None and "fewer than 3" in between.why


def test_a_correlation_that_cannot_be_measured_is_said_once():
    """Two dialogs whose probes all score alike have no correlation of any kind."""
    correlation = correlate_mass_and_score(records_with(np.full((2, 2), 0.3), np.ones((2, 2))))
    line = correlations_line(SimpleNamespace(behaviour=correlation))
    assert line == "The correlation of mass and score of the probes is not measurable."


def test_resamples_in_which_nothing_varies_have_no_correlation():
    scores = np.full((4, 3), 0.1)  # whose squares are not exact
    scores[0, 1] = 0.0  # three of ten resamples lack this dialog
    correlation = correlate_mass_and_score(
        records_with(np.linspace(0.1, 0.3, 12).reshape(4, 3), scores)
    ).all
    assert -1 <= correlation.low <= correlation.r <= correlation.high <= 1


def test_a_head_is_compared_with_even_attention_in_its_own_layer():
    """The second layer has a window that has moved off the span by round 2."""
    turns = dialog([[0.3] * 5, [0.1] * 5], [20, 50])
    turns[1].uniform[1], turns[2].uniform[1] = 0.4, 0.1
    decays, between = [], []
    for layer in (0, 1):
        falling = {n: TurnTrace(turn.mass.copy(), turn.uniform) for n, turn in turns.items()}
        falling[2].mass[layer, 0] = 0.01  # so that this head is the one shown
        decays.append(decay_of([falling, falling]))
        between.append(decays[-1].head.between_turns.uniform.mean)
    assert between[1] == pytest.approx(np.log(0.1 / 0.4)) and between[1] < between[0]
    mean = (turns[1].uniform[0, 0] + 0.4) / 2
    assert decays[0].curves.uniform[0][0] == pytest.approx(mean, abs=1e-6)


def test_traces_of_version_0_2_with_one_even_share_for_all_layers_are_read(tmp_path):
    old = TurnTrace(np.full((LAYERS, HEADS, 4), 0.5), np.linspace(0.4, 0.1, 4))
    write_traces(tmp_path, "none", 0, {1: old})
    trace = read_traces(tmp_path, "none", 0)[1]
    assert trace.uniform.shape == (LAYERS, 4) and np.allclose(trace.uniform, old.uniform)


def traced_run(folder):
    brief = Sampling(max_new_tokens=8)
    settings = drift.Settings(2, 4, adoption=False, batch=2, sampling=brief)
    running = drift.Running(traces=True)
    return drift.run(model(), drift.load_suite("starter"), folder, settings, running=running)


def test_every_record_has_its_trace_even_after_an_interruption(tmp_path, monkeypatch):
    whole, records, append = traced_run(tmp_path / "whole"), [], OpenRun.append

    def die(self, record):
        if len(records) == 2:
            raise KeyboardInterrupt
        records.append(record)
        append(self, record)

    monkeypatch.setattr("holdfast.records.OpenRun.append", die)
    with pytest.raises(KeyboardInterrupt):
        traced_run(tmp_path / "cut")
    monkeypatch.undo()
    resumed = traced_run(tmp_path / "cut")
    assert len(resumed.records) == len(whole.records) == 4
    for number in range(4):
        plain, rerun = (read_traces(tmp_path / name, "none", number) for name in ("whole", "cut"))
        assert plain.keys() == rerun.keys() == {1, 2}
        assert all(np.array_equal(plain[turn].mass, rerun[turn].mass) for turn in plain)
    (tmp_path / "cut" / "traces" / "none-3.npz").unlink()
    with pytest.raises(RecordsError, match=r"none-3\.npz.*another folder with out"):
        read_traces(tmp_path / "cut", "none", 3)


def test_a_trace_has_the_mass_of_its_record_and_that_of_even_attention(tmp_path):
    for record in traced_run(tmp_path).conversations:
        trace = read_traces(tmp_path, "none", record.conversation)[1]
        turn = next(turn for turn in record.turns if turn.speaker == "agent")
        messages = chat(record.agent.system_prompt, record.turns[0].text)
        prompt = render(messages, model().tokenizer)
        share = sum(prompt.span_mask) / len(prompt.token_ids)
        assert trace.uniform.shape == (trace.mass.shape[0], trace.mass.shape[2])
        assert np.allclose(trace.uniform[:, 0], share)
        assert trace.mass.mean() == pytest.approx(turn.mass, rel=1e-2)


@pytest.mark.slow
def test_the_command_measures_and_plots_the_decay(tmp_path, capsys):
    command = ["trace", "--conversations", "6", "--rounds", "3", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    output = capsys.readouterr().out
    assert "mass" in output and "correlation of mass and score" in output
    assert output.count("Figure: ") == 3
    text = (tmp_path / "run" / "model" / "trace.json").read_text()
    trace = decay.Trace.model_validate_json(text)
    assert json.loads(json.dumps(trace.to_json())) == json.loads(text)
    first, last = (trace.average.mass[index].mean for index in (0, -1))
    assert first > last > 0
    for name in ("decay", "heads", "mass_and_behaviour"):
        assert (tmp_path / "run" / "figures" / f"{name}.png").stat().st_size > 10_000
    page = read_page(tmp_path / "run" / "report.html")
    assert page.tags.count("img") == 3 and {"decay", "heads", "behaviour"} <= set(page.ids)
    (result,) = json.loads((tmp_path / "run" / "summary.json").read_text())["results"]
    assert result["average"]["mass"][0]["mean"] == first
    assert "curves" not in result and "probes" not in result["behaviour"]
    assert (tmp_path / "run" / "model" / "summary.json").is_file()


REFUSED = [
    (["--conversations", "1"], ["conversations", "2"]),
    (["--compare", "default"], ["--compare default", "same model"]),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_invalid_options_are_refused_in_one_sentence(arguments, words, tmp_path, capsys):
    assert main(["trace", *arguments, "--out", str(tmp_path / "run")]) == 2
    message = refusal_in(capsys)
    assert all(word in message for word in words) and message.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_models_without_readable_masses_and_single_rounds_are_refused():
    from holdfast.models.connecting import connect

    with pytest.raises(ModelError, match=r"far.*layers"):
        check_traceable(connect("http://localhost:9/v1", "far"))
    with pytest.raises(ModelError, match="mamba"):
        check_traceable(model("mamba"))
    with pytest.raises(ParameterOutOfRange):
        traced_settings(rounds=1)
    with pytest.raises(UsageError, match="two"):
        decay_of([dialog([[0.3] * 5], [20])])
