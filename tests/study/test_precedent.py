"""Precedent: what a model follows is told apart from what it merely repeats."""

import json
from dataclasses import replace

import pytest
from chat_server import Server, completion
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.analysis.precedent_results import precedent_of
from holdfast.analysis.verdicts import error_at
from holdfast.cli import main
from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.models.requests import Request, TokenUsage
from holdfast.records import read_run
from holdfast.report.precedent_tables import draw_precedent, precedent_lines
from holdfast.study import precedent

PROMPT = "Sign every message with Tony."
SETTINGS = precedent.PrecedentSettings(conversations=24, draws=2, seen=(0, 1, 3))


def suite_of(probes=("Hi?", "Menu?", "Price?", "Where?"), measure=None):
    measure = measure or {"name": "ends_with", "word": "Tony"}
    case = drift.Case("tony", "pattern", PROMPT, tuple(probes), measure)
    return drift.Suite("bot", (case,), ("Hello!", "Good evening!"))


class Obedient(ScriptedModel):
    """Does what its system prompt says, whatever it said before."""

    def text(self, request: Request) -> str:
        reminded = PROMPT in str(request.messages[-1])  # while a history is made
        follows = reminded or self.follows(request)
        return "Well. Tony" if follows else "Well."

    def follows(self, request: Request) -> bool:
        return request.messages[0]["content"] == PROMPT


class Counted(Obedient):
    """Says how many tokens each of its replies took."""

    asked = 0

    async def generate(self, request):
        self.asked += 1
        return replace(await super().generate(request), billed=TokenUsage(30, 5))


class Imitator(Obedient):
    """Does what it did last; only its first reply follows the system prompt."""

    def follows(self, request: Request) -> bool:
        replies = [message for message in request.messages if message["role"] == "assistant"]
        return replies[-1]["content"].endswith("Tony") if replies else super().follows(request)


def measure(model, folder, **options):
    run = precedent.run(model, suite_of(), folder, SETTINGS, **options)
    return run, precedent_of(run.precedents)


def scores(result):
    return {(c.history, c.seen, c.prompted): c.score.mean for c in result.cells}


def test_an_obedient_model_follows_the_prompt_whatever_its_history(tmp_path):
    _, (result,) = measure(Obedient(), tmp_path)
    assert result.used == result.of == 24
    assert all(score == prompted for (_, _, prompted), score in scores(result).items())
    deepest = result.depths[-1]
    assert deepest.prompt_after_broken.mean == deepest.prompt_after_kept.mean == 1
    assert deepest.precedent.mean == 0


def test_an_imitator_follows_its_history_whatever_the_prompt(tmp_path):
    _, (result,) = measure(Imitator(), tmp_path)
    for (history, with_history, prompted), score in scores(result).items():
        assert score == (history == "kept" if with_history else prompted)
    first, *later = result.depths
    assert first.precedent.mean == 0 and first.prompt_after_kept.mean == 1
    for depth in later:
        assert depth.precedent.mean == 1 and depth.precedent.low > 0.5
        assert depth.prompt_after_kept.mean == depth.prompt_after_broken.mean == 0


def test_a_history_shows_plain_questions_and_only_as_many_replies_as_are_seen(tmp_path):
    chats = []

    class Listening(Obedient):
        def text(self, request):
            chats.append([message["content"] for message in request.messages])
            return super().text(request)

    run, _ = measure(Listening(), tmp_path)
    record = run.precedents[0]
    assert len(record.questions) == 4 and len(set(record.questions)) == 4
    after = [chat for chat in chats if chat[0] == PROMPT and chat[-1] == record.questions[-1]]
    lengths = {len(chat) for chat in after}
    assert lengths == {2, 4, 8}  # the prompt, the last question, and two messages per reply seen
    # histories repeat the prompt below their questions, next replies do not see that
    assert not any(PROMPT in content for chat in after for content in chat[1:])


def test_a_rule_that_no_history_breaks_counts_for_nothing(tmp_path):
    class Always(ScriptedModel):
        def text(self, request):
            return "Well. Tony"

    _, (result,) = measure(Always(), tmp_path)
    assert (result.used, result.of) == (0, 24)
    assert all(cell.score.mean is None for cell in result.cells)
    assert precedent_lines([result])[-1] == "  No rule counts, so nothing was measured."


@pytest.mark.parametrize("conversations", [1, 2, 19, 20])
def test_few_conversations_are_called_an_example(tmp_path, conversations):
    settings = replace(SETTINGS, conversations=conversations)
    run = precedent.run(Obedient(), suite_of(), tmp_path, settings)
    text = "\n".join(precedent_lines(precedent_of(run.precedents)))
    assert "The system prompt is worth +1.00" in text
    assert ("is an example and not a measurement" in text) is (conversations < 20)


def test_a_run_that_is_read_again_decides_by_a_wider_interval(tmp_path):
    run, (first,) = measure(Imitator(), tmp_path)
    (second,) = precedent_of(run.precedents, error_at(2))
    shown, decisive = second.depths[-1].precedent.interval, second.depths[-1].precedent.deciding
    assert shown == first.depths[-1].precedent.interval and decisive[0] < shown[0]


