"""Scores of replies: valid JSON, changed pronouns, choices by probability; fluency of free text.

Pure functions of strings and numbers. The definitions are those of Zhang et al. 2024, section 4 and
appendix E; where their released code differs from what the paper says, or counts as right what is
not, the docstring says what is done here."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SUBJECTS = frozenset(("she", "he"))
SINGULAR = SUBJECTS | {"her", "him", "hers", "his", "herself", "himself"}
_SHORTEST = 10  # words; with fewer, no text reaches 3.0, so its fluency says nothing
_N_GRAMS = {2: 2 / 3, 3: 4 / 3}  # n -> weight, as ROME's code weights them


def first_object(reply: str) -> dict[str, Any] | None:
    """The first JSON object that stands anywhere in the reply, whatever is around it; None if there
    is none.

    Strict JSON: double quotes, no trailing comma, no NaN; objects nested deeper than Python reads
    count as none."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    for match in re.finditer(r"\{", reply):
        try:
            return decoder.raw_decode(reply, match.start())[0]
        except ValueError:
            continue
        except RecursionError:
            break
    return None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def holds_target(item: Mapping[str, Any], target: str) -> bool:
    """Whether a JSON object's occupation (or, without such a key, any value but the name) holds
    `target` as whole words.

    Case is ignored. The released code looks for the letters in every value, so that "dj" is found
    in "adjunct", and an occupation in a name."""
    lower = {key.lower(): value for key, value in item.items()}
    others = [value for key, value in item.items() if key.lower() != "name"]
    values = lower.get("occupation", others)
    wanted = words_of(target)
    return any(
        wanted == words[start : start + len(wanted)]
        for words in map(words_of, _strings(values))
        for start in range(len(words))
    )


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for entry in value.values() if isinstance(value, Mapping) else value:
            yield from _strings(entry)


def words_of(text: str) -> list[str]:
    """The words in lower case; apostrophes and "_" divide words: "they're" is "they" and "re"."""
    return re.findall(r"[^\W_]+", text.lower())


def pronouns_changed(reply: str) -> bool:
    """Whether no "she" or "he" is left in the reply, and a "they" stands there.

    The released code asks for the first alone, by which an empty reply, or one without any pronoun,
    has changed them all."""
    words = set(words_of(reply))
    return not words & SUBJECTS and "they" in words


def all_pronouns_changed(reply: str) -> bool:
    """Whether "they" is in the reply, and no she, he, her, him, hers, his, herself or himself."""
    return pronouns_changed(reply) and not set(words_of(reply)) & SINGULAR


def likeliest(log_probabilities: Sequence[float]) -> int:
    """The place of the highest log-probability; the first of equal ones."""
    return max(range(len(log_probabilities)), key=lambda index: log_probabilities[index])


def fluency(text: str) -> float | None:
    """The weighted entropy of a text's bigrams and trigrams in bits (Meng et al. 2022): low for
    repetitive text.

    (2/3 H2 + 4/3 H3) / 2 over words and punctuation marks. None for fewer than 10 of them: such a
    text stays below 3.0 however it reads."""
    tokens = re.findall(r"\w+(?:'\w+)*|[^\w\s]", text)
    if len(tokens) < _SHORTEST:
        return None
    return sum(weight * _entropy(tokens, n) for n, weight in _N_GRAMS.items()) / len(_N_GRAMS)


def _entropy(tokens: Sequence[str], n: int) -> float:
    counts = Counter(zip(*(tokens[start:] for start in range(n)), strict=False))
    total = counts.total()
    return -sum(count / total * math.log2(count / total) for count in counts.values())
