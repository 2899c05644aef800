"""`holdfast profile`: find the heads to steer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.dry_run import add_dry_run, check_prices
from holdfast.cli.options import (
    RunFolder,
    add_model,
    add_ray,
    add_report,
    add_system_as,
    command_line,
    load_model,
    page_path,
    write_page,
)
from holdfast.cli.progress import Bar
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.methods.heads import Ranking
    from holdfast.papers.zhang2024.profiling import ProfilingPlan

DESCRIPTION = (
    "Steers every head of a model alone on the samples of one or several tasks, and ranks"
    " the heads. Zhang et al. 2024, Algorithm 1."
)

EXAMPLES = """A line of samples: {"messages": [{"role": "user", "content": "Anna is a nurse. Her\
 job:"}], "emphasis": ["nurse"],
  "continuations": [" nurse", " pilot"], "right": 0}
examples:
  holdfast profile --task json --task pronouns --task bios --task counterfact --by accuracy --top 16
  holdfast profile --samples jobs.jsonl
  holdfast profile --samples jobs.jsonl --samples facts.jsonl --top 20 --combine intersection\
 --out runs/heads
  holdfast generate --user "..." --emphasis "..." --method\
 pasta:alpha=0.01,heads=runs/heads/heads.json

Repeating a command resumes it."""


def add_parser(commands) -> None:
    profile = commands.add_parser(
        "profile",
        help="find the heads to steer",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    add = profile.option
    add_model(add)
    add(
        "--task", list, "one of PASTA's tasks; repeatable", metavar="json|pronouns|bios|counterfact"
    )
    add(
        "--data",
        list,
        "of --task, as of holdfast tasks (default: synthetic)",
        metavar="synthetic|PATH|hub:NAME",
    )
    add("--count", 200, "training samples of each --task")
    add(
        "--samples",
        Path,
        "a task of your own; repeatable",
        dest="files",
        action="append",
        metavar="FILE.jsonl",
    )
    add("--method", "pasta:alpha=0.01", "what each head is steered by", metavar="SPEC")
    add("--by", "probability", "of the right continuation", choices=("probability", "accuracy"))
    add(
        "--halving",
        bool,
        "drop the worse half of the heads after a quarter of the samples, and again after"
        " half of them",
    )
    add(
        "--top",
        int,
        "write heads.json with the best K heads of the task, or of the tasks together, less"
        " those that gain nothing",
        metavar="K",
    )
    add(
        "--combine",
        "intersection",
        "of the best K of several tasks",
        choices=("intersection", "union"),
    )
    add_system_as(add)
    add("--seed", 0, "of every random draw")
    add_ray(add)
    add("--out", Path("runs/profile"), "a folder", action=RunFolder)
    add_dry_run(add)
    add_report(add)
    profile.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import knobs
    from holdfast.analysis.summary import refuse_other_command
    from holdfast.papers.zhang2024.profiling import check_folder, estimate, profile
    from holdfast.report import write_summary
    from holdfast.report.profile import profile_page, write_profile

    check_prices(arguments)
    if arguments.top is not None:
        knobs.whole_number("profile", "top", arguments.top, 1)
    page = page_path(arguments, arguments.out)
    plan, samples = _plan(arguments), _samples(arguments)
    refuse_other_command(arguments.out, "profile")
    for name, some in samples.items():
        check_folder(arguments.out / name, some, plan, command_line())
    model = load_model(arguments)
    arguments.kept = arguments.out
    if arguments.dry_run:
        for name, some in samples.items():
            print(f"{name}: {estimate(model, some, plan)}")
        return
    rankings, lines_by_task = [], {}
    for name, some in samples.items():
        with Bar(len(some), "sample") as bar:
            result = profile(
                model,
                some,
                arguments.out / name,
                plan,
                command=command_line(),
                progress=bar,
                tell=bar.tell,
            )
        rankings.append(result.ranking)
        lines = write_profile(arguments.out / name)
        print(*lines, sep="\n")
        lines_by_task[name] = [
            line for line in lines if not line.startswith(("Ranking:", "Figure:"))
        ]
        write_summary(arguments.out / name)
    write_page(arguments, profile_page(arguments.out, lines_by_task), page)
    if arguments.top is not None:
        _write_heads(arguments, rankings, list(samples))


def _plan(arguments: argparse.Namespace) -> ProfilingPlan:
    from holdfast import methods
    from holdfast.papers.zhang2024.profiling import ProfilingPlan

    chosen = methods.parse(arguments.method)
    steering = methods.of_kind(chosen, methods.Kind.LOG_ODDS)
    if len(chosen) != 1 or not steering:
        raise UsageError(
            f"--method takes one attention method to steer each head by, not {arguments.method!r}."
        )
    return ProfilingPlan(
        steering[0],
        arguments.by,
        arguments.halving,
        system_as=arguments.system_as,
        seed=arguments.seed,
    )


def _samples(arguments: argparse.Namespace) -> dict[str, Any]:
    """The samples of every task, by its name."""
    from holdfast.papers import zhang2024 as tasks
    from holdfast.papers.zhang2024.profiling import read_samples
    from holdfast.papers.zhang2024.profiling.samples import task_samples

    samples: dict[str, Any] = {path.stem: read_samples(path) for path in arguments.files or ()}
    if len(samples) < len(arguments.files or ()):
        raise UsageError(
            f"Two of the files {', '.join(map(str, arguments.files))} have one name, which names"
            " their folders; rename one."
        )
    if arguments.task:
        settings = tasks.Settings(tuple(arguments.task), arguments.count, "train")
        data = tasks.load_data(arguments.data or [tasks.SYNTHETIC], settings)
        if doubled := next((name for name in settings.tasks if name in samples), None):
            raise UsageError(
                f"--task {doubled} and a file of samples have one name, which names their folders;"
                " rename the file."
            )
        samples |= {
            name: task_samples(data, tasks.CATALOGUE[name], settings) for name in settings.tasks
        }
    if not samples:
        raise UsageError("There is nothing to profile heads on; give --task or --samples.")
    return samples


def _write_heads(
    arguments: argparse.Namespace, rankings: Sequence[Ranking], names: Sequence[str]
) -> None:
    """Writes the best heads of all tasks together, and prints where they are."""
    from holdfast import methods
    from holdfast.analysis.profile import choose_heads, read_gains

    best = getattr(methods, arguments.combine)(rankings, arguments.top)
    gains = [read_gains(arguments.out / name) for name in names]
    file = arguments.out / "heads.json"
    file.unlink(missing_ok=True)  # of an earlier choice, which must not pass for this one
    chosen = choose_heads(best, gains, arguments.combine)
    methods.write_heads(file, chosen.heads)
    print(f"{len(chosen.heads)} heads: {file.resolve()}")
    if chosen.distinct:
        print(chosen.line())
    else:
        print(f"holdfast: {chosen.line()}", file=sys.stderr)
