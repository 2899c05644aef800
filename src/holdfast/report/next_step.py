"""Suggests one next step from the findings of a run, with the commands that take it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.estimates import rule_rows
from holdfast.analysis.outcome import MATTERS, Outcome, conversations_needed
from holdfast.analysis.series import Series
from holdfast.analysis.summary import DriftResults
from holdfast.analysis.truncation import has_lost_prompt
from holdfast.analysis.unscored import is_unmeasured, unscored_by_reason
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.errors import UsageError
from holdfast.methods import CompiledMethods, compile_methods, parse
from holdfast.models.model_names import is_served, is_url
from holdfast.records import command_of
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.manifest import typed_command
from holdfast.report.collapse_section import collapse_cures
from holdfast.report.context_section import CURE
from holdfast.report.fixes_to_try import first_fix, fixes_to_compare
from holdfast.report.sentences import best_fix
from holdfast.report.typed_options import option_in, options_in, repeated, split_command

_LOADING = (
    *("--endpoint-model", "--api-key-env", "--chat-template"),
    *("--device", "--device-map", "--dtype", "--trust-remote-code"),
)
_CHATS = ("--user-turns", "--system-as", "--temperature", "--top-p", "--max-new-tokens")


@dataclass(frozen=True)
class Finding:
    """The facts about a run that its next step depends on."""

    command: str = ""  # as it was typed; "" for a run of the Python API
    model: tuple[str, ...] = ()  # the options that load it: ("--model", "smollm2")
    suite: str = "starter"  # as `--suite` names it
    # options that make the conversations of other commands like this run's
    chats: tuple[str, ...] = ()
    endpoint: bool = False  # another program runs the model, so `holdfast serve` does not load it
    replayed: bool = False  # the conversations are recorded dialogs, so their number is fixed
    conversations: int = MIN_SAMPLES  # of the first series, like `rounds`
    rounds: int = 8
    outcome: Outcome = Outcome.UNDECIDED
    made_worse: tuple[str, ...] = ()  # rules that the prompt makes worse
    never_followed: tuple[str, ...] = ()  # rules that no method makes the agent follow
    url: str = ""  # where it answers
    first_fix: str | None = None  # the one to begin with; None: none is known to help
    sweeps: tuple[str, ...] = ()  # what a search for the best fix compares; () for its defaults
    fix: str = ""  # the best method tried
    helps: bool = False  # the fix clearly helps
    harms: bool = False  # it clearly lowers stability over all rounds
    needed: int | None = None  # conversations that would settle what this run cannot
    cures: tuple[str, ...] = ()  # ways to keep conversations from breaking down
    cut_off: bool = False  # the server stopped reading the system prompt
    unmeasured: str = ""  # why most of the probes without a score have none, if all lack one


def next_step(finding: Finding) -> str:
    """A sentence on what to do next; commands to run follow it, a line each."""
    if shard := option_in(split_command(finding.command), "--shard"):
        return f"Next: join shard {shard} with the others:\nholdfast join FOLDER... --out WHOLE"
    if mend := _mend_the_run(finding):
        return mend
    if finding.conversations < MIN_SAMPLES:
        return _more(finding, MIN_SAMPLES, "the fewest for a verdict")
    if finding.rounds < 2:
        return "Next: use --rounds 8; one round cannot show drift."
    drifts = finding.outcome is Outcome.DRIFTS
    if finding.never_followed and (finding.fix or not drifts):
        return f"Next: {_reword(finding.never_followed)}."
    if finding.helps:
        return _use_the_fix(finding)
    if finding.harms:
        return "Next: try other methods, as this lowers stability; holdfast methods lists them."
    if drifts and not finding.fix:
        return _try_a_fix(finding)
    if finding.outcome is Outcome.HOLDS:
        check = ("check", finding.suite, *finding.model, *finding.chats, "--min-stability", "0.9")
        return (
            f"Next: try a longer conversation with --rounds {2 * finding.rounds}, or hold the"
            f" prompts to a bar:\n{_command(*check)}"
        )
    if finding.needed is not None and drifts:
        return _more(
            finding, finding.needed, "which should be enough to tell whether this fix helps"
        )
    if finding.needed is not None:
        return _more(finding, finding.needed, "which should be enough to tell whether it drifts")
    if finding.endpoint:
        return "Next: try other methods; holdfast methods lists them."
    return (
        "Next: try other methods; holdfast methods lists them, and this compares some:"
        f"\n{_calibrate(finding, finding.sweeps)}"
    )


def _mend_the_run(finding: Finding) -> str | None:
    """The change that this run needs before it says anything about drift; None if it needs none."""
    if finding.cut_off:
        return f"Next: {CURE}."
    if finding.outcome is Outcome.CUT or finding.unmeasured == "cut":
        return "Next: raise --max-new-tokens, so that the replies end before they are cut."
    if finding.outcome is Outcome.NOT_MEASURED:
        return (
            "Next: look at what the model answers, with holdfast generate or in records.jsonl: no"
            " reply has a text that can be scored."
        )
    if finding.outcome is Outcome.MADE_WORSE:
        names = " and ".join(f"“{name}”" for name in finding.made_worse[:2])
        return f"Next: reword the prompt, as it makes {names} worse."
    if finding.outcome is Outcome.UNINFORMATIVE:
        return (
            "Next: give the rules measures that replies without the system prompt fail; --baseline"
            " says which do."
        )
    if finding.cures:
        return f"Next: {', and '.join(finding.cures)}, so that the conversations do not break down."
    if finding.outcome is Outcome.BROKEN_DOWN and finding.conversations >= MIN_SAMPLES:
        return "Next: use a larger model, as these conversations break down into repetition."
    return None


def _use_the_fix(finding: Finding) -> str:
    """How to serve a model with the fix that helps, and how to measure its cost."""
    compiled = _compiled(finding.fix)
    if compiled.edits_requests and (finding.endpoint or compiled.needs_rules):
        return _use_the_proxy(finding)
    if finding.endpoint:
        return (
            f"Next: send {finding.fix} with every request to your server (see `holdfast docs"
            " serving`)."
        )
    return (
        "Next: measure what this fix costs, or serve the model with it:"
        f"\n{_calibrate(finding, [finding.fix])}"
        f"\n{_command('serve', *finding.model, '--default-method', finding.fix)}"
    )


def _use_the_proxy(finding: Finding) -> str:
    """How to put a fix that only edits requests, or repeats them, before a server."""
    upstream = finding.url or "http://localhost:8000/v1"
    suite_and_fix = ("--suite", finding.suite, "--method", finding.fix)
    proxy = _command("proxy", "--upstream", upstream, *suite_and_fix)
    if finding.endpoint:
        return f"Next: put this fix before your server, for every client:\n{proxy}"
    return (
        "Next: measure what this fix costs, or serve the model with it, in two terminals:"
        f"\n{_calibrate(finding, [finding.fix])}"
        f"\n{_command('serve', *finding.model)}\n{proxy}"
    )


def _compiled(fix: str) -> CompiledMethods:
    """The methods of a spec string; none of a custom one, which only its own code can read."""
    try:
        return compile_methods(parse(fix, files=False))
    except UsageError:
        return compile_methods(())


def _try_a_fix(finding: Finding) -> str:
    """The first fix to try; on a model that Holdfast runs, also the search for the best one."""
    fix = finding.first_fix
    if fix is None:
        return _search_for_a_fix(finding)
    if finding.command:
        again = repeated(shlex.split(finding.command), {"--method": "none"})
        advice = f"add a fix to this run and compare:\n{again} --method {shlex.quote(fix)}"
    else:
        advice = f"try a fix with --method {fix}"
    if finding.never_followed:
        advice = f"{_reword(finding.never_followed)}; for the other rules, {advice}"
    if finding.endpoint:
        return f"Next: {advice}"
    return (
        f"Next: {advice}\nor search for the best one (--dry-run says how long it takes):"
        f"\n{_calibrate(finding, finding.sweeps)}"
    )


def _search_for_a_fix(finding: Finding) -> str:
    """The search on a model for which no fix is known to help."""
    advice = "no fix is known to help this model; measure some (--dry-run says how long it takes):"
    if finding.never_followed:
        advice = f"{_reword(finding.never_followed)}; for the other rules, {advice}"
    return f"Next: {advice}\n{_calibrate(finding, finding.sweeps)}"


def _calibrate(finding: Finding, sweeps: Sequence[str]) -> str:
    """The command that measures gain and cost of fixes in conversations like those of this run."""
    words = ["calibrate", *finding.model, "--suite", finding.suite, *finding.chats]
    if finding.rounds != Finding.rounds:
        words += ("--rounds", str(finding.rounds))
    if finding.rounds < 3:
        words += ("--ask-at", str(finding.rounds + 1))
    for sweep in sweeps:
        words += ("--sweep", sweep)
    return _command(*words)


def _command(*words: str) -> str:
    """A command of ours, as a shell takes it."""
    return shlex.join(["holdfast", *words])


def _reword(rules: Sequence[str]) -> str:
    """Advice about rules that are never followed."""
    names = " and ".join(f"“{name}”" for name in rules[:2])
    if len(rules) > 2:
        names = f"{names} and {len(rules) - 2} more"
    return f"reword the prompt or use another model, as the agent hardly ever follows {names}"


def _more(finding: Finding, count: int, why: str) -> str:
    """Asks for `count` conversations in all."""
    if finding.replayed:
        return f"Next: replay {count} dialogs, {why}."
    if not finding.command:
        return f"Next: repeat the run with {count} conversations, {why}."
    again = repeated(shlex.split(finding.command), {"--conversations": str(count)})
    return f"Next: run {count} conversations, {why}; those so far are kept:\n{again}"


def finding_of(results: DriftResults) -> Finding:
    """The facts that the next step of a run depends on."""
    run, series, findings = results.run, results.series, results.findings
    command = command_of(run.manifest)
    words = split_command(command)
    identity = run.identity_as(ConversationsIdentity)
    model = option_in(words, "--model")
    endpoint = is_served(model)
    first, best = series[0], best_fix(series)
    never = [row.rule for row in rule_rows(series) if row.never_followed]
    if best and findings.outcome is Outcome.DRIFTS:
        needed = conversations_needed(best.last, 0, first.look)
    else:
        needed = conversations_needed(findings.stability.change, -MATTERS, first.look)
    may_break_down = findings.outcome in (Outcome.BROKEN_DOWN, Outcome.TOO_FEW)
    return Finding(
        command=command if typed_command(command) == "drift" else "",
        model=options_in(words, ("--model", *_LOADING)),
        suite=option_in(words, "--suite") or "starter",
        chats=options_in(words, _CHATS),
        endpoint=endpoint,
        url=model.split(",")[0] if is_url(model) else "",
        replayed=identity.dialogs is not None,
        conversations=len(first.records),
        rounds=first.rounds,
        outcome=findings.outcome,
        made_worse=tuple(row.name for row in findings.made_worse),
        never_followed=tuple(
            rule for rule in dict.fromkeys(never) if never.count(rule) >= len(series)
        ),
        first_fix=first_fix(run.manifest, endpoint=endpoint),
        sweeps=fixes_to_compare(run.manifest, endpoint=endpoint),
        fix=best.row.series.method if best else "",
        helps=best is not None and verdict_on(best.last).sign > 0,
        harms=best is not None and verdict_on(best.mean).sign < 0,
        needed=needed,
        cures=tuple(collapse_cures(series)) if may_break_down else (),
        cut_off=has_lost_prompt(series),
        unmeasured=_unmeasured(first),
    )


def _unmeasured(first: Series) -> str:
    """The commonest reason why probes have no score, if none has one; else ""."""
    if not is_unmeasured(first.records):
        return ""
    return unscored_by_reason(first.records, "stability").most_common(1)[0][0]
