"""Rollouts of Codex, in variations."""

import json

from codex_lines import HI, META, A, call, item, line, output, rollout, says
from log_variations import ONE_TURN, TWO_TURNS, Variation, file_text, lines, variations

from holdfast.logs import read_logs
from holdfast.measures.agent_acts.edits.tool_edits import edits_by_call

IDE = (
    "# Context from my IDE setup:\n\n## Active file: price.py\n\n## Open tabs:\n- price.py\n\n"
    "## My request for Codex:\nHi\n"
)

OTHER_META = line("session_meta", id="x9", base_instructions={"text": "Be kind."})

test_rollouts_of_codex = variations(
    Variation("a prompt as an object", rollout(META, HI, A), ONE_TURN, system="Be brief."),
    Variation(
        "a prompt that is null",
        rollout(line("session_meta", id="x", instructions=None), HI, A),
        ONE_TURN,
        system="",
    ),
    Variation(
        "events for display",
        rollout(
            META,
            line("event_msg", type="task_started"),
            HI,
            line("event_msg", type="user_message", message="Hi"),
            line("turn_context", model="x"),
            line("event_msg", type="agent_reasoning", text="price"),
            item(
                type="reasoning",
                summary=[{"type": "summary_text", "text": "hm."}],
                encrypted_content="x",
            ),
            line("event_msg", type="agent_message", message="A."),
            A,
            line("event_msg", type="token_count", info=None),
        ),
        ONE_TURN,
        seen=[],
    ),
    Variation(
        "messages that only the events for display have",
        rollout(META, line("event_msg", type="user_message", message="Hi"), A),
        ONE_TURN,
    ),
    Variation(
        "a call of a kind that is not known",
        rollout(
            META,
            HI,
            item(type="tool_call", function={"name": "shell"}, arguments={"command": "ls"}),
            A,
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "calls that a script of the model's made",
        rollout(
            META,
            HI,
            item(type="custom_tool_call", name="exec", call_id="c1", input="await f()"),
            line(
                "event_msg",
                type="exec_command_end",
                call_id="c2",
                command=["git", "push"],
                aggregated_output="x",
                source="agent",
            ),
            line(
                "event_msg",
                type="exec_command_end",
                call_id="c3",
                command=["ls"],
                source="user_shell",
            ),
            line(
                "event_msg",
                type="mcp_tool_call_end",
                call_id="c4",
                invocation={"server": "s", "tool": "t", "arguments": {"q": "y"}},
                result={"Ok": {"content": []}},
            ),
            output("done"),
            A,
        ),
        ONE_TURN,
        calls=["await f()", "['git', 'push']", "y"],
        results=["x", "", "done"],
    ),
    Variation(
        "a call that an event for display repeats",
        rollout(
            META,
            HI,
            call("shell", {"command": "ls"}),
            line("event_msg", type="exec_command_end", call_id="c1", command=["bash", "-lc", "ls"]),
            output("x"),
            A,
        ),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "an item of a kind that is not known",
        rollout(META, HI, item(type="tool_result", name="shell", result="x"), A),
        ONE_TURN,
        problem="its type 'tool_result' is not known",
    ),
    Variation(
        "a message of another agent",
        rollout(
            META,
            HI,
            item(
                type="agent_message",
                author="b",
                recipient="a",
                content=[{"type": "input_text", "text": "Done."}, {"type": "encrypted_content"}],
            ),
            A,
        ),
        ONE_TURN,
        seen=["Done."],
        problem="1 of the type 'encrypted_content'",
    ),
    Variation(
        "reasoning in the rollouts of 2025",
        rollout(
            {"id": "x", "timestamp": "t", "instructions": None},
            HI["payload"],
            {"type": "reasoning", "id": "rs", "summary": [], "content": None},
            A["payload"],
        ),
        ONE_TURN,
    ),
    Variation(
        "a message with a phase",
        rollout(META, HI, says("assistant", "A.", phase="final")),
        ONE_TURN,
    ),
    Variation(
        "surroundings and words",
        rollout(
            META,
            says("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>\n\nHi"),
            A,
        ),
        ONE_TURN,
    ),
    Variation("the context of an editor", rollout(META, says("user", IDE), A), ONE_TURN),
    Variation(
        "files that the user named",
        rollout(
            META,
            says(
                "user",
                "# Files mentioned by the user:\n\n## price.png: /x\n\n"
                "## My request for Codex:\nHi",
            ),
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "an image",
        rollout(
            META,
            item(
                type="message",
                role="user",
                content=[
                    {"type": "input_text", "text": "<image>"},
                    {"type": "input_image", "image_url": "data:"},
                    {"type": "input_text", "text": "</image>"},
                    {"type": "input_text", "text": "Hi"},
                ],
            ),
            A,
        ),
        ONE_TURN,
        problem="1 of the type 'input_image'",
    ),
    Variation(
        "a command as a list",
        rollout(
            META,
            HI,
            call("shell", {"command": ["bash", "-lc", "ls"]}),
            output('{"output": "a.py", "metadata": {"exit_code": 0}}'),
            A,
        ),
        ONE_TURN,
        calls=["['bash', '-lc', 'ls']"],
        results=['{"output": "a.py", "metadata": {"exit_code": 0}}'],
    ),
    Variation(
        "a command as text",
        rollout(META, HI, call("exec_command", {"cmd": "ls"}), output("a.py"), A),
        ONE_TURN,
        calls=["ls"],
    ),
    Variation(
        "an output in parts",
        rollout(
            META,
            HI,
            call("f", {}),
            output(
                [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "data:"}]
            ),
            A,
        ),
        ONE_TURN,
        results=["x"],
        problem="1 of the type 'input_image'",
    ),
    Variation(
        "an output as an object",
        rollout(META, HI, call("f", {}), output({"content": "x", "success": True}), A),
        ONE_TURN,
        results=["x"],
    ),
    Variation(
        "a local command",
        rollout(
            META,
            HI,
            item(
                type="local_shell_call",
                call_id="c1",
                status="completed",
                action={"type": "exec", "command": ["ls"]},
            ),
            output("x"),
            A,
        ),
        ONE_TURN,
        calls=["exec ['ls']"],
    ),
    Variation(
        "a patch",
        rollout(
            META,
            HI,
            item(
                type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c1"
            ),
            output("ok", kind="custom_tool_call_output"),
            A,
        ),
        ONE_TURN,
        calls=["*** Begin Patch"],
        results=["ok"],
    ),
    Variation(
        "a search",
        rollout(
            META,
            HI,
            item(
                type="web_search_call", status="completed", action={"type": "search", "query": "x"}
            ),
            A,
        ),
        ONE_TURN,
        calls=["search x"],
    ),
    Variation("a ghost snapshot", rollout(META, HI, A, item(type="ghost_snapshot")), ONE_TURN),
    Variation(
        "a subagent",
        rollout(
            line(
                "session_meta",
                id="x2",
                source={"subagent": {"thread_spawn": {"parent_thread_id": "x1"}}},
            ),
            HI,
            A,
        ),
        ONE_TURN,
        subagents=1,
    ),
    Variation(
        "an interruption",
        rollout(
            META,
            HI,
            A,
            says("user", "<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>"),
            line("event_msg", type="turn_aborted", reason="interrupted"),
            says("user", "More?"),
            says("assistant", "B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "an error", rollout(META, HI, line("event_msg", type="error", message="429"), A), ONE_TURN
    ),
    Variation(
        "a fork",
        rollout(
            line("session_meta", id="x2", forked_from_id="x1"),
            META,
            HI,
            A,
            says("user", "More?"),
            says("assistant", "B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "a fork and its origin",
        {
            "a.jsonl": lines(META, HI, A),
            "b.jsonl": lines(
                line("session_meta", id="x2", forked_from_id="x1"),
                META,
                HI,
                A,
                says("user", "More?"),
                says("assistant", "B."),
            ),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "a resumed rollout with the same items",
        {
            "a.jsonl": lines(META, HI, says("assistant", "A.", id="msg_1")),
            "b.jsonl": lines(
                META,
                HI,
                says("assistant", "A.", id="msg_1"),
                says("user", "More?"),
                says("assistant", "B.", id="msg_2"),
            ),
        },
        TWO_TURNS,
        problem="its only turn is in",
    ),
    Variation(
        "two rollouts that look alike",
        {
            "a.jsonl": lines(META, HI, A),
            "b.jsonl": lines(
                line("session_meta", id="x2", base_instructions={"text": "Be brief."}), HI, A
            ),
        },
        [ONE_TURN[0], ONE_TURN[0]],
    ),
    Variation(
        "a compaction with a summary",
        rollout(
            META,
            HI,
            A,
            line("compacted", message="Summary."),
            says("user", "More?"),
            says("assistant", "B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "a compaction with an encrypted summary",
        rollout(
            META,
            HI,
            A,
            line(
                "compacted",
                message="",
                replacement_history=[
                    HI["payload"],
                    {"type": "compaction", "encrypted_content": "x"},
                ],
            ),
            says("user", "More?"),
            says("assistant", "B."),
        ),
        TWO_TURNS,
    ),
    Variation(
        "records of unknown types",
        rollout(META, line("world_state", x=1), HI, A, line("inter_agent_communication", x=1)),
        ONE_TURN,
    ),
    Variation(
        "line breaks of Windows", {"r.jsonl": "\r\n".join(map(json.dumps, (META, HI, A)))}, ONE_TURN
    ),
    Variation("several texts", rollout(META, says("user", "H", "i"), A), [[("H\ni", "A.")]]),
    Variation(
        "rules of AGENTS.md and words in one message",
        rollout(
            META,
            says(
                "user",
                "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nUse pnpm.\n</INSTRUCTIONS>",
                "<environment_context>\n<cwd>/x</cwd>\n</environment_context>",
            ),
            HI,
            A,
        ),
        ONE_TURN,
    ),
    Variation(
        "all turns are taken back",
        rollout(
            META,
            HI,
            A,
            line("event_msg", type="thread_rolled_back", num_turns=5),
            says("user", "More?"),
            says("assistant", "B."),
        ),
        [[("More?", "B.")]],
        problem="rewound",
    ),
    Variation(
        "two rollouts of Codex",
        rollout(META, HI, A, OTHER_META, says("user", "More?"), says("assistant", "B.")),
        [ONE_TURN[0], [("More?", "B.")]],
    ),
    Variation(
        "a rollout of Codex that was resumed",
        rollout(META, HI, A, META, says("user", "More?"), says("assistant", "B.")),
        TWO_TURNS,
    ),
    Variation(
        "items of Codex that are written again",
        rollout(META, HI, says("assistant", "A.", id="msg_1"), says("assistant", "A.", id="msg_1")),
        ONE_TURN,
    ),
    Variation(
        "calls of Codex that are written again",
        rollout(META, HI, call("f", {"x": 1}), call("f", {"x": 1}), output("y"), output("y"), A),
        ONE_TURN,
        calls=["1"],
        results=["y"],
    ),
)


def test_a_patch_that_a_script_of_codex_applied_is_an_edit(tmp_path):
    changes = {
        "/x/a.py": {"type": "update", "unified_diff": "@@ -1 +1 @@\n-old\n+new\n"},
        "/x/b.py": {"type": "add", "content": "first\nsecond\n"},
    }
    patched = line("event_msg", type="patch_apply_end", call_id="c2", success=True, changes=changes)
    path = tmp_path / "r.jsonl"
    path.write_text(file_text(lines(META, HI, patched, A)), encoding="utf-8")
    (dialog,) = read_logs([path]).dialogs
    edits = [edit for call in dialog.turns[0].done.calls for edit in edits_by_call(call)]
    assert [(edit.path, edit.added) for edit in edits] == [
        ("/x/a.py", ("new",)),
        ("/x/b.py", ("first\nsecond",)),
    ]
