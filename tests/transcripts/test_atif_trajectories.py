"""Trajectories in ATIF: variations, compactions, results and subagents."""

import json
from typing import Any

from log_variations import (
    ONE_TURN,
    TWO_TURNS,
    Variation,
    check,
    context_before_last_reply,
    text,
    variations,
)

from holdfast.transcripts import EventKind, read_transcripts


def atif(*steps: dict, **fields: Any) -> dict:
    numbered = [{"step_id": n, **step} for n, step in enumerate(steps, start=1)]
    return {
        "t.json": {
            "schema_version": "ATIF-v1.6",
            "session_id": "s",
            "agent": {"name": "x"},
            "steps": numbered,
            **fields,
        }
    }


def step(source: str, message: Any, **fields: Any) -> dict:
    return {"source": source, "message": message, **fields}


HI, A = step("user", "Hi"), step("agent", "A.")
CALL = {"tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"x": "ls"}}]}

test_trajectories = variations(
    Variation("a trajectory", atif(HI, A), ONE_TURN, format="atif"),
    Variation(
        "messages in parts",
        atif(step("user", [text("Hi"), {"type": "image", "source": {}}]), A),
        ONE_TURN,
        problem="1 of the type 'image'",
    ),
    Variation(
        "calls that are null", atif(HI, {**A, "tool_calls": None, "observation": None}), ONE_TURN
    ),
    Variation(
        "a call and its result",
        atif(
            HI,
            step(
                "agent",
                "A.",
                **CALL,
                observation={"results": [{"source_call_id": "c", "content": "y"}]},
            ),
        ),
        ONE_TURN,
        calls=["ls"],
        results=["y"],
    ),
    Variation(
        "a result in parts",
        atif(
            HI,
            step(
                "agent",
                "A.",
                **CALL,
                observation={"results": [{"source_call_id": "c", "content": [text("y")]}]},
            ),
        ),
        ONE_TURN,
        results=["y"],
    ),
    Variation(
        "a result that is null",
        atif(
            HI,
            step(
                "agent",
                "A.",
                **CALL,
                observation={"results": [{"source_call_id": "c", "content": None}]},
            ),
        ),
        ONE_TURN,
        results=[""],
    ),
    Variation(
        "a message that is null", atif(HI, step("agent", None, **CALL), A), ONE_TURN, calls=["ls"]
    ),
    Variation("a prompt", atif(step("system", "Be brief."), HI, A), ONE_TURN, system="Be brief."),
    Variation(
        "a step of the system's later",
        atif(HI, A, step("system", "Compacted."), step("user", "More?"), step("agent", "B.")),
        TWO_TURNS,
        seen=["Compacted."],
    ),
    Variation("reasoning", atif(HI, {**A, "reasoning_content": "price"}), ONE_TURN),
    Variation(
        "a subagent",
        atif(
            HI,
            A,
            subagent_trajectories=[atif(step("user", "Count."), step("agent", "One."))["t.json"]],
        ),
        [ONE_TURN[0], [("Count.", "One.")]],
        subagents=1,
    ),
    Variation(
        "copied context",
        atif(
            {**HI, "is_copied_context": True},
            {**A, "is_copied_context": True},
            step("user", "More?"),
            step("agent", "B."),
        ),
        [[("More?", "B.")]],
    ),
    Variation(
        "an unknown source",
        {"a.json": atif(HI, step("wizard", "x"))["t.json"], **atif(HI, A)},
        ONE_TURN,
        problem="wizard",
    ),
)


def trajectory(*steps: dict) -> dict:
    numbered = [{"step_id": number, **value} for number, value in enumerate(steps, start=1)]
    return {"schema_version": "ATIF-v1.7", "agent": {"name": "x"}, "steps": numbered}


REPLACES = {"context_management": {"type": "compaction", "boundary": "replace"}}
SUMMED_UP = step(
    "system",
    "Context compaction performed",
    extra=REPLACES,
    observation={"results": [{"content": "Summary."}]},
)
BEFORE = [step("system", "Be brief."), step("user", "Hi"), step("agent", "A.")]
AFTER = [step("user", "More?"), step("agent", "B.")]


def test_a_compaction_of_a_trajectory_replaces_the_context(tmp_path):
    content = trajectory(*BEFORE, SUMMED_UP, *AFTER)
    check(Variation("", {"t.json": content}, TWO_TURNS, system="Be brief.", results=[]), tmp_path)
    context = context_before_last_reply(tmp_path, "t.json", content)
    assert context == ["Be brief.", "Summary.", "More?"]


def test_an_agent_that_compacts_by_a_call_has_called(tmp_path):
    call = {"tool_call_id": "c", "function_name": "compact", "arguments": {"keep": "x"}}
    compacts = step(
        "agent",
        "",
        tool_calls=[call],
        extra=REPLACES,
        observation={"results": [{"source_call_id": "c", "content": ""}]},
    )
    content = trajectory(*BEFORE, compacts, *AFTER)
    check(Variation("", {"t.json": content}, TWO_TURNS, calls=["x"]), tmp_path)
    assert context_before_last_reply(tmp_path, "t.json", content) == ["Be brief.", "More?"]


def texts(events):
    return [event.text for event in events]


def test_a_result_of_an_atif_step_belongs_to_the_call_that_it_names(tmp_path):
    calls = [{"tool_call_id": name, "function_name": "shell", "arguments": {}} for name in "ab"]
    results = [{"source_call_id": name, "content": f"of {name}"} for name in "ba"]
    step = {"source": "agent", "message": "I look.", "tool_calls": calls}
    steps = [{"source": "user", "message": "Look."}, {**step, "observation": {"results": results}}]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"schema_version": "ATIF-v1.4", "steps": steps}))
    (file,) = read_transcripts(log)
    (transcript,) = file.transcripts
    call_results = [(event.call_id, event.text) for event in transcript.path if event.call_id]
    assert call_results == [("b", "of b"), ("a", "of a")]


def test_subagents_of_an_atif_trajectory_are_dialogs_of_their_own(tmp_path):
    helper = {"schema_version": "ATIF-v1.7", "steps": [{"source": "agent", "message": "Found."}]}
    steps = [{"source": "user", "message": "Look."}, {"source": "agent", "message": "I look."}]
    malformed = {"schema_version": "ATIF-v1.7", "steps": [{"source": "cat"}]}
    log = tmp_path / "log.json"
    log.write_text(
        json.dumps({**helper, "steps": steps, "subagent_trajectories": [helper, malformed]})
    )
    (file,) = read_transcripts(log)
    assert [texts(transcript.path) for transcript in file.transcripts] == [
        ["Look.", "I look."],
        ["Found."],
    ]
    assert [transcript.is_of_subagent for transcript in file.transcripts] == [False, True]
    (unread,) = file.unread
    assert "subagent 2" in unread and "cat" in unread


def test_a_late_system_step_of_an_atif_trajectory_is_no_prompt(tmp_path):
    sources = (
        ("system", "Be brief."),
        ("user", "Look."),
        ("system", "Compacted."),
        ("agent", "Ok."),
    )
    steps = [{"source": source, "message": message} for source, message in sources]
    log = tmp_path / "log.json"
    log.write_text(json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}))
    ((transcript,),) = (file.transcripts for file in read_transcripts(log))
    assert [event.text for event in transcript.path if event.is_prompt] == ["Be brief."]
    assert [event.kind for event in transcript.path][2] is EventKind.REMINDER
