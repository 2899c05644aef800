"""Many wordings of one rule are drafted into one measure, and what only looks like it into none."""

import time

import pytest
from drafted_measures import measures_of

from holdfast.drafting.grammar.circumstances import Circumstance
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of

COMMIT, PUSH, REQUEST = r"git commit(?!\S)", r"git push(?!\S)", r"gh pr create(?!\S)"
TEST, GEN = r"make test(?!\S)", r"make gen(?!\S)"

BEFORE = {
    COMMIT: """
        Do not commit until `make test` passes.
        Commits require a passing `make test`.
        Every commit must pass `make test`.
        No commit without `make test`.
        Run `make test`, then commit.
        When committing, first run `make test`.
        Use `make test` to test the code before committing.
        All code must pass `make test` before commit.
        Never commit code changes without having run `make test`.
    """,
    PUSH: """
        `make test` is mandatory before each push.
        Make sure `make test` is green prior to pushing.
        Always run the tests with `make test` before you push.
        No pushes without running `make test` first.
        Run `make test` and only then push.
        Prior to every push, execute `make test`.
        Never push unless `make test` passes.
        Never push if `make test` fails.
        Under no circumstances push without running `make test`.
    """,
    REQUEST: """
        You must not open a PR without having run `make test`.
        Before you open a pull request, run `make test`.
        Before a PR is opened, `make test` must pass.
        Run `make test` before creating a merge request.
        `make test` is required before requesting review.
        Do not open pull requests until `make test` passes.
    """,
}
AFTER = {
    "api.proto": """
        `make gen` must be run after editing `api.proto`.
        Changes to `api.proto` require running `make gen`.
        Remember to run `make gen` whenever `api.proto` is updated.
        Re-run `make gen` on every change to `api.proto`.
        Following changes to `api.proto`, execute `make gen`.
        Upon editing `api.proto`, execute `make gen`.
        Editing `api.proto` requires `make gen`.
        `make gen` is required after any change to `api.proto`.
        You must run `make gen` if you edit anything in `api.proto`.
    """,
    "*.proto": """
        Every time you touch a `.proto` file, run `make gen`.
        When adding, changing or removing a `.proto` file, run `make gen`.
        After each edit to a `.proto` file, regenerate the client with `make gen`.
    """,
    "*.rs": """
        After modifying Rust code, `make gen` must be run.
        Every Rust file you modify must pass `make gen` before handoff.
        If you changed any Rust files, run `make gen` before finishing.
    """,
    "*": """
        Once you have finished your changes, run `make gen`.
        Do not finish a task without running `make gen`.
        Never report a task as done without a passing `make gen`.
        Work is not done until `make gen` passes.
        Validation before marking work complete: `make gen`
    """,
}
ASKING = {
    COMMIT: """
        Do not commit without my approval.
        Commit only if I ask.
        Committing requires my explicit approval.
        Unless I ask you to, do not commit.
        Never commit yourself; wait for confirmation.
        Ask the user before committing.
        Approval is required before committing.
    """,
    PUSH: """
        Get my permission before pushing.
        Wait for my go-ahead before pushing.
        Never push on your own initiative; ask first.
        Push only when the user has asked for it.
        No pushing unless asked.
        Pushing is only allowed when the user asks.
        Do not, under any circumstances, push without asking.
        Explicit confirmation is needed before pushing.
        Agents may not push unless they are told to.
    """,
}
LEFT_ALONE = """
    `vendor/` must never be edited or deleted by hand.
    Edits to `vendor/` are not allowed.
    No manual edits to `vendor/`.
    Never make changes to `vendor/`.
    Nothing in `vendor/` may be changed.
    You may not change anything under `vendor/`.
    Refrain from editing `vendor/`.
    It is forbidden to modify files inside `vendor/`.
    `vendor/` is not to be touched.
    Files in `vendor/` should never be changed.
    Editing `vendor/` by hand is prohibited.
    Never write to `vendor/`.
"""
NOT_RUN = """
    `make ship` must never be used.
    `make ship` is forbidden.
    Running `make ship` is prohibited.
    You are not allowed to run `make ship`.
    Agents may not run `make ship`.
    Under no circumstances run `make ship`.
    It is forbidden to run `make ship`.
    Use of `make ship` is not permitted.
    No `make ship`.
    Refrain from running `make ship`.
    Instead of `make ship`, use `make test`.
    `make test` instead of `make ship`.
    Releases must be built with `make test`, never with `make ship`.
    This project uses `make test`, not `make ship`.
    Releases must use `make test` instead of `make ship`.
    Never `make ship`.
"""
NOT_WRITTEN = """
    `os.path` must never be used.
    `os.path` is banned.
    Use of `os.path` is prohibited.
    No use of `os.path`.
    Under no circumstances use `os.path`.
    We never use `os.path`.
    Instead of `os.path`, use `pathlib`.
    Rather than `os.path`, use `pathlib`.
    `pathlib` instead of `os.path`.
    Refrain from using `os.path`.
    You are not allowed to use `os.path`.
    `os.path` must not appear in committed code.
    The use of `os.path` is strictly forbidden.
    Use `pathlib` instead of `os.path` for better readability.
"""
NOT_COMMITTED = """
    `dist/` must never be committed to git.
    `dist/` is built by CI and must not be committed.
    No commits of `dist/`.
    Committing `dist/` is forbidden.
    Never commit secrets or `dist/` to the repository.
    Under no circumstances commit files in `dist/`.
    You may not commit build artifacts or `dist/`.
    `dist/` is built by CI; never commit it.
"""
NO_RULES = """
    Never push without running `make test` if the API changed.
    Access to `admin.py` is not allowed without a token.
    `foo()` is not allowed to block.
    Files in `src/` are never deleted by the cleanup job.
    `main` is always deployed.
    Users must not edit `config.json`.
    The server must not run `rm -rf`.
    The cache must never be used in tests.
    `README.md` must be updated.
    `docs/` must be updated when the API changes.
    `CHANGELOG.md` should be edited by hand.
    Changes to `src/` require tests.
    Changes to `src/` need a review.
    Committing requires a clean tree.
    Pushing is only allowed after review.
    Pushing is forbidden on Fridays.
    Pull requests must pass CI.
    Every PR must include tests.
    All commits must be signed.
    Commits must not exceed 100 lines.
    `make test` must not be run in parallel.
    `npm test` should be used for unit tests.
    `make dev` must be running before you start.
    `a.json` must not contain secrets.
    The code must not use more than 2 GB.
    Functions must not return `null`.
    Components must not call `fetch` directly.
    Services must not import from `controllers/`.
    Modules in `core/` must not import `ui/`.
    Migrations must be run before deploying.
    Run migrations before deploying.
    No changes to behaviour.
    No commits yet.
    No use in production.
    No pushes on weekends.
    Imports are not allowed to be circular.
    Edits are allowed in `src/`.
    You need approval for the design.
    Approval of the PR is required.
    When you need approval, ask the user.
    Ask the user if unsure.
    Ask before making large changes.
    Ask before making assumptions.
    Ask before changing public APIs.
    Wait for the tests before pushing.
    Commit only when the tests pass.
    Commit only related files.
    Only commit related files.
    Push only to your branch.
    Only merge approved PRs.
    Never merge without approval from CODEOWNERS.
    A task is done when it is merged.
    Work is only done when tests pass.
    Do not finish before the tests pass.
    End with a summary.
    Finish by committing.
    Finish with `Done`.
    After the build, `dist/` contains the bundle.
    After editing, save the file.
    After you edit `a.ts`, restart the server.
    Use `X` for `Y`, not `Z`.
    Instead of guessing, ask.
    Instead of editing `a.ts`, create a new file.
    Rather than commit, stash.
    Never use the word `simply`.
    Never edit a file you have not read.
    Never touch production.
    Do not change the public API.
    Do not change `foo` to `bar`.
    Do not rename `foo()`.
    Never modify state in `reducer.ts` directly.
    Do not add logging to `hot_path.py`.
    Do not remove `x` from `y.ts`.
    Never update snapshots with `-u`.
    Do not move files to `src/`.
    Running `make test` is optional.
    Running `make test` takes 5 minutes and is required before release.
    Do not run `make test` more than once.
    Never run `make deploy` from a branch.
    Never run `make deploy` twice.
    Only use `any` in tests.
    This project uses `make`.
    Frontend code must run `make test` before pushing.
    Never suppress ESLint warnings without a reason.
    Commit `dist/` only for releases.
    Avoid running `make ship`.
    Consider running `make test` before committing.
    You can run `make test` before committing.
    `make test` runs before every commit.
    Run `make test` before committing if you changed the API.
    If tests fail, run `make fix`.
    After a release, run `make notes`.
    Run `make test` after deploying.
    Try to run `make lint` after each change.
    Changes are deployed when you push to `main`.
    Only push to `main` after review.
    Editing `a.md` requires care.
    `make test` or `make check` must pass before pushing.
    Run the relevant tests before committing.
    Do not commit without a message.
    Never edit files without reading them first.
    Do not edit `a.ts` unless needed.
    Do not edit `a.ts` in `src/`.
    Do not write tests in `src/`.
    Never delete `a.json`.
    Files in `gen/` are edited by hand.
    `vendor/` can be edited.
    No changes needed in `src/`.
    Never edit `a.ts` when `b.ts` exists.
    Never run `make ship` on Fridays.
    Don't run `npm test` for docs changes.
    Prefer not to use `sed`.
    Never use `sed` to edit files.
    Ask the user about the design before coding.
    Ask for the issue number before committing.
    Get a review before merging.
    Tests must be run before merging.
    Use `git push` with care.
    Run `make gen` after changing the interface.
    Run `make gen` after editing `a.ts` or the handbook.
    Do not use `any` if you can help it.
    You may use `any` in tests.
    `any` is used in tests.
    `any` is not recommended.
    In tests, avoid `any`.
    This is fast, not slow.
    The tool is written for bun, not npm.
    Backend uses Hono, not Express.
    Approval is not required before merging.
    Do not wait for approval before committing.
    It is not forbidden to use `any`.
    Run `make test` before the final commit.
    Never mark a task done without telling the user.
    Tasks are done when the user says so.
    When asked to commit, run `git status`.
    Before starting, run `npm install`.
    Do not report a bug without logs.
    Never commit it.
    Never commit to `main` without asking.
    When committing, use `make commit`.
    When deploying, run `./deploy.sh`.
    When adding dependencies, use `uv add`.
    Never create files in `src/`.
    In CI, use `npm ci` instead of `npm install`.
    The client must never write to the `db/` folder.
    `make lint` ensures cleanliness before review.
    Edit the `docs/`, then run `make docs` and commit the result.
    Run `make test` before pushing to `main`.
"""


