"""`holdfast reproduce`: makes a paper's figures and tables with your model."""

from pathlib import Path
from typing import Annotated, ClassVar

from holdfast import drift
from holdfast.cli.shared.command import Arg, Command, option_of
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.model_checks import check_layered_model, check_model_exists
from holdfast.cli.shared.model_loading import load_layered_model, load_model
from holdfast.cli.shared.options import (
    ModelOptions,
    RunOptions,
    SeedOptions,
)
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.errors import UsageError
from holdfast.files import short_path
from holdfast.methods import Ability
from holdfast.models.model_names import is_url
from holdfast.papers import li2024
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.findings import scale_of
from holdfast.study.capability import default_capability, load_capability
from holdfast.validation.ranges import whole_number

PAPERS = ("li2024", "zhang2024")
# the options that only the other paper has
_OTHER_PAPERS = {"li2024": ("data", "task"), "zhang2024": ("base", "endpoint")}
_LAYERS = "attention and embeddings"  # what the figures read in a model's layers

EXAMPLES = """examples:
  holdfast reproduce li2024 --out runs/li2024
  holdfast reproduce li2024 --model chat-model --base base-model --scale paper \\
      --capability mmlu:hub --out runs/li2024
  holdfast reproduce zhang2024 --out runs/zhang2024
  holdfast reproduce zhang2024 --model chat-model --data bios.jsonl --data counterfact.json \\
      --scale paper"""


class ReproduceArguments(ModelOptions, SeedOptions, RunOptions):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.LAYERS})

    paper: Annotated[str, Arg("PAPER", positional=True, choices=PAPERS)]
    """li2024 or zhang2024"""
    base: Annotated[str | None, Arg("MODEL")] = None
    """li2024: the model before its chat training, for Figure 8"""
    endpoint: Annotated[str | None, Arg("URL")] = None
    """li2024: the endpoint of Figure 9's model, named by --endpoint-model (default: Figure 9 uses
    the model itself)"""
    suite: Annotated[str, Arg("SUITE")] = "starter"
    """li2024: the system prompts and their probes, as for holdfast drift"""
    capability: str | None = None
    """li2024: as for holdfast calibrate"""
    data: Annotated[list[str] | None, Arg("synthetic|PATH")] = None
    """zhang2024: as for holdfast tasks (default: synthetic)"""
    task: Annotated[list[str] | None, Arg("json|pronouns|bios|counterfact")] = None
    """zhang2024: repeat for several (default: all four)"""
    scale: Annotated[str, Arg("smallest|brief|small|paper")] = "small"
    """how much is run, from a smoke test to the size of the paper's own runs"""


def run(arguments: ReproduceArguments) -> None:
    paper = arguments.paper
    for name in _OTHER_PAPERS[paper]:
        if getattr(arguments, name):
            raise UsageError(f"{option_of(name)} has no effect in {paper}; leave it out.")
    if is_url(arguments.model):
        cure = "give a local --model"
        if paper == "li2024":
            cure = "give a local --model, and the endpoint as --endpoint"
        raise UsageError(f"{arguments.model} is an endpoint, whose layers cannot be read; {cure}.")
    check_layered_model(arguments.model, _LAYERS)
    whole_number("reproduce", "seed", arguments.seed, 0)
    folder = run_folder("reproduce", model_of(arguments), paper, seed=arguments.seed)
    out = arguments.out or folder
    arguments.keep_work_in(out)
    reproduce = _reproduce_li2024 if paper == "li2024" else _reproduce_zhang2024
    page = reproduce(arguments, out)
    print(f"Page: {short_path(page)}")
    write_document({"folder": out.resolve(), "page": page.resolve()})


def _reproduce_li2024(arguments: ReproduceArguments, out: Path) -> Path:
    """Loads the models, runs the studies of Li et al. and returns the page."""
    scale = scale_of(arguments.scale, li2024.SCALES)
    suite = drift.load_suite(arguments.suite)
    capability = arguments.capability or default_capability(arguments.model, "likeliest")
    if scale.sweeps:  # loaded only to refuse a wrong one before the model is loaded
        load_capability(capability, scale.questions, arguments.seed)
    if arguments.base is not None:
        check_model_exists(arguments.base)
    # the endpoint comes first, so that a wrong address is refused before a model is loaded
    other = None if arguments.endpoint is None else load_model(arguments, arguments.endpoint)
    model = load_layered_model(arguments, _LAYERS)
    base = None
    if arguments.base is not None:
        base = load_layered_model(arguments, _LAYERS, arguments.base)
    setup = li2024.Li2024Setup(
        model=model,
        suite=suite,
        out=out,
        scale=scale,
        seed=arguments.seed,
        capability=capability,
        base=base,
        other=other,
        notify=print,
        watch=Bar.of("reply"),
    )
    return li2024.reproduce(setup)


def _reproduce_zhang2024(arguments: ReproduceArguments, out: Path) -> Path:
    """Loads the model, runs the studies of Zhang et al. and returns the page."""
    from holdfast.papers.zhang2024 import reproduction as zhang2024  # imports torch

    scale = scale_of(arguments.scale, zhang2024.SCALES)
    names = tuple(arguments.task or zhang2024.TASKS)
    data = tuple(arguments.data or (tasks.SYNTHETIC,))
    zhang2024.check_samples(data, names, scale, arguments.seed)  # before the model is loaded
    setup = zhang2024.Zhang2024Setup(
        model=load_layered_model(arguments, _LAYERS),
        out=out,
        scale=scale,
        seed=arguments.seed,
        data=data,
        notify=print,
        watch=Bar.of("sample"),
        tasks=names,
    )
    return zhang2024.reproduce(setup)


COMMAND = Command(
    "reproduce",
    run,
    ReproduceArguments,
    description=(
        "Runs Figures 3 to 9 of Li et al. 2024 (li2024), or the tables and figures of Zhang et"
        " al. 2024, PASTA (zhang2024), and writes one page: each figure, the paper's claims in"
        " our words, and whether this run supports them, contradicts them or cannot tell."
        " Repeating the command resumes it."
    ),
    examples=EXAMPLES,
    common=("model", "scale", "suite", "task", "out"),
)
