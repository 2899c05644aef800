"""The sentences on a drift run, shared by its page and the terminal."""

from collections.abc import Iterator, Sequence

from holdfast.analysis.collapse import Collapse
from holdfast.analysis.estimates import Difference, EstimateRow, fixes, row_of, rule_rows
from holdfast.analysis.outcome import (
    MATTERS,
    Findings,
    Outcome,
    is_lost,
    is_uninformative,
)
from holdfast.analysis.prompt_effect import (
    MADE_WORSE,
    NEVER_FOLLOWED,
    UNINFORMATIVE,
    Baseline,
    BaselineRow,
)
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.statistics import MIN_PROMPTS, Estimate
from holdfast.analysis.unscored import WITHOUT_SCORE, is_unmeasured, unscored_by_reason
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, MIN_SAMPLES, verdict_on
from holdfast.records import Conversation
from holdfast.records.identity import DefaultPrompt
from holdfast.report.wording import count_of, percent, plain, points, points_apart, with_interval

Rows = Sequence[EstimateRow]
MAX_WORDS = 25  # of the first sentence
_MOST_NAMED = 4  # rules named in one sentence


def opening(
    series: Sequence[Series], findings: Findings, baseline: Baseline | None = None
) -> list[str]:
    """The opening sentences of a run, given the findings on its first series. The first sentence is
    its title, and follows from the outcome alone; then come the average change, and the best fix.
    """
    if findings.outcome is Outcome.NOT_MEASURED:
        return [title(findings)]
    # a title without the score over all probes is followed by it, the others by the change
    has_no_score = findings.outcome in _UNSCORED or rules_headline(findings) is not None
    lines = (
        title(findings),
        _average(findings.stability) if has_no_score else None,
        _uninformative_line(findings.uninformative),
        None if has_no_score else _change(findings.stability),
        _few_prompts(series[0]),
        _adoption(row_of(series[0].until(series[0].shared_rounds), "adoption")),
        fix(series),
        still_lost(series, baseline),
        _short_conversations(series[0]),
    )
    return [line for line in lines if line]


# outcomes whose title has no score
_UNSCORED = (Outcome.MADE_WORSE, Outcome.UNINFORMATIVE, Outcome.BROKEN_DOWN, Outcome.CUT)


def title(findings: Findings) -> str:
    """The title of a run, in at most `MAX_WORDS` words."""
    if findings.outcome is Outcome.NOT_MEASURED:
        nothing = nothing_measured(findings.stability.series.records)
        return nothing or "Nothing was measured: no reply could be scored."
    if findings.outcome is Outcome.MADE_WORSE:
        return _made_worse(findings.made_worse)
    if findings.outcome is Outcome.UNINFORMATIVE:
        return "This run cannot show drift: replies without the system prompt score as well."
    if findings.outcome is Outcome.BROKEN_DOWN:
        return _broken_down(findings.collapse)
    if findings.outcome is Outcome.CUT:
        return "Most replies to probes were cut at the token limit, too early to judge the rules."
    return rules_headline(findings) or headline(findings)


def _made_worse(rows: Sequence[BaselineRow]) -> str:
    names = [f"“{row.name}”" for row in rows]
    if len(rows) > 1:
        return f"The prompt makes {count_of(len(rows), 'rule')} worse: {_listing(names, 3)}."
    prompted, unprompted = rows[0].prompted.mean or 0.0, rows[0].unprompted.mean or 0.0
    return (
        f"The prompt makes {names[0]} worse: it scores {percent(prompted)} with the prompt and"
        f" {percent(unprompted)} without."
    )


def _broken_down(collapse: Collapse) -> str:
    if not collapse.collapsed:
        share = percent(collapse.share("broken"))
        return f"{share} of the turns are repetitions, so the scores say little about the prompt."
    return (
        f"{len(collapse.collapsed)} of {count_of(collapse.conversations, 'conversation')} broke"
        " down into repetition, so the scores say little about the prompt."
    )


