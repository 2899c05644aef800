"""Lines of rules files beside the measures that are drafted from them, or none."""

import time

import pytest
from agent_turns import wrote
from drafted_measures import measures_of

from holdfast.drafting.line_rules import draft
from holdfast.drafting.rules_file import read_statements
from holdfast.measures import build
from holdfast.measures.turns import AssistantTurn, ToolCall


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("Never run `forever start app.js`", r"forever start app\.js"),
        ("Do not use `npm forever list`", "npm forever list"),
        ("Never run `make manually clean`", "make manually clean"),
        ("Never run `terraform apply directly to prod`", "terraform apply directly to prod"),
        ("Never run `clever deploy`", "clever deploy"),
        ("Never run `forever start`", "forever start"),
        ("Never manually run `npm version`", "npm version"),
        ("Never ever directly run `npm version`", "npm version"),
    ],
)
def test_adverbs_are_left_out_only_before_the_verb(line, command):
    assert measures_of(line) == [
        {"name": "command_not_run", "command": rf"{command}(?!\S)"},
    ]


@pytest.mark.parametrize(
    ("item", "command"),
    [
        ("`npm run test:unit` – fast; `npm run test:e2e` in CI", "test:unit"),
        ("`npm run lint:js`; `npm run lint:css` is for the website team", "lint:js"),
        ("`make lint` (fast) and `make test`", "make lint"),
        ("`npm run build` (not needed for docs) and `npm test`", "build"),
    ],
)
@pytest.mark.parametrize("heading", ["Before committing", "After any change, run"])
def test_only_the_first_clause_of_an_item_is_a_command_to_run(heading, item, command):
    (spec,) = measures_of(f"## {heading}\n\n- {item}\n")
    assert command in str(spec)


def test_an_item_two_levels_below_titles_is_about_something_else():
    is_about_titles = "## PR titles\n\n- Use Conventional Commits.\n"
    assert [spec["name"] for spec in measures_of(is_about_titles)] == ["pull_request"]
    deeper = "## PR titles\n\n### Commits of a branch\n\n- Use Conventional Commits.\n"
    assert all(spec["name"] != "pull_request" for spec in measures_of(deeper))
    shape = "### PR Title Format\n\n`<type>: <title>`\n\n- Title must start with lowercase letter\n"
    assert "pull_request" in [spec["name"] for spec in measures_of(shape)]


@pytest.mark.parametrize(
    ("command", "is_a_merge_into_main"),
    [
        ("git checkout main && git merge feature", True),
        ("gh pr merge 7", True),
        ("git merge main", False),
        ("git merge origin/main", False),
        ("git merge main-menu", True),
    ],
)
def test_a_merge_into_main_needs_the_users_word(command, is_a_merge_into_main):
    (spec,) = measures_of("Never merge to `main` yourself — wait for approval.")
    turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),), user="Fix it.")
    judgement = build(spec).judge_turn(turn)
    assert (judgement is not None and judgement.value == 0) == is_a_merge_into_main


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Every new Python file starts with the usual comment.", "needs a judge"),
        ("All new modules are great.", "not an instruction"),
        ("Update `CHANGELOG.md` whenever you add a file to `src/`.", "changes_together"),
    ],
)
def test_a_line_that_a_measure_could_decide_is_not_called_undecidable(line, reason):
    (statement,) = read_statements(f"- {line}\n")
    assert reason in draft(statement, False).reason


@pytest.mark.parametrize(
    ("command", "breaks"),
    [
        ("git commit --no-verify -m x", True),
        ("git commit -nm x", True),
        ("git commit -anm x", True),
        ("git push --no-verify", True),
        ("git commit -m 'docs: explain --no-verify'", False),
        ("git commit -m 'fix: n -n'", False),
        ("git commit -mnew", False),
        ("git commit -am new", False),
    ],
)
def test_a_commit_without_hooks_is_known_by_its_options(command, breaks):
    (spec,) = measures_of("Don't use `--no-verify`.")
    turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),))
    assert build(spec).judge_turn(turn).value == (0 if breaks else 1)


@pytest.mark.parametrize(
    ("user", "is_ordered"),
    [
        ("Add httpx.", True),
        ("add `zod` for validation", True),
        ("Add the httpx package.", True),
        ("You can install httpx.", True),
        ("Add pydantic v2.", True),
        ("Add httpx 0.27, please.", True),
        ("Add page 2 of the docs.", False),
        ("Add a call to the API.", False),
        ("Add tests for the API.", False),
        ("Add logging.", False),
    ],
)
def test_an_order_to_add_something_is_about_a_dependency(user, is_ordered):
    (spec,) = measures_of("Ask before adding a new dependency.")
    turn = AssistantTurn("", (ToolCall("Bash", {"command": "uv add httpx"}),), user=user)
    assert (build(spec).judge_turn(turn).value == 1) == is_ordered


