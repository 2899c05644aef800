"""Exports of Open WebUI: variations, replies as items, reasoning and errors."""

from typing import Any

import pytest
from log_variations import (
    HI,
    ONE_TURN,
    TWO_TURNS,
    A,
    Variation,
    check,
    context_before_last_reply,
    text,
    variations,
)
from read_dialogs import calls_of, dialog_in, turns_of

from holdfast.transcripts import EventKind


def export(last: str = "2", **messages: dict) -> list:
    by_id = {
        name.removeprefix("m"): {"id": name[1:], "childrenIds": [], "timestamp": 1, **fields}
        for name, fields in messages.items()
    }
    return [
        {
            "id": "1",
            "user_id": "u",
            "chat": {
                "title": "t",
                "models": ["x"],
                "history": {"currentId": last, "messages": by_id},
                "messages": [],
            },
        }
    ]


HI_NODE, A_NODE = {**HI, "parentId": None}, {**A, "parentId": "1", "done": True, "model": "x"}

test_exports_of_open_webui = variations(
    Variation(
        "an export", {"chat.json": export(m1=HI_NODE, m2=A_NODE)}, ONE_TURN, format="open-webui"
    ),
    Variation("one chat", {"chat.json": export(m1=HI_NODE, m2=A_NODE)[0]}, ONE_TURN),
    Variation(
        "two models",
        {"chat.json": export("3", m1=HI_NODE, m2=A_NODE, m3={**A_NODE, "content": "B."})},
        [[("Hi", "B.")]],
        problem="1 message of abandoned",
    ),
    Variation(
        "thinking",
        {
            "chat.json": export(
                m1=HI_NODE,
                m2={
                    **A_NODE,
                    "content": (
                        '<details type="reasoning" done="true" duration="1">\n'
                        "<summary>x</summary>\n> price\n</details>\nA."
                    ),
                },
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a prompt",
        {
            "chat.json": [
                {"chat": {**export(m1=HI_NODE, m2=A_NODE)[0]["chat"], "system": "Be brief."}}
            ]
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a prompt among the parameters",
        {
            "chat.json": [
                {
                    "chat": {
                        **export(m1=HI_NODE, m2=A_NODE)[0]["chat"],
                        "params": {"system": "Be brief."},
                    }
                }
            ]
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation("no current message", {"chat.json": export(None, m1=HI_NODE, m2=A_NODE)}, ONE_TURN),
    Variation("a list of messages", {"chat.json": [{"chat": {"messages": [HI, A]}}]}, ONE_TURN),
    Variation(
        "content in parts",
        {
            "chat.json": export(
                m1={
                    **HI_NODE,
                    "content": [text("Hi"), {"type": "image_url", "image_url": {"url": "data:"}}],
                },
                m2=A_NODE,
            )
        },
        ONE_TURN,
        problem="1 of the type 'image_url'",
    ),
    Variation(
        "an empty answer",
        {
            "chat.json": export(
                "3", m1=HI_NODE, m2={**A_NODE, "content": ""}, m3={**A_NODE, "parentId": "2"}
            )
        },
        ONE_TURN,
    ),
)


def chat_with_answer(**answer: Any) -> dict:
    messages = {
        "1": {**HI, "id": "1", "parentId": None},
        "2": {"role": "assistant", "id": "2", "parentId": "1", **answer},
    }
    history = {"currentId": "2", "messages": messages}
    return {"chat.json": [{"id": "c", "title": "t", "chat": {"history": history}}]}


TEXT_ITEM = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "A."}]}
SEARCH_ITEM = {
    "type": "function_call",
    "name": "search",
    "call_id": "c1",
    "arguments": '{"q": "x"}',
}
FOUND_ITEM = {
    "type": "function_call_output",
    "call_id": "c1",
    "output": [{"type": "input_text", "text": "y"}],
}
DETAILS = (
    '<details type="tool_calls" done="true" id="c1" name="search" '
    'arguments="&quot;{\\&quot;q\\&quot;: \\&quot;x\\&quot;}&quot;" result="&quot;y&quot;">'
    "\n<summary>Tool</summary>\n</details>\nA."
)

test_replies_of_open_webui_as_items = variations(
    Variation(
        "a text", chat_with_answer(content="", output=[TEXT_ITEM]), ONE_TURN, format="open-webui"
    ),
    Variation("no content", chat_with_answer(content=None, output=[TEXT_ITEM]), ONE_TURN),
    Variation(
        "a call and its result",
        chat_with_answer(content="", output=[SEARCH_ITEM, FOUND_ITEM, TEXT_ITEM]),
        ONE_TURN,
        calls=["x"],
        results=["y"],
    ),
    Variation(
        "a call that the content does not show",
        chat_with_answer(content="A.", output=[SEARCH_ITEM, FOUND_ITEM, TEXT_ITEM]),
        ONE_TURN,
        calls=["x"],
        results=["y"],
    ),
    Variation(
        "a call that the content shows",
        chat_with_answer(content=DETAILS, output=[SEARCH_ITEM, FOUND_ITEM, TEXT_ITEM]),
        ONE_TURN,
        calls=["x"],
        results=["y"],
    ),
    Variation(
        "reasoning",
        chat_with_answer(
            content="", output=[{"type": "reasoning", "summary": [{"text": "price"}]}, TEXT_ITEM]
        ),
        ONE_TURN,
    ),
    Variation(
        "code that was run",
        chat_with_answer(
            content="",
            output=[
                {
                    "type": "open_webui:code_interpreter",
                    "id": "i",
                    "code": "1 + 1",
                    "output": {"stdout": "2"},
                },
                TEXT_ITEM,
            ],
        ),
        ONE_TURN,
        calls=["1 + 1"],
    ),
    Variation(
        "a text alone that was edited",
        chat_with_answer(
            content="A.", output=[{**TEXT_ITEM, "content": [{"type": "output_text", "text": "B."}]}]
        ),
        ONE_TURN,
    ),
)


@pytest.mark.parametrize("field", ["contextSummary", "context_summary"])
def test_a_summary_that_open_webui_keeps_in_a_message_replaces_what_came_before(tmp_path, field):
    said = [
        HI,
        A,
        {"role": "user", "content": "More?", field: "Summary."},
        {"role": "assistant", "content": "B."},
    ]
    messages = {
        str(number): {**message, "id": str(number), "parentId": str(number - 1) if number else None}
        for number, message in enumerate(said)
    }
    content = [{"id": "c", "chat": {"history": {"currentId": "3", "messages": messages}}}]
    check(Variation("", {"chat.json": content}, TWO_TURNS), tmp_path)
    assert context_before_last_reply(tmp_path, "chat.json", content) == ["Summary.", "More?"]


def export_of(*answers: dict) -> list:
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
    dialog = dialog_in(tmp_path, "chat.json", export_of({"role": "assistant", "content": content}))
    assert turns_of(dialog) == [("Hi", "Ten.")]
    assert calls_of(dialog) == [("lookup_price", {"item": "x"})]
    (result,) = [e for e in dialog.transcript.path if e.kind is EventKind.TOOL_RESULT]
    assert (result.text, result.call_id) == ("10", "c")


def test_an_error_of_open_webui_is_no_reply(tmp_path):
    failed = {"role": "assistant", "content": "", "error": {"content": "Connection refused"}}
    dialog = dialog_in(
        tmp_path, "chat.json", export_of(failed, {"role": "user", "content": "?"}, A)
    )
    assert turns_of(dialog) == [("Hi\n\n?", "A.")]
    assert [e.text for e in dialog.transcript.path if e.kind is EventKind.ERROR] == [
        "Connection refused"
    ]
