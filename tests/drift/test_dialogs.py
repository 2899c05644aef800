"""Recorded dialogs: read in every format, replayed unchanged, and probed in every round."""

import json
from dataclasses import replace

import pytest
from drift_sentences import opening_of
from scripted_model import Scripted
from short_drift import QUICK, SUITE, texts
from synthetic_run import as_json
from tiny import LOOK, TOOLED, model, tokenizer, tool_talk

from holdfast import drift, report
from holdfast.analysis.series import read_series
from holdfast.cli import main
from holdfast.drift.recorded_dialogs import read_dialogs
from holdfast.errors import PromptTooLong, RecordsError, UsageError
from holdfast.records import read_run

EIGHT_ROUNDS = replace(QUICK, rounds=8, conversations=10)
BREAD = SUITE.cases[0].system_prompt


def talk(*texts, system=""):
    """OpenAI messages: the system prompt, if any, then user and assistant in turn."""
    first = [{"role": "system", "content": system}] if system else []
    roles = ("user", "assistant")
    return first + [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


def sharegpt_talk(*texts):
    """ShareGPT messages, without a system prompt."""
    speakers = ("human", "gpt")
    return [{"from": speakers[at % 2], "value": text} for at, text in enumerate(texts)]


def replay(folder, dialogs, settings=EIGHT_ROUNDS, suite=SUITE, scripted=None):
    """The records of a run that replays dialogs, in the order of the file."""
    cast = drift.Cast(dialogs=dialogs)
    run = drift.run(scripted or Scripted(), suite, folder, settings, cast=cast)
    return sorted(as_json(run), key=lambda record: record["conversation"])


def rounds_of(dialog):
    """The user's message and the answer of each round."""
    return [(recorded.user, recorded.answer) for recorded in dialog.rounds]


def write(path, *lines):
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    return path


@pytest.fixture
def logs(tmp_path):
    """Three dialogs: with a system prompt of the suite, with another one, and without any."""
    return write(
        tmp_path / "logs.jsonl",
        {"messages": talk("u1", "a1", "u2", "a2", "u3", system=BREAD), "id": 7},
        {"conversations": [{"from": "system", "value": "Be rude."}, *sharegpt_talk("v1", "b1")]},
        talk("w1", "c1", "w2", "c2", "w3", "c3"),
    )


def as_openai(messages):
    """Messages as in logs: the arguments of calls are text, and a call may have no content."""
    openai_messages = [dict(message) for message in messages]
    for message in openai_messages:
        for call in message.get("tool_calls", ()):
            function = call["function"]
            arguments = json.dumps(function["arguments"])
            message["tool_calls"] = [{**call, "function": {**function, "arguments": arguments}}]
    return {"messages": openai_messages, "tools": [LOOK]}


# Reading


def test_dialogs_are_read_in_every_format(logs):
    dialogs = read_dialogs(logs)
    assert (dialogs.name, dialogs.most_rounds) == ("logs.jsonl", 3)
    assert len(dialogs.fingerprint) == 64
    first, second, third = dialogs.dialogs
    assert rounds_of(first) == [("u1", "a1"), ("u2", "a2")] and first.system == BREAD
    assert (second.line, second.system, rounds_of(second)) == (2, "Be rude.", [("v1", "b1")])
    assert third.system == "" and len(third.rounds) == 3


def test_consecutive_messages_of_one_speaker_become_one_turn(tmp_path):
    parts = [{"type": "text", "text": "Look"}, {"type": "text", "text": "here"}]
    chat = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": parts},
        {"role": "user", "content": "please"},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "Yes?"},
    ]
    (dialog,) = read_dialogs(write(tmp_path / "one.jsonl", chat)).dialogs
    assert rounds_of(dialog) == [("Look\nhere\n\nplease", "Yes?")] and dialog.system == "Be kind."


