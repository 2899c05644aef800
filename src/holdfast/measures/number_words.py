"""English words for whole numbers.

For example:

    words_for(97) -> ["ninety", "seven"];  NUMBER_WORDS["seven"] -> 7
"""

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
).split()
_TENS = {
    20: "twenty",
    30: "thirty",
    40: "forty",
    50: "fifty",
    60: "sixty",
    70: "seventy",
    80: "eighty",
    90: "ninety",
}
_SCALES = {
    10**12: "trillion",
    10**9: "billion",
    10**6: "million",
    1000: "thousand",
    100: "hundred",
}

# The value of every word that `words_for` uses.
NUMBER_WORDS = {word: value for value, word in enumerate(_ONES)}
NUMBER_WORDS |= {word: value for value, word in (_TENS | _SCALES).items()}


def words_for(number: int) -> list[str]:
    """Returns the words of a whole number, without hyphens and "and": 97 is ["ninety", "seven"].

    Raises:
        ValueError: the number is below 0.
    """
    if number < 0:
        raise ValueError(f"number must be at least 0, not {number}")
    for value, word in _SCALES.items():
        if number >= value:
            rest = number % value
            return [*words_for(number // value), word, *(words_for(rest) if rest else [])]
    if number < 20:
        return [_ONES[number]]
    ones = number % 10
    return [_TENS[number - ones], *(words_for(ones) if ones else [])]
