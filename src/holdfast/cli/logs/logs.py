"""`holdfast logs`: scores recorded dialogs by the rules of their prompts."""

import argparse
import contextlib
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from holdfast.analysis import sequential
from holdfast.analysis.adherence import adherence
from holdfast.analysis.rule_context import count_causes, total_causes
from holdfast.analysis.summary import write_logs_summary
from holdfast.cli.logs.log_labels import key_reader, label_turns, print_agreements, require_terminal
from holdfast.cli.logs.log_progress import cores, follow, scan_bar
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command, RunFolder, file_to_write, option_of
from holdfast.cli.shared.endpoint_options import check_endpoint_options
from holdfast.cli.shared.exit_codes import COULD_NOT, FAILED, PASSED, UNDECIDED
from holdfast.cli.shared.json_output import write_document, write_run_document
from holdfast.cli.shared.judge_loading import check_model_to_ask, load_model_to_ask, make_judging
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.output import command_line, page_option, page_path
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import named_folder, numbered_folders
from holdfast.drift import load_suite
from holdfast.drift.cases import Suite
from holdfast.drift.judges import Judging
from holdfast.errors import AnotherRun, UsageError
from holdfast.files import short_path, write_whole
from holdfast.logs import scan_logs
from holdfast.logs.label_agreement import agreements
from holdfast.logs.label_file import LabelFile
from holdfast.logs.label_sampling import label_tasks, sample_turns
from holdfast.logs.loaded_files import LoadedFile, read_loaded, refuse_rules_file
from holdfast.logs.log_reading import NoDialog
from holdfast.logs.part_scanning import Scan
from holdfast.logs.recalled_causes import RecallSample, ask_recall
from holdfast.logs.rereading import LogSource
from holdfast.logs.scanning import has_code, scratch_folder
from holdfast.logs.scored_logs import write_scores
from holdfast.logs.watching import LogWatch, replace_run
from holdfast.plurals import count_of
from holdfast.records import Run, read_earlier
from holdfast.records.logs_summary import LoggedRule
from holdfast.report.log_formats import formats_list
from holdfast.report.logs_causes import recall_sentence, why_table
from holdfast.report.logs_export import check_export, write_logs_export
from holdfast.report.logs_junit import write_logs_junit
from holdfast.report.logs_page import logs_page
from holdfast.report.logs_table import logs_table
from holdfast.transcripts import FORMATS
from holdfast.validation.ranges import Range, whole_number

_MAX_RULES_SHOWN = 20  # if there are more, and no verdicts, categories are shown instead
_MAX_PROBLEMS_SHOWN = 5  # problems with the files that are printed
_MIN_ADHERENCE = Range(0, 1, above_low=True, below_high=True, share=True)
_ERROR = Range(0, 0.5, above_low=True, below_high=True, share=True)
# the options that --label leaves without effect
_UNUSED_WITH_LABEL = ("watch", "against", "min_adherence", "junit", "export", "report", "model")

EXAMPLES = f"""examples:
  holdfast logs ~/.claude/projects/shop --suite rules.yaml  # score transcripts
  holdfast logs july.jsonl --suite my_bot.yaml --min-adherence 0.9 --junit logs.xml
  holdfast logs july.jsonl --suite my_bot.yaml --against runs/june --out runs/july

Formats (detected): {", ".join(sorted(FORMATS))}. --list-formats says where their files are.

Exit codes:
  0  the logs are scored; with --min-adherence or --against, every rule passes
  1  a rule fails
  2  the command is malformed, or names what does not exist
  3  no rule fails, but one is undecided
  4  the logs could not be scored"""


