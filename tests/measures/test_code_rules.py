"""Rules about code: `code_written`, `code_not_written` and `text_kept`, on turns of all tools.

Arguments of tools are as the agents document them: Claude Code's tools (docs.claude.com), Codex'
apply_patch (its prompt in github.com/openai/codex), Cline's replace_in_file (its prompt in
github.com/cline/cline), Gemini CLI's replace and write_file, opencode's edit and write, and the
text editor tool of Anthropic's API.
"""

import pytest
from agent_turns import UNDECIDED, call, did, judge, ran

from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall

NO_PRINT = {"name": "code_not_written", "pattern": r"\bprint\(", "files": ["*.py", "!tests/*"]}
PATCH = """*** Begin Patch
*** Update File: app/a.py
@@ def f():
-    {old}
+    {new}
     return 1
*** Add File: notes.md
+print( is a function
*** End Patch"""
CLINE_DIFF = "------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE\n"
AIDER_EDIT = "<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"
GIT_DIFF = """diff --git a/app/a.py b/app/a.py
--- a/app/a.py
+++ b/app/a.py
@@ -1,2 +1,2 @@
 import os
-{old}
+{new}
"""
OLD, NEW = "print(x)", "log(x)"


def turns_with_edit(old: str, new: str) -> list[Turn]:
    """A line of app/a.py replaced by another, by every tool."""
    path = "/repo/app/a.py"
    return [
        did(call("Edit", file_path=path, old_string=f"a\n{old}\nb", new_string=f"a\n{new}\nb")),
        did(call("MultiEdit", file_path=path, edits=[{"old_string": old, "new_string": new}])),
        did(call("apply_patch", input=PATCH.format(old=old, new=new))),
        did(call("replace_in_file", path="app/a.py", diff=CLINE_DIFF.format(old=old, new=new))),
        did(call("edit_block", path="app/a.py", diff=AIDER_EDIT.format(old=old, new=new))),
        did(call("replace", file_path=path, old_string=old, new_string=new)),
        did(call("edit", filePath=path, oldString=old, newString=new)),
        did(call("search_and_replace", path="app/a.py", search=old, replace=new)),
        did(call("mcp__fs__edit_file", path=path, edits=[{"oldText": old, "newText": new}])),
        did(call("str_replace_editor", command="str_replace", path=path, old_str=old, new_str=new)),
        did(call("shell", command=["apply_patch", PATCH.format(old=old, new=new)])),
        ran(f"apply_patch <<'EOF'\n{PATCH.format(old=old, new=new)}\nEOF"),
        ran(f"cd /repo && git apply <<'EOF'\n{GIT_DIFF.format(old=old, new=new)}EOF"),
        ran(f"patch -p1 <<'EOF'\n{GIT_DIFF.format(old=old, new=new)}EOF"),
    ]


def turns_with_file(text: str) -> list[Turn]:
    """A file app/a.py written as a whole, by every tool."""
    path = "/repo/app/a.py"
    patch = f"*** Begin Patch\n*** Add File: app/a.py\n+{text}\n*** End Patch"
    diff = f"--- /dev/null\n+++ b/app/a.py\n@@ -0,0 +1 @@\n+{text}\n"
    return [
        did(call("Write", file_path=path, content=text)),
        did(call("write_to_file", path="app/a.py", content=text)),
        did(call("write_file", file_path=path, content=text)),
        did(call("write", filePath=path, content=text)),
        did(call("str_replace_editor", command="create", path=path, file_text=text)),
        did(call("apply_patch", patchText=patch)),
        ran(f"cat > app/a.py <<'EOF'\n{text}\nEOF"),
        ran(f"cat <<'EOF' > app/a.py\n{text}\nEOF"),
        ran(f"sudo tee app/a.py <<'EOF'\n{text}\nEOF"),
        ran(f"printf '%s\\n' '{text}' > app/a.py"),
        ran(f"bash -lc \"echo '{text}' > app/a.py\""),
        ran(f"git apply <<'EOF'\n{diff}EOF"),
    ]


@pytest.mark.parametrize("turn", [*turns_with_edit(NEW, OLD), *turns_with_file(OLD)])
def test_code_that_is_added_is_found_whatever_tool_wrote_it(turn):
    assert judge(NO_PRINT, turn) == 0
    assert judge({**NO_PRINT, "name": "code_written"}, turn) == 1


