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
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.dry_run import estimate_run
from holdfast.cli.shared.estimates import WorkItem, check_prices
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_loading import load_model, warn_of_small_model
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import Arg, Command, Specs
from holdfast.cli.shared.output import command_line, command_with, page_path, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.cli.shared.user_messages import load_user_turns, note_usual_user_turns
from holdfast.drift import Suite
from holdfast.drift.asking_baseline import read_baseline
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import short_path
from holdfast.models.model_names import is_served
from holdfast.plurals import count_of
from holdfast.records import MANIFEST, read_run
from holdfast.records.identity import CalibrationIdentity
from holdfast.report import calibration_table
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.calibration_page import calibration_page
from holdfast.report.calibration_sentences import answer, chance_line, next_step
from holdfast.report.shortfalls import failure_shortfalls
from holdfast.study import calibration_plan
from holdfast.study.calibrating import calibrate, check_before_loading, units_of
from holdfast.study.calibration_plan import (
    DEFAULT_SWEEPS,
    READINGS,
    CalibrationPlan,
    usual_draws,
    why_too_small,
)
from holdfast.study.capability import Capability, load_capability, usual_capability
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

    suite: Suite
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


def run(arguments: CalibrateArguments) -> None:
    check_prices(arguments)
    setup = _setup_of(arguments)
    model = load_model(arguments)
    plan = setup.plan
    note_usual_user_turns(arguments, plan.user_turns)
    arguments.keep_work_in(setup.out)
    settings = calibration_plan.calibration_settings(setup.suite, plan)
    cast = drift.Cast(user_turns=plan.user_turns)
    stability = setup.out / "stability"
    drift_run = DriftRun(model, setup.suite, stability, settings, plan.steerings, cast)
    if arguments.dry_run:
        replies = setup.questions * len(plan.steerings)
        print(f"{setup.title}.")
        work = WorkItem("questions (timed as replies)", replies, replies, replies)
        estimate_run(arguments, drift_run, work, baseline=arguments.baseline)
        return
    _measure(arguments, drift_run, setup)
    if arguments.baseline:
        drift_run.ask_baseline()
    _print_result(arguments, read_calibration(setup.out), setup.budget, setup.page)


def _setup_of(arguments: CalibrateArguments) -> _Setup:
    """Reads the options, and refuses what can be refused before the model is loaded."""
    spec = _capability_spec(arguments)
    out = _folder(arguments)
    page = page_path(arguments, out)
    budget = ranges.Range(0).check(
        "calibrate", "budget", 1.0 if arguments.budget is None else arguments.budget
    )
    plan = _plan_of(arguments)
    prompts = arguments.prompts.split(",") if arguments.prompts else ()
    suite = calibration_plan.choose_prompts(drift.load_suite(arguments.suite), prompts, plan)
    warn_of_small_model(arguments.model, arguments.suite)
    if arguments.conversations is None:
        draws = usual_draws(suite, out) if arguments.draws is None else arguments.draws
        plan = dataclasses.replace(plan, draws=draws)
    capability = load_capability(spec, arguments.questions, arguments.seed)
    plan = dataclasses.replace(plan, user_turns=load_user_turns(arguments, suite))
    check_before_loading(out, suite, capability, plan)
    setup = _Setup(suite, capability, plan, budget, out, page)
    requested = arguments.questions or setup.questions
    if why := why_too_small(suite, setup.questions, requested, plan):
        note(why)
    elif setup.questions < requested:
        unit = "passages" if capability.is_text else "questions"
        note(f"{spec} has only {setup.questions} {unit}; all are asked.")
    return setup


def _folder(arguments: CalibrateArguments) -> Path:
    if arguments.out:
        return arguments.out
    return run_folder("calibrate", model_of(arguments), arguments.suite, seed=arguments.seed)


def _capability_spec(arguments: CalibrateArguments) -> str:
    return arguments.capability or usual_capability(arguments.model, arguments.reading)


def _measure(arguments: CalibrateArguments, run: DriftRun, setup: _Setup) -> None:
    """Runs the sweeps, after the model without a method, which may show that it only guesses."""

    def run_sweeps(plan: CalibrationPlan, title: str) -> None:
        with Bar(units_of(run.suite, setup.capability, plan), title=title) as bar:
            running = drift.Running(progress=bar, command=command_line())
            calibrate(run.model, run.suite, setup.capability, setup.out, plan, running)

    title = setup.title
    folder = setup.out / "capability"
    has_begun = (folder / MANIFEST).is_file()
    has_sweeps = has_begun and read_run(folder).identity_as(CalibrationIdentity).sweeps
    if not setup.capability.is_text and not has_sweeps:
        without_sweeps = dataclasses.replace(setup.plan, sweeps=())
        run_sweeps(without_sweeps, f"{title}; the model without a method comes first")
        _refuse_chance(read_calibration(setup.out), arguments.budget)
        title = ""  # which has been printed
    run_sweeps(setup.plan, title)


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


