"""Logs of Inspect, in variations."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from log_variations import (
    HI,
    ONE_TURN,
    TWO_TURNS,
    A,
    Variation,
    context_before_last_reply,
    lines,
    text,
    variations,
)

from holdfast.logs import read_logs
from holdfast.logs.context import Contexts
from holdfast.transcripts import read_transcripts


def sample(*messages: dict, **fields: Any) -> dict:
    return {
        "id": 1,
        "epoch": 1,
        "input": "Hi",
        "target": "",
        "messages": [*messages],
        "output": {"choices": []},
        **fields,
    }


def log_of(*samples: dict, **fields: Any) -> dict:
    return {
        "log.json": {
            "version": 2,
            "status": "success",
            "eval": {"task": "t"},
            "samples": [*samples],
            **fields,
        }
    }


HI_MESSAGE, A_MESSAGE = (
    {**HI, "id": "m1", "source": "input"},
    {**A, "id": "m2", "source": "generate"},
)

test_logs_of_inspect = variations(
    Variation("a log", log_of(sample(HI_MESSAGE, A_MESSAGE)), ONE_TURN, format="inspect"),
    Variation(
        "two epochs",
        log_of(sample(HI_MESSAGE, A_MESSAGE), sample(HI_MESSAGE, A_MESSAGE, epoch=2)),
        [*ONE_TURN, *ONE_TURN],
    ),
    Variation(
        "reasoning",
        log_of(
            sample(
                HI_MESSAGE,
                {
                    **A_MESSAGE,
                    "content": [
                        {"type": "reasoning", "reasoning": "price", "signature": None},
                        text("A."),
                    ],
                },
            )
        ),
        ONE_TURN,
    ),
    Variation(
        "a call",
        log_of(
            sample(
                HI_MESSAGE,
                {
                    **A_MESSAGE,
                    "content": "",
                    "tool_calls": [
                        {
                            "id": "c",
                            "function": "bash",
                            "arguments": {"cmd": "ls"},
                            "type": "function",
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c", "function": "bash", "content": "y"},
                A_MESSAGE,
            )
        ),
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a call that failed",
        log_of(
            sample(
                HI_MESSAGE,
                {
                    **A_MESSAGE,
                    "content": "",
                    "tool_calls": [{"id": "c", "function": "bash", "arguments": {"cmd": "ls"}}],
                },
                {
                    "role": "tool",
                    "tool_call_id": "c",
                    "content": "",
                    "error": {"type": "timeout", "message": "no"},
                },
                A_MESSAGE,
            )
        ),
        ONE_TURN,
        results=["no"],
    ),
    Variation(
        "attachments",
        log_of(
            sample({**HI_MESSAGE, "content": "attachment://x"}, A_MESSAGE, attachments={"x": "Hi"})
        ),
        ONE_TURN,
    ),
    Variation(
        "attachments within a call",
        log_of(
            sample(
                HI_MESSAGE,
                {
                    **A_MESSAGE,
                    "tool_calls": [
                        {"id": "c", "function": "bash", "arguments": {"cmd": "attachment://x"}}
                    ],
                },
                attachments={"x": "ls"},
            )
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "an error",
        log_of(sample(HI_MESSAGE, A_MESSAGE, error={"message": "429"})),
        ONE_TURN,
        problem="429",
    ),
    Variation(
        "a log of a later version",
        log_of(sample(HI_MESSAGE, A_MESSAGE), version=9),
        ONE_TURN,
        problem="version",
    ),
    Variation(
        "a summary of the dialog so far",
        log_of(
            sample(
                HI_MESSAGE,
                A_MESSAGE,
                {
                    "role": "user",
                    "content": "[CONTEXT COMPACTION SUMMARY]",
                    "metadata": {"summary": True},
                },
                {"role": "user", "content": "More?"},
                {**A, "content": "B."},
            )
        ),
        TWO_TURNS,
    ),
    Variation("samples in lines", {"s.jsonl": lines(sample(HI_MESSAGE, A_MESSAGE))}, ONE_TURN),
    Variation(
        "a tool of the provider's",
        log_of(
            sample(
                HI_MESSAGE,
                {
                    **A_MESSAGE,
                    "content": [
                        {
                            "type": "tool_use",
                            "tool_type": "web_search",
                            "id": "w",
                            "name": "web_search",
                            "arguments": '{"query": "x"}',
                            "result": "y",
                        },
                        text("A."),
                    ],
                },
            )
        ),
        ONE_TURN,
        calls=["x"],
    ),
    Variation(
        "an image",
        log_of(
            sample(
                {
                    **HI_MESSAGE,
                    "content": [text("Hi"), {"type": "image", "image": "data:", "detail": "auto"}],
                },
                A_MESSAGE,
            )
        ),
        ONE_TURN,
        problem="1 of the type 'image'",
    ),
)


def test_a_summary_in_a_log_of_inspect_replaces_all_but_the_input(tmp_path):
    summary = {"role": "user", "content": "Summary.", "metadata": {"summary": True}}
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps(log_of(sample(HI_MESSAGE, A_MESSAGE, summary, A_MESSAGE))["log.json"])
    )
    (dialog,) = read_logs([path]).dialogs
    events = dialog.transcript.path
    context = Contexts(events).before(len(events) - 1)
    assert [event.text for event in context.events] == ["Hi", "Summary."]


def sample_line(*messages: Any) -> dict:
    whole = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "messages": [*messages]}
    return {"s.jsonl": lines(whole)}


SEARCHED = {
    "type": "tool_use",
    "tool_type": "web_search",
    "id": "w1",
    "name": "web_search",
    "arguments": '{"query": "ls"}',
    "result": "y",
}
GOES_ON = "Please proceed to the next step using your best judgement."
INPUT = {**HI, "source": "input"}

test_logs_of_inspect_in_2026 = variations(
    Variation(
        "a tool that the provider runs",
        sample_line(INPUT, {"role": "assistant", "content": [SEARCHED, text("A.")]}),
        ONE_TURN,
        format="inspect",
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a tool that the provider could not run",
        sample_line(
            INPUT,
            {
                "role": "assistant",
                "content": [{**SEARCHED, "result": "", "error": "no"}, text("A.")],
            },
        ),
        ONE_TURN,
        calls=["ls"],
        results=["no"],
    ),
    Variation(
        "the scaffold's words where the model stopped",
        sample_line(
            INPUT,
            {"role": "assistant", "content": "A"},
            {"role": "user", "content": GOES_ON},
            {"role": "assistant", "content": "."},
        ),
        [[("Hi", "A\n\n.")]],
        seen=[GOES_ON],
    ),
    Variation(
        "the scaffold's words with the name of its tool",
        sample_line(
            INPUT,
            {"role": "assistant", "content": "A"},
            {
                "role": "user",
                "content": f"\n{GOES_ON} If you believe you have completed the"
                " task, please call the `submit()` tool with your final answer.\n",
            },
            {"role": "assistant", "content": "."},
        ),
        [[("Hi", "A\n\n.")]],
    ),
    Variation(
        "a warning before a compaction",
        sample_line(
            INPUT,
            {
                "role": "user",
                "content": "Context compaction approaching. Use memory() to"
                " save concise notes on:\n- price",
            },
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "the same words from an operator",
        sample_line(
            INPUT,
            A,
            {"role": "user", "content": GOES_ON, "source": "operator"},
            {"role": "assistant", "content": "B."},
        ),
        [[("Hi", "A."), (GOES_ON, "B.")]],
    ),
    Variation(
        "more of a simulated user",
        sample_line(
            INPUT, A, {"role": "user", "content": "More?"}, {"role": "assistant", "content": "B."}
        ),
        TWO_TURNS,
    ),
)


def test_a_compaction_of_the_provider_in_a_log_of_inspect(tmp_path):
    summary = {"type": "anthropic_compact", "content": "We spoke of Rome."}
    compacted = {"type": "data", "data": {"compaction_metadata": summary}}
    messages = [
        INPUT,
        A,
        {"role": "user", "content": "More?"},
        {"role": "assistant", "content": [compacted, text("B.")]},
    ]
    context = context_before_last_reply(tmp_path, "s.jsonl", sample_line(*messages)["s.jsonl"])
    assert context == ["We spoke of Rome."]


def split_archive(path: Path, refs: list[Any], first: int = 2, shell: bool = True) -> Path:
    messages = [
        {**HI, "source": "input"},
        {"role": "system", "content": "unused"},
        {**A, "content": "attachment://1"},
    ]
    folder = "samples/1_epoch_1"
    sample_line = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "message_refs": refs}
    files = {
        "header.json": {"version": 2, "status": "success", "eval": {"task": "x"}},
        f"{folder}/skeleton.json": {},
        f"{folder}/events/0.json": [],
        f"{folder}/calls/0.json": [],
        f"{folder}/messages/{first}.json": messages[first:],
        f"{folder}/messages/0.json": messages[:first],
        f"{folder}/attachments/0.json": ["unused", "A."],
    }
    if shell:
        files[f"{folder}/sample.json"] = sample_line
    with zipfile.ZipFile(path, "w") as file:
        for name, value in files.items():
            file.writestr(name, json.dumps(value))
    return path


@pytest.mark.parametrize("first", [1, 2])
def test_a_sample_of_inspect_in_several_files_is_a_dialog(first, tmp_path):
    path = split_archive(tmp_path / "log.eval", [[0, 1], [2, 3]], first)
    logs = read_logs([path])
    turns = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert turns == ONE_TURN and not logs.problems and logs.formats == {"inspect": 1}


def test_the_messages_of_a_sample_in_several_files_may_be_in_the_one_that_describes_it(tmp_path):
    sample_line = {"id": 1, "epoch": 1, "input": "Hi", "target": "", "messages": [HI, A]}
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {}}))
        file.writestr("samples/1_epoch_1/sample.json", json.dumps(sample_line))
        file.writestr("samples/1_epoch_1/attachments/0.json", "[]")
    logs = read_logs([path])
    turns = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert turns == ONE_TURN and not logs.problems


@pytest.mark.parametrize("bounds", [[2, 9], [0], "x", None, [1, 1]])
def test_messages_that_a_sample_in_several_files_lacks_are_named(bounds, tmp_path):
    path = split_archive(tmp_path / "log.eval", [[0, 1], bounds, [2, 3]])
    (problem,) = read_logs([path]).problems
    assert "are not in its files" in problem


def test_a_sample_in_several_files_without_the_one_that_describes_it_is_named(tmp_path):
    path = split_archive(tmp_path / "log.eval", [], shell=False)
    (file,) = read_transcripts(path)
    assert not file.transcripts and "sample.json is missing" in file.unread[0]
