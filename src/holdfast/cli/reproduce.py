"""`holdfast reproduce`: a paper's figures and tables on your model."""

from pathlib import Path
from typing import Annotated, ClassVar

from holdfast import drift
from holdfast.cli.json_output import write_document
from holdfast.cli.model_loading import load_layered_model, load_model
from holdfast.cli.options import Arg, Command, ModelOptions, RunOptions, SeedOptions, option_of
from holdfast.cli.progress import Bar
from holdfast.cli.run_names import model_of, run_folder
from holdfast.errors import UsageError
from holdfast.methods import Ability
from holdfast.models.model_names import is_url
from holdfast.papers import li2024
from holdfast.papers.findings import scale_of
from holdfast.study.capability import usual_capability

PAPERS = ("li2024", "zhang2024")
# the options that only the other paper has
_FOREIGN = {"li2024": ("data", "task"), "zhang2024": ("base", "endpoint")}

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
    """li2024: endpoint of Figure 9's model; with --endpoint-model (default: the model itself)"""
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
    if given := next((name for name in _FOREIGN[paper] if getattr(arguments, name)), None):
        raise UsageError(f"{option_of(given)} plays no part in {paper}; leave it out.")
    if is_url(arguments.model):
        cure = "give a local --model"
        if paper == "li2024":
            cure = "give a local --model, and the endpoint as --endpoint"
        raise UsageError(f"{arguments.model} is an endpoint, whose layers cannot be seen; {cure}.")
    folder = run_folder("reproduce", model_of(arguments), paper, seed=arguments.seed)
    out = arguments.out or folder
    arguments.keep_work_in(out)
    reproduce = _reproduce_li2024 if paper == "li2024" else _reproduce_zhang2024
    page = reproduce(arguments, out)
    print(f"Page: {page.resolve()}")
    write_document({"folder": out.resolve(), "page": page.resolve()})


_LAYERS = "attention and embeddings"  # what the papers' figures need of a model


def _reproduce_li2024(arguments: ReproduceArguments, out: Path) -> Path:
    scale = scale_of(arguments.scale, li2024.SCALES)
    suite = drift.load_suite(arguments.suite)
    model = load_layered_model(arguments, _LAYERS)
    other = None if arguments.endpoint is None else load_model(arguments, arguments.endpoint)
    base = None
    if arguments.base is not None:
        base = load_layered_model(arguments, _LAYERS, arguments.base)
    setup = li2024.Li2024Setup(
        model=model,
        suite=suite,
        out=out,
        scale=scale,
        seed=arguments.seed,
        capability=arguments.capability or usual_capability(arguments.model, "likeliest"),
        base=base,
        other=other,
        notify=print,
        watch=Bar.of("reply"),
    )
    return li2024.reproduce(setup)


def _reproduce_zhang2024(arguments: ReproduceArguments, out: Path) -> Path:
    from holdfast.papers.zhang2024 import reproduction as zhang2024  # imports torch

    scale = scale_of(arguments.scale, zhang2024.SCALES)
    setup = zhang2024.Setup(
        model=load_layered_model(arguments, _LAYERS),
        out=out,
        scale=scale,
        seed=arguments.seed,
        data=tuple(arguments.data or ("synthetic",)),
        notify=print,
        watch=Bar.of("sample"),
        tasks=tuple(arguments.task or zhang2024.TASKS),
    )
    return zhang2024.reproduce(setup)


COMMAND = Command(
    "reproduce",
    "reproduce a paper's figures on your model, and judge its claims",
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
