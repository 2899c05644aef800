"""`holdfast reproduce`: a paper's figures and tables on your model."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from holdfast.cli.dry_run import WorkItem, check_prices, estimate_run
from holdfast.cli.loading import is_url, load_model
from holdfast.cli.options import (
    MODEL,
    Arg,
    Command,
    DryRunOptions,
    Options,
    RunFolder,
    SeedOptions,
    option_of,
)
from holdfast.cli.output import DriftRun
from holdfast.cli.progress import Bar
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.papers import li2024
    from holdfast.papers.zhang2024 import reproduction as zhang2024


PAPERS = ("li2024", "zhang2024")


class _ReproducePaper(Options):
    paper: Annotated[str, Arg("PAPER", positional=True, choices=PAPERS)]
    """li2024 or zhang2024"""


class _ReproduceStudy(Options):
    base: Annotated[str | None, Arg("MODEL")] = None
    """li2024: the model before its chat training, for Figure 8"""
    endpoint: Annotated[str | None, Arg("URL")] = None
    """li2024: of the model of Figure 9; with --endpoint-model (default: the model itself)"""
    suite: str = "starter"
    """li2024"""
    capability: str = "knowledge"
    """li2024: as of holdfast calibrate"""
    child: Annotated[str | None, Arg("MODEL")] = None
    """zhang2024: the model after further training, for Table 13 (default: a small model is
    trained a little here)"""
    data: Annotated[list[str] | None, Arg("synthetic|PATH|hub:NAME")] = None
    """zhang2024: as of holdfast tasks (default: synthetic)"""
    task: Annotated[list[str] | None, Arg("json|pronouns|bios|counterfact")] = None
    """zhang2024: repeat for several (default: all four)"""
    scale: Annotated[str, Arg("smallest|brief|small|paper")] = "small"
    out: Annotated[Path | None, Arg(action=RunFolder)] = None
    """a folder (default: runs/PAPER)"""


def run(arguments: argparse.Namespace) -> None:
    check_prices(arguments)
    paper = arguments.paper
    foreign = {
        "li2024": ("child", "data", "task"),
        "zhang2024": ("base", "endpoint", "price_in", "price_out"),  # no endpoint, no price
    }[paper]
    if given := next((name for name in foreign if getattr(arguments, name)), None):
        raise UsageError(f"{option_of(given)} plays no part in {paper}; leave it out.")
    if is_url(arguments.model):
        raise UsageError(
            f"{arguments.model} is an endpoint, whose layers cannot be seen; give a local --model"
            f"{', and the endpoint as --endpoint' * (paper == 'li2024')}."
        )
    arguments.kept = arguments.out = arguments.out or Path("runs") / paper
    page = _reproduce_li2024(arguments) if paper == "li2024" else _reproduce_zhang2024(arguments)
    if page is not None:
        print(f"Page: {page.resolve()}")


def _load(arguments: argparse.Namespace, name: str | None):
    """Another model than `--model`; None without a name."""
    return load_model(arguments, model=name) if name else None


def _reproduce_li2024(arguments: argparse.Namespace) -> Path | None:
    from holdfast import drift
    from holdfast.papers import li2024
    from holdfast.papers.findings import scale_of

    scale, suite = scale_of(arguments.scale, li2024.SCALES), drift.load_suite(arguments.suite)
    model, endpoint = load_model(arguments), _load(arguments, arguments.endpoint)
    setup = li2024.Li2024Setup(
        model,
        suite,
        arguments.out,
        scale,
        arguments.seed,
        arguments.capability,
        _load(arguments, arguments.base),
        endpoint,
        tell=print,
        watch=Bar.of("round"),
    )
    if arguments.dry_run:
        _estimate_li2024(arguments, setup)
        return None
    return li2024.reproduce(setup)


def _reproduce_zhang2024(arguments: argparse.Namespace) -> Path | None:
    from holdfast.papers.findings import scale_of
    from holdfast.papers.zhang2024 import reproduction as zhang2024

    scale = scale_of(arguments.scale, zhang2024.SCALES)
    setup = zhang2024.Setup(
        load_model(arguments),
        arguments.out,
        scale,
        arguments.seed,
        tuple(arguments.data or ("synthetic",)),
        _load(arguments, arguments.child),
        tell=print,
        watch=Bar.of("sample"),
        tasks=tuple(arguments.task or zhang2024.TASKS),
    )
    if arguments.dry_run:
        _estimate_zhang2024(setup)
        return None
    return zhang2024.reproduce(setup)


def _estimate_li2024(arguments: argparse.Namespace, setup: li2024.Li2024Setup) -> None:
    """Holds the first conversations of Figure 3, and says what all figures will take."""
    from holdfast import drift
    from holdfast.drift.work import count_replies
    from holdfast.methods import parse_sweep
    from holdfast.papers.li2024 import check
    from holdfast.papers.li2024.figures import plan_of
    from holdfast.study import calibrate
    from holdfast.study.capability import load_capability

    check(setup)
    scale = setup.scale
    chats = drift.Settings(rounds=scale.rounds, conversations=scale.conversations, seed=setup.seed)
    plain = replace(chats, adoption=False)
    models = 1 if setup.base is None else 2  # Figure 8 traces the base
    rows = [("Figures 4 and 8", setup.suite, replace(plain, conversations=scale.traced), models)]
    more = []
    if scale.sweeps:
        methods = 1 + sum(len(parse_sweep(sweep).settings) for sweep in scale.sweeps)
        suite, plan = plan_of(setup)
        rows.append(("Figures 5 and 6", suite, calibrate.settings_for(suite, plan), methods))
        items = load_capability(setup.capability, scale.questions, setup.seed).items
        questions = methods * len(items)
        more.append(WorkItem("Figures 5 and 6: questions", questions, questions, questions))
    rows.append(("Figure 9", setup.suite, plain, 2))
    for figures, suite, settings, times in rows:
        count = times * settings.conversations
        replies = times * count_replies(suite, settings, None, range(settings.conversations))
        more.append(WorkItem(f"{figures}: conversations", count, count, replies))
    figure_3 = DriftRun(setup.model, setup.suite, setup.out / "figure-3", chats, [()], drift.Cast())
    estimate_run(arguments, figure_3, *more)


def _estimate_zhang2024(setup: zhang2024.Setup) -> None:
    """Times a small piece of each profile, and counts the answers of Table 1."""
    from holdfast.papers import zhang2024 as tasks
    from holdfast.papers.zhang2024.profiling import estimate
    from holdfast.papers.zhang2024.reproduction import check
    from holdfast.papers.zhang2024.reproduction.study import STEERED, Study

    check(setup)
    study = Study(setup)
    for name in setup.tasks:
        samples, plan = study.profiling_of(name)
        print(f"profile {name}: {estimate(setup.model, samples, plan)}")
    scale, count = setup.scale, len(setup.tasks)
    ways = len(tasks.BASELINES) - 1 + scale.draws + STEERED
    print(
        f"Table 1: {count} tasks of {scale.tested:,} test samples, each asked in at most {ways}"
        f" ways: {count * scale.tested * ways:,} answers."
    )
    print(
        "The other tables ask for further answers, how many depends on the rankings; nothing of"
        " this plan was recorded."
    )


COMMAND = Command(
    "reproduce",
    "make a paper's figures on your model, each with its claims judged",
    run,
    (_ReproducePaper, *MODEL, _ReproduceStudy, SeedOptions, DryRunOptions),
    description=(
        "Runs Figures 3 to 9 of Li et al. 2024 (li2024), or the tables and figures of Zhang et"
        " al. 2024, PASTA (zhang2024), and writes one page:\neach figure, the paper's claims in"
        " our words, and whether this run supports them, contradicts them or cannot tell."
        " Repeating the command resumes it."
    ),
    examples=(
        "examples:\n  holdfast reproduce li2024 --out runs/li2024\n  holdfast reproduce li2024"
        " --model chat-model --base base-model --scale paper --capability mmlu:hub --out"
        " runs/li2024\n  holdfast reproduce zhang2024 --out runs/zhang2024\n  holdfast"
        " reproduce zhang2024 --model base-model --child chat-model --data bios.jsonl --data"
        " counterfact.json --scale paper"
    ),
)
