"""`holdfast check`: runs conversations of each prompt, in growing batches, until its verdict is
certain.

The verdicts are looked at after 8, 12, 18, 27, ... conversations of each prompt. After each look,
only the prompts that need more are in the next batch.

The conversations are a drift run in which the agent has the prompts in turn: with three prompts,
the first one is in conversations 0, 3, 6, ... So each prompt's conversations are drawn alike, as
`analysis.sequential` requires. Scripts of the user take turns too, which only makes errors rarer.
The verdicts decide which conversations are run, but do not change their content.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast import drift
from holdfast.analysis.check_file import write_check
from holdfast.analysis.check_verdicts import check_prompts
from holdfast.analysis.sequential import FAIL, UNDECIDED
from holdfast.analysis.unscored import WITHOUT_SCORE, is_unmeasured, unscored_by_reason
from holdfast.drift.suites import as_suite
from holdfast.errors import AnotherRun, ModelError, Unavailable, UsageError, option
from holdfast.methods import Method, read_methods, spec_of
from holdfast.models.protocol import ChatModel
from holdfast.records import Conversation, Run, read_earlier, read_run
from holdfast.records.check_records import PromptCheck, Terms

FIRST_BATCH = 8  # conversations of each prompt
SMOKE_FIRST_BATCH = 2  # likewise, in a smoke test
GROWTH = 1.5  # the factor by which a prompt's conversations grow from one look to the next
# if the server does not reply, a prompt gets at most this many times the first batch
BATCHES_IN_OUTAGE = 3

EarlierRun = Mapping[str, Sequence[Conversation]]  # its conversations by prompt


@dataclass(frozen=True)
class CheckOptions:
    """The options of a check other than its prompts, protocol and terms.

    Attributes:
        method: applied to the agent.
        before: conversations of an earlier run, as `earlier_conversations` reads them. The check
            runs as many, within the budget, unless a prompt fails first. Without a bar, a prompt
            that the earlier run lacks gets the whole budget, so that a later run can be compared
            with this one.
        cast: who takes part besides the agent.
        running: traces, progress and the command line.
        seconds: how long the check may take; no batch begins that would probably end later. None
            for no limit.
        on_look: called at every look with the most conversations that a prompt may have had so far,
            and the verdicts so far.
    """

    method: Sequence[Method] | Method | str = ()
    before: EarlierRun | None = None
    cast: drift.Cast = drift.Cast()
    running: drift.Running = drift.Running()
    seconds: float | None = None
    on_look: Callable[[int, Sequence[PromptCheck]], None] = lambda finished, checks: None


class CheckedRun(NamedTuple):
    """A run of a check, and its verdicts in the order of the suite."""

    run: Run
    checks: list[PromptCheck]


def check(
    model: ChatModel,
    suite: drift.Suite | str,
    out: Path | str,
    settings: drift.Settings = drift.Settings(),
    terms: Terms = Terms(),
    options: CheckOptions = CheckOptions(),
) -> CheckedRun:
    """Runs conversations of every prompt of a suite until each has a verdict, or its budget is
    spent; resumes what `out` holds.

    The check overrides the settings' conversations, pairs, adoption and trace.

    Raises:
        UsageError: there are neither a bar nor an earlier run.
        ModelError: no reply of the model can be scored.
        Unavailable: no reply can be scored, because the server failed.
        AnotherRun: `out` holds another run.
    """
    suite = as_suite(suite)
    method = read_methods(options.method)
    if terms.min_stability is None and not options.before:
        raise UsageError(
            f"Without an earlier run, prompts need a bar; give {option('min_stability')}, or the"
            " conversations of an earlier run."
        )
    settings = check_settings(suite, settings, terms)
    running_check = _RunningCheck(
        out=Path(out),
        method=spec_of(method),
        prompts=tuple(case.id for case in suite.cases),
        rounds=settings.rounds,
        terms=terms,
        options=options,
    )
    run = drift.run(
        model,
        suite,
        out,
        settings,
        [method],
        cast=options.cast,
        running=options.running,
        batches=running_check.batches,
    )
    checks = running_check.judge()
    write_check(Path(out), running_check.method, terms, checks, settings.rounds)
    _require_scores(checks)
    return CheckedRun(run, checks)


def check_settings(suite: drift.Suite, settings: drift.Settings, terms: Terms) -> drift.Settings:
    """Returns the protocol of a check, with all conversations that it may run."""
    return dataclasses.replace(
        settings,
        conversations=terms.budget * len(suite.cases),
        pairs="in-turn",
        adoption=False,
        trace=False,
    )


def _require_scores(checks: Sequence[PromptCheck]) -> None:
    """Refuses to report verdicts if not a single reply to any prompt could be scored."""
    if not all(map(_is_unscored, checks)):
        return
    records = [record for prompt_check in checks for record in prompt_check.records]
    reasons = unscored_by_reason(records, "stability")
    if not reasons:
        raise Unavailable(
            "Nothing could be checked, as the server failed, or a filter withheld its replies, in"
            f" all of {len(records):,} conversations. This says nothing about the prompts: see that"
            " the server answers (holdfast generate), and check again with another --out."
        )
    counts = ", ".join(f"{count:,} {WITHOUT_SCORE[why]}" for why, count in reasons.most_common())
    is_outage = all(prompt_check.unavailable for prompt_check in checks)
    error = Unavailable if is_outage else ModelError
    raise error(
        f"Nothing could be checked, as none of {reasons.total():,} replies can be scored:"
        f" {counts}. This says nothing about the prompts: look at what the model or its server"
        " answers (holdfast generate), and give a reasoning model more room with --max-new-tokens."
    )


@dataclass(frozen=True)
class _RunningCheck:
    """A running check, which looks at its verdicts to decide which conversations come next."""

    out: Path
    method: str
    prompts: tuple[str, ...]  # their ids, in suite order
    rounds: int
    terms: Terms
    options: CheckOptions

    def judge(self) -> list[PromptCheck]:
        """Decides on all prompts by the conversations that are recorded so far."""
        conversations = read_run(self.out).conversations
        records = [record for record in conversations if record.method == self.method]
        return check_prompts(records, self.prompts, self.rounds, self.terms, self.options.before)

    def batches(self) -> Iterator[list[int]]:
        """Yields the numbers of the next conversations until all verdicts are certain, the budget
        is spent, or the time is up.
        """
        before = self.options.before or {}
        num_finished = 0
        clock = _Clock(self.options.seconds)
        for total in looks(self.terms.budget, _first_batch(self.terms)):
            checks = self.judge()
            self.options.on_look(num_finished, checks)
            missing: list[range] = []  # of each prompt, by its own count
            for prompt_check in checks:
                due = _conversations_due(prompt_check, self.terms, before)
                missing.append(range(len(prompt_check.records), due))
            if not any(missing):
                return
            numbers = _run_numbers(missing, total)
            if not clock.has_time_for(len(numbers)):
                return
            if numbers:  # none if the run is resumed and has this many already
                yield numbers
            clock.note_batch(len(numbers))
            num_finished = total


def looks(budget: int, first: int = FIRST_BATCH) -> list[int]:
    """Returns the most conversations that a prompt has at each look at its verdict: [8, 12, 18, 20]
    for a budget of 20. The look before the first batch is left out.
    """
    totals = [min(first, budget)]
    while totals[-1] < budget:
        totals.append(min(round(totals[-1] * GROWTH), budget))
    return totals


def _first_batch(terms: Terms) -> int:
    """Returns how many conversations of each prompt are in the first batch."""
    return SMOKE_FIRST_BATCH if terms.smoke else FIRST_BATCH


def _conversations_due(prompt_check: PromptCheck, terms: Terms, before: EarlierRun) -> int:
    """Returns how many conversations a prompt should have, given its verdict so far; 0 or fewer
    than it has if it needs no more.
    """
    if _is_unscored(prompt_check):
        if prompt_check.unavailable:  # the outage may end
            return min(terms.budget, BATCHES_IN_OUTAGE * _first_batch(terms))
        return 0  # more such replies will not decide
    if prompt_check.undecided_rules(terms):
        return terms.budget
    if prompt_check.verdict == FAIL and not terms.all_rules:
        return 0
    if terms.min_stability is not None and prompt_check.verdict == UNDECIDED:
        return terms.budget
    if prompt_check.id in before:  # to compare as many as the earlier run has
        return min(terms.budget, len(before[prompt_check.id]))
    if terms.min_stability is None:  # so that a later run can be compared with this one
        return terms.budget
    return 0


def _is_unscored(prompt_check: PromptCheck) -> bool:
    """Whether conversations were held, but not a single reply could be scored."""
    return is_unmeasured(prompt_check.records) or (
        prompt_check.unavailable and prompt_check.lowest is None
    )


def _run_numbers(missing: Sequence[range], total: int) -> list[int]:
    """Returns the numbers in the run of the conversations that prompts need, in ascending order.

    Prompts take turns, so with two prompts, conversations 0 and 1 of the second prompt are numbers
    1 and 3 of the run.

    Args:
        missing: the conversations that each prompt needs, by its own count.
        total: leaves out a prompt's conversations from this one on.
    """
    numbers: list[int] = []
    for prompt, conversations in enumerate(missing):
        numbers += [count * len(missing) + prompt for count in conversations if count < total]
    return sorted(numbers)


class _Clock:
    """Estimates whether there is time for another batch, from how long earlier ones took."""

    def __init__(self, seconds: float | None):
        self._seconds = seconds
        self._start = time.monotonic()
        self._finished = 0

    def note_batch(self, conversations: int) -> None:
        """Notes that a batch of this many conversations has ended."""
        self._finished += conversations

    def has_time_for(self, conversations: int) -> bool:
        """Whether a batch of this size would end in time; always True for the first one."""
        if self._seconds is None or not self._finished:
            return True
        elapsed = time.monotonic() - self._start
        return elapsed + elapsed / self._finished * conversations <= self._seconds


def earlier_conversations(folder: Path | str, suite: drift.Suite, method: str) -> EarlierRun:
    """Reads the conversations of an earlier run by prompt: those under a method, or under the run's
    only method if it is another.

    Raises:
        AnotherRun: the folder holds no drift run, several other methods, or none of the prompts.
    """
    run = read_earlier(folder, "drift")
    recorded_methods = list(dict.fromkeys(record.method for record in run.records))
    if method not in recorded_methods and len(recorded_methods) != 1:
        raise AnotherRun(
            f"{folder} has the methods {', '.join(recorded_methods) or '(none yet)'}, and not"
            f" {method}; give a run of that method, or of one method.",
            option="against",
            value=method,
            allowed=recorded_methods,
        )
    method_to_compare = method if method in recorded_methods else recorded_methods[0]
    conversations_by_case: dict[str, list[Conversation]] = {case.id: [] for case in suite.cases}
    for record in sorted(run.conversations, key=lambda record: record.conversation):
        if record.method == method_to_compare and record.agent.id in conversations_by_case:
            conversations_by_case[record.agent.id].append(record)
    if not any(conversations_by_case.values()):
        raise AnotherRun(
            f"{folder} has none of the prompts of this suite ({', '.join(conversations_by_case)});"
            " give a run of the same prompts.",
            option="against",
            value=str(folder),
            allowed=list(conversations_by_case),
        )
    return {name: records for name, records in conversations_by_case.items() if records}