def test_messages_with_parts_are_read(tmp_path):
    """Vercel's AI SDK and Gemini's API write messages in parts."""
    answer = [{"type": "step-start"}, {"type": "text", "text": "Yes?"}]
    messages = [{"role": "user", "parts": [{"text": "Hi."}]}, {"role": "model", "parts": answer}]
    (dialog,) = read_dialogs(write(tmp_path / "one.jsonl", messages)).dialogs
    assert rounds_of(dialog) == [("Hi.", "Yes?")]
    image = {"type": "file", "mediaType": "image/png", "url": "x"}
    messages[0]["parts"].append(image)
    with pytest.raises(UsageError, match=r"message 1: .*'image/png'.* is not a text"):
        read_dialogs(write(tmp_path / "two.jsonl", messages))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"messages": [', "is not JSON"),
        ('{"text": "hi"}', '{"text": "hi"}, which is not a dialog; write an object with'),
        ('{"messages": "hi"}', "'messages' is \"hi\"; give a list"),
        ("[]", "has no text; begin the dialog with a message of the user"),
        (talk("u1"), 'no answer to "u1"'),
        (talk("u1", "a1")[1:], 'begins with "a1" by the assistant'),
        (["hi"], "message 1: 'hi' is not an object; correct it, or leave out that dialog"),
        ([*talk("u1"), {"role": "tool", "content": "4"}], 'no answer to "u1"'),
        ([{"role": "tool", "content": "4"}, *talk("u1", "a1")], 'begins with "4" by the tool'),
        ({"messages": talk("u1", "a1"), "tools": [{"type": "x"}]}, "{'type': 'x'} has no name"),
        ([{"role": "user", "content": None}], "message 1: it has neither text nor tool calls"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "'image_url'} is not a text"),
        ({"conversations": [{"from": 3, "value": "x"}]}, "it has the role 3; the known roles"),
    ],
)  # fmt: skip
def test_a_line_that_is_not_a_dialog_is_refused_with_its_number(tmp_path, line, words):
    text = line if isinstance(line, str) else json.dumps(line)
    path = tmp_path / "logs.jsonl"
    path.write_text(json.dumps(talk("u", "a")) + "\n" + text)
    with pytest.raises(UsageError) as excinfo:
        read_dialogs(path)
    assert words in str(excinfo.value) and "Line 2 of" in str(excinfo.value)
    assert str(path) in str(excinfo.value) and str(excinfo.value).endswith(".")


def test_a_file_without_readable_dialogs_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n\n")
    (tmp_path / "latin.jsonl").write_bytes(b'["caf\xe9"]')
    messages = {"missing": "cannot be read", "empty": "holds no dialog", "latin": "not UTF-8 text"}
    for name, message in messages.items():
        with pytest.raises(UsageError, match=message):
            read_dialogs(tmp_path / f"{name}.jsonl")


# Reading of tool calls

SCHEMA = {"input_schema": LOOK["function"]["parameters"]}
CALL = {"name": "look", "arguments": {"at": "the price", "many": 2}}
TOOL_USE = {"type": "tool_use", "id": "t", "name": "look", "input": CALL["arguments"]}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "nine"}
AS_ANTHROPIC = {
    "system": "Be kind.",
    "tools": [{"name": "look", "description": "Be kind.", **SCHEMA}],
    "messages": [
        {"role": "user", "content": "What is it?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "I will look."},
                TOOL_USE,
            ],
        },
        {"role": "user", "content": [TOOL_RESULT]},
        {"role": "assistant", "content": "It is nine."},
    ],
}
AS_SHAREGPT = {
    "tools": json.dumps([LOOK["function"]]),
    "conversations": [
        {"from": "system", "value": "Be kind."},
        {"from": "human", "value": "What is it?"},
        {"from": "gpt", "value": "I will look."},
        {"from": "function_call", "value": json.dumps(CALL)},
        {"from": "observation", "value": "nine"},
        {"from": "gpt", "value": "It is nine."},
    ],
}


@pytest.mark.parametrize(
    "line",
    (as_openai(tool_talk("Be kind.")), AS_ANTHROPIC, AS_SHAREGPT),
    ids=["OpenAI", "Anthropic", "ShareGPT"],
)
def test_a_dialog_with_tools_is_the_same_in_every_format(tmp_path, line):
    (dialog,) = read_dialogs(write(tmp_path / "one.jsonl", line)).dialogs
    assert (dialog.system, dialog.tools) == ("Be kind.", (LOOK,))
    assert dialog.messages == list(tool_talk("Be kind."))[1:]
    assert rounds_of(dialog) == [("What is it?", "I will look.\n\nIt is nine.")]


