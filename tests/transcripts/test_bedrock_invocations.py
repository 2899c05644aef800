"""Logs of Amazon Bedrock's invocations, in variations."""

from log_variations import ONE_TURN, Variation, lines, variations

LS_ARGUMENTS = {"command": "ls"}

USE = {"toolUse": {"toolUseId": "t1", "name": "bash", "input": LS_ARGUMENTS}}
USED = {"toolResult": {"toolUseId": "t1", "content": [{"text": "a.py"}]}}
HI = {"role": "user", "content": [{"text": "Hi"}]}
A = {"role": "assistant", "content": [{"text": "A."}]}
CONVERSED = {
    "system": [{"text": "Be brief."}],
    "messages": [
        HI,
        {"role": "assistant", "content": [USE]},
        {"role": "user", "content": [USED]},
        A,
    ],
}


def record(reason: str = "end_turn") -> dict:
    request = {"messages": [HI], "system": [{"text": "Be brief."}]}
    answer = {"output": {"message": A}, "stopReason": reason}
    bodies = {"input": {"inputBodyJson": request}, "output": {"outputBodyJson": answer}}
    return {"schemaType": "ModelInvocationLog", "operation": "Converse", **bodies}


test_calls_of_bedrock = variations(
    Variation(
        "messages of Converse",
        {"b.jsonl": lines(CONVERSED)},
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
        system="Be brief.",
    ),
    Variation(
        "a record of a call",
        {"b.jsonl": lines(record())},
        ONE_TURN,
        system="Be brief.",
        format="bedrock",
    ),
    Variation(
        "an answer that was cut", {"b.jsonl": lines(record("max_tokens"))}, ONE_TURN, is_cut=True
    ),
)
