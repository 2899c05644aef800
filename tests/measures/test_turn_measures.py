"""The measures of an agent's actions, each on calls whose score is obvious."""

import pytest
from agent_turns import ran

from holdfast.errors import UsageError
from holdfast.measures import build
from holdfast.measures.agent_acts.actions import commands_of, edits_of
from holdfast.measures.agent_acts.edits.command_edits import edits_by_command
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall, When


def score_turn(spec, turn: Turn) -> float | None:
    score = build(spec).score_turn(turn)
    return None if score is None else score.value


EDIT = Turn("", (ToolCall("Edit", {"file_path": "/app/migrations/0001.sql"}),))
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Delete File: b/c.txt\n"
LOOKUP = Turn("", (ToolCall("lookup_price", {"sku": "A-1", "count": 2}),))
NO_PUSH = {"name": "command_not_run", "command": r"git push .*--force"}
TESTED = {"name": "runs_before", "first": "make test", "then": "git commit"}
COMMIT = {"name": "commit_message", "pattern": r"^(feat|fix)(\(.+\))?: \S"}
HEREDOC = "git commit -m \"$(cat <<'EOF'\nfix: the total\n\nMore.\nEOF\n)\""

SCHEMA = {"arguments_schema": {"required": ["sku"]}}
CASES = [
    ({"name": "tool_called", "tool": "lookup_*"}, LOOKUP, 1),
    ({"name": "tool_called", "tool": "search"}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price", "arguments": {"sku": "^A"}}, LOOKUP, 1),
    ({"name": "tool_called", "tool": "lookup_price", "arguments": {"sku": "^B"}}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price", "arguments": {"no": "."}}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price", **SCHEMA}, LOOKUP, 1),
    ({"name": "tool_called", "tool": "*", "arguments_schema": {"required": ["name"]}}, LOOKUP, 0),
    ({"name": "tool_called", "tool": "lookup_price"}, Turn("Hello."), 0),
    ({"name": "tool_not_called", "tool": "lookup_price"}, LOOKUP, 0),
    ({"name": "tool_not_called", "tool": "delete_all"}, LOOKUP, 1),
    ({"name": "tool_not_called", "tool": "delete_all"}, Turn("Hello."), None),
    (NO_PUSH, ran("git push origin main"), 1),
    (NO_PUSH, ran("git status && git push origin main --force"), 0),
    (NO_PUSH, EDIT, None),
    ({"name": "command_run", "command": "make test"}, ran("ls", "make test"), 1),
    ({"name": "command_run", "command": "make test"}, Turn("Tested."), 0),
    ({"name": "file_not_touched", "path": "migrations/*"}, EDIT, 0),
    ({"name": "file_not_touched", "path": "migrations/"}, EDIT, 0),
    ({"name": "file_not_touched", "path": "docs/"}, ran("cd docs; rm -rf old"), 0),
    ({"name": "file_not_touched", "path": "doc/"}, ran("echo x > docs/a.md"), 1),
    ({"name": "file_not_touched", "path": "docs/*"}, EDIT, 1),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("cat docs/a.md"), None),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("echo x > docs/a.md"), 0),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("cd docs; rm -rf docs/old"), 0),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("echo x > /tmp/docs/a.md"), 1),
    ({"name": "file_not_touched", "path": "docs/*"}, ran("echo x > /tmp/app/docs/a.md"), 0),
    ({"name": "file_not_touched", "path": "*.md"}, ran("echo x > /tmp/a.md"), 1),
    ({"name": "file_not_touched", "path": "*.md"}, ran("echo x > /tmp/app/a.md"), 0),
    ({"name": "file_not_touched", "path": "/tmp/*"}, ran("echo x > /tmp/a.md"), 0),
    (TESTED, ran("make test", "git commit -m x"), 1),
    (TESTED, ran("git commit -m x"), 0),
    (TESTED, ran("make test", "git commit -m x", "git commit -m y"), 0),
    (TESTED, Turn("", ran("git commit -m x").calls, ran("make test").calls), 1),
    (TESTED, Turn("", ran("git commit -m y").calls, ran("make test", "git commit").calls), 0),
    (TESTED, ran("make test"), None),
    (COMMIT, ran("git commit -m 'fix(cart): total'"), 1),
    (COMMIT, ran('git commit -am "Fixed it"'), 0),
    (COMMIT, ran("git commit --message='feat: x'", "git add . && git commit -m wip"), 0.5),
    (COMMIT, ran(HEREDOC), 1),
    (COMMIT, ran("git log"), None),
]