def test_lines_that_coincide_are_told_apart_in_the_figure(tmp_path):
    _, results = measure(Obedient(), tmp_path)
    (axis,) = draw_precedent(results).axes
    lines = [line for line in axis.lines if not line.get_label().startswith("_")]
    assert len(lines) == 4
    positions = {round(line.get_xdata()[0], 3) for line in lines}
    looks = {(line.get_marker(), line.get_markerfacecolor()) for line in lines}
    assert len(positions) == len(looks) == 4
    assert max(positions) - min(positions) < 0.5  # each is nearest to its number of replies
    dashed = {line.get_linewidth() for line in lines if line.get_linestyle() == "--"}
    solid = {line.get_linewidth() for line in lines if line.get_linestyle() == "-"}
    assert max(dashed) < min(solid), "what is below shows in the gaps"


def test_a_method_sees_the_histories_that_were_made_without_one(tmp_path):
    run, (none, boost) = measure(Imitator(), tmp_path, methods=["none", "boost:factor=4"])
    by_method = {
        name: {chat.conversation: chat for chat in run.precedents if chat.method == name}
        for name in ("none", "boost:factor=4")
    }
    for number, chat in by_method["boost:factor=4"].items():
        assert chat.kept == by_method["none"][number].kept
        assert chat.broken == by_method["none"][number].broken
        assert all(reply.prompted for reply in chat.next_replies)
    assert boost.depths[-1].prompt_after_kept is None and boost.depths[-1].precedent.mean == 1
    assert len(boost.cells) == len(none.cells) / 2


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    class Stopped(Exception):
        pass

    def stop(count, tokens):
        if count and len(read_run(tmp_path / "resumed").records) >= 5:
            raise Stopped

    whole, _ = measure(Obedient(), tmp_path / "whole")
    with pytest.raises(Stopped):
        measure(Obedient(), tmp_path / "resumed", running=drift.Running(progress=stop))
    assert 5 <= len(read_run(tmp_path / "resumed").records) < 24
    resumed, _ = measure(Obedient(), tmp_path / "resumed")
    keyed = [
        {chat.conversation: chat.model_copy(update={"seconds": 0}) for chat in run.precedents}
        for run in (whole, resumed)
    ]
    assert keyed[0] == keyed[1] and len(resumed.records) == 24


def test_suites_and_settings_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(UsageError, match="2 probes and bot 2 starters"):
        precedent.draw_scenarios(suite_of(probes=("Hi?", "Menu?")), precedent.PrecedentSettings())
    judge_spec = {"judge": "Is it signed?", "model": "default"}
    with pytest.raises(UsageError, match="'tony'"):
        precedent.draw_scenarios(suite_of(measure=judge_spec), SETTINGS)
    with pytest.raises(UsageError, match=r"'tony'.*rule without probes"):
        precedent.draw_scenarios(suite_of(probes=()), SETTINGS)
    with pytest.raises(ParameterOutOfRange) as excinfo:
        precedent.PrecedentSettings(seen=(3, 1))
    assert excinfo.value.option == "seen" and excinfo.value.value == (3, 1)
    with pytest.raises(UsageError):
        precedent.run(Obedient(), suite_of(), tmp_path, SETTINGS, ["boost:factor=4"])


def test_every_reply_is_reported_and_its_tokens_are_counted(tmp_path):
    model, reported = Counted(), []
    running = drift.Running(progress=lambda replies, tokens=0: reported.append(replies))
    run, _ = measure(model, tmp_path, methods=["none", "repetition:probability=1"], running=running)
    sizes = [
        precedent.count_replies(SETTINGS),
        precedent.count_replies(SETTINGS, "repetition:probability=1"),
    ]
    assert sizes == [2 * 3 * 2 + 12, 6]
    assert sum(reported) == model.asked == 24 * sum(sizes)
    tokens = [chat.tokens for chat in run.precedents if chat.method == "none"]
    assert {(count.read, count.written) for count in tokens} == {(30 * sizes[0], 5 * sizes[0])}


def test_a_dry_run_records_a_few_pairs_and_estimates_the_rest(tmp_path, capsys):
    suite = tmp_path / "bot.yaml"
    case = {"id": "tony", "system_prompt": PROMPT, "probes": ["Hi?", "Menu?", "Price?"]}
    case |= {"measure": {"name": "ends_with", "word": "Tony"}}
    starters = ["Hello!", "Good evening!", "Hi there!", "Good morning!"]
    suite.write_text(json.dumps({"cases": [case], "starters": starters}))
    usage = {"prompt_tokens": 30, "completion_tokens": 5}
    with Server(lambda body, number: completion("Well. Tony", usage=usage)) as server:
        words = ["precedent", "--suite", str(suite), "--conversations", "10", "--draws", "1"]
        words += ["--model", server.url, "--endpoint-model", "x", "--out", str(tmp_path / "run")]
        assert main([*words, "--dry-run", "--price-in", "1"]) == 0
        output = capsys.readouterr().out
        assert len(read_run(tmp_path / "run").precedents) == 2
        # 12 replies of the histories and 16 next ones, for each of 10 pairs, of which 8 are left
        assert output.splitlines()[1].split()[-3:] == ["10", "8", "280"]
        assert "6,700 read" in output and "1,100 written" in output and "224 requests" in output
        assert "Cost of these: about 0.0067" in output
        assert main(words) == 0
    assert len(read_run(tmp_path / "run").precedents) == 10
