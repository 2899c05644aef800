"""Judges the turns of a session by the rules of a hook, which has little time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.coding_agents.hook_answers import BrokenRule
from holdfast.coding_agents.hook_rules import HookRule, HookRules
from holdfast.coding_agents.session_state import Mark
from holdfast.errors import UsageError
from holdfast.logs.dialogs import LoggedTurn
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.scores import Score

# how long regular expressions may compute
_MAX_SECONDS_PER_RULE = 0.05
_MAX_SECONDS = 0.15  # all together


class HookJudge:
    """Judges turns, and keeps a sentence in `problems` for each rule that could not be judged."""

    def __init__(self, rules: HookRules) -> None:
        self._rules = rules.rules
        self._seconds_left = _MAX_SECONDS
        self.problems: list[str] = []

    def find_broken_rules(
        self, turn: LoggedTurn, is_over: bool, marks: Mapping[str, Mark] | None = None
    ) -> Iterator[BrokenRule]:
        """Finds the rules that a turn breaks.

        Args:
            is_over: whether the turn has ended.
            marks: the rules that were already reported as broken in this turn, by their ids.
        """
        for rule in self._rules:
            seconds = min(_MAX_SECONDS_PER_RULE, self._seconds_left)
            try:
                with limit_search_time(seconds) as search_time:
                    score = _score(rule, turn, is_over, (marks or {}).get(rule.id))
            except UsageError as error:
                self.problems.append(f"The rule {rule.id!r} was not judged: {error}")
                continue
            finally:
                self._seconds_left -= seconds - search_time.left
            if score is not None and not score.keeps_rule:
                yield BrokenRule(rule, " ".join(score.reason.split()))


def _score(rule: HookRule, turn: LoggedTurn, is_over: bool, mark: Mark | None) -> Score | None:
    """The score of a turn, or of its calls since the rule was reported as broken; None if the rule
    does not apply, or nothing decides it.
    """
    done = turn.done
    if mark is not None:
        count = mark.calls_in(done.calls)
        earlier = (*done.earlier, *done.calls[:count])
        done = replace(done, text="", calls=done.calls[count:], earlier=earlier)
        if not (rule.measure.of_turn and done.calls):
            return None
    if not rule.when.applies(turn.done, turn.user, turn.role):
        return None
    return rule.measure.score_turn(done) if is_over else rule.measure.score_so_far(done)
