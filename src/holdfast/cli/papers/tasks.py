"""`holdfast tasks`: runs the tasks of the PASTA paper (Zhang et al. 2024)."""

from typing import Annotated, Literal

from holdfast import methods
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.options import (
    ModelOptions,
    RayOptions,
    ReportOptions,
    RunOptions,
    SeedOptions,
    Specs,
)
from holdfast.cli.shared.output import command_line, page_path, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.zhang2024.evaluate import check_folder
from holdfast.plurals import count_of
from holdfast.report import write_summary
from holdfast.report.task_tables import table, tasks_page

DESCRIPTION = (
    "Runs the four tasks of Zhang et al. 2024 (JSON formatting, pronoun changing, Bias in Bios,"
    " CounterFact): prompting baselines on the unsteered model, and steering methods with the"
    " zero-shot prompt, on the same samples. Decoding is greedy. Repeating a command resumes it."
)

EXAMPLES = """examples:
  holdfast tasks --baseline zero-shot --baseline marked --baseline few-shot
  holdfast tasks --task json --task pronouns --instruction shortened --samples 500
  holdfast tasks --task counterfact --data counterfact.json --model\
 Qwen/Qwen2.5-0.5B-Instruct"""


class TasksArguments(ModelOptions, SeedOptions, RayOptions, RunOptions, ReportOptions):
    task: Annotated[list[str] | None, Arg("json|pronouns|bios|counterfact")] = None
    """a task to run; repeat for several (default: all four)"""
    method: Specs = None
    """a method that steers towards the emphasised part of the zero-shot prompt; repeat to compare
    several"""
    baseline: Annotated[list[str] | None, Arg("zero-shot|marked|quoted|few-shot")] = None
    """a prompt for the unsteered model; repeat to compare several (default: zero-shot)"""
    data: Annotated[list[str] | None, Arg("synthetic|PATH")] = None
    """CounterFact in ROME's JSON, its core as CSV, or Bias in Bios; once per kind (default:
    synthetic)"""
    instruction: Literal["original", "shortened", "rephrased"] = "original"
    """wording of the instruction, for json and pronouns"""
    split: Literal["train", "validation", "test"] = "test"
    """which part of the data the samples are from"""
    samples: int = 200
    """samples per task"""
    draws: int = 5
    """with few-shot: how often three demonstrations are drawn"""
    no_generation: bool = False
    """for bios and counterfact: compare only probabilities, without fluency"""
    batch: int = 32
    """samples that run side by side"""


def run(arguments: TasksArguments) -> None:
    out = arguments.out or run_folder("tasks", model_of(arguments), seed=arguments.seed)
    page = page_path(arguments, out)
    settings = _settings_of(arguments)
    steerings = [methods.parse(spec) for spec in arguments.method or ()]
    data = tasks.load_data(arguments.data or [tasks.SYNTHETIC], settings)
    check_folder(data, out, settings, command_line())  # before the model is loaded
    model = load_model(arguments)
    arguments.keep_work_in(out)
    with _progress_bar(settings, len(tasks.variants_of(settings, steerings))) as bar:
        running = tasks.Running(progress=bar, command=command_line())
        results = tasks.run(model, data, out, settings, steerings, running)
    print(table(results), end="")
    write_summary(out)
    write_page(arguments, tasks_page(results), page)
    write_run_document(out, page)


def _settings_of(arguments: TasksArguments) -> tasks.Settings:
    return tasks.Settings(
        tasks=tuple(arguments.task or tasks.CATALOGUE),
        samples=arguments.samples,
        split=arguments.split,
        instruction=arguments.instruction,
        baselines=tuple(arguments.baseline or ["zero-shot"]),
        draws=arguments.draws,
        seed=arguments.seed,
        batch=arguments.batch,
        generate=not arguments.no_generation,
    )


def _progress_bar(settings: tasks.Settings, num_variants: int) -> Bar:
    """A bar over all samples of all tasks, each asked once per variant of the prompt or model."""
    title = (
        f"{count_of(len(settings.tasks), 'task')} of {count_of(settings.samples, 'sample')}, each"
        f" asked in {count_of(num_variants, 'way')}"
    )
    return Bar(len(settings.tasks) * num_variants * settings.samples, "sample", title)


COMMAND = Command(
    "tasks",
    run,
    TasksArguments,
    DESCRIPTION,
    EXAMPLES,
    common=("model", "task", "method", "out"),
)