class _ListFormats(argparse.Action):
    """The action of `--list-formats`, which ends the command, as `--help` does."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any):
        super().__init__(option_strings, dest, nargs=0, **more)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        print(formats_list())
        parser.exit()


class LogsArguments(options.ReportOptions, options.EndpointOptions):
    files: Annotated[list[Path], Arg("FILE", positional=True, nargs="+", action="store")]
    """logs, or folders of them (.jsonl, .ndjson, .json), or a run's folder"""
    suite: Annotated[str, Arg("FILE.yaml")]
    """the rules; `holdfast suite init AGENTS.md` drafts them"""
    allow_code: bool = False
    """allow the suite to use Python functions as measures"""
    format: Annotated[str | None, Arg("NAME")] = None
    """one of the formats below, such as claude-code (default: detected)"""
    list_formats: Annotated[bool, Arg(action=_ListFormats)] = False
    """print each format, where its files are and how to export them, and exit"""
    loaded: Annotated[list[Path] | None, Arg("FILE")] = None
    """a file of rules, such as CLAUDE.md, that the agent loads into every context but transcripts
    leave out; with it, the causes of breaches are found; repeatable"""
    min_adherence: Annotated[float | None, Arg("SHARE")] = None
    """fail if a rule's mean over dialogs is certainly below this"""
    error: Annotated[float, Arg("SHARE")] = 0.05
    """the highest acceptable probability of any false alarm"""
    against: Annotated[Path | None, Arg("RUN")] = None
    """fail if a rule is certainly kept less often than in these earlier logs"""
    junit: Annotated[Path | None, Arg("FILE", type=file_to_write)] = None
    """also write the verdicts as JUnit XML"""
    export: Annotated[list[Path] | None, Arg("FILE", type=file_to_write)] = None
    """also write the score of every turn and rule: .csv, .parquet, or .json (OTLP events)"""
    watch: bool = False
    """follow the logs: print each new breach until Ctrl-C"""
    label: bool = False
    """show scored turns, half of which break a rule, and keep your labels of them in --out
    (labels.jsonl)"""
    seed: Annotated[int, Arg("N")] = 0
    """the seed of the turns that --label draws"""
    workers: Annotated[int | None, Arg("N")] = None
    """how many processes read and score (default: one for each core)"""
    out: Annotated[Path | None, Arg(action=RunFolder)] = None
    """the run's folder (default: runs/logs-SUITE, or if that holds the scores of other logs or
    rules, runs/logs-SUITE-2 and so on)"""
    force_judge: bool = False
    """use judges even if they agree poorly with the labelled replies of their rules"""
    model: Annotated[str | None, Arg("MODEL|URL")] = None
    """ask this model for its rules wherever a rule was broken although it was in the context"""
    ask: Annotated[int, Arg("N")] = 100
    """with --model: the most breaches to ask about, drawn at random"""


@dataclass(frozen=True)
class _Setup:
    """The logs to score and the rules, as the options describe them.

    Attributes:
        loaded: the files of --loaded.
        earlier: the run of --against.
    """

    arguments: LogsArguments
    suite: Suite
    loaded: tuple[LoadedFile, ...]
    earlier: Run | None

    @property
    def out(self) -> Path:
        return _folder(self.arguments)

    @property
    def source(self) -> LogSource:
        """Reads the logs again, for a part of their turns."""
        return LogSource(self.arguments.files, self.arguments.format, self.loaded)

    def judging(self) -> Judging:
        return make_judging(force=self.arguments.force_judge)


def run(arguments: LogsArguments) -> int:
    started = time.monotonic()
    _check(arguments)
    setup = _setup_of(arguments)
    scored = _follow(setup) if arguments.watch else _scan_anew(setup)
    if arguments.label:
        return _label(setup, scored)
    recall = None
    if arguments.model is not None:
        scored, recall = _ask_for_rules(setup, scored, arguments.model)
    return _report(setup, scored, recall, started)


def _check(arguments: LogsArguments) -> None:
    """Refuses options that are out of range, or exclude each other, before a file is read."""
    if arguments.min_adherence is not None:
        _MIN_ADHERENCE.check("logs", "min_adherence", arguments.min_adherence)
    _ERROR.check("logs", "error", arguments.error)
    if arguments.workers is not None:
        whole_number("logs", "workers", arguments.workers, 1)
    whole_number("logs", "ask", arguments.ask, 1)
    if arguments.against and arguments.against.resolve() == _folder(arguments).resolve():
        raise UsageError(f"--against {arguments.against} is the folder of --out; choose another.")
    check_endpoint_options(arguments)
    if arguments.model is not None:
        check_model_to_ask(arguments.model, arguments)
    if arguments.watch and arguments.model is not None:
        raise UsageError(
            "--watch does not ask a model; leave out --model, and ask when the logs are complete."
        )
    for path in arguments.export or ():
        check_export(path)
    if arguments.label:
        _refuse_unused_with_label(arguments)
        require_terminal()
    page_path(arguments, _folder(arguments))


