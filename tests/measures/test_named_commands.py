"""Commands that a script runs by a name: functions, aliases, arrays, targets and files."""

import time

import pytest
from agent_turns import write

from holdfast.measures import build
from holdfast.measures.agent_acts.agent_tools import script_as_written
from holdfast.measures.agent_acts.scripts.powershell_scripts import bash_of_powershell
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.measures.wording.command_words import commands_in_words

FORCE = "git push --force"
PUSH = r"git push(?: \S+)* --force(?!\S)"

MAKEFILE = "deploy: build\n\tgit push --force\n\nbuild:\n\tnpm run build\n\nlint:\n\teslint .\n"
PACKAGE = (
    '{"name": "x", "scripts": {"release": "npm run build && git push --force", "build": "tsc",'
    ' "pretest": "rm -rf out", "test": "jest"}}'
)
JUSTFILE = (
    "set shell := ['bash', '-c']\n\nrelease tag: test\n  git push --force\n\ntest:\n  cargo test\n"
)


IN_W = {"folder": "/w", "first_folder": "/w"}


def in_powershell(script: str) -> ToolCall:
    return ToolCall("PowerShell", {"command": script})


# Names that stand for the command


# a script, or several calls, and whether the pattern's command is run
SCRIPTS = {
    "git -c alias": (PUSH, ["git -c alias.fp='push --force' fp"], True),
    "git -c alias of a shell command": (
        PUSH,
        ["git -c alias.x='!git push --force' x origin"],
        True,
    ),
    "git -c alias that is another command": (
        PUSH,
        ["git -c alias.fp='push --force' status"],
        False,
    ),
    "git config alias, then used": (
        PUSH,
        ["git config alias.fp 'push --force' && git fp origin"],
        True,
    ),
    "git config alias of a function, then used": (
        PUSH,
        ["git config --global alias.fp '!f() { git push --force; }; f'; git fp"],
        True,
    ),
    "git config alias, only defined": (
        PUSH,
        ["git config --global alias.fp 'push --force'"],
        False,
    ),
    "shell alias, then used": (
        PUSH,
        ["shopt -s expand_aliases\nalias gpf='git push --force'\ngpf"],
        True,
    ),
    "shell alias, only defined": (PUSH, ["alias gpf='git push --force'"], False),
    "array as a command": (PUSH, ['cmd=(git push --force); "${cmd[@]}"'], True),
    "array of options": (PUSH, ['args=(--force origin main)\ngit push "${args[@]}"'], True),
    "array appended to": (PUSH, ['args=(); args+=(--force); git push "${args[@]}"'], True),
    "declared array appended to": (
        PUSH,
        ['declare -a c=(git push); c+=(--force); "${c[@]}"'],
        True,
    ),
    "array that is printed": (PUSH, ['cmd=(git push --force); echo "${cmd[@]}"'], False),
    "array that is not used": (PUSH, ["cmd=(git push --force)\nls"], False),
    "function with its arguments": (PUSH, ['push() { git push "$@"; }; push --force'], True),
    "function with its arguments, others": (
        PUSH,
        ['push() { git push "$@"; }; push origin'],
        False,
    ),
    "function with numbered arguments": (
        PUSH,
        ['f() { git push "$1" "$2"; }; f --force origin'],
        True,
    ),
    "function of the other form never called": (
        PUSH,
        ["function deploy {\n  git push --force\n}\nls"],
        False,
    ),
    "function called by a function that is never called": (
        PUSH,
        ["go() { git push --force; }\nmain() { go; }\nls"],
        False,
    ),
    "script written by a here-document and run": (
        PUSH,
        ["cat > p.sh <<'EOF'\ngit push --force\nEOF\nbash p.sh"],
        True,
    ),
    "script made executable and run": (
        PUSH,
        ["cat > p.sh <<'EOF'\n#!/bin/sh\ngit push --force\nEOF\nchmod +x p.sh && ./p.sh"],
        True,
    ),
    "script written and another run": (
        PUSH,
        ["cat > p.sh <<'EOF'\ngit push --force\nEOF\nbash other.sh"],
        False,
    ),
    "script written by printf": (PUSH, ["printf 'git push --force\\n' > x.sh; sh x.sh"], True),
    "script written by tee": (
        PUSH,
        ["tee x.sh <<'EOF' >/dev/null\ngit push --force\nEOF\nsh ./x.sh"],
        True,
    ),
    "script written by Write and run": (
        PUSH,
        [write("/w/p.sh", "#!/bin/bash\nset -e\ngit push --force\n"), "bash /w/p.sh"],
        True,
    ),
    "script written by Write and not run": (
        PUSH,
        [write("/w/p.sh", "git push --force\n"), "cat /w/p.sh"],
        False,
    ),
    "Python script written by Write and run": (
        PUSH,
        [
            write("/w/p.py", "import subprocess\nsubprocess.run(['git', 'push', '--force'])\n"),
            "python /w/p.py",
        ],
        True,
    ),
    "make target written in the turn": (
        PUSH,
        [write("/w/Makefile", MAKEFILE), "cd /w && make deploy"],
        True,
    ),
    "another make target written in the turn": (
        PUSH,
        [write("/w/Makefile", MAKEFILE), "cd /w && make lint"],
        False,
    ),
    "make target that needs the target": (
        PUSH,
        [write("/w/Makefile", "all: deploy\n" + MAKEFILE), "make -C /w"],
        True,
    ),
    "Makefile from standard input": (
        PUSH,
        ["make -f - <<'EOF'\nall:\n\tgit push --force\nEOF"],
        True,
    ),
    "npm script written in the turn": (
        PUSH,
        [write("/w/package.json", PACKAGE), "cd /w && npm run release"],
        True,
    ),
    "npm script within an npm script": (
        r"tsc\b",
        [write("/w/package.json", PACKAGE), "cd /w && npm run release"],
        True,
    ),
    "npm's pretest": (r"rm\b", [write("/w/package.json", PACKAGE), "npm test"], True),
    "another npm script": (PUSH, [write("/w/package.json", PACKAGE), "npm run build"], False),
    "just recipe written in the turn": (
        PUSH,
        [write("/w/justfile", JUSTFILE), "just release v1"],
        True,
    ),
    "another just recipe": (PUSH, [write("/w/justfile", JUSTFILE), "just test"], False),
    "arguments behind bash -c": (PUSH, ["bash -c 'git push \"$@\"' _ --force"], True),
    "arguments behind bash -c by number": (PUSH, ["bash -c 'git push $1' _ --force"], True),
    "here-document piped into ssh": (PUSH, ["cat <<'EOF' | ssh host\ngit push --force\nEOF"], True),
    "variable with a default as the program": (PUSH, ["${GIT:-git} push --force"], True),
    "here-string for read": (
        PUSH,
        ["while IFS= read -r l; do :; done <<< 'git push --force'"],
        False,
    ),
    "screen": (PUSH, ["screen -dmS x bash -c 'git push --force'"], True),
    "sudo shell with a here-string": (PUSH, ["sudo -s <<< 'git push --force'"], True),
    "su with a here-document": (PUSH, ["su deploy <<'E'\ngit push --force\nE"], True),
    "expect": (PUSH, ["expect -c 'spawn git push --force; expect eof'"], True),
    "Perl's system": (PUSH, ["perl -e 'system(\"git push --force\")'"], True),
    "Ruby's backticks": (PUSH, ["ruby -e 'puts `git push --force`'"], True),
    "PHP's exec": (PUSH, ["php -r 'exec(\"git push --force\");'"], True),
    "awk's system": (PUSH, ["awk 'BEGIN{system(\"git push --force\")}'"], True),
    "Python's execvp": (
        PUSH,
        ["python -c \"import os; os.execvp('git', ['git','push','--force'])\""],
        True,
    ),
    "PowerShell's Start-Process": (
        PUSH,
        [in_powershell("Start-Process git -ArgumentList 'push','--force' -Wait")],
        True,
    ),
    "PowerShell's Start-Process with one text": (
        PUSH,
        [in_powershell('Start-Process -FilePath git -ArgumentList "push --force" -NoNewWindow')],
        True,
    ),
    "PowerShell's Invoke-Expression": (
        PUSH,
        [in_powershell('Invoke-Expression "git push --force"')],
        True,
    ),
    "PowerShell's splatting": (PUSH, [in_powershell("$a = @('push','--force'); git @a")], True),
    "PowerShell's variable": (PUSH, [in_powershell("$flag = '--force'\ngit push $flag")], True),
    "PowerShell's ForEach-Object": (
        PUSH,
        [
            in_powershell(
                "Get-ChildItem -Directory | ForEach-Object { git -C $_.FullName push --force }"
            )
        ],
        True,
    ),
    "PowerShell's line continuation": (PUSH, [in_powershell("git push `\n  --force")], True),
    "PowerShell's function, not called": (
        PUSH,
        [in_powershell("function Push-All { git push --force }\nGet-Date")],
        False,
    ),
    "PowerShell's comment": (PUSH, [in_powershell("# git push --force\ngit status")], False),
    "PowerShell's block comment": (
        PUSH,
        [in_powershell("<# git push --force\n#>\ngit status")],
        False,
    ),
    "PowerShell's here-string as a text": (
        PUSH,
        [in_powershell("$m = @'\ngit push --force\n'@\nWrite-Output $m")],
        False,
    ),
    "PowerShell's try": (
        PUSH,
        [in_powershell("try { git push --force } catch { Write-Error $_ }")],
        True,
    ),
    "fish's set": (PUSH, ["fish -c 'set args --force; git push $args'"], True),
    "fish's function, not called": (
        PUSH,
        ["fish -c 'function p; git push --force; end; ls'"],
        False,
    ),
    "fish's and": (PUSH, ["fish -c 'test -f x; and git push --force'"], True),
    "syntax check only": (PUSH, ["bash -n -c 'git push --force'"], False),
    "array by index": (PUSH, ['a=(--force --tags); git push "${a[0]}"'], True),
    "function redefined": (PUSH, ["p() { git push --force; }\np() { ls; }\np"], False),
    "function called before a redefinition": (
        PUSH,
        ["p() { git push --force; }\np\np() { ls; }"],
        True,
    ),
    "function behind time": (PUSH, ["p() { git push --force; }; time p"], True),
    "function behind sudo is no function": (PUSH, ["p() { git push --force; }; sudo p"], False),
    "shift": (PUSH, ['p() { local r=$1; shift; git push "$@" "$r"; }; p origin --force'], True),
    "function in a file that is sourced": (
        PUSH,
        ["cat > lib.sh <<'E'\np() { git push --force; }\nE\nsource lib.sh\np"],
        True,
    ),
    "function in a file that is sourced, not called": (
        PUSH,
        ["cat > lib.sh <<'E'\np() { git push --force; }\nE\n. ./lib.sh\nls"],
        False,
    ),
    "script written later than run": (PUSH, ["bash p.sh; echo 'git push --force' > p.sh"], False),
    "script overwritten": (
        PUSH,
        ["echo 'git push --force' > p.sh; echo ls > p.sh; sh p.sh"],
        False,
    ),
    "script appended": (PUSH, ["echo ls > p.sh; echo 'git push --force' >> p.sh; sh p.sh"], True),
    "make with a variable": (
        PUSH,
        [write("Makefile", "OPTS = --force\npush:\n\t@git push $(OPTS)\n"), "make push"],
        True,
    ),
    "make's default": (
        PUSH,
        [
            write(
                "Makefile",
                ".PHONY: push all\nall: lint\nlint:\n\ttrue\npush:\n\t@git push --force\n",
            ),
            "make",
        ],
        False,
    ),
    "make -n": (PUSH, [write("Makefile", "push:\n\tgit push --force\n"), "make -n push"], False),
    "npm script by its name alone": (
        PUSH,
        [write("package.json", '{"scripts": {"ship": "git push --force"}}'), "npm ship"],
        False,
    ),
    "script of Edit": (
        PUSH,
        [
            write("p.sh", "git push\n"),
            ToolCall(
                "Edit",
                {"file_path": "p.sh", "old_string": "git push", "new_string": "git push --force"},
            ),
            "sh p.sh",
        ],
        True,
    ),
    "just with a parameter": (
        r"rm\b",
        [write("justfile", "clean dir='out':\n    rm -rf {{dir}}\n"), "just clean build"],
        True,
    ),
    "quoted here-document in ssh": (
        PUSH,
        ["ssh -T h 'bash -s' <<'E'\ncd app\ngit push --force\nE"],
        True,
    ),
    "negated group": (PUSH, ["! { git push --force; }"], True),
    "PowerShell elseif": (
        PUSH,
        [in_powershell("if (Test-Path x) { ls } elseif ($a) { git push --force } else { dir }")],
        True,
    ),
    "PowerShell switch": (
        PUSH,
        [in_powershell("switch ($x) { 'a' { git push --force } default { ls } }")],
        True,
    ),
    "PowerShell job": (
        PUSH,
        [in_powershell("Start-Job -ScriptBlock { git push --force } | Wait-Job")],
        True,
    ),
    "PowerShell assignment of output": (
        PUSH,
        [in_powershell("$out = git push --force 2>&1")],
        True,
    ),
    "PowerShell pipe to Out-Null": (PUSH, [in_powershell("git push --force | Out-Null")], True),
    "PowerShell chain": (PUSH, [in_powershell("git add . && git push --force")], True),
    "PowerShell text with a variable": (
        PUSH,
        [in_powershell('$m = "git push --force"; echo $m')],
        False,
    ),
    "PowerShell filter": (
        PUSH,
        [in_powershell("Get-Content log | Where-Object { $_ -match 'git push --force' }")],
        False,
    ),
    "PowerShell param function": (
        PUSH,
        [in_powershell("function P { param([string]$f) git push $f }\nP '--force'")],
        True,
    ),
    "fish else": (PUSH, ["fish -c 'if test -f x; ls; else; git push --force; end'"], True),
    "fish text": (PUSH, ["fish -c 'echo \"git push --force\"'"], False),
    "fish or": (PUSH, ["fish -c 'make; or git push --force'"], True),
    "fish while": (PUSH, ["fish -c 'while true; git push --force; break; end'"], True),
    "ruby list": (PUSH, ['ruby -e \'system("git", "push", "--force")\''], True),
    "python file printed": (
        PUSH,
        ["cat > r.py <<'E'\nimport os\nos.system('git push --force')\nE\ncat r.py"],
        False,
    ),
    "xargs git": (PUSH, ["echo 'push --force' | xargs git"], True),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_command_is_found_where_a_name_stands_for_it(name):
    pattern, calls, runs = SCRIPTS[name]
    steps = [ToolCall("Bash", {"command": c}) if isinstance(c, str) else c for c in calls]
    score = build({"name": "command_not_run", "command": pattern}).score_turn(
        AssistantTurn("", tuple(steps))
    )
    assert score.value == (0 if runs else 1)


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("make test || exit 1; git commit -m x", 1),
        ("git commit -m x && make test", 0),
        ("check() { make test; }; commit() { git commit -m x; }; check && commit", 1),
        ("check() { make test; }; git commit -m x; check", 0),
        ("trap 'make test' EXIT; git commit -m x", 0),
        ("if make test; then git commit -m x; fi", 1),
        ("if ! make test; then exit 1; fi\ngit commit -m x", 1),
        ("docker compose run --rm app make test && git commit -m x", 1),
        ('git commit -m "$(make test | tail -1)"', 1),
        ("make -n test && git commit -m x", 0),
    ],
)
def test_commands_are_in_the_order_in_which_they_run(script, value):
    rule = build({"name": "runs_before", "first": "make test", "then": "git commit"})
    call = ToolCall("Bash", {"command": script})
    assert rule.score_turn(AssistantTurn("", (call,))).value == value


