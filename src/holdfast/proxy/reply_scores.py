"""The scores of an assistant's turn by the rules of a case, or why it has none."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.drift.cases import Rule
from holdfast.errors import HoldfastError
from holdfast.logs.dialogs import LoggedTurn
from holdfast.measures import Score
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.scores import MIN_KEPT_SCORE, Undecided

_LOG = logging.getLogger("holdfast.proxy")
_MAX_SECONDS = 1.0  # of computing for the patterns of one rule on one reply


class WhyUnscored(Enum):
    """Why a reply has no scores."""

    FAILED = "failed"  # the request was refused, or the reply broke off
    UNREADABLE = "unreadable"  # it is not in the API's format as we know it
    MEASURE_FAILED = "measure_failed"  # the log names the rule
    BACKGROUND = "background"  # it is made after the answer, and fetched by another request
    UNFINISHED = "unfinished"  # it calls a tool, so the assistant's turn is not over
    EMPTY = "empty"  # it has no text
    NO_RULE = "no_rule"  # no rule applies to it
    CUT = "cut"  # it ended at the token limit, and the rules that apply need its end
    NOT_SHOWN = "not_shown"  # the chat lacks what decides, such as the text of a file
    BUSY = "busy"  # too many replies were waiting to be scored
    TOO_LONG = "too_long"
    NOT_SUPPORTED = "not_supported"  # its compression is not supported


# If several rules give no score, for different reasons, the first of these is the reply's reason.
_MOST_INFORMATIVE_FIRST = (
    WhyUnscored.MEASURE_FAILED,
    WhyUnscored.CUT,
    WhyUnscored.NOT_SHOWN,
    WhyUnscored.EMPTY,
)


@dataclass(frozen=True)
class RuleScore:
    """The score of a reply by one rule; `reason` explains it."""

    rule: str  # its id; "" for the only rule of a case
    value: float
    reason: str

    @property
    def kept(self) -> bool:
        """Whether the reply follows the rule."""
        return self.value >= MIN_KEPT_SCORE


@dataclass(frozen=True)
class ScoredReply:
    """The scores of an assistant's turn, at least one.

    Attributes:
        turn: the number of the turn in its dialog, from 1.
        failed: the ids of rules that gave no score because their measure failed.
    """

    case: str
    turn: int
    scores: tuple[RuleScore, ...]
    failed: tuple[str, ...] = ()


def score_reply(case: str, rules: Sequence[Rule], turn: LoggedTurn) -> ScoredReply | WhyUnscored:
    """Scores a turn by the rules that apply to it."""
    scores: list[RuleScore] = []
    failed: list[str] = []
    reasons: set[WhyUnscored] = set()
    for rule in rules:
        try:
            score = _score(rule, turn)
        except HoldfastError as error:  # a measure that the user wrote failed, or a slow pattern
            reasons.add(WhyUnscored.MEASURE_FAILED)
            failed.append(rule.id or "")
            note_failure(case, rule, error)
            continue
        if isinstance(score, WhyUnscored):
            reasons.add(score)
        else:
            scores.append(RuleScore(rule.id or "", score.value, score.reason))
    if scores:
        return ScoredReply(case, turn.number, tuple(scores), tuple(failed))
    return next(
        (reason for reason in _MOST_INFORMATIVE_FIRST if reason in reasons), WhyUnscored.NO_RULE
    )


def note_failure(case: str, rule: Rule, error: HoldfastError) -> None:
    """Logs that a reply could not be scored by a rule, without text that may quote the reply."""
    where = f"{case}/{rule.id or ''}"
    _LOG.error("The rule %s could not be scored: %s", where, type(error).__name__)


def _score(rule: Rule, turn: LoggedTurn) -> Score | WhyUnscored:
    """Returns the score of a turn by a rule, or why it has none, as for logs."""
    with limit_search_time(_MAX_SECONDS):
        if not rule.when.applies(turn.done, turn.user, turn.role):
            return WhyUnscored.NO_RULE
        score = rule.measure.judge_turn(turn.done)
    if isinstance(score, Undecided):
        return WhyUnscored.NOT_SHOWN
    if score is not None:
        return score
    if rule.measure.of_turn:
        return WhyUnscored.NO_RULE
    return WhyUnscored.CUT if turn.done.is_cut and turn.done.text.strip() else WhyUnscored.EMPTY