def read(text: str) -> Instruction:
    """The instruction of a text that is one."""
    instruction = instruction_of(text)
    assert instruction is not None
    return instruction


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


def rows_of(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(line, key) for key, text in table.items() for line in lines_of(text)]


@pytest.mark.parametrize(("line", "then"), rows_of(BEFORE))
def test_a_command_to_run_before_an_event_is_drafted(line, then):
    assert measures_of(line) == [{"name": "runs_before", "first": TEST, "then": then}]


def test_what_is_run_before_an_event_is_a_command_whatever_its_name():
    for line in ("Always run `flint` before committing.", "Run `flint` before every commit."):
        (measure,) = measures_of(line)
        assert measure["first"].endswith(r"flint(?!\S)") and measure["then"] == COMMIT
    (measure,) = measures_of("**ALWAYS** run prek before PRs")
    assert measure["first"].endswith(r"prek(?!\S)") and measure["then"] == REQUEST
    assert measures_of("Read `notes` before committing.") == []
    assert measures_of("`flint` comes before committing in the list.") == []


def test_two_languages_may_be_named_with_a_slash():
    (measure,) = measures_of("If you modified JavaScript/TypeScript code, run `pnpm run build:js`.")
    assert measure["name"] == "runs_after" and measure["run"] == r"pnpm run build:js(?!\S)"
    assert any("tsx" in glob for glob in measure["changed"])


