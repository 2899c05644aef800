"""Tool calls that never ran, as the user, a hook or a permission stopped them, break no rule."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from logged_dialogs import lines_of

from holdfast.cli import main
from holdfast.logs import read_logs
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall

SUITE = """
cases:
  - id: shop
    system_prompt: Never force-push. Run the tests before a commit.
    rules:
      - {id: force, measure: {name: command_not_run, command: git push --force}}
      - {id: tests, measure: {name: runs_before, first: make test, then: git commit}}
"""
PUSH = "git push --force"
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was"
    " a file edit, the new_string was NOT written to the file). STOP what you are doing and wait"
    " for the user to tell you how to proceed."
)


def commands_run(folder: Path, name: str, text: str) -> list[str]:
    """The arguments of the calls that ran in the only dialog of a log."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (dialog,) = read_logs([path]).dialogs
    return [json.dumps(dict(call.arguments)) for turn in dialog.turns for call in turn.done.calls]


def claude(
    text: str, is_error: bool = True, command: str = PUSH, session: str = "s", **fields: Any
) -> list[dict]:
    """A session of Claude Code in which a command has this result."""
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": text, "is_error": is_error}
    contents: list[tuple[str, Any]] = [
        ("user", "Push it."),
        ("assistant", [call]),
        ("user", [result]),
        ("assistant", [{"type": "text", "text": "Well."}]),
    ]
    return [
        {"type": role, "sessionId": session, "uuid": f"{session}{number}",
         "parentUuid": f"{session}{number - 1}" if number else None,
         "message": {"role": role, "content": content}, **(fields if number == 2 else {})}
        for number, (role, content) in enumerate(contents)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        REFUSED,
        f"{REFUSED} To tell you how to proceed, the user said:\nnot with force",
        f"{REFUSED} The user provided the following reason for the rejection:  not with force",
        "The user doesn't want to take this action right now. STOP what you are doing.",
        "Claude requested permissions to use Bash, but you haven't granted it yet.",
        "Permission to use Bash with command git push --force has been denied.",
        "Permission for this action was denied by the Claude Code auto mode classifier.",
        "This command requires approval",
        "PreToolUse:Bash hook error: [no-force.sh]: force pushes are blocked",
        "<tool_use_error>InputValidationError: Bash failed</tool_use_error>",
    ],
)
def test_claude_code_says_in_the_result_that_a_call_did_not_run(text, tmp_path):
    assert commands_run(tmp_path, "s.jsonl", lines_of(claude(text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1\nrejected by the remote",
        "[Request interrupted]",
        "<tool_use_error>Error calling tool (Bash): spawn EPIPE</tool_use_error>",
        "<tool_use_error>Error: Streaming fallback - tool execution discarded</tool_use_error>",
    ],
)
def test_a_command_that_failed_or_was_interrupted_has_run(text, tmp_path):
    assert len(commands_run(tmp_path, "s.jsonl", lines_of(claude(text)))) == 1


def test_output_that_looks_like_a_refusal_is_none(tmp_path):
    assert len(commands_run(tmp_path, "s.jsonl", lines_of(claude(REFUSED, False)))) == 1


def test_a_question_that_the_user_declined_was_asked(tmp_path):
    session = json.dumps(claude(REFUSED)).replace('"Bash"', '"AskUserQuestion"')
    assert len(commands_run(tmp_path, "s.jsonl", lines_of(json.loads(session)))) == 1


@pytest.mark.parametrize(
    ("kind", "count"), [("user-rejected", 0), ("permission-rule", 0), ("interrupted", 1)]
)
def test_claude_code_names_the_kind_of_a_denial(kind, count, tmp_path):
    session = lines_of(claude("no", toolDenialKind=kind))
    assert len(commands_run(tmp_path, "s.jsonl", session)) == count
    meta = [{"id": "t", "non_execution_kind": kind}]
    streamed = lines_of(claude("no", tool_result_meta=meta))
    assert len(commands_run(tmp_path, "t.jsonl", streamed)) == count


def codex(*items: dict) -> str:
    meta = {"type": "session_meta", "payload": {"id": "x"}}
    asks = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Push"}]}
    lines = [{"type": "response_item", "payload": item} for item in (asks, *items)]
    return lines_of([meta, *lines])


@pytest.mark.parametrize(
    "output",
    [
        "exec command rejected by user",
        "rejected by user",
        "apply_patch verification failed: Failed to find expected lines in a.py",
        "`bash -lc 'git push --force'` rejected: blocked by policy",
        "patch rejected: writing outside of the project; rejected by user approval settings",
        "approval policy is Never; reject command \u2014 you should not ask for permissions",
        "This action was rejected due to unacceptable risk.\nReason: it rewrites history.",
        "exec_command failed for `/bin/bash -lc 'git push --force'`: CreateProcess { message:"
        ' "Rejected(\\"rejected by user\\")" }',
        'exec_command failed: CreateProcess { message: "Rejected(\\"blocked by policy\\")" }',
    ],
)
def test_codex_says_in_the_output_that_a_command_was_rejected(output, tmp_path):
    call = {"type": "function_call", "name": "shell", "call_id": "c"}
    call["arguments"] = json.dumps({"command": ["bash", "-lc", PUSH]})
    result = {"type": "function_call_output", "call_id": "c", "output": output}
    assert commands_run(tmp_path, "r.jsonl", codex(call, result)) == []


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ('Script failed\nOutput:\nScript error:\nexec_command failed: CreateProcess { message:'
         ' "Rejected(\\"rejected by user\\")" }', 0),
        ("Script completed\nOutput:\nok", 1),
    ],
)  # fmt: skip
def test_the_result_of_a_codex_script_says_whether_its_only_call_ran(output, count, tmp_path):
    script = f'await tools.exec_command({{cmd: "{PUSH}"}});'
    call = {"type": "custom_tool_call", "name": "exec", "call_id": "c", "input": script}
    result = {"type": "custom_tool_call_output", "call_id": "c", "output": output}
    commands = commands_run(tmp_path, "r.jsonl", codex(call, result))
    assert commands.count(json.dumps({"cmd": PUSH})) == count


