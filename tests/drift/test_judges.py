"""Judges: their agreement is measured first, their answers are kept, and nothing is guessed."""

import asyncio
import itertools
import json
import re
import shutil
from dataclasses import replace

import pytest
from chat_server import Server, completion
from scripted_model import Scripted
from short_drift import QUICK
from synthetic_run import as_json
from tiny import model

from holdfast import drift, report
from holdfast.cli import main
from holdfast.drift.concurrent_dialogs import hold_dialog
from holdfast.drift.dialog import Dialog
from holdfast.drift.judges import Judging
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import ModelError, RecordsError, RequestFailed, UnknownName, UsageError
from holdfast.logs import read_logs, scan_logs, score_logs
from holdfast.measures import build
from holdfast.measures.judging import cohens_kappa, verdict_of
from holdfast.models.checkpoint import DEFAULT_FOLDER
from holdfast.models.requests import Reply
from holdfast.records import read_run
from holdfast.records.judge_records import read_agreements

POLITE = {"judge": "Is the reply polite?", "model": "judge"}
FOLLOWS = ("Thank you!", "Please do.", "With pleasure.", "You are most welcome.")
BREAKS = ("Go away.", "Shut up.", "No idea, who cares.", "Stop it.")


def suite(measure=POLITE, follows=FOLLOWS, breaks=BREAKS):
    kind = {"kind": "tone", "polarity": "requirement"}
    polite = drift.Rule("polite", ("Who are you?",), measure, follows, breaks, **kind)
    short = drift.Rule("short", ("What is bread?",), {"name": "one_sentence"})
    case = drift.Case("waiter", "rules", "Be polite, and brief.", rules=(polite, short))
    return drift.Suite("manners", (case,), ("hello",))


class Agent(Scripted):
    """Says how many messages it saw, politely if they are few."""

    def text(self, request):
        count = len(request.messages)
        return f"Please {count}." if count < 4 else f"Shut up {count}."


class Judge(Scripted):
    """Answers by a custom rule; remembers what it was asked."""

    name = fingerprint = "a judge"

    def __init__(self, answer=None):
        super().__init__()
        self.answer = answer or by_its_words

    async def generate(self, request):
        self.requests.append(request)
        answer_text = self.answer(reply_in(request), len(request.messages))
        if isinstance(answer_text, RequestFailed):
            raise answer_text
        return Reply(answer_text, None, "stop")


def reply_in(request):
    return re.search("-{20}\n(.*)\n-{20}", request.messages[0]["content"], re.DOTALL)[1]


def by_its_words(reply, messages):
    return "Yes." if re.search("(?i)thank|please|pleasure|welcome", reply) else "**No**, it is not."


def judge_run(folder, judge, force=False, **fields):
    checks = []
    judging = Judging(lambda model, name: judge, force, checks.append)
    settings = replace(QUICK, conversations=2, **fields)
    return drift.run(Agent(), suite(), folder, settings, cast=drift.Cast(judging=judging)), checks


# Agreement on labelled replies


def test_a_judge_is_checked_on_labelled_replies_before_it_scores(tmp_path):
    judge = Judge()
    run, (agreement,) = judge_run(tmp_path / "run", judge)
    assert [reply_in(request) for request in judge.requests[:8]] == [*FOLLOWS, *BREAKS]
    assert agreement.kappa == 1 and agreement.follows == (4, 0, 0)
    assert agreement.breaks == (0, 4, 0) and not agreement.forced
    for record in as_json(run):
        polite = [probe for probe in record["probes"] if probe["rule"] == "polite"]
        assert [probe["score"] for probe in polite] == [1.0, 0.0, 0.0]
        assert {probe["judge"] for probe in polite} == {"judge"}
        assert polite[0]["reason"] == "the judge judge says yes"
        short = [probe for probe in record["probes"] if probe["rule"] == "short"]
        assert len(short) == 3 and all(probe["score"] == 1 for probe in short)
        assert not any("judge" in probe for probe in short)
    assert all(r.sampling.temperature == 0 and not r.methods for r in judge.requests)
    assert "Is the reply polite?" in judge.requests[0].messages[0]["content"]
    assert run.manifest.identity.to_json()["judges"] == {"judge": "a judge"}


