"""Sessions of Gemini CLI in 2026: results as messages, and contexts that are written again."""

import json
from typing import Any

import pytest
from gemini_cli_lines import message, session
from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    context_before_last_reply,
    file_text,
    lines,
    variations,
)

from holdfast.logs import read_logs
from holdfast.transcripts import read_transcripts


def returned(output: str, call: str = "c1") -> dict:
    response = {"id": call, "name": "run_shell_command", "response": {"output": output}}
    return {"functionResponse": response}


def called(command: str, call: str = "c1") -> dict:
    arguments = {"command": command}
    return {"functionCall": {"id": call, "name": "run_shell_command", "args": arguments}}


def recorded(command: str, result: Any, call: str = "c1") -> dict:
    return {
        "id": call,
        "name": "run_shell_command",
        "args": {"command": command},
        "status": "success",
        "timestamp": "t",
        "result": result,
    }


def set_context(*messages: dict) -> dict:
    return {"$set": {"messages": [*messages], "lastUpdated": "t"}}


HEAD = {"sessionId": "g1", "projectHash": "h", "startTime": "t", "kind": "main"}
HI, A = message("1", "user", [{"text": "Hi"}]), message("4", "gemini", "A.")
MORE, B = message("5", "user", [{"text": "More?"}]), message("6", "gemini", "B.")
CALL = message("2", "gemini", "", toolCalls=[recorded("ls", [returned("a.py")])])
RESULT = message("3", "user", [returned("a.py")])
BOTH_RESULTS = [returned("a.py"), returned("b.py", "c2")]
REWRITTEN = [  # the messages before, with other ids, and results that were shortened
    message("11", "user", [{"text": "Hi"}]),
    message("12", "gemini", [called("ls")]),
    message("13", "user", [returned("<tool_output_masked>")]),
    message("14", "gemini", [{"text": "A."}]),
]

