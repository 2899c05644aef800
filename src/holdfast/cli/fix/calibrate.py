"""`holdfast calibrate`: measures the gain and the cost of each fix, and recommends one."""

import dataclasses
import shlex
from pathlib import Path
from typing import Annotated

from holdfast import drift
from holdfast.analysis import summary
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.calibration_results import Calibration
from holdfast.analysis.calibration_size import LargerSizes, budget_shown, sizes_needed, times_needed
from holdfast.analysis.choosing import Pick, pick, write_method_file
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.dry_run import estimate_run
from holdfast.cli.shared.estimates import WorkItem, check_prices
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_checks import warn_of_small_model
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import Specs
from holdfast.cli.shared.output import command_line, command_with, page_path, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.cli.shared.user_messages import load_user_turns, note_usual_user_turns
from holdfast.drift import Suite
from holdfast.drift.asking_baseline import read_baseline
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import short_path
from holdfast.models.model_names import is_served
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of
from holdfast.records import MANIFEST, read_run
from holdfast.records.identity import CalibrationIdentity
from holdfast.report import calibration_table
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_page import calibration_page
from holdfast.report.calibration_sentences import answer, chance_line, next_step
from holdfast.report.shortfalls import failure_shortfalls
from holdfast.study import calibration_plan
from holdfast.study.calibrating import calibrate, check_before_loading, count_progress_steps
from holdfast.study.calibration_plan import (
    DEFAULT_SWEEPS,
    READINGS,
    CalibrationPlan,
    default_draws,
    why_too_small,
)
from holdfast.study.capability import Capability, default_capability, load_capability
from holdfast.validation import ranges

DESCRIPTION = (
    "Runs methods at several strengths. For each setting it measures stability (all"
    " ordered pairs of one prompt per category, or a single prompt with the suite's"
    " personas) and a capability, which is tested in the middle of the same dialogs. It"
    " plots one against the other, and recommends the most stable setting within a"
    " budget, if the evidence allows.\nLi et al. 2024, section 6.3, Figures 5 and 6."
)

EXAMPLES = """examples:
  holdfast calibrate --budget 2 --out runs/calibrate
  holdfast calibrate --suite my_bot.yaml --sweep boost:factor=4 --sweep repetition:probability=0.5
  holdfast calibrate --sweep split-softmax:exponent=0.9,0.7,0.5 --sweep\
 repetition:probability=0.5,1 --capability mmlu:data/mmlu
  holdfast drift --method runs/calibrate/method.json

Repeating a command resumes it."""


class CalibrateArguments(
    options.SuiteOptions,
    options.ModelOptions,
    options.RoundsOptions,
    options.DrawOptions,
    options.SystemOptions,
    options.UserTurnsOptions,
    options.RayOptions,
    options.DryRunOptions,
    options.RunOptions,
    options.ReportOptions,
):
    prompts: Annotated[str | None, Arg("ID,ID,...")] = None
    """the ids of the prompts to use (default: one of each category; with --conversations, all)"""
    capability: Annotated[
        str | None, Arg("facts|knowledge|mmlu:PATH|mmlu:hub|perplexity:FILE|lm-eval:TASK")
    ] = None
    """the ability that steering may impair (default: facts; with the default model or --reading
    written, knowledge); if the model scores no better than guessing, a --budget is refused"""
    reading: Annotated[str, Arg(choices=READINGS)] = CalibrationPlan.reading
    """read an answer as the likeliest option, or by its letter"""
    sweep: Specs = None
    """a method with one or several values of a parameter, as in split-softmax:exponent=0.9,0.7;
    repeatable (default: five methods)"""
    questions: int | None = None
    """number of questions (default: 200; of facts, all)"""
    draws: int | None = None
    """conversations per ordered pair, or per persona if there is a single prompt (default: 5, or as
    many as it takes for 60 conversations per setting)"""
    conversations: int | None = None
    """in place of --draws: N conversations per setting, each between two newly drawn prompts, from
    the whole suite unless --prompts names some; the intervals then also hold for other prompts of
    the same kind"""
    ask_at: int = CalibrationPlan.ask_at
    """the user turn in which the question is asked"""
    budget: Annotated[float | None, Arg("D")] = None
    """points of the capability that may be lost (default: 1); if given, the recommended setting is
    written to method.json in the folder, or the exit code is 1 if none can be recommended"""
    baseline: bool = False
    """also ask the probes without a system prompt, and name the prompts or rules that score as well
    without it; they still count in the stability"""


@dataclasses.dataclass(frozen=True)
class _Setup:
    """A calibration as its options describe it, before the model is loaded."""

    arguments: CalibrateArguments
    suite: Suite
    capability_spec: str  # such as "facts"
    capability: Capability
    plan: CalibrationPlan
    budget: float
    out: Path
    page: Path

    @property
    def questions(self) -> int:
        return len(self.capability.items)

    @property
    def title(self) -> str:
        """Describes the work in one line."""
        conversations = calibration_plan.conversations_per_steering(self.suite, self.plan)
        return (
            f"{len(self.plan.steerings)} settings, each in"
            f" {count_of(conversations, 'conversation')} of {count_of(self.plan.rounds, 'round')},"
            f" with {self.questions} questions divided among them"
        )

    def drift_run(self, model: ChatModel) -> DriftRun:
        """The conversations in which stability is measured."""
        settings = calibration_plan.calibration_settings(self.suite, self.plan)
        cast = drift.Cast(user_turns=self.plan.user_turns)
        folder = self.out / "stability"
        return DriftRun(model, self.suite, folder, settings, self.plan.steerings, cast)


