"""`holdfast drift`: measures drift in conversations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from holdfast import drift, methods
from holdfast.analysis.drift_results import results_of
from holdfast.cli.shared import options
from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.drift_run import DriftRun
from holdfast.cli.shared.dry_run import estimate_run
from holdfast.cli.shared.estimates import check_prices
from holdfast.cli.shared.json_output import write_run_document
from holdfast.cli.shared.judge_loading import make_judging
from holdfast.cli.shared.model_checks import (
    note_repeated_requests,
    warn_of_default_steering,
    warn_of_small_model,
)
from holdfast.cli.shared.model_loading import load_both, load_model
from holdfast.cli.shared.notes import note
from holdfast.cli.shared.output import command_line, page_path, print_run, write_run_page
from holdfast.cli.shared.progress_bar import Bar
from holdfast.cli.shared.run_names import model_of, run_folder
from holdfast.cli.shared.user_messages import (
    load_dialogs,
    load_user_turns,
    note_usual_user_turns,
    with_user_prompt,
)
from holdfast.drift import Suite
from holdfast.drift.benchmark import check_before_loading
from holdfast.drift.families import half_of
from holdfast.drift.method_checks import check_with_rules
from holdfast.drift.recorded_dialogs import RecordedDialogs
from holdfast.drift.remaining import count_replies
from holdfast.drift.resolved_settings import prepare
from holdfast.drift.settings import Pairs, Settings
from holdfast.drift.shards import WHOLE_RUN, Shard
from holdfast.drift.user_scripts import UserTurns
from holdfast.errors import UsageError
from holdfast.methods import Method
from holdfast.models.model_names import is_url
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of
from holdfast.records import Run
from holdfast.report.next_step import next_step

EXAMPLES = """examples:
  holdfast drift                               the default model on its own prompts
  holdfast drift --model Qwen/Qwen2.5-0.5B-Instruct --suite core
  holdfast drift --model http://localhost:8000/v1 --endpoint-model my-model --suite my_bot.yaml
  holdfast drift --method none --method split-softmax:exponent=0.5 --out runs/fix
  holdfast drift --suite my_bot.yaml --dialogs logs.jsonl  your own logs, replayed and probed
  holdfast drift --suite my_bot.yaml --persona "You are Ada, hungry and in a hurry."
  holdfast drift --suite bots --user-turns work --rounds 16 --pairs balanced

Repeating a command resumes it; with more --conversations or another --method it extends the run.
`holdfast methods` lists the methods, `holdfast measures` the measures."""


class _PaperOptions(Options):
    """Options that only studies need, such as those of the papers."""

    title = "for studies"

    families: Literal["explore", "confirm"] | None = None
    """use one half of the families of prompts: explore to choose settings, confirm to report the
    results of that choice"""
    scoring: Literal["strict", "released", "loose"] = "strict"
    """for li2024: strict corrects the published measures, released keeps them; for sys-ifeval:
    loose takes the best of eight readings of a reply"""
    pairs: Literal["random", "balanced", "all"] = "random"
    """how prompts are paired: at random; balanced, so that each prompt is the agent equally often;
    or all ordered pairs, prompt after prompt"""
    no_adoption: bool = False
    """do not ask the agent the probes that belong to the user's prompt"""


class DriftArguments(
    options.SuiteOptions,
    options.ConversationsOptions,
    options.MethodsOptions,
    options.BenchmarkOptions,
    options.RunOptions,
    options.ReportOptions,
    _PaperOptions,
):
    shard: Annotated[str | None, Arg("PART/PARTS")] = None
    """run only a part of the conversations, such as 1/4, in a separate folder; `holdfast join`
    puts the folders of all parts together"""
    baseline: bool = False
    """also ask the probes without a system prompt, to find rules that are never followed and rules
    that score as well without it"""
    dialogs: Annotated[str | None, Arg("FILE.jsonl")] = None
    """replay your own logs instead of new conversations, up to --rounds, with probes in every
    round; one dialog per line (OpenAI's messages or ShareGPT, with tool calls if the model's chat
    template renders them)"""


@dataclass(frozen=True)
class _Plan:
    """A run as its options describe it, before a local model is loaded.

    Attributes:
        endpoint: the model, if it is behind a URL.
        out: the folder of the run.
        dialogs: the recorded dialogs to replay.
        user_turns: the scripted messages of the user; without these and dialogs, a model is the
            user.
    """

    endpoint: ChatModel | None
    suite: Suite
    settings: Settings
    steerings: Sequence[Sequence[Method]]
    shard: Shard
    out: Path
    page: Path
    dialogs: RecordedDialogs | None
    user_turns: UserTurns | None


def run(arguments: DriftArguments) -> None:
    check_prices(arguments)
    plan = _plan_of(arguments)
    drift_run = _load(arguments, plan)
    arguments.keep_work_in(plan.out)
    if arguments.dry_run:
        estimate_run(arguments, drift_run, baseline=arguments.baseline)
        return
    finished = _converse(drift_run)
    if arguments.baseline:
        drift_run.ask_baseline()
    note_repeated_requests(drift_run.model)
    results = results_of(finished)
    print_run(results)
    write_run_page(arguments, results, plan.page)
    write_run_document(plan.out, plan.page, next_step=next_step(results))