def test_an_instruction_to_do_it_is_approval():
    (measure,) = measures_of("Never `git push` without an explicit instruction to push.")
    assert measure["name"] == "asks_before" and measure["command"] == PUSH


def test_what_is_only_preferred_is_no_rule():
    assert measures_of("- Maximum line length is 80 columns (strongly preferred)") == []
    assert measures_of("- Maximum line length is 80 columns") != []


@pytest.mark.parametrize(("line", "changed"), rows_of(AFTER))
def test_a_command_to_run_after_a_change_is_drafted(line, changed):
    assert measures_of(line) == [{"name": "runs_after", "changed": changed, "run": GEN}]


@pytest.mark.parametrize(("line", "command"), rows_of(ASKING))
def test_an_act_that_needs_approval_is_drafted(line, command):
    (spec,) = measures_of(line)
    assert (spec["name"], spec["command"]) == ("asks_before", command)


@pytest.mark.parametrize("line", lines_of(LEFT_ALONE))
def test_files_not_to_touch_are_drafted(line):
    assert measures_of(line) == [{"name": "file_not_touched", "path": "vendor/*"}]


@pytest.mark.parametrize("line", lines_of(NOT_RUN))
def test_a_forbidden_command_is_drafted(line):
    assert measures_of(line) == [{"name": "command_not_run", "command": r"make ship(?!\S)"}]


