"""Results of tools and images in sessions of Claude Code, in variations."""

from typing import Any

from claude_code_lines import HI, MORE, A, B, assistant, bash_call, result, user, without
from log_variations import IMAGE, ONE_TURN, Variation, lines, text, variations


def session(*values: Any) -> dict:
    return {"s.jsonl": lines(*values)}


REFUSAL = {  # as Claude Code 2 writes it
    "type": "tool_result",
    "tool_use_id": "t1",
    "is_error": True,
    "content": "The user doesn't want to proceed with this tool use. The tool use was rejected (eg."
    " if it was a file edit, the new_string was NOT written to the file). To tell you"
    " how to proceed, the user said:\nMore?",
}
WORKED = [HI, assistant("a0", "u1", bash_call("t1"), mid="m0"), result("r1", "a0", "t1")]


test_results_and_images_of_claude_code = variations(
    Variation(
        "a result as text",
        session(*WORKED, {**A, "parentUuid": "r1"}),
        ONE_TURN,
        calls=["ls"],
        results=["ok"],
    ),
    Variation(
        "a result as blocks",
        session(
            *WORKED[:2],
            result("r1", "a0", "t1", [text("x"), text("y"), IMAGE]),
            {**A, "parentUuid": "r1"},
        ),
        ONE_TURN,
        results=["x\ny"],
        problem="1 of the type 'image'",
    ),
    Variation(
        "a result that is null",
        session(*WORKED[:2], result("r1", "a0", "t1", None), {**A, "parentUuid": "r1"}),
        ONE_TURN,
        results=[""],
    ),
    Variation(
        "a result without content",
        session(
            *WORKED[:2],
            user("r1", "a0", [{"type": "tool_result", "tool_use_id": "t1"}]),
            {**A, "parentUuid": "r1"},
        ),
        ONE_TURN,
        results=[""],
    ),
    Variation(
        "a result that names a tool",
        session(
            *WORKED[:2],
            result("r1", "a0", "t1", [{"type": "tool_reference", "tool_name": "Read"}]),
            {**A, "parentUuid": "r1"},
        ),
        ONE_TURN,
    ),
    Variation(
        "an image and a text",
        session(user("u1", None, [IMAGE, text("Hi")]), A),
        ONE_TURN,
        problem="1 of the type 'image'",
    ),
    Variation(
        "an image alone",
        session(user("u1", None, [IMAGE]), A),
        [[("", "A.")]],
        problem="1 of the type 'image'",
    ),
    Variation(
        "the source of an image is a meta message",
        session(
            user("u1", None, [text("Hi"), IMAGE]),
            user("m1", "u1", "[Image: source: /tmp/a.png]", isMeta=True),
            {**A, "parentUuid": "m1"},
        ),
        ONE_TURN,
        seen=["[Image: source: /tmp/a.png]"],
        problem="1 of the type 'image'",
    ),
    Variation(
        "an interruption during a tool",
        session(
            *WORKED[:2],
            result("r1", "a0", "t1", "The user doesn't want to proceed."),
            user("i1", "r1", [text("[Request interrupted by user for tool use]")]),
            {**MORE, "parentUuid": "i1"},
            B,
        ),
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "calls at once, whose results are one message",
        session(
            HI,
            assistant("a0", "u1", bash_call("t1", "ls a"), bash_call("t2", "ls b")),
            user(
                "r1",
                "a0",
                [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "y"},
                ],
                toolUseResult="x",
            ),
            {**A, "parentUuid": "r1"},
        ),
        ONE_TURN,
        calls=["ls a", "ls b"],
        results=["x", "y"],
    ),
    Variation(
        "a call that the user refused in words",
        session(
            *WORKED[:2],
            user("r1", "a0", [REFUSAL], toolUseResult="Error: ..."),
            {**B, "parentUuid": "r1"},
        ),
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "a refusal of a call without an id",
        session(
            *WORKED[:2],
            user("r1", "a0", [without([REFUSAL], "tool_use_id")[0]]),
            {**B, "parentUuid": "r1"},
        ),
        [[("Hi", ""), ("More?", "B.")]],
    ),
    Variation(
        "an output with the words of a refusal",
        session(
            *WORKED[:2],
            user("r1", "a0", [{**REFUSAL, "is_error": False}]),
            {**B, "parentUuid": "r1"},
        ),
        [[("Hi", "B.")]],
    ),
    Variation(
        "a failed command that says what the user wants",
        session(
            *WORKED[:2],
            user(
                "r1",
                "a0",
                [
                    {
                        **REFUSAL,
                        "content": "The user doesn't want to be bothered, notes say."
                        " Then the user said:\nMore?",
                    }
                ],
            ),
            {**B, "parentUuid": "r1"},
        ),
        [[("Hi", "B.")]],
    ),
    Variation(
        "a result beside words",
        session(
            *WORKED[:2],
            user(
                "r1",
                "a0",
                [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, text("More?")],
                toolUseResult="ok",
            ),
            {**B, "parentUuid": "r1"},
        ),
        [[("Hi", ""), ("More?", "B.")]],
    ),
)
