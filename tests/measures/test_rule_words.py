"""The tables of word forms are those of the lexicon that they were drawn from."""

import pytest
from lemminflect import getAllInflections, getAllLemmas
from lemminflect.core.Lemmatizer import Lemmatizer

from holdfast.measures.wording.command_words import ACTIONS, FORMS
from holdfast.measures.wording.rule_text import RuleText
from holdfast.measures.wording.word_stems import irregular_verbs


def _verb_of(word):
    """The verb of an irregular form; None if the form is regular or may be another word."""
    by_part = getAllLemmas(word)
    verbs = by_part.get("VERB", ())
    is_another = any(word in lemmas for lemmas in by_part.values())
    return None if is_another or not verbs else verbs[0]


def test_irregular_verbs_are_those_of_the_lexicon():
    lexicon = Lemmatizer()
    words = {*lexicon._getLemmaDict(), *lexicon._getOverridesDict()}
    plain = {word for word in words if word.islower() and word.isascii() and word.isalpha()}
    irregular = {w for w in plain if len(w) > 2 and not w.endswith(("s", "ed", "ing"))}
    assert irregular_verbs() == {word: verb for word in irregular if (verb := _verb_of(word))}


def test_forms_of_verbs_are_those_of_the_lexicon():
    for verb in {verb for verbs in ACTIONS.values() for verb in verbs}:
        by_tag = getAllInflections(verb, upos="VERB")
        forms = {verb, *(form for forms in by_tag.values() for form in forms)}
        # "force-push" is no word of the lexicon
        drafted_forms = {form.removeprefix("force-") for form in FORMS.get(verb, [verb])}
        assert drafted_forms == forms


@pytest.mark.parametrize(
    "text",
    [
        "You must not force push.",
        "   12\tPlease don't force push!",
        "don't **for**ce push",
        "<rule>DO NOT\\nforce push</rule>",
        "Can't we? Do not; force - push.",
        "You can't force push, and you must not do it.",
        "Ｄｏ ｎｏｔ ｆｏｒｃｅ ｐｕｓｈ",
        "dont force\npush",
        "do not force it, push",
    ],
)
def test_a_text_without_a_word_of_the_rule_is_not_read(text, monkeypatch):
    rule = RuleText("Do not force push.")
    findings = rule.find_in(text, exactly=True)
    monkeypatch.setattr(RuleText, "_may_have_words", lambda self, text: True)
    assert rule.find_in(text, exactly=True) == findings