@pytest.mark.parametrize("turn", [*turns_with_edit(OLD, NEW), *turns_with_file(NEW)])
def test_code_that_is_removed_or_in_another_file_does_not_count(turn):
    assert judge(NO_PRINT, turn) == 1
    assert judge({**NO_PRINT, "name": "code_written"}, turn) == 0


NOTEBOOK = {"notebook_path": "a.ipynb", "cell_id": "1"}
CODE_WRITTEN = [
    (NO_PRINT, ran("cat app/a.py", "grep -n 'print(' app/a.py"), None),
    (NO_PRINT, did(call("Read", file_path="app/a.py")), None),
    (NO_PRINT, did(call("Grep", pattern=r"print\(", path="app/a.py")), None),
    (NO_PRINT, did(call("str_replace_editor", command="view", path="app/a.py")), None),
    (NO_PRINT, did(call("Write", file_path="tests/test_a.py", content=OLD)), None),
    (NO_PRINT, did(call("Write", file_path="a.md", content=OLD)), None),
    (NO_PRINT, ran("rm app/a.py", "mv app/b.py app/c.py"), None),
    (NO_PRINT, ran("sed -i 's/log/print/' app/a.py"), UNDECIDED),
    (NO_PRINT, ran("sed -i 's/log/print/' README.md"), None),
    (NO_PRINT, ran("python make.py > app/a.py"), UNDECIDED),
    (NO_PRINT, ran('echo "$CODE" > app/a.py'), UNDECIDED),
    (NO_PRINT, ran("(cat head.txt; echo 'x = 1') > app/a.py"), UNDECIDED),
    (NO_PRINT, ran("git apply fix.patch"), UNDECIDED),
    (NO_PRINT, did(call("apply_patch", path="app/a.py", kind="update")), UNDECIDED),
    (NO_PRINT, did(call("apply_patch", path="app/a.py", kind="delete")), None),
    # a change that is not shown does not hide one that breaks the rule
    (NO_PRINT, ran("sed -i s/a/b/ app/a.py", f"echo '{OLD}' >> app/b.py"), 0),
    # the text of a file that looks like a patch or a command is that file's text
    (NO_PRINT, did(call("Write", file_path="a.md", content=PATCH.format(old="", new=OLD))), None),
    (NO_PRINT, ran("cat > run.sh <<'EOF'\necho 'print(1)' > app/a.py\nEOF"), None),
    (NO_PRINT, did(call("NotebookEdit", **NOTEBOOK, new_source=OLD)), None),
    ({**NO_PRINT, "files": "*.ipynb"}, did(call("NotebookEdit", **NOTEBOOK, new_source=OLD)), 0),
    ({**NO_PRINT, "files": "*.ipynb"}, did(call("NotebookEdit", **NOTEBOOK, new_source=NEW)), 1),
    # a line that moves within an edit is not written
    (NO_PRINT, did(call("Edit", file_path="a.py", old_string=f"{OLD}\na", new_string=f"a\n{OLD}")),
     None),
    (NO_PRINT, did(call("Edit", file_path="a.py", old_string="a", new_string=f"a\n{OLD}")), 0),
    # hunks are as long as they say: a removed line may look like the header of a file
    ({"name": "code_not_written", "pattern": "^-", "files": "q.sql"},
     ran("patch -p1 <<'EOF'\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,1 @@\n--- note\n a\nEOF"), None),
    ({"name": "code_not_written", "pattern": r"\bany\b", "files": "**/*.{ts,tsx}"},
     did(call("Write", file_path="src/ui/a.tsx", content="let a: any = 1")), 0),
    ({"name": "code_not_written", "pattern": r"\bany\b", "files": "src/**/*.{ts,tsx}"},
     did(call("Write", file_path="/w/src/a.ts", content="let a: string")), 1),
    # lines from two places of a file are not read as one text
    ({"name": "code_not_written", "pattern": r"a\nb"},
     did(call("Edit", file_path="x", old_string="k", new_string="a\nk\nb")), 1),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), CODE_WRITTEN)
def test_the_lines_that_a_turn_writes(rule, turn, score):
    assert judge(rule, turn) == score


# Whole turns_with_file


