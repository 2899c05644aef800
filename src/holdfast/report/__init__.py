"""Turns an analysis into a terminal table, figures, and one self-contained HTML page.

Used by all commands:

page               renders a page from `templates/`; template_environment has its filters
charts             charts of pages; figures, the same as SVG and PNG files
wording            estimates as text
junit              JUnit XML

`holdfast drift` and `holdfast try`:

drift_page         the page; terminal, what is printed; first_run_table, what a first run prints
opening_sentences  the sentences that both begin with; run_title, the first one
next_step          what to do next; run_setup, the commands for it; fixes_to_try, the fixes
fix_sentences      what the best fix gains; baseline_sentences, scores without the prompt
series_charts      the charts of the page; run_figures, the figures; score_phrases, shared phrases
shortfalls         replies that fell short; collapse_section, conversations that collapsed;
                   context_section, how much of a chat was read
how_measured       how the numbers were measured
conversations      the conversations, as data for the page

The other commands:

check              check_sentences, check_details, check_section, check_junit
compare            compare_sentences, compare_tables, compare_page
map                loss_map_tables
logs               logs_sentences, logs_words, logs_table, logs_causes, logs_page with logs_strips;
                   logs_junit and logs_export write files; log_formats lists the formats
suite test         measure_tests_table
calibrate          calibration_sentences, calibration_table, calibration_figures,
                   calibration_page
precedent          precedent_tables
trace, geometry    trace_report with trace_figures; geometry_report
profile, tasks     profile_report, task_tables
"""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.summary import write_summary
from holdfast.errors import AnotherRun, RecordsError, UsageError
from holdfast.files import cannot_write, write_whole
from holdfast.records import read_run
from holdfast.report.terminal import table


def write(
    folders: Path | str | Sequence[Path | str], out: Path | str, option: str = "--out"
) -> Path:
    """Writes the report of one or several runs as one page, and its figures beside it.

    Args:
        folders: one run folder or several; the headline describes the first one.
        out: the HTML file, written whole or not at all; figures go to `<stem>_figures/` beside it,
            as SVG and PNG.
        option: the command-line option that gave `out`, for error messages.

    Returns:
        The path of the page.

    Raises:
        UsageError: no folder was given, or out is a folder.
        RecordsError: a folder is not a run of `holdfast drift`, has no finished conversation, or
            out cannot be written.
    """
    out = Path(out)
    folders = [folders] if isinstance(folders, (str, Path)) else folders
    return write_page(read_results(folders, out, option), out, option)


def read_results(
    folders: Sequence[Path | str], out: Path, option: str = "--out"
) -> list[DriftResults]:
    """Reads the results of the runs that go on one page, once it is certain that it can be written.

    Raises:
        UsageError: no folder was given, or out is a folder.
        RecordsError: a folder is not a run of `holdfast drift`, or out cannot be written.
    """
    from holdfast.analysis.series import label_runs

    if not folders:
        raise UsageError(
            "No run folder given; name at least one, such as `holdfast report runs/first --out"
            " report.html`.",
            option="folders",
        )
    paths = [Path(folder) for folder in folders]
    runs = [read_run(path) for path in paths]
    for run in runs:
        if (command := run.manifest.command) != "drift":
            raise AnotherRun(
                f"{run.folder} holds a run of `holdfast {command}`, which writes a page of its own"
                " when its command is repeated; give runs of `holdfast drift`.",
                option="folders",
                value=run.folder,
                allowed="drift",
            )
    check_page(out, option)
    labels = label_runs(paths)
    return [results_of(run, label) for run, label in zip(runs, labels, strict=True)]


def write_page(results: Sequence[DriftResults], out: Path, option: str = "--out") -> Path:
    """Writes the page of results that are already read, and its figures beside it."""
    import numpy as np

    from holdfast.report.drift_page import render_page
    from holdfast.report.run_figures import write_figures
    from holdfast.report.shortfalls import ending_shortfalls

    all_series = [series for result in results for series in result.series]
    if all(np.isnan(series.stability).all() for series in all_series):
        run = results[0].run
        reasons = ending_shortfalls(run.conversations)
        why = "; ".join(f"{reason.heading}: {reason.text}" for reason in reasons)
        raise RecordsError(
            f"No probe of {run.folder} has a score, so there is nothing to draw"
            f" ({why or 'no probe was answered'}).",
            value=run.folder,
        )
    html = render_page(results)
    write_figures(all_series, out.with_name(out.stem + "_figures"))
    return write_whole(out, html, f"another place with {option}")


def check_page(out: Path | str, option: str = "--out") -> Path:
    """Refuses a path where no page can be written, so that a command can fail before it runs."""
    out = Path(out)
    if out.is_dir():
        raise UsageError(
            f"{option} {out} is a folder; name the page to write, such as {out / 'report.html'}.",
            option=option,
            value=out,
        )
    folder = next(parent for parent in out.absolute().parents if os.path.lexists(parent))
    code = None
    if not folder.is_dir():
        code = errno.ENOTDIR
    elif not os.access(folder, os.W_OK | os.X_OK):
        code = errno.EACCES
    if code is not None:
        error = OSError(code, os.strerror(code))
        raise cannot_write(out, error, f"another place with {option}")
    return out
