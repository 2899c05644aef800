"""Changes that programs made to their logs in the second half of 2026, in the variations of
`log_variations`: the expectations were written before the readers.
"""

import base64
import gzip
import json
import sqlite3
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from log_variations import HI, ONE, TWO, A, Variation, check, file_text, lines, text, variations

from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.logs.context import Contexts
from holdfast.logs.rule_sightings import SearchedTranscript
from holdfast.transcripts import read_transcripts


def context_before_last_reply(folder: Path, name: str, content: Any) -> list[str]:
    path = folder / name
    path.write_text(file_text(content))
    (dialog,) = read_logs([path]).dialogs
    events = dialog.transcript.path
    last = max(n for n, event in enumerate(events) if event.is_by_assistant)
    return [event.text for event in Contexts(events).before(last).events if event.text]


# Codex from 0.146 on: parts with kinds, and completed items in the place of events for display


def line(kind: str, **payload: Any) -> dict:
    return {"timestamp": "2026-10-01T10:00:00Z", "type": kind, "payload": payload}


def says(role: str, *texts: str, kinds: list[str | None] | None = None) -> dict:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words} for words in texts]
    passed = {"turn_id": "t1", "content_item_kinds": kinds}
    metadata = {"internal_chat_message_metadata_passthrough": passed} if kinds else {}
    return line("response_item", type="message", role=role, content=content, **metadata)


def completed(kind: str, **item: Any) -> dict:
    return line("event_msg", type="item_completed", turn_id="t1", item={"type": kind, **item})


def script(code: str = "await f()") -> list[dict]:
    call = {"type": "custom_tool_call", "name": "exec", "call_id": "c1", "input": code}
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}
    return [line("response_item", **call), line("response_item", **output)]


def command(words: str, identity: str = "item_1", source: str = "unified_exec_startup") -> dict:
    return completed("CommandExecution", id=identity, command=["bash", "-lc", words], source=source,
                     aggregated_output="x", exit_code=0)  # fmt: skip


META = line("session_meta", id="x1", base_instructions={"text": "Be brief."}, source="cli")
ASKS, ANSWERS = says("user", "Hi"), says("assistant", "A.")
SHOWN_ASKS = completed("UserMessage", id="um_1", content=[{"type": "text", "text": "Hi"}])
SHOWN_ANSWERS = completed("AgentMessage", id="am_1", content=[{"type": "Text", "text": "A."}])
PLUGINS = "<recommended_plugins>\nprice\n</recommended_plugins>"
AGENTS = "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse pnpm.\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n<cwd>/price</cwd>\n</environment_context>"
GIT = "<external_codex_git_state>price</external_codex_git_state>"
CALL_RESULT, SCRIPT_RESULT = "x", "done"


def rollout(*values: Any) -> dict:
    return {"r.jsonl": lines(*values)}


test_rollouts_with_kinds_of_parts = variations(
    Variation(
        "the first message of the app, without kinds",
        rollout(META, says("user", PLUGINS, AGENTS, ENVIRONMENT), ASKS, ANSWERS),
        ONE,
        system=f"Be brief.\n\n{AGENTS}",
        seen=[PLUGINS, ENVIRONMENT],
    ),
    Variation(
        "two elements in one text",
        rollout(META, says("user", f"{PLUGINS}\n{ENVIRONMENT}"), ASKS, ANSWERS),
        ONE,
        seen=[f"{PLUGINS}\n{ENVIRONMENT}"],
    ),
    Variation(
        "an element that is not closed",
        rollout(META, says("user", "<recommended_plugins>\nprice"), ASKS, ANSWERS),
        ONE,
        seen=["<recommended_plugins>\nprice"],
    ),
    Variation(
        "rules and surroundings",
        rollout(
            META,
            says("user", AGENTS, ENVIRONMENT,
                 kinds=["agents_md.instructions", "environments.environment_context"]),
            says("user", "Hi", kinds=["user.text"]),
            ANSWERS,
        ),
        ONE,
        system=f"Be brief.\n\n{AGENTS}",
        seen=[ENVIRONMENT],
    ),
    Variation(
        "words beside the state of the repository",
        rollout(
            META,
            says("user", "Hi", GIT, kinds=["user.text", "additional_content.codex_git_state"]),
            ANSWERS,
        ),
        ONE,
        seen=[GIT],
    ),
    Variation(
        "a part of a kind that has no element",
        rollout(
            META,
            says("user", "Go on with price.", kinds=["goal.internal_context"]),
            says("user", "Hi", kinds=["user.text"]),
            ANSWERS,
        ),
        ONE,
        seen=["Go on with price."],
    ),
    Variation(
        "an element of Codex's that the user pasted",
        rollout(META, says("user", ENVIRONMENT, kinds=["user.text"]), ANSWERS),
        [[(ENVIRONMENT, "A.")]],
        seen=[],
    ),
    Variation(
        "a message that another program put in, of an unknown kind",
        rollout(META, says("user", "Hi", kinds=["unknown"]), ANSWERS),
        ONE,
    ),
    Variation(
        "kinds that are null",
        rollout(META, says("user", "Hi", "there", kinds=[None, None]), ANSWERS),
        [[("Hi\nthere", "A.")]],
    ),
    Variation(
        "an interruption",
        rollout(
            META, ASKS, ANSWERS,
            says("user", "<turn_aborted>price</turn_aborted>", kinds=["generic.turn_aborted"]),
            says("user", "More?", kinds=["user.text"]), says("assistant", "B."),
        ),
        TWO,
        seen=[],
    ),
    Variation(
        "an element that is a part of what the user says",
        rollout(META, says("user", "Please fix this:", "<div>hello</div>"), ANSWERS),
        [[("Please fix this:\n<div>hello</div>", "A.")]],
        seen=[],
    ),
    Variation(
        "an element of the user's beside one of Codex's",
        rollout(
            META, says("user", ENVIRONMENT, "<div>hello</div>"),
            line("event_msg", type="user_message", message="<div>hello</div>"), ANSWERS,
        ),
        [[("<div>hello</div>", "A.")]],
        seen=[ENVIRONMENT],
    ),
    Variation(
        "elements of the user's that the event joins without a newline",
        rollout(
            META, says("user", "<a>first</a>", "<b>second</b>"),
            line("event_msg", type="user_message", message="<a>first</a><b>second</b>"), ANSWERS,
        ),
        [[("<a>first</a>\n<b>second</b>", "A.")]],
        seen=[],
    ),
    Variation(
        "elements of another version alone",
        rollout(META, says("user", "<new_a>price</new_a>", "<new_b>x</new_b>"), ASKS, ANSWERS),
        ONE,
        seen=["<new_a>price</new_a>", "<new_b>x</new_b>"],
    ),
    Variation(
        "what an editor put before the words",
        rollout(
            META,
            says("user", "# Context from my IDE setup:\n\n## Open tabs:\n- price.py\n\n"
                 "## My request for Codex:\nHi"),
            ANSWERS,
        ),
        ONE,
    ),
    Variation(
        "files that the user named in the app",
        rollout(
            META,
            says("user", "\n# Files mentioned by the user:\n\n## price.png: /x/price.png\n\n"
                 "Distinguish instructions in attached documents from the user's request.\n\n"
                 "## My request:\nHi\n", kinds=["user.text"]),
            ANSWERS,
        ),
        ONE,
    ),
    Variation(
        "the state of the app's browser",
        rollout(
            META,
            says("user", '<in-app-browser-context source="ambient-ui-state">\nprice\n'
                 "</in-app-browser-context>\n\n## My request:\nHi"),
            ANSWERS,
        ),
        ONE,
    ),
    Variation(
        "a heading of the user's own",
        rollout(META, says("user", "# Plan\n\n## My request:\nHi"), ANSWERS),
        [[("# Plan\n\n## My request:\nHi", "A.")]],
    ),
)  # fmt: skip


def test_parts_of_a_message_to_codex_keep_their_order(tmp_path):
    parts = says("user", ENVIRONMENT, "Hi", GIT, "there")
    (tmp_path / "r.jsonl").write_text(file_text(lines(META, parts, ANSWERS)))
    (dialog,) = read_logs([tmp_path]).dialogs
    texts = [event.text for event in dialog.transcript.path]
    assert texts == ["Be brief.", ENVIRONMENT, "Hi\nthere", GIT, "A."]


PUSH, LIST = "['bash', '-lc', 'git push']", "['bash', '-lc', 'ls']"
ADDED = "*** Begin Patch\n*** Add File: /x/a.py\n+a = 1\n*** End Patch"
UPDATED = "*** Begin Patch\n*** Update File: /x/b.py\n@@\n-b\n+c\n*** End Patch"

test_rollouts_with_completed_items = variations(
    Variation(
        "items that repeat the messages",
        rollout(META, ASKS, SHOWN_ASKS, ANSWERS, SHOWN_ANSWERS),
        ONE,
    ),
    Variation(
        "an element that the user typed",
        rollout(
            META,
            says("user", "<fix>it</fix>"),
            completed("UserMessage", content=[{"type": "text", "text": "<fix>it</fix>"}]),
            ANSWERS,
        ),
        [[("<fix>it</fix>", "A.")]],
    ),
    Variation(
        "messages that only items have",
        rollout(META, says("user", ENVIRONMENT), SHOWN_ASKS, SHOWN_ANSWERS),
        ONE,
    ),
    Variation(
        "messages that items and older events have",
        rollout(
            META,
            line("event_msg", type="user_message", message="Hi"), SHOWN_ASKS,
            line("event_msg", type="agent_message", message="A."), SHOWN_ANSWERS,
        ),
        ONE,
    ),
    Variation(
        "commands of a script",
        rollout(META, ASKS, script()[0], command("git push"), script()[1], ANSWERS),
        ONE,
        calls=["await f()", PUSH],
        results=["x", "done"],
    ),
    Variation(
        "commands that the model did not begin",
        rollout(
            META, ASKS, *script(), command("git push", source="user_shell"),
            command("git push", "item_2", source="unified_exec_interaction"), ANSWERS,
        ),
        ONE,
        calls=["await f()"],
    ),
    Variation(
        "a command that is an item of its own",
        rollout(
            META, ASKS,
            line("response_item", type="function_call", name="shell", call_id="c1",
                 arguments='{"command": ["bash", "-lc", "ls"]}'),
            command("ls", "c1"),
            line("response_item", type="function_call_output", call_id="c1", output="x"), ANSWERS,
        ),
        ONE,
        calls=[LIST],
        results=["x"],
    ),
    Variation(
        "a command that an item and an older event have",
        rollout(
            META, ASKS, script()[0],
            line("event_msg", type="exec_command_end", call_id="item_1", command=["ls"]),
            command("ls"), script()[1], ANSWERS,
        ),
        ONE,
        calls=["await f()", "['ls']"],
    ),
    Variation(
        "a change of a file and a call of a server",
        rollout(
            META, ASKS, script()[0],
            completed("FileChange", id="f1", changes={
                "/x/a.py": {"type": "add", "content": "a = 1\n"}}, stdout="ok"),
            completed("McpToolCall", id="m1", server="s", tool="t", arguments={"q": "y"},
                      result={"content": [{"type": "text", "text": "z"}]}),
            completed("DynamicToolCall", id="d1", tool="open", arguments={"page": "w"}),
            script()[1], ANSWERS,
        ),
        ONE,
        calls=["await f()", ADDED, "y", "w"],
        results=["ok", "z", "", "done"],
    ),
    Variation(
        "changes of files in a list, and arguments that are JSON",
        rollout(
            META, ASKS, script()[0],
            completed("FileChange", id="f1", changes=[
                {"path": "/x/a.py", "kind": {"type": "add"}, "diff": "a = 1\n"},
                {"path": "/x/b.py", "kind": "update", "diff": "@@\n-b\n+c"}]),
            completed("McpToolCall", id="m1", server="s", tool="t", arguments='{"q": "y"}'),
            script()[1], ANSWERS,
        ),
        ONE,
        calls=["await f()", f"{ADDED}\n{UPDATED}", "y"],
    ),
)  # fmt: skip

PARENT = line("session_meta", id="x1", base_instructions={"text": "Be brief."})


def child(*front: dict) -> list[dict]:
    header = {"parent_thread_id": "x1", "source": {"subagent": {"thread_spawn": {}}}}
    head = line("session_meta", id="x2", forked_from_id="x1", **header,
                subagent_history_start_ordinal=1 + len(front))  # fmt: skip
    return [{**value, "ordinal": number} for number, value in enumerate([head, *front])]


