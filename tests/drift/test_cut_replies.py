"""A reply that was cut off is judged only if its end could not change the score."""

import pytest

from holdfast.drift.probe_outcomes import outcome_of
from holdfast.measures import build
from holdfast.records import Probe, ProbeReply, Unscored

TWENTY_WORDS = "word " * 20
# each with its measure, the text so far, and the score; None if the end decides
CUT_REPLIES = [
    ({"name": "ends_with", "word": "Goodbye"}, "Hello there, I am", None),
    ("asks_back", "Hello there, I am", None),
    ("one_sentence", "One sentence so", None),
    ("one_sentence", "One. Two and", 0.0),
    ({"name": "at_most_words", "count": 15}, TWENTY_WORDS, 0.0),
    ({"name": "at_most_words", "count": 30}, TWENTY_WORDS, None),
    ({"name": "at_most_sentences", "count": 2}, "One. Two. Three", 0.0),
    ({"name": "at_most_sentences", "count": 2}, "One. Two", None),
    ({"name": "word_count", "count": 15}, TWENTY_WORDS, 1 - 5 / 15),
    ({"name": "word_count", "count": 20}, TWENTY_WORDS, None),
    ({"name": "sentence_count", "count": 2}, "One. Two.", None),
    ({"name": "sentence_count", "count": 2}, "One. Two. Three", 0.5),
    ({"name": "paragraph_count", "count": 1}, "One.\n\nTwo", 0.0),
    ({"name": "paragraph_count", "count": 2}, "One.\n\nTwo", None),
    ({"name": "long_reply", "words": 20}, TWENTY_WORDS, 1.0),
    ({"name": "long_reply", "words": 30}, TWENTY_WORDS, None),
    ({"name": "short_reply", "words": 10}, TWENTY_WORDS, 0.5),
    ({"name": "short_reply", "words": 30}, TWENTY_WORDS, None),
    ({"name": "sentence_word_counts", "counts": [1, 1]}, "One. Two", None),
    ({"name": "sentence_word_counts", "counts": [1, 1]}, "One. Two. Three", 0.0),
    ("all_questions", "Who? Where? And how", None),
    ("same_first_last", "Yes and", None),
    ({"name": "wrapped_in", "open": "<", "close": ">"}, "<a", None),
    ({"name": "bullet_list", "count": 3}, "- a\n- b", None),
    ({"name": "bullet_list", "count": 2}, "- a\n- b\n- c", 0.5),
    ("bullet_list", "- a\n- b", 1.0),
    ({"name": "numbered_list", "count": 3}, "1. a\n2. b", None),
    ("json_object", '{"a": [1, 2', None),
    ("json_object", '```json\n{"a": 1}', None),
    ("json_object", 'Sure! {"a": 1', 0.0),
    ("json_object", '{"a": 1}\nI hope', 0.0),
    ({"name": "exact_phrase", "phrase": "I can only help with bicycles."}, "I can only h", None),
    ({"name": "exact_phrase", "phrase": "I can only help with bicycles."}, "Sorry, I", 0.0),
    ({"name": "comma_list", "brackets": True}, "[a, b", None),
    ({"name": "comma_list", "brackets": True}, "[a, b] and", 1.0),
    ({"regex": r"\?\s*$"}, "Who? I", None),
    ({"regex": r"^Hello"}, "Hello, I", 1.0),
    ({"regex": r"\$5"}, "It is $5 and", 1.0),
    ({"name": "choice", "letter": "B"}, "Let me think about the", None),
    ({"name": "choice", "letter": "B"}, "B) jolly, because the", 1.0),
    ({"name": "contains", "words": ["Acme"]}, "Acme is", 1.0),
    ({"name": "contains", "words": ["Acme"]}, "We are", 0.0),
    ({"name": "starts_with", "word": "Hello"}, "Hello, I", 1.0),
    ("upper_case", "HELLO TH", 1.0),
    ({"name": "every", "measures": ["upper_case", "asks_back"]}, "HELLO TH", None),
    ({"name": "every", "measures": ["upper_case", "asks_back"]}, "hello th", 0.0),
    ({"name": "loosely", "measure": "asks_back"}, "Who? I", None),
    ({"name": "never", "measure": "asks_back"}, "Who? I", None),
    ({"name": "never", "measure": {"name": "starts_with", "word": "Sure"}}, "Sure, I", 0.0),
    ({"name": "never", "measure": {"name": "long_reply", "words": 20}}, TWENTY_WORDS, 0.0),
    ({"name": "never", "measure": {"name": "long_reply", "words": 21}}, TWENTY_WORDS, None),
    ({"name": "never", "measure": {"name": "word_count", "count": 10}}, TWENTY_WORDS, 1.0),
    ({"name": "loosely", "measure": {"name": "at_most_words", "count": 3}}, TWENTY_WORDS, 0.0),
    (
        {
            "name": "ifeval_length_constraints_number_words",
            "num_words": 20,
            "relation": "at least",
        },
        TWENTY_WORDS,
        1.0,
    ),
    (
        {
            "name": "ifeval_length_constraints_number_words",
            "num_words": 15,
            "relation": "less than",
        },
        TWENTY_WORDS,
        0.0,
    ),
    (
        {
            "name": "ifeval_length_constraints_number_words",
            "num_words": 30,
            "relation": "less than",
        },
        TWENTY_WORDS,
        None,
    ),
    ({"name": "ifeval_startend_end_checker", "end_phrase": "Bye."}, "Well. Bye.", None),
    ("ifeval_detectable_format_json_format", '{"a"', None),
    (
        {"name": "ifeval_detectable_format_number_bullet_lists", "num_bullets": 1},
        "- a\n- b",
        0.0,
    ),
    ({"name": "ifeval_combination_repeat_prompt", "prompt_to_repeat": "Say hi."}, "Say", None),
    ("ifeval_punctuation_no_comma", "No commas here", 1.0),
]


def measure_name(value):
    """The name of a measure, for the names of tests; pytest names the other values."""
    return value.get("name", "regex") if isinstance(value, dict) else None


@pytest.mark.parametrize(("spec", "text", "score"), CUT_REPLIES, ids=measure_name)
def test_a_cut_reply_is_judged_only_if_its_end_could_not_decide(spec, text, score):
    probe = ProbeReply(round=1, kind="stability", probe=0, question="?", reply=text)
    outcome = outcome_of(probe, build(spec), "length")
    if score is None:
        assert isinstance(outcome, Unscored) and outcome.why == "cut"
    else:
        assert outcome.score == pytest.approx(score, abs=1e-6)
        assert outcome.reason.endswith("(the reply was cut off)")
    assert isinstance(outcome_of(probe, build(spec), "stop"), Probe)
