"""The files that a turn changes: by tools, patches, commands and programs in scripts."""

import pytest
from agent_turns import did, judge

from holdfast.measures import build
from holdfast.measures.agent_acts.actions import edits_of
from holdfast.measures.agent_acts.edits.command_edits import edits_by_command
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall


def score_turn(spec, turn: Turn) -> float | None:
    score = build(spec).score_turn(turn)
    return None if score is None else score.value


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Delete File: b/c.txt\n"


@pytest.mark.parametrize(
    ("call", "paths"),
    [
        (ToolCall("Write", {"file_path": "a.py"}), ["a.py"]),
        (ToolCall("Read", {"file_path": "a.py"}), []),
        (ToolCall("apply_patch", {"input": PATCH}), ["src/a.py", "b/c.txt"]),
        (ToolCall("Bash", {"command": "sed -i 1d x.py | tee y.log"}), ["x.py", "y.log"]),
        (ToolCall("Bash", {"command": "A=1 mv 'old name' \"|\" new"}), ["old name", "|", "new"]),
        (ToolCall("Bash", {"command": "echo 'unclosed"}), []),
        (ToolCall("Bash", {"command": "ls 2>/dev/null; cp a.py b.py"}), ["b.py"]),
        (ToolCall("Bash", {"command": "grep '>' a.py; test 1 \\> 2"}), []),
        (ToolCall("Bash", {"command": "sed -i '' s/a/b/ x.py"}), ["x.py"]),
        (ToolCall("mcp__devtools__writeFile", {"path": "a.py"}), ["a.py"]),
        (ToolCall("Bash", {"command": "sudo rm -f a.py"}), ["a.py"]),
        (ToolCall("Bash", {"command": "bash -c 'echo x > a.py' >> b.log"}), ["a.py", "b.log"]),
        (ToolCall("Bash", {"command": "(ls; pwd) > a.txt 2>&1"}), ["a.txt"]),
        (ToolCall("Bash", {"command": "touch {a,b/c}.txt {1..2}"}), ["a.txt", "b/c.txt", "{1..2}"]),
        (ToolCall("Bash", {"command": "cp a.js b.js lib/"}), ["lib/a.js", "lib/b.js"]),
        (ToolCall("Bash", {"command": "pushd a; touch x; popd; touch y"}), ["a/x", "y"]),
        (ToolCall("Bash", {"command": "(cd a && touch x); touch y"}), ["a/x", "y"]),
        (ToolCall("Bash", {"command": "bash -c 'cd a; touch x'; touch y"}), ["a/x", "y"]),
        (ToolCall("shell", {"command": "touch x", "workdir": "/w/a"}), ["/w/a/x"]),
        (ToolCall("shell", {"command": "cd b; touch x", "dir_path": "./a"}), ["a/b/x"]),
        (ToolCall("execute_command", {"command": "touch x /y", "cwd": "a"}), ["a/x", "/y"]),
        (ToolCall("write_stdin", {"session_id": 1, "chars": "touch x\n"}), ["x"]),
        (ToolCall("write_bash", {"shellId": "1", "input": "touch x{enter}"}), ["x"]),
        (ToolCall("PowerShell", {"command": "Set-Content -Path a\\x.js -Value 'y'"}), ["a/x.js"]),
        (ToolCall("powershell", {"command": "Remove-Item -Recurse .\\a\\b"}), ["./a/b"]),
        (ToolCall("powershell", {"command": "Get-Content a\\x.js"}), []),
    ],
)  # fmt: skip
def test_changed_files_are_found_in_tools_patches_and_commands(call, paths):
    assert list(dict.fromkeys(edit.path for edit in edits_of([call]) if edit.path)) == paths


# Files that a script writes


@pytest.mark.parametrize(
    "script",
    [
        "echo 'x: any' | tee x.py",
        "printf 'x: any' | sudo tee -a x.py >/dev/null",
        "cat <<EOF | tee x.py\nx: any\nEOF",
        "cat <<'EOF' | sudo tee -a x.py > /dev/null\nx: any\nEOF",
    ],
)
def test_what_is_piped_into_tee_is_written(script):
    (edit,) = (e for command in read_script(script) for e in edits_by_command(command))
    assert (edit.path, edit.added, edit.is_shown) == ("x.py", ("x: any",), True)


