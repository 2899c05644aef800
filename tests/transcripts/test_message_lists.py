"""Lists of messages as OpenAI's API has them, also under other names, in variations."""

import json
from typing import Any

from api_messages import CALL_RESULT, function_call
from log_variations import BRIEF, HI, ONE_TURN, A, Variation, lines, text, variations

from holdfast.logs import read_logs


def chatfile(*messages: Any, **fields: Any) -> dict:
    return {"log.jsonl": lines({"messages": [*messages], **fields})}


test_lists_of_messages = variations(
    Variation(
        "content that is null beside a call",
        chatfile(
            HI,
            {"role": "assistant", "content": None, "tool_calls": [function_call()]},
            CALL_RESULT,
            A,
        ),
        ONE_TURN,
        calls=["ls"],
        results=["y"],
        format="openai",
    ),
    Variation(
        "arguments as an object",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [function_call(arguments={"x": "ls"})],
            },
            A,
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "arguments that were cut",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [function_call(arguments='{"x": "l')],
            },
            A,
        ),
        ONE_TURN,
        calls=['{"x": "l'],
    ),
    Variation("no calls", chatfile(HI, {**A, "tool_calls": None}), ONE_TURN),
    Variation("an empty list of calls", chatfile(HI, {**A, "tool_calls": []}), ONE_TURN),
    Variation(
        "a function call",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "y"},
            A,
        ),
        ONE_TURN,
        results=["y"],
    ),
    Variation(
        "a call as JSON in the text",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": "Wait.\n<tool_call>\n"
                '{"name": "f", "arguments": {"x": "ls"}}\n</tool_call>',
            },
            {"role": "user", "content": "<tool_response>\ny\n</tool_response>"},
            A,
        ),
        [[("Hi", "Wait.\n\nA.")]],
        calls=["ls"],
        results=["<tool_response>\ny\n</tool_response>"],
    ),
    Variation(
        "an element of that name that is no call",
        chatfile(HI, {"role": "assistant", "content": "<tool_call>f</tool_call>"}),
        [[("Hi", "<tool_call>f</tool_call>")]],
        calls=[],
    ),
    Variation(
        "calls in parallel",
        chatfile(
            HI,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    function_call(
                        "multi_tool_use.parallel",
                        {
                            "tool_uses": [
                                {"recipient_name": "functions.f", "parameters": {"x": "ls"}},
                                {"recipient_name": "functions.g", "parameters": {"x": "pwd"}},
                            ]
                        },
                    )
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "y"},
            A,
        ),
        ONE_TURN,
        calls=["ls", "pwd"],
        results=["y"],
    ),
    Variation(
        "content in parts",
        chatfile(
            {
                "role": "user",
                "content": [text("Hi"), {"type": "image_url", "image_url": {"url": "x"}}],
            },
            {"role": "assistant", "content": [text("A.")]},
        ),
        ONE_TURN,
        problem="1 of the type 'image_url'",
    ),
    Variation(
        "sound",
        chatfile(
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}, text("Hi")]}, A
        ),
        ONE_TURN,
        problem="1 of the type 'input_audio'",
    ),
    Variation(
        "a refusal",
        chatfile(HI, {"role": "assistant", "content": None, "refusal": "No."}),
        [[("Hi", "No.")]],
    ),
    Variation(
        "a developer",
        chatfile({"role": "developer", "content": "Be brief."}, HI, A),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "two prompts",
        chatfile(BRIEF, {"role": "system", "content": "Be kind."}, HI, A),
        ONE_TURN,
        system="Be brief.\n\nBe kind.",
    ),
    Variation(
        "reasoning beside the content", chatfile(HI, {**A, "reasoning_content": "price"}), ONE_TURN
    ),
    Variation(
        "reasoning in the content",
        chatfile(HI, {"role": "assistant", "content": "<think>x</think>A."}),
        ONE_TURN,
    ),
    Variation("a bare list", {"log.jsonl": lines([HI, A])}, ONE_TURN),
    Variation("a document of one list", {"log.json": [HI, A]}, ONE_TURN),
    Variation("a document of lists", {"log.json": [[HI, A], [HI, A]]}, [*ONE_TURN, *ONE_TURN]),
    Variation("a page of results", {"log.json": {"data": [{"messages": [HI, A]}]}}, ONE_TURN),
    Variation("upper case", chatfile({**HI, "role": "USER"}, {**A, "role": "ASSISTANT"}), ONE_TURN),
    Variation(
        "an unknown role beside a good line",
        {"log.jsonl": lines({"messages": [{**HI, "role": "wizard"}, A]}, {"messages": [HI, A]})},
        ONE_TURN,
        problem="wizard",
    ),
    Variation(
        "fields beside the messages", chatfile(HI, A, tools=[], parallel_tool_calls=True), ONE_TURN
    ),
    Variation(
        "a prompt with answers to choose from",
        {
            "log.jsonl": lines(
                {"messages": [HI, A]}, {"input": {"messages": [HI]}, "preferred_output": [A]}
            )
        },
        ONE_TURN,
        problem="line 2",
    ),
    Variation("empty lines", {"log.jsonl": f"\n{json.dumps([HI, A])}\n\n\n"}, ONE_TURN),
    Variation(
        "a mark of the order of bytes", {"log.jsonl": "\ufeff" + json.dumps([HI, A])}, ONE_TURN
    ),
    Variation(
        "a last line that was cut",
        {"log.jsonl": lines({"messages": [HI, A]}, '{"messages": [{"ro')},
        ONE_TURN,
        problem="line 2:",
    ),
    Variation(
        "a list that ends with the user",
        chatfile(HI, A, {"role": "user", "content": "More?"}),
        ONE_TURN,
    ),
    Variation("two answers", chatfile(HI, A, {**A, "content": "B."}), [[("Hi", "A.\n\nB.")]]),
    Variation(
        "an end at the limit", chatfile(HI, {**A, "finish_reason": "length"}), ONE_TURN, is_cut=True
    ),
    Variation(
        "a dialog with the runs of its assistant",
        {"x.json": {"messages": [HI, A], "runs": [{"id": "run_1"}]}},
        ONE_TURN,
        format="openai",
    ),
    Variation(
        "a dialog with fields of its own that a change of VS Code's has too",
        {
            "x.jsonl": lines(
                {"kind": 1, "v": {}, "messages": [HI, A]}, {"kind": 0, "v": {}, "messages": [HI, A]}
            )
        },
        ONE_TURN * 2,
        format="openai",
    ),
)