@pytest.mark.parametrize(
    ("user", "command"),
    [("add x" + "." * 60_000 + "#", "uv add httpx"), ("Hi", "make " + "a " * 30_000)],
)
def test_a_long_message_or_command_takes_time_in_proportion_to_its_length(user, command):
    (spec,) = measures_of("Ask before adding a new dependency.")
    turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),), user=user)
    start = time.process_time()
    build(spec).judge_turn(turn)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "line",
    [
        "Never push yourself — wait for approval.",
        "Never push yourself (wait for approval).",
        "Never push yourself; ask.",
        "Never push (ask first).",
    ],
)
def test_an_approval_that_is_waited_for_is_a_gate_in_any_punctuation(line):
    (spec,) = measures_of(line)
    assert spec["name"] == "asks_before"


def test_whom_to_ask_for_a_review_is_no_approval():
    (spec,) = measures_of("Do not use `any` (ask for a review).")
    assert spec["name"] == "code_not_written"


OF_REPLIES = [
    ("Reply only in German", {"name": "language", "code": "de"}),
    ("Always respond only in English", {"name": "language", "code": "en"}),
    ("Respond to me only in German", {"name": "language", "code": "de"}),
    ("Messages to the user must be in Polish", {"name": "language", "code": "pl"}),
    ('End messages to the user with "Over"', {"name": "ends_with", "word": "Over"}),
    ("Keep messages to the user to 50 words", {"name": "at_most_words", "count": 50}),
    ('Never say "obviously" to me', {"name": "never_contains", "words": ["obviously"]}),
    ("Never write “obviously” to the user", {"name": "never_contains", "words": ["obviously"]}),
    ("Confine all replies to 50 words", {"name": "at_most_words", "count": 50}),
    ("Hold all replies to 50 words", {"name": "at_most_words", "count": 50}),
    ("Use German for your replies", {"name": "language", "code": "de"}),
    ("Write German in all replies", {"name": "language", "code": "de"}),
    ("Keep all replies to me in German", {"name": "language", "code": "de"}),
    (
        "Write in at most 3 sentences",
        {"name": "at_most_sentences", "count": 3, "prose": True},
    ),
    ("Keep replies at or under 50 words", {"name": "at_most_words", "count": 50}),
    ("Keep replies at or below 50 words", {"name": "at_most_words", "count": 50}),
    ("Keep replies under 50 words", {"name": "at_most_words", "count": 49}),
    ('Your answers must end with "Over"', {"name": "ends_with", "word": "Over"}),
    ("Responses to the user must be in German", {"name": "language", "code": "de"}),
]


@pytest.mark.parametrize("of_bot", [False, True], ids=["agent", "bot"])
@pytest.mark.parametrize(("line", "spec"), OF_REPLIES)
def test_rules_of_replies_are_read_in_agents_files_and_in_bots_prompts(line, spec, of_bot):
    if spec["name"] == "at_most_words" and not of_bot:  # the code that an agent shows is free
        spec = {**spec, "prose": True}
    assert measures_of(line, of_bot) == [spec]


@pytest.mark.parametrize(
    "line",
    [
        'Response classes must end with "Response"',
        'Response DTOs must end with "Response"',
        'Reply-to headers must start with "x-"',
        'Reply type names must end with "Reply"',
        'End all response types with "Response"',
        'Responses must begin with "data:" (SSE)',
        r'Each response must end with "\n\n"',
        r'End every response with "\n\n"',
        'Responses must not include "null"',
        "All responses must be valid JSON",
        'Each answer in quiz.json must end with "."',
        'Answers must end with "?" in the FAQ',
        "Talk in English with subagents",
    ],
)
def test_rules_of_what_a_program_answers_are_no_rules_of_an_agents_replies(line):
    assert measures_of(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "You can reply in French.",
        "You may also answer in French.",
        "If the user writes in French, reply in French; otherwise reply in English.",
        "Use emojis only in private messages.",
        "Use emojis only in German replies.",
    ],
)
def test_what_a_bot_may_do_or_does_at_times_is_no_rule(line):
    assert measures_of(line, of_bot=True) == []


def test_what_a_bot_can_do_only_in_one_way_is_a_rule():
    for line in ("You can only reply in French.", "You know a lot but always reply in French."):
        assert measures_of(line, of_bot=True) == [{"name": "language", "code": "fr"}]


