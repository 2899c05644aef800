"""`holdfast geometry`: reads the hidden states of self-chats."""

from typing import ClassVar

from holdfast import drift
from holdfast.analysis import summary
from holdfast.cli.explain.self_chats import SelfChatOptions, check_counts, folder_of
from holdfast.cli.shared.command import Command
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_loading import load_layered_model
from holdfast.cli.shared.output import command_line, page_path, print_figures, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.drift.benchmark import check_before_loading
from holdfast.methods import Ability
from holdfast.papers.li2024 import geometry
from holdfast.records.folder import refuse_other_command
from holdfast.report.geometry_report import (
    geometry_lines,
    geometry_page,
    write_geometry_figures,
)


class GeometryArguments(SelfChatOptions):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.LAYERS})

    conversations: int = 12
    """how many conversations to run"""


def run(arguments: GeometryArguments) -> None:
    check_counts("geometry", arguments)
    out = folder_of("geometry", arguments)
    page = page_path(arguments, out)
    settings = drift.Settings(
        rounds=arguments.rounds,
        conversations=arguments.conversations,
        seed=arguments.seed,
        sampling=arguments.sampling_for(arguments.model),
        adoption=False,
    )
    suite = drift.load_suite(arguments.suite)
    folder = out / summary.DIALOGS
    refuse_other_command(out, "geometry")
    check_before_loading(suite, folder, settings, [()], command=command_line())
    model = load_layered_model(arguments, "hidden states")
    arguments.keep_work_in(out)
    measured = geometry.study(model, suite, out, settings, Bar.of("reply"), command_line())
    lines = geometry_lines(measured, settings.conversations)
    print(*lines, sep="\n")
    figures = write_geometry_figures(measured, out)
    print_figures(figures)
    summary.write_geometry_summaries(measured, out)
    write_page(arguments, geometry_page(measured, lines, out), page)
    write_run_document(out, page, figures)


COMMAND = Command(
    "geometry",
    run,
    GeometryArguments,
    description=(
        "Draws the norms of a model's embeddings (Li et al. 2024, Figure 7), and reads the"
        " effective dimension and the opening angle of its hidden states over self-chats."
    ),
    examples=(
        "examples:\n  holdfast geometry\n"
        "  holdfast geometry --model Qwen/Qwen2.5-0.5B-Instruct --conversations 40"
    ),
    common=("model", "suite", "conversations", "rounds", "out"),
)
