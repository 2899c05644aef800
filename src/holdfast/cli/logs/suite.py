"""`holdfast suite`: drafts a suite from a rules file, and tests one on labelled turns."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel

from holdfast.cli.shared.command import Arg, Command, file_to_write, option_of
from holdfast.cli.shared.endpoint_options import check_endpoint_options
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.judge_loading import load_model_to_ask
from holdfast.cli.shared.notes import note, note_if_long
from holdfast.cli.shared.options import EndpointOptions
from holdfast.cli.shared.progress_bar import Bar
from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.plurals import count_of

if TYPE_CHECKING:
    from holdfast.drafting.drafted_files import DraftedFile

ACTIONS = ("init", "test")
# the options that only the other action has
_OTHER_ACTIONS = {
    "init": ("turns", "allow_code"),
    "test": ("out", "force", "model", *EndpointOptions.model_fields),
}


class DraftedDocument(BaseModel):
    """The draft of a rules file.

    Attributes:
        file: the rules file.
        rules: how many rules were drafted.
        proposed: how many of them a model proposed.
        no_rule: how many lines did not become a rule, by the reason.
    """

    file: Path
    rules: int
    proposed: int
    no_rule: dict[str, int]


class DraftedSuiteDocument(BaseModel):
    """A drafted suite.

    Attributes:
        out: its file; None if it was printed.
        suite: its text, in YAML.
        files: the rules files that it was drafted from.
    """

    out: Path | None
    suite: str
    files: list[DraftedDocument]


class SuiteArguments(EndpointOptions):
    action: Annotated[str, Arg("ACTION", positional=True, choices=ACTIONS)]
    """init: draft a suite from rules files; test: score a suite's labelled turns"""
    files: Annotated[list[str], Arg("FILE", positional=True, nargs="+", action="store")]
    """init: AGENTS.md, CLAUDE.md, .cursorrules or a prompt; test: one suite"""
    out: Annotated[Path | None, Arg("FILE.yaml", type=file_to_write)] = None
    """init: write the suite here (default: print it)"""
    force: bool = False
    """init: overwrite the file of --out"""
    model: Annotated[str | None, Arg("MODEL|URL")] = None
    """init: let this model propose rules for the lines that cannot be decided without a model"""
    turns: Annotated[Path | None, Arg("FILE.jsonl")] = None
    """test: more labelled turns, one JSON object per line"""
    allow_code: bool = False
    """test: allow the suite to use Python functions as measures"""


def run(arguments: SuiteArguments) -> int:
    for name in _OTHER_ACTIONS[arguments.action]:
        if not arguments.is_default(name):
            raise UsageError(
                f"{option_of(name)} has no effect in `holdfast suite {arguments.action}`; leave it"
                " out."
            )
    return _init(arguments) if arguments.action == "init" else _test(arguments)


# --- init


def _init(arguments: SuiteArguments) -> int:
    from holdfast.drafting.drafted_files import draft_lines, with_rules
    from holdfast.drafting.probing import with_probes
    from holdfast.drafting.suite_text import suite_text

    out = arguments.out
    if out is not None and out.exists() and not arguments.force:
        raise UsageError(f"{out} exists; choose another file, or overwrite it with --force.")
    check_endpoint_options(arguments)
    for name in arguments.files:
        note_if_long(Path(name))
    drafted = [draft_lines(file) for file in arguments.files]
    if arguments.model is not None:
        drafted = _with_proposals(drafted, arguments.model, arguments)
    text = suite_text([with_probes(with_rules(file)) for file in drafted])
    if out is None:
        print(text, end="")
    else:
        write_whole(out, text, "another file with --out")
    for file in drafted:
        note(_draft_line(file, has_model=arguments.model is not None))
    if out is not None:
        note(_next_step(out, drafted))
    elif sys.stdout.isatty():
        note("nothing was written; add --out rules.yaml to write the suite to a file.")
    files = list(map(_draft_document, drafted))
    write_document(DraftedSuiteDocument(out=out, suite=text, files=files))
    return 0