# Other names


CHAT = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A."}]}\n'

CHAT_VALUE = json.loads(CHAT)
LMSYS = {"conversation_id": "x", "conversation": CHAT_VALUE["messages"], "turn": 1}

test_lists_under_other_names = variations(
    Variation("the field conversation", {"a.jsonl": lines(LMSYS)}, ONE_TURN, format="openai"),
    Variation(
        "a prompt beside it",
        {"a.jsonl": lines({**LMSYS, "system": "Be brief."})},
        ONE_TURN,
        system="Be brief.",
    ),
    Variation("dialogs", {"a.json": {"dialogs": [CHAT_VALUE, CHAT_VALUE]}}, [*ONE_TURN, *ONE_TURN]),
    Variation(
        "dialogs in a line", {"a.jsonl": lines({"name": "x", "chats": [CHAT_VALUE]})}, ONE_TURN
    ),
    Variation(
        "conversations of messages",
        {"a.json": {"conversations": [CHAT_VALUE]}},
        ONE_TURN,
        format="openai",
    ),
    Variation(
        "conversations that are lists",
        {"a.json": {"conversations": [CHAT_VALUE["messages"]]}},
        ONE_TURN,
        format="openai",
    ),
    Variation(
        "two lists",
        {"a.json": {"train": [CHAT_VALUE], "test": [CHAT_VALUE]}},
        [*ONE_TURN, *ONE_TURN],
    ),
    Variation(
        "an entry in no format",
        {"a.json": {"dialogs": [CHAT_VALUE, {"x": 1}]}},
        ONE_TURN,
        problem="entry 1, dialogs 2: {'x': 1} is in no known format",
    ),
    Variation(
        "a list of something else",
        {"a.json": {"items": [{"x": 1}]}},
        refused="is in no known format",
    ),
)


def test_calls_without_ids_in_the_content_are_those_beside_it(tmp_path):
    reply = {
        "role": "assistant",
        "content": [{"functionCall": {"name": "ls", "args": {"path": "a"}}}],
        "tool_calls": [{"name": "ls", "args": {"path": "a"}, "id": "c1", "type": "tool_call"}],
    }
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"messages": [HI, reply]}))
    (dialog,) = read_logs([path]).dialogs
    assert [call.name for turn in dialog.turns for call in turn.done.calls] == ["ls"]