@pytest.mark.parametrize(
    ("line", "path", "keeps", "breaks"),
    [
        (
            "**Classes**: PascalCase (e.g. `BookScreen`)",
            "a.dart",
            "class BookScreen {}",
            "class bookScreen {}",
        ),
        ("PascalCase for types, camelCase for methods.", "a.ts", "type Row = 1", "type row = 1"),
        (
            "Python naming: `snake_case` for functions, `PascalCase` for classes",
            "a.py",
            "def a_b(): 1",
            "def aB(): 1",
        ),
        (
            "Use `dayjs-lite` instead of `dayjs`",
            "a.ts",
            "import a from 'dayjs-lite'",
            "import a from 'dayjs'",
        ),
        ("`margin-inline-start` not `margin-left`", "a.css", "margin-left-x: 0", "margin-left: 0"),
        (
            'Never use `page.waitFor("networkidle")`.',
            "a.ts",
            'page.waitFor("load")',
            "page.waitFor('networkidle')",
        ),
        (
            "Never use `.locator()` or `id`-based selectors",
            "a.ts",
            "page.get(id)",
            "page.locator(id)",
        ),
        (
            "Every new Go file must have a licence header",
            "a.go",
            "// Copyright 2026 A\nx",
            "package a",
        ),
        (
            "Use `declare(strict_types=1)` in all PHP files",
            "a.php",
            "declare(strict_types=1);",
            "echo 1;",
        ),
        ("No em dashes in docs", "a.md", "1–2", "a — b"),
    ],
)
def test_a_line_about_code_decides_what_is_written(line, path, keeps, breaks):
    measures = [build(spec) for spec in measures_of(line)]
    assert measures
    for content, score in ((keeps, 1), (breaks, 0)):
        values = [measure.judge_turn(wrote(path, content)).value for measure in measures]
        assert min(value for value in values if value is not None) == score, content


@pytest.mark.parametrize(
    "line",
    [
        "- These are wrapped. Don't `trim()` — that would break them.",
        "Use `user_id`, not `id`",
        "userID, httpClient (not userId, httpClient)",
        "## Don't\n\n- Hardcode URLs — use `home_url()`",
        "When adding a file to `src/`, update `docs/files.md`",
        "### Frontend-only scope\n\n**Prohibited:**\n\n- `cargo build`",
        "Commit messages reference related issue numbers",
    ],
)
def test_a_line_that_is_about_something_else_or_holds_at_times_is_no_rule(line):
    assert measures_of(line) == []


@pytest.mark.parametrize(
    ("line", "changed_files", "also"),
    [
        ("When you change `a.proto`, update `docs/api.md`.", "a.proto", "docs/api.md"),
        ("Update `CHANGELOG.md` when modifying `src/`.", "src/*", "CHANGELOG.md"),
        ("Keep `docs/a.md` in sync with `src/b.py`.", "src/b.py", "docs/a.md"),
        ("Update both `en.json` and `de.json` for new strings", "en.json", "de.json"),
    ],
)
def test_files_to_change_together_are_drafted_as_one_rule(line, changed_files, also):
    spec = {"name": "changes_together", "changed": changed_files, "also": also}
    assert measures_of(line) == [spec]


MAKE_TEST = r"make test(?!\S)"


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        (
            "A task is NOT complete until all of these pass:\n\n1. `make test`\n2. `make lint`",
            [
                {"name": "runs_after", "changed": "*", "run": MAKE_TEST},
                {"name": "runs_after", "changed": "*", "run": r"make lint(?!\S)"},
            ],
        ),
        (
            "All tests must pass `make test`",
            [{"name": "runs_after", "changed": "*", "run": MAKE_TEST}],
        ),
        (
            "Before considering any work complete, you MUST run these commands in order and confirm"
            " they pass:\n\n```bash\nmake test  # 1.\n./run.sh <name>\n```",
            [
                {"name": "runs_after", "changed": "*", "run": MAKE_TEST},
                {"name": "runs_after", "changed": "*", "run": r"\./run\.sh(?!\S)"},
            ],
        ),
        (
            "## Before every commit\n\n1. `make test` 2. `make vet`",
            [
                {"name": "runs_before", "first": MAKE_TEST, "then": r"git commit(?!\S)"},
                {"name": "runs_before", "first": r"make vet(?!\S)", "then": r"git commit(?!\S)"},
            ],
        ),
        (
            "Never edit `vendor/` or commit `.env`",
            [
                {"name": "file_not_touched", "path": "vendor/*"},
                {"name": "commit_excludes", "paths": ".env"},
            ],
        ),
        (
            "- Secrets are ignored: `.env`, `*.pem`. Never commit, print or paste their contents.",
            [{"name": "commit_excludes", "paths": [".env", "*.pem"]}],
        ),
        (
            "AI commits MUST include:\n\n```\nCo-Authored-By: <name> <mail>\n```",
            [{"name": "commit_includes", "trailer": "(?i)^Co-Authored-By:"}],
        ),
        (
            "Use Biome, not ESLint",
            [{"name": "command_not_run", "command": r"eslint(?!\S)"}],
        ),
        (
            "| Don't use | Use |\n| --- | --- |\n| `npm install` | `pnpm install` |",
            [{"name": "command_not_run", "command": r"npm install(?!\S)"}],
        ),
        (
            "Do not push secrets or change git config",
            [
                {
                    "name": "command_not_run",
                    "command": r"git config(?! (?:--get|--list|-l)(?!\S))",
                }
            ],
        ),
        (
            "Commit subjects: `Component: short description`",
            [{"name": "commit_message", "pattern": r"\A[^\s:][^\n:]{0,60}: \S"}],
        ),
    ],
)
def test_orders_are_drafted_from_lists_blocks_and_tables(text, specs):
    assert measures_of(text) == specs