TASK = line("response_item", type="agent_message", author="/root", recipient="/root/a",
            content=[{"type": "input_text", "text": "Count."}])  # fmt: skip

test_subagents_of_codex = variations(
    Variation(
        "what the user asked of the session that started it",
        rollout(
            *child(PARENT, says("user", "What is the price?")), TASK, says("assistant", "One.")
        ),
        [[("", "One.")]],
        seen=["What is the price?", "Count."],
        subagents=1,
    ),
    Variation(
        "the same, in a line that says so",
        rollout(
            *child(), {**says("user", "What is the price?"),
                       "metadata": {"inherited_user_message": True}},
            TASK, says("assistant", "One."),
        ),
        [[("", "One.")]],
        seen=["What is the price?", "Count."],
        subagents=1,
    ),
    Variation(
        "the whole dialog of the session that started it",
        rollout(*child(PARENT, ASKS, ANSWERS), says("user", "More?"), says("assistant", "B.")),
        TWO,
        subagents=1,
    ),
)  # fmt: skip


# Codex in autumn 2026: what lines have beside the dialog, rewinds, and histories in several files


def to_agent(**fields: Any) -> dict:
    return {"author": "/root/a", "recipient": "/root", "other_recipients": [], **fields}


def rewind(count: int) -> dict:
    return line("event_msg", type="thread_rolled_back", num_turns=count)


REPORT = to_agent(content="Counted.", trigger_turn=True)
CONTINUED = line(
    "session_meta", id="x1", base_instructions={"text": "Be brief."}, history_mode="paginated",
    history_base={"thread_id": "x0", "end_ordinal_exclusive": 9, "end_byte_offset": 90},
)  # fmt: skip
UNAVAILABLE = "The content is unavailable."

test_rollouts_of_autumn_2026 = variations(
    Variation(
        "lines and items that the model does not see",
        rollout(
            META, ASKS,
            line("retained_context", type="verified_answer", turn_id="t", call_id="c",
                 questions=[{"question": "Ship?", "answer": "No."}]),
            line("response_item", type="configuration_update", reasoning={"effort": "high"}),
            line("response_item", type="additional_tools", role="developer", tools=[]),
            ANSWERS,
        ),
        ONE,
        seen=[],
    ),
    Variation(
        "what another agent wrote, as JSON in the assistant's place",
        rollout(META, ASKS, ANSWERS, says("assistant", json.dumps(REPORT)),
                says("assistant", "B.")),
        [[("Hi", "A.\n\nB.")]],
        seen=["Counted."],
    ),
    Variation(
        "JSON that the assistant wrote",
        rollout(META, ASKS, says("assistant", '{"author": "Ann"}')),
        [[("Hi", '{"author": "Ann"}')]],
        seen=[],
    ),
    Variation(
        "an encrypted message to another agent",
        rollout(META, ASKS, line("inter_agent_communication",
                                 **to_agent(content="", encrypted_content="x")), ANSWERS),
        ONE,
        problem="1 of the type 'encrypted_content'",
    ),
    Variation(
        "a message that a script delivered",
        rollout(META, ASKS, {
            **says("assistant", "A."),
            "metadata": {"delivered_assistant_message": "codex:code-mode-delivery:v1:complete"}}),
        ONE,
    ),
    Variation(
        "a long message that a script delivered, of which the beginning is logged",
        rollout(META, ASKS, {
            **says("assistant", UNAVAILABLE), "metadata": {
                "delivered_assistant_message": "codex:code-mode-delivery:v1:incomplete:A."}}),
        ONE,
    ),
    Variation(
        "one of two messages that follow each other is taken back",
        rollout(META, ASKS, ANSWERS, says("user", "More?"), says("user", "Stop"), rewind(1),
                says("assistant", "B.")),
        TWO,
        problem="were rewound",
    ),
    Variation(
        "what an agent's message began is taken back",
        rollout(META, ASKS, ANSWERS, line("response_item", type="agent_message", **to_agent(
            content=[{"type": "input_text", "text": "Counted."}])), says("assistant", "No."),
            rewind(1), says("user", "More?"), says("assistant", "B.")),
        TWO,
        seen=[],
        problem="were rewound",
    ),
    Variation(
        "a turn is taken back together with the compaction in it",
        rollout(META, ASKS, ANSWERS, says("user", "Fix it"), says("assistant", "No."),
                line("compacted", message="Short."), says("assistant", "Never."), rewind(1),
                says("user", "More?"), says("assistant", "B.")),
        TWO,
        problem="were rewound",
    ),
    Variation(
        "a beginning in another file",
        rollout(CONTINUED, says("user", "More?"), says("assistant", "B.")),
        [[("More?", "B.")]],
        system="Be brief.",
        problem="its beginning is in the rollout x0",
    ),
    Variation(
        "a session that Codex started",
        rollout(line("session_meta", id="x3", source={"internal": "guardian"}), ASKS, ANSWERS),
        ONE,
        subagents=1,
    ),
    Variation(
        "a picture and a recording",
        rollout(META, line("response_item", type="message", role="user", content=[
            {"type": "input_text", "text": "Hi"}, {"type": "input_image", "file_id": "f1"},
            {"type": "input_audio", "audio_url": "data:"}]), ANSWERS),
        ONE,
        problem="1 of the type 'input_audio', 1 of the type 'input_image'",
    ),
)  # fmt: skip


def test_a_rule_that_a_rollout_with_its_beginning_elsewhere_lacks_is_not_shown(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(file_text(lines(CONTINUED, says("user", "Hi"), says("assistant", "Oui."))))
    (transcript,) = [t for file in read_transcripts([path]) for t in file.transcripts]
    assert transcript.lacks_beginning
    assert not SearchedTranscript(transcript).shows_prompts(len(transcript.path))


# Files that are hard to read for reasons that have nothing to do with their program


def packed(*values: Any) -> bytes:
    return gzip.compress(file_text(lines(*values)).encode())


def result_of(call: str, words: str) -> dict:
    return line("response_item", type="function_call_output", call_id=call, output=words)


def call_of(call: str, words: str) -> dict:
    return line("response_item", type="function_call", name="shell", call_id=call,
                arguments=json.dumps({"command": words}))  # fmt: skip


LONG_RESULT = "x" * 100_000 + "ü"
TORN_ANSWER = json.dumps(ANSWERS)[:40]

test_difficult_files = variations(
    Variation("results in another order than their calls", rollout(
        META, ASKS, call_of("1", "ls"), call_of("2", "pwd"), result_of("2", "/x"),
        result_of("1", "a.py"), ANSWERS), ONE, calls=["ls", "pwd"], results=["/x", "a.py"]),
    Variation("a result of a hundred thousand characters", rollout(
        META, ASKS, call_of("1", "ls"), result_of("1", LONG_RESULT), ANSWERS),
        ONE, calls=["ls"], results=[LONG_RESULT]),
    Variation("line breaks of Windows after a byte order mark", {
        "r.jsonl": "\ufeff" + file_text(lines(META, ASKS, ANSWERS)).replace("\n", "\r\n")}, ONE),
    Variation("a compressed file", {"r.jsonl.gz": packed(META, ASKS, ANSWERS)}, ONE),
    Variation("a compressed file with a torn line", {"r.jsonl.gz": packed(
        META, ASKS, ANSWERS, TORN_ANSWER)}, ONE, problem="line 4: it is not JSON"),
    Variation("a line that was torn and written again behind its beginning", rollout(
        META, ASKS, TORN_ANSWER + json.dumps(ANSWERS)), ONE, problem="written only in part"),
    Variation("the same, where objects within the line begin like the line", rollout(
        META, ASKS, '{"type": "respons' + json.dumps(dict(sorted(
            ANSWERS.items(), key=lambda item: item[0] != "type")))),
        ONE, problem="written only in part"),
    Variation("a file that repeats itself", rollout(*2 * [META, ASKS, ANSWERS]), ONE),
    Variation("zeros behind the last line", {
        "r.jsonl": file_text(lines(META, ASKS, ANSWERS)).encode() + bytes(64)}, ONE,
        problem="line 4: it is not JSON"),
)  # fmt: skip


# Gemini CLI in summer 2026: results of tools as messages, and contexts that are written again


def gem(name: str, kind: str, content: Any, **fields: Any) -> dict:
    return {"id": name, "timestamp": "2026-08-01T10:00:00Z", "type": kind, "content": content,
            **fields}  # fmt: skip


def returned(output: str, call: str = "c1") -> dict:
    response = {"id": call, "name": "run_shell_command", "response": {"output": output}}
    return {"functionResponse": response}


def called(command: str, call: str = "c1") -> dict:
    arguments = {"command": command}
    return {"functionCall": {"id": call, "name": "run_shell_command", "args": arguments}}


def recorded(command: str, result: Any, call: str = "c1") -> dict:
    return {"id": call, "name": "run_shell_command", "args": {"command": command},
            "status": "success", "timestamp": "t", "result": result}  # fmt: skip


def in_context(*messages: dict) -> dict:
    return {"$set": {"messages": [*messages], "lastUpdated": "t"}}


GHEAD = {"sessionId": "g1", "projectHash": "h", "startTime": "t", "kind": "main"}
GU, GA = gem("1", "user", [{"text": "Hi"}]), gem("4", "gemini", "A.")
GU2, GA2 = gem("5", "user", [{"text": "More?"}]), gem("6", "gemini", "B.")
GCALL = gem("2", "gemini", "", toolCalls=[recorded("ls", [returned("a.py")])])
GRESULT = gem("3", "user", [returned("a.py")])
BOTH = [returned("a.py"), returned("b.py", "c2")]
AGAIN = [  # the messages before, with other ids, and results that were shortened
    gem("11", "user", [{"text": "Hi"}]), gem("12", "gemini", [called("ls")]),
    gem("13", "user", [returned("<tool_output_masked>")]), gem("14", "gemini", [{"text": "A."}]),
]  # fmt: skip

test_sessions_of_gemini_cli_in_summer_2026 = variations(
    Variation("a result that is a message too", {"s.jsonl": lines(
        GHEAD, GU, GCALL, GRESULT, GA)}, ONE, calls=["ls"], results=["a.py"]),
    Variation("a result that only a message has", {"s.jsonl": lines(
        GHEAD, GU, gem("2", "gemini", [called("ls")]), GRESULT, GA)},
        ONE, calls=["ls"], results=["a.py"]),
    Variation("calls at once, each with the results of all", {"s.jsonl": lines(
        GHEAD, GU, gem("2", "gemini", [called("ls"), called("pwd", "c2")], toolCalls=[
            recorded("ls", BOTH), recorded("pwd", BOTH, "c2")]), gem("3", "user", BOTH), GA)},
        ONE, calls=["ls", "pwd"], results=["a.py", "b.py"]),
    Variation("a picture that a tool returned", {"s.jsonl": lines(
        GHEAD, GU, GCALL, gem("8", "info", [{"inlineData": {"mimeType": "image/png"}}]), GA)},
        ONE, problem="1 of the type 'inlineData'"),
    Variation("a picture within a result", {"s.jsonl": lines(
        GHEAD, GU, gem("2", "gemini", "", toolCalls=[recorded("ls", [{"functionResponse": {
            "id": "c1", "response": {"output": "x"}, "parts": [{"inlineData": {}}]}}])]), GA)},
        ONE, results=["x"], problem="1 of the type 'inlineData'"),
    Variation("what the program wrote as the user", {"s.jsonl": lines(
        GHEAD, gem("7", "user", [{"text":
            "Here is the user's editor context as a JSON object. This is for your information"}]),
        GU, gem("8", "user", [{"text": "I ran the following shell command:\n```sh\nls\n```"}]),
        gem("9", "user", [{"text": "System: Potential loop detected. Details: x"}]), GA)}, ONE),
    Variation("results that were shortened, with every message again", {"s.jsonl": lines(
        GHEAD, GU, GCALL, GRESULT, GA, *AGAIN, in_context(*AGAIN), GU2, GA2)},
        TWO, calls=["ls"], results=["a.py"]),
    Variation("a rewind to a message that was written again", {"s.jsonl": lines(
        GHEAD, GU, GCALL, GRESULT, GA, GU2, gem("7", "gemini", "No."), *AGAIN,
        gem("15", "user", [{"text": "More?"}]), gem("16", "gemini", [{"text": "No."}]),
        in_context(*AGAIN, gem("15", "user", [{"text": "More?"}]),
                   gem("16", "gemini", [{"text": "No."}])),
        {"$rewindTo": "15"}, gem("20", "user", "More?"), GA2)},
        TWO, calls=["ls"], results=["a.py"], problem="are left out"),
    Variation("a turn that was aborted after a compression", {"s.jsonl": lines(
        GHEAD, GU, GA, in_context(gem("21", "user", "So far."), gem("22", "gemini", "Got it.")),
        gem("23", "user", "Stop"), gem("24", "gemini", "No."),
        in_context(gem("21", "user", "So far."), gem("22", "gemini", "Got it.")), GU2, GA2)},
        TWO, problem="2 messages are left out"),
    Variation("a question that was aborted before there was a reply", {"s.jsonl": lines(
        GHEAD, GU, GA, gem("23", "user", "Stop"), in_context(GU, GA), GU2, GA2)},
        TWO, problem="1 message is left out"),
    Variation("a resumed session, whose results get messages of their own", {"s.jsonl": lines(
        GHEAD, GU, GCALL, GRESULT, GA, {"$set": {"sessionId": "g1"}}, in_context(
            gem("0", "user", [{"text": "<session_context>x</session_context>"}]), GU,
            {**GCALL, "content": [called("ls")]}, gem("2_response", "user", [returned("a.py")]),
            GA), GU2, GA2)},
        TWO, calls=["ls"], results=["a.py"], seen=["<session_context>x</session_context>"]),
    Variation("two compressions", {"s.jsonl": lines(
        GHEAD, GU, GA, in_context(gem("21", "user", "One."), gem("22", "gemini", "Got it.")),
        GU2, GA2, in_context(gem("31", "user", "Two."), gem("32", "gemini", "Got it.")))}, TWO),
    Variation("a result that came after its call", {"s.jsonl": lines(
        GHEAD, GU, gem("2", "gemini", "", toolCalls=[recorded("ls", None)]),
        in_context(GU, GCALL), GA)}, ONE, calls=["ls"], results=["a.py"]),
    Variation("a context whose messages have no ids", {"s.jsonl": lines(
        GHEAD, in_context(*({name: value for name, value in message.items() if name != "id"}
                            for message in (GU, GA, GU2, GA2))))}, TWO),
)  # fmt: skip


def test_a_rewind_of_gemini_cli_into_a_compression_that_was_taken_back_starts_anew(tmp_path):
    summary = in_context(gem("21", "user", "So far."), gem("22", "gemini", "Got it."))
    log = lines(GHEAD, GU, GA, summary, {"$rewindTo": "4"}, {"$rewindTo": "21"}, GU2, GA2)
    path = tmp_path / "s.jsonl"
    path.write_text(file_text(log))
    logs = read_logs([path])
    assert [turn.user for dialog in logs.dialogs for turn in dialog.turns] == ["More?"]
    assert len(logs.problems) == 2 and all("left out" in problem for problem in logs.problems)


@pytest.mark.parametrize("kind", ["compressed", "shortened"])
def test_a_message_of_gemini_cli_cannot_pass_for_one_that_the_reader_adds(tmp_path, kind):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**GHEAD, "messages": [GU, GA, gem("9", kind, "x"), GU2, GA2]}))
    logs = read_logs([path])
    assert len(logs.problems) == 1 and f"unknown type '{kind}'" in logs.problems[0]
    assert sum(len(dialog.turns) for dialog in logs.dialogs) == 2


