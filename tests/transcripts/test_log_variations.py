"""Variations of logs whose fields say something that a reader may overlook in silence."""

import json
from typing import Any

import pytest
from agent_sessions import claude, codex_says, reply, user

from holdfast.logs import read_logs
from holdfast.transcripts import EventKind


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def read(folder, name: str, content: Any):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    (dialog,) = read_logs([path]).dialogs
    return dialog


def turns_of(dialog) -> list[tuple[str, str]]:
    return [(turn.user, turn.done.text) for turn in dialog.turns]


def calls_of(dialog) -> list[tuple[str, dict]]:
    return [(call.name, dict(call.arguments)) for turn in dialog.turns for call in turn.done.calls]


def text(words: str) -> dict:
    return {"type": "text", "text": words}


HI = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "A."}


# what Claude Code put before the model


def attached(**attachment) -> dict:
    event = claude("attachment", "x1", "u1", [])
    del event["message"]
    return {**event, "attachment": attachment}


@pytest.mark.parametrize(
    "attachment",
    [
        {"type": "hook_additional_context", "content": ["Answer in German."]},
        {"type": "hook_success", "hookEvent": "SessionStart", "content": "Answer in German."},
        {"type": "nested_memory", "path": "a", "content": {"content": "Answer in German."}},
        {"type": "file", "content": {"type": "text", "file": {"content": "Answer in German."}}},
        {"type": "invoked_skills", "skills": [{"name": "a", "content": "Answer in German."}]},
        {"type": "relevant_memories", "memories": [{"content": "Answer in German."}]},
        {"type": "edited_text_file", "filename": "a", "snippet": "Answer in German."},
        {"type": "mcp_resource", "content": {"contents": [{"text": "Answer in German."}]}},
        {"type": "teammate_mailbox", "content": [{"text": "Answer in German."}]},
    ],
    ids=lambda attachment: attachment["type"],
)
def test_an_attachment_was_put_before_the_model_and_was_not_said(attachment, tmp_path):
    log = lines(user("u1", None, "Hi"), attached(**attachment), reply("a1", "x1", text("A.")))
    dialog = read(tmp_path, "s.jsonl", log)
    assert turns_of(dialog) == [("Hi", "A.")]
    (event,) = [e for e in dialog.transcript.path if e.kind is EventKind.REMINDER]
    assert event.text == "Answer in German."


def test_a_file_of_which_the_log_has_only_the_name_is_named_as_left_out(tmp_path):
    path = tmp_path / "s.jsonl"
    pdf = attached(type="pdf_reference", filename="a.pdf", pageCount=3)
    path.write_text(lines(user("u1", None, "Hi"), pdf, reply("a1", "x1", text("A."))))
    (problem,) = read_logs([path]).problems
    assert "1 of the type 'pdf_reference'" in problem


def test_what_a_hook_printed_for_the_user_is_not_in_the_context(tmp_path):
    hook = attached(type="hook_success", hookEvent="PostToolUse", content="formatted")
    log = lines(user("u1", None, "Hi"), hook, reply("a1", "x1", text("A.")))
    dialog = read(tmp_path, "s.jsonl", log)
    assert not [e for e in dialog.transcript.path if e.kind is EventKind.REMINDER]


@pytest.mark.parametrize(
    ("attachment", "prompt"),
    [
        ({"type": "prompt_snapshot", "systemPrompt": ["You code.", "Be brief."]},
         "You code.\n\nBe brief."),
        ({"type": "instructions", "files": [{"path": "CLAUDE.md", "content": "Be brief."}]},
         "Be brief."),
    ],
)  # fmt: skip
def test_a_snapshot_of_the_prompt_is_the_system_prompt(attachment, prompt, tmp_path):
    log = lines(user("u1", None, "Hi"), attached(**attachment), reply("a1", "x1", text("A.")))
    assert read(tmp_path, "s.jsonl", log).system == prompt


