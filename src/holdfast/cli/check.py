"""`holdfast check`: a test for system prompts, for CI.

Exit codes: 0 every prompt passes; 1 one fails; 2 the command is malformed; 3 none fails, and one is
undecided within the budget; 4 it could not be done; 130 and 143 as of every command.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.drift_folder import folder_name
from holdfast.cli.drift_options import (
    add_context,
    add_probes,
    add_running,
    add_user,
    settings_of,
)
from holdfast.cli.dry_run import DriftRun, add_dry_run, check_prices, estimate_conversations
from holdfast.cli.judging import add_judging, judging_of
from holdfast.cli.options import (
    add_draws,
    add_model,
    add_report,
    command_line,
    command_with,
    is_url,
    load_model,
    page_option,
    page_path,
    tell_small_model,
)
from holdfast.cli.progress import Bar
from holdfast.cli.user_model import add_user_model, load_both, load_user_turns, with_user_prompt
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.analysis.checks import PromptCheck, Terms
    from holdfast.records import RunData

PASSED, FAILED, UNDECIDED, COULD_NOT = 0, 1, 3, 4
_UNNAMED = (
    "min_stability",
    "error",
    "budget",
    "all_rules",
    "junit",
    "against",
    "baseline",
    "could_not",
)
_ASK_AT = 4  # of `holdfast calibrate`: the user turn that is the question
# options of the model and its draws, which a calibration of the same prompts takes over
_SHARED = (
    "model",
    "endpoint_model",
    "device",
    "dtype",
    "rounds",
    "system_as",
    "temperature",
    "top_p",
    "max_new_tokens",
)

EXAMPLES = """examples:
  holdfast check prompts.yaml --model http://localhost:8000/v1 --rounds 8 --min-stability 0.9
  holdfast check prompts.yaml --budget 100 --error 0.1 --junit checks.xml --out runs/check
  holdfast check prompts.yaml --against runs/main --out runs/branch