def nothing_measured(records: Sequence[Conversation]) -> str | None:
    """Says that none of the replies is evidence, and why; None if one is."""
    if not is_unmeasured(records):
        return None
    reasons = unscored_by_reason(records, "stability")
    total = reasons.total()
    parts = [f"{count:,} {WITHOUT_SCORE[name]}" for name, count in reasons.most_common()]
    if len(parts) == 1:
        (words,) = (WITHOUT_SCORE[name] for name in reasons)
        return f"Nothing was measured: {total:,} of {total:,} replies to probes {words}."
    return f"Nothing was measured: of {total:,} replies to probes, {_and(parts)}."


# --- Rules


def rules_headline(findings: Findings) -> str | None:
    """Names the rules that the agent never follows or follows less often, in `MAX_WORDS` words."""
    never, less = findings.never_followed, findings.lost
    if not never and not less:
        return None
    texts = [*_rule_texts(findings.stability.series, never, less)]
    return next((text for text in texts if len(text.split()) <= MAX_WORDS), texts[-1])


def _rule_texts(item: Series, never: Rows, less: Rows) -> Iterator[str]:
    """The same sentence, naming fewer and fewer rules."""
    scope, with_fix = _scope(item), _with_fix(item)
    if len(less) == 1 and not never:
        yield (
            f"{_capitalised(_since(less[0]))}{with_fix}, the agent follows “{less[0].group}” less"
            f" often{scope}."
        )
    agent = _capitalised(f"{scope}{with_fix} the agent".strip())
    rounds = {_since(row) for row in less}
    when = rounds.pop() if len(rounds) == 1 else "over time"
    always = [row for row in never if not row.kept_once]
    mostly = [row for row in never if row.kept_once]
    for most in range(_MOST_NAMED, -1, -1):
        verbs = []
        if always:
            verbs.append(f"never follows {_names(always, most)}")
        if mostly:
            verbs.append(f"hardly ever follows {_names(mostly, most)}")
        if less:
            verbs.append(f"follows {_lost_names(less, most)} less often {when}")
        yield f"{agent} {_and(verbs)}."


def _since(row: EstimateRow) -> str:
    """'from round 3', or 'in round 8' if that is the last."""
    if row.lower_from == row.series.rounds:
        return f"in round {row.lower_from}"
    return f"from round {row.lower_from}"


def _uninformative_line(rows: Rows) -> str | None:
    """Names the uninformative rules, which the first sentence leaves out; None if none."""
    if not rows:
        return None
    names = _names(rows, _MOST_NAMED)
    if len(rows) == 1:
        return f"{names} is uninformative: it scores as well without the system prompt."
    return f"{names} are uninformative: they score as well without the system prompt."


def _names(rows: Rows, most: int) -> str:
    """'“a”, “b” and 2 more', or '4 rules' if none should be named."""
    if not most:
        return count_of(len(rows), "rule")
    return _listing([f"“{row.group}”" for row in rows], most)


def _lost_names(rows: Rows, most: int) -> str:
    """The names of rules that are lost; of too many those that lose most, and where several lose
    the same, all of these or none.
    """
    if len(rows) <= most:
        return _names(rows, most)
    by_loss = sorted(rows, key=_points_lost, reverse=True)
    while most and _points_lost(by_loss[most - 1]) == _points_lost(by_loss[most]):
        most -= 1
    return _names(by_loss, most)


def _points_lost(row: EstimateRow) -> int:
    """By how many points, as they are shown, a rule is followed less in the last round."""
    return -round(100 * (row.change.mean or 0.0))