def test_a_queued_message_with_an_image_was_said(tmp_path):
    queued = attached(type="queued_command", prompt=[text("Also the price?"), {"type": "image"}])
    log = lines(
        user("u1", None, "Hi"),
        {**reply("a0", "u1", text("Working.")), "uuid": "a0"},
        {**queued, "parentUuid": "a0"},
        reply("a1", "x1", text("Yes.")),
    )
    assert turns_of(read(tmp_path, "s.jsonl", log)) == [
        ("Hi", "Working."),
        ("Also the price?", "Yes."),
    ]


def test_a_message_of_a_teammate_was_not_said_by_the_user(tmp_path):
    words = '<teammate-message teammate_id="b">\nthe cost?\n</teammate-message>'
    log = lines(
        user("u1", None, "Hi"),
        reply("a1", "u1", text("A.")),
        user("u2", "a1", words),
        reply("a2", "u2", text("B.")),
    )
    assert turns_of(read(tmp_path, "s.jsonl", log)) == [("Hi", "A.\n\nB.")]


# agents


def test_a_rollout_of_2025_without_payloads_is_read(tmp_path):
    log = lines(
        {"id": "x", "timestamp": "2025-06-01", "instructions": "Use pnpm.", "git": {}},
        {"record_type": "state"},
        codex_says("user", "Hi")["payload"],
        {"type": "function_call", "name": "shell", "call_id": "c",
         "arguments": json.dumps({"command": ["ls"]})},
        {"type": "function_call_output", "call_id": "c", "output": "a.py"},
        codex_says("assistant", "A.")["payload"],
    )  # fmt: skip
    dialog = read(tmp_path, "rollout-2025-06-01.jsonl", log)
    assert (dialog.system, turns_of(dialog)) == ("Use pnpm.", [("Hi", "A.")])
    assert calls_of(dialog) == [("shell", {"command": ["ls"]})]


SET_UP = "This is the Gemini CLI. We are setting up the context for our chat.\nThe price list is"


@pytest.mark.parametrize("wrap", [list, lambda messages: {"history": messages}])
def test_a_saved_chat_of_gemini_cli_begins_with_what_the_program_said(wrap, tmp_path):
    words = [SET_UP, "Got it. Thanks for the context!", "Hi", "A."]
    roles = ("user", "model")
    messages = [{"role": roles[n % 2], "parts": [{"text": w}]} for n, w in enumerate(words)]
    dialog = read(tmp_path, "checkpoint-a.json", wrap(messages))
    assert turns_of(dialog) == [("Hi", "A.")]
    assert dialog.transcript.format == "gemini-cli"


@pytest.mark.parametrize("display", [{}, {"displayContent": [{"text": "See @a"}]}])
def test_the_text_of_a_file_that_was_named_in_gemini_cli_was_not_said(display, tmp_path):
    parts = [{"text": "See @a"}, {"text": "\n--- Content from referenced files ---\nprice"}]
    message = {"id": "1", "timestamp": "t", "type": "user", "content": parts, **display}
    answer = {"id": "2", "timestamp": "t", "type": "gemini", "content": "A."}
    session = {"sessionId": "s", "projectHash": "h", "messages": [message, answer]}
    assert turns_of(read(tmp_path, "session-1.json", session)) == [("See @a", "A.")]


def test_a_quotation_in_a_reply_is_the_models_in_aiders_history(tmp_path):
    log = (
        "# aider chat started at 2026-05-01 10:00:00\n\n> Aider v0.80  \n\n#### Hi  \n\n"
        "It says:\n\n> Ten.\n\nSo ten.\n\n> Tokens: 1k sent  \n> Applied edit to a.py  \n"
    )
    dialog = read(tmp_path, ".aider.chat.history.md", log)
    assert turns_of(dialog) == [("Hi", "It says:\n\n> Ten.\n\nSo ten.")]
    assert calls_of(dialog) == [("edit", {"path": "a.py"})]