@pytest.mark.parametrize(("spec", "turn", "value"), CASES)
def test_a_measure_scores_the_actions_of_a_turn(spec, turn, value):
    assert score_turn(spec, turn) == value


def test_a_text_measure_skips_a_turn_without_text():
    assert score_turn("one_sentence", Turn("One.")) == 1
    assert score_turn("one_sentence", EDIT) is None


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        ({"command": "ls -l"}, [["ls", "-l"]]),
        ({"cmd": "A=1 ls 'a b' && pwd"}, [["ls", "a b"], ["pwd"]]),
        ({"command": ["bash", "-lc", "ls | wc"]}, [["ls"], ["wc"]]),
        ({"command": ["ls", "a b"]}, [["ls", "a b"]]),
        ({"command": "cat > x <<EOF\npip install\nEOF\nls"}, [["cat", ">", "x"], ["ls"]]),
        ({"command": "echo 'two\nlines'; ls"}, [["echo", "two\nlines"], ["ls"]]),
        ({"path": "ls"}, []),
    ],
)
def test_commands_are_read_in_every_form(arguments, commands):
    parsed = commands_of([ToolCall("shell", arguments)])
    assert [list(command.words) for command in parsed] == commands


FORCED = "git push --force"
SEEN_THROUGH = [
    FORCED,
    f"cd x && {FORCED}",
    f"FOO=1 {FORCED}",
    f"env FOO=1 {FORCED}",
    f"sudo -u bob {FORCED}",
    f"timeout -k 5 60 {FORCED}",
    f"command {FORCED}",
    f"nohup {FORCED} &",
    f"xargs -n 1 {FORCED} < list",
    f"watch '{FORCED}'",
    f"find . -name x -execdir {FORCED} \\;",
    "git -C /w -c user.name=x push --force",
    "/usr/bin/git push --force",
    "'git' push \"--force\"",
    "git push \\\n  --force",
    f"({FORCED})",
    f"{{ {FORCED}; }} 2>&1",
    f"echo $({FORCED})",
    f"echo `{FORCED}`",
    f"diff <({FORCED}) b",
    f"make || {FORCED} | tee log",
    f"! {FORCED}",
    f"for r in a b; do {FORCED} $r; done",
    f"while read l; do {FORCED}; done < list",
    f"if true; then {FORCED}; fi",
    f"case $x in a) {FORCED};; esac",
    f"push() {{ {FORCED}; }}; push",
    f"bash -c '{FORCED}'",
    f'bash -lc "cd x && {FORCED}"',
    f"sh -c \"bash -c '{FORCED}'\"",
    f"bash <<'EOF'\n{FORCED}\nEOF",
    f"bash <<< '{FORCED}'",
    f"cat <<EOF\n$({FORCED})\nEOF",
    f"eval '{FORCED}'",
    f"trap '{FORCED}' EXIT",
    f"ssh -p 22 host 'cd x; {FORCED}'",
    f"su - bob -c '{FORCED}'",
    f"RUN='{FORCED}'; $RUN",
    "OPTIONS=--force; git push $OPTIONS",
    f"sudo env -i A=1 timeout 60 bash -c 'nohup {FORCED}'",
    f"{FORCED} 'unclosed",
]


@pytest.mark.parametrize("script", SEEN_THROUGH)
def test_a_command_is_seen_through_what_it_is_wrapped_in(script):
    rule = {"name": "command_not_run", "command": rf"{FORCED}(?!\S)"}
    assert score_turn(rule, ran(script)) == 0


