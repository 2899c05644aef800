"""Whether the user ordered what a rule forbids, by the same tests as in `holdfast logs`.

For example, for the rule "Never push to main.":

    user "Push it to main.", call `git push origin main`    -> is_ordered(...) is True
    user "Fix the test.", call `git push origin main`       -> is_ordered(...) is False

Only few turns break a rule, so what this needs is imported and read once one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.coding_agents.hook_rules import HookRule
from holdfast.logs.dialogs import LoggedTurn
from holdfast.transcripts.transcript import Event, EventKind, Transcript
from holdfast.transcripts.user_answers import words_of_user

if TYPE_CHECKING:
    from holdfast.logs.rule_sightings import SearchedTranscript


@dataclass(frozen=True)
class SessionOrders:
    """Finds orders of the user in a session.

    Args:
        earlier: what the user said in the context before the events, and the summary that it began
            with, as events.
        previous_text: the assistant's last text before the events.
        events: the part of the session that was read; the positions of turns refer to it.
    """

    earlier: Sequence[Event]
    previous_text: str
    events: Sequence[Event]

    def is_ordered(self, rule: HookRule, turn: LoggedTurn) -> bool:
        """Whether the user ordered what a turn did against a rule, before the turn or during it."""
        from holdfast.drift.cases import Rule
        from holdfast.logs.counter_orders import CounterOrders
        from holdfast.measures.wording.rule_text import RuleText

        shift = len(self._events_before)
        moved = replace(turn, positions=tuple(shift + position for position in turn.positions))
        searched = self._searched
        known = Rule(id=rule.id, probes=(), measure=rule.measure, unless=rule.unless)
        text = RuleText(rule.text)
        orders = CounterOrders(searched, known, text)
        all_sightings = searched.sightings(text, known)
        for position in (moved.positions[0], moved.positions[-1]):
            context = searched.contexts.before(position)
            sightings = [s for s in all_sightings if context.shows(s.position)]
            if orders.outweighing(moved, context, sightings) is not None:
                return True
        return False

    @cached_property
    def _events_before(self) -> list[Event]:
        """The earlier events, and the assistant's text that ends the turns before the part."""
        if not self.earlier and not self.previous_text:
            return []
        last = Event(EventKind.MESSAGE, self.previous_text, role="assistant")
        return [*self.earlier, last]

    @cached_property
    def _searched(self) -> SearchedTranscript:
        from holdfast.logs.rule_sightings import SearchedTranscript

        events = (*self._events_before, *self.events)
        parents = (None, *range(len(events) - 1))
        return SearchedTranscript(Transcript("", events, parents, len(events) - 1))


def user_events(events: Sequence[Event]) -> tuple[Event, ...]:
    """The user's words in the context at the end of some events, and its summary, as events that
    can be kept in a file: the user's answers to questions become messages.
    """
    words = words_of_user(events)
    kept: list[Event] = []
    for position, event in enumerate(events):
        if event.kind is EventKind.COMPACTION:
            if not (position and events[position - 1].kind is EventKind.COMPACTION):
                kept.clear()
            kept.append(Event(EventKind.COMPACTION, event.text))
        elif position in words:
            kept.append(Event(EventKind.MESSAGE, words[position], role="user"))
    return tuple(kept)
