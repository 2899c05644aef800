"""Rollouts of Codex in autumn 2026: subagents, rewinds, and histories in several files."""

import json
from typing import Any

from codex_lines import HI, META, A, line, rollout, says
from log_variations import ONE_TURN, TWO_TURNS, Variation, file_text, lines, variations

from holdfast.logs.rule_sightings import SearchedTranscript
from holdfast.transcripts import read_transcripts

PARENT = line("session_meta", id="x1", base_instructions={"text": "Be brief."})


def child(*front: dict) -> list[dict]:
    header = {"parent_thread_id": "x1", "source": {"subagent": {"thread_spawn": {}}}}
    head = line(
        "session_meta",
        id="x2",
        forked_from_id="x1",
        **header,
        subagent_history_start_ordinal=1 + len(front),
    )
    return [{**value, "ordinal": number} for number, value in enumerate([head, *front])]


TASK = line(
    "response_item",
    type="agent_message",
    author="/root",
    recipient="/root/a",
    content=[{"type": "input_text", "text": "Count."}],
)

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
            *child(),
            {**says("user", "What is the price?"), "metadata": {"inherited_user_message": True}},
            TASK,
            says("assistant", "One."),
        ),
        [[("", "One.")]],
        seen=["What is the price?", "Count."],
        subagents=1,
    ),
    Variation(
        "the whole dialog of the session that started it",
        rollout(*child(PARENT, HI, A), says("user", "More?"), says("assistant", "B.")),
        TWO_TURNS,
        subagents=1,
    ),
)


def to_agent(**fields: Any) -> dict:
    return {"author": "/root/a", "recipient": "/root", "other_recipients": [], **fields}


def rewind(count: int) -> dict:
    return line("event_msg", type="thread_rolled_back", num_turns=count)


REPORT = to_agent(content="Counted.", trigger_turn=True)
CONTINUED = line(
    "session_meta",
    id="x1",
    base_instructions={"text": "Be brief."},
    history_mode="paginated",
    history_base={"thread_id": "x0", "end_ordinal_exclusive": 9, "end_byte_offset": 90},
)
UNAVAILABLE = "The content is unavailable."

test_rollouts_of_autumn_2026 = variations(
    Variation(
        "lines and items that the model does not see",
        rollout(
            META,
            HI,
            line(
                "retained_context",
                type="verified_answer",
                turn_id="t",
                call_id="c",
                questions=[{"question": "Ship?", "answer": "No."}],
            ),
            line("response_item", type="configuration_update", reasoning={"effort": "high"}),
            line("response_item", type="additional_tools", role="developer", tools=[]),
            A,
        ),
        ONE_TURN,
        seen=[],
    ),
    Variation(
        "what another agent wrote, as JSON in the assistant's place",
        rollout(META, HI, A, says("assistant", json.dumps(REPORT)), says("assistant", "B.")),
        [[("Hi", "A.\n\nB.")]],
        seen=["Counted."],
    ),
    Variation(
        "JSON that the assistant wrote",
        rollout(META, HI, says("assistant", '{"author": "Ann"}')),
        [[("Hi", '{"author": "Ann"}')]],
        seen=[],
    ),
    Variation(
        "an encrypted message to another agent",
        rollout(
            META,
            HI,
            line("inter_agent_communication", **to_agent(content="", encrypted_content="x")),
            A,
        ),
        ONE_TURN,
        problem="1 of the type 'encrypted_content'",
    ),
    Variation(
        "a message that a script delivered",
        rollout(
            META,
            HI,
            {
                **says("assistant", "A."),
                "metadata": {"delivered_assistant_message": "codex:code-mode-delivery:v1:complete"},
            },
        ),
        ONE_TURN,
    ),
    Variation(
        "a long message that a script delivered, of which the beginning is logged",
        rollout(
            META,
            HI,
            {
                **says("assistant", UNAVAILABLE),
                "metadata": {
                    "delivered_assistant_message": "codex:code-mode-delivery:v1:incomplete:A."
                },
            },
        ),
        ONE_TURN,
    ),
    Variation(
        "one of two messages that follow each other is taken back",
        rollout(
            META,
            HI,
            A,
            says("user", "More?"),
            says("user", "Stop"),
            rewind(1),
            says("assistant", "B."),
        ),
        TWO_TURNS,
        problem="were rewound",
    ),
    Variation(
        "what an agent's message began is taken back",
        rollout(
            META,
            HI,
            A,
            line(
                "response_item",
                type="agent_message",
                **to_agent(content=[{"type": "input_text", "text": "Counted."}]),
            ),
            says("assistant", "No."),
            rewind(1),
            says("user", "More?"),
            says("assistant", "B."),
        ),
        TWO_TURNS,
        seen=[],
        problem="were rewound",
    ),
    Variation(
        "a turn is taken back together with the compaction in it",
        rollout(
            META,
            HI,
            A,
            says("user", "Fix it"),
            says("assistant", "No."),
            line("compacted", message="Short."),
            says("assistant", "Never."),
            rewind(1),
            says("user", "More?"),
            says("assistant", "B."),
        ),
        TWO_TURNS,
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
        rollout(line("session_meta", id="x3", source={"internal": "guardian"}), HI, A),
        ONE_TURN,
        subagents=1,
    ),
    Variation(
        "a picture and a recording",
        rollout(
            META,
            line(
                "response_item",
                type="message",
                role="user",
                content=[
                    {"type": "input_text", "text": "Hi"},
                    {"type": "input_image", "file_id": "f1"},
                    {"type": "input_audio", "audio_url": "data:"},
                ],
            ),
            A,
        ),
        ONE_TURN,
        problem="1 of the type 'input_audio', 1 of the type 'input_image'",
    ),
)


def test_a_rule_that_a_rollout_with_its_beginning_elsewhere_lacks_is_not_shown(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text(file_text(lines(CONTINUED, says("user", "Hi"), says("assistant", "Oui."))))
    (transcript,) = [t for file in read_transcripts([path]) for t in file.transcripts]
    assert transcript.lacks_beginning
    assert not SearchedTranscript(transcript).shows_prompts(len(transcript.path))