def test_a_function_that_is_never_called_runs_nothing():
    rule = build({"name": "command_not_run", "command": FORCE})
    call = ToolCall("Bash", {"command": f"push() {{ {FORCE}; }}"})
    assert rule.score_turn(AssistantTurn("", (call,))) is None


@pytest.mark.parametrize(
    "script",
    [
        "f() { f; f; }; f",
        "; ".join(f"f{n}() {{ {f'f{n + 1}; ' * 9}:; }}" for n in range(12)) + "; f0",
        "alias a=b\nalias b=a\na",
        "git -c alias.a=a a",
    ],
)
def test_names_that_stand_for_each_other_come_to_an_end(script):
    rule = build({"name": "command_not_run", "command": FORCE})
    call = ToolCall("Bash", {"command": script})
    score = rule.score_turn(AssistantTurn("", (call,)))
    assert score.value == 1


# Commands that do not run


TASKFILE = "version: '3'\ntasks:\n  all:\n    deps: [ship]\n  ship: git push --force\n"
SCRIPTS_WITHOUT_RUN = {
    "a block of PowerShell in a variable": [in_powershell(f"$b = {{ {FORCE} }}\nWrite-Host ok")],
    "a filter of PowerShell": [in_powershell(f"filter f {{ {FORCE} }}\n'x'")],
    "a Makefile of a subfolder of the session's": [
        ToolCall("Write", {"file_path": "/w/sub/Makefile", "content": MAKEFILE}, **IN_W),
        ToolCall("Bash", {"command": "make deploy"}, **IN_W),
    ],
    "the session's Makefile in a subfolder": [
        ToolCall("Write", {"file_path": "/w/Makefile", "content": MAKEFILE}, **IN_W),
        ToolCall("Bash", {"command": "cd sub && make deploy"}, **IN_W),
    ],
    "typed into a file": [
        ToolCall("exec_command", {"cmd": "cat > n.txt"}),
        ToolCall("write_stdin", {"session_id": 1, "chars": f"{FORCE}\n"}),
    ],
    "a Makefile that is only shown": [write("Makefile", MAKEFILE), "cat Makefile"],
    "make that only asks": [write("Makefile", MAKEFILE), "make -q deploy"],
    "make in another folder": [write("Makefile", MAKEFILE), "make -C sub deploy"],
    "make after cd": [write("Makefile", MAKEFILE), "cd sub && make deploy"],
    "a Makefile of another folder": [write("sub/Makefile", MAKEFILE), "make deploy"],
    "scripts of another package": [write("packages/a/package.json", PACKAGE), "npm run release"],
    "a command of pnpm": [
        write("package.json", '{"scripts": {"add": "git push --force"}}'),
        "pnpm add x",
    ],
    "a package.json that nests too deeply": [write("package.json", "[" * 9999), "npm run x"],
    "just --show": [write("justfile", JUSTFILE), "just --show release"],
    "a script of another folder": [write("a/deploy.sh", FORCE), "b/deploy.sh"],
    "bash -n": [write("deploy.sh", FORCE), "bash -n deploy.sh"],
    "a script that a copy replaces": [
        write("deploy.sh", FORCE),
        "cp o.sh deploy.sh && ./deploy.sh",
    ],
    "a script that sed changes": [
        write("deploy.sh", FORCE),
        "sed -i 's/ --force//' deploy.sh && ./deploy.sh",
    ],
    "a script that Git restores": [
        write("deploy.sh", FORCE),
        "git checkout deploy.sh; ./deploy.sh",
    ],
    "a script without a program in its first line": [write("a.sh", "#!/\nls"), "./a.sh"],
    "a function that prints": ['git() { echo git "$@"; }\ngit push --force'],
    "unset -f": [f"d() {{ {FORCE}; }}\nunset -f d\nd"],
    "unalias": [f"alias d='{FORCE}'\nunalias d\nd"],
    "an alias of Git that is removed": [
        "git config alias.fp 'push --force'; git config --unset alias.fp; git fp"
    ],
    "an alias named as a command of Git": ["git -c alias.status='push --force' status"],
    "trap -": [f"trap '{FORCE}' EXIT; trap - EXIT; ls"],
    "backticks in a regular expression of Perl": [f"perl -ne 'print if /`{FORCE}`/' README.md"],
    "backticks in a replacement of Perl": [f"perl -i -pe 's/`git push`/`{FORCE}`/' README.md"],
    "backticks in a text of Ruby": [f"ruby -e 'puts \"Never `{FORCE}`\"'"],
    "backticks in a text of PHP": [f"php -r 'echo \"`{FORCE}`\";'"],
    "a call in a text of Node.js": [f"node -e \"console.log('exec(\\`{FORCE}\\`) pushes')\""],
    "a query that Node.js runs": [f"node -e \"db.exec('{FORCE}')\""],
    "a regular expression of Node.js": [f"node -e \"/x/.exec('{FORCE}')\""],
    "a call in a text of Perl": [f"perl -e 'print \"system(\\x27{FORCE}\\x27)\", q(a)'"],
    "a call in a text of Ruby": [
        f'ruby -e \'puts "call system(%q({FORCE})) or exec(\\"{FORCE}\\")"\''
    ],
    "a query of PHP": [f"php -r '$db->exec(\"{FORCE}\");'"],
    "a query of Ruby": [f"ruby -e 'DB.execute(\"{FORCE}\")'"],
}


