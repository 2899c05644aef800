"""`holdfast try`: the first run, of about two minutes: a prompt's rules, a table and a page.

It chooses the options of a `holdfast drift` command that suit the model, runs as many of its
conversations as there is time for, and prints that command, which goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import sys
import time
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from holdfast import drift
from holdfast.analysis.summary import DriftResults, results_of, summary_of, write
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.cli import loading, options
from holdfast.cli.drift import DriftArguments, plain_name, settings_of
from holdfast.cli.drift_run import DriftRun
from holdfast.cli.json_output import write_run_document
from holdfast.cli.options import Arg, Command, RunFolder, option_of
from holdfast.cli.progress import Bar, duration, note
from holdfast.cli.time_box import Pilot, TimeBox
from holdfast.common.files import write_whole
from holdfast.common.model_names import is_url
from holdfast.common.plurals import plural
from holdfast.common.sampling import Sampling
from holdfast.common.seeds import seed_of
from holdfast.drafting.probing import PROBES, probed
from holdfast.drafting.suite_text import (
    DraftedFile,
    DraftedRule,
    draft_lines,
    sentence_of,
    suite_text,
)
from holdfast.drift import Settings, Suite
from holdfast.drift.pairing import draw, prepare
from holdfast.drift.recorded_dialogs import Dialogs, UserTurns
from holdfast.drift.remaining import count_replies, missing_numbers
from holdfast.errors import UsageError
from holdfast.models.protocol import ChatModel
from holdfast.models.requests import Request
from holdfast.records import MANIFEST, read_run
from holdfast.records.identity import ConversationsIdentity
from holdfast.report import write_page
from holdfast.report.first_table import first_table
from holdfast.report.wording import count_of

MOST = 40  # conversations: as many as there are scripted dialogs, and twice the fewest for verdicts
TEMPERATURE = 0.7  # of models that people use; the default model keeps the benchmark's
DEMO = "luna"  # the suite of real models without --prompt
_PILOT, _PILOT_TOKENS = 4, 64  # replies that are timed, and how much of each
_SHOWN = 90  # characters of a line of the prompt


class TryArguments(options.ModelOptions, options.SeedOptions):
    prompt: Annotated[Path | None, Arg("FILE")] = None
    """a file with your bot's system prompt; its rules are drafted from it (default: the prompts of
    --suite starter for the bundled model, and the bot of --suite luna for others)"""
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
    drafted = None if arguments.prompt is None else _draft(arguments.prompt)
    endpoint = loading.load_model(arguments) if is_url(arguments.model) else None
    planned = _planned(arguments, endpoint, drafted)
    out = planned.out
    assert out is not None  # `_planned` has named it
    suite = drift.load_suite(planned.suite)
    loading.warn_of_small_model(planned.model, planned.suite)
    user_turns = loading.load_user_turns(planned)
    model = endpoint or loading.load_model(planned)
    seconds = 60 * arguments.minutes
    pilot = _pilot(model, suite, _settings(planned), user_turns)
    planned = planned.model_copy(update={"rounds": _rounds(planned, pilot, seconds)})
    given, settings = prepare(model, suite, _settings(planned), user_turns)
    arguments.keep_work_in(out)
    _converse(planned, model, suite, settings, given, pilot, seconds)
    results = results_of(read_run(out))
    write(out, summary_of(results))
    page = write_page([results], out / "report.html", "--out").resolve()
    print(first_table(results))
    print(f"Page: {page}\n")
    next_step = _next(planned, suite, results)
    print(next_step)
    write_run_document(out, page, [Path(planned.suite)] * (drafted is not None), next_step)
    if not arguments.no_open and _has_display():
        _open(page)


def _draft(prompt: Path) -> DraftedFile:
    """The rules of a prompt that a conversation can test; prints them, and the other lines."""
    file = probed(draft_lines(prompt))
    print(f"{prompt}: {plural(len(file.rules), 'rule')} drafted.")
    for rule in file.rules:
        print(f"  rule {rule.id}: {_shortened(sentence_of(rule.statement))}")
    others = [line for line in file.lines if not isinstance(line, DraftedRule)]
    if others:
        print("No rule, and so not measured:")
    for statement, undrafted in others:
        print(f"  line {statement.line}: {_shortened(sentence_of(statement))}")
        print(f"    {undrafted.reason}")
    if not file.rules:
        raise UsageError(
            f"No line of {prompt} is a rule that a measure decides; say a rule as in “Always reply"
            " in German.”, “Keep replies under 60 words.”, “Never use emojis.” or “End every reply"
            ' with "Ciao!"”, or write the rules and their questions into a suite, as `holdfast docs'
            " measuring` shows, and give it to `holdfast drift --suite FILE.yaml`.",
            option="prompt",
            value=str(prompt),
        )
    return file


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1].rstrip()}…"


def _planned(
    arguments: TryArguments, endpoint: ChatModel | None, drafted: DraftedFile | None
) -> DriftArguments:
    """The options of the `holdfast drift` command whose conversations are run.

    A model that people use gets scripted user messages, as it would soon repeat itself in a talk
    with itself; the bundled one was trained on such talks.
    """
    bundled = arguments.model == "default"
    given: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in (*options.ModelOptions.model_fields, *options.SeedOptions.model_fields)
    }
    if not bundled or drafted is not None:
        given |= {"user_turns": "everyday", "temperature": TEMPERATURE}
    given["max_new_tokens"] = arguments.max_new_tokens
    folder = arguments.out.parent if arguments.out else Path("runs")
    given["suite"] = "starter" if bundled else DEMO
    names = [arguments.model if endpoint is None else endpoint.name, given["suite"]]
    if drafted is not None:
        given["suite"] = str(_write_suite(drafted, folder))
        fingerprint = drift.load_suite(given["suite"]).fingerprint
        names[1:] = [drafted.path.stem, fingerprint[:8]]
    if arguments.seed:
        names.append(str(arguments.seed))
    plain = (plain_name(name.rstrip("/").split("/")[-1]) for name in names)
    out = arguments.out or folder / "-".join(["try", *plain])
    return DriftArguments(**given, conversations=MOST, out=out)


def _write_suite(drafted: DraftedFile, folder: Path) -> Path:
    """Writes the drafted suite; one that is there already, and may have been edited, stays."""
    digest = hashlib.sha256(drafted.text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    file = folder / f"try-{plain_name(drafted.path.stem)}-{digest}.yaml"
    if file.exists():
        print(f"Suite: {file}, which exists already and is used unchanged.")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(file, suite_text([drafted], PROBES), "another folder with --out")
        print(f"Suite: {file}, to edit.")
    return file


def _settings(planned: DriftArguments) -> Settings:
    return settings_of(
        planned,
        conversations=planned.conversations,
        pairs=planned.pairs,
        adoption=not planned.no_adoption,
    )


def _pilot(
    model: ChatModel, suite: Suite, settings: Settings, user_turns: UserTurns | None
) -> Pilot:
    """The beginnings of a few replies, which show how fast the model is."""
    note("timing the model ...")
    given, settings = prepare(model, suite, settings, user_turns)
    pairings = [draw(suite, settings, given, number) for number in range(_PILOT)]
    requests = [
        Request(
            messages=[
                {"role": "system", "content": pairing.agent.system_prompt},
                {"role": "user", "content": pairing.probes[0]},
            ],
            sampling=replace(settings.sampling, max_new_tokens=_PILOT_TOKENS),
            seed=seed_of("pilot", settings.seed, pairing.number),
            name=f"First reply {pairing.number + 1} of {_PILOT}",
        )
        for pairing in pairings
    ]
    if not model.independent:  # what runs here takes longer the first time
        model.generate_batch([replace(requests[0], sampling=Sampling(max_new_tokens=1))])
    began = time.monotonic()
    replies = model.generate_batch(requests)
    seconds = time.monotonic() - began
    cut = sum(reply.stop_reason == "length" for reply in replies)
    # a reply that is cut here is taken to be half as long as the longest that the run allows
    longer = max(1.0, settings.sampling.max_new_tokens / 2 / _PILOT_TOKENS)
    numbers = range(_PILOT)
    per_round = count_replies(suite, settings, given, numbers) / (_PILOT * settings.rounds)
    return Pilot(len(replies), seconds * (1 + cut / len(replies) * (longer - 1)), per_round)


def _rounds(planned: DriftArguments, pilot: Pilot, seconds: float) -> int:
    """The length of the conversations: that of the run in the folder, or what there is time for."""
    assert planned.out is not None
    if (planned.out / MANIFEST).is_file():
        recorded = read_run(planned.out).identity_as(ConversationsIdentity).settings.rounds
        return recorded or planned.rounds
    return planned.rounds if planned.user_turns is None else pilot.rounds_within(seconds)


def _converse(
    planned: DriftArguments,
    model: ChatModel,
    suite: Suite,
    settings: Settings,
    user_turns: Dialogs | UserTurns | None,
    pilot: Pilot,
    seconds: float,
) -> None:
    """Runs the missing conversations until the time is up, and says how many these were."""
    assert planned.out is not None
    missing = missing_numbers(planned.out, ["none"], MOST)["none"]
    if not missing:
        note(f"{planned.out} has all {MOST} conversations; `holdfast drift` adds more.")
        return
    first = pilot.first_group(settings.rounds, seconds, len(missing))
    expected = max(seconds, first * pilot.seconds_of(settings.rounds))
    note(f"conversations of {count_of(settings.rounds, 'round')}, for about {duration(expected)}.")
    if is_url(planned.model):
        replies = count_replies(suite, settings, user_turns, missing)
        note(f"at most {replies:,} requests to {planned.model}.")
    turns = user_turns if isinstance(user_turns, UserTurns) else None
    command = shlex.join(_words(planned))
    planned_run = DriftRun(
        model, suite, planned.out, settings, [()], drift.Cast(user_turns=turns), command
    )
    box = TimeBox(seconds, first)
    for group in box.groups(missing):
        title = f"{count_of(len(group), 'conversation')} side by side"
        rounds = settings.rounds
        with Bar(len(group) * rounds, title=title, rounds=rounds, waves=1) as bar:
            planned_run.converse_some((), group, bar, lambda: False)
    done = MOST - len(missing_numbers(planned.out, ["none"], MOST)["none"])
    note(f"{count_of(done, 'conversation')} recorded, of at most {MOST}, in {planned.out}.")


def _words(planned: DriftArguments) -> list[str]:
    """The `holdfast drift` command with these options, as it is typed."""
    words = ["holdfast", "drift"]
    first = ("model", "endpoint_model", "suite")
    for name in (*first, *(name for name in type(planned).model_fields if name not in first)):
        value = getattr(planned, name)
        if planned.is_default(name):
            continue
        for each in value if isinstance(value, list) else [value]:
            words += [option_of(name)] if each is True else [option_of(name), f"{each}"]
    return words


def _next(planned: DriftArguments, suite: Suite, results: DriftResults) -> str:
    """The commands that go on from here: more conversations, and a fix to compare."""
    lines = ["Next:"]
    words = _words(planned)
    recorded = len(results.series[0].records)
    if recorded < MOST:
        lines += [f"  more conversations, {MOST} in all; those so far are kept:"]
    else:
        words = _words(planned.model_copy(update={"conversations": 2 * recorded}))
        lines += [f"  more conversations, {2 * recorded} in all; those so far are kept:"]
    lines += [f"    {shlex.join(words)}"]
    with_fix = planned.model_copy(update={"conversations": max(recorded, MIN_SAMPLES)})
    fixes = [*_words(with_fix), "--method", "none", "--method", _fix(planned, suite)]
    lines += ["  the same conversations with a fix, compared:", f"    {shlex.join(fixes)}"]
    return "\n".join(lines)


def _fix(planned: DriftArguments, suite: Suite) -> str:
    """The fix to begin with, by docs/choosing.md: any model and server takes those for rules."""
    if planned.model == "default":
        return "split-softmax:exponent=0.5"
    rules = [rule for case in suite.cases for rule in case.all_rules]
    if not all(rule.text for rule in rules):
        return "reminder:every=1"
    # a reply is checked by the rules that it shows
    checked = all(rule.is_shown_by_turns and not rule.measure.of_turn for rule in rules)
    return "check-and-retry:n=2" if checked else "reminder:every=1,text=rules"


def _has_display() -> bool:
    """Whether a browser with a window can open here."""
    if sys.platform in ("win32", "darwin"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(page: Path) -> None:
    with contextlib.suppress(OSError, webbrowser.Error):  # the page's path is printed anyway
        webbrowser.open(page.as_uri())


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
        "  holdfast try                                  the bundled model\n"
        "  holdfast try --model smollm2                  a demo bot on a real model\n"
        "  holdfast try --model Qwen/Qwen2.5-0.5B-Instruct --prompt bot.txt\n"
        "  holdfast try --model http://localhost:8000/v1 --prompt bot.txt --minutes 5"
    ),
    common=("model", "prompt", "minutes", "no_open", "endpoint_model", "out"),
)