Exit codes: 0 every prompt passes; 1 one fails; 2 the command is malformed; 3 none fails and one is
undecided within the budget; 4 it could not be done (no model, no answer, a damaged run).
docs/checking.md says what a verdict means. Repeating a command resumes it."""


def add_parser(commands) -> None:
    check = commands.add_parser(
        "check",
        help="test whether system prompts hold, for CI",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Runs conversations under each system prompt of a suite until it is certain whether"
            " every rule is kept in every round, or the budget is spent."
        ),
    )
    add = check.option
    check.add_argument(
        "suite", metavar="SUITE", help="FILE.yaml, or what --suite of `holdfast drift` takes"
    )
    add_model(add)
    _add_terms(add)
    add("--allow-code", bool, "allow the suite to use Python functions as measures")
    add("--rounds", 8, "rounds per conversation")
    add("--method", "none", "how the agent is steered", metavar="SPEC")
    add_user(add)
    add_probes(add)
    add_draws(add)
    add_running(add, "check")
    add_user_model(add)
    add_context(add)
    add_judging(add)
    add_dry_run(add)
    add_report(add)
    check.set_defaults(
        run=run,
        default=check.get_default,
        could_not=COULD_NOT,
        conversations=1,
        no_adoption=True,
        pairs="in-turn",
    )


def _add_terms(add) -> None:
    """Adds the terms of the check, and where the verdicts go."""
    add(
        "--min-stability",
        float,
        "the mean score that every rule must reach in every round (default: 0.9; with"
        " --against: no bar)",
        metavar="SHARE",
    )
    add("--error", 0.05, "the highest probability that any verdict is wrong", metavar="SHARE")
    add("--budget", 200, "the most conversations of each prompt", metavar="N")
    add("--all-rules", bool, "decide every rule, also those of a prompt that has already failed")
    add("--junit", Path, "write the verdicts as JUnit XML too", metavar="FILE")
    add(
        "--against",
        Path,
        "fail where a rule is kept less than in the run in this folder",
        metavar="RUN",
    )
    add("--baseline", str, argparse.SUPPRESS, action=_NotHere)


class _NotHere(argparse.Action):
    """Refuses `--baseline`, an option of `holdfast drift`, and names `--against`."""

    def __call__(self, parser, namespace, values, option_string=None):
        raise UsageError(
            f"The earlier run {values} is given to `holdfast check` with --against; --baseline is"
            " an option of `holdfast drift`, which then also asks without the system prompt."
        )


def run(arguments: argparse.Namespace) -> int:
    from holdfast import drift, methods
    from holdfast.analysis.checks import Terms
    from holdfast.drift.benchmark import check_folder
    from holdfast.drift.pairing import settled
    from holdfast.report.wording import count_of
    from holdfast.study.checking import check, earlier_talks, settings_for

    check_prices(arguments)
    began = time.monotonic()
    bar = arguments.min_stability
    if bar is None and arguments.against is None:
        bar = Terms().min_stability
    terms = Terms(bar, arguments.error, arguments.budget, arguments.all_rules)
    settings = settings_of(arguments)
    method = methods.parse(arguments.method)
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    suite = drift.load_suite(arguments.suite, allow_code=arguments.allow_code)
    tell_small_model(arguments)
    out = arguments.out or Path("runs") / folder_name(arguments, suite, "check", _UNNAMED)
    page_path(arguments, out)  # refused before anything runs
    user_turns = load_user_turns(arguments)
    if user_turns is None:
        suite, settings = with_user_prompt(suite, settings, arguments.persona)
    settings = settled(suite, settings, user_turns)
    before = None
    if arguments.against is not None:
        before = earlier_talks(arguments.against, suite, methods.spell(method))
        _tell_new([case.id for case in suite.cases if case.id not in before], arguments.against)
        if bar is None:  # more than there is to compare with would be of no use
            terms = dataclasses.replace(
                terms, budget=min(terms.budget, max(map(len, before.values())))
            )
    every = settings_for(suite, settings, terms)
    check_folder(suite, out, every, [method], user_turns, command_line())
    model, user_model = load_both(arguments, endpoint)
    arguments.kept = out
    cast = drift.Cast(user_model, judging=judging_of(arguments), user_turns=user_turns)
    if arguments.dry_run:
        planned = DriftRun(model, suite, out, every, [method], cast, at_most=True)
        estimate_conversations(arguments, planned)
        return PASSED
    count = len(suite.cases)
    title = (
        f"{count_of(count, 'prompt')}, at most {count_of(terms.budget, 'conversation')} of"
        f" {count_of(settings.rounds, 'round')} each"
    )
    total = count * terms.budget * settings.rounds
    with Bar(total, title=title, rounds=settings.rounds) as bar:
        running = drift.Running(progress=bar, command=command_line())
        hold = functools.partial(drift.run, cast=cast, running=running)
        looked = functools.partial(_tell_look, bar)
        data, checks = check(
            model, suite, out, settings, terms, method, before=before, hold=hold, looked=looked
        )
    _print_result(arguments, data, checks, terms, time.monotonic() - began)
    return exit_code(checks)


def _print_result(
    arguments: argparse.Namespace,
    data: RunData,
    checks: Sequence[PromptCheck],
    terms: Terms,
    seconds: float,
) -> None:
    """Prints and writes the verdicts, and the next step."""
    from holdfast import report
    from holdfast.report.checks import lines_of
    from holdfast.report.junit import write_junit

    out, page = data.folder, page_path(arguments, data.folder)
    print("\n".join(lines_of(checks, terms)))
    if arguments.junit is not None:
        suite = data.manifest["identity"]["suite"]
        path = write_junit(checks, terms, suite, arguments.junit, seconds)
        print(f"JUnit: {path.resolve()}")
    if data.records:
        report.write_summary(out)
        print(f"Report: {report.write([out], page, page_option(arguments)).resolve()}")
    print(f"Next: {_next_step(arguments, checks, terms, out, page)}")


def _next_step(
    arguments: argparse.Namespace,
    checks: Sequence[PromptCheck],
    terms: Terms,
    out: Path,
    page: Path,
) -> str:
    """The command or the change that the verdicts call for."""
    from holdfast.analysis.checks import (
        MOST_NEEDED,
        UNDECIDED,
        budget_needed,
        closest_mean,
    )

    code = exit_code(checks)
    if code == PASSED:
        later = shlex.join(["holdfast", "check", arguments.suite, "--against", str(out)])
        return f"to compare a later version of the prompt with this one: {later}"
    if code == FAILED:
        lost = [checked for checked in checks if checked.let_go is not None]
        if arguments.method == "none" and lost:
            fix = f"to find a fix and its cost: {_calibration(arguments)}"
            if any(checked.low_from_start(terms) for checked in lost):
                return f"reword what is below the bar from round 1 on, or try another model; {fix}"
            return fix
        return f"read the conversations in which a rule was lost: {page}"
    undecided = [checked for checked in checks if checked.verdict == UNDECIDED]
    if (closest := closest_mean(undecided, terms)) is None:
        return f"see in the report why nothing could be decided: {page}"
    if (needed := budget_needed(undecided, terms)) is None:
        return (
            f"give a --min-stability further from {closest:.2f}, the mean of a round: so close to"
            f" it, {MOST_NEEDED:,} conversations would not decide."
        )
    budget = 10 * math.ceil(1.2 * needed / 10)  # the means may move a little towards the bar
    return (
        f"about {budget:,} conversations per prompt should settle it; those so far are kept:"
        f" {command_with(budget=budget)}"
    )


def _calibration(arguments: argparse.Namespace) -> str:
    """The command that calibrates a fix for the same prompts, drawn as here."""
    words = ["holdfast", "calibrate", "--suite", arguments.suite]
    for name in _SHARED:
        if (value := getattr(arguments, name)) != arguments.default(name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    if arguments.rounds + 1 < _ASK_AT:
        words += ["--ask-at", str(arguments.rounds + 1)]
    sweeps = ["repetition:probability=0.5,1"]
    if not is_url(arguments.model):
        sweeps.insert(0, "boost:factor=2,4")
    for sweep in sweeps:
        words += ["--sweep", sweep]
    return shlex.join([*words, "--out", "runs/calibrate"])


def exit_code(checks: Sequence[PromptCheck]) -> int:
    """The exit code of the verdicts together."""
    from holdfast.analysis import checks as analysis

    verdicts = {checked.verdict for checked in checks}
    if analysis.FAIL in verdicts:
        return FAILED
    return UNDECIDED if analysis.UNDECIDED in verdicts else PASSED


def _tell_look(bar: Bar, done: int, checks: Sequence[PromptCheck]) -> None:
    """Prints the verdicts so far, on a line of its own."""
    from holdfast.report.checks import counted
    from holdfast.report.wording import count_of

    if done:
        conversations = count_of(done, "conversation")
        bar.bar.write(f"holdfast: {conversations} per prompt: {counted(checks)}", file=sys.stderr)


def _tell_new(prompts: Sequence[str], earlier: Path) -> None:
    if prompts:
        print(
            f"holdfast: {earlier} has no conversation of {', '.join(prompts)}, so there is"
            " nothing to compare it with.",
            file=sys.stderr,
        )
