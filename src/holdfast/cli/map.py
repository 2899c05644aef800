"""`holdfast map`: which kinds of rules are kept over a conversation, and which are lost."""

from pathlib import Path
from typing import Annotated

from holdfast.analysis.loss_map import LossRow, loss_map
from holdfast.analysis.loss_results import model_loss, write_loss_map
from holdfast.analysis.recalled_rules import recall_rows
from holdfast.analysis.series import NO_FIX, label_runs
from holdfast.cli.options import Arg, Command, Options
from holdfast.cli.output import print_figures
from holdfast.records import read_run
from holdfast.records.loss_records import ModelLoss
from holdfast.report.loss_map_tables import loss_lines, recall_lines, write_loss_figure


class MapArguments(Options):
    folders: Annotated[list[Path], Arg("RUN", positional=True, nargs="+", action="store")]
    """the folder of a drift run; several to compare models"""
    pool: bool = False
    """take all runs together, such as two seeds of one model"""
    out: Path | None = None
    """the folder of the figure and of loss_map.json (default: figures in the first run's folder)"""


def run(arguments: MapArguments) -> None:
    runs = [read_run(folder) for folder in arguments.folders]
    labels = label_runs(arguments.folders)
    groups = [runs] if arguments.pool else [[each] for each in runs]
    maps: dict[str, list[LossRow]] = {}
    models: list[ModelLoss] = []
    for label, group in zip(labels, groups, strict=False):
        rows, recalled = loss_map(*group), recall_rows(*group)
        model = str(group[0].manifest.identity.model)
        name = model if len(groups) == 1 else label or model
        maps[name] = [row for row in rows if row.method == NO_FIX] or rows
        models.append(model_loss(name, group, rows, recalled))
        if len(groups) > 1:
            print(f"{name}\n")
        print(*loss_lines(rows), sep="\n")
        if recalled:
            print("", *recall_lines(recalled), sep="\n")
        if len(groups) > 1:
            print()
    folder = arguments.out or arguments.folders[0] / "figures"
    print_figures(write_loss_figure(maps, folder))
    print(f"Results: {write_loss_map(models, folder).resolve()}")


COMMAND = Command(
    "map",
    "see which kinds of rules are kept, and which are lost",
    run,
    MapArguments,
    "Groups the probes of drift runs by what their rules are about, by how they bind, by the number"
    " of rules in the prompt, by rounds and length, and by the user's last message, and says what"
    " falls, what rises and what holds. The suite gives the kinds of its rules.",
    "examples:\n  holdfast drift --model qwen-0.5b --suite bots --user-turns work --rounds 16 --out"
    " runs/half\n  holdfast map runs/half\n  holdfast map runs/half runs/large --out figures\n"
    "  holdfast map --pool runs/seed-0 runs/seed-1",
)