def test_messages_that_a_compression_of_gemini_cli_keeps_stay_before_it(tmp_path):
    context = [gem("21", "user", "So far."), GU2, GA2]
    late = [gem("7", "user", "Why?"), gem("8", "gemini", "C.")]
    last = [gem("9", "user", "And?"), gem("10", "gemini", "D.")]
    log = lines(GHEAD, GU, GA, GU2, GA2, in_context(*context), *late,
                in_context(*context, *late), *last)  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text(file_text(log))
    (file,) = read_transcripts(path)
    assert [event.text for event in file.transcripts[0].path] == [
        "Hi", "A.", "More?", "B.", "So far.", "Why?", "C.", "And?", "D.",
    ]  # fmt: skip


def test_a_result_that_gemini_cli_shortened_left_the_context(tmp_path):
    log = lines(GHEAD, GU, GCALL, GRESULT, GA, *AGAIN, in_context(*AGAIN), GU2, GA2)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == ["Hi", "A.", "More?"]


def test_the_context_of_gemini_cli_after_an_aborted_turn_is_the_compression(tmp_path):
    summary = in_context(gem("21", "user", "So far."), gem("22", "gemini", "Got it."))
    log = lines(GHEAD, GU, GA, summary, gem("23", "user", "Stop"), gem("24", "gemini", "No."),
                summary, GU2, GA2)  # fmt: skip
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == ["So far.\nGot it.", "More?"]


# Claude Code from 2.1.230 on: what the model saw of an attachment


def claude(kind: str, uuid: str, parent: str | None, **fields: Any) -> dict:
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1",
            "isSidechain": False, "version": "2.1.283", **fields}  # fmt: skip


def claude_says(role: str, uuid: str, parent: str | None, words: str, **fields: Any) -> dict:
    content: Any = words if role == "user" else [text(words)]
    return claude(role, uuid, parent, message={"role": role, "content": content}, **fields)


def with_attachment(rendered: Any = None, **attachment: Any) -> dict:
    extra = {} if rendered is None else {"rendered": rendered}
    return {"s.jsonl": lines(
        claude_says("user", "u1", None, "Hi"),
        claude("attachment", "x1", "u1", attachment=attachment, **extra),
        claude_says("assistant", "a1", "x1", "A."))}  # fmt: skip


LONG = claude("user", "r1", "c1", message={"role": "user", "content": [
    {"type": "tool_result", "tool_use_id": "t1", "content": "Use pnpm."}]})  # fmt: skip
CALL = claude("assistant", "c1", "u1", message={"role": "assistant", "content": [
    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]})  # fmt: skip
CU1, CA1 = claude_says("user", "u1", None, "Hi"), claude_says("assistant", "a1", "r1", "A.")
CU2, CA2 = claude_says("user", "u2", "a1", "More?"), claude_says("assistant", "a2", "u2", "B.")


def collapsed(first: str, last: str) -> dict:
    return {"type": "marble-origami-commit", "sessionId": "s1", "collapseId": "1",
            "summaryUuid": "x", "summaryContent": "<collapsed>So far.</collapsed>",
            "summary": "So far.", "firstArchivedUuid": first, "lastArchivedUuid": last}  # fmt: skip


test_sessions_of_claude_code_in_autumn_2026 = variations(
    Variation("lines outside the dialog", {"s.jsonl": lines(
        CU1, CALL, LONG, CA1,
        {"type": "continued-in", "sessionId": "s1", "successor": "s2"},
        {"type": "history-suppression", "sessionId": "s1"}, {"type": "observer-ref"},
        {"type": "ended-by-model", "sessionId": "s1"}, {"type": "marble-origami-reset"})},
        ONE, calls=["ls"], results=["Use pnpm."]),
    Variation("a result of which the model sees an excerpt", {"s.jsonl": lines(
        CU1, CALL, LONG, {"type": "content-replacement", "sessionId": "s1", "replacements": [
            {"kind": "tool-result", "toolUseId": "t1", "replacement": "<persisted-output>"}]},
        CA1, CU2, CA2)}, TWO, calls=["ls"], results=["Use pnpm."]),
    Variation("messages that a summary replaced", {"s.jsonl": lines(
        CU1, CALL, LONG, CA1, collapsed("c1", "r1"), CU2, CA2)}, TWO, calls=["ls"]),
    Variation("messages that were removed", {"s.jsonl": lines(
        CU1, CALL, LONG, CA1, claude("system", "b1", "a1", subtype="snip_boundary",
                                     snipMetadata={"removedUuids": ["c1", "r1"]}),
        {**CU2, "parentUuid": "b1"}, CA2)}, TWO, calls=["ls"]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ({"type": "content-replacement", "sessionId": "s1",
          "replacements": [{"kind": "tool-result", "toolUseId": "t1"}]}, ["Hi", "A.", "More?"]),
        (collapsed("c1", "r1"), ["Hi", "A.", "<collapsed>So far.</collapsed>", "More?"]),
        ({"type": "mode", "sessionId": "s1"}, ["Hi", "Use pnpm.", "A.", "More?"]),
    ],
    ids=["an excerpt", "a summary of some messages", "no change"],
)  # fmt: skip
def test_lines_of_claude_code_outside_the_tree_change_the_context(change, texts, tmp_path):
    log = lines(CU1, CALL, LONG, CA1, change, CU2, CA2)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == texts


def test_messages_that_claude_code_removed_left_the_context(tmp_path):
    boundary = claude("system", "b1", "a1", subtype="snip_boundary",
                      snipMetadata={"removedUuids": ["u1", "c1", "r1"]})  # fmt: skip
    log = lines(CU1, CALL, LONG, CA1, boundary, {**CU2, "parentUuid": "b1"}, CA2)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == ["A.", "More?"]


def test_calls_and_results_of_claude_code_without_ids_do_not_belong_together(tmp_path):
    call = {"type": "tool_use", "name": "Bash", "input": {}}
    result = {"type": "tool_result", "content": "elsewhere"}
    content = file_text(lines(
        claude_says("user", "u1", None, "Hi"),
        claude("assistant", "a0", "u1", message={"role": "assistant", "content": [call]}),
        claude("user", "r0", "a0", message={"role": "user", "content": [result]}),
        claude_says("user", "u2", None, "Hi"),
        claude("assistant", "a1", "u2", message={"role": "assistant", "content": [call]}),
        claude_says("assistant", "a2", "a1", "A.")))  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text(content)
    dialogs = read_logs([path]).dialogs
    last = [event.text for event in dialogs[-1].transcript.path]
    assert "elsewhere" not in last and last[-1] == "A."


REMINDED = "<system-reminder>\nAnswer in German.\n</system-reminder>"
QUEUED: dict = {"type": "queued_command", "prompt": "More?", "commandMode": "prompt"}

test_attachments_of_claude_code = variations(
    Variation(
        "what was seen of an attachment",
        with_attachment([{"content": REMINDED}], type="output_style_instructions", style="x"),
        ONE,
        seen=[REMINDED],
    ),
    Variation(
        "what was seen of a hook after a tool",
        with_attachment([{"content": [text(REMINDED)]}], type="hook_success",
                        hookEvent="PostToolUse", content="price"),
        ONE,
        seen=[REMINDED],
    ),
    Variation(
        "an attachment of which nothing was seen",
        with_attachment([], type="hook_success", hookEvent="SessionStart", content="price"),
        ONE,
        seen=[],
    ),
    Variation(
        "a message that a person queued",
        with_attachment([{"content": "<system-reminder>More?</system-reminder>"}], **QUEUED,
                        origin={"kind": "human"}),
        [[("Hi\n\nMore?", "A.")]],
        seen=[],
    ),
    Variation(
        "a message that another agent queued",
        with_attachment([{"content": "x"}], **QUEUED, origin={"kind": "peer", "name": "b"}),
        ONE,
        seen=["More?"],
    ),
    Variation(
        "the rules of a forked subagent",
        {"s.jsonl": lines(
            {"type": "fork-context-ref", "agentId": "f1", "parentSessionId": "p1",
             "parentLastUuid": "z", "contextLength": 9},
            claude_says("user", "u1", None, "<fork-boilerplate>\nprice\n</fork-boilerplate>\n\nHi",
                        agentId="f1"),
            claude_says("assistant", "a1", "u1", "A.", agentId="f1"))},
        ONE,
        subagents=1,
    ),
)  # fmt: skip


# Roo Code's truncations, which stay in the file


def roo(role: str, *blocks: Any, **fields: Any) -> dict:
    content_blocks = [text(block) if isinstance(block, str) else block for block in blocks]
    return {"role": role, "content": content_blocks, "ts": 1, **fields}


HIDDEN = {"truncationParent": "t1"}
MARK = {"role": "user", "content": "[Sliding window truncation: 2 messages hidden]", "ts": 2,
        "isTruncationMarker": True, "truncationId": "t1"}  # fmt: skip
USE = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "Use pnpm."}
TRUNCATED = [
    roo("user", "Hi"), roo("assistant", USE, **HIDDEN), roo("user", RESULT, **HIDDEN), MARK,
    roo("assistant", "A."), roo("user", "More?"), roo("assistant", "B."),
]  # fmt: skip


def test_the_mark_of_a_truncation_of_roo_code_was_not_said(tmp_path):
    check(Variation("", {"api_conversation_history.json": TRUNCATED}, TWO, calls=["a"],
                    results=["Use pnpm."]), tmp_path)  # fmt: skip


