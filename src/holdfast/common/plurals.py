"""Numbers with their nouns, for messages."""


def plural(number: int, noun: str) -> str:
    """A number with a noun whose plural ends in "s": "1 word", "2 words"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
