"""The words in which people state the rules that measures decide, and order against them.

Each measure that people put in words has a row, with the wordings of its rule and the words of
orders against it. For `at_most_words: 40`, "40 words is the most that an answer may have" is such a
wording, and "explain it in detail" such an order. docs/causes.md has more examples.
"""

from collections.abc import Mapping

from holdfast.measures.wording.agent_words import AGENT_WORDS
from holdfast.measures.wording.layout_words import LAYOUT_WORDS
from holdfast.measures.wording.length_words import LENGTH_WORDS
from holdfast.measures.wording.phrase_words import PHRASE_WORDS
from holdfast.measures.wording.wordings import MeasureWords

MEASURE_WORDS: Mapping[str, MeasureWords] = {
    **LENGTH_WORDS,
    **PHRASE_WORDS,
    **LAYOUT_WORDS,
    **AGENT_WORDS,
}