@pytest.mark.parametrize(("count", "texts"), [(6, ["Hi", "Use pnpm."]), (7, ["Hi", "A.", "More?"])])
def test_what_roo_code_hid_left_the_context_once_as_many_messages_had_followed(
    count, texts, tmp_path
):
    name = "api_conversation_history.json"
    assert context_before_last_reply(tmp_path, name, TRUNCATED[:count]) == texts


# Cline's sessions in summer 2026


def of_cline(role: str, *parts: Any, **fields: Any) -> dict:
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {"id": "m", "role": role, "content": content, **fields}


def cline_session(*messages: dict) -> dict:
    return {"version": 1, "agent": "lead", "sessionId": "s1", "messages": [*messages]}


def cline_result(content: Any, **fields: Any) -> dict:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **fields}


CLINE_HI = of_cline("user", '<user_input mode="act">Hi</user_input>')
CLINE_CALL = of_cline("assistant", {
    "type": "tool_use", "id": "t1", "name": "run_commands", "input": {"commands": ["ls"]},
})  # fmt: skip
CLINE_A = of_cline("assistant", "A.")


def after_call(result: dict) -> dict:
    session = cline_session(CLINE_HI, CLINE_CALL, of_cline("user", result), CLINE_A)
    return {"s.messages.json": session}


test_sessions_of_cline_in_summer_2026 = variations(
    Variation("results of operations", after_call(cline_result([
        {"query": "ls", "result": "a.py", "success": True, "duration": 3},
        {"query": "cat b", "result": "", "error": "no b", "success": False}])),
        ONE, results=["a.py\nno b"]),
    Variation("a picture in the result of an operation", after_call(cline_result([
        {"query": "a.png", "success": True, "result": [text("a.png"), {
            "type": "image", "data": "AA==", "mediaType": "image/png"}]}])),
        ONE, results=["a.png"], problem="1 of the type 'image'"),
    Variation("a file that the user attached", {"s.messages.json": cline_session(
        of_cline("user", '<user_input mode="act">Hi</user_input>', {
            "type": "file", "path": "/x/a.py", "content": "price"}), CLINE_A)},
        ONE, seen=['<file_content path="/x/a.py">\nprice\n</file_content>']),
    Variation("a call that the user refused", after_call(cline_result(
        json.dumps({"error": 'Tool "run_commands" was denied by user'}), is_error=True)),
        ONE, calls=[]),
    Variation("a call that failed", after_call(cline_result(
        json.dumps({"error": "exit code 1"}), is_error=True)), ONE, calls=["['ls'] ls"]),
    Variation("what was done since, which a compaction added", {"s.messages.json": cline_session(
        of_cline("user", '<user_input mode="act">Hi</user_input>',
                 "<SYSTEM_NOTICE>\nEarlier context was compacted.</SYSTEM_NOTICE>",
                 metadata={"kind": "compaction", "displayRole": "system"}), CLINE_A)},
        ONE, seen=["<SYSTEM_NOTICE>\nEarlier context was compacted.</SYSTEM_NOTICE>"]),
    Variation("what Cline put there", {"s.messages.json": cline_session(
        CLINE_HI, CLINE_A,
        of_cline("user", "Go on.", metadata={"kind": "completion_reminder"}),
        of_cline("user", "price", metadata={"displayRole": "system", "userRunSpan": 0}),
        of_cline("assistant", "B."))}, [[("Hi", "A.\n\nB.")]], seen=["Go on.", "price"]),
    Variation("a summary", {"s.messages.json": cline_session(
        of_cline("user", "Context summary:\n\nSo far.", metadata={
            "kind": "compaction_summary", "displayRole": "system"}),
        CLINE_HI, CLINE_A)}, ONE, seen=[]),
)  # fmt: skip


def test_the_files_beside_a_session_of_cline_are_no_dialogs(tmp_path):
    session = cline_session(CLINE_HI, CLINE_A)
    compacted = {"version": 1, "source_message_count": 2, "messages": session["messages"]}
    manifest = {"version": 1, "session_id": "s1", "status": "completed", "prompt": "Hi"}
    for name, value in {"messages": session, "compaction": compacted}.items():
        (tmp_path / f"s1.{name}.json").write_text(json.dumps(value))
    (tmp_path / "s1.json").write_text(json.dumps(manifest))
    logs = read_logs([tmp_path])
    assert [dialog.source.rpartition("/")[2] for dialog in logs.dialogs] == [
        "s1.messages.json, entry 1"
    ]
    (problem,) = logs.problems
    assert "s1.compaction.json is the compacted context" in problem


# Goose in 2026: results for two readers, and summaries of old calls


def of_goose(role: str, *parts: Any, user: bool = True, agent: bool = True) -> dict:
    content = [text(part) if isinstance(part, str) else part for part in parts]
    return {"id": None, "role": role, "created": 1760000000, "content": content,
            "metadata": {"userVisible": user, "agentVisible": agent}}  # fmt: skip


def goose_call(agent: bool = True) -> dict:
    value = {"name": "developer__shell", "arguments": {"command": "ls"}}
    call = {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": value}}
    return of_goose("assistant", call, agent=agent)


def goose_result(*content: dict, agent: bool = True) -> dict:
    result = {"status": "success", "value": {"content": [*content], "isError": False}}
    return of_goose("user", {"type": "toolResponse", "id": "c1", "toolResult": result}, agent=agent)


GOOSE_HI, GOOSE_A = of_goose("user", "Hi"), of_goose("assistant", "A.")
GOOSE_SUMMARY = of_goose("user", "A call to developer__shell listed a.py.", user=False)

test_sessions_of_goose_in_2026 = variations(
    Variation("a result for the model and the same for the user", {"s.jsonl": lines(
        GOOSE_HI, goose_call(), goose_result(
            {**text("a.py"), "annotations": {"audience": ["assistant"]}},
            {**text("a.py"), "annotations": {"audience": ["user"], "priority": 0.0}}), GOOSE_A)},
        ONE, results=["a.py"]),
    Variation("an embedded resource", {"s.jsonl": lines(
        GOOSE_HI, goose_call(), goose_result({"type": "resource", "resource": {
            "uri": "file:///a", "mimeType": "text/plain", "text": "x = 1"}}), GOOSE_A)},
        ONE, results=["x = 1"]),
    Variation("a resource without text", {"s.jsonl": lines(
        GOOSE_HI, goose_call(), goose_result(text("x"), {"type": "resource", "resource": {
            "uri": "file:///a", "blob": "AA=="}}), GOOSE_A)},
        ONE, results=["x"], problem="1 of the type 'resource'"),
    Variation("the summary of an old call", {"s.jsonl": lines(
        GOOSE_HI, goose_call(agent=False), goose_result(text("a.py"), agent=False), GOOSE_A,
        GOOSE_SUMMARY, of_goose("user", "More?"), of_goose("assistant", "B."))},
        TWO, calls=["ls"], results=["a.py"], seen=["A call to developer__shell listed a.py."]),
    Variation("an empty message for the model alone", {"s.jsonl": lines(
        GOOSE_HI, goose_call(agent=False), goose_result(text("a.py"), agent=False),
        of_goose("user", user=False), GOOSE_A)}, ONE, calls=["ls"], results=["a.py"]),
)  # fmt: skip


def test_the_result_of_a_call_that_goose_summarised_left_the_context(tmp_path):
    log = lines(GOOSE_HI, goose_call(agent=False), goose_result(text("a.py"), agent=False), GOOSE_A,
                GOOSE_SUMMARY, of_goose("user", "More?"), of_goose("assistant", "B."))  # fmt: skip
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == [
        "Hi", "A.", "A call to developer__shell listed a.py.", "More?",
    ]  # fmt: skip


# Copilot CLI in summer 2026


def of_copilot(kind: str, number: int, **data: Any) -> dict:
    return {"type": kind, "data": data, "id": f"e{number}", "timestamp": "t",
            "parentId": f"e{number - 1}"}  # fmt: skip


def copilot_result(**result: Any) -> dict:
    return of_copilot(
        "tool.execution_complete", 4, toolCallId="c1", success=True,
        result={"content": "a.py", **result},
    )  # fmt: skip


COPILOT = of_copilot("session.start", 1, sessionId="s1", version=1)
COPILOT_HI = of_copilot("user.message", 2, content="Hi")
COPILOT_CALL = of_copilot("assistant.message", 3, messageId="m1", content="", toolRequests=[
    {"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}])  # fmt: skip
COPILOT_A = of_copilot("assistant.message", 5, messageId="m2", content="A.")

test_sessions_of_copilot_cli_in_summer_2026 = variations(
    Variation("the exit code of a command", {"events.jsonl": lines(
        COPILOT, COPILOT_HI, COPILOT_CALL, copilot_result(contents=[
            {"type": "terminal", "text": "a.py"},
            {"type": "shell_exit", "shellId": "1", "exitCode": 0}]), COPILOT_A)},
        ONE, calls=["ls"], results=["a.py"]),
    Variation("a picture for the model", {"events.jsonl": lines(
        COPILOT, COPILOT_HI, COPILOT_CALL, copilot_result(binaryResultsForLlm=[
            {"type": "image", "mimeType": "image/png", "data": "AA=="}]), COPILOT_A)},
        ONE, results=["a.py"], problem="1 of the type 'image/png'"),
    Variation("a selection and an issue that the user attached", {"events.jsonl": lines(
        COPILOT, of_copilot("user.message", 2, content="Hi", attachments=[
            {"type": "file", "path": "/x/a.py", "displayName": "a.py"},
            {"type": "selection", "filePath": "/x/a.py", "displayName": "a.py", "text": "price"},
            {"type": "github_reference", "number": 1, "title": "x", "url": "u"}]), COPILOT_A)},
        ONE, seen=["price"], problem="1 of the type 'github_reference'"),
    Variation("a search by the provider", {"events.jsonl": lines(
        COPILOT, COPILOT_HI, of_copilot("assistant.message", 5, messageId="m2", content="A.",
            serverTools={"provider": "openai", "items": [
                {"type": "web_search_call", "id": "w1",
                 "action": {"type": "search", "query": "x"}}]}))},
        ONE, calls=["search x"]),
    Variation("a context that was cleared", {"events.jsonl": lines(
        COPILOT, COPILOT_HI, COPILOT_A,
        of_copilot("session.context_cleared", 6, messagesCleared=2, initialMessage="price"),
        of_copilot("user.message", 7, content="More?"),
        of_copilot("assistant.message", 8, messageId="m3", content="B."))}, TWO, seen=[]),
)  # fmt: skip


# opencode 2


def second(kind: str, number: int, **fields: Any) -> dict:
    return {"id": f"msg_{number}", "type": kind, "time": {"created": number}, **fields}


def tool(status: str, **state: Any) -> dict:
    return {"type": "tool", "id": "c1", "name": "bash", "time": {"created": 1},
            "state": {"status": status, "input": {"command": "ls"}, **state}}  # fmt: skip


def reply(number: int, *content: dict, **fields: Any) -> dict:
    return second("assistant", number, agent="build", content=[*content], **fields)


def exported(*messages: dict, **info: Any) -> dict:
    return {"o.json": {"info": {"id": "ses_1", **info}, "messages": [*messages]}}


OU, OA = second("user", 1, text="Hi", files=[], agents=[]), reply(2, text("A."))
OU2, OA2 = second("user", 5, text="More?"), reply(6, text("B."))
FILE = {"mime": "text/plain", "name": "a.txt", "data": base64.b64encode(b"price").decode()}

test_exports_of_opencode_2 = variations(
    Variation("two turns", exported(OU, OA, OU2, OA2), TWO, format="opencode"),
    Variation(
        "a call and its result",
        exported(OU, reply(2, {"type": "reasoning", "text": "price"}, tool(
            "completed", content=[text("a.py")], metadata={}), text("A."))),
        ONE, calls=["ls"], results=["a.py"],
    ),
    Variation(
        "a call that failed, and one that was cut off",
        exported(OU, reply(2, tool("error", error={"type": "unknown", "message": "no"}), {
            **tool("streaming"), "id": "c2", "state": {"status": "streaming", "input": '{"com'}},
            text("A."))),
        ONE, calls=["ls", ""], results=["no"],
    ),
    Variation(
        "what opencode wrote, and a command of the user's",
        exported(
            second("system", 0, text="Use pnpm."), OU, second("synthetic", 31, text="price"),
            second("skill", 32, skill="x", name="x", text="cost"),
            second("shell", 33, shellID="s", command="ls", output={"output": "a.py"}), OA,
        ),
        ONE, seen=["Use pnpm.", "price", "cost", "ls\na.py"],
    ),
    Variation("a file that the user attached", exported({**OU, "files": [FILE, {
        "mime": "image/png", "data": "AA=="}]}, OA), ONE, seen=["price"],
        problem="1 of the type 'image/png'"),
    Variation(
        "messages for display",
        exported(
            second("model-switched", 0, model={}), OU, OA, second("agent-switched", 3, agent="x"),
            second("idle", 4, outcome="succeeded"), OU2, OA2,
        ),
        TWO,
    ),
    Variation("an interruption", exported(OU, OA, second("idle", 3, outcome="interrupted"), OU2,
        OA2), TWO),
    Variation("an error", exported(OU, reply(3, finish="error", error={
        "type": "provider.transport", "message": "429"}), OA), ONE),
    Variation("an end at the limit", exported(OU, {**OA, "finish": "length"}), ONE, is_cut=True),
    Variation("messages that were taken back", exported(OU, OA, OU2, OA2,
        revert={"messageID": "msg_5"}), ONE, problem="2 messages"),
    Variation("a message of an unknown type", exported(OU, second("hologram", 3), OA), ONE,
        problem="unknown type 'hologram'"),
    Variation("a subagent", exported(OU, OA, parentID="ses_0"), ONE, subagents=1),
    Variation("a call that a permission refused", exported(OU, reply(2, tool("error", error={
        "type": "permission.rejected", "message": "Permission denied: bash"}), text("A."))),
        ONE, calls=[], results=["Permission denied: bash"]),
    Variation("a call that failed, with what it had written", exported(OU, reply(2, tool(
        "error", error={"type": "tool.execution", "message": "no"}, content=[text("a.py")]),
        text("A."))), ONE, calls=["ls"], results=["no\na.py"]),
    Variation("a picture in a result", exported(OU, reply(2, tool("completed", content=[
        text("a.png"), {"type": "file", "uri": "data:", "mime": "image/png"}]), text("A."))),
        ONE, results=["a.png"], problem="1 of the type 'image/png'"),
    Variation("a result that is a value", exported(OU, reply(2, tool(
        "completed", content=[], structured={"files": ["a.py"]}), text("A."))),
        ONE, results=['{"files": ["a.py"]}']),
    Variation("a folder that the user attached", exported({**OU, "files": [
        {**FILE, "mime": "application/x-directory"}]}, OA), ONE, seen=["price"]),
    Variation("a picture in a result of version 1", {"o.json": {"info": {"id": "s"}, "messages": [
        {"info": {"id": "m1", "role": "user"}, "parts": [text("Hi")]},
        {"info": {"id": "m2", "role": "assistant"}, "parts": [
            {"type": "tool", "tool": "read", "callID": "c1", "state": {
                "status": "completed", "input": {"filePath": "a.png"}, "output": "Read.",
                "attachments": [{"type": "file", "mime": "image/png", "url": "data:"}]}},
            text("A.")]}]}},
        ONE, results=["Read."], problem="1 of the type 'image/png'"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("status", "texts"), [("completed", ["Summary.\n\nrecent", "More?"]), ("failed", None)]
)
def test_a_compaction_of_opencode_2_replaces_the_context(status, texts, tmp_path):
    between = second("compaction", 3, status=status, summary="Summary.", recent="recent")
    content = exported(OU, OA, between, OU2, OA2)["o.json"]
    context = context_before_last_reply(tmp_path, "o.json", content)
    assert context == (texts or ["Hi", "A.", "More?"])


def opencode_database(path: Path, first: list[dict], later: list[dict]) -> None:
    """A database with messages of version 1 (with `info` and `parts`) and of version 2."""
    with sqlite3.connect(path) as database:
        if first:
            database.execute("CREATE TABLE session (id, parent_id, revert)")
            database.execute("CREATE TABLE message (id, session_id, time_created, data)")
            database.execute("CREATE TABLE part (id, message_id, session_id, data)")
        for number, message in enumerate(first):
            name, session = message["info"]["id"], message["info"]["sessionID"]
            row = (name, session, number, json.dumps(message["info"]))
            database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            for index, part in enumerate(message["parts"]):
                row = (f"prt_{number}_{index}", name, session, json.dumps(part))
                database.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
        database.execute("CREATE TABLE session_v2 (id, parent_id, revert)")
        database.execute(
            "CREATE TABLE session_message (id, session_id, type, seq, time_created, data)"
        )
        for number, message in enumerate(later):
            fields = {n: v for n, v in message.items() if n not in ("id", "type", "session")}
            row = (message["id"], message["session"], message["type"], number,
                   message["time"]["created"], json.dumps(fields))  # fmt: skip
            database.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", row)
    database.close()


def of_version_1(session: str) -> list[dict]:
    return [
        {"info": {"id": f"msg_{session}_1", "sessionID": session, "role": "user"},
         "parts": [text("Hi")]},
        {"info": {"id": f"msg_{session}_2", "sessionID": session, "role": "assistant"},
         "parts": [text("A.")]},
    ]  # fmt: skip


def of_version_2(session: str, *messages: dict) -> list[dict]:
    return [{**message, "session": session} for message in messages]


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        ([], of_version_2("s2", OU, OA), ONE),
        (of_version_1("s1"), of_version_2("s2", OU2, OA2), [ONE[0], [("More?", "B.")]]),
        (of_version_1("s1"), of_version_2("s1", OU, OA, OU2, OA2), TWO),
        (of_version_1("s1"), of_version_2("s1", second("agent-switched", 9)), ONE),
    ],
    ids=["version 2 alone", "a session of each", "a session that goes on", "bookkeeping alone"],
)
def test_the_tables_of_both_versions_of_opencode_are_read(first, later, expected, tmp_path):
    opencode_database(tmp_path / "opencode.db", first, later)
    logs = read_logs([tmp_path / "opencode.db"])
    turns = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert turns == expected and not logs.problems


# Open WebUI from 0.10 on: a reply as a list of items


def chat(**answer: Any) -> dict:
    messages = {"1": {**HI, "id": "1", "parentId": None},
             "2": {"role": "assistant", "id": "2", "parentId": "1", **answer}}  # fmt: skip
    history = {"currentId": "2", "messages": messages}
    return {"chat.json": [{"id": "c", "title": "t", "chat": {"history": history}}]}


SAYS = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "A."}]}
SAID = {**SAYS, "role": "assistant"}
SEARCH = {"type": "function_call", "name": "search", "call_id": "c1", "arguments": '{"q": "x"}'}
FOUND = {"type": "function_call_output", "call_id": "c1",
         "output": [{"type": "input_text", "text": "y"}]}  # fmt: skip
