"""The next step after a drift run: one sentence, and the commands that take it."""

from collections.abc import Sequence

from holdfast.analysis.collapse import BROKEN_SHARE_WARNING, count_turns
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.estimate_rows import rule_rows
from holdfast.analysis.outcome import MATTERS, Outcome, conversations_needed
from holdfast.analysis.row_differences import RowDifference
from holdfast.analysis.series import Series
from holdfast.analysis.truncation import has_lost_prompt
from holdfast.analysis.unscored import is_unmeasured, unscored_by_reason
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.errors import UsageError
from holdfast.methods import CompiledMethods, compile_methods, parse
from holdfast.plurals import duration, join_with_and, listing
from holdfast.records.manifest import command_of
from holdfast.report.collapse_section import collapse_cures
from holdfast.report.context_section import RAISE_CONTEXT
from holdfast.report.fix_sentences import best_fix
from holdfast.report.run_setup import RunSetup, setup_of

_MAX_RULES_NAMED = 2


def next_step(results: DriftResults) -> str:
    """A sentence on what to do next; commands to run follow it, a line each.

    A run made in Python gets no commands, as none would load its model and its suite.
    """
    step = _choose_step(results)
    if "\n" in step and not command_of(results.run.manifest):
        return (
            "Next: repeat drift.run with more conversations, or with methods= to compare fixes"
            " (docs/choosing.md)."
        )
    return step


def _choose_step(results: DriftResults) -> str:
    """The step for a run of the command; the first thing that is missing or wrong decides it."""
    setup = setup_of(results)
    if shard := setup.shard:
        return f"Next: join shard {shard} with the others:\nholdfast join FOLDER... --out WHOLE"
    if cure := _cure_clause(results):
        return f"Next: {cure}."
    conversations = len(results.series[0].records)
    if conversations < MIN_SAMPLES:
        return _extend_step(results, setup, MIN_SAMPLES, "the fewest for a verdict")
    if setup.rounds < 2:
        return "Next: use --rounds 8; one round cannot show drift."
    outcome = results.findings.outcome
    fix = best_fix(results.series)
    never_followed = _never_followed(results.series)
    if never_followed and (fix or outcome is not Outcome.DRIFTS):
        return f"Next: {_reword_clause(never_followed)}."
    if fix and fix.last_round.sign > 0:
        return _use_fix_step(fix.row.series, setup)
    if fix and fix.over_all_rounds.sign < 0:
        return "Next: try other methods, as this lowers stability; holdfast methods lists them."
    if outcome is Outcome.DRIFTS and not fix:
        return _try_fix_step(results, setup, never_followed)
    if outcome is Outcome.HOLDS:
        return (
            f"Next: try a longer conversation with --rounds {2 * setup.rounds}, or hold the prompts"
            f" to a bar:\n{setup.check()}"
        )
    return _settle_step(results, setup, fix)


def _cure_clause(results: DriftResults) -> str | None:
    """The change that a run needs before it says anything about drift; None if it needs none.

    A clause that begins with a verb, without a full stop.
    """
    findings = results.findings
    all_series = results.series
    if has_lost_prompt(all_series):
        return RAISE_CONTEXT
    if findings.outcome is Outcome.CUT or _commonest_reason_unscored(all_series[0]) == "cut":
        return "raise --max-new-tokens, so that the replies end before they are cut"
    if findings.outcome is Outcome.NOT_MEASURED:
        return (
            "look at what the model answers, with holdfast generate or in records.jsonl: no reply"
            " has a text that can be scored"
        )
    if findings.outcome is Outcome.MADE_WORSE:
        names = [f"“{row.name}”" for row in findings.made_worse[:_MAX_RULES_NAMED]]
        return f"reword the prompt, as it makes {join_with_and(names)} worse"
    if findings.outcome is Outcome.UNINFORMATIVE:
        return (
            "give the rules measures that replies without the system prompt fail; --baseline says"
            " which do"
        )
    if findings.outcome in (Outcome.BROKEN_DOWN, Outcome.TOO_FEW) and (
        cures := collapse_cures(all_series)
    ):
        return "; and ".join(cures)
    if findings.outcome is Outcome.BROKEN_DOWN and len(all_series[0].records) >= MIN_SAMPLES:
        return "use a larger model, as these conversations collapse into repetition"
    return None


def _breaks_down(series: Series) -> bool:
    """Whether so many turns repeat themselves that the scores may say little."""
    return count_turns(series.records).share("broken") >= BROKEN_SHARE_WARNING


def _commonest_reason_unscored(series: Series) -> str | None:
    """The commonest reason why probes have no score; None if at least one probe has a score."""
    if not is_unmeasured(series.records):
        return None
    return unscored_by_reason(series.records, "stability").most_common(1)[0][0]


def _never_followed(all_series: Sequence[Series]) -> list[str]:
    """The rules that the agent hardly ever follows, whatever the method."""
    rules = [row.rule for row in rule_rows(all_series) if row.never_followed]
    return [rule for rule in dict.fromkeys(rules) if rules.count(rule) >= len(all_series)]