def test_codex_exec_marks_declined_items(tmp_path):
    items = [
        {"id": "1", "type": "command_execution", "command": PUSH, "aggregated_output": "",
         "status": "declined"},
        {"id": "2", "type": "file_change", "status": "declined",
         "changes": [{"path": "a.py", "kind": "update"}]},
        {"id": "3", "type": "agent_message", "text": "I could not."},
    ]  # fmt: skip
    events = [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"}]
    completed = [{"type": "item.completed", "item": item} for item in items]
    assert commands_run(tmp_path, "e.jsonl", lines_of([*events, *completed])) == []


@pytest.mark.parametrize(
    ("status", "answer", "count"),
    [
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", 0),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled tool execution", 1),
        ("error", "Tool execution denied by policy.", 0),
        ("error", "Exit Code: 1", 1),
        ("success", "User did not allow tool call", 1),
    ],
)
def test_gemini_cli_says_why_a_call_was_cancelled(status, answer, count, tmp_path):
    response = {"id": "g", "name": "run_shell_command", "response": {"error": answer}}
    call = {"id": "g", "name": "run_shell_command", "args": {"command": PUSH}, "status": status,
            "result": [{"functionResponse": response}]}  # fmt: skip
    head = {"sessionId": "s", "projectHash": "p"}
    asks = {"id": "1", "timestamp": "t", "type": "user", "content": "Push"}
    reply = {"id": "2", "timestamp": "t", "type": "gemini", "content": "", "toolCalls": [call]}
    text = lines_of([head, asks, reply])
    assert len(commands_run(tmp_path, "session-1.jsonl", text)) == count


@pytest.mark.parametrize(
    ("error", "count"),
    [
        ({"message": "The user rejected this tool call.", "code": "rejected"}, 0),
        ({"message": "Permission denied and could not request permission from user"}, 0),
        ({"message": "exit code 1", "code": "failure"}, 1),
    ],
)
def test_copilot_cli_says_that_a_call_was_rejected(error, count, tmp_path):
    request = {"toolCallId": "c", "name": "bash", "arguments": {"command": PUSH}}
    events = [
        ("session.start", {"sessionId": "s", "version": 1}),
        ("user.message", {"content": "Push"}),
        ("assistant.message", {"content": "", "toolRequests": [request]}),
        ("tool.execution_complete", {"toolCallId": "c", "success": False, "error": error}),
    ]
    text = lines_of(
        {"type": kind, "data": data, "id": str(n), "timestamp": "t", "parentId": None}
        for n, (kind, data) in enumerate(events)
    )
    assert len(commands_run(tmp_path, "events.jsonl", text)) == count