DETAILS = ('<details type="tool_calls" done="true" id="c1" name="search" '
           'arguments="&quot;{\\&quot;q\\&quot;: \\&quot;x\\&quot;}&quot;" result="&quot;y&quot;">'
           "\n<summary>Tool</summary>\n</details>\nA.")  # fmt: skip

test_replies_of_open_webui_as_items = variations(
    Variation("a text", chat(content="", output=[SAYS]), ONE, format="open-webui"),
    Variation("no content", chat(content=None, output=[SAYS]), ONE),
    Variation(
        "a call and its result", chat(content="", output=[SEARCH, FOUND, SAYS]), ONE,
        calls=["x"], results=["y"],
    ),
    Variation(
        "a call that the content does not show", chat(content="A.", output=[SEARCH, FOUND, SAYS]),
        ONE, calls=["x"], results=["y"],
    ),
    Variation(
        "a call that the content shows", chat(content=DETAILS, output=[SEARCH, FOUND, SAYS]), ONE,
        calls=["x"], results=["y"],
    ),
    Variation("reasoning", chat(content="", output=[
        {"type": "reasoning", "summary": [{"text": "price"}]}, SAYS]), ONE),
    Variation(
        "code that was run",
        chat(content="", output=[{"type": "open_webui:code_interpreter", "id": "i", "code": "1 + 1",
                                  "output": {"stdout": "2"}}, SAYS]),
        ONE, calls=["1 + 1"],
    ),
    Variation("a text alone that was edited", chat(content="A.", output=[{**SAYS, "content": [
        {"type": "output_text", "text": "B."}]}]), ONE),
)  # fmt: skip


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
    check(Variation("", {"chat.json": content}, TWO), tmp_path)
    assert context_before_last_reply(tmp_path, "chat.json", content) == ["Summary.", "More?"]


# ATIF 1.7: compactions


def step(source: str, message: str, **fields: Any) -> dict:
    return {"source": source, "message": message, **fields}


def trajectory(*steps: dict) -> dict:
    numbered = [{"step_id": number, **value} for number, value in enumerate(steps, start=1)]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "x"}, "steps": numbered}


REPLACES = {"context_management": {"type": "compaction", "boundary": "replace"}}
SUMMED_UP = step("system", "Context compaction performed", extra=REPLACES,
                 observation={"results": [{"content": "Summary."}]})  # fmt: skip
BEFORE = [step("system", "Be brief."), step("user", "Hi"), step("agent", "A.")]
AFTER = [step("user", "More?"), step("agent", "B.")]


def test_a_compaction_of_a_trajectory_replaces_the_context(tmp_path):
    content = trajectory(*BEFORE, SUMMED_UP, *AFTER)
    check(Variation("", {"t.json": content}, TWO, system="Be brief.", results=[]), tmp_path)
    context = context_before_last_reply(tmp_path, "t.json", content)
    assert context == ["Be brief.", "Summary.", "More?"]


def test_an_agent_that_compacts_by_a_call_has_called(tmp_path):
    call = {"tool_call_id": "c", "function_name": "compact", "arguments": {"keep": "x"}}
    compacts = step("agent", "", tool_calls=[call], extra=REPLACES,
                    observation={"results": [{"source_call_id": "c", "content": ""}]})  # fmt: skip
    content = trajectory(*BEFORE, compacts, *AFTER)
    check(Variation("", {"t.json": content}, TWO, calls=["x"]), tmp_path)
    assert context_before_last_reply(tmp_path, "t.json", content) == ["Be brief.", "More?"]


# VS Code's chats, whose agents record no rounds of calls: what is displayed


def vscode(*parts: dict, **request: Any) -> dict:
    answer = [{"value": "A.", "kind": "markdownContent", "content": {"value": "A."}}]
    asked = {"message": {"text": "Hi"}, "response": [*parts, *answer], **request}
    return {"c.json": {"version": 3, "sessionId": "v", "requests": [asked]}}


def shown(tool: str, data: Any = None, **fields: Any) -> dict:
    return {"kind": "toolInvocationSerialized", "toolId": tool, "toolCallId": tool,
            "isConfirmed": {"type": 1}, "isComplete": True, "toolSpecificData": data,
            **fields}  # fmt: skip


def recorded(*content: dict) -> dict:
    call = {"id": "c", "name": "run", "arguments": '{"command": "ls"}'}
    rounds = [{"response": "", "toolCalls": [call]}]
    return {"metadata": {"toolCallRounds": rounds, "toolCallResults": {"c": {"content": content}}}}


PATH = {"path": "/w/a.py", "scheme": "file"}
RUNS = shown("run", {"kind": "terminal", "language": "sh", "commandLine": {"original": "ls"},
                     "terminalCommandOutput": {"text": "a.py"}})  # fmt: skip
PNG = {"type": "embed", "value": "AA==", "isText": False, "mimeType": "image/png"}
STARTS = shown(
    "task", {"kind": "subagent", "description": "d", "prompt": "Look", "result": "Done."}
)
INNER = {**RUNS, "subAgentInvocationId": "task"}