def test_agreements_are_read_as_they_were_written_and_damaged_ones_refused(tmp_path):
    _, agreements = judge_run(tmp_path, Judge())
    assert read_agreements(tmp_path) == agreements
    path = tmp_path / "judges.json"
    (agreement,) = json.loads(path.read_text())
    for damaged in ("{", "[{}]", json.dumps([{**agreement, "follows": [None, 0, 0]}])):
        path.write_text(damaged)
        with pytest.raises(RecordsError) as excinfo:
            read_agreements(tmp_path)
        assert excinfo.value.value == path
    path.unlink()
    assert read_agreements(tmp_path) == []


def test_a_judge_that_agrees_little_is_refused_unless_it_is_forced(tmp_path):
    def kind(reply, messages):  # says yes to all but two of those that break the rule
        return "No" if reply in BREAKS[:2] else "Yes"

    with pytest.raises(ModelError) as excinfo:
        judge_run(tmp_path / "run", Judge(kind))
    message = str(excinfo.value)
    assert "6 of 8" in message and "kappa 0.50" in message and "0.6" in message
    assert "waiter, rule 'polite'" in message and "--force-judge" in message
    assert not (tmp_path / "run" / "records.jsonl").read_bytes()
    run, (agreement,) = judge_run(tmp_path / "run", Judge(kind), force=True)
    assert agreement.forced and agreement.breaks == (2, 2, 0) and len(run.records) == 2
    page = report.write([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert "0.50, forced" in page and "Is the reply polite?" in page and "4 yes" in page
    (marked,) = re.findall(r"<th scope=.row.>([^<]*)<span class=.meta.>judged by judge<", page)
    assert marked.strip() == "polite", "and the other rule is not judged"
    assert "waiter · judged by judge" in page


def test_a_judge_without_labelled_replies_is_refused(tmp_path):
    for follows, breaks, label in (((), BREAKS, "follows"), (FOLLOWS, BREAKS[:3], "breaks")):
        with pytest.raises(UsageError, match=f"{len(follows) and 3} replies under '{label}'"):
            drift.run(Agent(), suite(POLITE, follows, breaks), tmp_path / "run", QUICK)
    assert not (tmp_path / "run").exists()


def test_a_judge_is_checked_on_labelled_turns_with_tool_calls(tmp_path):
    entries = [f"{{run: git commit -m {number}}}" for number in range(4)]
    (tmp_path / "git.yaml").write_text(
        f"""
cases:
  - id: repo
    system_prompt: Commit only what is tested.
    measure: {{judge: Was it tested?, model: judge}}
    follows: [{", ".join(f"{{run: make test {n}}}" for n in range(4))}]
    breaks: [{", ".join(entries)}]
"""
    )
    judge = Judge(lambda reply, messages: "Yes" if "make test" in reply else "No")
    git = drift.load_suite(tmp_path / "git.yaml", probed=False)
    chat = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]}
    (tmp_path / "logs.jsonl").write_text(json.dumps(chat) + "\n")
    agreements = []
    judging = Judging(lambda model, name: judge, on_agreement=agreements.append)
    score_logs(read_logs(tmp_path / "logs.jsonl"), git, tmp_path / "run", judging)
    assert agreements[0].follows == (4, 0, 0) and agreements[0].breaks == (0, 4, 0)


# Answers


def test_nothing_is_asked_twice_not_even_by_a_later_command(tmp_path):
    first = Judge()
    run, _ = judge_run(tmp_path / "run", first)
    replies = [reply_in(request) for request in first.requests]
    assert len(replies) == len(set(replies))
    lines = (tmp_path / "run" / "judgements.jsonl").read_bytes()
    records = (tmp_path / "run" / "records.jsonl").read_bytes()
    last = records.splitlines(keepends=True)[-1]
    (tmp_path / "run" / "records.jsonl").write_bytes(records.removesuffix(last))
    (tmp_path / "run" / "judgements.jsonl").write_bytes(lines + b'{"torn')
    second = Judge()
    second_run, agreements = judge_run(tmp_path / "run", second)
    assert second.requests == [] and agreements[0].kappa == 1
    assert [r["probes"] for r in as_json(second_run)] == [r["probes"] for r in as_json(run)]
    assert (tmp_path / "run" / "judgements.jsonl").read_bytes() == lines
    damaged = lines.replace(b"Thank", b"Think", 1)
    (tmp_path / "run" / "judgements.jsonl").write_bytes(damaged)
    with pytest.raises(RecordsError, match=r"Line 1 of .*judgements\.jsonl"):
        judge_run(tmp_path / "run", second)


