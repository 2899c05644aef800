"""The step that `holdfast check` suggests after its verdicts, printed after "Next: ".

For example, after a failure:

    Next: to find a fix and its cost:
    holdfast calibrate --suite bot.yaml --model qwen-0.5b --sweep [...] --out runs/calibrate
"""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path

from holdfast.analysis import sequential
from holdfast.analysis.check_verdicts import MAX_CONVERSATIONS_FORECAST, budget_needed, closest_mean
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.cli.measure.check_arguments import CheckArguments
from holdfast.cli.shared.exit_codes import FAILED, PASSED, UNAVAILABLE
from holdfast.cli.shared.output import command_with
from holdfast.models.model_names import is_served
from holdfast.plurals import duration
from holdfast.records import Run
from holdfast.records.check_records import Check, PromptCheck
from holdfast.report.fixes_to_try import fixes_to_compare
from holdfast.study.calibration_plan import CalibrationPlan

_FIRST_BUDGET = 50  # conversations to suggest if there are too few for a forecast
_BUDGET_MARGIN = 1.2  # over the forecast, as the means may move a little towards the bar
# options of the model and its sampling, which a calibration of the same prompts takes over
_SHARED_WITH_CALIBRATE = (
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


def next_step(
    arguments: CheckArguments, exit_code: int, verdicts: Check, run: Run, page: Path
) -> str:
    """The user's next step after a check that ends with this exit code."""
    if exit_code == UNAVAILABLE:
        # into another folder, as this one keeps the conversations that the outage ended
        again = command_with(out=f"{run.folder}-again")
        return f"make sure that the server answers, and check again: {again}"
    if verdicts.terms.smoke and exit_code != FAILED:
        return "for a verdict, run the command without --smoke, for example every night."
    if exit_code == FAILED:
        return _after_failure(arguments, verdicts, run, page)
    if exit_code == PASSED:
        return _after_pass(arguments, run)
    return _to_decide(verdicts, run, page)


def _after_pass(arguments: CheckArguments, run: Run) -> str:
    """The command that compares a later version of the prompts with this run."""
    changes = {"against": str(run.folder), "out": f"{run.folder}-next"}
    if (junit := arguments.junit) is not None:
        changes["junit"] = str(junit.with_stem(f"{junit.stem}-next"))
    command = command_with(**changes)
    return f"to compare a later version of the prompt with this one:\n{command}"


def _after_failure(arguments: CheckArguments, verdicts: Check, run: Run, page: Path) -> str:
    """Where to look for a fix; if one was tried already, where to see why it does not help."""
    failed = [prompt for prompt in verdicts.prompts if prompt.first_failure is not None]
    if arguments.method != "none" or not failed:
        return f"read the conversations in which a rule was lost: {page}"
    fix = f"to find a fix and its cost:\n{_calibrate_command(arguments, run)}"
    if any(prompt.low_from_start(verdicts.terms) for prompt in failed):
        return f"reword rules that miss the bar even in round 1, or try another model; {fix}"
    return fix


def _calibrate_command(arguments: CheckArguments, run: Run) -> str:
    """The `holdfast calibrate` command that compares fixes on the same prompts and model."""
    words = ["holdfast", "calibrate", "--suite", arguments.suite]
    words += arguments.as_words(_SHARED_WITH_CALIBRATE)
    if arguments.rounds + 1 < CalibrationPlan.ask_at:
        words += ["--ask-at", str(arguments.rounds + 1)]
    for sweep in fixes_to_compare(run.manifest, endpoint=is_served(arguments.model)):
        words += ["--sweep", sweep]
    return shlex.join([*words, "--out", "runs/calibrate"])


def _to_decide(verdicts: Check, run: Run, page: Path) -> str:
    """How to decide the prompts that are undecided."""
    undecided = [prompt for prompt in verdicts.prompts if prompt.verdict == sequential.UNDECIDED]
    closest = closest_mean(undecided, verdicts.terms)
    if closest is None:
        return f"see in the report why nothing could be decided: {page}"
    fewest = min(len(prompt.records) for prompt in undecided)
    if fewest < MIN_SAMPLES:
        return (
            f"run more conversations; {fewest} are too few to say how many will settle it"
            f"{_command_with_budget(_FIRST_BUDGET, undecided, run)}"
        )
    needed = budget_needed(undecided, verdicts.terms)
    if needed is None:
        return (
            f"give a --min-stability further from {closest:.2f}, the mean of a round: if scores"
            " stay this close to it, even"
            f" {MAX_CONVERSATIONS_FORECAST:,} conversations will not decide."
        )
    budget = 10 * math.ceil(_BUDGET_MARGIN * needed / 10)
    return (
        f"run about {budget:,} conversations per prompt, which should settle it; those so far are"
        f" kept{_command_with_budget(budget, undecided, run)}"
    )


def _command_with_budget(budget: int, undecided: Sequence[PromptCheck], run: Run) -> str:
    """The command with a larger budget, after the longest time that it takes, if that is known.

    For example: " (at most about 5 minutes):\nholdfast check bot.yaml --budget 50".
    """
    pace = sum(record.seconds for record in run.conversations) / max(1, len(run.conversations))
    seconds = pace * sum(budget - len(prompt.records) for prompt in undecided)
    time = f" (at most about {duration(seconds)})" if seconds > 0 else ""
    return f"{time}:\n{command_with(budget=budget)}"