def run(arguments: CalibrateArguments) -> None:
    check_prices(arguments)
    setup = _setup_of(arguments)
    model = load_model(arguments)
    note_usual_user_turns(arguments, setup.plan.user_turns)
    arguments.keep_work_in(setup.out)
    drift_run = setup.drift_run(model)
    if arguments.dry_run:
        _estimate(setup, drift_run)
        return
    _measure(setup, model)
    if arguments.baseline:
        drift_run.ask_baseline()
    _print_result(setup, read_calibration(setup.out))


def _setup_of(arguments: CalibrateArguments) -> _Setup:
    """Reads the options, and refuses what can be refused before the model is loaded."""
    spec = arguments.capability or default_capability(arguments.model, arguments.reading)
    folder = run_folder("calibrate", model_of(arguments), arguments.suite, seed=arguments.seed)
    out = arguments.out or folder
    page = page_path(arguments, out)
    budget = 1.0 if arguments.budget is None else arguments.budget
    ranges.Range(0).check("calibrate", "budget", budget)
    plan = _plan_of(arguments)
    prompts = arguments.prompts.split(",") if arguments.prompts else ()
    suite = calibration_plan.choose_prompts(drift.load_suite(arguments.suite), prompts, plan)
    warn_of_small_model(arguments.model, arguments.suite)
    if arguments.conversations is None:
        draws = default_draws(suite, out) if arguments.draws is None else arguments.draws
        plan = dataclasses.replace(plan, draws=draws)
    capability = load_capability(spec, arguments.questions, arguments.seed)
    plan = dataclasses.replace(plan, user_turns=load_user_turns(arguments, suite))
    check_before_loading(out, suite, capability, plan)
    setup = _Setup(arguments, suite, spec, capability, plan, budget, out, page)
    _note_small_sizes(setup)
    return setup


def _plan_of(arguments: CalibrateArguments) -> CalibrationPlan:
    """Reads the plan of the calibration from the options."""
    if arguments.draws is not None and arguments.conversations is not None:
        raise UsageError(
            f"--draws {arguments.draws} and --conversations {arguments.conversations} both say how"
            " many conversations there are; leave out one of the two.",
            option="draws",
            value=arguments.draws,
        )
    return CalibrationPlan(
        rounds=arguments.rounds,
        ask_at=arguments.ask_at,
        reading=arguments.reading,
        seed=arguments.seed,
        system_as=arguments.system_as,
        sampling=arguments.sampling_for(arguments.model),
        conversations=arguments.conversations,
        sweeps=tuple(arguments.sweep or DEFAULT_SWEEPS),
    )


def _note_small_sizes(setup: _Setup) -> None:
    """Notes why no setting could be recommended, or that there are fewer questions than wanted."""
    requested = setup.arguments.questions or setup.questions
    if why := why_too_small(setup.suite, setup.questions, requested, setup.plan):
        note(why)
    elif setup.questions < requested:
        unit = "passages" if setup.capability.is_text else "questions"
        note(f"{setup.capability_spec} has only {setup.questions} {unit}; all are asked.")


def _estimate(setup: _Setup, drift_run: DriftRun) -> None:
    """Times a few conversations, and prints an estimate for the whole calibration."""
    print(f"{setup.title}.")
    answers = setup.questions * len(setup.plan.steerings)
    questions = WorkItem("questions (timed as replies)", answers, answers, answers)
    estimate_run(setup.arguments, drift_run, questions, baseline=setup.arguments.baseline)


# --- Measuring


def _measure(setup: _Setup, model: ChatModel) -> None:
    """Runs the sweeps.

    The model without a method comes first, as it may turn out that it only guesses the answers.
    """
    title = setup.title
    if not setup.capability.is_text and not _has_sweeps(setup.out):
        without_sweeps = dataclasses.replace(setup.plan, sweeps=())
        _calibrate(setup, model, without_sweeps, f"{title}; the model without a method comes first")
        _refuse_chance(read_calibration(setup.out), setup.arguments.budget)
        title = ""  # which has been printed
    _calibrate(setup, model, setup.plan, title)


def _has_sweeps(out: Path) -> bool:
    """Whether an earlier command has begun the sweeps in this folder."""
    folder = out / "capability"
    if not (folder / MANIFEST).is_file():
        return False
    return bool(read_run(folder).identity_as(CalibrationIdentity).sweeps)


