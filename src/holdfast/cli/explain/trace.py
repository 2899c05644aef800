"""`holdfast trace` and `holdfast geometry`: read attention and hidden states in self-chats."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

from holdfast import drift, methods
from holdfast.analysis import summary
from holdfast.analysis.decay import Trace, trace_of
from holdfast.cli.shared import options
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_loading import check_model_exists, load_layered_model, load_model
from holdfast.cli.shared.options import Arg, Command
from holdfast.cli.shared.output import command_line, page_path, print_figures, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.drift.benchmark import check_before_loading
from holdfast.drift.remaining import count_replies
from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.methods import Ability
from holdfast.papers.li2024 import geometry
from holdfast.plurals import count_of
from holdfast.records.folder import refuse_other_command
from holdfast.report.geometry_report import geometry_lines, geometry_page, write_geometry_figures
from holdfast.report.trace_figures import write_trace_figures
from holdfast.report.trace_report import trace_lines, trace_page
from holdfast.study import attention_decay
from holdfast.validation.ranges import whole_number

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


class _StudyOptions(
    options.SuiteOptions,
    options.ModelOptions,
    options.ConversationsOptions,
    options.RoundsOptions,
    options.DrawOptions,
    options.RunOptions,
    options.ReportOptions,
):
    """The options of self-chats whose attention or hidden states are read."""


class TraceArguments(_StudyOptions, options.MethodOptions):
    compare: Annotated[str | None, Arg("MODEL")] = None
    """a second model, to compare with the first"""


class GeometryArguments(_StudyOptions):
    abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.LAYERS})

    conversations: int = 12
    """how many conversations to run"""


def _folder(command: str, arguments: _StudyOptions) -> Path:
    model = model_of(arguments)
    return arguments.out or run_folder(command, model, arguments.suite, seed=arguments.seed)


def _check_counts(command: str, arguments: _StudyOptions) -> None:
    """Refuses impossible counts in the name of the command, where `Settings` would say "drift"."""
    whole_number(command, "rounds", arguments.rounds, 1)
    whole_number(command, "conversations", arguments.conversations, 1)


def _load_traced(arguments: TraceArguments, name: str | None = None) -> "LocalModel":
    """Loads a model, and refuses it if its attention mass cannot be read."""
    # a model in another engine also passes the check below, if it has what a trace needs
    model = cast("LocalModel", load_model(arguments, name))
    attention_decay.check(model)
    return model


def run(arguments: TraceArguments) -> None:
    _check_counts("trace", arguments)
    out = _folder("trace", arguments)
    page = page_path(arguments, out)
    settings = replace(
        attention_decay.traced_settings(arguments.conversations, arguments.rounds, arguments.seed),
        sampling=arguments.sampling_for(arguments.model),
    )
    method = methods.parse(arguments.method)
    suite = drift.load_suite(arguments.suite)
    refuse_other_command(out, "trace")
    count = 2 if arguments.compare else 1
    folders = [out / name for name in summary.MODELS[:count]]
    for folder in folders:
        check_before_loading(suite, folder, settings, [method], command=command_line())
    models = _load_models(arguments)
    arguments.keep_work_in(out)
    traces: list[Trace] = []
    for folder, model in zip(folders, models, strict=True):
        trace = _trace(model, suite, folder, settings, method)
        write_whole(folder / "trace.json", json.dumps(trace.to_json(), indent=1) + "\n")
        print(*trace_lines(trace), sep="\n")
        traces.append(trace)
    figures = write_trace_figures(traces[0], out / "figures", traces[1:])
    print_figures(figures)
    summary.write_trace_summaries(traces, out)
    write_page(arguments, trace_page(traces, out), page)
    write_run_document(out, page, figures)


def _load_models(arguments: TraceArguments) -> "list[LocalModel]":
    """Loads the model of --model, and that of --compare if it is given and another one."""
    other = arguments.compare
    if not other:
        return [_load_traced(arguments)]
    if other == arguments.model:
        raise _same_model(other)
    check_model_exists(other)  # before the first model is loaded
    models = [_load_traced(arguments), _load_traced(arguments, other)]
    if models[0].fingerprint == models[1].fingerprint:
        raise _same_model(other)
    return models


def _same_model(name: str) -> UsageError:
    return UsageError(f"--compare {name} is the same model as the first; name another one.")


def _trace(
    model: "LocalModel",
    suite: drift.Suite,
    folder: Path,
    settings: drift.Settings,
    method: Sequence[methods.Method],
) -> Trace:
    """Holds the self-chats of a model, with a progress bar, and describes their attention."""
    conversations = count_of(settings.conversations, "conversation")
    title = f"{conversations} of {count_of(settings.rounds, 'round')} with {model.name}"
    total = count_replies(suite, settings, None, range(settings.conversations))
    with Bar(total, title=title, waves=1) as bar:
        running = drift.Running(progress=bar, command=command_line())
        traced = attention_decay.run_traced(model, suite, folder, settings, method, running)
    return trace_of(model.name, traced.records, traced.dialogs)


def run_geometry(arguments: GeometryArguments) -> None:
    _check_counts("geometry", arguments)
    out = _folder("geometry", arguments)
    page = page_path(arguments, out)
    settings = drift.Settings(
        rounds=arguments.rounds,
        conversations=arguments.conversations,
        seed=arguments.seed,
        sampling=arguments.sampling_for(arguments.model),
        adoption=False,
    )
    suite = drift.load_suite(arguments.suite)
    folder = out / summary.DIALOGS
    refuse_other_command(out, "geometry")
    check_before_loading(suite, folder, settings, [()], command=command_line())
    model = load_layered_model(arguments, "hidden states")
    arguments.keep_work_in(out)
    measured = geometry.study(model, suite, out, settings, Bar.of("reply"), command_line())
    lines = geometry_lines(measured, settings.conversations)
    print(*lines, sep="\n")
    figures = write_geometry_figures(measured, out)
    print_figures(figures)
    summary.write_geometry_summaries(measured, out)
    write_page(arguments, geometry_page(measured, lines, out), page)
    write_run_document(out, page, figures)


COMMAND = Command(
    "trace",
    run,
    TraceArguments,
    description=(
        "Reads the attention mass on the system prompt at every generated token of self-chats, in"
        " every head (Li et al. 2024, Figure 4), compares it with uniform attention, and says"
        " whether probes are lost where the mass is low."
    ),
    examples=(
        "examples:\n  holdfast trace\n  holdfast trace --model chat-model --compare base-model "
        "     two models side by side (Figure 8)"
    ),
    common=("model", "suite", "compare", "conversations", "out"),
)
GEOMETRY = Command(
    "geometry",
    run_geometry,
    GeometryArguments,
    description=(
        "Draws the norms of a model's embeddings (Li et al. 2024, Figure 7), and reads the"
        " effective dimension and the opening angle of its hidden states over self-chats."
    ),
    examples=(
        "examples:\n  holdfast geometry\n"
        "  holdfast geometry --model Qwen/Qwen2.5-0.5B-Instruct --conversations 40"
    ),
    common=("model", "suite", "conversations", "rounds", "out"),
)
