"""Variations of traces and sessions of libraries, of archives, and of texts that are not UTF-8."""

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
from typing import Any

import pytest
from log_variations import ONE, TWO, Variation, lines, variations

from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.logs.context import Contexts

CHAT = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "A."}]}\n'

# Pydantic AI


def preq(*parts: dict, **fields: Any) -> dict:
    return {"parts": parts, "kind": "request", "instructions": None, **fields}


def pres(*parts: dict, **fields: Any) -> dict:
    return {"parts": parts, "kind": "response", "usage": {}, "model_name": "m", **fields}


def part(kind: str, content: Any, **fields: Any) -> dict:
    return {"part_kind": kind, "content": content, **fields}


def pcall(arguments: Any) -> dict:
    names = {"tool_name": "bash", "tool_call_id": "c1", "part_kind": "tool-call"}
    return {**names, "args": arguments}


HI_PART = part("user-prompt", "Hi")
A_PART = part("text", "A.")
RUN = [preq(part("system-prompt", "Be brief."), HI_PART), pres(A_PART)]
RESULT = part("tool-return", "a.py", tool_name="bash", tool_call_id="c1", outcome="success")
RETRY = part("retry-prompt", "Fix it.", tool_name="bash", tool_call_id="c1")
INVALID = part("retry-prompt", [{"type": "missing"}], tool_name="bash", tool_call_id="c1")
LS = {"command": "ls"}


def said(role: str, words: str, **fields: Any) -> dict:
    return {"role": role, "parts": [{"type": "text", "content": words}], **fields}


IN = [said("user", "Hi")]
OUT = [said("assistant", "A.", finish_reason="stop")]
IN_2 = [*IN, said("assistant", "A."), said("user", "More?")]
OUT_2 = [said("assistant", "B.")]
BRIEF = json.dumps([{"type": "text", "content": "Be brief."}])
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.system_instructions": BRIEF}
ALL = {"pydantic_ai.all_messages": json.dumps([*IN_2, *OUT_2])}