@pytest.mark.parametrize(
    "sentence",
    [
        "To tell you how to proceed, the user said:\n",
        "The user provided the following reason for the rejection:  ",
    ],
)
def test_claude_code_has_the_users_words_on_a_rejected_call(sentence, tmp_path):
    text = REFUSED.replace("STOP", f"{sentence}not with force").partition(" what you")[0]
    path = tmp_path / "s.jsonl"
    path.write_text(lines_of(claude(text)))
    (dialog,) = read_logs([path]).dialogs
    assert [turn.user for turn in dialog.turns] == ["Push it.", "not with force"]


def test_opencode_has_the_users_words_on_a_rejected_call(tmp_path):
    error = (
        "The user rejected permission to use this specific tool call with the following feedback:"
        " not with force"
    )
    state = {"status": "error", "input": {"command": PUSH}, "error": error}
    tool = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
    messages = [
        {"info": {"id": "1", "role": "user"}, "parts": [{"type": "text", "text": "Push"}]},
        {"info": {"id": "2", "role": "assistant"},
         "parts": [tool, {"type": "text", "text": "Then not."}]},
    ]  # fmt: skip
    session = {"info": {"id": "ses_1", "version": "1.1.0"}, "messages": messages}
    path = tmp_path / "session.json"
    path.write_text(json.dumps(session))
    (dialog,) = read_logs([path]).dialogs
    assert [turn.user for turn in dialog.turns] == ["Push", "not with force"]
    assert [turn.done.calls for turn in dialog.turns] == [(), ()]


def test_cline_names_no_ids_so_results_answer_calls_in_their_order(tmp_path):
    def user(*texts: str) -> dict:
        return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}

    def runs(command: str) -> dict:
        text = f"<execute_command>\n<command>{command}</command>\n</execute_command>"
        return {"role": "assistant", "content": [{"type": "text", "text": text}]}

    task = [
        user("<task>\nPush\n</task>", "<environment_details>\n</environment_details>"),
        runs("make test"),
        user("[execute_command for 'make test'] Result:\nok"),
        runs("make interrupted"),
        user("<user_message>\ngo on\n</user_message>"),
        runs(PUSH),
        user(f"[execute_command for '{PUSH}'] Result:", "The user denied this operation."),
        runs("git push"),
        user("[execute_command for 'git push'] Result:\nok"),
    ]
    name = "tasks/1/api_conversation_history.json"
    commands = commands_run(tmp_path, name, json.dumps(task))
    assert [json.loads(call)["command"] for call in commands] == [
        "make test",
        "make interrupted",
        "git push",
    ]


