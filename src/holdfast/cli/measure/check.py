"""`holdfast check`: a test for system prompts, for CI; its help says what its exit codes mean."""

import dataclasses
import math
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from holdfast import drift, methods
from holdfast.analysis import sequential
from holdfast.analysis.check_verdicts import MAX_CONVERSATIONS_FORECAST, budget_needed, closest_mean
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.cli.measure.drift import settings_of
from holdfast.cli.shared import options
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.dry_run import estimate_run
from holdfast.cli.shared.estimates import check_prices
from holdfast.cli.shared.exit_codes import COULD_NOT, FAILED, PASSED, UNAVAILABLE, UNDECIDED
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.judge_loading import make_judging
from holdfast.cli.shared.model_loading import (
    load_both,
    load_model,
    warn_of_default_steering,
    warn_of_small_model,
)
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import Arg, Command, file_to_write, option_of
from holdfast.cli.shared.output import (
    command_line,
    command_with,
    page_path,
    print_replies,
    write_run_page,
)
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.cli.shared.user_messages import (
    load_user_turns,
    note_usual_user_turns,
    with_user_prompt,
)
from holdfast.drift import Settings, Suite
from holdfast.drift.benchmark import check_before_loading
from holdfast.drift.remaining import count_replies
from holdfast.drift.user_scripts import UserTurns
from holdfast.errors import UsageError
from holdfast.files import short_path
from holdfast.methods import Method
from holdfast.models.model_names import is_served, is_url
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of, duration
from holdfast.records import Run, read_run
from holdfast.records.check_records import Check, PromptCheck, Terms
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.check_details import verdict_lines
from holdfast.report.check_junit import write_junit
from holdfast.report.check_sentences import count_verdicts
from holdfast.report.context_section import truncation_lines
from holdfast.report.fixes_to_try import fixes_to_compare
from holdfast.study.calibration_plan import CalibrationPlan
from holdfast.study.checking import (
    CheckOptions,
    Earlier,
    check,
    check_settings,
    earlier_conversations,
)

# options of the model and its sampling, which a calibration of the same prompts takes over
_SHARED = (
    "model",
    "endpoint_model",
    "api_key_env",
    "chat_template",
    "device",
    "device_map",
    "dtype",
    "trust_remote_code",
    "rounds",
    "user_turns",
    "system_as",
    "temperature",
    "top_p",
    "max_new_tokens",
)

_SMOKE = {"rounds": 3, "budget": 8, "max_new_tokens": 100}  # options of a smoke test
SMOKE_SECONDS = 60.0  # how long its conversations may take, once the model is loaded

EXAMPLES = """examples:
  holdfast check prompts.yaml --model http://localhost:8000/v1 --rounds 8 --min-stability 0.9
  holdfast check prompts.yaml --budget 100 --error 0.1 --junit checks.xml --out runs/check
  holdfast check prompts.yaml --against runs/main --out runs/branch
  holdfast check prompts.yaml --smoke --model qwen-0.5b

Exit codes:
  0  every prompt passes
  1  a prompt fails
  2  the command is malformed, or names what does not exist
  3  no prompt fails, but one is undecided when the budget is spent
  4  the check could not be done (no answer that can be judged, a damaged run)
  5  no prompt fails, but the model's server was not available
With --smoke, 0 says that no prompt clearly fails.
`holdfast docs checking` says what a verdict means. Repeating a command resumes it."""


class CheckArguments(
    options.MethodOptions, options.BenchmarkOptions, options.RunOptions, options.ReportOptions
):
    suite: Annotated[str, Arg("SUITE", positional=True)]
    """FILE.yaml, or any suite that `holdfast drift` accepts"""
    min_stability: Annotated[float | None, Arg("SHARE")] = None
    """the mean score that every rule must reach in every round (default: 0.9; with --against:
    none)"""
    error: Annotated[float, Arg("SHARE")] = 0.05
    """the highest acceptable probability that any verdict is wrong"""
    budget: int = 200
    """the most conversations per prompt"""
    all_rules: bool = False
    """decide every rule, even those of a prompt that has already failed"""
    smoke: bool = False
    """look only for clear failures, for about a minute: 3 rounds, at most 8 conversations per
    prompt and 100 tokens per reply, unless you give other numbers"""
    junit: Annotated[Path | None, Arg("FILE", type=file_to_write)] = None
    """also write the verdicts as JUnit XML"""
    against: Annotated[Path | None, Arg("RUN")] = None
    """fail if a rule is kept less often than in the run in this folder"""