def _reword_clause(rules: Sequence[str]) -> str:
    """Advice about rules that are never followed, as a clause without a full stop."""
    names = listing([f"“{name}”" for name in rules], _MAX_RULES_NAMED)
    return f"reword the prompt or use another model, as the agent hardly ever follows {names}"


def _extend_step(results: DriftResults, setup: RunSetup, conversations: int, why: str) -> str:
    """Asks for this many conversations in all; `why` is a clause, such as 'the fewest for ...'."""
    if setup.replayed:
        return f"Next: replay {conversations} dialogs, {why}."
    if not setup.command:
        return f"Next: repeat the run with {conversations} conversations, {why}."
    seconds = 0.0
    for series in results.series:
        recorded = len(series.records)
        seconds += _seconds_of(series) * max(0, conversations - recorded) / max(1, recorded)
    return (
        f"Next: run {conversations} conversations, {why}; those so far are"
        f" kept{_duration_note(seconds)}:\n{setup.extended_to(conversations)}"
    )


def _seconds_of(series: Series) -> float:
    """How long the conversations took; 0 if that was not recorded."""
    return sum(record.seconds for record in series.records)


def _duration_note(seconds: float, at_most: float = 0.0) -> str:
    """How long a command takes at the pace of the run, in parentheses; "" if that is not known.

    Args:
        at_most: the longest that it takes, if that may be longer.
    """
    if not seconds:
        return ""
    if at_most > seconds:
        return f" (about {duration(seconds)}, at most {duration(at_most)})"
    return f" (about {duration(seconds)})"


def _use_fix_step(series: Series, setup: RunSetup) -> str:
    """How to serve a model with the fix that helps, and how to measure its cost.

    Args:
        series: the conversations with the fix.
    """
    if _breaks_down(series):
        return (
            "Next: read conversations with this fix on the page before you use it, as their turns"
            " repeat themselves."
        )
    spec = series.method
    compiled = _compile(spec)
    needs_proxy = compiled.edits_requests and (setup.endpoint or compiled.needs_rules)
    if needs_proxy and setup.endpoint:
        return f"Next: put this fix before your server, for every client:\n{setup.proxy(spec)}"
    if needs_proxy:
        return (
            "Next: measure what this fix costs, or serve the model with it, in two terminals:"
            f"\n{setup.calibrate([spec])}\n{setup.serve()}\n{setup.proxy(spec)}"
        )
    if setup.endpoint:
        return f"Next: send {spec} with every request to your server (see `holdfast docs serving`)."
    return (
        "Next: measure what this fix costs, or serve the model with it:"
        f"\n{setup.calibrate([spec])}\n{setup.serve('--default-method', spec)}"
    )


def _compile(spec: str) -> CompiledMethods:
    """Compiles a spec string; a custom method, which only its own code can read, becomes none."""
    try:
        return compile_methods(parse(spec, files=False))
    except UsageError:
        return compile_methods(())


def _try_fix_step(results: DriftResults, setup: RunSetup, never_followed: Sequence[str]) -> str:
    """The first fix to try; on a model that Holdfast runs, also the search for the best one."""
    search = setup.calibrate(setup.sweeps)
    if setup.first_fix is None:
        advice = (
            "no fix is known to help this model; measure some (--dry-run says how long it takes):"
            f"\n{search}"
        )
    else:
        advice = f"try a fix with --method {setup.first_fix}"
        if setup.command:
            command = setup.compared_with(setup.first_fix)
            seconds = _seconds_of(results.series[0])
            redraws = sum(retry.retries for retry in _compile(setup.first_fix).retries)
            time = _duration_note(seconds, (1 + redraws) * seconds)
            advice = f"add a fix to this run and compare{time}:\n{command}"
        if not setup.endpoint:
            advice += f"\nor search for the best one (--dry-run says how long it takes):\n{search}"
    if never_followed:
        return f"Next: {_reword_clause(never_followed)}; for the other rules, {advice}"
    return f"Next: {advice}"


def _settle_step(results: DriftResults, setup: RunSetup, fix: RowDifference | None) -> str:
    """More conversations, if they may settle what this run leaves open, or else other methods."""
    findings = results.findings
    look = results.series[0].look
    if findings.outcome is Outcome.DRIFTS and fix:
        goal = "to tell whether this fix helps"
        conversations = conversations_needed(fix.last_round, 0, look)
    else:
        goal = "to tell whether it drifts"
        conversations = conversations_needed(findings.stability.change, -MATTERS, look)
    if conversations is not None:
        return _extend_step(results, setup, conversations, f"which should be enough {goal}")
    if setup.endpoint:
        return "Next: try other methods; holdfast methods lists them."
    return (
        "Next: try other methods; holdfast methods lists them, and this compares some:"
        f"\n{setup.calibrate(setup.sweeps)}"
    )
