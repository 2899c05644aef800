"""`holdfast trace`: reads the attention to the system prompt in self-chats."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from holdfast import drift, methods
from holdfast.analysis import summary
from holdfast.analysis.decay import Trace, trace_of
from holdfast.cli.explain.self_chats import SelfChatOptions, check_counts, folder_of
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.model_checks import check_model_exists
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.output import command_line, page_path, print_figures, write_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.drift.benchmark import check_before_loading
from holdfast.drift.remaining import count_replies
from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.plurals import count_of
from holdfast.records.folder import refuse_other_command
from holdfast.report.trace_figures import write_trace_figures
from holdfast.report.trace_report import trace_lines, trace_page
from holdfast.study import attention_decay

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


class TraceArguments(SelfChatOptions, options.MethodOptions):
    compare: Annotated[str | None, Arg("MODEL")] = None
    """a second model, to compare with the first"""


def run(arguments: TraceArguments) -> None:
    check_counts("trace", arguments)
    out = folder_of("trace", arguments)
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


def _load_traced(arguments: TraceArguments, name: str | None = None) -> "LocalModel":
    """Loads a model, and refuses it if its attention mass cannot be read."""
    # a model in another engine also passes the check below, if it has what a trace needs
    model = cast("LocalModel", load_model(arguments, name))
    attention_decay.check_traceable(model)
    return model


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
    total = count_replies(suite, settings, range(settings.conversations))
    with Bar(total, title=title, waves=1) as bar:
        running = drift.Running(progress=bar, command=command_line())
        traced = attention_decay.run_traced(model, suite, folder, settings, method, running)
    return trace_of(model.name, traced.records, traced.dialogs)


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