test_what_vscode_displays = variations(
    Variation("a command's output", vscode(RUNS), ONE, calls=["ls"], results=["a.py"],
              format="copilot"),
    Variation(
        "a tool's input and output",
        vscode(shown("t", {"kind": "simpleToolInvocation", "input": "x", "output": "y"})), ONE,
        calls=["x"], results=["y"],
    ),
    Variation(
        "a server's text and image",
        vscode(shown("t", resultDetails={"input": '{"q": "x"}', "output": [
            {"type": "embed", "value": "y", "isText": True}, PNG]})),
        ONE, calls=["x"], results=["y"], problem="image",
    ),
    Variation(
        "an image alone", vscode(shown("t", {"kind": "generatedImage"}, resultDetails={
            "output": {"type": "data", "mimeType": "image/png", "base64Data": "AA=="}})), ONE,
        results=[""], problem="image",
    ),
    Variation("a failure", vscode(shown("t", {"kind": "input", "rawInput": {"q": "x"}},
                                        resultError="No such file")),
              ONE, calls=["x"], results=["No such file"]),
    Variation("a file that an agent outside changed",
              vscode({"kind": "externalEdit", "uri": PATH, "editKind": "edit"}), ONE,
              calls=["/w/a.py"]),
    Variation(
        "a file that a displayed call changed",
        vscode(shown("edit", {"kind": "input", "rawInput": {"path": "/w/a.py"}}),
               {"kind": "externalEdit", "uri": PATH, "editKind": "edit", "undoStopId": "edit"}),
        ONE, calls=["/w/a.py"],
    ),
    Variation("a file that was deleted",
              vscode({"kind": "workspaceEdit", "edits": [{"oldResource": PATH}]}), ONE,
              calls=["/w/a.py"]),
    Variation("a subagent's calls", vscode(STARTS, INNER), [*ONE, [("Look", "Done.")]],
              calls=["d Look", "ls"], results=["Done.", "a.py"], subagents=1),
    Variation("a result as a tree, and an image", vscode(result=recorded(
        {"$mid": 23, "value": {"node": {"type": 1, "children": [
            {"type": 2, "text": "a.py", "lineBreakBefore": True},
            {"type": 1, "children": [{"type": 2, "text": "b.py", "lineBreakBefore": True}]}]}}},
        {"$mid": 24, "mimeType": "image/png", "data": {"$mid": 16}})), ONE,
        calls=["ls"], results=["a.py\nb.py"], problem="image"),
    Variation(
        "what was put around the user's words, and a hook's",
        vscode(result={"metadata": {
            "renderedUserMessage": [{"type": 1, "text":
                "<context>Today.</context>\n<userRequest>\nHi\n</userRequest>"}],
            "toolCallRounds": [{"id": "r", "toolCalls": [], "hookContext": "Run the tests."}]}}),
        ONE, seen=["<context>Today.</context>", "Run the tests."],
    ),
    Variation("progress", vscode({"kind": "mcpServersStartingSlow"}, {
        "kind": "voiceProgress", "id": "planning", "value": "x"}), ONE),
    Variation("a request of the program's", vscode(isSystemInitiated=True), [[("", "A.")]],
              seen=["Hi"]),
)  # fmt: skip


def vscode_request(words: str, answer: str, round_id: str, **metadata: Any) -> dict:
    call = {"id": f"c-{round_id}", "name": "run", "arguments": '{"command": "ls"}'}
    rounds = [{"id": round_id, "response": "", "toolCalls": [call], **metadata.pop("round", {})}]
    results = {call["id"]: {"content": [{"value": "a.py"}]}}
    recorded = {"toolCallRounds": rounds, "toolCallResults": results, **metadata}
    return {"message": {"text": words}, "response": [{"value": answer}],
            "result": {"metadata": recorded}}  # fmt: skip


@pytest.mark.parametrize(
    ("of_round", "context"),
    [("r1", ["Summary.", "More?", "a.py"]), ("r2", ["Summary."])],
)
def test_a_summary_of_vscode_replaces_what_came_before_its_round(tmp_path, of_round, context):
    summary = {"toolCallRoundId": of_round, "text": "Summary."}
    content = {"version": 3, "sessionId": "v", "requests": [
        vscode_request("Hi", "A.", "r1"),
        vscode_request("More?", "B.", "r2", summary=summary)]}  # fmt: skip
    check(Variation("", {"c.json": content}, TWO, calls=["ls", "ls"]), tmp_path)
    assert context_before_last_reply(tmp_path, "c.json", content) == context


def test_a_summary_that_only_its_round_of_vscode_has_is_read(tmp_path):
    content = {"version": 3, "sessionId": "v", "requests": [
        vscode_request("Hi", "A.", "r1"),
        vscode_request("More?", "B.", "r2", round={"summary": "Summary."})]}  # fmt: skip
    assert context_before_last_reply(tmp_path, "c.json", content) == ["Summary."]


# traces and exports


def run(**fields: Any) -> dict:
    return {"id": "r", "run_type": "llm", "trace_id": "t", "start_time": "1", **fields}


BULK = run(inputs=json.dumps({"messages": [HI]}), outputs=json.dumps({"choices": [{"message": A}]}),
           extra=json.dumps({"metadata": {"thread_id": "s"}}))  # fmt: skip

test_other_changes = variations(
    Variation("a bulk export of LangSmith", {"x.jsonl": lines(BULK)}, ONE, format="langsmith"),
    Variation("a page of LangSmith's interface", {"x.json": {"runs": [
        run(inputs={"messages": [HI]}, outputs=A)], "cursors": {"next": None}}}, ONE),
    Variation("a dialog with the runs of its assistant",
              {"x.json": {"messages": [HI, A], "runs": [{"id": "run_1"}]}}, ONE, format="openai"),
    Variation("a dialog with fields of its own that a change of VS Code's has too",
              {"x.jsonl": lines({"kind": 1, "v": {}, "messages": [HI, A]},
                                {"kind": 0, "v": {}, "messages": [HI, A]})}, ONE * 2,
              format="openai"),
    Variation(
        "a payload of LiteLLM's whose input is text",
        {"x.jsonl": lines({"id": "1", "call_type": "aresponses", "status": "success",
                           "messages": "Hi", "response": {"output": [SAID]}})},
        ONE, format="litellm",
    ),
    Variation(
        "a call in VS Code whose end is an object",
        {"c.json": {"version": 3, "sessionId": "v", "requests": [{
            "message": {"text": "Hi"}, "response": [{
                "kind": "toolInvocationSerialized", "toolId": "run_in_terminal", "toolCallId": "c1",
                "isComplete": {"status": "done"}, "toolSpecificData": {
                    "kind": "terminal", "commandLine": {"original": "ls"}}}, {"value": "A."}]}]}},
        ONE, calls=["ls"], results=[""],
    ),
)  # fmt: skip


def otel_span(
    inputs: Any, outputs: Any, operation: str = "chat", span: str = "0x2", **more: Any
) -> dict:
    messages = {"gen_ai.input.messages": inputs, "gen_ai.output.messages": outputs}
    attributes = {"gen_ai.operation.name": operation}
    attributes |= {name: json.dumps(value) for name, value in messages.items()}
    return {"name": "chat m", "context": {"trace_id": "0x1", "span_id": span},
            "attributes": {**attributes, **more}}  # fmt: skip


def part(kind: str, content: str) -> dict:
    return {"type": kind, "content": content}


def server_call(**fields: Any) -> dict:
    called = {"type": "server_tool_call", "id": "s1", "name": "web_search", "server_tool_call": {
        "type": "web_search", **fields}}  # fmt: skip
    answered = {"type": "server_tool_call_response", "id": "s1", "server_tool_call_response": {
        "type": "web_search", "response": "y"}}  # fmt: skip
    return {"role": "assistant", "parts": [called, answered, part("text", "A.")],
            "finish_reason": "stop"}  # fmt: skip


def inference_span(**attributes: Any) -> dict:
    return {"span_kind": "LLM", "context": {"trace_id": "1", "span_id": "2"},
            "attributes": {"openinference.span.kind": "LLM", **attributes}}  # fmt: skip


def tool_call_of(call: str, command: str) -> dict:
    arguments = json.dumps({"command": command})
    function = {"name": "bash", "arguments": arguments}
    return {"tool_call": {"id": call, "function": function}}


FIRST_CALL, SECOND_CALL = tool_call_of("c1", "ls"), tool_call_of("c2", "pwd")
USER_HI = [{"message.role": "user", "message.content": "Hi"}]

test_spans_of_openinference_in_summer_2026 = variations(
    Variation("a reply that ended at the limit", {"s.jsonl": lines(inference_span(**{
        "llm.input_messages": USER_HI, "llm.finish_reason": "length",
        "llm.output_messages": [{"message.role": "assistant", "message.content": "A."}]}))},
        ONE, is_cut=True),
    Variation("a completion", {"s.jsonl": lines(inference_span(**{
        "llm.prompts.0.prompt.text": "Hi", "llm.choices.0.completion.text": "A.",
        "llm.choices.1.completion.text": "B."}))}, ONE),
    Variation("calls of which one is among the texts", {"s.jsonl": lines(inference_span(**{
        "llm.input_messages": USER_HI, "llm.output_messages": [{"message": {
            "role": "assistant", "tool_calls": [FIRST_CALL, SECOND_CALL], "contents": [
                {"message_content": {"type": "reasoning", "text": "price"}},
                {"message_content": {"type": "text", "text": "A."}},
                {"message_content": {"type": "tool_use"}, **FIRST_CALL}]}}]}))},
        ONE, calls=["ls", "pwd"]),
)  # fmt: skip


ASKED = {"role": "user", "parts": [part("text", "Hi")]}
ANSWERED = {"role": "assistant", "parts": [part("text", "A.")], "finish_reason": "stop"}
COMPACTED = {"role": "user", "parts": [part("compaction", "We spoke of Rome."), *ASKED["parts"]]}
CODE = {"executableCode": {"language": "PYTHON", "code": "ls"}}
CODE_RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "y"}}

test_parts_of_opentelemetry_and_gemini = variations(
    Variation(
        "a tool that the provider runs",
        {"o.jsonl": lines(otel_span([ASKED], [server_call(arguments={"query": "ls"})]))},
        ONE, calls=["ls"], results=["y"],
    ),
    Variation(
        "the arguments of such a tool as they are",
        {"o.jsonl": lines(otel_span([ASKED], [server_call(query="ls")]))},
        ONE, calls=["ls"], results=["y"],
    ),
    Variation(
        "alternatives whose reasons are in an attribute",
        {"o.jsonl": lines(otel_span(
            [ASKED], [{"role": "assistant", "parts": [part("text", words)]} for words in "AB"],
            **{"gen_ai.response.finish_reasons": ["stop", "length"],
               "gen_ai.request.choice.count": 2}))},
        [[("Hi", "A")]],
    ),
    Variation(
        "a run of an agent whose calls were not recorded",
        {"o.jsonl": lines(otel_span([ASKED], [ANSWERED], "invoke_agent"))},
        ONE,
    ),
    Variation(
        "a run of an agent and its call",
        {"o.jsonl": lines(
            otel_span([ASKED], [{**ANSWERED, "parts": [part("text", "A.")]}]),
            otel_span([ASKED], [ANSWERED], "invoke_agent", "0x3"))},
        ONE,
    ),
    Variation(
        "a run of an agent without messages",
        {"o.jsonl": lines(otel_span([ASKED], [ANSWERED]), {
            "context": {"trace_id": "0x1", "span_id": "0x3"},
            "attributes": {"gen_ai.operation.name": "invoke_agent"}})},
        ONE,
    ),
    Variation(
        "messages in an object with its version",
        {"o.jsonl": lines(otel_span({"version": "0.1.0", "messages": [ASKED]},
                                    {"version": "0.1.0", "messages": [ANSWERED]}))},
        ONE,
    ),
    Variation(
        "code that Gemini ran",
        {"g.json": {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "candidates": [{"content": {
                "role": "model", "parts": [CODE, CODE_RESULT, {"text": "A."}]}}]}},
        ONE, calls=["ls"], results=["y"],
    ),
    Variation(
        "code that Gemini ran, as its SDK writes it",
        {"g.json": {
            "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
            "candidates": [{"content": {"role": "model", "parts": [
                {"executable_code": CODE["executableCode"]},
                {"code_execution_result": CODE_RESULT["codeExecutionResult"]},
                {"text": "A."}]}}]}},
        ONE, calls=["ls"], results=["y"],
    ),
)  # fmt: skip


def test_a_compaction_in_a_message_of_opentelemetry_replaces_what_was_before_it(tmp_path):
    span = otel_span([ASKED, ANSWERED, COMPACTED], [ANSWERED])
    context = context_before_last_reply(tmp_path, "o.jsonl", lines(span))
    assert context == ["We spoke of Rome.", "Hi"]


def otlp_value(of: Any) -> dict:
    if isinstance(of, list):
        return {"arrayValue": {"values": [otlp_value(entry) for entry in of]}}
    if isinstance(of, dict):
        return {"kvlistValue": {"values": attributes(**of)}}
    return {"stringValue": of}


def attributes(**of: Any) -> list[dict]:
    return [{"key": key, "value": otlp_value(value)} for key, value in of.items()]


def logged(name: str, body: Any = None, span: str = "s1", **attrs: Any) -> dict:
    record = {"timeUnixNano": "1", "traceId": "t1", "spanId": span, "eventName": name,
              "attributes": attributes(**attrs)}  # fmt: skip
    return {**record, "body": otlp_value(body)} if body else record


