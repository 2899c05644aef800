"""Numbers with their nouns, for messages."""


def plural(number: int, noun: str) -> str:
    """A number with a noun whose plural ends in "s" or "es": "1 word", "2 words", "2 breaches"."""
    ending = "es" if noun.endswith(("ch", "sh", "s", "x")) else "s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"
