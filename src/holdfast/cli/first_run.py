"""`holdfast try`: the first run, of about two minutes: a prompt's rules, a table and a page.

It chooses the options of a `holdfast drift` command that suit the model, runs as many of its
conversations as there is time for, and prints that command, which goes on from there.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any

from holdfast import drift
from holdfast.analysis.summary import results_of, summary_of, write
from holdfast.cli import loading, options
from holdfast.cli.browser import has_display, open_in_browser
from holdfast.cli.drift import CONVERSATIONS, DriftArguments, plain_name, settings_of
from holdfast.cli.drift_run import DriftRun
from holdfast.cli.first_suite import draft_rules, write_suite
from holdfast.cli.json_output import write_run_document
from holdfast.cli.options import Arg, Command, RunFolder
from holdfast.cli.output import command_of
from holdfast.cli.progress import Bar, duration, note
from holdfast.cli.reply_timing import time_replies
from holdfast.cli.time_box import FEWEST, LONG, Pilot, TimeBox
from holdfast.common.model_names import is_url
from holdfast.common.sampling import Sampling
from holdfast.drafting.suite_text import DraftedFile
from holdfast.drift import Settings
from holdfast.drift.pairing import prepare
from holdfast.drift.recorded_dialogs import UserTurns
from holdfast.drift.remaining import count_replies, missing_numbers
from holdfast.errors import UsageError
from holdfast.models.protocol import ChatModel
from holdfast.records import MANIFEST, read_run
from holdfast.records.identity import ConversationsIdentity
from holdfast.report import write_page
from holdfast.report.first_table import first_table
from holdfast.report.terminal import next_line
from holdfast.report.wording import count_of

MOST = CONVERSATIONS  # as many as `holdfast drift` has, and as there are scripted dialogs
DEMO = "luna"  # the suite of real models without --prompt


class TryArguments(options.ModelOptions, options.SeedOptions):
    prompt: Annotated[Path | None, Arg("FILE")] = None
    """a file with your bot's system prompt; its rules are drafted from it (default: the prompts of
    --suite starter for the default model, and the bot of --suite luna for others)"""
    minutes: Annotated[float, Arg("MINUTES")] = 2.0
    """about how long to run"""
    max_new_tokens: int = Sampling.max_new_tokens
    """the most tokens of a reply"""
    no_open: bool = False
    """do not open the page in a browser"""
    out: Annotated[Path | None, Arg(action=RunFolder)] = None
    """the run's folder (default: runs/try-MODEL-PROMPT)"""


def run(arguments: TryArguments) -> None:
    if not 0 < arguments.minutes < float("inf"):
        raise UsageError(
            f"--minutes takes a time above 0, not {arguments.minutes:g}.",
            option="minutes",
            value=arguments.minutes,
        )
    began = time.monotonic()
    drafted = None if arguments.prompt is None else draft_rules(arguments.prompt)
    endpoint = loading.load_model(arguments) if is_url(arguments.model) else None
    out, planned = _planned(arguments, endpoint, drafted)
    suite = drift.load_suite(planned.suite)
    loading.warn_of_small_model(planned.model, planned.suite)
    user_turns = loading.load_user_turns(planned, suite)
    model = endpoint or loading.load_model(planned)
    pilot = time_replies(model, suite, _settings(planned), user_turns)
    # loading and timing the model count, up to half of the time
    seconds = max(30 * arguments.minutes, 60 * arguments.minutes - (time.monotonic() - began))
    planned = planned.model_copy(update={"rounds": _rounds(planned, out, pilot, seconds)})
    arguments.keep_work_in(out)
    conversations = DriftRun(
        model,
        suite,
        out,
        _settings(planned),
        [()],
        drift.Cast(user_turns=user_turns),
        command_of("drift", planned),
    )
    _converse(conversations, user_turns, planned, pilot, seconds)
    results = results_of(read_run(out))
    write(out, summary_of(results))
    page = write_page([results], out / "report.html", "--out").resolve()
    print(first_table(results))
    print(f"Page: {page}\n")
    step = next_line(results)
    print(step)
    write_run_document(out, page, [Path(planned.suite)] * (drafted is not None), step)
    if not arguments.no_open and has_display():
        open_in_browser(page)


