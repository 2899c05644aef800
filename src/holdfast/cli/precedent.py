"""`holdfast precedent`: system prompt or earlier replies, which of them does a model follow?"""

from pathlib import Path

from holdfast import drift, methods
from holdfast.analysis.precedent_results import precedent_of
from holdfast.cli import options
from holdfast.cli.json_output import write_document
from holdfast.cli.loading import load_model
from holdfast.cli.options import Command, OutFolder, Specs, SuiteName
from holdfast.cli.output import command_line, print_figures
from holdfast.cli.progress import Bar
from holdfast.common.sampling import Sampling
from holdfast.report.precedent_tables import precedent_lines, write_precedent_figures
from holdfast.report.wording import count_of
from holdfast.study import precedent

EXAMPLES = """examples:
  holdfast precedent --model qwen-0.5b --suite everyday
  holdfast precedent --model qwen-0.5b --suite everyday --method boost:factor=4"""


class PrecedentArguments(options.ModelOptions, options.SeedOptions):
    suite: SuiteName = "starter"
    """the suite whose prompts are used; its rules need several probes, and no judge"""
    conversations: int = precedent.Settings.conversations
    """number of pairs of histories; the prompts take turns"""
    method: Specs = None
    """a method that steers the next reply; repeat to compare. Histories are made without one"""
    draws: int = precedent.Settings.draws
    """every reply of a history is the best of so many draws"""
    temperature: float = precedent.Settings.sampling.temperature
    """of all replies"""
    max_new_tokens: int = precedent.Settings.sampling.max_new_tokens
    """the longest reply"""
    batch: int = precedent.Settings.batch
    """conversations that run side by side"""
    out: OutFolder = Path("runs/precedent")
    """the folder of the results"""


def run(arguments: PrecedentArguments) -> None:
    chosen = [methods.parse("none"), *map(methods.parse, arguments.method or ())]
    suite = drift.load_suite(arguments.suite)
    settings = precedent.Settings(
        conversations=arguments.conversations,
        seed=arguments.seed,
        sampling=Sampling(arguments.temperature, 0.9, arguments.max_new_tokens),
        draws=arguments.draws,
        batch=arguments.batch,
    )
    precedent.subjects_of(suite, settings)  # refuses a suite before the model is loaded
    model = load_model(arguments)
    arguments.keep_work_in(arguments.out)
    title = f"{count_of(settings.conversations, 'pair')} of histories, and the replies after them"
    with Bar(len(chosen) * settings.conversations, "conversation", title) as bar:
        running = drift.Running(progress=bar, command=command_line())
        made = precedent.run(model, suite, arguments.out, settings, chosen, running)
    results = precedent_of(made.precedents)
    print(*precedent_lines(results), sep="\n")
    figures = write_precedent_figures(results, arguments.out / "figures")
    print_figures(figures)
    write_document({"folder": arguments.out.resolve(), "results": results, "files": figures})


COMMAND = Command(
    "precedent",
    "see whether a model follows its system prompt or its own earlier replies",
    run,
    PrecedentArguments,
    "Makes two histories for each system prompt, one whose replies keep its rules and one whose"
    " replies break them, and scores the reply to one more question after 0, 1, 3 or 6 of them,"
    " with the system prompt in view and without it. Repeating a command resumes it.",
    EXAMPLES,
    common=("model", "suite", "out"),
)
