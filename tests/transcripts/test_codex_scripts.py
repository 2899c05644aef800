"""The calls in the scripts of Codex's tool `exec`, which some versions log nowhere else."""

import json
from pathlib import Path

import pytest
from logged_dialogs import lines_of

from holdfast.logs import read_logs
from holdfast.transcripts.readers.codex_scripts import calls_in_script

PATCH = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch"


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ('await tools.exec_command({"cmd":"git push","workdir":"/x"})', {"cmd": "git push"}),
        ("text(await tools.exec_command({ cmd: 'it\\'s \"x\"' }));", {"cmd": 'it\'s "x"'}),
        ("tools.exec_command({\n  cmd: `a\nb`,\n  tty: true,\n})", {"cmd": "a\nb"}),
        ('let c = "ls";\nawait tools.exec_command({cmd: c});', {"cmd": "ls"}),
        ('const cmd = "ls"; tools.exec_command({cmd})', {"cmd": "ls"}),
        ("tools.exec_command({cmd: String.raw`a\\b`})", {"cmd": "a\\b"}),
        ('tools.shell({command: ["bash", "-lc", "ls"]})', {"command": ["bash", "-lc", "ls"]}),
        (f"await tools.apply_patch({json.dumps(PATCH)}); text(1)", {"input": PATCH}),
        (f"tools.apply_patch({{input: {json.dumps(PATCH)}}})", {"input": PATCH}),
        ('tools.exec_command({cmd: "echo caf\\u00e9 \\u{1F600}"})', {"cmd": "echo café 😀"}),
        ('tools.exec_command({cmd: "echo \\uD83D\\uDE00"})', {"cmd": "echo 😀"}),
        ("t = `it's ${x}`; tools.exec_command({cmd: 'ls'})", {"cmd": "ls"}),
        ("if (/'/.test(x)) tools.exec_command({cmd: 'ls'})", {"cmd": "ls"}),
        ("n = (1 + 2) / 2; tools.exec_command({cmd: 'ls'}); m = n / 2", {"cmd": "ls"}),
    ],
)
def test_arguments_that_are_literals_are_read(script, arguments):
    (call,), computed_count = calls_in_script(script)
    assert arguments.items() <= dict(call.arguments).items()
    assert not computed_count


@pytest.mark.parametrize(
    "script",
    [
        "tools.exec_command({cmd: `git ${verb}`})",
        'tools.exec_command({cmd: "git " + verb})',
        'let c = "a"; c += "b"; tools.exec_command({cmd: c})',
        'let c = "a"; if (x) c = "b"; tools.exec_command({cmd: c})',
        "tools.exec_command(options)",
        "tools.exec_command(" + "[" * 5000 + ")",
        'tools.exec_command({...options, cmd: "ls"})',
        'const c = "a"; ["b"].map(c => tools.exec_command({cmd: c}))',
        'const c = "a"; function run(c) { return tools.exec_command({cmd: c}) }',
        'const c = "a"; for (const c of commands) tools.exec_command({cmd: c})',
        'let c = "a"; c ||= "b"; tools.exec_command({cmd: c})',
        'tools.exec_command({cmd: "ls", timeout: 007})',
        'tools.exec_command({cmd: "ls", n: ' + "9" * 5000 + "})",
    ],
)
def test_arguments_that_are_computed_are_counted_and_not_guessed(script):
    assert calls_in_script(script) == ((), ("exec_command",))


@pytest.mark.parametrize(
    "script",
    [
        '// tools.exec_command({cmd: "a"})',
        "text('tools.exec_command({cmd: 1})')",
        "text(`tools.exec_command({cmd: 1}) ${x}`)",
        "",
    ],
)
def test_comments_and_texts_are_no_calls(script):
    assert calls_in_script(script) == ((), ())


def rollout(folder: Path, script: str, *events: dict) -> Path:
    def item(**payload):
        return {"type": "response_item", "payload": payload}

    ask = [{"type": "input_text", "text": "Push it."}]
    output = [{"type": "input_text", "text": "ok"}]
    path = folder / "rollout-1.jsonl"
    lines = [
        {"type": "session_meta", "payload": {"id": "x"}},
        item(type="message", role="user", content=ask),
        item(type="custom_tool_call", name="exec", call_id="c", input=script),
        *({"type": "event_msg", "payload": event} for event in events),
        item(type="custom_tool_call_output", call_id="c", output=output),
    ]
    path.write_text(lines_of(lines))
    return path


def commands(logs) -> list[str]:
    (dialog,) = logs.dialogs
    calls = dialog.turns[0].done.calls
    return [str(call.arguments) for call in calls if call.name != "exec"]


def test_the_commands_of_a_script_are_calls_of_the_session(tmp_path):
    script = 'await tools.exec_command({cmd: "git push"}); tools.exec_command({cmd: x})'
    logs = read_logs([rollout(tmp_path, script)])
    assert commands(logs) == ["{'cmd': 'git push'}"]
    (problem,) = logs.problems
    assert "left out 1 tool call of a script that computes the arguments" in problem


def test_events_that_show_the_calls_of_scripts_are_read_instead(tmp_path):
    event = {"type": "exec_command_end", "call_id": "s1", "command": ["bash", "-lc", "git push"],
             "aggregated_output": "ok", "exit_code": 0}  # fmt: skip
    script = 'await tools.exec_command({cmd: "git push"}); tools.exec_command(x)'
    logs = read_logs([rollout(tmp_path, script, event)])
    assert not logs.problems
    assert commands(logs) == ["{'command': ['bash', '-lc', 'git push']}"]
