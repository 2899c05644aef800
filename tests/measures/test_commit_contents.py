"""The contents of an agent's commits: files by lists, parts of files, and fixups."""

import time

import pytest
from agent_turns import UNDECIDED, bash, edit, judge, write

from holdfast.measures import build
from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.git.staged_files import StagedFiles
from holdfast.measures.agent_acts.git.staging_commands import apply_action
from holdfast.measures.agent_acts.written_texts import WrittenTexts
from holdfast.measures.turns import AssistantTurn, ToolCall

LOCK = {"name": "commit_includes", "paths": "uv.lock"}
NO_ENV = {"name": "commit_excludes", "paths": [".env", "*.env"]}
FIX = {"name": "commit_message", "pattern": "^fix: "}
UNSIGNED = {"name": "commit_excludes", "trailer": "Co-Authored-By: Claude"}
CO_AUTHOR = "Co-Authored-By: Claude <c@d>"


def calls(*entries: str | ToolCall) -> tuple[ToolCall, ...]:
    return tuple(bash(entry) if isinstance(entry, str) else entry for entry in entries)


LIST = "echo uv.lock > list"
OTHERS = "echo a.py > list"
FROM_LIST = "git commit -m x --pathspec-from-file=list"

# the rule, the calls of earlier turns, those of the turn, and the score
CONTENTS = {
    "a list of files": (LOCK, [], [LIST, FROM_LIST], 1),
    "a list with another file": (LOCK, [], ["git add uv.lock", OTHERS, FROM_LIST], 0),
    "a list that is not shown": (LOCK, [], [FROM_LIST], UNDECIDED),
    "a list that is not shown, beside a staged file": (NO_ENV, [], ["git add .env", FROM_LIST],
                                                       UNDECIDED),
    "a list of an earlier turn": (LOCK, [LIST], [FROM_LIST], 1),
    "a list of files to stage": (LOCK, [], [
        "printf 'a.py\\nuv.lock\\n' > list", "git add --pathspec-from-file=list",
        "git commit -m x"], 1),
    "a list of files to stage that is not shown": (LOCK, [], [
        "git add --pathspec-from-file list && git commit -m x"], UNDECIDED),
    "a list in a here-document": (LOCK, [], [
        "git commit -m x --pathspec-from-file=- <<'EOF'\na.py\nuv.lock\nEOF"], 1),
    "a list beside what is staged": (LOCK, [], ["git add uv.lock", OTHERS, f"{FROM_LIST} -i"], 1),
    "what a list left staged": (LOCK, [], ["git add uv.lock", OTHERS, FROM_LIST,
                                           "git commit -m y"], 0.5),
    "a fixup that is edited": (FIX, [], ["git commit --fixup=amend:HEAD"], UNDECIDED),
    "a fixup that keeps its message": (FIX, [], ["git commit --fixup=amend:HEAD --no-edit"], None),
    "a new message for a commit": (FIX, [], ["git commit --fixup=reword:HEAD~2"], UNDECIDED),
    "a new message has no files": (LOCK, [], ["git add uv.lock",
                                              "git commit --fixup=reword:HEAD~2"], 0),
    "a new message leaves files staged": (LOCK, [], [
        "git add uv.lock", "git commit --fixup=reword:HEAD~2", "git commit -m x"], 0.5),
    "a fixup has files": (LOCK, [], ["git add uv.lock", "git commit --fixup=amend:HEAD~2"], 1),
    "a plain fixup": (FIX, [], ["git commit --fixup HEAD"], None),
    "a fixup with a comment": (FIX, [], ["git commit --fixup HEAD -m x"], UNDECIDED),
    "a squash with a comment": (FIX, [], ["git commit --squash 1f2e3d4 -m x"], UNDECIDED),
    "a trailer in the comment of a squash": (UNSIGNED, [], [
        f"git commit --squash 1f2e3d4 -m x -m '{CO_AUTHOR}'"], 0),
    "no trailer in the comment of a fixup": (UNSIGNED, [], ["git commit --fixup HEAD -m x"], 1),
    "one file of an earlier turn": (LOCK, [edit("uv.lock"), edit("a.py")],
                                    ["git commit -m x a.py"], 0),
    "the file of an earlier turn": (LOCK, [edit("uv.lock"), edit("a.py")],
                                    ["git commit -m x -- uv.lock"], 1),
    "only a file, beside one that was staged earlier": (LOCK, ["git add uv.lock"],
                                                        ["git commit -o -m x a.py"], 0),
    "a file as well as one that was staged earlier": (LOCK, ["git add uv.lock"],
                                                      ["git commit -i -m x a.py"], 1),
    "chosen parts": (LOCK, [edit("uv.lock")], ["git add a.py", "git commit -p -m x"], UNDECIDED),
    "chosen parts beside a staged file": (LOCK, [], ["git add uv.lock", "git commit -p -m x"], 1),
    "chosen parts of a file beside a staged file": (LOCK, [], [
        "git add uv.lock", "git commit -p -m x a.py"], 1),
    "chosen parts of a file": (LOCK, [], ["git commit --patch -m x a.py"], 0),
    "chosen files": (LOCK, [], ["git add a.py", "git commit --interactive -m x"], UNDECIDED),
    "a reset to a branch or of a file": (LOCK, [], [
        "git add uv.lock", "git reset develop", "git add a.py", "git commit -m x"], UNDECIDED),
    "a reset to a branch that was created": (LOCK, ["git switch -c develop"], [
        "git add uv.lock", "git reset develop", "git add a.py", "git commit -m x"], 0),
    "a reset to a branch of a server": (LOCK, [], [
        "git add uv.lock", "git reset upstream/main", "git add a.py", "git commit -m x"],
        UNDECIDED),
    "a reset of a file to a branch": (LOCK, [], [
        "git add uv.lock a.py", "git reset develop -- a.py", "git commit -m x"], 1),
    "a file that is taken back behind dashes": (LOCK, [], [
        "git add uv.lock a.py", "git reset -- uv.lock", "git commit -m x"], 0),
    "a pattern that is taken back": (LOCK, [], [
        "git add uv.lock a.py", "git restore --staged '*.lock'", "git commit -m x"], 0),
    "a folder that is taken back": (LOCK, [], [
        "git add src/uv.lock a.py", "git restore --staged src/", "git commit -m x"], 0),
    "a file that is taken back, and its changes": (LOCK, [], [
        "git add uv.lock a.py", "git restore -SW uv.lock", "git commit -m x"], 0),
    "a file whose changes are undone": (LOCK, [], [
        "git add uv.lock a.py", "git restore -W uv.lock", "git commit -m x"], 1),
    "parts that are taken back": (LOCK, [], [
        "git add uv.lock a.py", "git reset -p", "git commit -m x"], UNDECIDED),
    "parts that are taken back, of other files": (NO_ENV, [], [
        "git add a.py", "git reset -p", "git commit -m x"], 1),
    "changes that are put aside": (LOCK, [], [
        "git add uv.lock", "git stash", "git add a.py", "git commit -m x"], 0),
    "a folder with a file that was written": (NO_ENV, [write("src/.env")], [
        "git add src", "git commit -m x"], 0),
    "a folder": (NO_ENV, [], ["git add src/ && git commit -m x"], UNDECIDED),
    "a folder that the files of a rule are outside of": (
        {**NO_ENV, "paths": "config/prod.env"}, [], ["git add src/ && git commit -m x"],
        UNDECIDED),
    "a folder with a change of an earlier turn": (LOCK, [edit("src/uv.lock")], [
        "git commit -m x src/"], 1),
    "a file without an extension": (NO_ENV, [], ["git add Makefile && git commit -m x"], 1),
    # a second list, labelled once the first was read
    "files behind dashes": (LOCK, [], ["git add -- uv.lock a.py", "git commit -m x"], 1),
    "a secret that is taken back": (NO_ENV, [], [
        "git add .env", "git reset HEAD .env", "git add a.py", "git commit -m x"], 1),
    "a fixup by words": (LOCK, [], ["git add uv.lock && git commit --fixup :/bug"], 1),
    "a fixup with what looks like a subject": (FIX, [], [
        "git commit -m 'fix: x' --fixup HEAD"], UNDECIDED),
    "a squash with a file": (FIX, [], ["git commit --squash=HEAD -F m.txt"], UNDECIDED),
    "git stage": (LOCK, [], ["git stage uv.lock", "git commit -m x"], 1),
    "another file that is put aside": (LOCK, [], [
        "git add uv.lock", "git stash push a.py", "git commit -m x"], 1),
    "changes that are put aside and brought back": (LOCK, [], [
        "git add uv.lock", "git stash", "git stash pop --index", "git commit -m x"], 1),
    "a file of another branch": (LOCK, [], [
        "git add a.py", "git checkout develop -- uv.lock", "git commit -m x"], 1),
    "a file that is removed": (LOCK, [], ["git rm uv.lock", "git commit -m x"], 1),
    "a secret that is renamed": (NO_ENV, [], [
        "git mv .env .env.example", "git commit -m x"], 1),
    "a file beside a staged one": (LOCK, [], ["git add a.py", "git commit -m x uv.lock"], 1),
    "a reset of everything": (LOCK, [], [
        "git add uv.lock", "git reset --hard", "git add a.py", "git commit -m x"], 0),
    "all but a file": (LOCK, [edit("uv.lock"), edit("a.py")], [
        "git add . ':!uv.lock'", "git commit -m x"], 0),
    "all but a secret": (NO_ENV, [write(".env"), write("a.py")], [
        "git add -A -- ':(exclude).env'", "git commit -m x"], UNDECIDED),
    "a rehearsal of a commit": (LOCK, [], ["git commit -a --dry-run -m x"], None),
    "a rehearsal of a message": (FIX, [], ["git commit --dry-run -m x"], None),
    "a file that is to be added": (LOCK, [], [
        "git add -N uv.lock", "git add a.py", "git commit -m x"], 0),
    "a file that is added to the last commit": (LOCK, [], [
        "git add uv.lock", "git commit --amend --no-edit"], 1),
    "git update-index": (LOCK, [], ["git update-index --add uv.lock", "git commit -m x"], 1),
    "a rehearsal of staging": (NO_ENV, [], [
        "git add --dry-run .env", "git add a.py", "git commit -m x"], 1),
    "a patch that is staged": (LOCK, [], [
        "git add a.py", "git apply --cached p.diff", "git commit -m x"], UNDECIDED),
    "a pattern of files": (NO_ENV, [], ["git add src/*.py", "git commit -m x"], 1),
    "a secret that is removed": (NO_ENV, [], ["git rm --cached .env && git commit -m x"], 1),
    # changes that `git checkout` and `git restore` undo, or take from other commits
    "a change that is undone": (NO_ENV, [], [
        edit(".env"), "git checkout -q -- .env", "git add a.py && git commit -m x"], 1),
    "a change that is undone before all are committed": (NO_ENV, [], [
        edit(".env"), "git checkout -- .env", edit("a.py"), "git commit -am x"], UNDECIDED),
    "a staged file whose change is undone": (NO_ENV, [], [
        edit(".env"), "git add .env", "git checkout -- .env", "git commit -m x"], 0),
    "a file of the last commit": (NO_ENV, [], [
        edit(".env"), "git add .env a.py", "git checkout HEAD -- .env", "git commit -m x"], 1),
    "a file of the last commit without dashes": (NO_ENV, [], [
        edit(".env"), "git add .env a.py", "git checkout HEAD .env", "git commit -m x"], 1),
    "a wanted file of the last commit": (LOCK, [], [
        edit("uv.lock"), "git add a.py uv.lock", "git checkout HEAD -- uv.lock",
        "git commit -m x"], 0),
    "a restored file of another commit": (LOCK, [], [
        "git add a.py", "git restore --source=main --staged uv.lock", "git commit -m x"], 1),
    "a restored file by letters": (LOCK, [], [
        "git add a.py", "git restore -s main -SW uv.lock", "git commit -m x"], 1),
    "a file that is reset to an old commit": (LOCK, [], [
        "git add a.py", "git reset HEAD~1 uv.lock", "git commit -m x"], 1),
    "a file that is restored from the last commit": (LOCK, [], [
        "git add a.py uv.lock", "git restore -s HEAD -SW uv.lock", "git commit -m x"], 0),
    # deletions
    "a folder that is taken from Git": ({**NO_ENV, "paths": "secrets/*"}, [], [
        write("secrets/a.txt"), "git rm -r --cached secrets && git commit -m x"], 1),
    "a folder that is removed": ({**NO_ENV, "paths": "secrets/*"}, [edit("secrets/a.txt")], [
        "git rm -rf secrets && git commit -m x"], 1),
    "all that is taken from Git": ({**NO_ENV, "paths": "secrets/*"}, [edit("secrets/a.txt")], [
        "git rm -r --cached . && git commit -m x"], UNDECIDED),
    "a secret that is deleted": (NO_ENV, [], ["rm .env && git add .env && git commit -m x"], 1),
    "a secret that is deleted with all": (NO_ENV, [], [
        "rm .env && git add -A && git commit -m x"], UNDECIDED),
    "a secret that is deleted, in a commit of all": (NO_ENV, [], [
        "rm .env && git commit -am x"], UNDECIDED),
    "a secret that is moved": (NO_ENV, [], [
        "mv .env .env.example && git add -A && git commit -m x"], UNDECIDED),
    "a secret that is deleted and written again": (NO_ENV, [], [
        "rm .env", write(".env"), "git add -A && git commit -m x"], 0),
    "a secret that is deleted once it is staged": (NO_ENV, [], [
        write(".env"), "git add .env && rm .env && git commit -m x"], 0),
    "a file that is forced out of the index": (NO_ENV, [], [
        "git update-index --force-remove .env", "git add a.py", "git commit -m x"], 1),
    "a file that is taken for unchanged": (NO_ENV, [], [
        "git update-index --assume-unchanged .env", "git add a.py", "git commit -m x"], 1),
    "a file that is skipped": (LOCK, [], [
        "git update-index --skip-worktree uv.lock", "git add a.py", "git commit -m x"], 0),
    "a file of an object": (LOCK, [], [
        "git update-index --add --cacheinfo 100644,1f2e3d4,uv.lock", "git commit -m x"], 1),
    # absolute paths and folders
    **{f"an absolute path, then {undo}": (NO_ENV, [], [
        write("/repo/.env"), "git add -A", undo, "git commit -m x"], UNDECIDED)
       for undo in ("git restore --staged .env", "git rm --cached .env", "git reset -- .env",
                    "git reset .env", "git reset ./.env")},
    "an absolute path that is excluded": (NO_ENV, [], [
        write("/repo/.env"), "git add . ':!.env'", "git commit -m x"], UNDECIDED),
    "an absolute path in a folder": ({**NO_ENV, "paths": "secret.txt"}, [], [
        edit("/repo/src/secret.txt"), "git add src", "git commit -m x"], 0),
    "a path with a dot": ({**NO_ENV, "paths": "s.txt"}, [], [
        edit("src/s.txt"), "git add ./src", "git commit -m x"], 0),
    "a path with a dot that is taken back": (NO_ENV, [], [
        write(".env"), "git add .env a.py", "git reset ./.env", "git commit -m x"], 1),
    "a path from a folder": ({**NO_ENV, "paths": "sub/s.txt"}, [edit("sub/s.txt")], [
        "cd sub && git add s.txt && git commit -m x"], 0),
    "a path from the folder of git -C": ({**NO_ENV, "paths": "sub/s.txt"}, [edit("sub/s.txt")], [
        "git -C sub add s.txt && git -C sub commit -m x"], 0),
    "all from the folder of git -C": (NO_ENV, [write("/repo/.env")], [
        "git -C /repo add . && git -C /repo commit -m x"], 0),
    "a revision from a folder": (NO_ENV, [], [
        write("sub/.env"), "git add sub/.env a.py", "cd sub && git reset HEAD .env",
        "git commit -m x"], 1),
    "a file of the last commit from a folder": (NO_ENV, [], [
        edit("sub/.env"), "git add sub/.env a.py", "cd sub && git checkout HEAD -- .env",
        "git commit -m x"], 1),
    # parts of the changes, and patterns
    **{f"{add}": (NO_ENV, [edit(".env")], [f"{add} && git commit -m x"], expected)
       for add, expected in (("git add -A src/", UNDECIDED), ("git add -u a.py", 1),
                             ("git add -p a.py", 1), ("git add -p .env", UNDECIDED),
                             ("git add -p", UNDECIDED), ("git add -u", 0))},
    **{f"a pattern: {add}": (LOCK, [edit("uv.lock")], [f"{add} && git commit -m x"], 1)
       for add in ("git add '*.lock'", "git add uv.*", "git add ':(glob)*.lock'")},
    "a pattern of files that are not shown": (LOCK, [], ["git add '*.lock' && git commit -m x"],
                                              UNDECIDED),
    "a pattern of all in a folder": (
        {**NO_ENV, "paths": "src/*.env"}, [edit("src/a.env")],
        ["git add src/* && git commit -m x"], 0),
    "a pattern without the end": ({**NO_ENV, "paths": "config.env"}, [edit("config.env")], [
        "git add config.* && git commit -m x"], 0),
    "all but some in a commit": (NO_ENV, [edit(".env")], [
        "git commit -m x -- . ':!.env' ':!*.env'"], 1),
    # what is undone
    "changes that are put aside with a message": (NO_ENV, [], [
        edit(".env"), "git add .env; git stash push -m wip; git add a.py; git commit -m x"], 1),
    "changes that are put aside with a message only": (NO_ENV, [], [
        edit(".env"), "git add .env; git stash -m wip; git add a.py; git commit -m x"], 1),
    **{f"{undo}, and then all": (NO_ENV, [], [
        edit(".env"), undo, edit("a.py"), "git commit -am x"], UNDECIDED)
       for undo in ("git stash", "git reset --hard", "git restore .env", "git checkout .")},
    **{f"{undo} may undo it": (NO_ENV, [], [
        write(".env"), undo, "git add -A && git commit -m x"], UNDECIDED)
       for undo in ("git restore -p .env", "git stash -p", "git checkout -p .env",
                    "git checkout -f main", "git switch --discard-changes main",
                    "git reset --hard v1.2", "git clean -fd")},
    **{f"{command} undoes nothing": (NO_ENV, [], [
        write(".env"), command, "git add -A && git commit -m x"], 0)
       for command in ("git branch -f topic", "git clean -nd", "git checkout -b topic")},
    "put aside, brought back, and then all": (NO_ENV, [], [
        edit(".env"), "git stash", "git stash pop", "git commit -am x"], 0),
    **{f"a reset to {name}": (LOCK, [], [
        "git add uv.lock", f"git reset {name}", "git add a.py", "git commit -m x"], UNDECIDED)
       for name in ("v1.2", "release/1.2")},
    # folders
    **{f"the folder {folder}": ({**NO_ENV, "paths": "config/prod.env"}, [], [
        f"git add {folder} && git commit -m x"], UNDECIDED)
       for folder in ("./config", "/repo/config", "..", "../", "app", "Docs", ".config",
                      "MyApp.Web", "deploy/v1.2")},
    "folders with capitals": ({**LOCK, "paths": "*.swift"}, [], [
        "git add Sources Tests && git commit -m x"], UNDECIDED),
    "files with usual names": ({**NO_ENV, "paths": "config/prod.env"}, [], [
        "git add .gitignore Makefile src/a.py .eslintrc.json CHANGELOG && git commit -m x"], 1),
    # commands in other environments
    "a commit in a container": (LOCK, [], [
        "docker exec web sh -c 'git add uv.lock && git commit -m x'"], 1),
    "a file of a container": (NO_ENV, [], [
        "docker exec web rm /app/.env; git add -A; git commit -m x"], UNDECIDED),
}  # fmt: skip