def test_results_are_matched_to_their_calls_and_a_turn_cut_off_is_left_out(tmp_path):
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    chat = [
        *talk("u1"),
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "B"},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
        *talk("u2"),
        {"role": "assistant", "content": "a2"},
        *talk("u3"),
        {"role": "assistant", "content": None, "tool_calls": calls[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "A"},
    ]
    (dialog,) = read_dialogs(write(tmp_path / "one.jsonl", chat)).dialogs
    assert rounds_of(dialog) == [("u1", ""), ("u2", "a2")]
    called, *results = dialog.rounds[0].messages
    ours = {call["function"]["name"]: call["id"] for call in called["tool_calls"]}
    replies = [(m["tool_call_id"], m["content"]) for m in results]
    assert replies == [(ours["b"], "B"), (ours["a"], "A")]


def test_results_without_ids_answer_the_calls_in_order(tmp_path):
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    results = [{"role": "tool", "content": text} for text in ("A", "B")]
    chat = [*talk("u1"), {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    chat.append({"role": "assistant", "content": "done"})
    (dialog,) = read_dialogs(write(tmp_path / "one.jsonl", chat)).dialogs
    called, *answered = dialog.rounds[0].messages[:3]
    ours = [call["id"] for call in called["tool_calls"]]
    assert [(m["tool_call_id"], m["content"]) for m in answered] == list(
        zip(ours, "AB", strict=True)
    )


# Replays


def test_a_dialog_is_replayed_unchanged_and_probed_in_every_round(logs, tmp_path):
    scripted = Scripted()
    records = replay(tmp_path / "run", logs, scripted=scripted)
    assert [record["conversation"] for record in records] == [0, 1, 2]
    first = records[0]
    assert [turn["text"] for turn in first["turns"]] == ["u1", "a1", "u2", "a2"]
    assert {turn["stop_reason"] for turn in first["turns"]} == {"recorded"}
    assert [probe["round"] for probe in first["probes"]] == [1, 2, 3], "behind the last answer too"
    question = first["probes"][0]["question"]
    calls = [request for request in scripted.requests if request.thread == ("agent", 0)]
    chats = [[message["content"] for message in request.messages] for request in calls]
    assert [request.keep for request in calls] == [True, False, False], "the longest chat is first"
    assert sorted(chats, key=len) == [
        [BREAD, question],
        [BREAD, "u1", "a1", question],
        [BREAD, "u1", "a1", "u2", "a2", question],
    ]
    assert {probe["kind"] for record in records for probe in record["probes"]} == {"stability"}
    assert all(record["user"]["id"] is None for record in records)


def test_a_dialog_keeps_a_system_prompt_of_the_suite_or_is_given_one(logs, tmp_path):
    records = replay(tmp_path / "run", logs)
    kinds = "own", "in place of another", "added"
    expected = [{"line": n, "system_prompt": kind} for n, kind in enumerate(kinds, 1)]
    assert [record["replayed"] for record in records] == expected
    assert records[0]["agent"]["system_prompt"] == BREAD
    prompts = {case.system_prompt for case in SUITE.cases}
    assert all(record["agent"]["system_prompt"] in prompts for record in records)
    alone = replay(tmp_path / "alone", logs, suite=replace(SUITE, cases=SUITE.cases[2:]))
    assert {record["agent"]["id"] for record in alone} == {"case-music"}
    in_turn = replay(tmp_path / "balanced", logs, replace(EIGHT_ROUNDS, pairs="balanced"))
    assert [r["agent"]["id"] for r in in_turn] == ["case-bread", "case-rain", "case-music"]


def test_settings_limit_the_rounds_and_conversations_replayed(logs, tmp_path):
    after = replay(tmp_path / "after", logs, replace(EIGHT_ROUNDS, probe_at="after-round"))
    assert [[p["round"] for p in r["probes"]] for r in after] == [[1, 2], [1], [1, 2, 3]]
    few = replace(EIGHT_ROUNDS, rounds=2, conversations=1)
    (first,) = replay(tmp_path / "few", logs, few)
    assert [probe["round"] for probe in first["probes"]] == [1, 2]
    three = replay(tmp_path / "few", logs, replace(few, conversations=3))
    assert len(three) == 3 and three[0] == first


def test_a_replay_computes_each_dialog_once_and_does_not_depend_on_the_batch(tmp_path):
    chat = talk(*(f"the garden is green {n} and the river runs" for n in range(8)))
    logs = write(tmp_path / "logs.jsonl", *([chat] * 3))
    run = drift.run(model(), SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=drift.Cast(dialogs=logs))
    for record in as_json(run):
        assert [probe["round"] for probe in record["probes"]] == [1, 2, 3, 4, 5]
        assert record["tokens"]["forwarded"] == record["tokens"]["least"]
        assert all(probe["mass"] for probe in record["probes"])
    one_by_one = replace(EIGHT_ROUNDS, batch=1)
    single = drift.run(
        model(), SUITE, tmp_path / "again", one_by_one, cast=drift.Cast(dialogs=logs)
    )
    assert texts(single) == texts(run)


def test_the_dialogs_are_part_of_a_runs_identity(logs, tmp_path):
    def replay_once(dialogs):
        cast = drift.Cast(dialogs=dialogs)
        return drift.run(Scripted(), SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=cast)

    run = replay_once(logs)
    assert run.manifest.identity.to_json()["dialogs"]["name"] == "logs.jsonl"
    assert run.manifest.identity.to_json()["settings"]["user_prompt"] == "replayed"
    assert as_json(replay_once(logs)) == as_json(run)
    other_logs = write(tmp_path / "other.jsonl", talk("u1", "a1"))
    with pytest.raises(RecordsError, match=r"dialogs.name is \"logs.jsonl\""):
        replay_once(other_logs)
    page = report.write([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert "replayed logs.jsonl" in page and "are replayed" in page
    assert "1 with the agent’s" in page


def test_the_headline_covers_rounds_that_half_of_the_dialogs_reach(tmp_path):
    logs = write(tmp_path / "logs.jsonl", *([talk("u", "a", "v", "b")] * 3), talk(*"uavbwcxd"))
    run = drift.run(
        Scripted(), SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=drift.Cast(dialogs=logs)
    )
    (series,) = read_series(run)
    assert (series.rounds, series.shared_rounds, series.until(3).rounds) == (5, 3, 3)
    first, *_, last = opening_of([series])
    assert "in round 3" in first
    assert last == "Fewer than half of the conversations go beyond 3 rounds."


def test_the_baseline_of_a_replay_asks_its_probes(logs, tmp_path):
    records = replay(tmp_path / "run", logs)
    cast = drift.Cast(dialogs=read_dialogs(logs))
    run = drift.ask_baseline(Scripted(), SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=cast)
    questions = [[probe["question"] for probe in record["probes"]] for record in as_json(run)]
    assert questions == [[record["probes"][0]["question"]] for record in records]


# Replays of tool calls


def test_a_dialog_with_tools_is_replayed_with_its_calls_and_declared_tools(tmp_path):
    calls = as_openai([*tool_talk(BREAD), *tool_talk("", "And this?")])
    logs = write(tmp_path / "logs.jsonl", calls, talk("u1", "a1"))
    scripted = Scripted()
    first, second = replay(tmp_path / "run", logs, scripted=scripted)
    requests = [request for request in scripted.requests if request.thread == ("agent", 0)]
    longest = max(requests, key=lambda request: len(request.messages))
    (system, *messages, probe), question = longest.messages, first["probes"][0]["question"]
    (dialog, _) = read_dialogs(logs).dialogs
    assert (system["content"], messages, probe["content"]) == (
        BREAD,
        dialog.messages,
        question,
    )
    assert all(request.tools == (LOOK,) for request in requests)
    assert sorted(len(request.messages) for request in requests) == [2, 6, 10]
    turn = first["turns"][1]
    assert turn["text"] == "I will look.\n\nIt is nine." and len(turn["messages"]) == 3
    assert all("messages" not in turn for turn in second["turns"])
    page = report.write([tmp_path / "run"], tmp_path / "page.html").read_text()
    assert "as it was recorded; with calls to look" in page


def test_dialogs_whose_tools_the_template_omits_are_skipped_and_named(tmp_path, capsys):
    logs = write(tmp_path / "logs.jsonl", talk("u1", "a1"), as_openai(tool_talk(BREAD)))
    plain = replace(model(), tokenizer=tokenizer(TOOLED.replace("if tools", "if false")))
    cast = drift.Cast(dialogs=logs)
    with pytest.warns(UserWarning, match=r"1 of 2 dialogs.*\(line 2\)"):
        run = drift.run(plain, SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=cast)
    (record,) = as_json(run)
    assert record["replayed"]["line"] == 1
    (note,) = run.manifest.notes
    assert note.endswith("the declared tool 'look'; use a model whose template renders tools, or"
                         " leave them out.")  # fmt: skip
    assert "the declared tool" in report.write([run.folder], tmp_path / "page.html").read_text()
    with pytest.warns(UserWarning, match="are left out"):
        baseline_run = drift.ask_baseline(plain, SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=cast)
    assert len(baseline_run.records) == 1
    alone = write(tmp_path / "alone.jsonl", as_openai(tool_talk(BREAD)))
    with pytest.raises(UsageError, match="1 of 1 dialogs"):
        drift.run(plain, SUITE, tmp_path / "none", EIGHT_ROUNDS, cast=drift.Cast(dialogs=alone))
    command = ["drift", "--dialogs", str(logs), "--suite", "starter", "--max-new-tokens", "8"]
    assert main([*command, "--out", str(tmp_path / "command")]) == 0
    stderr = capsys.readouterr().err
    assert stderr.count("1 of 2 dialogs in logs.jsonl") == 1
    assert "1 dialog replayed" in stderr


# Replays beyond the context


def test_the_summary_request_of_a_replay_includes_its_tool_calls(tmp_path):
    logs = write(tmp_path / "logs.jsonl", as_openai([*tool_talk(BREAD), *talk("u", "a")]))
    scripted = Scripted(context=6)
    replay(tmp_path / "run", logs, replace(EIGHT_ROUNDS, context="summarise"), scripted=scripted)
    (summary,) = [request for request in scripted.requests if request.thread[0] != "agent"] or [
        request for request in scripted.requests if "Summarise" in request.messages[0]["content"]
    ]
    for part in ("Assistant: I will look.", '"at": "the price"', "Tool: nine"):
        assert part in summary.messages[0]["content"]
    assert summary.tools == ()


@pytest.mark.parametrize("context", ("stop", "cut"))
def test_a_replayed_dialog_longer_than_the_context_ends_or_leaves_out_rounds(tmp_path, context):
    logs = write(tmp_path / "logs.jsonl", talk(*(f"m{n}" for n in range(12))))
    settings = replace(EIGHT_ROUNDS, context=context)
    (record,) = replay(tmp_path / "run", logs, settings, scripted=Scripted(context=6))
    rounds = {probe["round"]: probe.get("left_out", 0) for probe in record["probes"]}
    if context == "stop":
        assert rounds == {1: 0, 2: 0, 3: 0} and record["ended"] == {"round": 4, "why": "context"}
    else:
        assert rounds == {1: 0, 2: 0, 3: 0, 4: 1, 5: 2, 6: 3, 7: 4} and "ended" not in record
    with pytest.raises(PromptTooLong) as excinfo:
        replay(tmp_path / "tiny", logs, settings, scripted=Scripted(context=1))
    assert excinfo.value.value in {case.id for case in SUITE.cases}


# Other sources of user turns


def test_a_replay_refuses_personas_user_models_and_user_prompts(logs, tmp_path, capsys):
    with pytest.raises(UsageError, match=r"dialogs='logs.jsonl' and user_model='scripted'"):
        cast = drift.Cast(dialogs=logs, user_model=Scripted())
        drift.run(Scripted(), SUITE, tmp_path / "run", EIGHT_ROUNDS, cast=cast)
    for prompt in ("suite", "empty"):
        with pytest.raises(UsageError, match=f"user_prompt='{prompt}' "):
            replay(tmp_path / "run", logs, replace(EIGHT_ROUNDS, user_prompt=prompt))
    with pytest.raises(UsageError, match="with dialogs"):
        settings = replace(EIGHT_ROUNDS, user_prompt="replayed")
        drift.run(Scripted(), SUITE, tmp_path / "run", settings)
    assert not (tmp_path / "run").exists()
    for option in ("--persona", "--user-model"):
        command = ["drift", "--dialogs", str(logs), option, "default"]
        assert main([*command, "--out", str(tmp_path / "run")]) == 2
        assert f"{option} default and --dialogs" in capsys.readouterr().err


# The command


def test_the_command_replays_and_says_what_it_leaves_out(logs, tmp_path, capsys):
    command = ["drift", "--dialogs", str(logs), "--suite", "starter", "--max-new-tokens", "8"]
    command += ["--rounds", "2", "--conversations", "2", "--baseline"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0, capsys.readouterr().err
    captured = capsys.readouterr()
    assert "--conversations 3" in captured.err and "3 rounds" in captured.err
    assert "2 of 2 dialogs" in captured.err and "'starter'" in captured.err
    assert "2 dialogs replayed" in captured.err and "4 replies" in captured.err
    assert "Dialogs replayed: 2 (2 " in captured.out
    assert len(read_run(tmp_path / "run").records) == 2
