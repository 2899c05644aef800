"""Orders against a rule: by the user, by a file that was read, or by a summary."""

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property

from holdfast.drift.cases import Rule
from holdfast.logs.sightings import SearchedTranscript, Sighting
from holdfast.measures.breaking_orders import breaking_orders
from holdfast.measures.measure_specs import Measure
from holdfast.measures.orders import Passage, orders_in, requests_in, words_before_paths
from holdfast.measures.patterns import find
from holdfast.measures.rule_text import RuleText
from holdfast.measures.scores import FOLLOWED
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.transcript import Kind

_READ_ONLY_VERBS = frozenset(
    "check compare describe explain list mention name open read say show".split()
)
_FORBIDS_WORDS = ("never_contains", "never_mentions_number")
# Each kind of quotation mark is closed by its own; an apostrophe within a word closes none.
_MESSAGE = re.compile(
    r"message:? (?:\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|'((?:[^']|(?<=\w)'(?=\w))+)'|‘([^’]+)’)",
    re.IGNORECASE,
)


class CounterOrders:
    """The orders in a transcript that a rule is broken."""

    def __init__(self, searched: SearchedTranscript, rule: Rule, text: RuleText) -> None:
        self._searched = searched
        self._rule = rule
        self._text = text

    def before_turn(self, answered: Sequence[int]) -> list[Sighting]:
        """All that count for a turn which answers the user's messages at these positions: an order
        that does not last counts only if it is in one of them.
        """
        orders = (*self._opposite_orders, *self._breaking, *self._asked_in(answered))
        path = self._searched.path
        return [
            order
            for order in orders
            if order.passage.lasts
            or order.position in answered
            or not path[order.position].is_by_user
        ]

    @cached_property
    def _opposite_orders(self) -> list[Sighting]:
        """Where the user, a file or a summary orders the rule the other way round."""
        sightings: list[Sighting] = []
        for position, event in enumerate(self._searched.path):
            is_result = event.kind is Kind.TOOL_RESULT
            is_read = is_result and self._searched.is_document(position)
            if not (event.is_by_user or is_read or event.kind is Kind.COMPACTION):
                continue
            if passage := self._text.find_counter_order(event.text, event.is_by_user):
                sightings.append(Sighting(position, passage))
        return sightings

    @cached_property
    def _breaking(self) -> list[Sighting]:
        """Where the user asks for what the rule's measure forbids."""
        sightings: list[Sighting] = []
        for position, event in enumerate(self._searched.path):
            if event.is_by_user and event.text:
                orders = breaking_orders(event.text, self._rule.measure)
                sightings += [Sighting(position, passage) for passage in orders]
        return sightings

    def _asked_in(self, answered: Sequence[int]) -> Iterator[Sighting]:
        """Where one of these messages asks for the very thing, or has what `unless` of the rule
        names.
        """
        for position in answered:
            text = self._searched.path[position].text
            lifts = self._rule.unless.user
            if lifts and (match := find(lifts, text, "i")):
                yield Sighting(position, Passage(match.group(), len(text), lasts=False))
            clauses = orders_in(text)
            if self._rule.measure.name == "commit_message":  # 'message "wip"' is not a whole order
                clauses = [request.passage.quote for request in requests_in(text)]
            for clause in clauses:
                if _asks_to_break(clause, self._rule.measure):
                    yield Sighting(position, Passage(clause, len(text), lasts=False))


def _asks_to_break(clause: str, measure: Measure) -> bool:
    """Whether an order asks for something that, if the assistant did it, would break a rule: a
    command in backticks, a commit message in quotes, a change of a file with this path, or a word
    that may not occur.
    """
    if measure.name in _FORBIDS_WORDS:
        return measure.score(clause).value < FOLLOWED
    if measure.name == "command_not_run":
        commands = re.findall(r"`([^`]+)`", clause)
        calls = [ToolCall("Bash", {"command": command}) for command in commands]
    elif measure.name == "file_not_touched":
        paths = [path for verb, path in words_before_paths(clause) if verb not in _READ_ONLY_VERBS]
        calls = [ToolCall("Edit", {"file_path": path}) for path in paths]
    elif measure.name == "commit_message":
        messages = [match[match.lastindex or 0] for match in _MESSAGE.finditer(clause)]
        commands = [f"git commit -m {shlex.quote(text)}" for text in messages]
        calls = [ToolCall("Bash", {"command": command}) for command in commands]
    else:
        return False
    scores = (measure.score_turn(AssistantTurn("", (call,))) for call in calls)
    return any(score is not None and score.value < FOLLOWED for score in scores)