def _planned(
    arguments: TryArguments, endpoint: ChatModel | None, drafted: DraftedFile | None
) -> tuple[Path, DriftArguments]:
    """The run's folder, and the `holdfast drift` command whose conversations are run.

    A model that people use gets scripted user messages, as it would soon repeat itself in a talk
    with itself; the default model was trained on such talks.
    """
    bundled = arguments.model == "default"
    given: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in (*options.ModelOptions.model_fields, *options.SeedOptions.model_fields)
    }
    if not bundled or drafted is not None:
        given["user_turns"] = "everyday"
    given["max_new_tokens"] = arguments.max_new_tokens
    folder = arguments.out.parent if arguments.out else Path("runs")
    given["suite"] = "starter" if bundled else DEMO
    names = [arguments.model if endpoint is None else endpoint.name, given["suite"]]
    if drafted is not None:
        given["suite"] = str(write_suite(drafted, folder))
        fingerprint = drift.load_suite(given["suite"]).fingerprint
        names[1:] = [drafted.path.stem, fingerprint[:8]]
    if arguments.seed:
        names.append(str(arguments.seed))
    plain = (plain_name(name.rstrip("/").split("/")[-1]) for name in names)
    out = arguments.out or folder / "-".join(["try", *plain])
    return out, DriftArguments(**given, conversations=MOST, out=out)


def _settings(planned: DriftArguments) -> Settings:
    return settings_of(
        planned,
        conversations=planned.conversations,
        pairs=planned.pairs,
        adoption=not planned.no_adoption,
    )


def _rounds(planned: DriftArguments, out: Path, pilot: Pilot, seconds: float) -> int:
    """The length of the conversations: that of the run in the folder, or what there is time for."""
    if (out / MANIFEST).is_file():
        recorded = read_run(out).identity_as(ConversationsIdentity).settings.rounds
        return recorded or planned.rounds
    return planned.rounds if planned.user_turns is None else pilot.rounds_within(seconds)


def _converse(
    run: DriftRun,
    user_turns: UserTurns | None,
    planned: DriftArguments,
    pilot: Pilot,
    seconds: float,
) -> None:
    """Runs the missing conversations until the time is up, and says how many these were."""
    most = planned.conversations
    missing = missing_numbers(run.out, ["none"], most)["none"]
    if not missing:
        note(f"{run.out} has all {most} conversations; `holdfast drift` adds more.")
        return
    given, settings = prepare(run.model, run.suite, run.settings, user_turns)
    rounds = settings.rounds
    first = pilot.first_group(rounds, seconds, len(missing))
    expected = max(seconds, first * pilot.seconds_of(rounds))
    if rounds < LONG:
        minutes = math.ceil(2 * FEWEST * pilot.seconds_of(LONG) / 60)
        note(
            f"this model is slow here, so the conversations are short; --minutes {minutes} with"
            f" another --out makes them {LONG} rounds long."
        )
    note(f"conversations of {count_of(rounds, 'round')}, for about {duration(expected)}.")
    if is_url(planned.model):
        replies = count_replies(run.suite, settings, given, missing)
        note(f"at most {replies:,} requests to {planned.model}.")
    for group in TimeBox(seconds, first).groups(missing):
        title = f"{count_of(len(group), 'conversation')} side by side"
        total = count_replies(run.suite, settings, given, group)
        with Bar(total, title=title, waves=1) as bar:
            run.converse_some((), group, bar, lambda: False)
    done = most - len(missing_numbers(run.out, ["none"], most)["none"])
    note(f"{count_of(done, 'conversation')} recorded, of at most {most}, in {run.out}.")


COMMAND = Command(
    "try",
    "measure a model, or your own bot, for two minutes",
    run,
    TryArguments,
    description=(
        "The first run: drafts the rules of your bot's prompt, holds conversations with the model"
        " for two minutes, prints how well each rule is kept in the first and the last round, and"
        " opens the page. Repeated, it goes on for two more minutes."
    ),
    examples=(
        "examples:\n"
        "  holdfast try                                  the default model\n"
        "  holdfast try --model smollm2                  a demo bot on a real model\n"
        "  holdfast try --model Qwen/Qwen2.5-0.5B-Instruct --prompt bot.txt\n"
        "  holdfast try --model http://localhost:8000/v1 --prompt bot.txt --minutes 5"
    ),
    common=("model", "prompt", "minutes", "no_open", "endpoint_model", "out"),
)
