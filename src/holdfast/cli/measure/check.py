"""`holdfast check`: a test for system prompts, for CI; its help says what its exit codes mean."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

from holdfast import drift, methods
from holdfast.analysis import sequential
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.cli.measure.check_arguments import CheckArguments
from holdfast.cli.measure.check_next_step import next_step
from holdfast.cli.measure.drift import settings_of
from holdfast.cli.shared.command import Command
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.dry_run import estimate_run
from holdfast.cli.shared.estimates import check_prices
from holdfast.cli.shared.exit_codes import COULD_NOT, FAILED, PASSED, UNAVAILABLE, UNDECIDED
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.judge_loading import make_judging
from holdfast.cli.shared.model_checks import (
    note_repeated_requests,
    warn_of_default_steering,
    warn_of_small_model,
)
from holdfast.cli.shared.model_loading import load_both, load_model
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.output import (
    command_line,
    page_path,
    print_reply_shortfalls,
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
from holdfast.drift.method_checks import check_with_rules
from holdfast.drift.remaining import count_replies
from holdfast.drift.user_scripts import UserTurns
from holdfast.files import short_path
from holdfast.methods import Method
from holdfast.models.model_names import is_url
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of
from holdfast.records import Run, read_run
from holdfast.records.check_records import Check, PromptCheck, Terms
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.check_details import verdict_lines
from holdfast.report.check_junit import write_junit
from holdfast.report.check_sentences import count_verdicts
from holdfast.report.context_section import truncation_lines
from holdfast.study.checking import (
    CheckOptions,
    EarlierRun,
    check,
    check_settings,
    earlier_conversations,
)

_SMOKE_SECONDS = 60.0  # how long the conversations of a smoke test may take, without loading

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
    earlier: EarlierRun | None
    out: Path


def run(arguments: CheckArguments) -> int:
    check_prices(arguments)
    began = time.monotonic()
    typed = arguments
    if typed.smoke:
        arguments = typed.as_smoke_test()
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
    note_repeated_requests(model)
    verdicts = results.check
    assert verdicts is not None  # `check` has just written them
    if plan.endpoint is not None:  # so that the next step's command names the model
        arguments = arguments.model_copy(update={"endpoint_model": plan.endpoint.name})
    return _print_result(arguments, results, verdicts, time.monotonic() - began)


def _plan_of(arguments: CheckArguments) -> _Plan:
    """Reads the options, and refuses what can be refused before a local model is loaded."""
    terms = arguments.terms()
    # `check_settings` replaces the number of conversations
    settings = settings_of(arguments, conversations=1, pairs="in-turn", adoption=False)
    method = methods.parse(arguments.method)
    suite = drift.load_suite(arguments.suite, allow_code=arguments.allow_code)
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
    check_with_rules(method, suite.cases, settings)
    # the folder is named after the model that an endpoint reports
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    warn_of_small_model(arguments.model, arguments.suite)
    model_name = model_of(arguments, None if endpoint is None else endpoint.name)
    kind = "smoke" if arguments.smoke else "check"
    out = arguments.out or run_folder(kind, model_name, arguments.suite, seed=arguments.seed)
    page_path(arguments, out)  # refused before anything runs
    cast = drift.Cast(user_turns=user_turns)
    check_before_loading(suite, out, settings, [method], cast, command_line())
    return _Plan(endpoint, suite, settings, terms, method, user_turns, earlier, out)


def _earlier_conversations(folder: Path, suite: Suite, method: Sequence[Method]) -> EarlierRun:
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


def _converse(run: DriftRun, terms: Terms, earlier: EarlierRun | None) -> Run:
    """Runs conversations, with a progress bar, until every prompt has a verdict."""
    count = len(run.suite.cases)
    title = (
        f"{count_of(count, 'prompt')}, at most {count_of(terms.budget, 'conversation')} of"
        f" {count_of(run.settings.rounds, 'round')} each"
    )
    # the prompts take turns, and all conversations of a prompt have the same number of replies
    per_turn = count_replies(run.suite, run.settings, range(count), run.cast)
    with Bar(terms.budget * per_turn, title=title) as bar:
        running = drift.Running(progress=bar, command=command_line())

        def note_look(done: int, checks: Sequence[PromptCheck]) -> None:
            if done:
                conversations = count_of(done, "conversation")
                bar.note(f"{conversations} per prompt: {count_verdicts(checks)}")

        seconds = _SMOKE_SECONDS if terms.smoke else None
        check_options = CheckOptions(run.methods[0], earlier, run.cast, running, seconds, note_look)
        return check(run.model, run.suite, run.out, run.settings, terms, check_options).run


def _print_result(
    arguments: CheckArguments, results: DriftResults, verdicts: Check, seconds: float
) -> int:
    """Prints the verdicts and the next step, and writes the files; returns the exit code."""
    run = results.run
    page = page_path(arguments, run.folder)
    lines = verdict_lines(verdicts.prompts, verdicts.terms)
    print("\n".join([*lines, *truncation_lines(results.series)]))
    print_reply_shortfalls(run)
    files: list[Path] = []
    if arguments.junit is not None:
        suite = run.identity_as(ConversationsIdentity).suite or ""
        junit = write_junit(verdicts, suite, arguments.junit, seconds)
        print(f"JUnit: {short_path(junit)}")
        files.append(junit)
    write_run_page(arguments, results, page)
    code = exit_code_of(verdicts.prompts, verdicts.terms)
    step = next_step(arguments, code, verdicts, run, page)
    if not arguments.smoke:
        print(f"Next: {step}")
    write_run_document(run.folder, page, files, step)
    return code


def exit_code_of(checks: Sequence[PromptCheck], terms: Terms) -> int:
    """The exit code of a check.

    A failure outweighs an outage, as it is certain in spite of it. In a smoke test, a prompt passes
    if it was scored and does not fail.
    """
    if any(prompt_check.verdict == sequential.FAIL for prompt_check in checks):
        return FAILED
    undecided = [
        prompt_check for prompt_check in checks if prompt_check.verdict == sequential.UNDECIDED
    ]
    if any(prompt_check.unavailable for prompt_check in undecided):
        return UNAVAILABLE
    unscored = [prompt_check for prompt_check in undecided if prompt_check.lowest is None]
    return UNDECIDED if (unscored if terms.smoke else undecided) else PASSED


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
