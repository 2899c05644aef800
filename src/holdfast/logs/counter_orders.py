"""Orders against a rule, given by the user, by a file that was read, or by a summary."""

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
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.transcript import Kind

_READ_ONLY_VERBS = frozenset(
    "check compare describe explain list mention name open read say show".split()
)
_FORBIDS_WORDS = ("never_contains", "never_mentions_number")
# "message 'wip'", in any quotation marks; an apostrophe within a word does not end the message
_MESSAGE = re.compile(
    r"message:? (?:\"([^\"]+)\"|“([^”]+)”|`([^`]+)`|'((?:[^']|(?<=\w)'(?=\w))+)'|‘([^’]+)’)",
    re.IGNORECASE,
)


class CounterOrders:
    """Finds the orders in a transcript to break a rule."""

    def __init__(self, searched: SearchedTranscript, rule: Rule, text: RuleText) -> None:
        self._searched = searched
        self._rule = rule
        self._text = text

    def before_turn(self, answered: Sequence[int]) -> list[Sighting]:
        """The orders that count for a turn that answers the user's messages at these positions. An
        order that does not last counts only in one of these messages.
        """
        orders = (*self._opposite_orders, *self._breaking_orders, *self._requests_in(answered))
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
        """Where the user, a file or a summary orders the opposite of the rule."""
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
    def _breaking_orders(self) -> list[Sighting]:
        """Where the user asks for what the rule's measure forbids."""
        sightings: list[Sighting] = []
        for position, event in enumerate(self._searched.path):
            if event.is_by_user and event.text:
                orders = breaking_orders(event.text, self._rule.measure)
                sightings += [Sighting(position, passage) for passage in orders]
        return sightings

    def _requests_in(self, answered: Sequence[int]) -> Iterator[Sighting]:
        """Where one of these messages asks for something that breaks the rule, or has words with
        which `unless` lifts the rule.
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
    """Whether the assistant would break a rule by doing what an order asks for: a command in
    backticks, a commit with a message in quotes, a change of the file with this path, or a word
    that must not occur.
    """
    if measure.name in _FORBIDS_WORDS:
        return not measure.score(clause).keeps_rule
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
    return any(score is not None and not score.keeps_rule for score in scores)
