"""Commands as rules files write them, and the patterns that measures take.

For example:

    `git push --force` -> command_pattern -> r"git push(?=.* (?:--force...))"
    `src/a.py`         -> is_command      -> False
"""

import re
from collections.abc import Iterable, Sequence

# --- The words of a command


def _words(text: str) -> list[str]:
    """The words of a command; spaces in quotation marks do not end a word."""
    return re.findall(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"']|[\"'])+", text)


def without_placeholder(text: str) -> str:
    """A command without placeholders at its end: `node <file>` is `node`."""
    return re.sub(r"(?: (?:<[^<>]*>|\.\.\.|…|\[[^\[\]]*\]))+$", "", text)


_PLACEHOLDER = re.compile(r"<[^>]*>|\[[^\]]*\]|(?<!\./)\.\.\.|…|\{[^}]*\}|\$\w|\bYOUR_|\bpath/to\b")
_MIN_WORDS = 3  # a command that is cut at a placeholder keeps at least this many words


def without_arguments(text: str) -> str:
    """A command up to its first option or placeholder, if it has a placeholder: `tool check --file
    <path>` is `tool check`; the whole command if too few words would be left.
    """
    if not _PLACEHOLDER.search(text):
        return text
    words: list[str] = []
    for word in _words(text):
        if word.startswith("-") or _PLACEHOLDER.search(word) or re.fullmatch(r"[A-Z]+-\d+", word):
            break
        words.append(word)
    return " ".join(words) if len(words) >= _MIN_WORDS else text


# --- Which texts are commands

# programs whose name alone is clearly a command, also without backticks
TOOLS = frozenset(
    """npm npx yarn pnpm pnpx bun bunx deno node pip pip3 pipx poetry pipenv conda mamba uv uvx
    hatch pdm python python3 jest vitest mocha pytest tox nox make just cargo rustc go gradle mvn
    maven ant bazel docker docker-compose podman kubectl helm terraform git gh hub svn hg eslint
    prettier biome black ruff isort flake8 mypy pyright pylint tsc tsx ts-node webpack vite rspec
    rake bundle gem rails composer php dotnet swift xcodebuild grep rg fd ack ag find sed awk cat
    curl wget
    sudo rm ssh scp rsync apt apt-get brew nx turbo lerna sbt mix cmake ctest ninja""".split()
)


# further programs, whose names are commands only in backticks
_IN_BACKTICKS = frozenset(
    """cd ls cp mv mkdir touch chmod chown kill killall pkill bash sh zsh source psql mysql
    redis-cli sqlite3 alembic flyway prisma drizzle-kit supabase vercel wrangler firebase aws gcloud
    az heroku fly pulumi ansible vagrant ./gradlew gradlew ./mvnw mvnw lint-staged husky changeset
    esbuild parcel rollup swc oxlint dprint standard tslint mise asdf volta fnm nvm
    storybook playwright cypress ng vue next nuxt astro expo eas react-native flutter dart pod
    fastlane mintlify sphinx-build mkdocs pre-commit prek golangci-lint gofmt goimports rustfmt
    clippy cargo-nextest buf protoc openapi-generator spotless ktlint detekt swiftlint swiftformat
    rubocop brakeman phpunit phpstan phpcs pwsh powershell""".split()
)
# what only code has; the `=` of an option, as in `--filter=web`, is that of a command
_CODE_SIGNS = re.compile(r"[|>;]|\(\)|(?<!\S)(?!-)[^\s=]*=|= ")

# what a user types to a coding agent, "/check", and no shell command, as "/usr/bin/env" is
_SLASH_COMMAND = re.compile(r"/[\w:-]+(?: |$)")


def is_tool(word: str) -> bool:
    """Whether a word is the name of a program that people write without backticks."""
    return word.lower() in TOOLS


def is_command(text: str) -> bool:
    """Whether a code span is a shell command: a known program, with arguments or alone."""
    words = _words(text)
    if not words or _PLACEHOLDER.search(text) or _CODE_SIGNS.search(text):
        return False
    program = words[0]
    is_script = re.fullmatch(r"\.{1,2}/[\w./-]+|\.[\w./-]*\.(?:sh|py|js|mjs|ts)", program)
    is_script = is_script or re.fullmatch(r"[\w.\\/-]+\.exe", program)
    return program in TOOLS or program in _IN_BACKTICKS or is_script is not None


def is_runnable(text: str) -> bool:
    """Whether a code span can be a command, if a text says that it is run."""
    if _PLACEHOLDER.search(text) or _CODE_SIGNS.search(text) or _SLASH_COMMAND.match(text):
        return False
    return re.match(r"(?:\.{0,2}[/\\])?\.?[a-z][\w./:\\-]*(?: |$)", text) is not None


def parts_of(script: str) -> list[str]:
    """The commands of a line such as `$ make lint && make test  # quick`, without prompt and
    comment.
    """
    line = re.sub(r"(?:^|\s)#.*$", "", script.strip().removeprefix("$ ")).strip()
    return [part.strip() for part in re.split(r"\s*&&\s*", line) if part.strip()]


# --- The patterns of commands

_ENDS = r"(?!\S)"  # where a word of a command ends


def command_pattern(text: str) -> str:
    """The regular expression that matches the beginning of each command line that runs a command.

    Options may stand anywhere on the line: `git push --force` is also `git push origin --force`.
    """
    program, *rest = _words(text)
    if program in ("pip", "pip3"):
        return f"(?:python3? -m )?pip3?{_pattern_after(rest, ('pip',)) or _ENDS}"
    if program == "python" and not rest:
        return f"python3?{_ENDS}"
    return _escape(program) + (_pattern_after(rest, (program,)) or _ENDS)


