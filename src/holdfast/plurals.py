"""Counts with their nouns, for messages."""


def count_of(number: int, noun: str) -> str:
    """A number with its noun: "1 round", "8 rounds", "1,200 breaches"."""
    return f"{number:,} {noun if number == 1 else plural_of(noun)}"


def plural_of(noun: str) -> str:
    """The plural of a noun that takes "s", "es" or "ies"."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("ch", "sh", "x")) else f"{noun}s"