def _calibrate(setup: _Setup, model: ChatModel, plan: CalibrationPlan, title: str) -> None:
    """Runs what is missing of a plan, with a bar."""
    with Bar(count_progress_steps(setup.suite, setup.capability, plan), title=title) as bar:
        running = drift.Running(progress=bar, command=command_line())
        calibrate(model, setup.suite, setup.capability, setup.out, plan, running)


def _refuse_chance(calibration: Calibration, budget: float | None) -> None:
    """Reports, before any fix is measured, that the model only guesses.

    Raises:
        HoldfastError: there is a budget, which is then meaningless.
    """
    line = chance_line(calibration)
    if not line or len(calibration.none.stability) < MIN_SAMPLES:
        return
    if budget is not None:
        raise HoldfastError(f"{line}, or leave --budget {budget:g} out to compare stability alone.")
    note(f"{line}.")


# --- The results


def _print_result(setup: _Setup, calibration: Calibration) -> None:
    """Prints and writes the results.

    Raises:
        HoldfastError: --budget is given, but no setting can be recommended.
    """
    out = setup.out
    chosen = pick(calibration, setup.budget)
    write_calibration_figures(calibration, setup.budget, out)
    summary.write_calibration_summaries(calibration, out)
    _print_tables(calibration, out)
    step = _next_step(setup, calibration, chosen)
    write_page(setup.arguments, calibration_page(calibration, chosen, out, step), setup.page)
    file = out / "method.json"
    has_budget = setup.arguments.budget is not None
    is_written = has_budget and chosen.recommended
    if is_written:
        write_method_file(calibration, chosen, file)
        print(f"Method: {short_path(file)}")
    print(answer(calibration, chosen))
    if line := chance_line(calibration):
        print(f"{line}.")
    print(f"Next: {step}")
    if has_budget and not is_written:
        file.unlink(missing_ok=True)  # from an earlier budget
        raise HoldfastError(
            f"{file} is not written, as no setting can be recommended with --budget"
            f" {setup.budget:g}; take the next step above, or give --method a setting of your"
            " choice."
        )
    write_run_document(out, setup.page, [file] if is_written else [], step)


def _print_tables(calibration: Calibration, out: Path) -> None:
    """Prints the settings, the rules that score as well without a prompt, and what failed."""
    stability = read_run(out / "stability")
    print(calibration_table.table(calibration))
    if read_baseline(stability.folder) is not None:
        print(*calibration_table.unprompted_lines(stability), sep="\n")
    for shortfall in failure_shortfalls(read_run(out / "capability").failures):
        print(shortfall.sentence)


def _next_step(setup: _Setup, calibration: Calibration, chosen: Pick) -> str:
    """The user's next step, to be printed after "Next: "."""
    model = setup.arguments.model
    file = setup.out / "method.json"
    if chosen.recommended and setup.arguments.budget is None:
        command = command_with(budget=f"{chosen.budget:g}")
        return f"to write it to {file} (nothing is run again):\n{command}"
    if chosen.recommended and is_served(model):
        return f"to use it: send {chosen.method} with every request (see `holdfast docs serving`)"
    if chosen.recommended:
        serve = ["holdfast", "serve", "--model", model, "--default-method", str(file)]
        return f"to serve it:\n{shlex.join(serve)}"
    sizes = sizes_needed(calibration, chosen)
    if calibration.at_chance or sizes is None:
        return next_step(calibration, chosen)
    return _larger_calibration(setup, calibration, chosen, sizes)


def _larger_calibration(
    setup: _Setup, calibration: Calibration, chosen: Pick, sizes: LargerSizes
) -> str:
    """Says how large a calibration must be to recommend a setting, and gives its command."""
    spec = setup.capability_spec
    count = sizes.conversations
    available = len(load_capability(spec, sizes.questions, setup.arguments.seed).items)
    questions = min(available, sizes.questions)
    has_too_few = available < sizes.questions
    has_more_conversations = count > len(calibration.none.stability)
    new_options: dict[str, object] = {}
    if has_more_conversations or questions > calibration.questions:
        new_options = {sizes.option: sizes.value, "questions": questions}
        new_options["out"] = f"{setup.out}-{count}-{questions}"
    if times_needed(calibration, chosen) is None:
        needed = f"at least {count:,} conversations per setting are needed"
        if has_too_few:
            needed = f"{needed} ({spec} has only {available} questions, which may be too few)"
    elif has_too_few and (budget := budget_shown(calibration, chosen, available)) > chosen.budget:
        new_options["budget"] = budget
        needed = (
            f"a budget of {chosen.budget:g} needs about {sizes.questions:,} questions, and {spec}"
            f" has only {available:,}; a budget of {budget} should be within their reach"
        )
    elif has_more_conversations:
        needed = (
            f"about {count:,} conversations per setting and {questions:,} questions should settle"
            " it"
        )
    else:
        needed = f"about {questions:,} questions should settle it"
    return f"{needed} (--dry-run says how long it takes):\n{command_with(**new_options)}"


COMMAND = Command(
    "calibrate",
    run,
    CalibrateArguments,
    DESCRIPTION,
    EXAMPLES,
    common=("model", "suite", "sweep", "budget", "dry_run", "out"),
)