test_messages_of_pydantic_ai = variations(
    Variation("a list", {"m.json": RUN}, ONE, system="Be brief.", format="pydantic-ai"),
    Variation("a list in a line", {"m.jsonl": lines(RUN)}, ONE, system="Be brief."),
    Variation("a message per line", {"m.jsonl": lines(*RUN)}, ONE, system="Be brief."),
    Variation("two lists", {"m.jsonl": lines(RUN, [*RUN[:1], pres(part("text", "C."))])},
              [*ONE, [("Hi", "C.")]]),
    Variation("instructions", {"m.json": [preq(HI_PART, instructions="Be brief."), pres(A_PART),
        preq(part("user-prompt", "More?"), instructions="Be brief."), pres(part("text", "B."))]},
        TWO, system="Be brief."),
    Variation("a call and its result", {"m.json": [
        preq(HI_PART), pres(pcall('{"command": "ls"}')), preq(RESULT), pres(A_PART)]}, ONE,
        calls=["ls"], results=["a.py"]),
    Variation("arguments as an object", {"m.json": [
        preq(HI_PART), pres(A_PART, pcall(LS)), preq(RESULT)]}, ONE, calls=["ls"]),
    Variation("an answer of a tool that asks to try again", {"m.json": [
        preq(HI_PART), pres(pcall(LS)), preq(RETRY), pres(A_PART)]}, ONE, calls=["ls"]),
    Variation("a call with invalid arguments, which did not run", {"m.json": [
        preq(HI_PART), pres(pcall(LS)), preq(INVALID), pres(A_PART)]}, ONE, calls=[]),
    Variation("a call that was denied", {"m.json": [preq(HI_PART), pres(pcall(LS)),
        preq({**RESULT, "outcome": "denied"}), pres(A_PART)]}, ONE, calls=[]),
    Variation("thinking", {"m.json": [preq(HI_PART), pres(part("thinking", "hm."), A_PART)]}, ONE),
    Variation("an image", {"m.json": [preq(part("user-prompt", [
        "Hi", {"url": "https://x/a.png", "kind": "image-url"}])), pres(A_PART)]}, ONE,
        problem="left out 1 part of messages that are not read (1 of the type 'image-url')"),
    Variation("an image that a tool returned", {"m.json": [preq(HI_PART), pres(pcall(LS)), preq(
        {**RESULT, "content": ["a.py", {"url": "x", "kind": "image-url"}]}), pres(A_PART)]}, ONE,
        results=["a.py"], problem="1 of the type 'image-url'"),
    Variation("a part of an unknown kind", {"m.json": [preq(HI_PART, part("hologram", "Buy.")),
        pres(A_PART)]}, ONE, problem="1 of the type 'hologram'"),
    Variation("parts that are not in the dialog", {"m.json": [preq(HI_PART, {
        "part_kind": "tool-availability-delta", "tools_added": ["bash"]}), pres(A_PART)]}, ONE),
    Variation("words that were spoken", {"m.json": [
        preq({"part_kind": "speech", "speaker": "user", "transcript": "Hi"}),
        pres({"part_kind": "speech", "speaker": "assistant", "transcript": "A."})]}, ONE),
    Variation("a compaction whose text the provider keeps", {"m.json": [preq(HI_PART), pres(
        part("compaction", None), A_PART)]}, ONE, problem="1 of the type 'compaction'"),
    Variation("a prompt in parts", {"m.json": [preq(part("user-prompt", [
        {"content": "Hi", "kind": "text-content"}])), pres(A_PART)]}, ONE),
    Variation("an answer that was cut", {"m.json": [
        preq(HI_PART), pres(A_PART, finish_reason="length")]}, ONE, is_cut=True),
    Variation("a message of the program", {"m.json": [preq(HI_PART), pres(A_PART), preq(
        part("retry-prompt", "Call a tool.")), pres(part("text", "B."))]}, [[("Hi", "A.\n\nB.")]],
        seen=["Call a tool."]),
    Variation("the span of a run", {"s.jsonl": lines({
        "trace_id": "t", "span_id": "s", "name": "agent run", "attributes": {**AGENT, **ALL}})},
        TWO, system="Be brief."),
)  # fmt: skip

# Google's Agent Development Kit


def event(author: str, *parts: dict, **fields: Any) -> dict:
    role = "user" if author == "user" else "model"
    content = {"parts": parts, "role": role}
    fields_of_event = {"invocationId": "e1", "author": author, "content": content, "id": "x"}
    return {**fields_of_event, "actions": {"stateDelta": {}}, "timestamp": 1.0, **fields}


def session(*events: dict) -> dict:
    return {"id": "s1", "appName": "shop", "userId": "u", "state": {}, "events": events}


def in_snake_case(value: Any) -> Any:
    if isinstance(value, dict):
        names = {name: re.sub("[A-Z]", lambda c: f"_{c[0].lower()}", name) for name in value}
        return {names[name]: in_snake_case(entry) for name, entry in value.items()}
    return [*map(in_snake_case, value)] if isinstance(value, (list, tuple)) else value


ASKED = event("user", {"text": "Hi"})
ANSWERED = event("shop", {"text": "A."})
CALLED = event("shop", {"functionCall": {"id": "c1", "name": "bash", "args": LS}})
RETURNED = event("shop", {"functionResponse": {
    "id": "c1", "name": "bash", "response": {"result": "a.py"}}})  # fmt: skip
SUMMARY = {"startTimestamp": 1.0, "endTimestamp": 2.0,
           "compactedContent": {"role": "model", "parts": [{"text": "So far."}]}}  # fmt: skip
REWOUND = event("user", content=None, invocationId="e3",
                actions={"rewindBeforeInvocationId": "e2"})  # fmt: skip


def later(author: str, words: str) -> dict:
    return event(author, {"text": words}, invocationId="e2")


def more(author: str, words: str) -> dict:
    return event(author, {"text": words}, invocationId="e4")