@dataclasses.dataclass(frozen=True)
class _Plan:
    """A check as its options describe it, before a local model is loaded.

    Attributes:
        endpoint: the model, if it is behind a URL.
        settings: those of all conversations that the check may need.
        earlier: the conversations of --against, by prompt.
        out: the folder of the run.
    """

    endpoint: ChatModel | None
    suite: Suite
    settings: Settings
    terms: Terms
    method: Sequence[Method]
    user_turns: UserTurns | None
    earlier: Earlier | None
    out: Path


def run(arguments: CheckArguments) -> int:
    check_prices(arguments)
    began = time.monotonic()
    typed = arguments
    if arguments.smoke:
        arguments = _as_smoke(typed)
    plan = _plan_of(arguments)
    model, user_model = load_both(arguments, plan.endpoint)
    note_usual_user_turns(arguments, plan.user_turns)
    warn_of_default_steering(model, [plan.method])
    typed.keep_work_in(plan.out)  # `main` asks the arguments that it read
    judging = make_judging(force=arguments.force_judge)
    cast = drift.Cast(user_model, judging=judging, user_turns=plan.user_turns)
    run = DriftRun(model, plan.suite, plan.out, plan.settings, [plan.method], cast)
    if arguments.dry_run:
        estimate_run(arguments, run)
        return PASSED
    results = results_of(_converse(run, plan.terms, plan.earlier))
    verdicts = results.check
    assert verdicts is not None  # `check` has just written them
    if plan.endpoint is not None:  # so that the next step's command names the model
        arguments = arguments.model_copy(update={"endpoint_model": plan.endpoint.name})
    _print_result(arguments, results, verdicts, time.monotonic() - began)
    return exit_code_of(verdicts.prompts, verdicts.terms)


def _plan_of(arguments: CheckArguments) -> _Plan:
    """Reads the options, and refuses what can be refused before a local model is loaded."""
    terms = _terms_of(arguments)
    # `check_settings` replaces the number of conversations
    settings = settings_of(arguments, conversations=1, pairs="in-turn", adoption=False)
    method = methods.parse(arguments.method)
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    suite = drift.load_suite(arguments.suite, allow_code=arguments.allow_code)
    warn_of_small_model(arguments.model, arguments.suite)
    model_name = model_of(arguments, None if endpoint is None else endpoint.name)
    kind = "smoke" if arguments.smoke else "check"
    out = arguments.out or run_folder(kind, model_name, arguments.suite, seed=arguments.seed)
    page_path(arguments, out)  # refused before anything runs
    user_turns = load_user_turns(arguments, suite)
    if user_turns is None:
        suite, settings = with_user_prompt(suite, settings, arguments.persona)
    earlier = None
    if arguments.against is not None:
        earlier = _earlier_conversations(arguments.against, suite, method)
        _note_other_options(arguments.against, settings, user_turns)
        if terms.min_stability is None:  # only as many conversations as can be compared
            most = max(map(len, earlier.values()))
            terms = dataclasses.replace(terms, budget=min(terms.budget, most))
    settings = check_settings(suite, settings, terms)
    check_before_loading(suite, out, settings, [method], user_turns, command_line())
    return _Plan(endpoint, suite, settings, terms, method, user_turns, earlier, out)


def _terms_of(arguments: CheckArguments) -> Terms:
    """The terms of the check; with --against alone, there is no bar."""
    min_stability = arguments.min_stability
    if min_stability is None and arguments.against is None:
        min_stability = Terms().min_stability
    return Terms(
        min_stability, arguments.error, arguments.budget, arguments.all_rules, arguments.smoke
    )


def _earlier_conversations(folder: Path, suite: Suite, method: Sequence[Method]) -> Earlier:
    """Reads the conversations of --against; notes the prompts that have none there."""
    earlier = earlier_conversations(folder, suite, methods.spec_of(method))
    if new := [case.id for case in suite.cases if case.id not in earlier]:
        note(
            f"{folder} has no conversation of {', '.join(new)}, so there is nothing to compare it"
            " with."
        )
    return earlier


