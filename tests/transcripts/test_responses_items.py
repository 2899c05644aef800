"""Items of the Responses API, in variations."""

from typing import Any

from api_messages import RESPONSE_MESSAGE
from log_variations import HI, ONE_TURN, TWO_TURNS, Variation, lines, variations


def responses(*items: Any, **fields: Any) -> dict:
    return {"log.jsonl": lines({"object": "response", "input": "Hi", "output": [*items], **fields})}


test_responses = variations(
    Variation("an input as text", responses(RESPONSE_MESSAGE), ONE_TURN, format="responses"),
    Variation("an input as items", responses(RESPONSE_MESSAGE, input=[HI]), ONE_TURN),
    Variation(
        "instructions",
        responses(RESPONSE_MESSAGE, instructions="Be brief."),
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "reasoning",
        responses(
            {
                "type": "reasoning",
                "id": "r",
                "summary": [{"type": "summary_text", "text": "price"}],
            },
            RESPONSE_MESSAGE,
        ),
        ONE_TURN,
    ),
    Variation(
        "a call",
        responses(
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"x": "ls"}'},
            RESPONSE_MESSAGE,
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "a call and its output",
        responses(
            RESPONSE_MESSAGE,
            input=[
                HI,
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "y"},
            ],
        ),
        ONE_TURN,
        results=["y"],
    ),
    Variation(
        "a refusal",
        responses({**RESPONSE_MESSAGE, "content": [{"type": "refusal", "refusal": "No."}]}),
        [[("Hi", "No.")]],
    ),
    Variation(
        "items alone",
        {
            "log.jsonl": lines(
                [{"type": "message", "role": "user", "content": "Hi"}, RESPONSE_MESSAGE]
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a response that is incomplete",
        responses(
            RESPONSE_MESSAGE,
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        ONE_TURN,
        is_cut=True,
    ),
    Variation(
        "an input with an image",
        responses(
            RESPONSE_MESSAGE,
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Hi"},
                        {"type": "input_image", "image_url": "x"},
                    ],
                }
            ],
        ),
        ONE_TURN,
        problem="1 of the type 'input_image'",
    ),
    Variation(
        "a call of a server's tool, with its output",
        responses(
            {"type": "mcp_call", "id": "m", "name": "f", "arguments": '{"x": "ls"}', "output": "y"},
            RESPONSE_MESSAGE,
        ),
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a response that another one continues",
        {
            "log.jsonl": lines(
                {
                    "id": "r2",
                    "previous_response_id": "r1",
                    "input": "More?",
                    "output": [
                        {**RESPONSE_MESSAGE, "content": [{"type": "output_text", "text": "B."}]}
                    ],
                },
                {"id": "r1", "input": "Hi", "output": [RESPONSE_MESSAGE]},
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "a response that two others continue",
        {
            "log.jsonl": lines(
                {"id": "r1", "input": "Hi", "output": [RESPONSE_MESSAGE]},
                {
                    "id": "r2",
                    "previous_response_id": "r1",
                    "input": "More?",
                    "output": [RESPONSE_MESSAGE],
                },
                {
                    "id": "r3",
                    "previous_response_id": "r1",
                    "input": "Or?",
                    "output": [RESPONSE_MESSAGE],
                },
            )
        },
        [[("Hi", "A."), ("More?", "A.")], [("Or?", "A.")]],
        problem="1 of its 2 turns",
    ),
    Variation(
        "two responses with one id",
        {
            "log.jsonl": lines(
                {"id": "r1", "input": "Hi", "output": [RESPONSE_MESSAGE]},
                {"id": "r1", "input": "Or?", "output": [RESPONSE_MESSAGE]},
            )
        },
        [ONE_TURN[0], [("Or?", "A.")]],
        problem="line 1 has the same id",
    ),
    Variation(
        "a response that was written as it began, and at its end",
        {
            "log.jsonl": lines(
                {"id": "r1", "input": "Hi", "output": []},
                {"id": "r1", "input": "Hi", "output": [RESPONSE_MESSAGE]},
                {"id": "r1", "input": "Hi", "output": [RESPONSE_MESSAGE]},
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a response that continues itself",
        responses(RESPONSE_MESSAGE, id="r1", previous_response_id="r1"),
        ONE_TURN,
        problem="continue each other",
    ),
    Variation(
        "responses that continue each other in a circle",
        {
            "log.jsonl": lines(
                {
                    "id": "r1",
                    "previous_response_id": "r2",
                    "input": "More?",
                    "output": [
                        {**RESPONSE_MESSAGE, "content": [{"type": "output_text", "text": "B."}]}
                    ],
                },
                {
                    "id": "r2",
                    "previous_response_id": "r1",
                    "input": "Hi",
                    "output": [RESPONSE_MESSAGE],
                },
            )
        },
        TWO_TURNS,
        problem="continue each other",
    ),
    Variation(
        "a reference to an item",
        responses(RESPONSE_MESSAGE, input=[{"type": "item_reference", "id": "x"}, HI]),
        ONE_TURN,
    ),
    Variation(
        "a response that goes on from another",
        responses(RESPONSE_MESSAGE, previous_response_id="r1"),
        ONE_TURN,
        problem="it continues response 'r1', which is not included",
    ),
)
