"""Commands that a script has, but never runs, and programs in here-documents."""

import pytest

from holdfast.measures import build
from holdfast.measures.agent_acts.actions import edits_of
from holdfast.measures.agent_acts.programs.program_texts import read_program
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.turns import AssistantTurn, ToolCall

NEVER = [
    "if false; then git push; fi",
    "if true; then ls; else git push; fi",
    "if ! true; then git push; fi",
    "if [ 1 = 2 ]; then git push; elif false; then git push; else ls; fi",
    "false && git push",
    "true || git push",
    "false && ls || true || git push",
    "! true && git push",
    "[ 1 = 2 ] && git push",
    "[[ a == b ]] && git push",
    "test 1 -gt 2 && git push",
    "(( 0 )) && git push",
    "exit 0\ngit push",
    "exit; git push",
    "ls && exit 0 || exit 1; git push",
    "if [ -f x ]; then exit 0; else exit 1; fi; git push",
    "case $x in a) exit 0;; *) exit 1;; esac; git push",
    "{ ls; exit 1; }; git push",
    "die() { exit 1; }; die; git push",
    "f() { return 0; git push; }; f",
    "sh -c 'return 0; git push'",
    "zsh -c 'return 0; git push'",
    "cat > x.sh <<'E'\nreturn 0\ngit push\nE\nsource x.sh",
    "cat > x.sh <<'E'\nif [ -f a ]; then return 0; else return 1; fi\ngit push\nE\n. ./x.sh",
    "cat > x.sh <<'E'\n#!/bin/sh\nreturn 0\ngit push\nE\nsh x.sh",
    "return 0 2>/dev/null || exit 0; git push",
    "cat > x.sh <<'E'\nreturn 0 2>/dev/null || exit 0\ngit push\nE\nsource x.sh; bash x.sh",
    "f() { eval 'return 0; git push'; }; f",
    "exec make test\ngit push",
    "while false; do git push; done",
    "until true; do git push; done",
    "for f in a b; do break; git push; done",
    "for f in a b; do continue; git push; done",
    "x=$(exit 0; git push)",
    "(exit 0; git push)",
    "bash -c 'exit 0; git push'",
    "bash <<'E'\nexit 0\ngit push\nE",
    "ssh host 'exit 0; git push'",
    "python3 - <<'E'\nimport os, sys\nsys.exit(0)\nos.system('git push')\nE",
    "python3 - <<'E'\nimport os\nif False:\n    os.system('git push')\nE",
    "python3 - <<'E'\nimport os\ndef push():\n    os.system('git push')\nE",
    "python3 - <<'E'\nimport os\ndef f():\n    return\n    os.system('git push')\nf()\nE",
    "fish -c 'false; and git push'",
    "while true; do sleep 60; done; git push",
    '[ -n "" ] && git push',
    "[ -z x ] && git push",
    "node -e \"process.exit(0); require('child_process').execSync('git push')\"",
    "pwsh -c 'if ($false) { git push }'",
]
MAYBE = [
    "if [ -f x ]; then git push; fi",
    "if false; then ls; else git push; fi",
    "false || git push",
    "true && git push",
    "make || exit 1; git push",
    "[ -f x ] || exit 0\ngit push",
    "if [ -f x ]; then exit 0; fi; git push",
    "case $x in a) exit 0;; esac; git push",
    "case $x in a) exit 0;; *) ls;; esac; git push",
    "exit 0 & git push",
    "(exit 0); git push",
    "x=$(exit 1); git push",
    "bash -c 'exit 0'; git push",
    "ls | exit 0; git push",
    "die() { exit 1; }; make || die; git push",
    "die() { exit 1; }; git push",
    "trap 'git push' EXIT; exit 0",
    "git push; exit 0",
    "[ $x = 2 ] && git push",
    "while true; do git push; done",
    "while true; do [ -f x ] && break; done; git push",
    "while true; do sleep 60; done & git push",
    '[ -n "$x" ] && git push',
    "node -e \"if (a) { process.exit(0) } require('child_process').execSync('git push')\"",
    "for f in a b; do [ -f $f ] && continue; git push; done",
    "for f in a b; do break; done; git push",
    "f() { return 0; }; f; git push",
    "f() { f; }; f; git push",
    "return 0; git push",  # Bash says that it cannot return, and goes on
    "bash -c 'return 0; git push'",
    "cat > x.sh <<'E'\nreturn 0\ngit push\nE\nbash x.sh",
    "cat > x.sh <<'E'\nreturn 0\nE\nsource x.sh; git push",
    "(return 0); git push",
    "[ -f x ] && return; git push",
    "exec > log\ngit push",
    "python3 - <<'E'\nimport os\nif __name__ == '__main__':\n    os.system('git push')\nE",
    "python3 - <<'E'\nimport os\nif len(a) > 1:\n    exit(1)\nos.system('git push')\nE",
    "python3 - <<'E'\nimport os\nclass A:\n    def __init__(self):\n"
    "        os.system('git push')\nA()\nE",
    "python3 - <<'E'\nimport subprocess\nsubprocess.run('git push'.split())\nE",
    "python3 - <<'E'\nopen('p.sh', 'w').write('git push')\nE\nbash p.sh",
    "fish -c 'test -f x; or exit 1; git push'",
    "pwsh -c 'if ($x) { exit 1 }; git push'",
    "cat > Makefile <<'E'\nall:\n\tls; exit 0\n\tgit push\nE\nmake",
]