def _note_other_options(folder: Path, settings: Settings, user_turns: UserTurns | None) -> None:
    """Notes the options in which the conversations of --against differ from those of this check."""
    earlier = read_run(folder).identity_as(ConversationsIdentity)
    there = earlier.settings.sampling
    here = settings.sampling
    turns_there = earlier.user_turns.name if earlier.user_turns else "none"
    turns_here = user_turns.name if user_turns else "none"
    values = {
        "--temperature": (there.temperature, here.temperature),
        "--top-p": (there.top_p, here.top_p),
        "--max-new-tokens": (there.max_new_tokens, here.max_new_tokens),
        "--user-turns": (turns_there, turns_here),
    }
    differences = [
        f"{name} {value_there} there, {value_here} here"
        for name, (value_there, value_here) in values.items()
        if value_there != value_here
    ]
    if differences:
        note(
            f"the conversations in {folder} were held with other options"
            f" ({'; '.join(differences)}), so a difference may be due to that; give the options of"
            " that run."
        )


def _as_smoke(arguments: CheckArguments) -> CheckArguments:
    """The arguments, with the values of a smoke test for options that are not given."""
    if arguments.all_rules:
        raise UsageError("--smoke looks for the first clear failure; leave out --all-rules.")
    smoke = {name: value for name, value in _SMOKE.items() if arguments.is_default(name)}
    return arguments.model_copy(update=smoke)


def _converse(run: DriftRun, terms: Terms, earlier: Earlier | None) -> Run:
    """Runs conversations, with a progress bar, until every prompt has a verdict."""
    count = len(run.suite.cases)
    title = (
        f"{count_of(count, 'prompt')}, at most {count_of(terms.budget, 'conversation')} of"
        f" {count_of(run.settings.rounds, 'round')} each"
    )
    # the prompts take turns, and all conversations of a prompt have the same number of replies
    per_turn = count_replies(run.suite, run.settings, run.cast.read(), range(count))
    with Bar(terms.budget * per_turn, title=title) as bar:
        running = drift.Running(progress=bar, command=command_line())

        def note_look(done: int, checks: Sequence[PromptCheck]) -> None:
            if done:
                conversations = count_of(done, "conversation")
                bar.note(f"{conversations} per prompt: {count_verdicts(checks)}")

        seconds = SMOKE_SECONDS if terms.smoke else None
        how = CheckOptions(run.methods[0], earlier, run.cast, running, seconds, note_look)
        return check(run.model, run.suite, run.out, run.settings, terms, how).run


def _print_result(
    arguments: CheckArguments, results: DriftResults, verdicts: Check, seconds: float
) -> None:
    """Prints the verdicts and the next step, and writes the files."""
    data = results.run
    page = page_path(arguments, results.run.folder)
    lines = verdict_lines(verdicts.prompts, verdicts.terms)
    print("\n".join([*lines, *truncation_lines(results.series)]))
    print_replies(data)
    if arguments.junit is not None:
        suite = data.identity_as(ConversationsIdentity).suite or ""
        path = write_junit(verdicts, suite, arguments.junit, seconds)
        print(f"JUnit: {short_path(path)}")
    write_run_page(arguments, results, page)
    step = _next_step(arguments, verdicts.prompts, verdicts.terms, data, page)
    print(f"Next: {step}")
    junit = [] if arguments.junit is None else [arguments.junit]
    write_run_document(data.folder, page, junit, step)


def _next_step(
    arguments: CheckArguments, checks: Sequence[PromptCheck], terms: Terms, data: Run, page: Path
) -> str:
    """The user's next step, to be printed after "Next: "."""
    code = exit_code_of(checks, terms)
    if code == UNAVAILABLE:
        # into another folder, as this one keeps the conversations that the outage ended
        again = command_with(out=f"{data.folder}-again")
        return f"make sure that the server answers, and check again: {again}"
    if terms.smoke and code != FAILED:
        return "for a verdict, run the command without --smoke, for example every night."
    if code == PASSED:
        out = data.folder
        changes = {"against": str(out), "out": f"{out}-next"}
        if (path := arguments.junit) is not None:
            changes["junit"] = str(path.with_stem(f"{path.stem}-next"))
        later = command_with(**changes)
        return f"to compare a later version of the prompt with this one:\n{later}"
    if code == FAILED:
        return _step_after_failure(arguments, checks, terms, data, page)
    return _step_to_decide(_undecided(checks), terms, data, page)


