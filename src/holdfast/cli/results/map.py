"""`holdfast map`: shows which kinds of rules are kept over a conversation, and which are lost."""

import json
from pathlib import Path
from typing import Annotated

from holdfast.analysis.loss_map_file import ModelLoss, model_loss, read_loss_map, write_loss_map
from holdfast.analysis.loss_rows import LossRow
from holdfast.analysis.series import NO_FIX, label_runs
from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.output import print_figures
from holdfast.files import short_path
from holdfast.records import read_run
from holdfast.report.loss_map_tables import (
    loss_lines,
    recall_lines,
    reminder_line,
    write_loss_figure,
)


class MapArguments(Options):
    folders: Annotated[list[Path], Arg("RUN", positional=True, nargs="+", action="store")]
    """the folder of a drift run, or a loss_map.json; several to compare models"""
    pool: bool = False
    """pool all runs as one, such as two seeds of one model"""
    out: Annotated[Path | None, Arg("FOLDER")] = None
    """the folder of the figure and of loss_map.json (default: figures in the first run's folder)"""


def run(arguments: MapArguments) -> None:
    models = _read_models(arguments)
    maps: dict[str, list[LossRow]] = {}
    for model in models:
        maps[model.name] = [row for row in model.rows if row.method == NO_FIX] or list(model.rows)
        if len(models) > 1:
            print(f"{model.name}\n")
        print(*loss_lines(model.rows), sep="\n")
        if line := reminder_line(maps[model.name]):
            print("", line, sep="\n")
        if model.recall:
            print("", *recall_lines(model.recall), sep="\n")
        if len(models) > 1:
            print()
    first = arguments.folders[0]
    first_folder = first.parent if first.is_file() else first
    folder = arguments.out or first_folder / "figures"
    figures = write_loss_figure(maps, folder)
    print_figures(figures)
    results = write_loss_map(models, folder).resolve()
    print(f"Results: {short_path(results)}")
    loss_map = json.loads(results.read_text(encoding="utf-8"))
    write_document({"files": [results, *figures], "loss_map": loss_map})


def _read_models(arguments: MapArguments) -> list[ModelLoss]:
    """Reads the losses of each run or file, or with --pool those of all runs as one model."""
    folders = arguments.folders
    if arguments.pool:
        runs = [read_run(folder) for folder in folders]
        name = str(runs[0].manifest.identity.model)
        return [model_loss(name, *runs)]
    models: list[ModelLoss] = []
    for label, folder in zip(label_runs(folders), folders, strict=True):
        if folder.is_file():
            models += read_loss_map(folder)
            continue
        run = read_run(folder)
        name = label or str(run.manifest.identity.model)
        models.append(model_loss(name, run))
    return models


COMMAND = Command(
    "map",
    run,
    MapArguments,
    description=(
        "Groups the probes of drift runs by what their rules are about, by how they bind, by the"
        " number of rules in the prompt, by rounds and length, and by the user's last message, and"
        " says what falls, what rises and what holds. The suite gives the kinds of its rules."
    ),
    examples=(
        "examples:\n  holdfast drift --model qwen-0.5b --suite bots --user-turns work --rounds 16"
        " --out runs/half\n  holdfast map runs/half\n"
        "  holdfast map runs/half runs/large --out figures\n"
        "  holdfast map --pool runs/seed-0 runs/seed-1\n"
        "  holdfast map half/loss_map.json large/loss_map.json"
    ),
)
