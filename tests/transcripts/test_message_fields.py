"""Messages of chat APIs: roles, answers beside them, refusals, calls and reasoning."""

import json

import pytest
from log_variations import HI, A, lines, text
from read_dialogs import calls_of, dialog_in, read_lines, turns_of

from holdfast.transcripts import Event, EventKind
from holdfast.transcripts.chat_messages import read_messages

SYSTEM = {"role": "system", "content": "Be brief."}
ASKED, ANSWERED = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}


def test_the_answer_beside_the_messages_is_a_turn(tmp_path):
    response = {"choices": [{"message": {"role": "assistant", "content": "Ten."}}]}
    messages = [ASKED, ANSWERED, {"role": "user", "content": "The price?"}]
    for fields in ({"response": response}, {"response": json.dumps(response)}, response):
        turns, problems, _ = read_lines(tmp_path, {"messages": messages, **fields})
        assert turns == [("Hi.", "Hello."), ("The price?", "Ten.")] and not problems
    turns, _, _ = read_lines(tmp_path, {"request": {"messages": messages}, "response": response})
    assert turns[1] == ("The price?", "Ten.")


def test_an_answer_that_the_messages_repeat_counts_once(tmp_path):
    response = {"choices": [{"message": ANSWERED}]}
    turns, _, _ = read_lines(tmp_path, {"messages": [ASKED, ANSWERED], "response": response})
    assert turns == [("Hi.", "Hello.")]


def test_a_failed_call_is_named(tmp_path):
    failed = {"call_type": "acompletion", "status": "failure", "messages": [ASKED], "response": {}}
    _, (problem,), _ = read_lines(tmp_path, failed, {"messages": [ASKED, ANSWERED]})
    assert "line 1" in problem and "no response" in problem


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ({"role": "human"}, {"role": "ai"}),
        ({"role": "HumanMessage"}, {"role": "AIMessageChunk"}),
        ({"type": "human"}, {"type": "ai", "tool_calls": []}),
        ({"role": "User"}, {"role": "CHATBOT"}),
    ],
)
def test_the_roles_of_other_libraries_are_known(question, answer, tmp_path):
    messages = [{**question, "content": "Hi."}, {**answer, "content": "Hello."}]
    for value in ({"messages": messages}, messages):
        assert read_lines(tmp_path, value)[0] == [("Hi.", "Hello.")]


def test_messages_of_a_developer_are_the_system_prompt(tmp_path):
    _, _, dialog = read_lines(
        tmp_path, {"messages": [{**SYSTEM, "role": "developer"}, ASKED, ANSWERED]}
    )
    assert dialog.system == "Be brief."


@pytest.mark.parametrize("content", [None, "", [{"type": "refusal", "refusal": "I cannot help."}]])
def test_a_refusal_is_the_text_of_a_message_without_one(content):
    message = {"role": "assistant", "content": content, "refusal": "I cannot help."}
    assert read_messages([message]) == [Event(EventKind.MESSAGE, "I cannot help.", "assistant")]


def test_a_refusal_does_not_replace_a_text():
    answered = {"role": "assistant", "content": "Hello.", "refusal": None}
    assert read_messages([answered]) == [Event(EventKind.MESSAGE, "Hello.", "assistant")]


def test_a_result_that_names_its_tool_is_one_result():
    part = {"type": "tool-result", "toolCallId": "1", "toolName": "bash", "output": "cart.py"}
    (event,) = read_messages([{"role": "tool", "content": [part]}])
    assert event == Event(EventKind.TOOL_RESULT, "cart.py") and event.call_id == "1"


def test_reasoning_alone_is_no_text_of_a_reply():
    thinking = {"role": "model", "parts": [{"text": "The user says hi.", "thought": True}]}
    assert read_messages([thinking]) == [Event(EventKind.MESSAGE, "", "assistant")]


def test_reasoning_in_a_reply_is_kept_apart_from_it(tmp_path):
    thought = {"role": "assistant", "content": "<think>\nFirst. Then.\n</think>\n\nIt adds up."}
    turns, _, dialog = read_lines(tmp_path, {"messages": [ASKED, thought]})
    assert turns == [("Hi.", "It adds up.")]
    assert dialog.turns[0].reasoning == "First. Then."


# Calls and texts in other fields


def test_the_items_of_sharegpts_first_data_set_are_read(tmp_path):
    items = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "A."}]
    assert turns_of(dialog_in(tmp_path, "a.jsonl", lines({"id": "1", "items": items}))) == [
        ("Hi", "A.")
    ]


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ({"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "A."}}, []),
        (
            {**A, "toolInvocations": [{"toolCallId": "c", "toolName": "f", "args": {"x": 1},
                                            "state": "result", "result": 2}]},
            [("f", {"x": 1})],
        ),
        (
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "s", "name": "web_search",
                 "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, text("A.")]},
            [("web_search", {"query": "x"})],
        ),
        (
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {"x": 1}}},
                                        {"text": "A."}]},
            [("f", {"x": 1})],
        ),
    ],
    ids=["audio", "toolInvocations", "server_tool_use", "function_call"],
)  # fmt: skip
def test_texts_and_calls_in_other_fields_are_read(answer, calls, tmp_path):
    dialog = dialog_in(tmp_path, "a.jsonl", lines({"messages": [HI, answer]}))
    assert turns_of(dialog) == [("Hi", "A.")]
    assert calls_of(dialog) == calls


MESSAGE = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "A."}],
}
PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
DIFF = {"type": "update_file", "path": "a.py", "diff": "@@\n-x\n+y"}
COMMANDS = {"commands": ["git push -f", "ls"]}


@pytest.mark.parametrize(
    ("item", "calls"),
    [
        ({"type": "shell_call", "action": COMMANDS},
         [("shell", {**COMMANDS, "command": "git push -f\nls"})]),
        ({"type": "apply_patch_call", "operation": DIFF}, [("apply_patch", {"input": PATCH})]),
        ({"type": "web_search_call", "action": {"type": "search", "query": "x"}},
         [("web_search", {"type": "search", "query": "x"})]),
        ({"type": "mcp_list_tools", "server_label": "s", "tools": []}, []),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_calls_of_the_responses_api_that_their_type_names_are_calls(item, calls, tmp_path):
    log = lines({"input": "Hi", "output": [{**item, "call_id": "c"}, MESSAGE]})
    dialog = dialog_in(tmp_path, "a.jsonl", log)
    assert (turns_of(dialog), calls_of(dialog)) == ([("Hi", "A.")], calls)


def test_a_line_of_a_batch_of_geminis_api_is_a_request_with_its_response(tmp_path):
    request = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
               "systemInstruction": {"parts": [{"text": "Be brief."}]}}  # fmt: skip
    answer = {"content": {"role": "model", "parts": [{"text": "A."}]}, "finishReason": "MAX_TOKENS"}
    dialog = dialog_in(
        tmp_path, "a.jsonl", lines({"request": request, "response": {"candidates": [answer]}})
    )
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])
    assert dialog.turns[0].done.is_cut