@pytest.mark.parametrize(
    "script", ["cat f | tee x.py", "echo $X | tee x.py", "echo a | sort | tee x.py"]
)
def test_what_a_script_pipes_into_tee_without_showing_it_is_not_shown(script):
    edits = [e for command in read_script(script) for e in edits_by_command(command)]
    assert [(edit.path, edit.is_shown) for edit in edits] == [("x.py", False)]


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("sort -o x.py x.py", ["x.py"]),
        ("sort f --output=x.py", ["x.py"]),
        ("sort -u f | sponge x.py", ["x.py"]),
        ("dd if=/dev/zero of=x.bin bs=1 count=1", ["x.bin"]),
        ("curl -sSL https://example.org/x -o x.sh", ["x.sh"]),
        ("wget -Ox.sh https://example.org/x", ["x.sh"]),
        ("curl -o /dev/null https://example.org", []),
        ("curl https://example.org -o -", []),
        ("sort f", []),
        ("gawk -i inplace '{print}' x.txt", ["{print}", "x.txt"]),
        ("yq -i '.a = 1' x.yml", ["x.yml"]),
        ("yq '.a' x.yml", []),
        ("ed -s x.js <<'E'\nw\nE", ["x.js"]),
        ("python3 -c \"open('x.js', 'w').write(y)\"", ["x.js"]),
        ("python3 -c \"print(open('x.js').read())\"", []),
        ("node -e \"require('fs').writeFileSync('x.js', 'y')\"", ["x.js"]),
        ("docker exec web python3 -c \"open('x.js', 'w')\"", []),
    ],
)
def test_a_file_that_an_option_names_is_written(script, paths):
    edits = [e for command in read_script(script) for e in edits_by_command(command)]
    assert [(edit.path, edit.is_shown) for edit in edits] == [(path, False) for path in paths]


@pytest.mark.parametrize(
    ("code", "paths"),
    [
        ("p = Path('a') / 'x.js'\np.write_text(p.read_text().replace('b', 'c'))", ["a/x.js"]),
        ("import os\np = os.path.join('a', 'x.js')\nwith open(p, mode='a') as f: pass", ["a/x.js"]),
        ("for p in ['x.js', 'y.js']:\n    os.remove(p)", ["x.js", "y.js"]),
        ("for p in Path('a').rglob('*.js'):\n    p.write_text('')", ["a/*.js"]),
        ("shutil.copy('x.js', 'y.js'); os.rename('u', 'v')", ["y.js", "u", "v"]),
        ("text = open('x.js').read()\nprint(text.replace('a', 'b'))", []),
        ("open(name, 'w')", []),
        ("not Python", []),
    ],
)
def test_a_program_in_a_here_document_is_read(code, paths):
    edits = edits_of([ToolCall("Bash", {"command": f"python3 - <<'END'\n{code}\nEND"})])
    assert [(edit.path, edit.is_shown) for edit in edits] == [(path, False) for path in paths]


@pytest.mark.parametrize(
    ("script", "folders"),
    [
        ("tar xzf x.tgz -C a", ["a"]),
        ("tar czf x.tgz -C a .", []),
        ("unzip -o x.zip -d a", ["a"]),
        ("wget -q -P a https://example.org/x", ["a"]),
        ("rsync -a --delete b/ a/", ["a/"]),
        ("rsync -a a/ host:/b", []),
        ("find a -name '*.map' -delete", ["a/*.map"]),
    ],
)
def test_a_program_may_write_into_a_folder(script, folders):
    edits = edits_of([ToolCall("Bash", {"command": script})])
    assert [edit.path for edit in edits if edit.is_folder] == folders


def test_the_files_that_find_passes_to_a_command_are_those_that_it_finds():
    script = "find a -name '*.js' -exec sed -i s/b/c/ {} +"
    assert [edit.path for edit in edits_of([ToolCall("Bash", {"command": script})])] == ["a/*.js"]


# Paths of Windows


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("Edit", {"file_path": "C:\\shop\\migrations\\1.sql", "new_string": "x"}),
        ToolCall("Write", {"file_path": "\\\\host\\shop\\migrations\\1.sql", "content": "x"}),
        ToolCall("edit", {"path": "migrations\\1.sql"}),
        ToolCall("apply_patch", {"input": PATCH.replace("b/c.txt", "migrations\\1.sql")}),
        ToolCall("Bash", {"command": "rm 'C:\\shop\\migrations\\1.sql'"}),
    ],
)
def test_paths_of_windows_match_like_others(call):
    spec = {"name": "file_not_touched", "path": "migrations/*"}
    assert score_turn(spec, Turn("", (call,))) == 0
    measure = {"name": "file_not_touched", "path": "*.py"}
    assert score_turn(measure, Turn("", (ToolCall("Edit", {"file_path": "C:\\a\\b.ts"}),))) == 1


def test_a_file_that_was_read_by_a_path_of_windows_is_known_to_exist():
    view = ToolCall("Read", {"file_path": "C:\\shop\\a.md"})
    write = ToolCall("Write", {"file_path": "C:\\shop\\a.md", "content": "x"})
    turn = Turn("", calls=(view, write))
    posix = Turn("", calls=tuple(
        ToolCall(call.name, {**call.arguments, "file_path": "/shop/a.md"}) for call in (view, write)
    ))  # fmt: skip
    spec = {"name": "text_kept", "pattern": "BEGIN"}
    assert build(spec).score_turn(turn) is build(spec).score_turn(posix) is None


def test_a_command_writes_where_the_session_has_gone():
    rule = {"name": "file_not_touched", "path": "docs/a.md"}
    call = ToolCall("Bash", {"command": "echo x > a.md"}, folder="/w/docs", first_folder="/w")
    assert judge(rule, did(call)) == 0
    worktree = "/w/.claude/worktrees/fox"
    call = ToolCall("Bash", {"command": "echo x > docs/a.md"}, folder=worktree, first_folder="/w")
    assert judge(rule, did(call)) == 0