INVOCATION = {"user_content": {"parts": [{"text": "Hi"}]},
              "final_response": {"parts": [{"text": "A."}]},
              "intermediate_data": {"tool_uses": [{"name": "bash", "args": LS}]}}  # fmt: skip

test_sessions_of_google_adk = variations(
    Variation("a session", {"s.json": session(ASKED, ANSWERED)}, ONE, format="google-adk"),
    Variation("names in snake case", {"s.json": in_snake_case(session(
        ASKED, CALLED, RETURNED, ANSWERED))}, ONE, calls=["ls"], results=["a.py"]),
    Variation("a call", {"s.json": session(ASKED, CALLED, RETURNED, ANSWERED)}, ONE, calls=["ls"]),
    Variation("parts of a reply that streams", {"s.json": session(
        ASKED, event("shop", {"text": "A"}, partial=True), ANSWERED)}, ONE),
    Variation("thoughts", {"s.json": session(ASKED, event(
        "shop", {"text": "hm.", "thought": True}, {"text": "A."}))}, ONE),
    Variation("an image", {"s.json": session(event("user", {"text": "Hi"}, {"inlineData": {
        "mimeType": "image/png", "data": ""}}), ANSWERED)}, ONE,
        problem="1 of the type 'inlineData'"),
    Variation("words that were spoken", {"s.json": session(
        {**ASKED, "content": None, "inputTranscription": {"text": "Hi", "finished": True}},
        {**ANSWERED, "content": None, "outputTranscription": {"text": "A.", "finished": True}})},
        ONE),
    Variation("a rewind", {"s.json": session(ASKED, ANSWERED, later("user", "Bye"),
        later("shop", "C."), REWOUND, more("user", "More?"), more("shop", "B."))}, TWO,
        problem="rewound to before the invocation 'e2', so what followed it is left out"),
    Variation("a rewind to an invocation that is not there", {"s.json": session(
        REWOUND, ASKED, ANSWERED)}, ONE),
    Variation("two agents", {"s.json": session(ASKED, event("shop", {"functionCall": {
        "name": "transfer_to_agent", "args": {"agent_name": "b"}}}), event("b", {"text": "A."}))},
        ONE, calls=["b"]),
    Variation("an event without a content", {"s.json": session(ASKED, {
        "invocationId": "e", "author": "shop", "actions": {}, "id": "y"}, ANSWERED)}, ONE),
    Variation("two turns", {"s.json": session(ASKED, ANSWERED, event("user", {"text": "More?"}),
        event("shop", {"text": "B."}))}, TWO),
    Variation("a list of events", {"s.json": [ASKED, ANSWERED]}, ONE),
    Variation("an event per line", {"s.jsonl": lines(ASKED, ANSWERED)}, ONE),
    Variation("two sessions", {"s.jsonl": lines(session(ASKED, ANSWERED), session(
        ASKED, event("shop", {"text": "C."})))}, [*ONE, [("Hi", "C.")]]),
    Variation("an evaluation set", {"e.json": {"eval_set_id": "x", "eval_cases": [
        {"eval_id": "a", "conversation": [INVOCATION]}]}}, ONE, calls=["ls"]),
    Variation("an error", {"s.json": session(ASKED, event("shop", errorMessage="Too many requests"),
        ANSWERED)}, ONE),
    Variation("a compaction", {"s.json": session(ASKED, ANSWERED, event(
        "shop", actions={"compaction": SUMMARY}), event("user", {"text": "More?"}), event(
        "shop", {"text": "B."}))}, TWO),
)  # fmt: skip


