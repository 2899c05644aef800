"""`holdfast check`: conversations of each prompt, in growing batches, until its verdict is certain.

The conversations are a drift run in which the agent has the prompts in turn, so that each prompt's
conversations are drawn alike and independently, as `analysis.sequential` requires. Which of them
are run depends on the verdicts; their content does not.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast import drift
from holdfast.analysis.check_file import write_check
from holdfast.analysis.check_terms import Terms
from holdfast.analysis.check_verdicts import PromptCheck, check_prompts
from holdfast.analysis.sequential import FAIL, UNDECIDED
from holdfast.analysis.unscored import WITHOUT_SCORE, is_unmeasured, unscored_by_reason
from holdfast.errors import AnotherRun, ModelError, Unavailable, UsageError
from holdfast.methods import Method, read_methods, spec_of
from holdfast.models.protocol import ChatModel
from holdfast.records import Conversation, Run, read_earlier, read_run

SMOKE_FIRST = 2  # of each prompt in the first batch of a smoke test
FIRST = 8  # conversations of each prompt in the first batch
GROWTH = 1.5  # of a prompt's conversations so far, from one look to the next
# a prompt without a single reply has as many conversations as this many first batches at most
BATCHES_IN_OUTAGE = 3

Earlier = Mapping[str, Sequence[Conversation]]  # an earlier run's conversations by prompt


@dataclass(frozen=True)
class CheckOptions:
    """The options of a check other than its prompts, protocol and terms."""

    method: Sequence[Method] | Method | str = ()  # applied to the agent
    # conversations of an earlier run, as `earlier_conversations` reads them. As many are run here,
    # within the budget, unless a prompt fails first. Without a bar, a prompt that the earlier run
    # lacks gets the whole budget, so that a later run can be compared with this one.
    before: Earlier | None = None
    cast: drift.Cast = drift.Cast()  # as in `drift.run`
    running: drift.Running = drift.Running()
    # of the run, after which no batch begins that would probably end later; None: no limit
    seconds: float | None = None
    # called at every look with the most conversations per prompt so far, and the verdicts so far
    on_look: Callable[[int, Sequence[PromptCheck]], None] = lambda finished, checks: None


class CheckedRun(NamedTuple):
    """A run of a check, and its verdicts in the order of the suite."""

    run: Run
    checks: list[PromptCheck]


def check(
    model: ChatModel,
    suite: drift.Suite,
    out: Path | str,
    settings: drift.Settings = drift.Settings(),
    terms: Terms = Terms(),
    options: CheckOptions = CheckOptions(),
) -> CheckedRun:
    """Runs conversations of every prompt of a suite until each has a verdict, or its budget is
    spent; resumes what `out` holds.

    The check overrides the settings' conversations, pairs, adoption and trace.
    """
    before = options.before or {}
    method = read_methods(options.method)
    if terms.min_stability is None and not before:
        raise UsageError(
            "Without an earlier run, prompts need a bar; give --min-stability, or --against."
        )
    prompts = [case.id for case in suite.cases]
    settings = check_settings(suite, settings, terms)
    name = spec_of(method)

    def judge() -> list[PromptCheck]:
        records = [record for record in read_run(out).conversations if record.method == name]
        return check_prompts(records, prompts, settings.rounds, terms, options.before)

    def batches() -> Iterator[list[int]]:
        finished = 0
        clock = _Clock(options.seconds)
        for total in looks(terms.budget, SMOKE_FIRST if terms.smoke else FIRST):
            checks = judge()
            options.on_look(finished, checks)
            laps = [
                range(len(checked.records), _laps_needed(checked, terms, before))
                for checked in checks
            ]
            if not any(laps):
                return
            numbers = _numbers_of(laps, total)
            if not clock.has_time_for(len(numbers)):
                return
            if numbers:  # a run that is resumed may have more already
                yield numbers
            clock.note_batch(len(numbers))
            finished = total

    run = drift.run(
        model,
        suite,
        out,
        settings,
        [method],
        cast=options.cast,
        running=options.running,
        batches=batches,
    )
    checks = judge()
    write_check(Path(out), name, terms, checks, settings.rounds)
    _require_scores(checks)
    return CheckedRun(run, checks)


def _is_unscored(checked: PromptCheck) -> bool:
    """Whether conversations were held, and not a single reply could be scored."""
    return is_unmeasured(checked.records) or (checked.unavailable and checked.lowest is None)


def _require_scores(checks: Sequence[PromptCheck]) -> None:
    """Refuses a verdict on any prompt if not a single reply could be scored."""
    if not all(map(_is_unscored, checks)):
        return
    records = [record for checked in checks for record in checked.records]
    reasons = unscored_by_reason(records, "stability")
    if not reasons:
        raise Unavailable(
            "Nothing could be checked, as the server failed, or a filter withheld its replies, in"
            f" all of {len(records):,} conversations. This says nothing about the prompts: see that"
            " the server answers (holdfast generate), and check again with another --out."
        )
    listed = ", ".join(f"{count:,} {WITHOUT_SCORE[why]}" for why, count in reasons.most_common())
    is_outage = all(checked.unavailable for checked in checks)
    error = Unavailable if is_outage else ModelError
    raise error(
        f"Nothing could be checked, as none of {reasons.total():,} replies can be scored:"
        f" {listed}. This says nothing about the prompts: look at what the model or its server"
        " answers (holdfast generate), and give a reasoning model more room with --max-new-tokens."
    )


def check_settings(suite: drift.Suite, settings: drift.Settings, terms: Terms) -> drift.Settings:
    """The protocol of a check, with all conversations that it may run."""
    return dataclasses.replace(
        settings,
        conversations=terms.budget * len(suite.cases),
        pairs="in-turn",
        adoption=False,
        trace=False,
    )


def _numbers_of(laps: Sequence[range], total: int) -> list[int]:
    """The numbers of a batch's conversations: the laps that each prompt needs, up to `total`.

    Prompts take turns: conversation n is that of prompt n modulo their number.
    """
    numbers: list[int] = []
    for prompt, laps_of_prompt in enumerate(laps):
        numbers += [lap * len(laps) + prompt for lap in laps_of_prompt if lap < total]
    return sorted(numbers)


class _Clock:
    """Says whether there is time for another batch, going by how long those before it took."""

    def __init__(self, seconds: float | None):
        self._seconds = seconds
        self._began = time.monotonic()
        self._done = 0

    def note_batch(self, conversations: int) -> None:
        """Notes that a batch has ended."""
        self._done += conversations

    def has_time_for(self, conversations: int) -> bool:
        """Whether a batch of so many would end in time; the first one always may begin."""
        if self._seconds is None or not self._done:
            return True
        passed = time.monotonic() - self._began
        return passed + passed / self._done * conversations <= self._seconds


def looks(budget: int, first: int = FIRST) -> list[int]:
    """How many conversations a prompt may have had at each look at its verdict after the first."""
    totals = [min(first, budget)]
    while totals[-1] < budget:
        totals.append(min(round(totals[-1] * GROWTH), budget))
    return totals


def _laps_needed(checked: PromptCheck, terms: Terms, before: Earlier) -> int:
    """How many conversations a prompt is to have, by its verdict so far."""
    if _is_unscored(checked):  # more of the same replies will not decide, but an outage may end
        first = SMOKE_FIRST if terms.smoke else FIRST
        return min(terms.budget, BATCHES_IN_OUTAGE * first) if checked.unavailable else 0
    if checked.undecided_rules(terms):
        return terms.budget
    if checked.verdict == FAIL and not terms.all_rules:
        return 0
    if checked.id in before and (terms.min_stability is None or checked.verdict != UNDECIDED):
        return min(terms.budget, len(before[checked.id]))
    return terms.budget if checked.verdict == UNDECIDED or terms.min_stability is None else 0


def earlier_conversations(folder: Path | str, suite: drift.Suite, method: str) -> Earlier:
    """An earlier run's conversations by prompt, under the method or, lacking it, its only one."""
    run = read_earlier(folder, "drift")
    recorded = list(dict.fromkeys(record.method for record in run.records))
    if method not in recorded and len(recorded) != 1:
        raise AnotherRun(
            f"{folder} has the methods {', '.join(recorded) or '(none yet)'}, and not {method};"
            " give a run of that method, or of one method, with --against.",
            option="against",
            value=method,
            allowed=recorded,
        )
    compared = method if method in recorded else recorded[0]
    by_case: dict[str, list[Conversation]] = {case.id: [] for case in suite.cases}
    for record in sorted(run.conversations, key=lambda record: record.conversation):
        if record.method == compared and record.agent.id in by_case:
            by_case[record.agent.id].append(record)
    if not any(by_case.values()):
        raise AnotherRun(
            f"{folder} has none of the prompts of this suite ({', '.join(by_case)}); give a run of"
            " the same prompts with --against.",
            option="against",
            value=str(folder),
            allowed=list(by_case),
        )
    return {name: records for name, records in by_case.items() if records}