def _refuse_unused_with_label(arguments: LogsArguments) -> None:
    for name in _UNUSED_WITH_LABEL:
        if not arguments.is_default(name):
            raise UsageError(f"{option_of(name)} has no effect with --label; leave it out.")


def _setup_of(arguments: LogsArguments) -> _Setup:
    """Reads the rules, and the other files that options name."""
    refuse_rules_file(arguments.suite)
    return _Setup(
        arguments=arguments,
        suite=load_suite(arguments.suite, allow_code=arguments.allow_code, probed=False),
        loaded=read_loaded(arguments.loaded or ()),
        earlier=read_earlier(arguments.against, "logs") if arguments.against else None,
    )


def _folder(arguments: LogsArguments) -> Path:
    return arguments.out or named_folder("logs", arguments.suite)


# --- Scoring


def _scan_anew(setup: _Setup) -> Run:
    """Scores the logs as they are; without --out, beside the scores of other logs or rules."""
    if setup.arguments.out:
        return _scan(setup, setup.arguments.out)
    latest, unused = numbered_folders(setup.out)
    try:
        return _scan(setup, latest)
    except AnotherRun:
        note(f"{latest} holds the scores of other logs or rules; these are in {unused}.")
        return _scan(setup, unused)


def _scan(setup: _Setup, folder: Path) -> Run:
    arguments = setup.arguments
    if (arguments.workers or 1) > 1 and has_code(setup.suite):
        note("--workers is ignored, because measures that are Python functions run in one process.")
    with scan_bar() as show:
        return scan_logs(
            arguments.files,
            setup.suite,
            folder,
            arguments.format,
            cores() if arguments.workers is None else arguments.workers,
            judging=setup.judging(),
            command=command_line(),
            watch=show,
            loaded=setup.loaded,
        )


def _follow(setup: _Setup) -> Run:
    """Scores the logs as they grow, until Ctrl-C."""
    judging = setup.judging()
    with scratch_folder(setup.out) as folder:
        scan = Scan(setup.suite, setup.arguments.format, folder, setup.loaded)
        watch = LogWatch(setup.arguments.files, scan)

        def score_now() -> Run:
            """Scores what has been read so far; the new scores replace the earlier ones."""
            logs = watch.logs()
            replace_run(setup.out)
            return write_scores(logs, setup.suite, setup.out, judging, command_line())

        def rewrite() -> None:
            with contextlib.suppress(NoDialog):  # there may be one later
                scored = score_now()
                _write_results(setup, scored, _rows(setup, scored))

        follow(watch, rewrite)
        return score_now()


# --- Questions about the scores


def _label(setup: _Setup, scored: Run) -> int:
    """Asks for labels of the scored turns, and prints how well they agree with the scores."""
    sample = sample_turns(scored, setup.arguments.seed)
    tasks = label_tasks(scored, sample, setup.suite, setup.source)
    if missing := len(sample) - len(tasks):
        note(
            f"{count_of(missing, 'turn')} of the sample left out, as the logs no longer have them "
            "as they were scored."
        )
    labels = LabelFile(scored.folder)
    with key_reader() as read_key:
        label_turns(tasks, labels, read_key)
    by_rule = agreements(scored, labels)
    print_agreements(by_rule, labels)
    write_document([asdict(agreement) for agreement in by_rule])
    return PASSED