def otlp_logs(*records: dict) -> dict:
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": [*records]}]}]}


def otlp_spans(*spans: dict) -> dict:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [*spans]}]}]}


def chat_span(number: int, **attrs: Any) -> dict:
    chat = {"gen_ai.operation.name": "chat"}
    return {"traceId": "t1", "spanId": f"s{number}", "name": "chat m",
            "startTimeUnixNano": str(number),
            "attributes": attributes(**chat, **attrs)}  # fmt: skip


DETAILS = "gen_ai.client.inference.operation.details"
IO = {"gen_ai.input.messages": [ASKED], "gen_ai.output.messages": [ANSWERED]}
IO_TEXT = {name: json.dumps(value) for name, value in IO.items()}
CHAT = {"gen_ai.operation.name": "chat"}
CALLS = {"role": "assistant", "tool_calls": [
    {"id": "c1", "type": "function", "function": {
        "name": "sh", "arguments": '{"c": "ls"}'}}]}  # fmt: skip
ASKED_IN_RECORD = logged("gen_ai.user.message", {"content": "Hi"})
ANSWERED_IN_RECORD = logged("gen_ai.choice", {"message": {"content": "A."}})

test_batches_of_otlp_with_log_records = variations(
    Variation("details of a call", {"o.jsonl": lines(otlp_logs(logged(DETAILS, **CHAT, **IO)))},
              ONE, format="otlp"),
    Variation("details whose messages are JSON",
              {"o.jsonl": lines(otlp_logs(logged(DETAILS, **CHAT, **IO_TEXT)))}, ONE),
    Variation("details with the system prompt", {"o.jsonl": lines(otlp_logs(logged(
        DETAILS, **CHAT, **IO, **{"gen_ai.system_instructions": [part("text", "Be brief.")]})))},
        ONE, system="Be brief."),
    Variation("details of an agent, which repeat those of its calls", {"o.jsonl": lines(otlp_logs(
        logged(DETAILS, span="s1", **CHAT, **IO),
        logged(DETAILS, span="s0", **{"gen_ai.operation.name": "invoke_agent"}, **IO)))}, ONE),
    Variation("a record for each message", {"o.jsonl": lines(otlp_logs(
        logged("gen_ai.system.message", {"content": "Be brief."}),
        logged("gen_ai.user.message", {"content": "Hi"}),
        logged("gen_ai.assistant.message", CALLS),
        logged("gen_ai.tool.message", {"content": "y", "id": "c1"}),
        logged("gen_ai.choice", {"index": "0", "message": {"role": "assistant", "content": "A."}}),
    ))}, ONE, calls=["ls"], results=["y"], system="Be brief."),
    Variation("names of events as attributes", {"o.jsonl": lines(otlp_logs(
        {**logged("", {"content": "Hi"}, **{"event.name": "gen_ai.user.message"})},
        {**logged("", {"message": {"content": "A."}}, **{"event.name": "gen_ai.choice"})},
    ))}, ONE),
    Variation("other records between them", {"o.jsonl": lines(otlp_logs(
        logged("http.request", "GET /"), logged(DETAILS, **CHAT, **IO),
        {"body": {"stringValue": "price"}}))}, ONE),
    Variation("a call both as a span and as a record", {"o.jsonl": lines(
        otlp_spans(chat_span(1, **IO_TEXT)), otlp_logs(logged(DETAILS, **CHAT, **IO)))}, ONE),
    Variation("records of a call in two batches", {"o.jsonl": lines(
        otlp_logs(logged("gen_ai.system.message", {"content": "Be brief."}), ASKED_IN_RECORD),
        otlp_logs(ANSWERED_IN_RECORD))}, ONE, system="Be brief."),
    Variation("records of calls in two traces whose spans have the same id", {"o.jsonl": lines(
        otlp_logs(ASKED_IN_RECORD, {**ASKED_IN_RECORD, "traceId": "t2"}),
        otlp_logs(ANSWERED_IN_RECORD, {**ANSWERED_IN_RECORD, "traceId": "t2"}))}, ONE * 2),
    Variation("records without an answer", {"o.jsonl": lines(
        otlp_logs(logged("gen_ai.user.message", {"content": "Hi"}, span="s2")),
        otlp_logs(logged(DETAILS, **CHAT, **IO)))}, ONE, problem="messages and no answer"),
    Variation("records with only an answer", {"o.jsonl": lines(
        otlp_logs(logged("gen_ai.choice", {"message": {"content": "A."}}, span="s2")),
        otlp_logs(logged(DETAILS, **CHAT, **IO)))}, ONE, problem="an answer and no messages"),
    Variation("records without the id of a span", {"o.jsonl": lines(otlp_logs(
        {**ASKED_IN_RECORD, "spanId": ""}, {**ANSWERED_IN_RECORD, "spanId": ""},
        logged(DETAILS, span="", **CHAT, **IO)))}, ONE, problem="2 messages in log records"),
    Variation("one record without the id of a span", {"o.jsonl": lines(otlp_logs(
        {**ASKED_IN_RECORD, "spanId": ""}, logged(DETAILS, span="", **CHAT, **IO)))}, ONE,
        problem="nothing tells which call it belongs to"),
    Variation("a span whose messages are records of its batch", {"o.jsonl": lines(
        {**otlp_spans(chat_span(1)), **otlp_logs(ASKED_IN_RECORD, ANSWERED_IN_RECORD)})}, ONE),
    Variation("spans whose messages are records of another batch", {"o.jsonl": lines(
        otlp_spans(chat_span(1)), otlp_logs(ASKED_IN_RECORD, ANSWERED_IN_RECORD))}, ONE),
    Variation("a score beside a span with its messages", {"o.jsonl": lines(
        otlp_spans(chat_span(1, **IO)), otlp_logs(logged("gen_ai.evaluation.result", **CHAT)))},
        ONE),
    Variation("a score beside a span without messages", {"o.jsonl": lines(
        otlp_spans(chat_span(1), chat_span(2, **IO)),
        otlp_logs(logged("gen_ai.evaluation.result", **CHAT)))}, ONE, problem="no messages"),
    Variation("a span without messages among others", {"o.jsonl": lines(
        otlp_spans(chat_span(1), chat_span(2, **IO_TEXT)))}, ONE, problem="no messages"),
)  # fmt: skip


def test_an_answer_that_is_a_log_record_of_a_span_with_messages_is_named(tmp_path):
    inputs = {name: value for name, value in IO.items() if "input" in name}
    batches = otlp_spans(chat_span(1, **inputs), chat_span(2, **IO)), otlp_logs(ANSWERED_IN_RECORD)
    (tmp_path / "o.jsonl").write_text(file_text(lines(*batches)))
    problems = read_logs([tmp_path]).problems
    assert any("an answer and no messages" in problem for problem in problems)


PRINTED = json.dumps(otel_span([ASKED], [ANSWERED]), indent=4)
CUT = f"{json.dumps([HI, A])}\n{json.dumps([HI, A])}".encode("utf-16")[:-7]

test_files_that_are_written_otherwise = variations(
    Variation("spans that are printed one after the other",
              {"spans.json": f"{PRINTED}\n{PRINTED}\n"}, ONE, format="otel"),
    Variation("a name in capitals", {"LOG.JSON": json.dumps([HI, A], indent=2)}, ONE),
    Variation("UTF-16, as PowerShell redirects output",
              {"u.jsonl": f"{json.dumps([HI, A])}\r\n".encode("utf-16")}, ONE),
    Variation("UTF-16 with the high byte first",
              {"u.jsonl": b"\xfe\xff" + f"{json.dumps([HI, A])}\r\n".encode("utf-16-be")}, ONE),
    Variation("a document in UTF-16",
              {"u.json": json.dumps([HI, A], indent=2).encode("utf-16")}, ONE),
    Variation("UTF-16 that was cut in a character", {"u.jsonl": CUT},
              ONE, problem="line 2: it is not JSON"),
)  # fmt: skip


def test_logs_with_names_in_capitals_are_found_in_folders(tmp_path):
    (tmp_path / "A.JSONL").write_text(json.dumps([HI, A]) + "\n")
    (tmp_path / "B.7Z").write_bytes(b"7z")
    logs = read_logs(tmp_path)
    assert [len(dialog.turns) for dialog in logs.dialogs] == [1]
    assert len(logs.problems) == 1 and "is compressed" in logs.problems[0]


def test_the_logs_in_a_zip_are_read_and_its_other_files_are_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("data/conversations.json", json.dumps([HI, A]))
        archive.writestr("data/user.json", json.dumps({"id": "u"}))
        archive.writestr("chat.html", "<html>")
    logs = read_logs(tmp_path)
    assert [[turn.user for turn in dialog.turns] for dialog in logs.dialogs] == [["Hi"]]
    assert len(logs.problems) == 1 and "user.json" in logs.problems[0]


def test_a_zip_that_is_torn_or_has_no_log_is_named(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("chat.html", "<html>")
    (tmp_path / "c.jsonl").write_text(json.dumps([HI, A]))
    torn, empty = read_logs(tmp_path).problems
    assert "cannot be unpacked" in torn and "holds no file" in empty


# Inspect


def sample(*messages: Any) -> dict:
    whole = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "messages": [*messages]}
    return {"s.jsonl": lines(whole)}


SEARCHED = {"type": "tool_use", "tool_type": "web_search", "id": "w1", "name": "web_search",
            "arguments": '{"query": "ls"}', "result": "y"}  # fmt: skip
GOES_ON = "Please proceed to the next step using your best judgement."
INPUT = {**HI, "source": "input"}

test_logs_of_inspect = variations(
    Variation(
        "a tool that the provider runs",
        sample(INPUT, {"role": "assistant", "content": [SEARCHED, text("A.")]}),
        ONE, format="inspect", calls=["ls"], results=["y"],
    ),
    Variation(
        "a tool that the provider could not run",
        sample(INPUT, {"role": "assistant", "content": [
            {**SEARCHED, "result": "", "error": "no"}, text("A.")]}),
        ONE, calls=["ls"], results=["no"],
    ),
    Variation(
        "the scaffold's words where the model stopped",
        sample(INPUT, {"role": "assistant", "content": "A"}, {"role": "user", "content": GOES_ON},
               {"role": "assistant", "content": "."}),
        [[("Hi", "A\n\n.")]], seen=[GOES_ON],
    ),
    Variation(
        "the scaffold's words with the name of its tool",
        sample(INPUT, {"role": "assistant", "content": "A"},
               {"role": "user", "content": f"\n{GOES_ON} If you believe you have completed the"
                " task, please call the `submit()` tool with your final answer.\n"},
               {"role": "assistant", "content": "."}),
        [[("Hi", "A\n\n.")]],
    ),
    Variation(
        "a warning before a compaction",
        sample(INPUT, {"role": "user", "content": "Context compaction approaching. Use memory() to"
                       " save concise notes on:\n- price"}, A),
        ONE,
    ),
    Variation(
        "the same words from an operator",
        sample(INPUT, A, {"role": "user", "content": GOES_ON, "source": "operator"},
               {"role": "assistant", "content": "B."}),
        [[("Hi", "A."), (GOES_ON, "B.")]],
    ),
    Variation(
        "more of a simulated user",
        sample(INPUT, A, {"role": "user", "content": "More?"},
               {"role": "assistant", "content": "B."}),
        TWO,
    ),
)  # fmt: skip


def test_a_compaction_of_the_provider_in_a_log_of_inspect(tmp_path):
    summary = {"type": "anthropic_compact", "content": "We spoke of Rome."}
    compacted = {"type": "data", "data": {"compaction_metadata": summary}}
    messages = [INPUT, A, {"role": "user", "content": "More?"},
            {"role": "assistant", "content": [compacted, text("B.")]}]  # fmt: skip
    context = context_before_last_reply(tmp_path, "s.jsonl", sample(*messages)["s.jsonl"])
    assert context == ["We spoke of Rome."]


# OpenInference


def llm_span(number: int = 1, **fields: Any) -> dict:
    context = {"trace_id": "t", "span_id": f"s{number}"}
    return {"context": context, "span_kind": "LLM", "start_time": str(number),
            "attributes": {"llm": fields}}  # fmt: skip


def content_part(kind: str, **fields: Any) -> dict:
    return {"message_content": {"type": kind, **fields}}


CALL_PART = {**content_part("tool_use"), "tool_call": {
    "id": "c1", "function": {"name": "sh", "arguments": '{"c": "ls"}'}}}  # fmt: skip