def test_two_names_of_one_judge_ask_it_once(tmp_path):
    same_model = {**POLITE, "model": "the same"}
    first, _ = suite().cases[0].rules
    rules = (first, replace(first, id="again", measure=same_model))
    manners = replace(suite(), cases=(replace(suite().cases[0], rules=rules),))
    judge = Judge()
    cast = drift.Cast(judging=Judging(lambda model, name: judge))
    settings = replace(QUICK, conversations=1)
    drift.run(Agent(), manners, tmp_path / "run", settings, cast=cast)
    replies = [reply_in(request) for request in judge.requests]
    assert len(replies) == len(set(replies)) == 8 + 3


def test_an_unclear_verdict_is_asked_for_once_more_and_then_counts_as_unanswered(tmp_path):
    def unsure(reply, messages):
        if reply == "Please 2.":
            return "Perhaps." if messages == 1 else "Yes"
        if reply == "Shut up 4.":
            return "It is hard to say."
        return by_its_words(reply, messages)

    judge = Judge(unsure)
    run, _ = judge_run(tmp_path / "run", judge)
    requests = [request for request in judge.requests if reply_in(request) == "Shut up 4."]
    assert [len(request.messages) for request in requests] == [1, 3]
    assert requests[1].messages[1]["content"] == "It is hard to say."
    for record in as_json(run):
        polite = {p["round"]: p["score"] for p in record["probes"] if p["rule"] == "polite"}
        assert polite == {1: 1.0, 3: 0.0}, "never scored as 0"
        (missing,) = record["unanswered"]
        assert (missing["round"], missing["rule"], missing["why"]) == (2, "polite", "judge")
        assert (missing["rule_kind"], missing["polarity"]) == ("tone", "requirement")
    page = report.write([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert "had a judge that said neither yes nor no" in page


def test_a_judge_that_fails_stops_the_run_and_a_withheld_verdict_does_not(tmp_path):
    def fail(reply, messages):
        return RequestFailed("gone") if "Shut up 4" in reply else by_its_words(reply, messages)

    with pytest.raises(RequestFailed, match="gone"):
        judge_run(tmp_path / "run", Judge(fail))
    assert as_json(read_run(tmp_path / "run")) == []
    judge = Judge()
    run, _ = judge_run(tmp_path / "run", judge)
    assert len(run.records) == 2
    asked_again = [reply_in(request) for request in judge.requests]
    assert asked_again[0] == "Shut up 4." and set(asked_again) <= {"Shut up 4.", "Shut up 6."}

    def withhold(reply, messages):
        return RequestFailed("no", "filter") if "4" in reply else by_its_words(reply, messages)

    run, _ = judge_run(tmp_path / "other", Judge(withhold))
    assert all(record["unanswered"][0]["why"] == "judge" for record in as_json(run))


# Baselines, replays and logs


def test_the_baseline_is_judged_by_the_same_judge(tmp_path):
    judge = Judge()
    judge_run(tmp_path / "run", judge)
    before = len(judge.requests)
    cast = drift.Cast(judging=Judging(lambda model, name: judge))
    settings = replace(QUICK, conversations=2)
    baseline_run = drift.ask_baseline(Agent(), suite(), tmp_path / "run", settings, cast=cast)
    scores = [probe["score"] for record in as_json(baseline_run) for probe in record["probes"]]
    assert len(scores) == 4 and None not in scores
    assert len(judge.requests) == before, "replies that were judged in the run already"


def test_replayed_dialogs_are_judged(tmp_path):
    logs = tmp_path / "logs.jsonl"
    chat = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "rain"}]
    logs.write_text("\n".join(json.dumps(chat * count) for count in (1, 2, 3, 1)))
    judge = Judge(lambda reply, messages: "No" if reply in BREAKS else "Yes")
    cast = drift.Cast(dialogs=logs, judging=Judging(lambda model, name: judge))
    run = drift.run(model(), suite(), tmp_path / "run", QUICK, cast=cast)
    scores = [probe["score"] for record in as_json(run) for probe in record["probes"]]
    assert judge.requests and len(run.records) == 4
    # a tiny model goes on until it is cut, and the other rule needs the end
    cut = [probe for record in as_json(run) for probe in record.get("unscored", ())]
    assert {(probe["rule"], probe["why"]) for probe in cut} <= {("short", "cut")}
    assert len(scores) + len(cut) == 2 * (2 + 3 + 3 + 2) and None not in scores


