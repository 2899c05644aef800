"""`holdfast try`: a first run of about two minutes, from a bot's prompt to a table and a page.

It chooses the options of a `holdfast drift` command to suit the model, holds as many of its
conversations as there is time for, and prints that command, which continues the run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from holdfast import drift
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.summary import summary_of, write
from holdfast.cli.measure.drift import DriftArguments, drift_settings
from holdfast.cli.measure.pilot import MIN_CONVERSATIONS, Pilot, RunPlan, time_replies
from holdfast.cli.measure.prompt_suite import FirstSuite, draft_rules, print_draft, write_suite
from holdfast.cli.measure.time_box import OVERTIME
from holdfast.cli.measure.timed_run import TimedRun
from holdfast.cli.shared import options
from holdfast.cli.shared.browser import has_display, open_in_browser
from holdfast.cli.shared.command import Arg, Command, RunFolder
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_checks import note_repeated_requests, warn_of_small_model
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.output import command_of, print_shortfalls
from holdfast.cli.shared.run_names import FOLDER, model_of, run_folder
from holdfast.cli.shared.user_messages import load_user_turns
from holdfast.drafting.drafted_files import DraftedFile
from holdfast.drift import Settings
from holdfast.errors import UsageError
from holdfast.files import short_path
from holdfast.generation.sampling import Sampling
from holdfast.models.model_names import is_url
from holdfast.models.protocol import ChatModel
from holdfast.plurals import duration
from holdfast.records import MANIFEST, read_run
from holdfast.records.identity import ConversationsIdentity
from holdfast.report import write_page
from holdfast.report.first_run_table import first_table
from holdfast.report.next_step import next_step

# as many as `holdfast drift` holds by default, and as there are bundled user scripts
MAX_CONVERSATIONS = options.CONVERSATIONS
# the default model talks with itself, and so fast that there is time for a clear result
MAX_CONVERSATIONS_ON_DEFAULT_MODEL = 2 * MAX_CONVERSATIONS
DEMO = "luna"  # the suite of real models without --prompt
_PILOT_SHARE = 1 / 6  # the share of the time that goes into timing the model
_RESULTS_SHARE = 1 / 12  # the share that is kept for computing the results and writing the page
_MIN_SHARE = 1 / 3  # the share that conversations get, however long the model took to load


class TryArguments(options.ModelOptions, options.SeedOptions):
    prompt: Annotated[Path | None, Arg("FILE")] = None
    """a file with your bot's system prompt; its rules are drafted from it (default: the suite
    starter for the default model, and the demo bot Luna for others)"""
    minutes: Annotated[float, Arg("MINUTES")] = 2.0
    """about how long to run"""
    max_new_tokens: int = Sampling.max_new_tokens
    """the most tokens of a reply"""
    no_open: bool = False
    """do not open the page in a browser"""
    out: Annotated[Path | None, Arg(action=RunFolder)] = None
    """the folder of the run, to which repeating the command adds (default:
    runs/try-MODEL-PROMPT-SEED)"""


def run(arguments: TryArguments) -> None:
    _check_numbers(arguments)
    began = time.monotonic()
    drafted = None if arguments.prompt is None else draft_rules(arguments.prompt)
    # connected before the rules are shown, as a wrong address makes them pointless
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    first_suite = _suite_of(arguments, drafted)
    timed_run = _timed_run(arguments, first_suite, endpoint, began)
    timed_run.converse()
    note_repeated_requests(timed_run.run.model)
    suite_files = [] if drafted is None else [Path(first_suite.spec)]
    page = _report(timed_run.run.out, suite_files)
    if not arguments.no_open and has_display():
        open_in_browser(page)


def _check_numbers(arguments: TryArguments) -> None:
    """Refuses numbers outside their ranges, before a file is written or a model loaded."""
    if not 0 < arguments.minutes < float("inf"):
        raise UsageError(
            f"--minutes takes a time above 0, not {arguments.minutes:g}.",
            option="minutes",
            value=arguments.minutes,
        )
    Settings(seed=arguments.seed, sampling=Sampling(max_new_tokens=arguments.max_new_tokens))


def _suite_of(arguments: TryArguments, drafted: DraftedFile | None) -> FirstSuite:
    """Shows and writes the drafted suite; without one, chooses the suite that suits the model."""
    if drafted is not None:
        print_draft(drafted)
        return write_suite(drafted, arguments.out.parent if arguments.out else FOLDER)
    name = "starter" if arguments.model == "default" else DEMO
    return FirstSuite(name, name)


def _timed_run(
    arguments: TryArguments, first_suite: FirstSuite, endpoint: ChatModel | None, began: float
) -> TimedRun:
    """Loads the model, times it, and plans the conversations that fit into the rest of the time.

    Args:
        endpoint: the model, if it is behind a URL.
        began: when the command began, on the clock of `time.monotonic`.
    """
    time_limit = 60 * arguments.minutes
    model_name = model_of(arguments, None if endpoint is None else endpoint.name)
    out = arguments.out or run_folder("try", model_name, first_suite.name, seed=arguments.seed)
    drift_arguments = _drift_arguments(arguments, first_suite.spec, out)
    arguments.keep_work_in(out)
    suite = drift.load_suite(first_suite.spec)
    warn_of_small_model(arguments.model, first_suite.spec)
    user_turns = load_user_turns(drift_arguments, suite)
    model = endpoint or load_model(drift_arguments)
    settings = drift_settings(drift_arguments)
    pilot = time_replies(model, suite, settings, user_turns, _PILOT_SHARE * time_limit)
    seconds = _seconds_to_converse(time_limit, time.monotonic() - began)
    plan = _choose_plan(arguments, out, pilot, seconds)
    drift_arguments = drift_arguments.model_copy(
        update={"rounds": plan.rounds, "max_new_tokens": plan.max_new_tokens}
    )
    settings = drift_settings(drift_arguments)
    cast = drift.Cast(user_turns=user_turns)
    command = command_of("drift", drift_arguments)
    drift_run = DriftRun(model, suite, out, settings, [()], cast, command)
    return TimedRun(drift_run, arguments.model, plan, pilot, seconds, arguments.minutes)


def _drift_arguments(arguments: TryArguments, suite: str, out: Path) -> DriftArguments:
    """The arguments of the `holdfast drift` command whose conversations are held.

    The user's messages are scripted, as a real model that talks with itself soon repeats itself.
    The default model was trained to talk with itself.
    """
    user_turns: str | None = "everyday"
    conversations = MAX_CONVERSATIONS
    if arguments.model == "default" and arguments.prompt is None:
        user_turns = None
        conversations = MAX_CONVERSATIONS_ON_DEFAULT_MODEL
    names = (*options.ModelOptions.model_fields, *options.SeedOptions.model_fields)
    return DriftArguments(
        **{name: getattr(arguments, name) for name in names},
        suite=suite,
        user_turns=user_turns,
        conversations=conversations,
        out=out,
    )


def _seconds_to_converse(time_limit: float, spent: float) -> float:
    """How long the conversations may take, if they also have the overtime of a `TimeBox`.

    Args:
        spent: the seconds that loading and timing the model took, which count towards the limit.
    """
    left = (1 - _RESULTS_SHARE) * time_limit - spent
    min_seconds = _MIN_SHARE * time_limit
    if left < min_seconds:
        note(
            f"loading and timing the model took {duration(spent)}; the conversations get"
            f" {duration(min_seconds)} nevertheless."
        )
    return max(left, min_seconds) / (1 + OVERTIME)


def _choose_plan(arguments: TryArguments, out: Path, pilot: Pilot, seconds: float) -> RunPlan:
    """Plans the conversations: like those recorded in the folder, else as time allows."""
    if (out / MANIFEST).is_file():
        recorded = read_run(out).identity_as(ConversationsIdentity).settings
        tokens = recorded.sampling.max_new_tokens or arguments.max_new_tokens
        return RunPlan(recorded.rounds or Settings.rounds, tokens, MIN_CONVERSATIONS)
    may_shorten = arguments.is_default("max_new_tokens")
    return pilot.plan(seconds, arguments.max_new_tokens, may_shorten=may_shorten)


def _report(out: Path, suite_files: list[Path]) -> Path:
    """Prints how well the rules were kept and what to do next, and writes the page."""
    results = results_of(read_run(out))
    write(out, summary_of(results))
    print(first_table(results))
    print_shortfalls(results.run)
    page = write_page([results], out / "report.html", "--out").resolve()
    print(f"Page: {short_path(page)}\n")
    step = next_step(results)
    print(step)
    write_run_document(out, page, suite_files, step)
    return page


COMMAND = Command(
    "try",
    run,
    TryArguments,
    description=(
        "Drafts rules from your bot's prompt, runs conversations with the model for two minutes,"
        " prints how well each rule is kept in the first and the last round, and opens the page."
        " Repeating the command continues for two more minutes."
    ),
    examples=(
        "examples:\n"
        "  holdfast try                                  the default model\n"
        "  holdfast try --model smollm2                  a demo bot on a real model\n"
        "  holdfast try --model Qwen/Qwen2.5-0.5B-Instruct --prompt bot.txt\n"
        "  holdfast try --model http://localhost:8000/v1 --prompt bot.txt --minutes 5"
    ),
    common=("model", "prompt", "minutes", "endpoint_model", "out", "no_open"),
)
