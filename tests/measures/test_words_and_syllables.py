"""Texts are split into words, sentences and syllables; numbers are written in words."""

import pytest

from holdfast.measures.number_words import words_for
from holdfast.measures.syllables import syllables_in
from holdfast.measures.text import sentences_of, words_of


def test_texts_are_split_into_words_and_sentences():
    words = words_of("It's a well-known fact: 15,000 café-goers (l’été)…")
    assert words == "It's a well-known fact 15,000 café-goers l’été".split()
    text = 'Mr. Lee left the U.S. in 3.5 hours. "Really?" Yes!! 😀\n- tea\n2. cake'
    sentences = ["Mr. Lee left the U.S. in 3.5 hours.", '"Really?"', "Yes!! 😀", "tea", "cake"]
    assert sentences_of(text) == sentences
    assert sentences_of("Roses are red,\nviolets are blue.") == ["Roses are red, violets are blue."]


ONE_SYLLABLE = (
    "the time makes walked bridge through thought piece queue eyes died 's don't clothes friends"
)
TWO_SYLLABLES = (
    "london river bridges wanted table lion quiet didn't seven again hundred 7 ancient being"
)
THREE_SYLLABLES = (
    "museum beautiful exciting banana radio idea another historic celebrate attractions"
)


@pytest.mark.parametrize(
    ("number", "words_listed"),
    [(1, f"{ONE_SYLLABLE} 1 12"), (2, TWO_SYLLABLES), (3, THREE_SYLLABLES)],
)
def test_syllables_are_counted(number, words_listed):
    words = words_listed.split()
    assert {word: syllables_in(word) for word in words} == dict.fromkeys(words, number)


def test_whole_numbers_are_written_in_words():
    assert words_for(0) == ["zero"]
    assert words_for(15) == ["fifteen"]
    assert words_for(20) == ["twenty"]
    assert words_for(97) == ["ninety", "seven"]
    assert words_for(1_000_305) == ["one", "million", "three", "hundred", "five"]
    with pytest.raises(ValueError):
        words_for(-5)