@pytest.mark.parametrize(
    ("status", "feedback", "commands", "user_texts"),
    [
        ("denied", None, [], ["Push"]),
        ("denied", "not with force", [], ["Push", "not with force"]),
        ("approved", "and tell Ada", [PUSH], ["Push", "and tell Ada"]),
        ("error", None, [PUSH], ["Push"]),
    ],
)
def test_roo_code_has_the_users_decision_as_json(status, feedback, commands, user_texts, tmp_path):
    decision = json.dumps({"status": status, "feedback": feedback})
    call = {"type": "tool_use", "id": "t", "name": "execute_command", "input": {"command": PUSH}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": f"{decision}\n\nok"}
    task = [
        {"role": "user", "content": [{"type": "text", "text": "<user_message>\nPush\n"
                                      "</user_message>"}], "ts": 1},
        {"role": "assistant", "content": [call], "ts": 2},
        {"role": "user", "content": [result], "ts": 3},
        {"role": "assistant", "content": [{"type": "text", "text": "Well."}], "ts": 4},
    ]  # fmt: skip
    path = tmp_path / "api_conversation_history.json"
    path.write_text(json.dumps(task))
    (dialog,) = read_logs([path]).dialogs
    assert [turn.user for turn in dialog.turns] == user_texts
    calls = [call for turn in dialog.turns for call in turn.done.calls]
    assert [call.arguments["command"] for call in calls] == commands


@pytest.mark.parametrize("field", ["rejected", "permissionDenied"])
def test_cursors_agent_says_that_a_command_was_rejected(field, tmp_path):
    shell = {"args": {"command": PUSH}}
    denied = {**shell, "result": {field: {"command": PUSH}}}
    message = {"role": "user", "content": [{"type": "text", "text": "Push"}]}
    reply = {"role": "assistant", "content": [{"type": "text", "text": "No."}]}
    lines = [
        {"type": "user", "message": message, "session_id": "k"},
        {"type": "tool_call", "subtype": "started", "call_id": "c",
         "tool_call": {"shellToolCall": shell}, "session_id": "k"},
        {"type": "tool_call", "subtype": "completed", "call_id": "c",
         "tool_call": {"shellToolCall": denied}, "session_id": "k"},
        {"type": "assistant", "message": reply, "session_id": "k"},
    ]  # fmt: skip
    assert commands_run(tmp_path, "k.jsonl", lines_of(lines)) == []


@pytest.mark.parametrize(
    ("confirmed", "count"), [({"type": 0}, 0), ({"type": 5}, 0), ({"type": 4}, 1), (False, 0)]
)
def test_vs_code_says_whether_a_call_was_confirmed(confirmed, count, tmp_path):
    part = {
        "kind": "toolInvocationSerialized", "toolCallId": "c", "toolId": "run_in_terminal",
        "isConfirmed": confirmed, "isComplete": True,
        "toolSpecificData": {"kind": "terminal", "commandLine": {"original": PUSH}},
    }  # fmt: skip
    request = {"message": {"text": "Push"}, "response": [part, {"value": "Well."}]}
    chat = {"version": 3, "responderUsername": "x", "requests": [request]}
    assert len(commands_run(tmp_path, "chat.json", json.dumps(chat))) == count
    # beside the call as the extension recorded it, without a result
    recorded = {"name": "run_in_terminal", "id": "c", "arguments": json.dumps({"command": PUSH})}
    rounds = [{"response": "", "toolCalls": [recorded]}]
    request["result"] = {"metadata": {"toolCallRounds": rounds, "toolCallResults": {}}}
    assert len(commands_run(tmp_path, "recorded.json", json.dumps(chat))) == count


def test_the_ai_sdk_and_inspect_have_denied_calls(tmp_path):
    parts = [
        {"type": "tool-bash", "toolCallId": "c", "state": "output-denied",
         "input": {"command": PUSH}, "approval": {"approved": False, "reason": "no"}},
        {"type": "text", "text": "Then not."},
    ]  # fmt: skip
    user = {"role": "user", "parts": [{"type": "text", "text": "Push"}]}
    chat = json.dumps({"messages": [user, {"role": "assistant", "parts": parts}]})
    assert commands_run(tmp_path, "sdk.jsonl", chat) == []
    call = {"id": "c", "function": "bash", "arguments": {"command": PUSH}}
    messages = [
        {"role": "user", "content": "Push", "source": "input"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "", "tool_call_id": "c",
         "error": {"type": "approval", "message": "rejected by the operator"}},
        {"role": "assistant", "content": "Then not."},
    ]  # fmt: skip
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t"},
        "samples": [{"id": 1, "messages": messages}],
    }
    assert commands_run(tmp_path, "log.json", json.dumps(log)) == []


def test_a_turn_whose_only_match_was_refused_does_not_count():
    call = ToolCall("Bash", {"command": PUSH})
    turn = AssistantTurn("", calls=(ToolCall("Bash", {"command": "ls"}),), refused=(call,))
    for name in ("command_run", "command_not_run"):
        assert build({"name": name, "command": "git push"}).score_turn(turn) is None
    for name in ("tool_called", "tool_not_called"):
        assert build({"name": name, "tool": "Bash"}).score_turn(turn) is not None
        only_refused = replace(turn, calls=(ToolCall("Read"),))
        assert build({"name": name, "tool": "Bash"}).score_turn(only_refused) is None


def test_refused_tests_are_no_tests_and_the_output_counts_the_calls(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text(SUITE)
    refused_calls = claude(REFUSED, command="make test")
    commit = claude("1 file changed", False, "git commit -m x", "z")
    commit[0]["parentUuid"] = refused_calls[-1]["uuid"]
    for line in commit:
        line["sessionId"] = "s"
        line["message"] = json.loads(json.dumps(line["message"]).replace('"t"', '"u"'))
    Path("s.jsonl").write_text(lines_of([*refused_calls, *commit]))
    main(["logs", "s.jsonl", "--suite", "rules.yaml", "--out", "runs/a"])
    output = capsys.readouterr().out
    assert "Refused or blocked before they ran, and so not scored: 1 tool call." in output
    records = [json.loads(line) for line in Path("runs/a/records.jsonl").read_text().splitlines()]
    scores = {(probe["round"], probe["rule"]): probe for probe in records[-1]["probes"]}
    assert scores[2, "tests"]["score"] == 0
    assert scores[2, "tests"]["cause"]["step"]["text"] == "git commit -m x"