def runs_push(script: str) -> bool:
    turn = AssistantTurn("", (ToolCall("Bash", {"command": script}),))
    score = build({"name": "command_not_run", "command": "git push"}).score_turn(turn)
    return score is not None and score.value == 0


@pytest.mark.parametrize("script", NEVER)
def test_a_command_that_never_runs_is_not_counted(script):
    assert not runs_push(script)


@pytest.mark.parametrize("script", MAYBE)
def test_a_command_that_may_run_is_counted(script):
    assert runs_push(script)


def test_a_group_whose_last_command_never_runs_still_writes_its_file():
    commands = read_script("{ echo a; exit 0; git push; } > log")
    assert [command.writes for command in commands] == [(), ("log",)]


@pytest.mark.parametrize(
    "script",
    [
        " && ".join(["true"] * 3000) + "; exit 0; git push",
        "{ " * 400 + "exit 0; " + "}; " * 400 + "git push",
        "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }}; " for n in range(60)) + "f0; git push",
    ],
    ids=["a long list", "deep groups", "functions that call functions"],
)
def test_a_long_script_is_read(script):
    assert read_script(script)


PROGRAMS = [
    ("open('a.py', 'w').write('x')", ("x",), True),
    ("from pathlib import Path\nPath('a.py').write_text('x' + 'y')", ("xy",), True),
    (
        "text = 'x'\nwith open('a.py', 'w') as f:\n    f.write(text)\n    f.write('y')",
        ("xy",),
        True,
    ),
    ("with open('a.py', 'a') as f:\n    f.write('x')", ("x",), False),
    ("import sys\nopen(sys.argv[1], 'w').write('x')", ("x",), True),
]


@pytest.mark.parametrize(("code", "added", "is_whole"), PROGRAMS)
def test_the_text_that_a_program_writes_is_read(code, added, is_whole):
    (edit,) = edits_of([ToolCall("Bash", {"command": f"python3 - a.py <<'E'\n{code}\nE"})])
    assert (edit.path, edit.added, edit.is_whole) == ("a.py", added, is_whole)
    assert edit.is_shown


HIDDEN = [
    "import json\nwith open('a.py', 'w') as f:\n    json.dump(x, f)\n    f.write('y')",
    "open('a.py', 'w').write(text)",
    "text = 'x'\ntext += other()\nopen('a.py', 'w').write(text)",
    "from pathlib import Path\np = Path('a.py')\np.write_text(p.read_text().replace('x', 'y'))",
]


@pytest.mark.parametrize("code", HIDDEN)
def test_a_text_that_a_program_computes_is_not_shown(code):
    edits = edits_of([ToolCall("Bash", {"command": f"python3 - <<'E'\n{code}\nE"})])
    assert [(edit.path, edit.is_shown) for edit in edits] == [("a.py", False)]


@pytest.mark.parametrize(
    "script",
    [
        "pwsh -c 'switch (0) { 0 { git push } }'",
        "fish -c 'ls # all\nand git push'",
        "node - <<'E'\nif (x) { log('}'); process.exit(1); }\n"
        "require('child_process').execSync('git push')\nE",
        "node - <<'E'\nmain();\nprocess.exit(0);\n"
        "function main() { require('child_process').execSync('git push') }\nE",
    ],
)
def test_what_only_looks_unreachable_is_counted(script):
    assert runs_push(script)


@pytest.mark.parametrize(
    ("program", "texts"),
    [
        (
            "with open('a.py', 'w') as f:\n    f.write('x')\n"
            "with open('b.py', 'w') as f:\n    f.write('y')",
            {"a.py": ("x",), "b.py": ("y",)},
        ),
        ("t = 'x'\nt, u = 'y', 'z'\nopen('a.py', 'w').write(t)", {"a.py": ()}),
        ("t = 'x'\ndef w(t):\n    open('a.py', 'w').write(t)\nw('y')", {"a.py": ()}),
        ("f = open('a.py', 'w')\ng = f\nf.write('x')\ng.write('y')", {"a.py": ()}),
        ("f = open('a.py', 'w')\nf.write('x')\nf = open('b.py', 'w')", {"a.py": (), "b.py": ()}),
    ],
)
def test_a_text_is_of_the_file_that_its_name_stands_for(program, texts):
    edits = read_program(["python3", "-c", program], None).edits
    assert {edit.path: edit.added for edit in edits} == texts