def _ask_for_rules(setup: _Setup, scored: Run, name: str) -> tuple[Run, RecallSample | None]:
    """Asks the model of `--model` for its rules, and adds its answers to the run.

    Returns:
        The run, and the sample of breaches that were asked about; None if none was.
    """
    max_breaches = setup.arguments.ask
    count = min(max_breaches, total_causes(count_causes(scored)).get("present", 0))
    if not count:
        note(f"--model {name} is not asked: no broken rule was in the context.")
        return scored, None
    model = load_model_to_ask(name, setup.arguments)
    with Bar(count, "breach", f"asking {model.name} for its rules") as bar:
        return ask_recall(scored, setup.source, setup.suite, model, max_breaches, bar)


# --- The results


class _Rows(NamedTuple):
    """The rows of the tables on how well rules are kept."""

    rules: list[LoggedRule]
    shown: list[LoggedRule]  # the same rows, or those of categories if there are many rules


def _rows(setup: _Setup, scored: Run) -> _Rows:
    min_adherence = setup.arguments.min_adherence
    error = setup.arguments.error
    rows = adherence(scored, min_adherence=min_adherence, error=error, before=setup.earlier)
    has_verdicts = min_adherence is not None or setup.earlier is not None
    if len(rows) <= _MAX_RULES_SHOWN or has_verdicts:
        return _Rows(rows, rows)
    return _Rows(rows, adherence(scored, by_category=True))


def _report(setup: _Setup, scored: Run, recall: RecallSample | None, started: float) -> int:
    """Writes and prints the results; returns the exit code.

    Args:
        recall: the breaches about which a model was asked.
        started: when the command started, on the clock of `time.monotonic`.
    """
    arguments = setup.arguments
    rows = _rows(setup, scored)
    print(logs_table(scored, rows.rules, rows.shown, arguments.min_adherence))
    if why := why_table(scored):
        print(why)
    if recall is not None:
        print(f"\n{recall_sentence(recall)}")
    _print_problems(scored.manifest.problems)
    files = list(arguments.export or ())
    if arguments.junit is not None:
        seconds = time.monotonic() - started
        junit = write_logs_junit(
            scored, rows.rules, arguments.min_adherence, arguments.junit, seconds
        )
        print(f"JUnit: {short_path(junit)}")
        files.append(arguments.junit)
    for path in arguments.export or ():
        print(f"Scores: {short_path(write_logs_export(scored, path))}")
    page = _write_results(setup, scored, rows)
    print(f"Report: {short_path(page)}")
    write_run_document(scored.folder, page, files)
    return exit_code_of([row.verdict for row in rows.rules])


def _write_results(setup: _Setup, scored: Run, rows: _Rows) -> Path:
    """Writes the summary and the page; returns the page's path."""
    arguments = setup.arguments
    min_adherence = arguments.min_adherence
    write_logs_summary(scored, rows.rules, min_adherence, arguments.error)
    html = logs_page(scored, rows.rules, rows.shown, min_adherence)
    page = page_path(arguments, scored.folder)
    write_whole(page, html, f"another place with {page_option(arguments)}")
    return page


def _print_problems(problems: Sequence[str]) -> None:
    """Prints the first problems with the files, and the number of the others."""
    for problem in problems[:_MAX_PROBLEMS_SHOWN]:
        note(f"{problem}.")
    if len(problems) > _MAX_PROBLEMS_SHOWN:
        note(f"and {len(problems) - _MAX_PROBLEMS_SHOWN} more; summary.json lists all.")


def exit_code_of(verdicts: Collection[str | None]) -> int:
    """The exit code for all verdicts together: a failure outweighs an undecided verdict."""
    if sequential.FAIL in verdicts:
        return FAILED
    return UNDECIDED if sequential.UNDECIDED in verdicts else PASSED


COMMAND = Command(
    "logs",
    run,
    LogsArguments,
    description=(
        "Scores every turn of recorded dialogs by the rules that apply to it: says how well each"
        " rule is kept, from turn to turn, which turns broke it, and why. No model is needed."
    ),
    examples=EXAMPLES,
    failed=COULD_NOT,
    common=("files", "suite", "min_adherence", "against", "watch", "list_formats", "out"),
)
