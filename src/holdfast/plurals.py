"""Counts with their nouns, durations, ranges, and lists of names, for messages."""

from collections.abc import Sequence


def count_of(number: int, noun: str) -> str:
    """A number with its noun: "1 round", "8 rounds", "1,200 breaches"."""
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """The plural of a noun that takes "s", "es" or "ies"."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "sh", "ss", "x")) else f"{noun}s"


def duration(seconds: float) -> str:
    """Formats a time in seconds, minutes or hours, as a person would.

    >>> duration(40), duration(100), duration(7000)
    ('40 seconds', '2 minutes', '1.9 hours')
    """
    if round(seconds) < 60:
        return count_of(round(seconds), "second")
    minutes = round(seconds / 60)
    if minutes < 100:
        return count_of(minutes, "minute")
    return f"{seconds / 3600:.1f} hours"


def from_to(first: int, last: int) -> str:
    """A range of numbers: '8', or '3 to 8'."""
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def rounds_from_to(first: int, last: int) -> str:
    """A range of rounds: 'round 8', or 'rounds 3 to 8'."""
    return f"{'round' if first == last else 'rounds'} {from_to(first, last)}"


def join_with_and(parts: Sequence[str]) -> str:
    """Joins names into a list: 'a', 'a and b', 'a, b and c'."""
    return _join(parts, " and ")


def join_with_or(parts: Sequence[str]) -> str:
    """Joins alternatives into a list: 'a', 'a or b', 'a, b or c'."""
    return _join(parts, " or ")


def _join(parts: Sequence[str], before_last: str) -> str:
    return before_last.join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def listing(names: Sequence[str], max_names: int = 4) -> str:
    """Lists at most `max_names` names: 'a, b and c', or 'a, b and 3 more'."""
    if len(names) <= max_names:
        return join_with_and(names)
    return join_with_and([*names[:max_names], f"{len(names) - max_names} more"])