@pytest.mark.parametrize("name", SCRIPTS_WITHOUT_RUN)
def test_a_command_is_not_found_where_it_does_not_run(name):
    steps = [
        ToolCall("Bash", {"command": c}) if isinstance(c, str) else c
        for c in SCRIPTS_WITHOUT_RUN[name]
    ]
    rule = build({"name": "command_not_run", "command": PUSH})
    score = rule.score_turn(AssistantTurn("", tuple(steps)))
    assert score is None or score.value == 1


# PowerShell, folders and earlier turns


@pytest.mark.parametrize(
    "calls",
    [
        [in_powershell(f'$c = "{FORCE}"; iex $c')],
        ["echo push --force | xargs git"],
        [write("sub/deploy.sh", FORCE), "cd sub && ./deploy.sh"],
        [write("sub/deploy.sh", FORCE), "(cd sub && ls); sub/deploy.sh"],
        [write("/repo/Makefile", MAKEFILE), "make deploy"],
        [write("sub/Makefile", MAKEFILE), "make -C sub deploy"],
        [write("deploy.sh", FORCE), "mv deploy.sh run.sh && ./run.sh"],
        [write("deploy.sh", f"#!/bin/bash -e\n{FORCE}"), "./deploy.sh"],
        [f"ruby -e '`{FORCE}`'"],
        [f"ruby -e 'Kernel.system(\"{FORCE}\")'"],
        [f"lua -e 'os.execute(\"{FORCE}\")'"],
        [f"awk 'BEGIN {{system(\"{FORCE}\")}}'"],
        [f"node -e \"const c = require('child_process'); c.exec('{FORCE}')\""],
        [f"node -e \"require('node:child_process').exec('{FORCE}')\""],
        [f"node -e \"const {{exec}} = require('child_process'); exec('{FORCE}')\""],
        [f"node -e \"import * as run from 'child_process'; run.exec('{FORCE}')\""],
        [in_powershell(f"$b = {{ {FORCE} }}; & $b")],
        [in_powershell("$b = { param($r) git push $r }\n& $b --force")],
        [in_powershell(f"$b = {{ {FORCE} }}\nStart-Job -ScriptBlock $b")],
        [write("Taskfile.yml", TASKFILE), "task all"],
        [write("Makefile", f".DEFAULT_GOAL := up\na:\n\tls\nup:\n\t{FORCE}\n"), "make"],
        [f"cat > /tmp/up.sh <<'E'\n{FORCE}\nE\nchmod +x /tmp/up.sh", "/tmp/up.sh"],
        [
            ToolCall("write_stdin", {"session_id": 1, "chars": "git push --fo"}),
            ToolCall("write_stdin", {"session_id": 1, "chars": "rce\n"}),
        ],
        [ToolCall("mcp__shell__run", {"command": "git", "args": ["push", "--force"]})],
        [
            ToolCall("Write", {"file_path": "/w/sub/Makefile", "content": MAKEFILE}, **IN_W),
            ToolCall("Bash", {"command": "cd sub && make deploy"}, **IN_W),
        ],
    ],
)
def test_a_command_is_found_where_its_words_and_folder_are_known(calls):
    steps = [ToolCall("Bash", {"command": c}) if isinstance(c, str) else c for c in calls]
    rule = build({"name": "command_not_run", "command": PUSH})
    assert rule.score_turn(AssistantTurn("", tuple(steps))).value == 0


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