# chats


def chatgpt(*messages: dict) -> list:
    names = [str(number) for number in range(len(messages))]
    nodes = {
        name: {"id": name, "parent": str(number - 1) if number else None, "message": message}
        for number, (name, message) in enumerate(zip(names, messages, strict=True))
    }
    return [{"title": "t", "mapping": nodes, "current_node": names[-1]}]


def turn(role: str, *parts: Any, kind: str = "text", **fields) -> dict:
    content = {"content_type": kind, "parts": list(parts)}
    return {"author": {"role": role}, "content": content, "recipient": "all", **fields}


def test_what_was_spoken_to_chatgpt_was_said(tmp_path):
    user_speech = {"content_type": "audio_transcription", "text": "What does it cost?"}
    assistant_speech = {"content_type": "audio_transcription", "text": "Ten."}
    sound = {"content_type": "audio_asset_pointer"}
    log = chatgpt(
        turn("user", user_speech, sound, kind="multimodal_text"),
        turn("assistant", assistant_speech, sound, kind="multimodal_text"),
    )
    assert turns_of(read(tmp_path, "conversations.json", log)) == [("What does it cost?", "Ten.")]


def test_an_answer_of_chatgpt_that_was_cut_has_no_end(tmp_path):
    ends = {"metadata": {"finish_details": {"type": "max_tokens"}}}
    dialog = read(
        tmp_path, "conversations.json", chatgpt(turn("user", "Hi"), turn("assistant", "It", **ends))
    )
    assert [turn.done.is_cut for turn in dialog.turns] == [True]


def test_custom_instructions_of_chatgpt_were_in_the_context(tmp_path):
    content = {"content_type": "user_editable_context", "user_instructions": "Answer in German."}
    hidden = {"is_visually_hidden_from_conversation": True}
    custom = {"author": {"role": "user"}, "content": content, "metadata": hidden}
    log = chatgpt(custom, turn("user", "Hi"), turn("assistant", "A."))
    dialog = read(tmp_path, "conversations.json", log)
    assert turns_of(dialog) == [("Hi", "A.")]
    assert dialog.transcript.path[0].text == "Answer in German."


def test_the_mark_of_a_citation_is_no_text(tmp_path):
    cited = "It is ten. \ue200cite\ue202turn0search0\ue201"
    log = chatgpt(turn("user", "Hi"), turn("assistant", cited))
    assert turns_of(read(tmp_path, "conversations.json", log)) == [("Hi", "It is ten.")]


def open_webui(*answers: dict) -> list:
    messages = {"u": {"id": "u", "parentId": None, **HI}}
    for number, answer in enumerate(answers):
        before = str(number - 1) if number else "u"
        messages[str(number)] = {"id": str(number), "parentId": before, **answer}
    history = {"currentId": str(len(answers) - 1), "messages": messages}
    return [{"id": "1", "chat": {"title": "t", "history": history}}]


def test_reasoning_and_calls_in_the_text_of_open_webui_are_no_text(tmp_path):
    content = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> hm.\n'
        '</details>\n<details type="tool_calls" done="true" id="c" name="lookup_price"'
        ' arguments="&quot;{\\&quot;item\\&quot;: \\&quot;x\\&quot;}&quot;"'
        ' result="&quot;10&quot;">\n<summary>Tool Executed</summary>\n</details>\nTen.'
    )
    dialog = read(tmp_path, "chat.json", open_webui({"role": "assistant", "content": content}))
    assert turns_of(dialog) == [("Hi", "Ten.")]
    assert calls_of(dialog) == [("lookup_price", {"item": "x"})]
    (result,) = [e for e in dialog.transcript.path if e.kind is EventKind.TOOL_RESULT]
    assert (result.text, result.call_id) == ("10", "c")