@pytest.mark.parametrize(
    "script",
    [
        f"# {FORCED}\nls",
        f"echo '{FORCED}'",
        f"git commit -m '{FORCED}'",
        f"cat > push.sh <<EOF\n{FORCED}\nEOF",
        f"grep -r '{FORCED}' .",
        "command -v git push --force",
    ],
)
def test_a_text_that_is_not_run_is_no_command(script):
    assert score_turn({"name": "command_not_run", "command": FORCED}, ran(script)) == 1


@pytest.mark.parametrize(
    ("pattern", "script", "value"),
    [
        ("sudo", "sudo apt install x", 0),
        ("apt", "sudo apt install x", 0),
        ("(?!sudo )apt", "sudo apt install x", 1),
        ("(?!sudo )apt", "apt install x", 0),
        (r"git (?!-C)", "git -C app status", 1),
        (r"git (?!-C)", "git status", 0),
        (r"bash -c", "bash -c 'ls'", 0),
        (r"cat \.env", "env cat .env", 0),
        (r"docker", "time docker run x", 0),
    ],
)
def test_a_pattern_about_a_wrapper_is_matched_with_the_wrapper(pattern, script, value):
    assert score_turn({"name": "command_not_run", "command": pattern}, ran(script)) == value


def test_a_wrapped_command_counts_once_among_others():
    assert score_turn(TESTED, ran("make -C app test", "sudo git -C app commit -m x")) == 1
    assert score_turn(TESTED, ran("bash -lc 'make test && git commit -m x'")) == 1


BODY = "## Summary\nIt adds up.\n\n### Agent review\nNone."
REVIEWED = {"name": "command_not_run", "command": r"gh pr create(?![\s\S]*Agent review)"}
CREATE = "gh pr create --title 'Fix it'"


@pytest.mark.parametrize(
    "script",
    [
        f"{CREATE} --body \"$(cat <<'EOF'\n{BODY}\nEOF\n)\"",
        f"{CREATE} --body-file - <<'EOF'\n{BODY}\nEOF",
        f"cat > body.md <<'EOF'\n{BODY}\nEOF\n{CREATE} --body-file body.md",
        f"BODY=$(cat <<'EOF'\n{BODY}\nEOF\n)\n{CREATE} --body \"$BODY\"",
    ],
)
def test_the_text_of_a_here_document_is_that_of_the_argument(script):
    assert score_turn(REVIEWED, ran(script)) == 1
    assert score_turn(REVIEWED, ran(script.replace("### Agent review", "### Tests"))) == 0


@pytest.mark.parametrize(
    "script",
    [
        "git commit -F - <<'EOF'\nfix: the total\n\nMore.\nEOF",
        "git -C app commit -m 'fix: the total'",
        "bash -c \"git commit -m 'fix: the total'\"",
    ],
)
def test_a_commit_message_is_found_where_it_is_written(script):
    assert score_turn(COMMIT, ran(script)) == 1
    assert score_turn(COMMIT, ran(script.replace("fix:", "Fixed"))) == 0


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


