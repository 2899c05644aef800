"""Logs of LiteLLM, in variations."""

import json
from typing import Any

from api_messages import RESPONSE_MESSAGE
from log_variations import HI, ONE_TURN, TWO_TURNS, A, Variation, lines, text, variations


def payload(**fields: Any) -> dict:
    return {
        "id": "1",
        "call_type": "acompletion",
        "status": "success",
        "messages": [HI],
        "startTime": 1.0,
        "response": {"choices": [{"message": A, "finish_reason": "stop"}]},
        **fields,
    }


test_payloads_of_litellm = variations(
    Variation("a payload", {"x.jsonl": lines(payload())}, ONE_TURN, format="litellm"),
    Variation(
        "JSON in texts",
        {
            "x.jsonl": lines(
                payload(
                    messages=json.dumps([HI]), response=json.dumps({"choices": [{"message": A}]})
                )
            )
        },
        ONE_TURN,
    ),
    Variation("a response as text", {"x.jsonl": lines(payload(response="A."))}, ONE_TURN),
    Variation(
        "a failure beside a success",
        {"x.jsonl": lines(payload(status="failure", response=None), payload())},
        ONE_TURN,
        problem="line 1",
    ),
    Variation(
        "a longer call",
        {
            "x.jsonl": lines(
                payload(),
                payload(
                    startTime=2.0,
                    messages=[HI, A, {"role": "user", "content": "More?"}],
                    response={"choices": [{"message": {**A, "content": "B."}}]},
                ),
            )
        },
        TWO_TURNS,
    ),
    Variation(
        "a request with choices",
        {"x.jsonl": lines({"messages": [HI], "choices": [{"message": A}]})},
        ONE_TURN,
    ),
    Variation(
        "a request and its completion",
        {"x.jsonl": lines({"messages": [HI], "completion": "A."})},
        ONE_TURN,
    ),
    Variation(
        "no choices, and again",
        {"x.jsonl": lines(payload(response={"choices": []}), payload())},
        ONE_TURN,
    ),
    Variation(
        "a response of the Responses API",
        {
            "x.jsonl": lines(
                payload(call_type="aresponses", response={"output": [RESPONSE_MESSAGE]})
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a response of Anthropic's",
        {
            "x.jsonl": lines(
                payload(
                    call_type="anthropic_messages",
                    response={"role": "assistant", "content": [text("A.")]},
                )
            )
        },
        ONE_TURN,
    ),
    Variation(
        "equal calls of users without sessions",
        {"x.jsonl": lines(payload(), payload())},
        [*ONE_TURN, *ONE_TURN],
    ),
    Variation(
        "another answer to the same question",
        {
            "x.jsonl": lines(
                payload(),
                payload(startTime=2.0, response={"choices": [{"message": {**A, "content": "B."}}]}),
            )
        },
        [ONE_TURN[0], [("Hi", "B.")]],
    ),
    Variation(
        "a call that goes on from the second answer",
        {
            "x.jsonl": lines(
                payload(),
                payload(startTime=2.0, response={"choices": [{"message": {**A, "content": "B."}}]}),
                payload(
                    startTime=3.0,
                    messages=[HI, {**A, "content": "B."}, {"role": "user", "content": "?"}],
                    response={"choices": [{"message": {**A, "content": "C."}}]},
                ),
            )
        },
        [ONE_TURN[0], [("Hi", "B."), ("?", "C.")]],
    ),
    Variation(
        "a chunk of a stream",
        {
            "x.jsonl": lines(
                payload(response={"choices": [{"delta": {"role": "assistant", "content": "A."}}]})
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a payload of LiteLLM's whose input is text",
        {
            "x.jsonl": lines(
                {
                    "id": "1",
                    "call_type": "aresponses",
                    "status": "success",
                    "messages": "Hi",
                    "response": {"output": [RESPONSE_MESSAGE]},
                }
            )
        },
        ONE_TURN,
        format="litellm",
    ),
)


def spent(request: Any, response: Any, **fields: Any) -> dict:
    row = {
        "request_id": "r",
        "call_type": "acompletion",
        "status": "success",
        "messages": {},
        "startTime": "2026-10-01T10:00:00Z",
    }
    return {**row, "proxy_server_request": request, "response": response, **fields}


REQUESTED = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, HI]}
RESPONSE = {"choices": [{"message": A, "finish_reason": "stop"}]}
RESPONSES = {"model": "m", "input": "Hi", "instructions": "Be brief."}
OF_ANTHROPIC = {"model": "m", "system": "Be brief.", "messages": [HI]}

test_spend_logs_of_litellm = variations(
    Variation(
        "a request",
        {"x.jsonl": lines(spent(REQUESTED, RESPONSE))},
        ONE_TURN,
        format="litellm",
        system="Be brief.",
    ),
    Variation(
        "columns of JSON",
        {"x.jsonl": lines(spent(json.dumps(REQUESTED), json.dumps(RESPONSE), messages="{}"))},
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a request with its headers",
        {
            "x.jsonl": lines(
                spent({"url": "u", "method": "POST", "headers": {}, "body": REQUESTED}, RESPONSE)
            )
        },
        ONE_TURN,
    ),
    Variation(
        "a request of the Responses API",
        {
            "x.jsonl": lines(
                spent(RESPONSES, {"output": [RESPONSE_MESSAGE]}, call_type="aresponses")
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a request of Anthropic's API",
        {
            "x.jsonl": lines(
                spent(
                    OF_ANTHROPIC,
                    {"role": "assistant", "content": [text("A.")]},
                    call_type="anthropic_messages",
                )
            )
        },
        ONE_TURN,
        system="Be brief.",
    ),
    Variation(
        "a page of the proxy's interface",
        {"x.json": {"data": [spent(REQUESTED, RESPONSE)], "total": 1}},
        ONE_TURN,
    ),
    Variation(
        "neither messages nor a request", {"x.jsonl": lines(spent({}, {}))}, refused="x.jsonl"
    ),
)