def _listing(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    more = len(names) - most
    return _and([*names[:most], *([f"{more} more"] if more > 0 else [])])


def baseline_hint(rows: Rows) -> str:
    """Suggests --baseline for a run with rules that did not measure one."""
    if len(rows) == 1:
        return (
            "The rule may score the same without the system prompt; --baseline measures that, and"
            " says which."
        )
    return (
        "Some rules may score the same without the system prompt; --baseline measures that, and"
        " says which."
    )


# --- All probes together


def headline(findings: Findings) -> str:
    """Whether the agent drifts, in `MAX_WORDS` words; the two numbers if conversations are few."""
    row = findings.stability
    item, first, last = row.series, row.points[0], row.points[-1]
    scope, with_fix = _scope(item), _with_fix(item)
    agent = _capitalised(f"{with_fix} the agent".strip())
    conversations = count_of(last.n, "conversation")
    if last.mean is None or first.mean is None:
        return f"{agent} was not probed in every round: no verdict yet."
    if item.rounds == 1 and last.n < MIN_SAMPLES:
        return (
            f"{agent} scores {with_interval(last, percent)} in round 1{scope} (only"
            f" {conversations}, too few for a verdict)."
        )
    if item.rounds == 1:
        return f"{agent} scores {with_interval(last, percent)} in round 1{scope}."
    scores = _shares(row, " on probes")
    if findings.outcome is Outcome.TOO_FEW:
        return f"Only {conversations}{with_fix}, too few for a verdict: the agent scores {scores}."
    if findings.outcome is Outcome.HOLDS:
        most = f"{100 * MATTERS:.0f} points or more"
        return f"No drift of {most}{with_fix}{scope}: the agent scores {scores}."
    if findings.outcome is Outcome.UNDECIDED:
        return f"No clear drift{with_fix}{scope}: the agent scores {scores}."
    if findings.outcome is Outcome.IMPROVES:
        return f"{agent} improves{scope}: it scores {scores}."
    return f"{agent} drifts{scope}: it scores {scores}."


def _average(row: EstimateRow) -> str | None:
    """The mean over all probes, for a run whose title has no score."""
    if row.change.mean is None:
        return None
    if verdict_on(row.change).sign:
        return f"Over all probes it scores {_shares(row)}: {points_apart(row.change)}."
    return f"Over all probes it scores {_shares(row)}: the change of {_chance(row.change)}."


def _shares(row: EstimateRow, noun: str = "") -> str:
    """'75% on probes in round 8, down from 95% in round 1'."""
    first, last, sign = row.points[0].mean, row.points[-1].mean, verdict_on(row.change).sign
    assert first is not None and last is not None
    before, now = percent(first), percent(last)
    if sign and before == now:  # a difference that whole points would hide
        before, now = f"{100 * first:.1f}%", f"{100 * last:.1f}%"
    if sign > 0:
        return f"{now}{noun} in round {row.series.rounds}, up from {before} in round 1"
    if sign < 0:
        return f"{now}{noun} in round {row.series.rounds}, down from {before} in round 1"
    return f"{now}{noun} in round {row.series.rounds}, {before} in round 1"


def _change(row: EstimateRow) -> str | None:
    change = row.change
    if row.series.rounds == 1 or change.mean is None or change.n < MIN_SAMPLES:
        return None
    conversations = count_of(change.n, "conversation")
    if verdict_on(change).sign:
        return f"That is {points_apart(change)}, over {conversations}."
    return f"Over {conversations}, the change of {_chance(change)}."


def _chance(change: Estimate) -> str:
    """'-10 points (95% interval -28 to +8) could be chance'."""
    why = verdict_on(change).why
    if change.excludes_zero:
        return f"{points(change)} rests on too little: {why}"
    if why == INCLUDES_ZERO:  # the reader sees that the interval includes 0
        return f"{points(change)} could be chance"
    return f"{points(change)} could be chance: {why}"


def _few_prompts(first: Series) -> str | None:
    """Warns that a few prompts say nothing about others; a single prompt is taken as intended."""
    count = len(set(first.prompts))
    if not 1 < count < MIN_PROMPTS or len(first.records) < MIN_SAMPLES:
        return None
    return (
        f"This holds for these {count} prompts; to say anything about others takes"
        f" {MIN_PROMPTS} or more."
    )


def _adoption(row: EstimateRow) -> str | None:
    first, last, change = row.points[0], row.points[-1], row.change
    if first.mean is None or last.mean is None or row.series.rounds == 1 or change.n < MIN_SAMPLES:
        return None
    sign, shares = verdict_on(change).sign, _shares(row)
    if not sign:
        return f"It shows no clear sign of adopting the other speaker’s prompt: {shares}."
    if sign > 0:
        return f"It adopts the other speaker’s prompt more: {shares}, {points_apart(change)}."
    return f"It adopts the other speaker’s prompt less: {shares}, {points_apart(change)}."


def _short_conversations(first: Series) -> str | None:
    """Says that the sentences leave out rounds that most conversations did not reach."""
    if first.shared_rounds == first.rounds:
        return None
    return (
        f"Fewer than half of the conversations go beyond {count_of(first.shared_rounds, 'round')}."
    )


# --- Fixes


def fix(series: Sequence[Series]) -> str | None:
    """The best fix, against the first series; None if nothing was compared."""
    best = best_fix(series)
    if best is None or best.last.mean is None:
        return None
    last = best.row.points[-1].mean
    assert last is not None  # it has a difference
    gain, compared = best.last, len(fixes(series))
    name = best.row.series.method
    if compared > 1:
        name = f"{name}, the highest of {compared} methods over all rounds,"
    scores = f"{percent(last)} in round {best.row.series.rounds}"
    sign = verdict_on(gain).sign
    if sign > 0:
        return f"With {name} it still scores {scores}, {points_apart(gain)}."
    if sign < 0:
        return f"With {name} it only scores {scores}, {points_apart(gain)}."
    if gain.n < MIN_SAMPLES:
        return f"With {name} it scores {scores}; too few conversations to compare."
    if verdict_on(best.mean).sign:
        return (
            f"With {name} it scores {scores}; the difference of {_chance(gain)}, but over all"
            f" rounds it is {points_apart(best.mean)}."
        )
    return f"With {name} it scores {scores}; the difference of {_chance(gain)}."


def best_fix(series: Sequence[Series]) -> Difference | None:
    """The most stable method over all rounds in the first run, other than its first method."""
    return max(fixes(series), key=lambda pair: pair.mean.mean or 0.0, default=None)


def still_lost(series: Sequence[Series], baseline: Baseline | None) -> str | None:
    """'Still lost with it: “signs” (20%).', for rules that are lost without the best fix too, and
    that it does not raise, or are lost with it as well.
    """
    if (best := best_fix(series)) is None or best.last.mean is None:
        return None
    before = {
        (row.case, row.rule): row.points[-1].mean or 0.0
        for row in rule_rows([series[0]])
        if (row.never_followed or is_lost(row)) and not is_uninformative(row, baseline)
    }
    names = []
    for row in rule_rows([best.row.series]):
        without, last = before.get((row.case, row.rule)), row.points[-1].mean
        if without is None or last is None:
            continue
        if last < without:
            names.append(f"“{row.group}” ({percent(last)}, {percent(without)} without)")
        elif row.never_followed or is_lost(row) or last == without:
            names.append(f"“{row.group}” ({percent(last)})")
    return f"Still lost with it: {_listing(names)}." if names else None


# --- Parts of sentences


def _with_fix(item: Series) -> str:
    """' with boost:factor=4'; "" without a fix."""
    return "" if item.method == NO_FIX else f" with {item.method}"


def _scope(item: Series) -> str:
    """' on this prompt', ' on these 5 prompts'; "" if the change holds for others as well."""
    count = len(set(item.prompts))
    if count == 1:
        return " on this prompt"
    change = row_of(item, "stability").change
    others = change.other_prompts
    holds = others and (others.excludes_zero or not change.excludes_zero)
    by_rule = any(probe.rule for record in item.records for probe in record.probes)
    return "" if holds and not by_rule else f" on these {count} prompts"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _and(parts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def counted(series: Sequence[Series]) -> str:
    """How many conversations of how many rounds, and under how many methods if several."""
    counts = sorted({len(item.records) for item in series})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    noun = "conversation" if counts[-1] == 1 else "conversations"
    rounds, methods = count_of(series[0].rounds, "round"), len({item.method for item in series})
    if methods > 1:
        return f"{number} {noun} of {rounds}, under each of {methods} methods"
    return f"{number} {noun} of {rounds}"


# --- Tables


def fall(row: EstimateRow, baseline: Baseline | None = None) -> str:
    """Whether a rule is followed at all, and from which round on it is followed less."""
    if row.n < MIN_SAMPLES:
        return f"n = {row.n}, too few to tell (that takes {MIN_SAMPLES})"
    if baseline and baseline.verdict_on(row.case, row.rule) == MADE_WORSE:
        return f"{MADE_WORSE} by the prompt"
    if row.never_followed:
        often = f"0 of {row.n} conversations" if not row.kept_once else "less than 20% everywhere"
        return f"{NEVER_FOLLOWED} ({often})"
    if is_uninformative(row, baseline):
        return f"{UNINFORMATIVE}: as good without the prompt"
    if row.series.rounds < 2:
        return "one round cannot show a fall"
    if not row.lower_in and row.change.n < MIN_SAMPLES:
        return (
            f"scored in both the first round and the last in {row.change.n} of {row.n}"
            f" conversations, too few to tell (that takes {MIN_SAMPLES})"
        )
    if not row.lower_in:
        return "no clear fall"
    if row.lower_from is None:
        return f"followed less in {_rounds_text(row.lower_in)} only"
    if row.lower_in == tuple(range(row.lower_from, row.series.rounds + 1)):
        return f"followed less {_since(row)}"
    return f"followed less {_since(row)} (clear in {_ranges(row.lower_in)})"


def _rounds_text(numbers: Sequence[int]) -> str:
    """'round 3', or 'rounds 2 and 5 to 8'."""
    return f"round {numbers[0]}" if len(numbers) == 1 else f"rounds {_ranges(numbers)}"


def _ranges(numbers: Sequence[int]) -> str:
    """'3', or '2 and 5 to 8'."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans: list[str] = []
    for run in runs:
        spans += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(number) for number in run]
    return _and(spans)


def broken_text(row: EstimateRow) -> str:
    """'first broken in round 1: 2, round 3: 5; kept throughout: 33 of 40'."""
    kept = f"kept throughout: {row.kept} of {row.n}"
    numbered = enumerate(row.broken, start=1)
    counts = ", ".join(f"round {number}: {count}" for number, count in numbered if count)
    return f"first broken in {counts}; {kept}" if counts else kept


def default_prompt_sentence(default: DefaultPrompt) -> str:
    """Describes the system prompt that the template inserts by itself."""
    if default.can_be_left_out:
        return (
            f"Without a system prompt this template inserts '{default.text}'; what is asked without"
            " a prompt is asked under an empty one instead."
        )
    return (
        f"Without a system prompt this template inserts '{default.text}'; an empty one does not"
        " replace it, so it is part of what is asked without a prompt."
    )


def baseline_lines(baseline: Baseline, by_case: bool = False) -> list[str]:
    """Which prompts (`by_case`) or rules are never followed, uninformative or undecided."""
    overall = baseline.overall
    rows = baseline.cases if by_case or baseline.by_rule else baseline.measures
    few = overall.n < MIN_SAMPLES
    unclear = "too few conversations to compare" if few else "no clear difference"
    apart = {1: "clearly higher", -1: "clearly lower", 0: unclear}
    lines = [
        f"Without a system prompt the same probes score {plain(overall.unprompted)} in round 1,"
        f" with it {plain(overall.prompted)}: {apart[verdict_on(overall.difference).sign]}."
    ]
    if baseline.default:
        lines.append(default_prompt_sentence(baseline.default))
    verdicts = {
        MADE_WORSE: "Made worse by the prompt",
        NEVER_FOLLOWED: "Never followed, in any round",
        UNINFORMATIVE: "Uninformative, as good without the prompt",
        CANNOT_TELL: "Too uncertain to say whether the prompt makes a difference",
    }
    if baseline.by_rule and not by_case:
        del verdicts[NEVER_FOLLOWED]  # the title and the table of rules name them
    for verdict, text in {} if few else verdicts.items():
        names = [
            f"{row.name} ({row.prompted.mean:.2f} with it, {row.unprompted.mean:.2f} without)"
            for row in rows
            if row.verdict == verdict
        ]
        if names:
            lines.append(f"{text}: {_listing(names)}.")
    return lines
