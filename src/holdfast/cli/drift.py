"""`holdfast drift`: measure drift in self-chats."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.drift_folder import folder_name
from holdfast.cli.drift_options import add_options, settings_of
from holdfast.cli.dry_run import DriftRun, check_prices, estimate_conversations
from holdfast.cli.judging import judging_of
from holdfast.cli.options import (
    command_line,
    is_url,
    load_model,
    page_option,
    page_path,
    tell_small_model,
)
from holdfast.cli.own_dialogs import load_dialogs
from holdfast.cli.printed import print_run
from holdfast.cli.progress import Bar
from holdfast.cli.user_model import load_both, load_user_turns, with_user_prompt

if TYPE_CHECKING:
    from holdfast.drift import Settings, Suite
    from holdfast.drift.dialogs import Dialogs, UserTurns

EXAMPLES = """examples:
  holdfast drift                               the model in the package on its own prompts
  holdfast drift --method none --method split-softmax:exponent=0.5 --out runs/fix
  holdfast drift --model meta-llama/Llama-3.2-1B-Instruct --suite core --rounds 8
  holdfast drift --model http://localhost:8000/v1 --endpoint-model my-model --suite core
  holdfast drift --model vllm:meta-llama/Llama-3.2-1B-Instruct --engine max_model_len=8192
  holdfast drift --suite li2024:hundred_system_prompts.py --scoring released
  holdfast drift --suite sys-ifeval:sys_ifeval.jsonl.gz --rounds 4 --conversations 8
  holdfast drift --divergence                  drift without probes, beside stability and mass
  holdfast drift --user-model http://localhost:8000/v1     another model plays the user
  holdfast drift --user-turns everyday         scripted user messages, and no user model
  holdfast drift --suite my_bot.yaml --dialogs logs.jsonl  your own logs, replayed and probed
  holdfast drift --suite my_bot.yaml --persona "You are Ada, hungry and in a hurry."

Repeating a command resumes it; with more --conversations or another --method it extends the run.
Methods are listed by `holdfast methods`, measures by `holdfast measures`."""


def add_parser(commands) -> None:
    drift = commands.add_parser(
        "drift",
        help="measure drift in self-chats",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Two copies of a model talk under different system prompts; at every round a probe"
            " asks, and a measure scores, whether the agent still follows its own (stability) or"
            " follows the other's (adoption). Li et al. 2024, Figure 3."
        ),
    )
    add_options(drift.option)
    drift.set_defaults(run=run, default=drift.get_default)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import drift, methods, report
    from holdfast.drift.benchmark import check_folder
    from holdfast.drift.pairing import settled

    check_prices(arguments)
    settings = replace(settings_of(arguments), divergence=arguments.divergence)
    chosen = [methods.parse(spec) for spec in arguments.method or ["none"]]
    # an endpoint says its model's name, after which the folder is called; a local model loads last
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    suite = drift.load_suite(
        arguments.suite, scoring=arguments.scoring, allow_code=arguments.allow_code
    )
    tell_small_model(arguments)
    out = arguments.out or Path("runs") / folder_name(arguments, suite)
    page = page_path(arguments, out)
    for note in suite.notes:
        print(note, file=sys.stderr)
    user_turns = load_user_turns(arguments)
    dialogs = load_dialogs(arguments, suite, settings)
    given = dialogs or user_turns
    if given is None:
        suite, settings = with_user_prompt(suite, settings, arguments.persona)
    settings = settled(suite, settings, given)
    check_folder(suite, out, settings, chosen, given, command_line())
    model, user_model = load_both(arguments, endpoint)
    _tell_foreign_files(arguments.method or (), model)
    # of the run and its baseline, so that a judge loads once
    cast = drift.Cast(user_model, dialogs, judging_of(arguments), user_turns)
    arguments.kept = out
    planned = DriftRun(model, suite, out, settings, chosen, cast)
    if arguments.dry_run:
        more = [planned.baseline()] if arguments.baseline else []
        estimate_conversations(arguments, planned, more)
        return
    title = _title(suite, settings, given, len(chosen))
    total = len(chosen) * settings.conversations * settings.rounds
    with Bar(total, title=title, rounds=settings.rounds) as bar:
        running = drift.Running(progress=bar, command=command_line())
        run = drift.run(model, suite, out, settings, chosen, cast=cast, running=running)
    if arguments.baseline:
        planned.ask_baseline()
    print_run(run, arguments.details)
    report.write_summary(out)
    print(f"Report: {report.write([out], page, page_option(arguments)).resolve()}")


def _title(
    suite: Suite, settings: Settings, given: Dialogs | UserTurns | None, methods: int
) -> str:
    """How much there is to do."""
    from holdfast.drift.work import count_replies
    from holdfast.report.wording import count_of

    replies = methods * count_replies(suite, settings, given, range(settings.conversations))
    times = f" with each of {methods} methods" if methods > 1 else ""
    count, rounds = settings.conversations, count_of(settings.rounds, "round")
    work = (
        f"{count_of(count, 'dialog')} replayed, up to {rounds}"
        if settings.user_prompt == "replayed"
        else f"{count_of(count, 'conversation')} of {rounds}"
    )
    return (
        f"{work}{times}: {replies:,} replies of at most"
        f" {count_of(settings.sampling.max_new_tokens, 'token')}"
    )


def _tell_foreign_files(specs: Sequence[str], model) -> None:
    """Says where a method file was calibrated on another model."""
    from holdfast import methods

    for spec in filter(methods.is_file, specs):
        made_for = methods.read_method_file(spec.strip()).get("model_fingerprint")
        if made_for not in (None, model.fingerprint):
            print(
                f"holdfast: {spec} was calibrated on another model than {model.name}; calibrate"
                " again for this one.",
                file=sys.stderr,
            )