@pytest.mark.parametrize("line", lines_of(NOT_WRITTEN))
def test_forbidden_code_is_drafted(line):
    (spec,) = measures_of(line)
    assert (spec["name"], spec["files"]) == ("code_not_written", "*.py")


@pytest.mark.parametrize(
    "line",
    [
        "`unwrap()` should not be used outside tests.",
        "Never use `unwrap()` outside of tests.",
    ],
)
def test_code_allowed_only_in_tests_excludes_them(line):
    (spec,) = measures_of(line)
    included, excluded = spec["files"]
    assert included == "*.rs" and excluded.startswith("!") and "tests/" in excluded


@pytest.mark.parametrize("line", lines_of(NOT_COMMITTED))
def test_files_not_to_commit_are_drafted(line):
    assert measures_of(line) == [{"name": "commit_excludes", "paths": "dist/*"}]


HEADINGS = [  # a heading or an introduction, an item below it, and the measure
    ("Run the following before every commit:", "`make lint`", "runs_before"),
    ("The following must pass before pushing:", "`make lint`", "runs_before"),
    ("## Before opening a PR\n\nRun these commands:", "`make lint`", "runs_before"),
    ("After changing any Python file, always run:", "`make lint`", "runs_after"),
    ("Before marking a task as complete, verify:", "`make lint` passes", "runs_after"),
]


@pytest.mark.parametrize(("heading", "item", "name"), HEADINGS)
def test_a_heading_says_what_holds_for_its_items(heading, item, name):
    assert [spec["name"] for spec in measures_of(f"{heading}\n\n- {item}\n")] == [name]


def test_an_item_that_offers_another_command_is_no_rule():
    assert (
        measures_of("Before committing:\n\n- Run `make a` (or `make b`) - it finds links.\n") == []
    )


@pytest.mark.parametrize("line", lines_of(NO_RULES))
def test_lines_that_only_look_like_rules_are_not_drafted(line):
    assert measures_of(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "Never use `any` in tests, use `unknown`",
        "`any` is forbidden in tests",
        "No use of `any` in tests",
        "In tests, you must never use `any`",
        "In tests, the use of `any` is not allowed",
        "Tests must not use `any`",
        "`any` must never be used in tests",
    ],
)
def test_many_wordings_have_one_structure(line):
    instruction = read(line)
    parts = (instruction.modality, instruction.verbs, instruction.object)
    assert parts == (Modality.NEVER, ("use",), "`any`")
    conditions = [
        item for item in instruction.circumstances if item.relation is not Relation.ADVICE
    ]
    assert [(relation, text.lower()) for relation, text in conditions] == [(Relation.IN, "tests")]


def test_next_steps_and_comparisons_are_circumstances_of_an_instruction():
    assert instruction_of("Run `a` and fix errors before pushing (`b`)") == Instruction(
        Modality.MUST,
        ("run",),
        "`a`",
        (
            Circumstance(Relation.THEN, "fix errors"),
            Circumstance(Relation.BEFORE, "pushing"),
            Circumstance(Relation.WITH, "(`b`)"),
        ),
    )
    assert read("Use `a` rather than `b`").rejected_object == "`b`"
    assert read("Only push when asked").modality is Modality.ONLY
    assert instruction_of("The server is written in Go.") is None


@pytest.mark.parametrize(
    "piece",
    ["before ", "never ", "in a ", "`a`, ", "and run ", "must not be ", "to `a` or ", "(a) "],
)
def test_a_long_line_is_read_in_under_a_second(piece):
    line = f"Run {piece * 10_000}"
    started = time.process_time()
    instruction_of(line)
    assert time.process_time() - started < 1