def _plan_of(arguments: DriftArguments) -> _Plan:
    """Reads the options, and refuses what can be refused before a local model is loaded."""
    shard = _shard_of(arguments)
    settings = drift_settings(arguments)
    steerings = [methods.parse(spec) for spec in arguments.method or ["none"]]
    suite = drift.load_suite(
        arguments.suite, scoring=arguments.scoring, allow_code=arguments.allow_code
    )
    if arguments.families is not None:
        suite = half_of(suite, arguments.families)
    for line in suite.notes:
        note(line)
    user_turns = load_user_turns(arguments, suite)
    dialogs = load_dialogs(arguments, arguments.dialogs, suite, settings)
    if not (dialogs or user_turns):
        suite, settings = with_user_prompt(suite, settings, arguments.persona)
    for steering in steerings:
        check_with_rules(steering, suite.cases, settings)
    # the folder is named after the model that an endpoint reports
    endpoint = load_model(arguments) if is_url(arguments.model) else None
    warn_of_small_model(arguments.model, arguments.suite)
    name = model_of(arguments, None if endpoint is None else endpoint.name)
    out = arguments.out or run_folder(
        "drift", name, arguments.suite, seed=arguments.seed, shard=arguments.shard or ""
    )
    page = page_path(arguments, out)
    cast = drift.Cast(dialogs=dialogs, user_turns=user_turns)
    check_before_loading(suite, out, settings, steerings, cast, command_line())
    return _Plan(endpoint, suite, settings, steerings, shard, out, page, dialogs, user_turns)


def _load(arguments: DriftArguments, plan: _Plan) -> DriftRun:
    """Loads the models of a run."""
    model, user_model = load_both(arguments, plan.endpoint)
    note_usual_user_turns(arguments, plan.user_turns)
    _warn_of_foreign_files(arguments.method or (), model)
    warn_of_default_steering(model, plan.steerings)
    # the run and its baseline share the judges, so that each is loaded once
    judging = make_judging(force=arguments.force_judge)
    cast = drift.Cast(user_model, plan.dialogs, judging, plan.user_turns)
    settings, cast = prepare(model, plan.suite, plan.settings, cast)
    return DriftRun(model, plan.suite, plan.out, settings, plan.steerings, cast, shard=plan.shard)


def _converse(run: DriftRun) -> Run:
    """Holds the conversations that the folder lacks, with a progress bar."""
    replies = count_replies(run.suite, run.settings, run.numbers, run.cast)
    replies *= len(run.methods)
    waves = len(run.methods) * math.ceil(len(run.numbers) / run.settings.batch)
    with Bar(replies, title=_title(run, replies), waves=waves) as bar:
        return run.converse(bar)


def _shard_of(arguments: DriftArguments) -> Shard:
    """The part of the run that this command makes; refuses a part without conversations."""
    if arguments.shard is None:
        return WHOLE_RUN
    if arguments.baseline:
        raise UsageError(
            "--baseline asks about a whole run, not about one --shard; join the shards with"
            " `holdfast join`, then repeat the command there with --baseline and without --shard.",
            option="baseline",
        )
    shard = Shard.read(arguments.shard)
    if shard.part > arguments.conversations:
        raise UsageError(
            f"--shard {shard} of {count_of(arguments.conversations, 'conversation')} is empty; give"
            " fewer parts, or more --conversations.",
            option="shard",
            value=arguments.shard,
        )
    return shard


def _title(run: DriftRun, replies: int) -> str:
    """Describes the work of a run in one line."""
    settings = run.settings
    count = len(run.numbers)
    rounds = count_of(settings.rounds, "round")
    if run.cast.dialogs is not None:
        work = f"{count_of(count, 'dialog')} replayed, up to {rounds}"
    else:
        work = f"{count_of(count, 'conversation')} of {rounds}"
    if len(run.methods) > 1:
        work = f"{work} with each of {len(run.methods)} methods"
    return (
        f"{work}: {replies:,} replies of at most"
        f" {count_of(settings.sampling.max_new_tokens, 'token')}"
    )


def _warn_of_foreign_files(specs: Sequence[str], model: ChatModel) -> None:
    """Warns if a method file was calibrated on another model."""
    for spec in filter(methods.is_file, specs):
        made_for = methods.read_method_file(spec.strip()).model_fingerprint
        if made_for not in (None, model.fingerprint):
            note(
                f"{spec} was calibrated on another model than {model.name}; calibrate again for"
                " this one."
            )


def drift_settings(arguments: DriftArguments) -> Settings:
    """Builds the settings of a drift run from its options."""
    return settings_of(
        arguments,
        conversations=arguments.conversations,
        pairs=arguments.pairs,
        adoption=not arguments.no_adoption,
    )


def settings_of(
    arguments: options.BenchmarkOptions, *, conversations: int, pairs: Pairs, adoption: bool
) -> Settings:
    """Builds the settings of the conversations from the options."""
    return Settings(
        rounds=arguments.rounds,
        conversations=conversations,
        seed=arguments.seed,
        sampling=arguments.sampling_for(arguments.model),
        user_prompt=arguments.user_prompt,
        system_as=arguments.system_as,
        probes_per_round=arguments.probes_per_round,
        probe_at=arguments.probe_at,
        adoption=adoption,
        pairs=pairs,
        batch=arguments.batch,
        context=arguments.context,
        window=arguments.window,
        canary=arguments.canary,
        recall=arguments.recall,
        probe_every=arguments.probe_every,
    )


COMMAND = Command(
    "drift",
    run,
    DriftArguments,
    description=(
        "Runs conversations under the system prompts of a suite. In every round, a probe tests"
        " whether the agent still follows its prompt, and a measure scores the reply (stability)."
        " The user's messages are scripted, or a copy of the model plays the user under another"
        " prompt, which the agent may take over (adoption), as in Li et al. 2024, Figure 3."
    ),
    examples=EXAMPLES,
    common=("model", "suite", "method", "conversations", "out"),
)
