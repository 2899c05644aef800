"""`holdfast trace`: how attention to the prompt decays."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

from holdfast.cli.options import (
    RunFolder,
    add_model,
    add_report,
    command_line,
    load_model,
    page_path,
    write_page,
)
from holdfast.cli.progress import Bar, tell_figures
from holdfast.errors import UsageError
from holdfast.files import write_whole


def add_parser(commands) -> None:
    trace = commands.add_parser(
        "trace",
        help="see how attention to the prompt decays",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Reads the attention mass on the system prompt at every generated token of self-chats,"
            " in every head (Li et al. 2024, Figure 4),\ncompares it with even attention, and says"
            " whether low mass goes with lost probes."
        ),
        epilog=(
            "examples:\n  holdfast trace\n  holdfast trace --model chat-model --compare base-model "
            "     two models side by side (Figure 8)"
        ),
    )
    add = trace.option
    add_model(add)
    add("--compare", str, "a second model, held beside the first", metavar="MODEL")
    add("--suite", "starter", "the suite whose prompts are used")
    add("--conversations", 40, "number of conversations")
    add("--rounds", 8, "rounds per conversation")
    add(
        "--head",
        str,
        "shown by itself (default: the one whose mass falls most)",
        metavar="LAYER.HEAD",
    )
    add("--method", "none", "applied to the agent", metavar="SPEC")
    add("--divergence", bool, "measure how far replies diverge from those of a fresh dialog too")
    add("--seed", 0, "of every random draw")
    add("--out", Path("runs/trace"), "a folder", action=RunFolder)
    add_report(add)
    trace.set_defaults(run=run, allow_code=False)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import drift, methods
    from holdfast.analysis.decay import describe
    from holdfast.analysis.study_summary import MODELS, write_trace_summaries
    from holdfast.analysis.summary import refuse_other_command
    from holdfast.drift.benchmark import check_folder
    from holdfast.report.study_figures import write_trace_figures
    from holdfast.report.trace import lines, trace_page
    from holdfast.report.wording import count_of
    from holdfast.study.decay import Sizes, check, hold, settings_for

    page = page_path(arguments, arguments.out)
    sizes = Sizes(
        conversations=arguments.conversations,
        rounds=arguments.rounds,
        seed=arguments.seed,
        divergence=arguments.divergence,
    )
    head = None
    if arguments.head:
        if not re.fullmatch(r"\d+\.\d+", arguments.head):
            raise UsageError(
                f"--head takes one head as LAYER.HEAD, such as 3.0, not {arguments.head!r}."
            )
        (head,) = methods.read_heads(arguments.head)
    chosen, suite = methods.parse(arguments.method), drift.load_suite(arguments.suite)
    refuse_other_command(arguments.out, "trace")
    folders = [arguments.out / name for name in MODELS[: 2 if arguments.compare else 1]]
    for folder in folders:
        check_folder(suite, folder, settings_for(sizes), [chosen], command=command_line())
    first = load_model(arguments)
    check(first, head)
    models = [first]
    if arguments.compare:
        arguments.model = arguments.compare
        models.append(load_model(arguments))
        check(models[1], head)
        if models[1].fingerprint == first.fingerprint:
            raise UsageError(
                f"{arguments.compare!r} is the same model as the first; name another one to compare"
                " it with."
            )
    arguments.kept = arguments.out
    traces = []
    for folder, model in zip(folders, models, strict=True):
        conversations = count_of(sizes.conversations, "conversation")
        title = f"{conversations} of {count_of(sizes.rounds, 'round')} with {model.name}"
        with Bar(sizes.conversations * sizes.rounds, title=title) as bar:
            dialogs = hold(model, suite, folder, sizes, chosen, bar, command_line())
        traces.append(describe(model.name, *dialogs, head))
        write_whole(folder / "trace.json", json.dumps(traces[-1], indent=1) + "\n")
        print(*lines(traces[-1]), sep="\n")
    tell_figures(write_trace_figures(traces[0], arguments.out / "figures", traces[1:]))
    write_trace_summaries(traces, arguments.out)
    write_page(arguments, trace_page(traces, arguments.out), page)
