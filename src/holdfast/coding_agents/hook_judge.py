"""Judges the turns of a session by the rules of a hook, which has little time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.coding_agents.hook_answers import BrokenRule
from holdfast.coding_agents.hook_rules import HookRule, HookRules
from holdfast.coding_agents.session_orders import SessionOrders
from holdfast.coding_agents.session_state import Mark
from holdfast.errors import UsageError
from holdfast.logs.dialogs import LoggedTurn
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.scores import Score
from holdfast.measures.turns import AssistantTurn

# the agent waits for its hook, so the searches of regular expressions get little processor time
_MAX_SECONDS_PER_RULE = 0.05
_MAX_SECONDS = 0.15  # for all rules together


class HookJudge:
    """Judges turns, and keeps a sentence in `problems` for each rule that could not be judged.

    Args:
        orders: the orders of the user in the session; None if they are not known.
    """

    def __init__(self, rules: HookRules, orders: SessionOrders | None = None) -> None:
        self._rules = rules.rules
        self._orders = orders
        self._seconds_left = _MAX_SECONDS
        self.problems: list[str] = []

    def find_broken_rules(
        self, turn: LoggedTurn, is_over: bool, marks: Mapping[str, Mark] | None = None
    ) -> Iterator[BrokenRule]:
        """Finds the rules that a turn breaks without an order of the user to do so.

        Args:
            is_over: whether the turn has ended.
            marks: the rules that were already reported as broken in this turn, by their ids.
        """
        for rule in self._rules:
            mark = (marks or {}).get(rule.id)
            seconds = min(_MAX_SECONDS_PER_RULE, self._seconds_left)
            try:
                with limit_search_time(seconds) as search_time:
                    score = _score(rule, turn, is_over, mark)
                is_broken = score is not None and not score.keeps_rule
                if is_broken and self._orders is not None:
                    with limit_search_time(_MAX_SECONDS_PER_RULE):
                        is_broken = not self._orders.is_ordered(rule, turn)
            except UsageError as error:  # no time is left, or the expression is invalid
                self.problems.append(f"The rule {rule.id!r} was not judged: {error}")
                continue
            finally:
                self._seconds_left -= seconds - search_time.left
            if score is not None and is_broken:
                reason_on_one_line = " ".join(score.reason.split())
                yield BrokenRule(rule, reason_on_one_line)


def _score(rule: HookRule, turn: LoggedTurn, is_over: bool, mark: Mark | None) -> Score | None:
    """Scores a turn, or only its calls since the rule was reported as broken.

    Returns:
        None if the rule does not apply, or nothing decides it.
    """
    to_score = turn.done
    if mark is not None:
        to_score = _calls_since(mark, turn.done)
        # once the model was told, only its later calls are judged, not what it says
        if not (rule.measure.of_turn and to_score.calls):
            return None
    # whether the rule applies depends on the whole turn, also on what was judged before
    if not rule.when.applies(turn.done, turn.user, turn.role):
        return None
    return rule.measure.score_turn(to_score) if is_over else rule.measure.score_so_far(to_score)


def _calls_since(mark: Mark, done: AssistantTurn) -> AssistantTurn:
    """Returns a turn with only its calls since a mark; those before it count as earlier calls."""
    count = mark.calls_in(done.calls)
    earlier = (*done.earlier, *done.calls[:count])
    return replace(done, text="", calls=done.calls[count:], earlier=earlier)