_UNVERIFIED = r"(?:--no-verify|-[aepqsvz]*n\w*)"  # also `-nm`, but not the message of `-mnew`
# the ways to write an option, by its program and subcommand
_SAME_OPTIONS = {
    **dict.fromkeys(
        (("git", "push", "--force"), ("git", "push", "-f")),
        r"(?:--force(?:=\S*)?|-[a-zA-Z]*f[a-zA-Z]*|\+\S+)",  # also of a ref such as `+main`
    ),
    ("git", "commit", "--no-verify"): _UNVERIFIED,
    **dict.fromkeys(
        (("git", "commit", "-s"), ("git", "commit", "--signoff")), "(?:--signoff|-[a-z]*s[a-z]*)"
    ),
    ("git", "commit", "-n"): _UNVERIFIED,
    ("git", "add", "-A"): "(?:-A|--all)",
    ("git", "add", "--all"): "(?:-A|--all)",
    ("git", "commit", "-a"): "(?:-a|--all|-[a-z]*a[a-z]*)",
}
# the letters of the options of `rm`, which may be written in one word
_OPTIONS_OF_RM = {
    **dict.fromkeys("rR", r"(?=.* (?:-\w*[rR]|--recursive))"),
    "f": r"(?=.* (?:-\w*f|--force))",
}
# programs that run what a project defines, and that no other program runs
_RUN_PROJECTS = frozenset(
    "npm yarn pnpm bun npx uv poetry hatch make just cargo git gh go bash sh docker".split()
)
_RUNNERS = (
    r"(?:(?:uv|poetry|hatch|pipenv|pdm|rye) run (?:-\S+ )*|(?:npx|bunx|uvx|pnpm|yarn)(?:"
    r" exec| dlx)? )?(?:python3? -m )?"
)


def required_pattern(text: str) -> str:
    """The pattern of a command that has to be run, by itself or by a runner such as `uv run`."""
    words = _words(text)
    pattern = "".join(f" {_escape(word)}" for word in words).strip() + _ENDS
    is_tool_alone = (
        words[0] not in _RUN_PROJECTS and re.fullmatch(r"[a-z][\w-]*", words[0]) is not None
    )
    return f"{_RUNNERS}{pattern}" if is_tool_alone else pattern


def _pattern_after(words: Sequence[str], before: tuple[str, ...]) -> str:
    """The pattern of the words after a program, whose options may stand anywhere; "" for none."""
    if not words:
        return ""
    flags = [word.startswith("-") and word != "--" for word in words]
    if any(flags) and not all(flags[flags.index(True) :]):  # an option with an argument
        return "".join(f" {_escape(word)}" for word in words) + _ENDS
    positional = [word for word, is_flag in zip(words, flags, strict=True) if not is_flag]
    pattern = "".join(f" {_escape(word)}" for word in positional)
    subcommand = (*before, *positional)
    for option in words[len(positional) :]:
        pattern += _pattern_of_option(option, subcommand[0], subcommand[-1])
    return pattern + _ENDS


def _pattern_of_option(option: str, program: str, subcommand: str) -> str:
    """The pattern of an option that may stand anywhere, in each way to write it."""
    if same := _SAME_OPTIONS.get((program, subcommand, option)):
        return rf"(?=.* {same}{_ENDS})"
    letters = re.fullmatch("-([a-zA-Z]{2,3})", option)
    if letters and program == "rm":  # `rm -rf` is also `rm -r -f`
        patterns = (_OPTIONS_OF_RM.get(letter, rf"(?=.* -\w*{letter})") for letter in letters[1])
        return "".join(patterns)
    return rf"(?=.* {_escape(option)}(?:=|{_ENDS}))"


def _escape(word: str) -> str:
    """The pattern of a word of a command, without quotation marks around it."""
    quoted = re.fullmatch(r"([\"'])(.*)\1", word)
    return re.escape(quoted[2] if quoted else word).replace(r"\-", "-")


def any_of(patterns: Iterable[str]) -> str:
    """A pattern that matches what any of some patterns matches."""
    unique = list(dict.fromkeys(patterns))
    return unique[0] if len(unique) == 1 else f"(?:{'|'.join(unique)})"


# --- Package managers

# the subcommands with which a manager installs packages
_INSTALLS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "(?:install|i|ci|add|remove|update|upgrade)"),
    "pip": "install",
    "uv": "(?:add|sync|pip)",
    **dict.fromkeys(("poetry", "pipenv", "conda"), "(?:add|install|update)"),
}


def installs_of(manager: str) -> str | None:
    """The pattern of commands with which a manager installs packages; None if it is unknown."""
    return f"{manager} {_INSTALLS[manager]}{_ENDS}" if manager in _INSTALLS else None


# package managers of the same language
_MANAGERS = (
    ("npm", "yarn", "pnpm", "bun"),
    ("pip", "poetry", "pipenv", "conda", "uv"),
)


def managers_beside(manager: str) -> list[str]:
    """The other package managers of the same language; [] if the manager is unknown."""
    group = next((names for names in _MANAGERS if manager in names), ())
    return [name for name in group if name != manager]


def other_installs(manager: str) -> str | None:
    """The pattern of commands with which other managers of the same language install packages; None
    if the manager is unknown.
    """
    others = managers_beside(manager)
    return any_of(f"{name} {_INSTALLS[name]}{_ENDS}" for name in others) if others else None
