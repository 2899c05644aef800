"""Records -> statistics, a table for the terminal, figures, and one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.errors import RecordsError, UsageError
from holdfast.files import write_whole
from holdfast.records import read_run
from holdfast.report.terminal import table

__all__ = ["table", "write"]


def write(folders: Sequence[Path | str], out: Path | str) -> Path:
    """Write the report of one or several runs as one page, and its figures beside it.

    Args:
        folders: run folders; the first is the one the headline speaks of. Several are told apart by their folder names.
        out: the HTML file; figures go to `<stem>_figures/` beside it, as SVG and PNG.

    Returns:
        The path of the page.

    Raises:
        UsageError: no folder was given, or out is a folder.
        RecordsError: a folder is not a run, has no finished conversation, or out cannot be written.
    """
    import numpy as np

    from holdfast.report.drift_page import render_page
    from holdfast.report.figures import write_figures
    from holdfast.report.scores import label_runs, read_series

    out = Path(out)
    if not folders:
        raise UsageError("No run folder given; name at least one, such as `holdfast report runs/first --out report.html`.")
    if out.is_dir():
        raise UsageError(f"{out} is a folder; name the page to write, such as {out / 'report.html'}.")
    paths = [Path(folder) for folder in folders]
    runs = [read_run(path) for path in paths]
    for run in runs:
        if run.manifest.get("command") == "tasks":
            raise RecordsError(f"{run.folder} holds tasks, whose table `holdfast tasks` prints when its command is repeated; give runs of `holdfast drift`.")
    labels = label_runs(paths)
    series = [item for run, label in zip(runs, labels, strict=True) for item in read_series(run, label)]
    if all(np.isnan(item.stability).all() for item in series):
        raise RecordsError(
            f"No probe of {paths[0]} was answered, so there is nothing to draw; its records say why."
        )
    page = render_page(runs, labels, series)
    write_whole(out, page, "another place with --out")
    write_figures(series, out.with_name(out.stem + "_figures"))
    return out
