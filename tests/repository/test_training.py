"""How the default model was trained: the replies that its data teaches are right."""

import random
import sys

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "training"))
import knowledge
from families import with_letter


@pytest.mark.parametrize(
    ("question", "right", "reply"),
    [
        ("Where is it? A) Rome, B) Lima, C) Oslo, D) Bern", "Lima", "Lima (B)"),
        # another choice begins like the right one
        ("What is the symbol of carbon? A) Cu, B) I, C) Au, D) C", "C", "C (D)"),
        ("What does b stand for? A) 72, B) 24, C) 2, D) 97", "2", "2 (C)"),
    ],
)
def test_a_choice_has_the_letter_under_which_it_is_listed(question, right, reply):
    assert with_letter(right, question) == reply


def test_knowledge_questions_list_the_answer_under_the_letter_of_the_reply():
    rng = random.Random(0)
    for _ in range(300):
        question = knowledge.ask(rng, with_choices=True)
        assert question.reply == with_letter(question.answer, question.text)
        assert question.answer in question.choices and len(question.choices) == 4