test_sessions_of_gemini_cli_in_summer_2026 = variations(
    Variation(
        "a result that is a message too",
        session(HEAD, HI, CALL, RESULT, A),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a result that only a message has",
        session(HEAD, HI, message("2", "gemini", [called("ls")]), RESULT, A),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "calls at once, each with the results of all",
        session(
            HEAD,
            HI,
            message(
                "2",
                "gemini",
                [called("ls"), called("pwd", "c2")],
                toolCalls=[recorded("ls", BOTH_RESULTS), recorded("pwd", BOTH_RESULTS, "c2")],
            ),
            message("3", "user", BOTH_RESULTS),
            A,
        ),
        ONE_TURN,
        calls=["ls", "pwd"],
        results=["a.py", "b.py"],
    ),
    Variation(
        "a picture that a tool returned",
        session(
            HEAD, HI, CALL, message("8", "info", [{"inlineData": {"mimeType": "image/png"}}]), A
        ),
        ONE_TURN,
        problem="1 of the type 'inlineData'",
    ),
    Variation(
        "a picture within a result",
        session(
            HEAD,
            HI,
            message(
                "2",
                "gemini",
                "",
                toolCalls=[
                    recorded(
                        "ls",
                        [
                            {
                                "functionResponse": {
                                    "id": "c1",
                                    "response": {"output": "x"},
                                    "parts": [{"inlineData": {}}],
                                }
                            }
                        ],
                    )
                ],
            ),
            A,
        ),
        ONE_TURN,
        results=["x"],
        problem="1 of the type 'inlineData'",
    ),
    Variation(
        "what the program wrote as the user",
        session(
            HEAD,
            message(
                "7",
                "user",
                [
                    {
                        "text": "Here is the user's editor context as a JSON object."
                        " This is for your information"
                    }
                ],
            ),
            HI,
            message("8", "user", [{"text": "I ran the following shell command:\n```sh\nls\n```"}]),
            message("9", "user", [{"text": "System: Potential loop detected. Details: x"}]),
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "results that were shortened, with every message again",
        session(HEAD, HI, CALL, RESULT, A, *REWRITTEN, set_context(*REWRITTEN), MORE, B),
        TWO_TURNS,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a rewind to a message that was written again",
        session(
            HEAD,
            HI,
            CALL,
            RESULT,
            A,
            MORE,
            message("7", "gemini", "No."),
            *REWRITTEN,
            message("15", "user", [{"text": "More?"}]),
            message("16", "gemini", [{"text": "No."}]),
            set_context(
                *REWRITTEN,
                message("15", "user", [{"text": "More?"}]),
                message("16", "gemini", [{"text": "No."}]),
            ),
            {"$rewindTo": "15"},
            message("20", "user", "More?"),
            B,
        ),
        TWO_TURNS,
        calls=["ls"],
        results=["a.py"],
        problem="are left out",
    ),
    Variation(
        "a turn that was aborted after a compression",
        session(
            HEAD,
            HI,
            A,
            set_context(message("21", "user", "So far."), message("22", "gemini", "Got it.")),
            message("23", "user", "Stop"),
            message("24", "gemini", "No."),
            set_context(message("21", "user", "So far."), message("22", "gemini", "Got it.")),
            MORE,
            B,
        ),
        TWO_TURNS,
        problem="2 messages are left out",
    ),
    Variation(
        "a question that was aborted before there was a reply",
        session(HEAD, HI, A, message("23", "user", "Stop"), set_context(HI, A), MORE, B),
        TWO_TURNS,
        problem="1 message is left out",
    ),
    Variation(
        "a resumed session, whose results get messages of their own",
        session(
            HEAD,
            HI,
            CALL,
            RESULT,
            A,
            {"$set": {"sessionId": "g1"}},
            set_context(
                message("0", "user", [{"text": "<session_context>x</session_context>"}]),
                HI,
                {**CALL, "content": [called("ls")]},
                message("2_response", "user", [returned("a.py")]),
                A,
            ),
            MORE,
            B,
        ),
        TWO_TURNS,
        calls=["ls"],
        results=["a.py"],
        seen=["<session_context>x</session_context>"],
    ),
    Variation(
        "two compressions",
        session(
            HEAD,
            HI,
            A,
            set_context(message("21", "user", "One."), message("22", "gemini", "Got it.")),
            MORE,
            B,
            set_context(message("31", "user", "Two."), message("32", "gemini", "Got it.")),
        ),
        TWO_TURNS,
    ),
    Variation(
        "a result that came after its call",
        session(
            HEAD,
            HI,
            message("2", "gemini", "", toolCalls=[recorded("ls", None)]),
            set_context(HI, CALL),
            A,
        ),
        ONE_TURN,
        calls=["ls"],
        results=["a.py"],
    ),
    Variation(
        "a context whose messages have no ids",
        session(
            HEAD,
            set_context(
                *(
                    {name: value for name, value in message.items() if name != "id"}
                    for message in (HI, A, MORE, B)
                )
            ),
        ),
        TWO_TURNS,
    ),
)


def test_a_rewind_of_gemini_cli_into_a_compression_that_was_taken_back_starts_anew(tmp_path):
    summary = set_context(message("21", "user", "So far."), message("22", "gemini", "Got it."))
    log = lines(HEAD, HI, A, summary, {"$rewindTo": "4"}, {"$rewindTo": "21"}, MORE, B)
    path = tmp_path / "s.jsonl"
    path.write_text(file_text(log))
    logs = read_logs([path])
    assert [turn.user for dialog in logs.dialogs for turn in dialog.turns] == ["More?"]
    assert len(logs.problems) == 2 and all("left out" in problem for problem in logs.problems)


@pytest.mark.parametrize("kind", ["compressed", "shortened"])
def test_a_message_of_gemini_cli_cannot_pass_for_one_that_the_reader_adds(tmp_path, kind):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({**HEAD, "messages": [HI, A, message("9", kind, "x"), MORE, B]}))
    logs = read_logs([path])
    assert len(logs.problems) == 1 and f"unknown type '{kind}'" in logs.problems[0]
    assert sum(len(dialog.turns) for dialog in logs.dialogs) == 2


def test_messages_that_a_compression_of_gemini_cli_keeps_stay_before_it(tmp_path):
    context = [message("21", "user", "So far."), MORE, B]
    late = [message("7", "user", "Why?"), message("8", "gemini", "C.")]
    last = [message("9", "user", "And?"), message("10", "gemini", "D.")]
    log = lines(
        HEAD, HI, A, MORE, B, set_context(*context), *late, set_context(*context, *late), *last
    )
    path = tmp_path / "s.jsonl"
    path.write_text(file_text(log))
    (file,) = read_transcripts(path)
    assert [event.text for event in file.transcripts[0].path] == [
        "Hi",
        "A.",
        "More?",
        "B.",
        "So far.",
        "Why?",
        "C.",
        "And?",
        "D.",
    ]


def test_a_result_that_gemini_cli_shortened_left_the_context(tmp_path):
    log = lines(HEAD, HI, CALL, RESULT, A, *REWRITTEN, set_context(*REWRITTEN), MORE, B)
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == ["Hi", "A.", "More?"]


def test_the_context_of_gemini_cli_after_an_aborted_turn_is_the_compression(tmp_path):
    summary = set_context(message("21", "user", "So far."), message("22", "gemini", "Got it."))
    log = lines(
        HEAD,
        HI,
        A,
        summary,
        message("23", "user", "Stop"),
        message("24", "gemini", "No."),
        summary,
        MORE,
        B,
    )
    assert context_before_last_reply(tmp_path, "s.jsonl", log) == ["So far.\nGot it.", "More?"]
