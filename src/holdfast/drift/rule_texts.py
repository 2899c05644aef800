"""Finds the sentence of a system prompt that states a rule, where the suite has no text for it."""

import re
from functools import lru_cache

from holdfast.drift.cases import Case, Rule
from holdfast.measures.text import sentences_of
from holdfast.measures.wording.sentences import content_words


def text_of_rule(case: Case, rule: Rule) -> str:
    """The text of a rule: that of the suite, else its sentence in the prompt, else the prompt."""
    return rule.text or sentence_of_rule(case, rule) or case.system_prompt.strip()


def sentence_of_rule(case: Case, rule: Rule) -> str:
    """The sentence of the prompt that has the most words of the rule's id.

    The id "no-emoji" finds "Do not use emoji.". If no sentence has a word of the id, or two have
    equally many, the result is "".
    """
    return _sentence_with_words_of(rule.id or "", case.system_prompt)


@lru_cache(maxsize=4096)
def _sentence_with_words_of(rule_id: str, prompt: str) -> str:
    words = content_words(re.sub(r"[\W_]+", " ", rule_id))
    if not words:
        return ""
    sentences = [" ".join(sentence.split()) for sentence in sentences_of(prompt)]
    counts = [len(words & content_words(sentence)) for sentence in sentences]
    most = max(counts, default=0)
    return sentences[counts.index(most)] if most and counts.count(most) == 1 else ""
