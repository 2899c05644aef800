"""Commands as they are read from an agent's calls: wrapped, in scripts, and in here-documents."""

import pytest
from agent_turns import ran

from holdfast.measures import build
from holdfast.measures.agent_acts.actions import commands_of
from holdfast.measures.agent_acts.agent_tools import script_as_written
from holdfast.measures.agent_acts.edits.command_edits import edits_by_command
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.turns import AssistantTurn as Turn
from holdfast.measures.turns import ToolCall
from holdfast.measures.wording.command_words import commands_in_words


def score_turn(spec, turn: Turn) -> float | None:
    score = build(spec).score_turn(turn)
    return None if score is None else score.value


NO_PUSH = {"name": "command_not_run", "command": r"git push .*--force"}
TESTED = {"name": "runs_before", "first": "make test", "then": "git commit"}
COMMIT = {"name": "commit_message", "pattern": r"^(feat|fix)(\(.+\))?: \S"}
HEREDOC = "git commit -m \"$(cat <<'EOF'\nfix: the total\n\nMore.\nEOF\n)\""


# Commands in every form


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


# Texts of pull requests and commits


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


def test_the_name_of_a_trailer_has_no_case():
    spec = {"name": "commit_excludes", "trailer": "Co-Authored-By: Claude"}
    commit = "git commit -m x --trailer 'Co-authored-by: Claude <a@b>'"
    assert score_turn(spec, ran(commit)) == 0


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"go vet \./\.\.\.", "`go vet ./...`"),
        (r"bun test(?!\S)", "`bun test`"),
        ("cargo clippy --all -- -D warnings", "`cargo clippy --all -- -D warnings`"),
        (r"(?:npm|pnpm) run lint(?!\S)|make lint", "`npm/pnpm run lint` or `make lint`"),
        (r"git( \S+)* push", "`git push`"),
        (r"\W+", ""),
    ],
)
def test_a_pattern_is_named_as_a_person_would_write_the_command(pattern, words):
    assert commands_in_words(pattern) == words


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["bash", "-lc", "git commit -m 'a b'"], "git commit -m 'a b'"),
        (["/bin/sh", "-c", "ls"], "ls"),
        (["git", "commit", "-m", "a b"], "git commit -m 'a b'"),
        ("bash -lc 'ls'", "bash -lc 'ls'"),
    ],
)
def test_a_script_is_shown_as_it_was_written(command, script):
    assert script_as_written(ToolCall("shell", {"command": command})) == script
