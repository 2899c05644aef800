"""`holdfast precedent`: does a model follow its system prompt, or its own earlier replies?"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from holdfast import drift, methods
from holdfast.analysis.precedent_results import precedent_of
from holdfast.analysis.series import count_looks
from holdfast.analysis.verdicts import error_at
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.dry_run import dry_run_size
from holdfast.cli.shared.estimates import Measured, WorkItem, check_prices, print_estimate
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.output import command_line, print_figures
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.drift import Suite
from holdfast.drift.remaining import missing_numbers
from holdfast.methods import Method, spec_of
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of
from holdfast.records import Run
from holdfast.report.precedent_tables import precedent_lines, write_precedent_figures
from holdfast.study import precedent

EXAMPLES = """examples:
  holdfast precedent --model qwen-0.5b --suite everyday
  holdfast precedent --model qwen-0.5b --suite everyday --method boost:factor=4"""


class PrecedentArguments(
    options.SuiteOptions,
    options.ModelOptions,
    options.MethodsOptions,
    options.DrawOptions,
    options.RunOptions,
    options.DryRunOptions,
):
    prompts: Annotated[str | None, Arg("ID,ID,...")] = None
    """the ids of the prompts to use (default: all prompts of the suite)"""
    conversations: int = precedent.PrecedentSettings.conversations
    """how many pairs of histories to make; the prompts take turns"""
    max_new_tokens: int = precedent.PrecedentSettings.sampling.max_new_tokens
    """the most tokens of a reply"""
    draws: int = precedent.PrecedentSettings.draws
    """how many replies to draw for each reply of a history, of which the best is taken"""
    batch: int = precedent.PrecedentSettings.batch
    """conversations that run side by side"""


@dataclass(frozen=True)
class PrecedentRun:
    """The pairs of histories of a command, as arguments of `precedent.run`."""

    model: ChatModel
    suite: Suite
    out: Path
    settings: precedent.PrecedentSettings
    steerings: Sequence[tuple[Method, ...]]

    @property
    def replies(self) -> int:
        """How many replies there are in all."""
        per_pair = [precedent.count_replies(self.settings, methods) for methods in self.steerings]
        return self.settings.conversations * sum(per_pair)

    def run(self, title: str) -> Run:
        """Makes the missing pairs of histories and asks for the next replies, with a bar."""
        with Bar(self.replies, title=title) as bar:
            running = drift.Running(progress=bar, command=command_line())
            return precedent.run(
                self.model, self.suite, self.out, self.settings, self.steerings, running
            )


def run(arguments: PrecedentArguments) -> None:
    check_prices(arguments)
    specs = [spec for spec in dict.fromkeys(arguments.method or ()) if spec != "none"]
    steerings = [(), *map(methods.parse, specs)]
    suite = drift.load_suite(arguments.suite)
    if arguments.prompts:
        suite = suite.only(arguments.prompts.split(","))
    settings = precedent.PrecedentSettings(
        conversations=arguments.conversations,
        seed=arguments.seed,
        sampling=arguments.sampling_for(arguments.model),
        draws=arguments.draws,
        batch=arguments.batch,
    )
    precedent.draw_scenarios(suite, settings)  # refuses a suite before the model is loaded
    name = model_of(arguments)
    out = arguments.out or run_folder("precedent", name, arguments.suite, seed=arguments.seed)
    model = load_model(arguments)
    arguments.keep_work_in(out)
    study = PrecedentRun(model, suite, out, settings, steerings)
    if arguments.dry_run:
        _estimate(arguments, study)
        return
    title = f"{count_of(settings.conversations, 'pair')} of histories, and the next replies"
    run = study.run(title)
    results = precedent_of(run.precedents, error_at(count_looks(run)))
    print(*precedent_lines(results), sep="\n")
    figures = write_precedent_figures(results, out / "figures")
    print_figures(figures)
    write_document({"folder": out.resolve(), "results": results, "files": figures})


def _estimate(arguments: PrecedentArguments, study: PrecedentRun) -> None:
    """Makes the first missing pairs of histories, without a method, and prints an estimate."""
    pairs = study.settings.conversations
    missing = missing_numbers(study.out, list(map(spec_of, study.steerings)), range(pairs))
    left = missing[spec_of(())]
    measured = _measure(study, left[: dry_run_size(arguments.model, len(left), arguments.batch)])
    parts = [
        WorkItem(
            f"pairs under {spec_of(steering)}",
            pairs,
            len(missing[spec_of(steering)]),
            pairs * precedent.count_replies(study.settings, steering),
        )
        for steering in study.steerings
    ]
    print_estimate(arguments, parts, measured, study.out)


def _measure(study: PrecedentRun, numbers: Sequence[int]) -> Measured:
    """Makes the pairs of histories with these numbers, without a method, and times them."""
    if not numbers:
        return Measured([], 0, 0, 0, 0.0)
    count = len(numbers)
    up_to_last = replace(study.settings, conversations=numbers[-1] + 1)
    first_pairs = replace(study, settings=up_to_last, steerings=[()])
    pairs = count_of(study.settings.conversations, "pair")
    began = time.monotonic()
    run = first_pairs.run(f"--dry-run: {count} of {pairs} of histories")
    seconds = time.monotonic() - began
    tokens = [chat.tokens for chat in run.precedents if chat.conversation in numbers]
    replies = count * precedent.count_replies(study.settings)
    return Measured(tokens, count, replies, replies, seconds)


COMMAND = Command(
    "precedent",
    run,
    PrecedentArguments,
    description=(
        "Makes two histories for each system prompt, one whose replies keep its rules and one whose"
        " replies break them, and scores the reply to one more question after 0, 1, 3 or 6 of these"
        " replies, with the system prompt in view and without it. Repeating a command resumes it."
    ),
    examples=EXAMPLES,
    common=("model", "suite", "method", "conversations", "out"),
)
