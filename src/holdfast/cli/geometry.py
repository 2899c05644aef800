"""`holdfast geometry`: the theory of drift, and a model's own geometry."""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.dry_run import DriftRun, add_dry_run, check_prices, estimate_conversations
from holdfast.cli.options import (
    RunFolder,
    add_model,
    add_report,
    command_line,
    load_model,
    page_path,
    write_page,
)
from holdfast.cli.progress import Bar, tell_figures


def add_parser(commands) -> None:
    geometry = commands.add_parser(
        "geometry",
        help="check the theory of drift, and read a model's own geometry",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Checks Theorem 5.1 and Propositions A.1 and A.2 of Li et al. 2024 on random instances,"
            " draws the norms of a model's embeddings\n(Figure 7), and reads effective dimension"
            " and opening angle of its hidden states over self-chats."
        ),
        epilog=(
            "examples:\n  holdfast geometry\n  holdfast geometry --model"
            " meta-llama/Llama-3.2-1B-Instruct --conversations 40"
        ),
    )
    add = geometry.option
    add_model(add)
    add("--suite", "starter", "the suite whose prompts are used")
    add("--conversations", 12, "number of conversations")
    add("--rounds", 8, "rounds per conversation")
    add("--seed", 0, "of every random draw")
    add("--out", Path("runs/geometry"), "a folder", action=RunFolder)
    add_dry_run(add)
    add_report(add)
    geometry.set_defaults(run=run, allow_code=False)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import drift
    from holdfast.analysis.study_summary import DIALOGS, write_geometry_summaries
    from holdfast.analysis.summary import refuse_other_command
    from holdfast.drift.benchmark import check_folder
    from holdfast.papers.li2024.geometry import GeometrySizes, settings_for, study
    from holdfast.report.geometry import geometry_page
    from holdfast.report.study_figures import write_geometry_figures

    check_prices(arguments)
    page = page_path(arguments, arguments.out)
    sizes = GeometrySizes(
        conversations=arguments.conversations, rounds=arguments.rounds, seed=arguments.seed
    )
    suite, folder = drift.load_suite(arguments.suite), arguments.out / DIALOGS
    refuse_other_command(arguments.out, "geometry")
    check_folder(suite, folder, settings_for(sizes), [()], command=command_line())
    model = load_model(arguments)
    arguments.kept = arguments.out
    if arguments.dry_run:
        planned = DriftRun(model, suite, folder, settings_for(sizes), [()], drift.Cast())
        estimate_conversations(arguments, planned)
        return
    printed: list[str] = []

    def tell(line: str) -> None:
        printed.append(line)
        print(line)

    geometry = study(model, suite, arguments.out, sizes, tell, Bar.of("round"), command_line())
    tell_figures(write_geometry_figures(geometry, arguments.out))
    write_geometry_summaries(geometry, arguments.out)
    write_page(arguments, geometry_page(geometry, printed, arguments.out), page)
