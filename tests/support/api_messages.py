"""Messages of OpenAI's APIs that logs of several programs contain."""

from typing import Any


def function_call(name: str = "f", arguments: Any = '{"x": "ls"}', call: str = "c1") -> dict:
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


CALL_RESULT = {"role": "tool", "tool_call_id": "c1", "content": "y"}

# an item in the output of the Responses API
RESPONSE_MESSAGE = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "A.", "annotations": []}],
}