HEADER = {"name": "code_written", "pattern": r"\A# SPDX", "files": "*.py", "whole": True}
WHOLE_FILES = [
    (HEADER, did(call("Write", file_path="a.py", content="# SPDX: MIT\nx = 1")), 1),
    (HEADER, did(call("Write", file_path="a.py", content="x = 1\n# SPDX")), 0),
    (HEADER, did(call("Edit", file_path="a.py", old_string="x", new_string="y")), None),
    (HEADER, ran("sed -i s/x/y/ a.py"), None),
    (HEADER, ran("python make.py > a.py"), UNDECIDED),
    (HEADER, ran("echo '# SPDX' > a.py", "echo 'x' > b.py"), 0.5),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), WHOLE_FILES)
def test_the_files_that_a_turn_writes_as_a_whole(rule, turn, score):
    assert judge(rule, turn) == score


# Marks that are kept


MARKED = {"name": "text_kept", "pattern": r"^# (?:BEGIN|END) GENERATED", "files": "*.py"}
BLOCK = "# BEGIN GENERATED\nx = 1\n# END GENERATED"


def edit(old: str, new: str, path: str = "a.py") -> ToolCall:
    return call("Edit", file_path=path, old_string=old, new_string=new)


READS = call("Read", file_path="a.py")
WRITES = call("Write", file_path="a.py", content="y = 2")
TEXT_KEPT = [
    (MARKED, did(edit(BLOCK, "y = 2")), 0),
    (MARKED, did(edit(BLOCK, BLOCK.replace("1", "2"))), 1),
    (MARKED, did(edit("x = 1", "x = 2")), 1),
    (MARKED, did(edit(BLOCK, "y = 2"), edit("y = 2", BLOCK)), 1),  # put back
    (MARKED, did(edit(BLOCK, "y = 2", "a.md")), None),
    (MARKED, did(edit(BLOCK, "x", "b.py"), edit("x", BLOCK, "c.py")), 0),  # moved elsewhere
    (MARKED, ran("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n"
                 "-# BEGIN GENERATED\n x = 1\n*** End Patch\nEOF"), 0),
    (MARKED, ran("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n"
                 " # BEGIN GENERATED\n-x = 1\n+x = 2\n*** End Patch\nEOF"), 1),
    (MARKED, ran("sed -i '/GENERATED/d' a.py"), UNDECIDED),
    (MARKED, ran("cat a.py"), None),
    (MARKED, did(WRITES), None),  # a new file
    (MARKED, did(READS, WRITES), UNDECIDED),
    (MARKED, did(READS, call("Write", file_path="a.py", content=BLOCK)), 1),
    (MARKED, Turn("", (WRITES,), (call("Write", file_path="a.py", content=BLOCK),)), 0),
    (MARKED, Turn("", (WRITES,), (call("Write", file_path="a.py", content="x"),)), 1),
    (MARKED, ran(f"cat > a.py <<'EOF'\n{BLOCK}\nEOF", "echo 'y = 2' > a.py"), 0),
    (MARKED, ran(f"cat > a.py <<'EOF'\n{BLOCK}\nEOF", "echo 'y = 2' >> a.py"), 1),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "turn", "score"), TEXT_KEPT)
def test_marks_that_a_turn_removes_or_keeps(rule, turn, score):
    assert judge(rule, turn) == score


# Reasons


REASONS = [
    (
        HEADER,
        did(call("Write", file_path="a.py", content="x = 1\n# SPDX")),
        "a.py 'x = 1 # SPDX' does not begin with '# SPDX'",
    ),
    (
        {**HEADER, "pattern": r"\A(?:#!.*\n)?# SPDX"},
        did(call("Write", file_path="a.py", content="x = 1\n# SPDX")),
        "a.py 'x = 1 # SPDX' does not begin with '# SPDX'",
    ),
    (
        {**HEADER, "pattern": r"copyright|\bSPDX"},
        did(call("Write", file_path="a.py", content="x = 1")),
        r"nothing in a.py matches 'copyright|\bSPDX'",
    ),
]


@pytest.mark.parametrize(("rule", "turn", "reason"), REASONS)
def test_the_reason_names_the_missing_text(rule, turn, reason):
    assert build(rule).score_turn(turn).reason == reason