def test_a_judged_turn_of_a_log_that_breaks_its_rule_says_why(tmp_path):
    chat = [{"role": "system", "content": "Be polite, and brief."}]
    for reply in ("Please.", "Shut up.", "Thanks."):
        chat += [{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": reply}]
    (tmp_path / "logs.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    judging = Judging(lambda model, name: Judge())
    run = score_logs(read_logs(tmp_path / "logs.jsonl"), suite(), tmp_path / "read", judging)
    scanned = scan_logs([tmp_path / "logs.jsonl"], suite(), tmp_path / "scanned", judging=judging)
    (record,) = scanned.dialogs
    assert run.dialogs[0] == record
    polite = [probe for probe in record.probes if probe.rule == "polite"]
    assert [probe.cause and probe.cause.cause for probe in polite] == [None, "present", None]
    assert all(probe.context.in_context for probe in polite)


def test_a_judge_of_logs_is_shown_the_tool_calls_in_their_order(tmp_path):
    def call(number, command):
        arguments = json.dumps({"command": command})
        function = {"name": "Bash", "arguments": arguments}
        return {"id": str(number), "type": "function", "function": function}

    calls = [call(1, "make test"), call(2, "git commit -m x")]
    chat = [
        {"role": "system", "content": "Be polite, and brief."},
        {"role": "user", "content": "Please commit."},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    (tmp_path / "logs.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    judge = Judge(lambda reply, messages: "No" if reply in BREAKS else "Yes")
    judging = Judging(lambda model, name: judge)
    run = score_logs(read_logs(tmp_path / "logs.jsonl"), suite(), tmp_path / "run", judging)
    assert reply_in(judge.requests[-1]) == (
        "Tool calls, in order:\n"
        '1. Bash {"command": "make test"}\n'
        '2. Bash {"command": "git commit -m x"}'
    )
    (probe,) = run.dialogs[0].probes
    assert (probe.rule, probe.score, probe.reply) == ("polite", 1, "")


# Which model judges


def test_the_measured_model_is_its_own_judge_if_a_measure_names_it(tmp_path):
    class Both(Agent):
        name = "judge"

        async def generate(self, request):
            is_judging = "yes or no" in request.messages[0]["content"]
            return await (Judge().generate(request) if is_judging else super().generate(request))

    def never(model, name):
        raise AssertionError("the model is there already")

    cast = drift.Cast(judging=Judging(never))
    run = drift.run(Both(), suite(), tmp_path / "run", QUICK, cast=cast)
    assert len(run.records) == QUICK.conversations


def test_a_conversation_that_nobody_judges_is_refused():
    dialog = Dialog(draw_pairing(suite(), QUICK, 0))
    with pytest.raises(UsageError, match=r"Is the reply polite.*`holdfast drift`"):
        asyncio.run(hold_dialog(Agent(), dialog, (), QUICK))


def test_the_command_reports_the_agreement_of_a_judge_behind_an_endpoint(tmp_path, capsys):
    def answer(body, number):
        text = body["messages"][-1]["content"]
        return completion(by_its_words(text.split("-" * 20)[1], 1) if "-----" in text else "Hm.")

    with Server(answer) as server:
        measure = {"judge": "Is the reply polite?", "model": server.url, "endpoint_model": "tiny"}
        case = {"id": "waiter", "category": "manners", "system_prompt": "Be polite."}
        case |= {"probe": "Who are you?", "measure": measure}
        case |= {"follows": list(FOLLOWS), "breaks": list(BREAKS)}
        (tmp_path / "mine.yaml").write_text(json.dumps({"cases": [case]}))
        command = ["drift", "--model", server.url, "--endpoint-model", "tiny"]
        command += ["--suite", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "run")]
        command += ["--rounds", "2", "--conversations", "2"]
        assert main(command) == 0
        stderr = capsys.readouterr().err
    assert "8 of 8" in stderr and "kappa 1.00" in stderr
    assert "follows: 4 yes" in stderr and "breaks: 4 no" in stderr
    scores = {p["score"] for r in as_json(read_run(tmp_path / "run")) for p in r["probes"]}
    assert scores == {0.0}


def test_a_local_model_can_judge(tmp_path, capsys):
    """A judge that says yes to everything is found not to agree, and scores only if forced."""
    judge = shutil.copytree(DEFAULT_FOLDER, tmp_path / "yes")
    template = (judge / "chat_template.jinja").read_text()
    told_to = "{{ '<|begin|><|system|>Say only: Yes.<|end|>' }}"
    (judge / "chat_template.jinja").write_text(template.replace("{{ '<|begin|>' }}", told_to))
    case = {"id": "waiter", "system_prompt": "Be polite.", "probe": "Who are you?"}
    case |= {"measure": {**POLITE, "model": str(judge)}}
    case |= {"follows": list(FOLLOWS), "breaks": list(BREAKS)}
    suite_file = tmp_path / "manners.yaml"
    suite_file.write_text(json.dumps({"cases": [case], "starters": ["hello"]}))
    words = ["drift", "--suite", str(suite_file), "--rounds", "1", "--conversations", "2"]
    words += ["--max-new-tokens", "8", "--out", str(tmp_path / "run")]
    assert main(words) == 1
    stderr = capsys.readouterr().err
    assert "4 of 8" in stderr and "kappa 0.00" in stderr
    assert "--force-judge" in stderr
    assert main([*words, "--force-judge"]) == 0
    answers = (tmp_path / "run" / "judgements.jsonl").read_bytes()
    records = as_json(read_run(tmp_path / "run"))
    (first, second) = [probe for record in records for probe in record["probes"]]
    assert first["score"] == second["score"] == 1 and first["judge"] == str(judge)
    assert main([*words, "--force-judge"]) == 0
    assert (tmp_path / "run" / "judgements.jsonl").read_bytes() == answers, "nothing is asked twice"


# The measure


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"judge": "Polite?"}, "'model' of a judge is missing; give a model or URL"),
        ({"judge": "", "model": "m"}, "a question to be answered with yes, not ''"),
        ({"judge": "Polite?", "modle": "m"}, "did you mean 'model'"),
        ({"judge": "Polite?", "model": 3}, "'model' of a judge has to be a model or URL, not 3"),
        ({"name": "every", "measures": [POLITE]}, "takes no judge"),
        ({"name": "never", "measure": POLITE}, "'never' takes no judge"),
        ({"name": "every", "measures": [{"name": "tool_called", "tool": "x"}]}, "of tool calls"),
    ],
)
def test_a_wrong_judge_spec_is_refused(spec, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        build(spec)


def test_a_judge_is_a_measure_that_scores_nothing_by_itself():
    measure = build(POLITE)
    assert measure.judged and build(measure.spec) == measure and not build("one_sentence").judged
    assert measure.score(" ").value == 0
    with pytest.raises(UsageError, match="drift run"):
        measure.score("Thank you!")
    with pytest.raises(UnknownName, match="judge"):
        build("judgee")


# Verdicts and kappa


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ("Yes", True), ("yes.", True), ("**No**, it says yes to nothing.", False), ("NO!", False),
        ("The answer is yes.", True), ("", None), ("Perhaps", None), ("It says yes and no.", None),
        ("Yesterday", None), ("nothing", None),
    ],
)  # fmt: skip
def test_a_verdict_is_read_only_if_there_is_one(answer, verdict):
    assert verdict_of(answer) is verdict


def test_cohens_kappa_follows_its_definition():
    labels = [True] * 25 + [False] * 25
    verdicts = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15
    assert cohens_kappa(labels, verdicts) == pytest.approx(0.4)  # (0.7 - 0.5) / (1 - 0.5)
    four = [True] * 4 + [False] * 4
    assert cohens_kappa(four, four) == 1 and cohens_kappa(four, [True] * 8) == 0
    assert cohens_kappa(four, [not label for label in four]) == -1
    unsure = [True, True, True, None, False, False, False, None]
    assert cohens_kappa(four, unsure) == pytest.approx(0.6)  # (6/8 - 3/8) / (1 - 3/8)


def test_a_coin_passes_for_a_judge_less_than_once_in_twenty():
    labels = [True] * 4 + [False] * 4
    tossed = itertools.product((False, True), repeat=8)
    assert sum(cohens_kappa(labels, [*verdicts]) >= 0.6 for verdicts in tossed) / 2**8 < 0.05