def test_an_error_of_open_webui_is_no_reply(tmp_path):
    failed = {"role": "assistant", "content": "", "error": {"content": "Connection refused"}}
    dialog = read(
        tmp_path, "chat.json", open_webui(failed, {"role": "user", "content": "?"}, ANSWER)
    )
    assert turns_of(dialog) == [("Hi\n\n?", "A.")]
    assert [e.text for e in dialog.transcript.path if e.kind is EventKind.ERROR] == [
        "Connection refused"
    ]


def librechat(**answer) -> dict:
    first = {"messageId": "a", "parentMessageId": "0", "isCreatedByUser": True, "text": "Hi"}
    second = {"messageId": "b", "parentMessageId": "a", "isCreatedByUser": False, **answer}
    return {"conversationId": "c", "recursive": False, "messages": [first, second]}


@pytest.mark.parametrize(
    "answer",
    [
        {"text": ":::thinking\nhm. no.\n:::\n\nTen."},
        {"content": [{"type": "think", "think": "hm."},
                     {"type": "text", "text": {"value": "Ten."}}]},
    ],
)  # fmt: skip
def test_texts_of_librechat_in_every_form_are_read_without_reasoning(answer, tmp_path):
    assert turns_of(read(tmp_path, "a.json", librechat(**answer))) == [("Hi", "Ten.")]


def test_an_error_of_librechat_is_no_reply(tmp_path):
    log = librechat(text="Something went wrong. Try again.", error=True)
    messages = [
        {"messageId": "c", "parentMessageId": "b", "isCreatedByUser": True, "text": "?"},
        {"messageId": "d", "parentMessageId": "c", "isCreatedByUser": False, "text": "A."},
    ]
    log["messages"] += messages
    assert turns_of(read(tmp_path, "a.json", log)) == [("Hi\n\n?", "A.")]


def test_the_items_of_sharegpts_first_data_set_are_read(tmp_path):
    items = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "A."}]
    assert turns_of(read(tmp_path, "a.jsonl", lines({"id": "1", "items": items}))) == [("Hi", "A.")]


# messages of APIs


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        ({"role": "assistant", "content": None, "audio": {"id": "x", "transcript": "A."}}, []),
        (
            {**ANSWER, "toolInvocations": [{"toolCallId": "c", "toolName": "f", "args": {"x": 1},
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
    dialog = read(tmp_path, "a.jsonl", lines({"messages": [HI, answer]}))
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
    dialog = read(tmp_path, "a.jsonl", log)
    assert (turns_of(dialog), calls_of(dialog)) == ([("Hi", "A.")], calls)


def test_a_line_of_a_batch_of_geminis_api_is_a_request_with_its_response(tmp_path):
    request = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
               "systemInstruction": {"parts": [{"text": "Be brief."}]}}  # fmt: skip
    answer = {"content": {"role": "model", "parts": [{"text": "A."}]}, "finishReason": "MAX_TOKENS"}
    dialog = read(
        tmp_path, "a.jsonl", lines({"request": request, "response": {"candidates": [answer]}})
    )
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])
    assert dialog.turns[0].done.is_cut


# traces

GEMINI = [{"role": "user", "parts": [{"text": "Hi"}]}]
BRIEF = {
    "messages and system": {"system": "Be brief.", "messages": [HI]},
    "system in blocks": {"system": [text("Be brief.")], "messages": [HI]},
    "input and instructions": {"instructions": "Be brief.", "input": "Hi"},
    "contents": {"contents": GEMINI, "config": {"system_instruction": "Be brief."}},
}


@pytest.mark.parametrize("request_body", BRIEF.values(), ids=BRIEF)
@pytest.mark.parametrize("platform", ["langfuse", "phoenix"])
def test_a_prompt_beside_the_messages_of_a_traced_request_is_read(platform, request_body, tmp_path):
    if platform == "langfuse":
        span = {"id": "o", "traceId": "t", "type": "GENERATION", "input": request_body,
                "output": ANSWER}  # fmt: skip
    else:
        values = {"input": {"value": json.dumps(request_body)},
                  "output": {"value": json.dumps(ANSWER)}}  # fmt: skip
        span = {"context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM",
                "attributes": values}  # fmt: skip
    dialog = read(tmp_path, "a.jsonl", lines(span))
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])


