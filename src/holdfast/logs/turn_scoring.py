"""Scores each turn of a logged dialog by the rules that apply to it.

For example:

    LoggedTurn(2, "git push"), rule never-push -> LogProbe(round=2, score=0, cause="...")
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.drift.cases import Case, Rule, Suite
from holdfast.drift.probe_outcomes import (
    CUT,
    NOT_SHOWN,
    PendingProbe,
    ProbeOutcome,
    ProbeResults,
)
from holdfast.errors import cut
from holdfast.logs.causes import DialogCauses
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn
from holdfast.measures.scores import MIN_KEPT_SCORE, Score
from holdfast.records import (
    BreachCause,
    LogDialog,
    LogProbe,
    LogPrompt,
    LogTurn,
    Probe,
    ProbeReply,
    RuleInContext,
    Unscored,
)
from holdfast.records.conversation import RECORDED

MAX_TEXT_CHARACTERS = 600  # of a message in a record
METHOD = "logs"  # stands where the records of other runs name their method
KIND = "logged"  # stands where the scores of other runs name the kind of their probe


class ScoreCause(NamedTuple):
    """Where a rule was when a turn began, and why the turn broke it if it did."""

    context: RuleInContext
    cause: BreachCause


class ScoreKey(NamedTuple):
    """The number of a turn, and the id of a rule."""

    turn: int
    rule: str | None


@dataclass(frozen=True)
class ScoredDialog:
    """A dialog whose turns are scored, except by its judges.

    Args:
        record: the record of the dialog, without its scores.
        causes: where the rule was, and why it was broken, for each score that a judge has to give.
    """

    record: LogDialog
    outcomes: tuple[ProbeOutcome, ...]
    causes: Mapping[ScoreKey, ScoreCause]

    @property
    def awaits_judge(self) -> bool:
        """Whether a judge still has to give some of the scores."""
        return any(isinstance(outcome, PendingProbe) for outcome in self.outcomes)


def has_other_prompt(dialog: LoggedDialog, case: Case) -> bool:
    """Whether a dialog has a system prompt that is not the one of its case."""
    return bool(dialog.system.strip()) and case.system_prompt.strip() not in dialog.system


def score_dialog(dialog: LoggedDialog, case: Case) -> ScoredDialog:
    """Scores the turns of a dialog by the rules of its case."""
    causes = DialogCauses(dialog, case)
    outcomes: list[ProbeOutcome] = []
    score_causes: dict[ScoreKey, ScoreCause] = {}
    for turn in dialog.turns:
        for outcome in _scores(turn, case, causes):
            outcomes.append(outcome)
            if isinstance(outcome, PendingProbe):
                rule = outcome.probe.rule
                cause = ScoreCause(causes.context_of(rule, turn), causes.cause_of(rule, turn))
                score_causes[ScoreKey(turn.number, rule)] = cause
    return ScoredDialog(_record(dialog, case, causes), tuple(outcomes), score_causes)


def _record(dialog: LoggedDialog, case: Case, causes: DialogCauses) -> LogDialog:
    """The record of a dialog without its scores, with its texts cut short."""
    numbers = {turn.number for turn in dialog.turns}
    return LogDialog(
        method=METHOD,
        conversation=0,
        source=dialog.source,
        agent=LogPrompt(id=case.id, category=case.category),
        user=LogPrompt(id="", category=METHOD),
        turns=tuple(
            LogTurn(
                round=turn.number,
                speaker="agent",
                text=cut(turn.done.text, MAX_TEXT_CHARACTERS),
                stop_reason=RECORDED,
                reasoning=cut(turn.reasoning, MAX_TEXT_CHARACTERS) or None,
                tokens=turn.tokens,
                tools=tuple(call.name for call in turn.done.calls),
                span=turn.trace_span or None,
            )
            for turn in dialog.turns
        ),
        probes=(),
        # a compaction before a copied turn is counted in the dialog where the turn is counted
        compactions=tuple(item for item in causes.compactions if item.turn in numbers),
    )


def with_results(scored: ScoredDialog, results: ProbeResults) -> LogDialog:
    """The record of a dialog with the scores of its turns, including those of its judges."""
    probes = tuple(
        probe
        if isinstance(probe, LogProbe)
        else _with_cause(probe, scored.causes[ScoreKey(probe.round, probe.rule)])
        for probe in results.probes
    )
    scores = {
        "probes": probes,
        "unscored": results.unscored,
        "unanswered": results.unanswered,
    }
    return scored.record.model_copy(update=scores)


def _with_cause(probe: Probe, score_cause: ScoreCause) -> LogProbe:
    """A judge's score with where its rule was, and why the turn broke it if it did."""
    return LogProbe(
        **{**dict(probe), "reply": cut(probe.reply, MAX_TEXT_CHARACTERS)},
        context=score_cause.context,
        cause=score_cause.cause if probe.score < MIN_KEPT_SCORE else None,
    )


def _scores(turn: LoggedTurn, case: Case, causes: DialogCauses) -> Iterator[ProbeOutcome]:
    """The scores of a turn by the rules that apply to it."""
    for rule in case.rules:
        if rule.when.applies(turn.done, turn.user, turn.role):
            outcome = _score(turn, rule, causes)
            if outcome is not None:
                yield outcome


def _score(turn: LoggedTurn, rule: Rule, causes: DialogCauses) -> ProbeOutcome | None:
    """The score of a turn by a rule, or what stands in its place; None if the measure does not
    apply to the turn.
    """
    measure = rule.measure
    done = turn.done
    reply = cut(done.text, MAX_TEXT_CHARACTERS)
    has_text = bool(done.text.strip())
    fields: dict[str, Any] = {
        "round": turn.number,
        "kind": KIND,
        "rule": rule.id or None,
        "probe": 0,
        "question": cut(turn.user, MAX_TEXT_CHARACTERS),
        "rule_kind": rule.kind,
        "polarity": rule.polarity,
    }
    if measure.judged:
        if not (has_text or done.calls):
            return None
        return PendingProbe(ProbeReply(**fields, reply=done.text), measure, done.text_with_calls())
    judged = measure.judge_turn(done)
    if isinstance(judged, Score):
        # made with all its fields at once, as each copy of a record is validated again
        return LogProbe(
            **fields,
            reply=reply,
            score=judged.value,
            reason=judged.reason,
            context=causes.context_of(fields["rule"], turn),
            cause=None if judged.keeps_rule else causes.cause_of(fields["rule"], turn),
        )
    if judged is not None:
        return Unscored(**fields, reply=reply, why=NOT_SHOWN, reason=judged.reason)
    if done.is_cut and has_text and not measure.of_turn:
        return Unscored(**fields, reply=reply, why="cut", reason=CUT)
    return None


def case_of(dialog: LoggedDialog, suite: Suite) -> Case | None:
    """The case whose prompt the dialog has, or else the only case; None if there are several."""
    prompt = dialog.system.strip()
    for case in suite.cases:
        if case.system_prompt.strip() == prompt:
            return case
    for case in sorted(suite.cases, key=lambda case: -len(case.system_prompt.strip())):
        if case.system_prompt.strip() in prompt:
            return case
    return suite.cases[0] if len(suite.cases) == 1 else None