@pytest.mark.parametrize(
    ("when", "applies"),
    [
        (When(), True),
        (When(user="PRICE"), True),
        (When(reply="one"), True),
        (When(tool="look*"), True),
        (When(role="tool"), True),
        (When(user="price", role="user"), False),
    ],
)
def test_a_rule_applies_to_the_turns_that_meet_all_its_conditions(when, applies):
    turn = Turn("One.", LOOKUP.calls)
    assert when.applies(turn, "What is the price?", "tool") is applies


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"name": "command_not_run", "command": "("}, "'('"),
        ({"name": "tool_called", "tool": "x", "arguments_schema": {"type": "nothing"}}, "nothing"),
        ({"name": "tool_called", "tool": "x", "arguments": {"a": "["}}, "'['"),
        ({"name": "tool_called", "tool": ""}, "tool"),
    ],
)
def test_a_malformed_argument_is_named(spec, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(").replace("[", r"\[")):
        build(spec)


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


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("printf 'x: %s\\n' any | tee x.py", "x: any\n"),
        ("printf '%s\\n' a b > x.py", "a\nb\n"),
        ("printf '100%%' > x.py", "100%"),
    ],
)
def test_printf_puts_its_arguments_into_its_format(script, text):
    (edit,) = (e for command in read_script(script) for e in edits_by_command(command))
    assert edit.added == (text,)


def test_a_commit_message_may_be_piped_into_git():
    script = "printf 'fix: %s\\n' y | git commit -F -"
    assert score_turn(COMMIT, ran(script)) == 1


AFTER = {"name": "runs_after", "changed": "*.py", "run": r"make (?:lint|check)(?!\S)"}
ASKS = {"name": "asks_before", "command": r"git push(?!\S)", "asking": r"(?i)\bpush"}
WRITES = ToolCall("Write", {"file_path": "/app/a.py", "content": "x = 1"})
REASONS = [
    (
        TESTED,
        ran("git commit -m 'csv stuff'"),
        "`git commit -m 'csv stuff'` ran without `make test` before it",
    ),
    (TESTED, ran("make test", "git commit"), "`make test` came before `git commit`"),
    (
        {"name": "runs_before", "first": "npm run test", "then": "git commit"},
        ran("CI=1 npm test > log.txt", 'git commit -m "fix: it\'s done"'),
        '`CI=1 npm test > log.txt` came before `git commit -m "fix: it\'s done"`',
    ),
    (
        {"name": "runs_after", "run": "npm run test", "changed": "*.py"},
        Turn("", (WRITES, *ran("npm t").calls)),
        "`npm t` ran after a change of /app/a.py",
    ),
    (
        {"name": "command_run", "command": "npm run test"},
        ran("cd web && npm test -- --ci"),
        "ran 'npm test -- --ci'",
    ),
    (
        {"name": "command_not_run", "command": "rm"},
        ran('for f in *.log; do rm "$f"; done'),
        "ran 'rm \"$f\"'",
    ),
    (AFTER, Turn("", (WRITES,)), "`make lint/check` did not run after a change of /app/a.py"),
    (
        ASKS,
        Turn("", ran("git push").calls, user="Go on.", previous="Done."),
        "`git push` came without a question to the user before it",
    ),
    (COMMIT, ran("git commit -m wip"), "the message 'wip' does not match the rule's pattern"),
    (
        {"name": "commit_excludes", "paths": ".env"},
        ran("git add .env && git commit -m x"),
        "the commit was made with .env",
    ),
]


@pytest.mark.parametrize(("spec", "turn", "reason"), REASONS)
def test_reasons_are_in_words(spec, turn, reason):
    assert build(spec).score_turn(turn).reason == reason


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


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("pnpm run test", "pnpm test"),
        ("pnpm t", "pnpm test"),
        ("npm run test -- --ci", "npm test"),
        ("npm test", "npm run test"),
        ("pnpm --filter web test", "pnpm test"),
        ("pnpm -r run lint", "pnpm lint"),
        ("yarn --cwd web lint", "yarn run lint"),
        ("npm -w web run build", "npm run build"),
        ("go -C api test ./...", "go test"),
    ],
)
def test_a_script_is_the_same_with_run_and_without(command, pattern):
    assert score_turn({"name": "command_run", "command": pattern}, ran(command)) == 1


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("pnpm run install", "pnpm install"),
        ("npm run lint", "npm lint"),
        ("npm install", "npm run install"),
        ("pnpm run", "pnpm test"),
        ("bun run test", "bun test"),  # two different things
    ],
)
def test_a_script_is_not_a_command_of_the_package_manager(command, pattern):
    assert score_turn({"name": "command_run", "command": pattern}, ran(command)) == 0


def test_the_reason_names_the_program_behind_its_wrapper():
    spec = {"name": "prefers", "use": "pnpm", "rather_than": "npm"}
    score = build(spec).score_turn(ran("sudo npm i -g x"))
    assert score is not None and score.reason == "`npm` was used"


def test_the_name_of_a_trailer_has_no_case():
    spec = {"name": "commit_excludes", "trailer": "Co-Authored-By: Claude"}
    commit = "git commit -m x --trailer 'Co-authored-by: Claude <a@b>'"
    assert score_turn(spec, ran(commit)) == 0
