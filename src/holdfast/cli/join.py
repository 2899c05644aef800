"""`holdfast join`: puts the shards of a run into one folder."""

from pathlib import Path
from typing import Annotated

from holdfast import records
from holdfast.analysis.drift_results import results_of
from holdfast.cli.json_output import write_run_document
from holdfast.cli.options import Arg, Command, Options, ReportOptions
from holdfast.cli.output import page_path, print_run, write_run_page
from holdfast.drift.remaining import missing_numbers
from holdfast.errors import AnotherRun
from holdfast.plurals import count_of
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.typed_options import repeated, split_command
from holdfast.report.next_step import next_step


class _ShardOptions(Options):
    folders: Annotated[list[Path], Arg("FOLDER", positional=True, nargs="+", action="store")]
    """the folder of a shard"""
    out: Annotated[Path, Arg("RUN", required=True)]
    """the folder of the whole run; shards may be added to it as they arrive"""


class JoinArguments(_ShardOptions, ReportOptions):
    pass


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
        are = "is" if left == 1 else "are"
        run_them = f", or run `{command}`" if command else ""
        print(f"{count_of(left, 'conversation')} {are} missing: join the other shards{run_them}.")
    write_run_page(arguments, results, page)
    write_run_document(arguments.out, page, next_step=next_step(results))


def _whole_command(of_shard: str, out: Path) -> str:
    """The command that would have made the whole run, given that of a shard; "" if that is."""
    if not of_shard:
        return ""
    return repeated(split_command(of_shard), {"--shard": None, "--out": str(out)})


COMMAND = Command(
    "join",
    "put the shards of a run into one folder",
    run,
    JoinArguments,
    "Several machines share one run if each gives `holdfast drift` another --shard; this command"
    " copies their records into one folder, which reads like the run of one machine.",
    "examples:\n  holdfast drift --suite bots --shard 1/2 --out runs/first\n"
    "  holdfast drift --suite bots --shard 2/2 --out runs/second\n"
    "  holdfast join runs/first runs/second --out runs/whole",
)
