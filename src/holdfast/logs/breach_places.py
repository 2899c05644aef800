"""Where a turn broke a rule: the event that broke it, and the user's messages that it answers."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.logs.dialogs import LoggedTurn
from holdfast.measures.measure_specs import Measure
from holdfast.transcripts.transcript import Event


def breach_position(measure: Measure, turn: LoggedTurn, path: Sequence[Event]) -> int:
    """The position of the tool call with which a turn broke a rule, or of the turn's last event if
    no call broke it by itself.
    """
    breaking = breaking_call(measure, turn, path)
    return turn.positions[-1] if breaking is None else breaking


def breaking_call(measure: Measure, turn: LoggedTurn, path: Sequence[Event]) -> int | None:
    """The position of the first tool call after which the calls of a turn break a rule; None if
    they never do, so that the turn broke it as a whole or with its text.
    """
    if not measure.of_turn:
        return None

    def is_broken(count: int) -> bool:
        """Whether the first events of the turn break the rule."""
        ran = [position for position in turn.positions[:count] if position not in turn.refused]
        calls = tuple(call for position in ran if (call := path[position].call) is not None)
        score = measure.score_so_far(replace(turn.done, text="", calls=calls))
        return score is not None and not score.keeps_rule

    count = len(turn.positions)
    if not is_broken(count):
        return None
    # a rule that is broken stays broken, so the first event that breaks it can be bisected
    return turn.positions[bisect_left(range(1, count), True, key=is_broken)]


def answered_words(
    path: Sequence[Event], turn: LoggedTurn, breach: int, words: Mapping[int, str]
) -> dict[int, str]:
    """Returns the words of the user that a turn answers, up to the breach of a rule: messages, and
    answers to questions of a tool.

    Args:
        words: all words of the user on the path, by the positions of events.
    """
    first = turn.positions[0]
    while first > 0 and not path[first - 1].is_by_assistant:
        first -= 1
    return {number: words[number] for number in range(first, breach) if number in words}