def test_the_prompt_and_the_end_of_a_run_of_langsmith_are_read(tmp_path):
    run = {"id": "r", "run_type": "llm", "trace_id": "t"}
    inputs = {"system": "Be brief.", "messages": [HI]}
    first = {"text": "A.", "generation_info": {"finish_reason": "length"}, "message": ANSWER}
    dialog = read(
        tmp_path, "a.jsonl", lines({**run, "inputs": inputs, "outputs": {"generations": [[first]]}})
    )
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])
    assert dialog.turns[0].done.is_cut


def test_a_run_of_langsmith_without_ids_is_of_no_session(tmp_path):
    run = {"run_type": "llm", "inputs": {"messages": [HI]}, "outputs": ANSWER}
    assert read(tmp_path, "a.jsonl", lines(run)).transcript.history == ""


def test_payloads_of_litellm_with_a_prompt_among_the_parameters_or_as_text_are_read(tmp_path):
    choice = {"message": ANSWER, "finish_reason": "length"}
    call = {
        "call_type": "acompletion",
        "model_parameters": {"system": "Be brief."},
        "messages": json.dumps([HI]),
        "response": json.dumps({"choices": [choice]}),
    }
    dialog = read(tmp_path, "a.jsonl", lines(call))
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])
    assert dialog.turns[0].done.is_cut


def span_of(events=(), **attributes) -> dict:
    attrs = {f"gen_ai.{name}": value for name, value in attributes.items()}
    return {"name": "chat", "traceId": "t", "spanId": "s", "attributes": attrs, "events": [*events]}


def event(name: str, **attributes) -> dict:
    return {
        "name": name,
        "attributes": {f"gen_ai.{k}": json.dumps(v) for k, v in attributes.items()},
    }


SYSTEM = {"role": "system", "content": "Be brief."}
SPANS = {
    "details": span_of(
        [{"name": "gen_ai.client.inference.operation.details", "attributes": {
            "gen_ai.input.messages": json.dumps([SYSTEM, HI]),
            "gen_ai.output.messages": json.dumps([ANSWER])}}],
        **{"operation.name": "chat"},
    ),
    "contents": span_of(
        [event("gen_ai.content.prompt", prompt=[SYSTEM, HI]),
         event("gen_ai.content.completion", completion=[ANSWER])],
        **{"operation.name": "chat"},
    ),
    "messages": span_of(
        [{"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
         {"name": "gen_ai.user.message", "attributes": {"content": "Hi"}},
         {"name": "gen_ai.choice", "attributes": {"message": json.dumps(ANSWER)}}],
        **{"operation.name": "chat"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
def test_messages_in_the_events_of_a_span_are_read(span, tmp_path):
    dialog = read(tmp_path, "a.jsonl", lines(span))
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])


def test_the_reason_why_a_reply_ended_may_be_an_attribute_of_the_span(tmp_path):
    span = span_of(
        **{"operation.name": "chat", "input.messages": json.dumps([HI])},
        **{"output.messages": json.dumps([ANSWER]), "response.finish_reasons": ["length"]},
    )
    assert read(tmp_path, "a.jsonl", lines(span)).turns[0].done.is_cut


def test_spans_of_openllmetry_are_not_taken_for_those_of_openinference(tmp_path):
    span = span_of(**{"prompt.0.role": "user", "prompt.0.content": "Hi",
                      "completion.0.role": "assistant", "completion.0.content": "A."})  # fmt: skip
    span["attributes"]["llm.request.type"] = "chat"
    assert turns_of(read(tmp_path, "a.jsonl", lines(span))) == [("Hi", "A.")]