def test_each_act_of_a_list_needs_the_users_word():
    specs = measures_of("Never commit or push changes unless explicitly asked to do so")
    assert [spec["command"] for spec in specs] == [r"git commit(?!\S)", r"git push(?!\S)"]


@pytest.mark.parametrize(
    ("body", "is_kept"),
    [
        ("## Test plan\n- ran it", False),
        ("**Test plan**: none", False),
        ("We test plan B later.", True),
    ],
)
def test_a_section_forbidden_in_pull_requests_is_drafted(body, is_kept):
    (spec,) = measures_of("Never add test plan to PR description.")
    command = f"gh pr create --title x --body '{body}'"
    turn = AssistantTurn("", (ToolCall("Bash", {"command": command}),))
    assert build(spec).judge_turn(turn).value == is_kept


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("Can I add the httpx client?", True),
        ("Shall I add the redis driver for this?", True),
        ("Shall I add the API client?", False),
        ("Can I add tests?", False),
    ],
)
def test_a_question_about_a_client_by_its_name_is_about_a_dependency(question, asks):
    (spec,) = measures_of("Ask before adding a new dependency.")
    call = ToolCall("Bash", {"command": "uv add httpx"})
    turn = AssistantTurn("", (call,), user="Yes.", previous=question)
    assert build(spec).judge_turn(turn).value == asks


@pytest.mark.parametrize(
    "text",
    [
        "Don't be afraid to delete `tmp/` or edit `config.json`.",
        "Don't forget to run `make lint` or commit `dist/`.",
        "Never hesitate to run `make test` or edit `a.py`.",
        "Do not edit `a.py` or delete `b.py` in release branches.",
        "Do not edit `a.py` or delete `b.py` on Fridays.",
        "When you change `src/api.ts`, you may need to update `docs/api.md`.",
        "Never use `eval()` - tests are the exception.",
        "Never run `npm install` (CI scripts are an exception).",
        "All files include a license header already.",
        "Every new file must have a license header unless it is generated.",
        "New files need a license header only in `core/`.",
        "You must run `npm install`.",
        "Always run `docker compose up`.",
        "Always run `make dev`.",
        "Always run `cd app`.",
        "We must run `scripts/setup.sh`.",
        "| Question | Yes | No |\n|---|---|---|\n| To see news? | `git push` | `git fetch` |",
    ],
)
def test_what_only_looks_like_a_rule_drafts_none(text):
    assert measures_of(text) == []


@pytest.mark.parametrize(
    ("line", "path", "code", "value"),
    [
        ("PascalCase for classes.", "a.py", "class foo:\n    pass", 0),
        ("PascalCase for classes.", "a.py", "class foo(Base):\n    pass", 0),
        ("PascalCase for classes.", "a.ts", "export class foo extends Base {", 0),
        ("PascalCase for classes.", "a.py", 'x = """\nclass of the object, or None\n"""', 1),
        ("PascalCase for types.", "a.go", "type client struct {", 0),
        ("PascalCase for types.", "run.sh", "type git > /dev/null", 1),
        ("JavaScript: functions are camelCase", "a.jsx", "function App() {}", 1),
        ("JavaScript: functions are camelCase", "a.js", "function get_it() {}", 0),
    ],
)
def test_the_case_of_a_name_is_read_where_it_is_declared(line, path, code, value):
    (spec,) = measures_of(line)
    call = ToolCall("Write", {"file_path": path, "content": code})
    assert build(spec).score_turn(AssistantTurn("", (call,))).value == value