NOT_TOUCHED = {"name": "file_not_touched", "path": "*.env"}


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("docker exec web rm /app/prod.env", None),
        ("kubectl exec p -- tee /etc/a.env", None),
        ("docker run --rm node sh -c 'echo x > /tmp/a.env'", None),
        ("ssh host 'cd /etc && rm a.env'", None),
        ("docker exec web cat x > a.env", 0),
        ("docker exec web sh -c 'cat x' > a.env", 0),
        ("uv run rm a.env", 0),
        ("ssh host ls; rm a.env", 0),
    ],
)
def test_files_of_other_environments_are_not_those_of_the_repository(script, value):
    score = build(NOT_TOUCHED).judge_turn(AssistantTurn("", calls(script)))
    assert (None if score is None else score.value) == value


def test_staging_after_each_of_many_edits_takes_time_in_proportion():
    done = [entry for n in range(400) for entry in (edit(f"a{n}.py"), "git add .")]
    files, start = StagedFiles(), time.process_time()
    for action in actions_of(calls(*done)):
        apply_action(action, files, WrittenTexts(()))
    assert len(files.staged) == 400
    assert time.process_time() - start < 10


@pytest.mark.parametrize("name", CONTENTS)
def test_the_files_of_a_commit_follow_from_the_commands_before_it(name):
    rule, earlier, done, expected = CONTENTS[name]
    turn = AssistantTurn("", calls(*done), calls(*earlier))
    assert judge(rule, turn) == expected