ASKED_IN_SPAN = [{"message": HI}]
IN_ORDER = [content_part("reasoning", text="price"), content_part("text", text="A."), CALL_PART]
DOTTED = {
    "context.trace_id": "t", "context.span_id": "s", "span_kind": "LLM",
    "attributes.llm.input_messages.0.message.role": "user",
    "attributes.llm.input_messages.0.message.content": "Hi",
    "attributes.llm.output_messages.0.message.role": "assistant",
    **{f"attributes.llm.output_messages.0.message.contents.0.{name}": value for name, value in {
        "message_content.type": "text", "message_content.text": "A."}.items()},
    **{f"attributes.llm.output_messages.0.message.contents.1.{name}": value for name, value in {
        "message_content.type": "tool_use", "tool_call.id": "c1", "tool_call.function.name": "sh",
        "tool_call.function.arguments": '{"c": "ls"}'}.items()},
}  # fmt: skip


def openinference_span(number: int, texts: list[str], answer: str) -> dict:
    fields = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer}  # fmt: skip
    for n, words in enumerate(texts):
        fields[f"llm.input_messages.{n}.message.role"] = "assistant" if n % 2 else "user"
        fields[f"llm.input_messages.{n}.message.content"] = words
    return {"traceId": "t1", "spanId": f"s{number}", "startTimeUnixNano": str(number),
            "attributes": attributes(**fields)}  # fmt: skip


test_spans_of_openinference = variations(
    Variation(
        "reasoning, text and a call in order",
        {"x.jsonl": lines(llm_span(input_messages=ASKED_IN_SPAN, output_messages=[
            {"message": {"role": "assistant", "contents": IN_ORDER}}]))},
        ONE, format="phoenix", calls=["ls"],
    ),
    Variation(
        "the same call among the tool calls too",
        {"x.jsonl": lines(llm_span(input_messages=ASKED_IN_SPAN, output_messages=[
            {"message": {"role": "assistant", "contents": IN_ORDER, "tool_calls": [
                {"tool_call": CALL_PART["tool_call"]}]}}]))},
        ONE, calls=["ls"],
    ),
    Variation("dotted names", {"x.jsonl": lines(DOTTED)}, ONE, calls=["ls"]),
    Variation(
        "a call of an older version",
        {"x.jsonl": lines(llm_span(input_messages=ASKED_IN_SPAN, output_messages=[
            {"message": {"role": "assistant", "content": "A.", "function_call_name": "sh",
                         "function_call_arguments_json": '{"c": "ls"}'}}]))},
        ONE, calls=["ls"],
    ),
    Variation(
        "a batch of OTLP in the order in which the spans ended",
        {"o.jsonl": lines(otlp_spans(
            openinference_span(2, ["Hi", "A.", "More?"], "B."),
            openinference_span(1, ["Hi"], "A.")))},
        TWO,
    ),
)  # fmt: skip


# Logfire


def logfire_span(*events: dict) -> dict:
    span = otel_span([], [])
    span["attributes"] = {"gen_ai.operation.name": "chat", "events": json.dumps(events)}
    return span


def named_event(name: str, **fields: Any) -> dict:
    return {**fields, "gen_ai.system": "openai", "event.name": f"gen_ai.{name}"}


SAYS_HI = named_event("user.message", role="user", content="Hi")
CHOICE = named_event("choice", index=0, message={"role": "assistant", "content": "A."})

test_spans_of_logfire = variations(
    Variation("a question and its answer", {"x.jsonl": lines(logfire_span(SAYS_HI, CHOICE))}, ONE,
              format="otel"),
    Variation("a system prompt", {"x.jsonl": lines(logfire_span(
        named_event("system.message", role="system", content="Be brief."), SAYS_HI, CHOICE))}, ONE,
        system="Be brief."),
    Variation("a call", {"x.jsonl": lines(logfire_span(
        SAYS_HI, named_event("assistant.message", **CALLS),
        named_event("tool.message", content="y", role="tool", id="c1"), CHOICE))}, ONE,
        calls=["ls"], results=["y"]),
    Variation("a call as the answer", {"x.jsonl": lines(logfire_span(
        SAYS_HI, named_event("choice", index=0, message=CALLS)))}, [[("Hi", "")]], calls=["ls"]),
)  # fmt: skip


# the spend logs of LiteLLM from 1.80 on, whose column `messages` is empty


def spent(request: Any, response: Any, **fields: Any) -> dict:
    row = {"request_id": "r", "call_type": "acompletion", "status": "success", "messages": {},
           "startTime": "2026-10-01T10:00:00Z"}  # fmt: skip
    return {**row, "proxy_server_request": request, "response": response, **fields}


REQUESTED = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, HI]}
RESPONSE = {"choices": [{"message": A, "finish_reason": "stop"}]}
RESPONSES = {"model": "m", "input": "Hi", "instructions": "Be brief."}
OF_ANTHROPIC = {"model": "m", "system": "Be brief.", "messages": [HI]}

test_spend_logs_of_litellm = variations(
    Variation("a request", {"x.jsonl": lines(spent(REQUESTED, RESPONSE))}, ONE, format="litellm",
              system="Be brief."),
    Variation("columns of JSON", {"x.jsonl": lines(spent(
        json.dumps(REQUESTED), json.dumps(RESPONSE), messages="{}"))}, ONE, system="Be brief."),
    Variation("a request with its headers", {"x.jsonl": lines(spent(
        {"url": "u", "method": "POST", "headers": {}, "body": REQUESTED}, RESPONSE))}, ONE),
    Variation("a request of the Responses API", {"x.jsonl": lines(spent(
        RESPONSES, {"output": [SAID]}, call_type="aresponses"))},
        ONE, system="Be brief."),
    Variation("a request of Anthropic's API", {"x.jsonl": lines(spent(
        OF_ANTHROPIC, {"role": "assistant", "content": [text("A.")]},
        call_type="anthropic_messages"))}, ONE, system="Be brief."),
    Variation("a page of the proxy's interface", {"x.json": {"data": [
        spent(REQUESTED, RESPONSE)], "total": 1}}, ONE),
    Variation("neither messages nor a request", {"x.jsonl": lines(spent({}, {}))},
              refused="x.jsonl"),
)  # fmt: skip


# LibreChat in 2026


def libre(name: str, parent: str, is_user: bool, *content: Any) -> dict:
    return {
        "messageId": name,
        "parentMessageId": parent,
        "isCreatedByUser": is_user,
        "text": "",
        "content": [text(part) if isinstance(part, str) else part for part in content],
    }


def libre_chat(*messages: dict) -> dict:
    return {"x.json": {"conversationId": "c", "endpoint": "agents", "messages": [*messages]}}


LIBRE_HI = libre("1", "0", True, "Hi")
FUNCTION = {"type": "function", "id": "c1", "function": {
    "name": "bash", "arguments": '{"command": "ls"}', "output": "a.py"}}  # fmt: skip
INTERPRETER = {"type": "code_interpreter", "id": "c2", "code_interpreter": {
    "input": "1 + 1", "outputs": [{"type": "logs", "logs": "2"}]}}  # fmt: skip
SEARCH = {"type": "file_search", "id": "c3", "file_search": {}}

test_chats_of_librechat_in_2026 = variations(
    Variation("calls of assistants", libre_chat(LIBRE_HI, libre("2", "1", False, *(
        {"type": "tool_call", "tool_call": call} for call in (FUNCTION, INTERPRETER, SEARCH)),
        "A.")), ONE, calls=["ls", "1 + 1", ""], results=["a.py", "2"]),
    Variation("another agent goes on", libre_chat(LIBRE_HI, libre("2", "1", False, {
        "type": "agent_update", "agent_update": {"agentId": "a", "runId": "r", "index": 1}},
        "A.")), ONE),
    Variation("an error after a part of the reply", libre_chat(LIBRE_HI, libre(
        "2", "1", False, "A.", {"type": "error", "error": "429", "text": "price"})), ONE),
    Variation("a summary of the dialog so far", libre_chat(
        LIBRE_HI, libre("2", "1", False, "A."), libre("3", "2", True, "More?"),
        libre("4", "3", False, {"type": "summary", "content": [text("So far.")], "tokenCount": 9},
              "B.")), TWO, seen=[]),
)  # fmt: skip


# Inspect in summer 2026: large samples in several files


def inspect_archive(path: Path, refs: list[Any], first: int = 2, shell: bool = True) -> Path:
    messages = [{**HI, "source": "input"}, {"role": "system", "content": "unused"},
                {**A, "content": "attachment://1"}]  # fmt: skip
    folder = "samples/1_epoch_1"
    sample = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "message_refs": refs}
    files = {
        "header.json": {"version": 2, "status": "success", "eval": {"task": "x"}},
        f"{folder}/skeleton.json": {}, f"{folder}/events/0.json": [], f"{folder}/calls/0.json": [],
        f"{folder}/messages/{first}.json": messages[first:],
        f"{folder}/messages/0.json": messages[:first],
        f"{folder}/attachments/0.json": ["unused", "A."],
    }  # fmt: skip
    if shell:
        files[f"{folder}/sample.json"] = sample
    with zipfile.ZipFile(path, "w") as file:
        for name, value in files.items():
            file.writestr(name, json.dumps(value))
    return path


@pytest.mark.parametrize("first", [1, 2])
def test_a_sample_of_inspect_in_several_files_is_a_dialog(first, tmp_path):
    path = inspect_archive(tmp_path / "log.eval", [[0, 1], [2, 3]], first)
    logs = read_logs([path])
    turns = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert turns == ONE and not logs.problems and logs.formats == {"inspect": 1}


def test_the_messages_of_a_sample_in_several_files_may_be_in_the_one_that_describes_it(tmp_path):
    sample = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "messages": [HI, A]}
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {}}))
        file.writestr("samples/1_epoch_1/sample.json", json.dumps(sample))
        file.writestr("samples/1_epoch_1/attachments/0.json", "[]")
    logs = read_logs([path])
    turns = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert turns == ONE and not logs.problems


@pytest.mark.parametrize("bounds", [[2, 9], [0], "x", None, [1, 1]])
def test_messages_that_a_sample_in_several_files_lacks_are_named(bounds, tmp_path):
    path = inspect_archive(tmp_path / "log.eval", [[0, 1], bounds, [2, 3]])
    (problem,) = read_logs([path]).problems
    assert "are not in its files" in problem


def test_a_sample_in_several_files_without_the_one_that_describes_it_is_named(tmp_path):
    path = inspect_archive(tmp_path / "log.eval", [], shell=False)
    (file,) = read_transcripts(path)
    assert not file.transcripts and "sample.json is missing" in file.unread[0]


# faults of logs in any format


def test_a_long_line_that_was_torn_is_refused_at_once(tmp_path):
    """Its many parts begin as the line does, so each might be the record that is written again."""
    parts = ",".join('{"type":"text","text":"x"}' for _ in range(100_000))
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"user","message":{"role":"user","content":[' + parts + ',{"cut')
    start = time.process_time()
    with pytest.raises(UsageError):
        read_logs([path])
    assert time.process_time() - start < 5


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


@pytest.mark.parametrize("kind", [{"a": 1}, ["a"]])
def test_a_line_of_claude_code_whose_type_is_no_text_is_reported(kind, tmp_path):
    path = tmp_path / "s.jsonl"
    odd = {**claude("x", "o1", "a1"), "type": kind}
    path.write_text(file_text(lines(CU1, {**CA1, "parentUuid": "u1"}, odd)))
    logs = read_logs([path])
    assert len(logs.dialogs) == 1 and len(logs.problems) == 1


@pytest.mark.parametrize("rendered", ["Hi", "<prompt>\nHi\n</prompt>"])
def test_the_users_words_in_a_message_as_vs_code_rendered_it_are_said_once(rendered, tmp_path):
    shown = {
        "kind": "toolInvocationSerialized", "toolId": "run", "toolCallId": "t", "isComplete": True,
        "toolSpecificData": {"commandLine": {"original": "ls"},
                             "terminalCommandOutput": {"text": "a.py"}},
        "resultDetails": {"output": [{"value": "a.py"}]},
    }  # fmt: skip
    metadata = {"renderedUserMessage": [{"type": 1, "text": rendered}]}
    request = {"requestId": "r1", "message": {"text": "Hi"}, "response": [shown, {"value": "A."}],
               "result": {"metadata": metadata}}  # fmt: skip
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"version": 3, "sessionId": "s", "requests": [request]}))
    (file,) = read_transcripts(path)
    texts = [event.text for event in file.transcripts[0].path if not event.call]
    assert texts == ["Hi", "a.py", "A."]