def _step_after_failure(
    arguments: CheckArguments, checks: Sequence[PromptCheck], terms: Terms, data: Run, page: Path
) -> str:
    """Where to look for a fix, if none was tried yet."""
    failed = [prompt_check for prompt_check in checks if prompt_check.first_failure is not None]
    if arguments.method != "none" or not failed:
        return f"read the conversations in which a rule was lost: {page}"
    fix = f"to find a fix and its cost:\n{_calibration(arguments, data)}"
    if any(prompt_check.low_from_start(terms) for prompt_check in failed):
        return f"reword rules that miss the bar even in round 1, or try another model; {fix}"
    return fix


def _step_to_decide(undecided: Sequence[PromptCheck], terms: Terms, data: Run, page: Path) -> str:
    """The steps that would decide the prompts that are undecided."""

    def command_with_budget(budget: int) -> str:
        """The command, after the longest time that its further conversations take."""
        recorded = data.conversations
        pace = sum(record.seconds for record in recorded) / max(1, len(recorded))
        seconds = pace * sum(budget - len(prompt_check.records) for prompt_check in undecided)
        time = f" (at most about {duration(seconds)})" if seconds > 0 else ""
        return f"{time}:\n{command_with(budget=budget)}"

    closest = closest_mean(undecided, terms)
    if closest is None:
        return f"see in the report why nothing could be decided: {page}"
    if (count := min(len(prompt_check.records) for prompt_check in undecided)) < MIN_SAMPLES:
        return (
            f"run more conversations; {count} are too few to say how many will settle it"
            f"{command_with_budget(50)}"
        )
    needed = budget_needed(undecided, terms)
    if needed is None:
        return (
            f"give a --min-stability further from {closest:.2f}, the mean of a round: if scores"
            " stay this close to it, even"
            f" {MAX_CONVERSATIONS_FORECAST:,} conversations will not decide."
        )
    budget = 10 * math.ceil(1.2 * needed / 10)  # the means may move a little towards the bar
    return (
        f"run about {budget:,} conversations per prompt, which should settle it; those so far are"
        f" kept{command_with_budget(budget)}"
    )


def _calibration(arguments: CheckArguments, data: Run) -> str:
    """The `holdfast calibrate` command that compares fixes on the same prompts and model."""
    words = ["holdfast", "calibrate", "--suite", arguments.suite]
    for name in _SHARED:
        if not arguments.is_default(name):
            value = getattr(arguments, name)
            words.append(option_of(name))
            if value is not True:
                words.append(str(value))
    if arguments.rounds + 1 < CalibrationPlan.ask_at:
        words += ["--ask-at", str(arguments.rounds + 1)]
    for sweep in fixes_to_compare(data.manifest, endpoint=is_served(arguments.model)):
        words += ["--sweep", sweep]
    return shlex.join([*words, "--out", "runs/calibrate"])


def exit_code_of(checks: Sequence[PromptCheck], terms: Terms) -> int:
    """The exit code of a check.

    A failure outweighs an outage, as it is certain in spite of it. In a smoke test, a prompt passes
    if it was scored and does not fail.
    """
    open_checks = _undecided(checks)
    if any(prompt_check.verdict == sequential.FAIL for prompt_check in checks):
        return FAILED
    if any(prompt_check.unavailable for prompt_check in open_checks):
        return UNAVAILABLE
    if terms.smoke:
        open_checks = [prompt_check for prompt_check in open_checks if prompt_check.lowest is None]
    return UNDECIDED if open_checks else PASSED


def _undecided(checks: Sequence[PromptCheck]) -> list[PromptCheck]:
    return [prompt_check for prompt_check in checks if prompt_check.verdict == sequential.UNDECIDED]


COMMAND = Command(
    "check",
    run,
    CheckArguments,
    description=(
        "Runs conversations under each system prompt of a suite until it is certain whether every"
        " rule is kept in every round, or the budget is spent."
    ),
    examples=EXAMPLES,
    failed=COULD_NOT,
    common=("suite", "model", "min_stability", "smoke", "against", "budget", "junit", "out"),
)
