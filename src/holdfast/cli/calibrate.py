"""`holdfast calibrate`: what each fix costs, and which to take."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from pathlib import Path

from holdfast.cli.dry_run import Part, add_dry_run, check_prices
from holdfast.cli.dry_run.talks import Talks, plan_talks, unprompted
from holdfast.cli.options import (
    add_model,
    add_report,
    command_line,
    load_model,
    page_path,
    tell_small_model,
    write_page,
)
from holdfast.cli.progress import Bar, tell_figures
from holdfast.cli.replica_options import AS_MANY_AS_PAY, add_replicas
from holdfast.errors import HoldfastError, UsageError


def add_parser(commands) -> None:
    calibrate = commands.add_parser(
        "calibrate",
        help="what each fix costs, and which to take",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Sweeps the strength of every method; measures for each setting stability (all ordered"
            " pairs of one prompt per category; a single\nprompt with the suite's personas) and a"
            " capability asked in the middle of the same dialogs; draws one against the\nother,"
            " and names the most stable setting within a budget, where it can tell.\nLi et al."
            " 2024, section 6.3, Figures 5 and 6."
        ),
        epilog=(
            "examples:\n  holdfast calibrate --budget 2\n  holdfast calibrate --suite my_bot.yaml"
            " --sweep boost:factor=4 --sweep repetition:probability=0.5\n  holdfast calibrate"
            " --sweep split-softmax:exponent=0.9,0.7,0.5 --sweep repetition:probability=0.5,1"
            " --capability mmlu:data/mmlu\n  holdfast drift --method"
            " runs/calibrate/method.json\n\nRepeating a command resumes it."
        ),
    )
    add = calibrate.add_argument
    add_model(add)
    add(
        "--suite",
        default="starter",
        metavar="starter|core|bot|li2024:PATH|sys-ifeval:PATH|FILE.yaml",
        help="where the prompts come from (default: %(default)s)",
    )
    add(
        "--prompts",
        metavar="ID,ID,...",
        help="which of them talk (default: one of each category; with --conversations, all)",
    )
    add(
        "--capability",
        default="knowledge",
        metavar="knowledge|mmlu:PATH|mmlu:hub|perplexity:FILE|lm-eval:TASK",
        help="what may be lost (default: %(default)s, which suits the model in the package)",
    )
    add(
        "--shots",
        type=int,
        default=0,
        help="of MMLU's dev questions in front of each question (default: %(default)s)",
    )
    add(
        "--reading",
        choices=("likeliest", "written"),
        default="likeliest",
        help="of an answer: the likeliest option, or the letter in the text (default: %(default)s)",
    )
    add(
        "--sweep",
        action="append",
        metavar="SPEC",
        help=(
            "a method with one value or several of a knob, as split-softmax:exponent=0.9,0.7;"
            " repeatable (default: five methods)"
        ),
    )
    add("--questions", type=int, default=200, help="default: %(default)s")
    add(
        "--draws",
        type=int,
        help=(
            "conversations of each ordered pair, or of a single prompt with each persona (default:"
            " 5, or as many as make 60 conversations per setting)"
        ),
    )
    add(
        "--conversations",
        type=int,
        metavar="N",
        help=(
            "in place of --draws: N conversations of every setting, each between two prompts drawn"
            " anew, of the whole suite where --prompts names none; their intervals hold for other"
            " prompts of the same kind too"
        ),
    )
    add("--rounds", type=int, default=8, help="default: %(default)s")
    add(
        "--ask-at",
        type=int,
        default=4,
        help="the user turn that is the question (default: %(default)s)",
    )
    add(
        "--budget",
        type=float,
        metavar="D",
        help=(
            "points that may be lost (default: 1); given, the setting is written to method.json in"
            " the folder, where the evidence allows to recommend one; else the exit code is 1"
        ),
    )
    add(
        "--baseline",
        action="store_true",
        help=(
            "ask the probes without a system prompt too, which shows the prompts or rules that tell"
            " nothing; they still count in the stability"
        ),
    )
    add("--max-new-tokens", type=int, default=400, help="per reply (default: %(default)s)")
    add(
        "--system-as",
        choices=("role", "first-user"),
        default="role",
        help="where the system prompt stands (default: %(default)s)",
    )
    add("--seed", type=int, default=0, help="default: %(default)s")
    add_replicas(add, "conversations and batches of questions", AS_MANY_AS_PAY)
    add("--out", type=Path, default=Path("runs/calibrate"), help="a folder (default: %(default)s)")
    add_dry_run(add)
    add_report(add)
    calibrate.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import drift, knobs
    from holdfast.analysis.calibration import read_calibration
    from holdfast.analysis.choice import pick
    from holdfast.analysis.study_summary import (
        write_calibration_file,
        write_calibration_summaries,
        write_method_file,
    )
    from holdfast.records import read_run
    from holdfast.report.calibration import (
        answer,
        passed_over_line,
        table,
        unprompted_lines,
    )
    from holdfast.report.calibration_figures import write_calibration_figures
    from holdfast.report.calibration_page import calibration_document
    from holdfast.report.endings import failure_lines
    from holdfast.report.wording import count_of
    from holdfast.sampling import Sampling
    from holdfast.study.calibrate import (
        DEFAULT_SWEEPS,
        Plan,
        calibrate,
        check_folder,
        choose_prompts,
        conversations,
        read_sweeps,
        settings_for,
        units_of,
    )
    from holdfast.study.calibration_talks import too_small, usual_draws
    from holdfast.study.capability import load_capability

    check_prices(arguments)
    page = page_path(arguments, arguments.out)
    sweeps = arguments.sweep or DEFAULT_SWEEPS
    budget = knobs.number_between(
        "calibrate", "budget", 1.0 if arguments.budget is None else arguments.budget, 0
    )
    if arguments.draws is not None and arguments.conversations is not None:
        raise UsageError(
            f"--draws {arguments.draws} and --conversations {arguments.conversations} both say how"
            " many conversations there are; leave out one of the two."
        )
    plan = Plan(
        rounds=arguments.rounds,
        ask_at=arguments.ask_at,
        reading=arguments.reading,
        seed=arguments.seed,
        system_as=arguments.system_as,
        sampling=Sampling(max_new_tokens=arguments.max_new_tokens),
        conversations=arguments.conversations,
    )
    named = arguments.prompts.split(",") if arguments.prompts else ()
    suite = choose_prompts(drift.load_suite(arguments.suite), named, plan)
    tell_small_model(arguments)
    if arguments.conversations is None:
        draws = arguments.draws
        draws = usual_draws(suite, arguments.out) if draws is None else draws
        plan = dataclasses.replace(plan, draws=draws)
    capability = load_capability(
        arguments.capability, arguments.questions, arguments.seed, arguments.shots
    )
    parsed = read_sweeps(sweeps)
    check_folder(arguments.out, suite, capability, parsed, plan)
    every = [(), *(setting for sweep in parsed for setting in sweep.settings)]
    asked = len(capability.items)
    title = (
        f"{len(every)} settings, each in"
        f" {count_of(conversations(suite, plan), 'conversation')} of"
        f" {count_of(plan.rounds, 'round')}, with {asked} questions shared out among them"
    )
    if why := too_small(suite, asked, plan):
        print(f"holdfast: this cannot lead to a verdict: {why}", file=sys.stderr)
    model = load_model(arguments)
    arguments.on_interrupt = (
        f"What is finished is kept in {arguments.out}; repeat the command to go on."
    )
    if arguments.dry_run:
        of_all, folder = settings_for(suite, plan), arguments.out / "stability"
        talks = Talks(model, suite, folder, of_all, every, measured=1)
        hold = functools.partial(drift.run, running=drift.Running(command=command_line()))
        questions = asked * len(every)
        print(f"{title}.")
        more = [Part("questions", questions, questions, questions)]
        more += [unprompted(talks)] if arguments.baseline else []
        plan_talks(arguments, talks, hold, more)
        return
    units = units_of(suite, capability, sweeps, plan)
    with Bar(units, title=title) as bar:
        _, answers = calibrate(
            model,
            suite,
            capability,
            arguments.out,
            sweeps,
            plan,
            command=command_line(),
            progress=bar,
            replicas=arguments.replicas,
        )
    talks_folder = arguments.out / "stability"
    if arguments.baseline:
        of_all = settings_for(suite, plan)
        with Bar(of_all.conversations, "probe") as bar:
            running = drift.Running(progress=bar, command=command_line())
            drift.ask_baseline(model, suite, talks_folder, of_all, running=running)
    calibration = read_calibration(arguments.out)
    chosen = pick(calibration, budget)
    write_calibration_file(calibration, arguments.out / "calibration.json")
    print(table(calibration))
    for line in unprompted_lines(read_run(talks_folder)):
        print(line)
    for what, line in failure_lines(answers.failures):
        print(f"{what.capitalize()}: {line}.")
    tell_figures(write_calibration_figures(calibration, budget, arguments.out))
    write_calibration_summaries(calibration, arguments.out)
    document = calibration_document(calibration, chosen, arguments.out)
    write_page(arguments, document, page)
    file = arguments.out / "method.json"
    if arguments.budget is not None and chosen.recommended:
        write_method_file(calibration, chosen, file)
        print(f"Method: {file.resolve()}")
    if line := passed_over_line(calibration, chosen):
        print(line)
    print(answer(calibration, chosen))
    if arguments.budget is not None and not chosen.recommended:
        file.unlink(missing_ok=True)  # of an earlier budget
        raise HoldfastError(
            f"{file} is not written, as this run cannot recommend a setting with at most {budget:g}"
            " points lost; measure more, or give --method what you choose yourself."
        )