def test_a_script_of_an_earlier_turn_is_read():
    rule = build({"name": "command_not_run", "command": PUSH})
    call = ToolCall("Bash", {"command": "bash up.sh"})
    assert rule.score_turn(AssistantTurn("", (call,), (write("up.sh", FORCE),))).value == 0
    changed = ToolCall("Write", {"file_path": "up.sh", "content": "ls"})
    assert rule.score_turn(AssistantTurn("", (call,), (write("up.sh", FORCE), changed))).value == 1


def test_a_command_writes_where_the_session_has_gone():
    call = ToolCall("Bash", {"command": "echo x > a.md"}, folder="/w/docs", first_folder="/w")
    rule = build({"name": "file_not_touched", "path": "docs/a.md"})
    assert rule.score_turn(AssistantTurn("", (call,))).value == 0
    worktree = "/w/.claude/worktrees/fox"
    call = ToolCall("Bash", {"command": "echo x > docs/a.md"}, folder=worktree, first_folder="/w")
    assert rule.score_turn(AssistantTurn("", (call,))).value == 0


# Time


@pytest.mark.parametrize("text", ["<#" * 50_000, "@'\n" * 30_000, '@"\n' * 30_000])
def test_texts_of_powershell_that_are_not_closed_take_little_time(text):
    started = time.process_time()
    bash_of_powershell(text)
    assert time.process_time() - started < 2


def test_scripts_that_are_read_again_and_again_take_little_time():
    started = time.process_time()
    read_script("f() { " + "ls;" * 20_000 + " }\n" + "f\n" * 400)
    read_script("make a", [("Makefile", "exec" + " " * 100_000)])
    assert time.process_time() - started < 5
