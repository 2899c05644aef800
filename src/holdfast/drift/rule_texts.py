"""Finds the words of a prompt that state a rule, if its suite gives the rule no `text`."""

import re
from functools import lru_cache

from holdfast.drift.cases import Case, Rule
from holdfast.measures.orders import content_words
from holdfast.measures.text import sentences_of


def text_of(case: Case, rule: Rule) -> str:
    """The text of a rule: that of the suite, else its sentence in the prompt, else the prompt."""
    return rule.text or sentence_of(case, rule) or case.system_prompt.strip()


def sentence_of(case: Case, rule: Rule) -> str:
    """The sentence of the prompt that has the most words of the rule's id.

    The id "no-emoji" finds "Do not use emoji.". If no sentence has a word of the id, or two have
    equally many, the result is "".
    """
    return _sentence_named(rule.id or "", case.system_prompt)


@lru_cache(maxsize=4096)
def _sentence_named(name: str, prompt: str) -> str:
    words = content_words(re.sub(r"[\W_]+", " ", name))
    if not words:
        return ""
    sentences = [" ".join(sentence.split()) for sentence in sentences_of(prompt)]
    shared = [len(words & content_words(sentence)) for sentence in sentences]
    most = max(shared, default=0)
    return sentences[shared.index(most)] if most and shared.count(most) == 1 else ""
