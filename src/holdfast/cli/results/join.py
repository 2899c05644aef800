"""`holdfast join`: puts the shards of a run into one folder."""

from pathlib import Path
from typing import Annotated

from holdfast import records
from holdfast.analysis.drift_results import results_of
from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.options import ReportOptions
from holdfast.cli.shared.output import page_path, print_run, write_run_page
from holdfast.drift.remaining import missing_numbers
from holdfast.errors import AnotherRun
from holdfast.plurals import count_of
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.typed_options import change_options, split_command
from holdfast.report.next_step import next_step


class _ShardOptions(Options):
    folders: Annotated[list[Path], Arg("FOLDER", positional=True, nargs="+", action="store")]
    """the folder of a shard"""
    out: Annotated[Path, Arg("RUN", required=True)]
    """the folder of the whole run; you may add shards to it as they arrive"""


class JoinArguments(_ShardOptions, ReportOptions):
    """The shards, the folder of the whole run, and its page."""


def run(arguments: JoinArguments) -> None:
    page = page_path(arguments, arguments.out)
    first = records.read_run(arguments.folders[0]).manifest
    if first.command != "drift" or not isinstance(first.identity, ConversationsIdentity):
        raise AnotherRun(
            f"{arguments.folders[0]} holds a run of `holdfast {first.command}`; give the folders of"
            " `holdfast drift` with different --shard.",
            option="folders",
            value=first.command,
            allowed="drift",
        )
    command = _whole_command(records.command_of(first), arguments.out)
    run = records.join_runs(arguments.folders, arguments.out, command)
    results = results_of(run)
    print_run(results)
    numbers = range(first.identity.settings.conversations or 0)
    missing = missing_numbers(arguments.out, first.identity.methods, numbers)
    if left := sum(map(len, missing.values())):
        print(_missing_line(left, command))
    write_run_page(arguments, results, page)
    write_run_document(arguments.out, page, next_step=next_step(results))


def _whole_command(shard_command: str, out: Path) -> str:
    """The command that makes the whole run, given a shard's; "" if the shard's is not known."""
    if not shard_command:
        return ""
    return change_options(split_command(shard_command), {"--shard": None, "--out": str(out)})


def _missing_line(count: int, command: str) -> str:
    """Says that conversations are missing, and how to get them."""
    verb = "is" if count == 1 else "are"
    missing = f"{count_of(count, 'conversation')} {verb} missing"
    if not command:
        return f"{missing}: join the other shards."
    return f"{missing}: join the other shards, or run `{command}`."


COMMAND = Command(
    "join",
    run,
    JoinArguments,
    description=(
        "Several machines can share one run, if each gives `holdfast drift` a different --shard."
        " This command copies their records into one folder, which reads like the run of a single"
        " machine."
    ),
    examples=(
        "examples:\n  holdfast drift --suite bots --shard 1/2 --out runs/first\n"
        "  holdfast drift --suite bots --shard 2/2 --out runs/second\n"
        "  holdfast join runs/first runs/second --out runs/whole"
    ),
)