def _print_result(
    arguments: CalibrateArguments, calibration: Calibration, budget: float, page: Path
) -> None:
    """Prints and writes the results.

    Raises:
        HoldfastError: --budget is given, but no setting can be recommended.
    """
    out = _folder(arguments)
    file = out / "method.json"
    chosen = pick(calibration, budget)
    stability = read_run(out / "stability")
    write_calibration_figures(calibration, budget, out)
    summary.write_calibration_summaries(calibration, out)
    print(calibration_table.table(calibration))
    if read_baseline(stability.folder) is not None:
        print(*calibration_table.unprompted_lines(stability), sep="\n")
    for shortfall in failure_shortfalls(read_run(out / "capability").failures):
        print(shortfall.sentence)
    step = _next_step(arguments, calibration, chosen)
    write_page(arguments, calibration_page(calibration, chosen, out, step), page)
    is_written = arguments.budget is not None and chosen.recommended
    if is_written:
        write_method_file(calibration, chosen, file)
        print(f"Method: {short_path(file)}")
    print(answer(calibration, chosen))
    if line := chance_line(calibration):
        print(f"{line}.")
    print(f"Next: {step}")
    if arguments.budget is not None and not is_written:
        file.unlink(missing_ok=True)  # from an earlier budget
        raise HoldfastError(
            f"{file} is not written, as no setting can be recommended with --budget {budget:g};"
            " take the next step above, or give --method a setting of your choice."
        )
    write_run_document(out, page, [file] if is_written else [], step)


def _next_step(arguments: CalibrateArguments, calibration: Calibration, chosen: Pick) -> str:
    """The user's next step, to be printed after "Next: "."""
    out = _folder(arguments)
    if chosen.recommended and arguments.budget is None:
        command = command_with(budget=f"{chosen.budget:g}")
        return f"to write it to {out / 'method.json'} (nothing is run again):\n{command}"
    if chosen.recommended and is_served(arguments.model):
        return f"to use it: send {chosen.method} with every request (see `holdfast docs serving`)"
    if chosen.recommended:
        serve = ["holdfast", "serve", "--model", arguments.model, "--default-method"]
        return f"to serve it:\n{shlex.join([*serve, str(out / 'method.json')])}"
    sizes = sizes_needed(calibration, chosen)
    if calibration.at_chance or sizes is None:
        return next_step(calibration, chosen)
    return _larger_calibration(arguments, calibration, chosen, sizes)


def _larger_calibration(
    arguments: CalibrateArguments, calibration: Calibration, chosen: Pick, sizes: LargerSizes
) -> str:
    """Says how large a calibration must be to recommend a setting, and gives its command."""
    spec = _capability_spec(arguments)
    count = sizes.conversations
    available = len(load_capability(spec, sizes.questions, arguments.seed).items)
    questions = min(available, sizes.questions)
    has_too_few = available < sizes.questions
    grows = count > len(calibration.none.stability)
    new_values: dict[str, object] = {}
    if grows or questions > calibration.questions:
        new_values = {sizes.option: sizes.value, "questions": questions}
        new_values["out"] = f"{_folder(arguments)}-{count}-{questions}"
    if times_needed(calibration, chosen) is None:
        needed = f"at least {count:,} conversations per setting are needed"
        if has_too_few:
            needed = f"{needed} ({spec} has only {available} questions, which may be too few)"
    elif has_too_few and (budget := budget_shown(calibration, chosen, available)) > chosen.budget:
        new_values["budget"] = budget
        needed = (
            f"a budget of {chosen.budget:g} needs about {sizes.questions:,} questions, and {spec}"
            f" has only {available:,}; a budget of {budget} should be within their reach"
        )
    elif grows:
        needed = (
            f"about {count:,} conversations per setting and {questions:,} questions should settle"
            " it"
        )
    else:
        needed = f"about {questions:,} questions should settle it"
    return f"{needed} (--dry-run says how long it takes):\n{command_with(**new_values)}"


COMMAND = Command(
    "calibrate",
    run,
    CalibrateArguments,
    DESCRIPTION,
    EXAMPLES,
    common=("model", "suite", "sweep", "budget", "dry_run", "out"),
)