def test_a_summary_of_google_adk_replaces_the_events_of_its_time_only(tmp_path):
    def at(time: float, author: str, words: str) -> dict:
        return event(author, {"text": words}, timestamp=time, id=f"x{time}")

    early, late = at(1.0, "user", "Use pnpm."), at(3.0, "user", "Never push.")
    summary = {"startTimestamp": 1.0, "endTimestamp": 2.0, "compactedContent": {"parts": [
        {"text": "So far."}]}}  # fmt: skip
    compacted = event("shop", actions={"compaction": summary}, content=None, id="k", timestamp=5.0)
    path = tmp_path / "s.json"
    path.write_text(json.dumps(session(early, at(2.0, "shop", "A."), late, at(4.0, "shop", "B."),
                                       compacted, at(6.0, "user", "More?"),
                                       at(7.0, "shop", "C."))))  # fmt: skip
    (dialog,) = read_logs(path).dialogs
    context = Contexts(dialog.transcript.path).before(len(dialog.transcript.path) - 1)
    assert [event.text for event in context.events] == ["Never push.", "B.", "So far.", "More?"]


def test_instructions_of_pydantic_ai_replace_those_before_them(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps([preq(HI_PART, instructions="Be brief."), pres(A_PART),
                                preq(HI_PART, instructions="Be kind."), pres(A_PART)]))  # fmt: skip
    (dialog,) = read_logs(path).dialogs
    context = Contexts(dialog.transcript.path).before(len(dialog.transcript.path) - 1)
    prompts = [event.text for event in context.events if event.is_prompt]
    assert prompts == ["Be kind."]


# LangGraph


def lang(kind: str, words: Any, **fields: Any) -> dict:
    return {"type": kind, "content": words, "additional_kwargs": {}, "id": words, **fields}


