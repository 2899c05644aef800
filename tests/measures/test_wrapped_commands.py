"""Commands that run in another environment, or are started by another program."""

import pytest
from agent_turns import ran

from holdfast.drafting.drafted_files import statements_of
from holdfast.drafting.drafts import Undrafted
from holdfast.drafting.line_rules import draft
from holdfast.measures import build

# a rule's pattern, a script, and whether the script runs the command
WRAPPED = {
    "docker exec": (r"rm\b", "docker exec web rm -rf /data", True),
    "docker exec with options": (
        "npm install",
        "docker exec -it -u root -e A=1 -w /w web npm install x",
        True,
    ),
    "a script in docker exec": ("git push", "docker exec web sh -c 'cd /w && git push'", True),
    "podman exec": ("git push", "podman exec -it web git push", True),
    "a target of make": (r"make check(?!\S)", "make -j4 lint check", True),
    "a variable of make": (r"make check(?!\S)", "make lint WITH=check", False),
    "a folder of make": (r"make check(?!\S)", "make -C check lint", False),
    "a file of make": (r"make check(?!\S)", "make lint -f check", False),
    "a target of make in a folder": (r"make check(?!\S)", "make -C app lint check", True),
    "a log of make": (r"make check(?!\S)", "make lint > check", False),
    "a number of jobs": (r"make check(?!\S)", "make -j 4 lint check", True),
    "an argument of just": (r"just deploy(?!\S)", "just logs deploy", False),
    "a command in a word": (r"ssh .*rm -rf", "ssh web 'rm -rf /data'", True),
    "code in a word": (r"python -c .*a - b", "python -c 'print(a - b)'", True),
    "an option": (r"git commit(?=.* --no-verify)", "git commit -m x --no-verify", True),
    "no option but a word of a text": (
        r"git commit(?=.* --no-verify)",
        "git commit -m 'explain --no-verify'",
        False,
    ),
    "docker compose exec": (
        "php artisan migrate",
        "docker compose exec app php artisan migrate",
        True,
    ),
    "docker-compose exec": ("npm test", "docker-compose -p x exec -T app npm test", True),
    "docker compose run": ("npm test", "docker compose -f x.yml run --rm app npm test", True),
    "docker run": ("npm install", 'docker run --rm -v "$PWD":/w -w /w node:20 npm install', True),
    "docker container exec": ("npm test", "docker container exec web npm test", True),
    "kubectl exec": ("git push", "kubectl exec pod/x -- git push", True),
    "kubectl exec with options": (
        r"rm\b",
        'kubectl -n prod exec -it deploy/web -c app -- sh -c "rm -rf /x"',
        True,
    ),
    "oc exec": ("git push", "oc exec x -- git push", True),
    "uv run": ("pytest", "uv run pytest -q", True),
    "uv run with options": ("pytest", "uv run --with x --extra dev pytest -q", True),
    "a module in uv run": ("python -m pytest", "uv run python -m pytest", True),
    "poetry run": ("pytest", "poetry run pytest", True),
    "pipenv run": ("python a.py", "pipenv run python a.py", True),
    "hatch run": ("pytest", "hatch run pytest", True),
    "conda run": ("pytest", "conda run -n env --no-capture-output pytest", True),
    "npx": ("prettier --write", "npx --yes prettier --write .", True),
    "npx with a version": ("eslint", "npx -y eslint@8 .", True),
    "npx with a package": ("tsc", "npx -p typescript tsc", True),
    "bunx": ("tsc", "bunx tsc", True),
    "npm exec": ("tsc", "npm exec -- tsc", True),
    "pnpm exec": ("eslint", "pnpm exec eslint .", True),
    "pnpm exec in a package": ("eslint", "pnpm --filter web exec eslint .", True),
    "pnpm dlx": ("tsc", "pnpm dlx tsc", True),
    "yarn exec": ("eslint", "yarn exec eslint .", True),
    "bundle exec": ("rspec", "bundle exec rspec", True),
    "nix develop": ("cargo test", "nix develop -c cargo test", True),
    "nix develop of a flake": ("cargo test", "nix develop .#ci --command cargo test", True),
    "nix-shell": ("git push", 'nix-shell -p git --run "git push"', True),
    "mise exec": ("make test", "mise exec -- make test", True),
    "mise x with tools": ("node a.js", "mise x node@20 -- node a.js", True),
    "direnv exec": ("make test", "direnv exec . make test", True),
    "aws-vault exec": ("terraform apply", "aws-vault exec prod -- terraform apply", True),
    "op run": ("npm start", "op run --env-file=.env -- npm start", True),
    "ssh": ("git push", "ssh -p 22 me@host 'cd app && git push'", True),
    "find -exec": (r"rm\b", "find . -name x -exec rm {} \\;", True),
    "a script in find -exec": (r"rm\b", "find . -type f -exec sh -c 'rm \"$1\"' _ {} \\;", True),
    "parallel": ("git push", "parallel -j 2 git push ::: a b", True),
    "a script in parallel": ("npm test", "parallel 'cd {} && npm test' ::: a b", True),
    "parallel of lines": (r"rm\b", "ls | parallel rm", True),
    "nohup": ("npm start", "nohup npm start > log 2>&1 &", True),
    "time": ("git push", "/usr/bin/time -v git push", True),
    "watch": ("git push", "watch -n 5 'git pull; git push'", True),
    "script -c": ("git push", 'script -qc "git push" out.txt', True),
    "script of macOS": ("git push", "script -q /dev/null git push", True),
    "su -c": ("git push", "su - deploy -c 'git push'", True),
    "runuser": ("npm test", "runuser -u app -- npm test", True),
    "chroot": ("apt install", "sudo chroot --userspec=a /mnt apt install x", True),
    "flock": ("git push", "flock -n /tmp/l git push", True),
    "flock -c": ("git push", "flock /tmp/l -c 'git push'", True),
    "unshare": ("git push", "unshare -r git push", True),
    "xvfb-run": ("npm test", "xvfb-run -a npm test", True),
    "tmux": ("npm start", "tmux new-session -d -s x 'npm start'", True),
    "a here-string": ("git push", 'bash <<< "git push"', True),
    "a here-string with -s": ("git push", "bash -s <<< 'git push'", True),
    "eval": ("git push", 'eval "git push"', True),
    "eval of a variable": ("git push", "C='git push'; eval \"$C\"", True),
    "a script that is sourced": (r"(?:\./)?deploy\.sh", ". ./deploy.sh", True),
    "a script that is sourced by name": (r"(?:\./)?deploy\.sh", "source scripts/deploy.sh", True),
    "a script that a shell runs": (r"(?:\./)?deploy\.sh", "bash -x ./deploy.sh --all", True),
    "a shell's input and output": ("git push", "bash > log <<'EOF'\ngit push\nEOF", True),
    "a shell's option with a value": ("git push", "bash -o pipefail -c 'git push'", True),
    # the same words, which run nothing
    "an option of a script": ("git push", "bash a.sh -c 'git push'", False),
    "an option of the program that npx runs": ("git push", "npx tsc -c 'git push'", False),
    "a container's name": ("git", "docker exec git ls", False),
    "a container's option": (r"rm\b", "docker run --name rm node:20 ls", False),
    "an image": ("node", "docker run --rm node:20", False),
    "a pod's name": ("git", "kubectl exec git -- ls", False),
    "a service's name": ("npm", "docker compose exec npm ls", False),
    "a package for a run": ("pytest", "uv run --with pytest python a.py", False),
    "a package that is added": ("pytest", "uv add pytest && poetry add pytest", False),
    "an argument of npx": ("git push", "npx cowsay git push", False),
    "an image's build": ("git push", "docker build -t git push .", False),
    "a host's name": ("git", "ssh -l me git ls", False),
    "a name that find looks for": (r"rm\b", "find . -name rm -print", False),
    "a message": ("git push", "git commit -m 'git push'", False),
    "a session's name": ("npm", "tmux new-session -d -s npm 'ls'", False),
    "a pattern with the wrapper, which is there": (r"(?!uv run )pytest", "uv run pytest", False),
    "a pattern with the wrapper, which is not there": (r"(?!uv run )pytest", "pytest", True),
    "a pattern with the container": (r"(?!docker exec )php", "docker exec web php x", False),
    "a pattern of the wrapper": ("docker compose exec", "docker compose exec app ls", True),
    "a pattern of npx": ("npx", "npx tsc", True),
    # a second list, labelled once the first was read
    "a login shell in a container": (
        "git push",
        'docker exec --user root web bash -lc "git push"',
        True,
    ),
    "compose with options": (
        "composer install",
        "docker compose exec -e FOO=1 --user www app composer install",
        True,
    ),
    "an image of a registry": ("make test", "podman run -it --rm docker.io/x/y:1 make test", True),
    "kubectl run": ("rm\\b", "kubectl run tmp --rm -it --image=busybox -- rm -rf /x", True),
    "kubectl debug": (
        "rm\\b",
        "kubectl debug node/x -it --image=busybox -- chroot /host rm -rf /x",
        True,
    ),
    "uv run of a project": (
        "python manage.py migrate",
        "uv run --frozen --no-sync python manage.py migrate",
        True,
    ),
    "uv tool run": ("ruff check", "uv tool run ruff check", True),
    "pipx run": ("black", "pipx run black .", True),
    "npm exec with a package": ("tsc", "npm exec --package=typescript -- tsc --noEmit", True),
    "yarn dlx with a package": ("tsc", "yarn dlx -p typescript tsc", True),
    "guix shell": ("git push", "guix shell git -- git push", True),
    "flatpak-spawn": ("git push", "flatpak-spawn --host git push", True),
    "wsl -e": ("git push", "wsl -e git push", True),
    "wsl": ("git push", "wsl git push", True),
    "cmd": ("git push", "cmd.exe /c git push", True),
    "powershell": ("git push", 'powershell -Command "git push"', True),
    "pwsh": ("git push", "pwsh -c 'git push'", True),
    "vagrant ssh": ("git push", "vagrant ssh -c 'git push'", True),
    "gcloud ssh": ("git push", "gcloud compute ssh vm --command='git push'", True),
    "multipass exec": ("git push", "multipass exec vm -- git push", True),
    "lxc exec": ("git push", "lxc exec c -- git push", True),
    "heroku run": ("rails db:migrate", "heroku run rails db:migrate", True),
    "fly ssh": ("rails db:migrate", 'fly ssh console -C "rails db:migrate"', True),
    "ddev exec": ("php artisan migrate", "ddev exec php artisan migrate", True),
    "entr": ("npm test", "ls | entr -r npm test", True),
    "pdm run": ("pytest", "pdm run pytest -q", True),
    "systemd-run": ("git push", "systemd-run --user git push", True),
    "at": ("git push", "at now <<< 'git push'", True),
    "dotenv": ("npm start", "dotenv -e .env -- npm start", True),
    "cross-env": ("npm start", "cross-env NODE_ENV=x npm start", True),
    "concurrently": ("git push", 'concurrently "npm start" "git push"', True),
    "ansible": ("git push", "ansible all -m shell -a 'git push'", True),
    "a script in a substitution": ("git push", "bash -c \"$(cat <<'EOF'\ngit push\nEOF\n)\"", True),
    "coproc": ("git push", "coproc git push", True),
    "git bisect run": ("npm test", "git bisect run npm test", True),
    "git submodule foreach": ("git push", "git submodule foreach 'git push'", True),
    "git rebase --exec": ("npm test", 'git rebase --exec "npm test" main', True),
    "a loop over lines": ("rm\\b", 'find . -name x | while read f; do rm "$f"; done', True),
    "env -S": ("git push", 'env -S "git push"', True),
    "sudo with dashes": ("git push", "sudo -- sh -c 'git push'", True),
    "after exec": ("git push", "exec 3>&1; git push", True),
    "hyperfine": ("npm test", "hyperfine 'npm test'", True),
    "two wrappers": ("npm test", "timeout --foreground 5m docker exec web npm test", True),
    "a here-document for ssh": ("git push", "ssh host <<'EOF'\ngit push\nEOF", True),
    "a here-document for su by its path": (
        "git push",
        "/bin/su - deploy <<'EOF'\ngit push\nEOF",
        True,
    ),
    "a container on a host": ("git push", 'ssh host "docker exec web git push"', True),
    "a file of an image": ("node", "docker build -f node .", False),
    "a service that is started": ("npm", "docker compose up npm", False),
    "a service's log": ("git", "docker compose logs git", False),
    "an extra that is installed": ("pytest", "uv sync --extra pytest", False),
    "a package that is installed": ("tsc", "npm install tsc", False),
    "a session that is ended": ("git push", "tmux kill-session -t 'git push'", False),
    "a deployment": ("deploy", "kubectl rollout restart deploy/web", False),
    "a container that is removed": ("rm\\b", "docker rm web", False),
    "a file that git removes": ("rm\\b", "git rm a.py", False),
    "a version that nvm runs": ("npm", "nvm exec 20 node a.js", False),
    # wrappers that run themselves, and their options
    "docker in docker": ("docker push", "docker exec ci docker push img", True),
    "kubectl in a pod": ("kubectl delete", "kubectl exec p -- kubectl delete ns x", True),
    "poetry in poetry": ("poetry publish", "poetry run poetry publish", True),
    "npm in npm": ("npm publish", "npm exec -- npm publish", True),
    "git in git bisect": ("git push", "git bisect run git push", True),
    "docker in docker, which is permitted": (
        r"(?!docker exec )docker push",
        "docker exec ci docker push img",
        False,
    ),
    "the first of two wrappers that are permitted": (
        r"(?!uv run |poetry run )python",
        "uv run python a",
        False,
    ),
    "the second of two wrappers that are permitted": (
        r"(?!uv run |poetry run )python",
        "poetry run python a",
        False,
    ),
    "two wrappers that are permitted one by one": (
        r"(?!uv run )pytest|(?!npx )eslint",
        "npx eslint .",
        False,
    ),
    "a script in a container that is permitted": (
        r"(?!docker exec )php",
        "docker exec web sh -c 'cd /w && php x'",
        False,
    ),
    "a wrapper that may be there": (r"(?:sudo )?apt", "sudo -E apt install x", True),
    "a value of docker's": (r"node\b", "docker run -c 512 node npm test", False),
    "the command behind a value of docker's": ("npm", "docker run -c 512 node npm test", True),
    "other values of docker's": (
        "npm",
        "docker run --memory-swap 1g --cpuset-cpus 0 --health-cmd x -itv a:b node npm test",
        True,
    ),
    "docker run with an entrypoint": ("npm test", "docker run --entrypoint npm node test", True),
    "a shell as the entrypoint": (
        "git push",
        "docker run --entrypoint sh img -c 'git push'",
        True,
    ),
    "one of two options that are asked for": (
        r"docker run(?!.*\s--(?:rm|init))",
        "docker run --init node ls",
        False,
    ),
    "a value of uv's": ("pytest", "uv run --refresh-package pytest python a.py", False),
    "other values of uv's": (
        "pytest",
        "uv run --extra-index-url u --cache-dir c -P a --resolution r --exclude-newer d"
        " --link-mode copy pytest",
        True,
    ),
    "a module that uv runs": ("python -m pytest", "uv run -m pytest -q", True),
    "values of ssh's": ("git push", "ssh -b a -R 1:b:2 -W h:1 host git push", True),
    "values of xargs'": ("git push", "xargs --delimiter , --arg-file f git push", True),
    "dashes of the command": (r"ls\b", "lxc exec c git checkout -- ls", False),
    "a command with dashes": ("git checkout", "lxc exec c git checkout -- ls", True),
    "the second -exec": (r"rm\b", "find . -exec chmod +w {} \\; -exec rm {} +", True),
    "the second --exec": ("npm test", "git rebase -x 'make' --exec 'npm test' main", True),
    "joined letters of sudo": ("git push", "sudo -iu me git push", True),
    "joined letters of docker": ("git push", "docker exec -itu root web git push", True),
    "options of tmux": ("git push", "tmux -L s new -d 'git push'", True),
    "a wrapper without its options": ("uv run pytest", "uv run --frozen -q pytest", True),
    "a container without its options": (
        "docker compose exec app php",
        "docker compose -f x exec -T app php x",
        True,
    ),
    "a module of python": ("pytest", "python3.12 -u -W error -m pytest -q", True),
    "a module of the launcher of Windows": ("pip install", "py -3 -m pip install x", True),
    "a module that is permitted": (r"(?!python -m )pytest", "python -m pytest", False),
    "a script of python": ("pytest", "python scripts/pytest.py", False),
    "corepack": (r"npm\b", "corepack npm install", True),
    "nvm exec": (r"npm\b", "nvm exec 20 npm ci", True),
    "fnm exec": (r"npm\b", "fnm exec --using=20 npm ci", True),
    "devcontainer exec": ("git push", "devcontainer exec --workspace-folder . git push", True),
    "watchexec": ("npm test", "watchexec -e js -- npm test", True),
    "nodemon --exec": ("npm test", "nodemon --exec 'npm test'", True),
    "a program of Windows": (r"npm install", "'C:\\nodejs\\npm.cmd' install", True),
    "a program that is looked up": (r"npm\b", "$(which npm) ci", True),
    "a here-document for a shell on a host": ("git push", "ssh h bash -s <<'E'\ngit push\nE", True),
    "a script that is piped into a shell": ("git push", "echo 'git push' | bash", True),
    "a script that is not shown": ("git push", "cat push.sh | bash", False),
    "options of make": (r"make test(?!\S)", "make -j8 -k V=1 test 2>&1", True),
    "one of several targets": (r"make test(?!\S)", "make -j 8 lint test", True),
    "another target": (r"make test(?!\S)", "make -C test docs", False),
    "a target that is only shown": (r"make test(?!\S)", "make -n test", False),
    "a task of gradle": (r"\./gradlew test", "./gradlew -q clean :app:test", True),
    "a toolchain of cargo": ("cargo test", "cargo +nightly --locked test", True),
    "a workspace of yarn": ("yarn test", "yarn workspace app run test", True),
    "options one by one": (r"rm -rf\b", "rm -f -v -R build", True),
    "options by their long names": (r"rm -rf\b", "rm --force --recursive build", True),
    "options behind the operand": (r"rm -rf\b", "rm build -fr", True),
    "options without long names": (r"git clean -fx\b", "git clean -d -x -f", True),
    "fewer options": (r"rm -rf\b", "rm -f a", False),
    "a short option": ("git push --force", "git push -f origin", True),
    "a short option before one with a value": (
        "git commit.* --no-verify",
        "git commit -anm x",
        True,
    ),
    "an option in a message": ("git commit.* --no-verify", "git commit -m '-n'", False),
    "a command that Python runs": (
        "git push",
        "python3 - <<'E'\nimport subprocess\nsubprocess.run(['git', 'push'])\nE",
        True,
    ),
    "a script that Python runs": (
        "git push",
        "python -c 'os.system(\"git push\")'",
        True,
    ),
    "a command that Python prints": ("git push", "python -c 'print(\"git push\")'", False),
    "a command that Node.js runs": (
        "git push",
        "node -e \"require('child_process').spawnSync('git', ['push'])\"",
        True,
    ),
    "an option that is asked for": (r"uv run(?!.* --frozen)", "uv run --frozen pytest", False),
    "any option that is asked for": (r"uv run (?!-)", "uv run --frozen pytest", False),
    "backticks in an open here-document": (
        "git push",
        "cat > n.md <<EOF\nThen `git push` it.\nEOF",
        True,
    ),
    "backticks in a quoted here-document": (
        "git push",
        "cat > n.md <<'EOF'\nThen `git push` it.\nEOF",
        False,
    ),
    "the second of two here-documents": (
        "git push",
        "cat > a <<'A' && sh <<'B'\nls\nA\ngit push\nB",
        True,
    ),
    "the first of two here-documents": (
        "git push",
        "cat > a <<'A' && sh <<'B'\ngit push\nA\nls\nB",
        False,
    ),
    "a proxy for agents": ("git stash", "rtk git stash push -u", True),
    "a script in Base64": (
        "git push",
        "pwsh -NoLogo -EncodedCommand ZwBpAHQAIABwAHUAcwBoAA==",
        True,
    ),
    "a script in Base64, by a shortened option": (
        "git push",
        "pwsh -enc ZwBpAHQAIABwAHUAcwBoAA==",
        True,
    ),
    "a shortened option of PowerShell": ("git push", "pwsh -NoProfile -Comm 'git push'", True),
    "an alias of an option of PowerShell": ("git push", "pwsh -ep Bypass -c 'git push'", True),
    "options of PowerShell in lower case": (
        "git push",
        "powershell -executionpolicy bypass -windowstyle hidden -command git push",
        True,
    ),
    "an interactive PowerShell": ("git push", "pwsh -i -c 'git push'", True),
    "arguments of a file of PowerShell": ("git push", "pwsh -File a.ps1 -c 'git push'", False),
    "options of Bash after -c": ("git push", "bash -c -e -o pipefail 'A=1 git push'", True),
    "the end of options after -c": ("git push", "bash -c -- 'git push'", True),
    "the end of options of trap": ("git push", "trap -- 'git push' EXIT", True),
    "a trap that is removed after the end of options": (
        "git push",
        "trap 'git push' EXIT; trap -- - EXIT; ls",
        False,
    ),
    "a text of PowerShell that is printed": (
        "git push",
        "pwsh -c \"@'\ngit push\n'@ | Set-Content n.md\"",
        False,
    ),
    "an array of commands in a loop": (
        "git push",
        "c=('git fetch' 'git push')\nfor x in \"${c[@]}\"; do $x; done",
        True,
    ),
    "an item of an associative array": (
        "git push",
        "declare -A c=([up]='git push')\n${c[up]}",
        True,
    ),
    "deno eval": (
        "git push",
        'deno eval \'new Deno.Command("git", {args: ["push"]}).output()\'',
        True,
    ),
    "the shell of Bun": ("git push", "bun -e 'await $`git push`'", True),
    "an assignment before a command": ("HUSKY=0", "HUSKY=0 git commit -m x", True),
    "an alias of Git in capital letters": ("git push", "git -c ALIAS.up=push up", True),
    "a job of at": ("git push", "echo 'git push' | at now + 5 minutes", True),
    "a comment of Node.js": (
        "git push",
        'node -e \'// require("child_process").execSync("git push")\'',
        False,
    ),
    "a comment of Perl": ("git push", "perl -e '# system(\"git push\")'", False),
    "code after an address in Perl": (
        "git push",
        'perl -e \'$a = "https://b"; system("git push")\'',
        True,
    ),
    "help": ("git push", "git push --help", False),
    "help that a pattern names": ("make --help", "make --help", True),
    "a word to look for": (r"grep\b", "grep -- --help", True),
    "a dry run": ("git push", "git push --dry-run origin main", False),
    "a dry run that a pattern names": ("git push.* --dry-run", "git push --dry-run", True),
    "no dry run": ("kubectl apply", "kubectl apply -f a.yml --dry-run=none", True),
    "a dry run of a check": ("php-cs-fixer fix", "php-cs-fixer fix --dry-run", True),
    "a date in a Taskfile that is none": (
        "git push",
        "cat > Taskfile.yml <<'E'\nat: 2020-13-45\ntasks: {up: git push}\nE\ntask up",
        False,
    ),
    "a command in a Taskfile that is no text": (
        "git push",
        "cat > Taskfile.yml <<'E'\na: &a [x, x]\nb: &b [*a, *a]\n"
        "tasks: {up: {cmds: [{cmd: *b}, git push]}}\nE\ntask up",
        True,
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_command_is_still_that_command(name):
    pattern, script, runs = WRAPPED[name]
    rule = build({"name": "command_not_run", "command": pattern})
    assert rule.score_turn(ran(script)).value == (0 if runs else 1)
    rule = build({"name": "runs_after", "run": pattern, "after": "date"})
    assert rule.score_turn(ran("date", script)).value == (1 if runs else 0)


# a rule about a bare command, and which of these scripts break it
BARE = {
    "- Use `uv run pytest`, not `pytest`.": {
        "uv run pytest -q": False,
        "sudo -u me uv run --frozen pytest": False,
        "pytest -q": True,
        "cd app && pytest": True,
        "docker exec web pytest": True,
    },
    "- Never run `python` directly, always `poetry run python`.": {
        "poetry run python a.py": False,
        "python3 a.py": True,
    },
    "- Always use `docker compose exec app php` instead of `php`.": {
        "docker compose exec -T app php artisan migrate": False,
        "php artisan migrate": True,
    },
    "- Never run `git push --force`.": {
        "docker exec web git push --force": True,
        "git push": False,
    },
    "- Use `uv run`, not `python`.": {"uv run python a.py": False, "python a.py": True},
    "- Use uv run, not python.": {"uv run python a.py": False, "python a.py": True},
    "- Always use `uv run` instead of `python`.": {
        "uv run --frozen python3 a.py": False,
        "python a.py": True,
    },
    "- Never run `python` directly, always use `uv run`.": {
        "uv run python a.py": False,
        "python a.py": True,
    },
    "- Don't run `pytest` directly. Use `uv run`.": {"uv run pytest": False, "pytest": True},
    "- Use `poetry run`, never `python`.": {"poetry run python a.py": False, "python a": True},
    "- Never use `python3`, use `uv run python`.": {
        "uv run python3 a.py": False,
        "python3 a.py": True,
    },
    "- Never use bare `python`.": {"poetry run python a.py": False, "python a.py": True},
    "- Use `npx eslint` or `pnpm exec eslint`, not `eslint`.": {
        "pnpm exec eslint .": False,
        "npx eslint .": False,
        "eslint .": True,
    },
    "- Use `uv run pytest` or `docker compose exec web pytest`, not `pytest`.": {
        "docker compose exec -T web sh -c 'cd /x && pytest'": False,
        "uv run pytest": False,
        "pytest": True,
    },
    "- Never run `rm` directly, use `ssh host rm`.": {"ssh host rm x": False, "rm x": True},
    "- Never run `uv run python` or `python`.": {"uv run python a.py": True, "python a.py": True},
    "- Use `npx`, not `npm exec`.": {"npm exec -- tsc": True, "npx tsc": False},
    "- Prefer `uv run pytest` over `pytest`.": {
        "uv run pytest": False,
        "uv run --frozen pytest -q": False,
        "uv run -q pytest": False,
        "uv run --with x pytest": False,
        "pytest": True,
    },
}


@pytest.mark.parametrize("line", BARE)
def test_a_rule_permits_the_wrapper_that_it_names(line, tmp_path):
    path = tmp_path / "AGENTS.md"
    path.write_text(f"# Rules\n\n{line}\n")
    statements, of_bot = statements_of(path, path.read_text())
    (rule,) = [rule for statement in statements for rule in drafts_of(statement, of_bot)]
    measure = build(rule.measure.entry)
    for script, breaks in BARE[line].items():
        assert measure.score_turn(ran(script)).value == (0 if breaks else 1), script


@pytest.mark.parametrize(
    "line",
    [
        "- Never run `rails` directly; use `bin/rails`.",
        "- Use `./node_modules/.bin/eslint`, not `eslint`.",
        "- Use `.venv/bin/python` instead of `python`.",
    ],
)
def test_a_command_that_differs_by_its_folder_is_no_rule(line, tmp_path):
    path = tmp_path / "AGENTS.md"
    path.write_text(f"# Rules\n\n{line}\n")
    statements, of_bot = statements_of(path, path.read_text())
    assert not [rule for statement in statements for rule in drafts_of(statement, of_bot)]


def drafts_of(statement, of_bot):
    drafts = draft(statement, of_bot)
    return [] if isinstance(drafts, Undrafted) else drafts
