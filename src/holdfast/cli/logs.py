"""`holdfast logs`: scores dialogs by the rules of their prompts; exit codes as for `check`."""

import sys
import time
from pathlib import Path
from typing import Annotated

from holdfast.analysis.sequential import UNDECIDED
from holdfast.cli import options
from holdfast.cli.check import COULD_NOT, exit_code
from holdfast.cli.loading import judging_of
from holdfast.cli.options import Arg, Command, OutFolder
from holdfast.cli.output import command_line, page_path, write_page
from holdfast.drift import load_suite
from holdfast.errors import UsageError
from holdfast.records import read_earlier
from holdfast.transcripts import FORMATS

_MANY = 20  # rules; if there are more, categories are printed
_NAMED = 5  # problems with the files that are printed

EXAMPLES = f"""examples:
  holdfast logs ~/.claude/projects/shop --suite rules.yaml  # score transcripts
  holdfast logs july.jsonl --suite my_bot.yaml --min-adherence 0.9 --junit logs.xml
  holdfast logs july.jsonl --suite my_bot.yaml --against runs/june --out runs/july

Formats, which are detected: {", ".join(sorted(FORMATS))}. `holdfast docs logs` shows each.
Exit codes:
  0  the logs are scored; with --min-adherence or --against, every rule passes
  1  a rule fails
  2  the command is malformed, or names what is not there
  3  a rule is undecided
  4  the logs could not be scored"""


class LogsArguments(options.ReportOptions):
    files: Annotated[list[Path], Arg("FILE", positional=True, nargs="+", action="store")]
    """logs, or folders of them (.jsonl, .ndjson, .json), or a run's folder"""
    suite: Annotated[str, Arg("FILE.yaml")]
    """the rules; their probes may be left out"""
    allow_code: bool = False
    """allow the suite to use Python functions as measures"""
    format: Annotated[str | None, Arg("NAME")] = None
    """a format of those below, such as claude-code (default: detected)"""
    min_adherence: Annotated[float | None, Arg("SHARE")] = None
    """fail if a rule's mean over dialogs is certainly below this"""
    error: Annotated[float, Arg("SHARE")] = 0.05
    """the highest probability of any false alarm"""
    against: Annotated[Path | None, Arg("RUN")] = None
    """fail if a rule is certainly kept less than in these earlier logs"""
    junit: Annotated[Path | None, Arg("FILE")] = None
    """also write the verdicts as JUnit XML"""
    out: OutFolder = Path("runs/logs")
    """the run's folder"""
    force_judge: bool = False
    """use judges even if they agree poorly with the labelled replies of their rules"""


def run(arguments: LogsArguments) -> int:
    from holdfast.analysis.adherence import adherence
    from holdfast.logs import read_logs, score_logs
    from holdfast.report.logs import (
        cut_rules,
        logs_page,
        table,
        write_logs_figures,
        write_logs_junit,
        write_logs_summary,
    )

    bar = arguments.min_adherence
    if bar is not None and not 0 < bar < 1:
        raise UsageError(f"--min-adherence takes a share above 0 and below 1, not {bar:g}.")
    if not 0 < arguments.error < 0.5:
        raise UsageError(f"--error takes a share above 0 and below 0.5, not {arguments.error:g}.")
    if arguments.against and arguments.against.resolve() == arguments.out.resolve():
        raise UsageError(f"--against {arguments.against} is the folder of --out; choose another.")
    page = page_path(arguments, arguments.out)
    suite = load_suite(arguments.suite, allow_code=arguments.allow_code, probed=False)
    before = read_earlier(arguments.against, "logs") if arguments.against else None
    began = time.monotonic()
    logs = read_logs(arguments.files, arguments.format)
    data = score_logs(logs, suite, arguments.out, judging_of(arguments.force_judge), command_line())
    rows = adherence(data, bar, arguments.error, before)
    many = len(rows) > _MANY and bar is None and before is None
    shown = adherence(data, by_category=True) if many else rows
    print(table(data, rows, shown, bar))
    for problem in logs.problems[:_NAMED]:
        print(f"holdfast: {problem}.", file=sys.stderr)
    if (more := len(logs.problems) - _NAMED) > 0:
        print(f"holdfast: and {more} more; the page lists all.", file=sys.stderr)
    if arguments.junit is not None:
        seconds = time.monotonic() - began
        junit = write_logs_junit(data, rows, bar, arguments.junit, seconds)
        print(f"JUnit: {junit.resolve()}")
    write_logs_summary(data, rows, bar, arguments.error)
    write_logs_figures(shown, data.folder / "figures")
    write_page(arguments, logs_page(data, rows, shown, bar), page)
    verdicts = [row.verdict for row in rows]
    if bar is not None and cut_rules(data).keys() - {row.rule for row in rows}:
        verdicts.append(UNDECIDED)  # a rule that was judged on no turn has not passed
    return exit_code(verdicts)


COMMAND = Command(
    "logs",
    "score logs of real dialogs by the rules of their prompts",
    run,
    LogsArguments,
    description=(
        "Scores every turn of every dialog by the rules that apply to it: adherence by turn and by"
        " length, how long each rule survives, and the turns that broke it. No model is needed."
    ),
    examples=EXAMPLES,
    failed=COULD_NOT,
)