def state(*messages: dict, step: int = 1, **fields: Any) -> dict:
    thread = {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": f"k{step}"}
    return {"values": {"messages": messages}, "next": [], "tasks": [], "metadata": {"step": step},
            "checkpoint": thread, "created_at": f"2026-10-01T10:00:0{step}Z", **fields}  # fmt: skip


L_BRIEF, L_HI, L_A = lang("system", "Be brief."), lang("human", "Hi"), lang("ai", "A.")
L_MORE, L_B = lang("human", "More?"), lang("ai", "B.")
SNAPSHOT = {**state(L_HI, L_A), "config": {"configurable": {"thread_id": "t1"}}}
del SNAPSHOT["checkpoint"]
WITHIN = {"name": "worker", "state": state(L_HI, L_A)}

test_states_of_langgraph = variations(
    Variation("a state", {"s.json": state(L_BRIEF, L_HI, L_A)}, ONE, system="Be brief.",
              format="langgraph"),
    Variation("a history, the latest first", {"s.json": [
        state(L_HI, L_A, L_MORE, L_B, step=4), state(L_HI, L_A, L_MORE, step=3),
        state(L_HI, L_A, step=2), state(L_HI, step=1), state(step=0)]}, TWO),
    Variation("a state per line", {"s.jsonl": lines(
        state(L_HI, L_A), state(L_HI, L_A, L_MORE, L_B, step=2))}, TWO),
    Variation("a thread", {"t.json": {"thread_id": "t1", "status": "idle", "values": {
        "messages": [L_HI, L_A]}}}, ONE),
    Variation("a snapshot", {"s.json": SNAPSHOT}, ONE, format="langgraph"),
    Variation("messages as the values", {"s.json": {**state(), "values": [L_HI, L_A]}}, ONE),
    Variation("serialised objects", {"s.json": state(*(
        {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", name],
         "kwargs": {"content": words}} for name, words in (
            ("HumanMessage", "Hi"), ("AIMessage", "A."))))}, ONE),
    Variation("two threads", {"s.jsonl": lines(state(L_HI, L_A), state(
        L_HI, lang("ai", "C."), checkpoint={"thread_id": "t2"}))}, [*ONE, [("Hi", "C.")]]),
    Variation("a subgraph", {"s.json": state(L_HI, L_A, tasks=[WITHIN])}, ONE,
              problem="left out the messages of the subgraph 'worker'"),
    Variation("no messages", {"s.json": {**state(), "values": {"total": 1}}},
              refused="its only value is not a state with messages"),
    Variation("messages of a graph alone", {"s.json": {"messages": [L_HI, L_A],
              "remaining_steps": 24}}, ONE, format="openai"),
)  # fmt: skip

# lists under other names

CHAT_VALUE = json.loads(CHAT)
LMSYS = {"conversation_id": "x", "conversation": CHAT_VALUE["messages"], "turn": 1}

test_lists_under_other_names = variations(
    Variation("the field conversation", {"a.jsonl": lines(LMSYS)}, ONE, format="openai"),
    Variation("a prompt beside it", {"a.jsonl": lines({**LMSYS, "system": "Be brief."})}, ONE,
              system="Be brief."),
    Variation("dialogs", {"a.json": {"dialogs": [CHAT_VALUE, CHAT_VALUE]}}, [*ONE, *ONE]),
    Variation("dialogs in a line", {"a.jsonl": lines({"name": "x", "chats": [CHAT_VALUE]})}, ONE),
    Variation("conversations of messages", {"a.json": {"conversations": [CHAT_VALUE]}}, ONE,
              format="openai"),
    Variation("conversations that are lists", {"a.json": {
        "conversations": [CHAT_VALUE["messages"]]}}, ONE, format="openai"),
    Variation("two lists", {"a.json": {"train": [CHAT_VALUE], "test": [CHAT_VALUE]}},
              [*ONE, *ONE]),
    Variation("an entry in no format", {"a.json": {"dialogs": [CHAT_VALUE, {"x": 1}]}}, ONE,
              problem="entry 1, dialogs 2: {'x': 1} is in no known format"),
    Variation("a list of something else", {"a.json": {"items": [{"x": 1}]}},
              refused="is in no known format"),
)  # fmt: skip

# Jaeger


def tags(**values: Any) -> list[dict]:
    return [
        {"key": name.replace("__", "."), "type": "string", "value": value}
        for name, value in values.items()
    ]


def span(number: int = 1, logs: Any = (), **values: Any) -> dict:
    ids = {"traceID": "t1", "spanID": f"s{number}", "operationName": "chat m", "references": []}
    return {**ids, "startTime": number, "duration": 5, "tags": tags(**values), "logs": logs}


def trace(*spans: dict) -> dict:
    return {"data": [{"traceID": "t1", "spans": spans, "processes": {}, "warnings": None}],
            "total": 0, "errors": None}  # fmt: skip


def chat(inputs: Any = IN, outputs: Any = OUT, **fields: Any) -> dict:
    messages = {"gen_ai__input__messages": json.dumps(inputs),
                "gen_ai__output__messages": json.dumps(outputs)}  # fmt: skip
    return {"gen_ai__operation__name": "chat", **messages, **fields}


INFERENCE = {"openinference__span__kind": "LLM",
             "llm__input_messages__0__message__role": "user",
             "llm__input_messages__0__message__content": "Hi",
             "llm__output_messages__0__message__role": "assistant",
             "llm__output_messages__0__message__content": "A."}  # fmt: skip
CHOICE = json.dumps({"role": "assistant", "content": "A."})
LOGS = [{"timestamp": 2, "fields": tags(event="gen_ai.user.message", content="Hi")},
        {"timestamp": 3, "fields": tags(event="gen_ai.choice", message=CHOICE)}]  # fmt: skip

OTLP = {"scopeSpans": [{"spans": [{"traceId": "t1", "spanId": "s1", "attributes": [
    {"key": entry["key"], "value": {"stringValue": entry["value"]}}
    for entry in tags(**chat())]}]}]}  # fmt: skip

test_traces_of_jaeger = variations(
    Variation("a trace", {"j.json": trace(span(**chat(gen_ai__system_instructions=BRIEF)))}, ONE,
              system="Be brief.", format="jaeger"),
    Variation("a trace alone", {"j.json": trace(span(**chat()))["data"][0]}, ONE),
    Variation("other spans beside it", {"j.json": trace(
        span(2, http__method="GET"), span(**chat()))}, ONE),
    Variation("two calls", {"j.json": trace(span(9, **chat(IN_2, OUT_2)), span(**chat()))}, TWO),
    Variation("OpenInference", {"j.json": trace(span(**INFERENCE))}, ONE),
    Variation("events", {"j.json": trace(span(logs=LOGS, gen_ai__operation__name="chat"))}, ONE),
    Variation("the API of version 3", {"j.json": {"result": {"resourceSpans": [OTLP]}}}, ONE,
              format="otlp"),
    Variation("Grafana Tempo's API", {"j.json": {"batches": [OTLP]}}, ONE, format="otlp"),
    Variation("version 2 of Tempo's API", {"j.json": {"trace": {"resourceSpans": [OTLP]}}}, ONE,
              format="otlp"),
    Variation("no call of a model", {"j.json": trace(span(http__method="GET"))},
              refused="not an OTLP batch with a model call"),
)  # fmt: skip

# Amazon Bedrock

USE = {"toolUse": {"toolUseId": "t1", "name": "bash", "input": LS}}
USED = {"toolResult": {"toolUseId": "t1", "content": [{"text": "a.py"}]}}
ASKED_BEDROCK = {"role": "user", "content": [{"text": "Hi"}]}
ANSWER_BEDROCK = {"role": "assistant", "content": [{"text": "A."}]}
CONVERSED = {"system": [{"text": "Be brief."}], "messages": [ASKED_BEDROCK,
    {"role": "assistant", "content": [USE]}, {"role": "user", "content": [USED]},
    ANSWER_BEDROCK]}  # fmt: skip


def record(reason: str = "end_turn") -> dict:
    request = {"messages": [ASKED_BEDROCK], "system": [{"text": "Be brief."}]}
    answer = {"output": {"message": ANSWER_BEDROCK}, "stopReason": reason}
    bodies = {"input": {"inputBodyJson": request}, "output": {"outputBodyJson": answer}}
    return {"schemaType": "ModelInvocationLog", "operation": "Converse", **bodies}


test_calls_of_bedrock = variations(
    Variation("messages of Converse", {"b.jsonl": lines(CONVERSED)}, ONE, calls=["ls"],
              results=["a.py"], system="Be brief."),
    Variation("a record of a call", {"b.jsonl": lines(record())}, ONE, system="Be brief.",
              format="bedrock"),
    Variation("an answer that was cut", {"b.jsonl": lines(record("max_tokens"))}, ONE, is_cut=True),
)  # fmt: skip

# archives and encodings


def tar(mode: str = "w", name: str = "logs/a.jsonl", content: bytes = CHAT.encode()) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    return zipped_files(**{name: content})


def zipped_files(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


CAFE = CHAT.replace("A.", "Café “x”.")
OF_CAFE = [[("Hi", "Café “x”.")]]
AIDER = "# aider chat started at 2026-05-01 10:00:00\n\n#### Hi  \n\nCafé “x”.\n"

test_archives_and_encodings = variations(
    *(Variation(name, {name: tar(mode)}, ONE) for name, mode in (
        ("a.tar", "w"), ("a.tar.gz", "w:gz"), ("a.tgz", "w:gz"), ("a.tar.bz2", "w:bz2"),
        ("a.tar.xz", "w:xz"))),
    Variation("a member that is compressed", {
        "a.tar": tar(name="a.jsonl.gz", content=gzip.compress(CHAT.encode()))}, ONE),
    Variation("another kind of log beside it", {"a.zip": zipped_files(**{
        "a.jsonl": CHAT.encode(), "state.vscdb": b"x", "notes.txt": b"x"})}, ONE,
        problem="state.vscdb is not read within an archive; unpack it first"),
    Variation("a member of a zip that is compressed", {
        "a.zip": zipped("a.jsonl.bz2", bz2.compress(CHAT.encode()))}, ONE),
    Variation("an archive that was cut", {"a.tar.gz": tar("w:gz", content=CHAT.encode() * 9)[:-40]},
              refused="cannot be unpacked"),
    Variation("an archive without logs", {"a.tar": tar(name="a.txt")},
              refused="holds no file that ends in"),
    Variation("bzip2", {"a.jsonl.bz2": bz2.compress(CHAT.encode())}, ONE),
    Variation("xz", {"a.json.xz": lzma.compress(CHAT.encode())}, ONE),
    Variation("bzip2 that was cut", {"a.jsonl.bz2": bz2.compress(CHAT.encode())[:-9]},
              refused="cannot be unpacked"),
    Variation("lines in Windows-1252", {"a.jsonl": CAFE.encode("cp1252")}, OF_CAFE,
              problem="line 1: it is not UTF-8, and was read as Windows-1252"),
    Variation("a document in Windows-1252", {"a.json": CAFE.encode("cp1252")}, OF_CAFE,
              problem="is not UTF-8, and was read as Windows-1252"),
    Variation("one line in Windows-1252", {"a.jsonl": CHAT.encode() + CAFE.encode("cp1252")},
              [*ONE, *OF_CAFE], problem="line 2: it is not UTF-8, and was read as Windows-1252"),
    Variation("Markdown in Windows-1252", {".aider.chat.history.md": AIDER.encode("cp1252")},
              OF_CAFE, problem="is not UTF-8, and was read as Windows-1252"),
    Variation("UTF-8 with a byte that is none", {"a.jsonl": CHAT.encode() + CAFE.encode().replace(
        b"x", b"\xff")}, ONE, problem="line 2: it is not UTF-8 text"),
)  # fmt: skip


def packed(name: str, content: bytes) -> bytes:
    """An archive of tar with a file."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as file:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        file.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def limit_unpacked_bytes(monkeypatch) -> None:
    """Lets no text have more than 1 MiB when it is unpacked."""
    for module in ("holdfast.files", "holdfast.transcripts.archives"):
        monkeypatch.setattr(f"{module}.MAX_UNPACKED_BYTES", 1 << 20)


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"hello" * 300, "cannot be unpacked (file could not be opened successfully); give it"),
        (packed("a.jsonl.bz2", b"hello"), "cannot be unpacked (Invalid data stream); give it"),
        (packed("a.jsonl.bz2", bz2.compress(CHAT.encode())[:-5]), "cannot be unpacked (Compressed"),
        (packed("a.jsonl.gz", b"hello"), "cannot be unpacked (Not a gzipped file"),
        (packed("a.jsonl.xz", b"hello"), "cannot be unpacked ("),
        (packed("a.jsonl.gz", gzip.compress(b" " * (2 << 20))), "has more than 1 MiB when it is"),
        (packed("a.jsonl", b" " * (2 << 20)), "has more than 1 MiB when it is unpacked; unpack"),
    ],
)
def test_an_archive_that_is_damaged_or_too_large_is_refused(
    content, refusal, tmp_path, monkeypatch
):
    limit_unpacked_bytes(monkeypatch)
    path = tmp_path / "logs.tar"
    path.write_bytes(content)
    with pytest.raises(UsageError) as excinfo:
        read_logs(path)
    assert refusal in str(excinfo.value)


def zstandard_of(content: bytes) -> bytes:
    return pytest.importorskip("zstandard").compress(content)


COMPRESSORS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard_of}


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_a_compressed_file_or_line_that_would_fill_the_memory_is_refused(
    name, suffix, tmp_path, monkeypatch
):
    limit_unpacked_bytes(monkeypatch)
    path = tmp_path / f"{name}.{suffix}"
    path.write_bytes(COMPRESSORS[suffix](b" " * (2 << 20)))
    with pytest.raises(UsageError, match="has more than 1 MiB when it is unpacked"):
        read_logs(path)


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
def test_a_large_compressed_file_of_small_lines_is_read(suffix, tmp_path, monkeypatch):
    limit_unpacked_bytes(monkeypatch)
    path = tmp_path / f"a.jsonl.{suffix}"
    chat = CHAT.replace("A.", "A. " + "x" * (1 << 17))
    path.write_bytes(COMPRESSORS[suffix](chat.encode() * 10))
    assert len(read_logs(path).dialogs) == 10
