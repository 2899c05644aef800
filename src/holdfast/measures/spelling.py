"""English number words."""

from __future__ import annotations

from holdfast.measures.text import listed

ONES = listed(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
TENS = listed("_ _ twenty thirty forty fifty sixty seventy eighty ninety")
SCALES = (
    (10**12, "trillion"),
    (10**9, "billion"),
    (10**6, "million"),
    (1000, "thousand"),
    (100, "hundred"),
)

READ = {word: value for value, word in enumerate(ONES)}
READ |= {word: 10 * value for value, word in enumerate(TENS) if value > 1}
READ |= {word: value for value, word in SCALES}


def spell(number: int) -> list[str]:
    """The words of a whole number, without hyphens and 'and': 97 is ['ninety', 'seven']."""
    for value, word in SCALES:
        if number >= value:
            rest = number % value
            return [*spell(number // value), word, *(spell(rest) if rest else [])]
    if number < 20:
        return [ONES[number]]
    return [TENS[number // 10], *(spell(number % 10) if number % 10 else [])]