def _with_proposals(
    drafted: "list[DraftedFile]", name: str, arguments: SuiteArguments
) -> "list[DraftedFile]":
    """Adds the rules that the model `name` proposes."""
    from holdfast.drafting.proposals import propose, undecided_lines
    from holdfast.models.model_names import is_url

    count = sum(len(undecided_lines(file)) for file in drafted)
    if not count:
        note(f"--model {name} is not asked: every line is decided without it.")
        return drafted
    model = load_model_to_ask(name, arguments)
    with Bar(count, "line", f"asking {model.name} for rules") as bar:
        return [
            propose(file, model, constrained=not is_url(name), progress=bar) for file in drafted
        ]


def _draft_line(file: "DraftedFile", *, has_model: bool) -> str:
    """Says how many rules a file gave, and why its other lines gave none."""
    line = f"{file.path}: {count_of(len(file.rules), 'rule')}"
    if has_model:
        line = f"{line} ({_count_proposed(file)} proposed by the model)"
    if file.reasons:
        # the draft itself has the advice that follows a semicolon
        reasons = ((reason.partition(";")[0], number) for reason, number in file.reasons.items())
        others = ", ".join(f"{reason} ({number})" for reason, number in reasons)
        line = f"{line}; lines without a rule: {others}"
    return f"{line}."


def _next_step(out: Path, drafted: "Sequence[DraftedFile]") -> str:
    """Says to read the draft, and which command measures its rules."""
    is_of_bots = all(file.of_bot for file in drafted)
    command = "drift --model MODEL" if is_of_bots else "logs SESSIONS"
    suite = shlex.quote(str(out))
    return f"read the rules in {out}, then: holdfast {command} --suite {suite}"


def _draft_document(file: "DraftedFile") -> DraftedDocument:
    return DraftedDocument(
        file=file.path,
        rules=len(file.rules),
        proposed=_count_proposed(file),
        no_rule=dict(file.reasons),
    )


def _count_proposed(file: "DraftedFile") -> int:
    """The number of rules that a model proposed."""
    return sum(bool(rule.draft.proposed_by) for rule in file.rules)


# --- test


def _test(arguments: SuiteArguments) -> int:
    """Scores a suite's labelled turns; returns 1 if a score disagrees with a label."""
    from holdfast.analysis.measure_tests import read_labelled_turns, run_measure_tests
    from holdfast.drift import load_suite
    from holdfast.report.measure_tests_table import measure_tests_table

    if len(arguments.files) > 1:
        raise UsageError(
            f"`holdfast suite test` takes one suite, not {len(arguments.files)}; test each by"
            " itself."
        )
    spec = arguments.files[0]
    suite = load_suite(spec, allow_code=arguments.allow_code, probed=False, check=False)
    more = read_labelled_turns(arguments.turns, suite) if arguments.turns else None
    tests = run_measure_tests(suite, more)
    if not any(test.turns for test in tests):
        raise UsageError(
            f"{spec} has no labelled turns; give its rules `follows` and `breaks`, or a file of"
            " turns with --turns."
        )
    print(measure_tests_table(tests))
    write_document([test.to_json() for test in tests])
    return 1 if any(test.disagreements for test in tests) else 0


COMMAND = Command(
    "suite",
    run,
    SuiteArguments,
    description=(
        "`init` drafts a suite from AGENTS.md, CLAUDE.md, .cursorrules, .mdc or a prompt: each line"
        " that a measure can check becomes a rule, and every other line a comment with the reason."
        " `test` scores the replies and turns under `follows` and `breaks`, and says how often each"
        " measure agrees with these labels. No model is needed. With --model, `init` asks a model"
        " for measures of the other lines, and for replies that follow or break them as examples;"
        " it keeps the measures that tell these examples apart."
    ),
    examples=(
        "examples:\n  holdfast suite init AGENTS.md --out rules.yaml\n  holdfast suite init"
        " prompt.md --model qwen-1.5b --out rules.yaml\n  holdfast suite test"
        " rules.yaml\n  holdfast suite test rules.yaml --turns labelled.jsonl --json\n\n"
        "Exit codes:\n  0  the suite is drafted, or every labelled turn is scored as labelled\n"
        "  1  a labelled turn is not scored as labelled\n"
        "  2  the command is malformed, names what does not exist, or no line is a rule"
    ),
)
