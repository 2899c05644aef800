"""`holdfast profile`: finds the attention heads to steer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from holdfast import methods
from holdfast.analysis.profile import Profile, choose_heads
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.json_output import summary_in, write_document
from holdfast.cli.shared.model_checks import check_layered_model
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.options import Spec
from holdfast.cli.shared.output import command_line, page_path, print_figures, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.errors import UsageError
from holdfast.files import short_path
from holdfast.papers import zhang2024 as tasks
from holdfast.plurals import count_of
from holdfast.records.folder import refuse_other_command
from holdfast.report import write_summary
from holdfast.report.profile_report import (
    chosen_line,
    profile_lines,
    profile_page,
    write_profile,
)
from holdfast.validation import ranges

if TYPE_CHECKING:
    from holdfast.papers.zhang2024.profiling import ProfilingPlan, Samples

DESCRIPTION = (
    "Steers each head of a model separately on the samples of one or several tasks, and ranks"
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


class ProfileArguments(
    options.ModelOptions,
    options.SystemOptions,
    options.SeedOptions,
    options.RayOptions,
    options.RunOptions,
    options.ReportOptions,
):
    abilities: ClassVar[frozenset[methods.Ability]] = frozenset({methods.Ability.LAYERS})

    task: Annotated[list[str] | None, Arg("json|pronouns|bios|counterfact")] = None
    """one of PASTA's tasks; repeatable"""
    data: Annotated[list[str] | None, Arg("synthetic|PATH")] = None
    """data of --task, as for holdfast tasks (default: synthetic)"""
    count: int = 200
    """training samples of each --task"""
    files: Annotated[list[Path] | None, Arg("FILE.jsonl", option="--samples")] = None
    """a file of your own samples; repeatable"""
    method: Spec = "pasta:alpha=0.01"
    """the method that steers each head"""
    by: Literal["probability", "accuracy"] = "probability"
    """how heads are ranked: by the probability of the right continuation, or by how often it is the
    likeliest"""
    top: Annotated[int | None, Arg("K")] = None
    """write heads.json with the best K heads of the task, or of the tasks combined, except those
    that gain nothing"""
    combine: Literal["intersection", "union"] = "intersection"
    """how the best K heads of several tasks are combined"""


def run(arguments: ProfileArguments) -> None:
    if arguments.ray is None:
        check_layered_model(arguments.model, "attention heads")
    from holdfast.papers.zhang2024.profiling import check_folder, profile  # imports torch

    if arguments.top is not None:
        ranges.whole_number("profile", "top", arguments.top, 1)
    out = arguments.out or run_folder("profile", model_of(arguments), seed=arguments.seed)
    page = page_path(arguments, out)
    plan = _plan(arguments)
    samples = _samples(arguments)
    refuse_other_command(out, "profile")
    for name, samples_of_task in samples.items():
        check_folder(out / name, samples_of_task, plan, command_line())
    model = load_model(arguments)
    arguments.keep_work_in(out)
    profiles: dict[str, Profile] = {}
    for name, samples_of_task in samples.items():
        with Bar(len(samples_of_task), "sample") as bar:
            profiles[name] = profile(
                model, samples_of_task, out / name, plan, progress=bar, command=command_line()
            )
        _write_and_print(profiles[name], out / name)
    lines_by_task = {name: profile_lines(profiled) for name, profiled in profiles.items()}
    write_page(arguments, profile_page(out, lines_by_task), page)
    heads: Path | None = None
    if arguments.top is not None:
        heads = _write_heads(out, profiles, arguments.top, arguments.combine)
    summaries = {name: summary_in(out / name) for name in samples}
    write_document(
        {"folder": out.resolve(), "page": page.resolve(), "summaries": summaries, "heads": heads}
    )


def _write_and_print(profiled: Profile, folder: Path) -> None:
    """Writes the ranking, the figures and the summary of a task, and prints its best heads."""
    ranking, *figures = write_profile(profiled, folder)
    print(*profile_lines(profiled), f"Ranking: {short_path(ranking)}", sep="\n")
    print_figures(figures)
    write_summary(folder)


def _plan(arguments: ProfileArguments) -> ProfilingPlan:
    """Reads how heads are profiled.

    Raises:
        UsageError: --method is not a single method of attention.
    """
    from holdfast.papers.zhang2024.profiling import ProfilingPlan

    parsed = methods.parse(arguments.method)
    attention = methods.compile_methods(parsed).attention
    if len(parsed) != 1 or not attention:
        raise UsageError(
            f"--method takes one attention method to steer each head, not {arguments.method!r}."
        )
    return ProfilingPlan(attention[0], arguments.by, system_as=arguments.system_as)


def _samples(arguments: ProfileArguments) -> dict[str, Samples]:
    """Reads the samples of each task and file, by the name of its folder.

    Raises:
        UsageError: there are none, or two of the folders would have the same name.
    """
    from holdfast.papers.zhang2024.profiling import read_samples
    from holdfast.papers.zhang2024.profiling.profiling_samples import task_samples

    samples: dict[str, Samples] = {}
    for path in arguments.files or ():
        samples[path.stem] = read_samples(path)
    names = [*(path.stem for path in arguments.files or ()), *(arguments.task or ())]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise UsageError(
            f"Two of the tasks and files of samples are called {repeated!r}, and so would their"
            " folders be; rename a file, or give a task once."
        )
    if arguments.task:
        settings = tasks.Settings(
            tuple(arguments.task), arguments.count, "train", seed=arguments.seed
        )
        data = tasks.load_data(arguments.data or [tasks.SYNTHETIC], settings)
        for name in settings.tasks:
            samples[name] = task_samples(data, tasks.CATALOGUE[name], settings)
    if not samples:
        raise UsageError("There are no samples to profile heads on; give --task or --samples.")
    return samples


def _write_heads(
    out: Path, profiles: Mapping[str, Profile], top: int, combine: Literal["intersection", "union"]
) -> Path:
    """Writes the best heads of the combined tasks, except those that gain nothing.

    Args:
        top: how many of the best heads.
    """
    combine_rankings = methods.intersection if combine == "intersection" else methods.union
    best = combine_rankings([profiled.ranking for profiled in profiles.values()], top)
    gains = [profiled.gains for profiled in profiles.values()]
    file = (out / "heads.json").resolve()
    file.unlink(missing_ok=True)  # from an earlier choice, which must not be mistaken for this one
    chosen = choose_heads(best, gains, combine)
    methods.write_heads(file, chosen.heads)
    print(f"{count_of(len(chosen.heads), 'head')}: {short_path(file)}")
    line = chosen_line(chosen)
    if chosen.certain:
        print(line)
    else:
        note(line)
    return file


COMMAND = Command(
    "profile",
    run,
    ProfileArguments,
    DESCRIPTION,
    EXAMPLES,
    common=("model", "task", "files", "top", "out"),
)
