"""IFEval's 25 instructions as measures, each at its edge; the harness's verdicts are in
tests/integrations/test_ifeval.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.drift.verifiable.instructions import measure_name
from holdfast.errors import UsageError
from holdfast.measures import build, catalogue
from holdfast.measures.ifeval import count_sentences

AT_LEAST, LESS = {"relation": "at least"}, {"relation": "less than"}
TABLE = [  # an instruction, its arguments, replies that keep it, replies that do not
    ("keywords:existence", {"keywords": ["Cat", "a+b"]}, ["CATS like A+B"], ["cat", "aab cat"]),
    (
        "keywords:frequency",
        {"keyword": "war", "frequency": 2, **AT_LEAST},
        ["War, toward"],
        ["war"],
    ),
    ("keywords:frequency", {"keyword": "war", "frequency": 2, **LESS}, ["war"], ["War, toward"]),
    ("keywords:forbidden_words", {"forbidden_words": ["can"]}, ["a candle"], ["You CAN.", "can"]),
    ("keywords:forbidden_words", {"forbidden_words": ["C++"]}, ["C"], ["I use C++."]),
    (
        "keywords:letter_frequency",
        {"letter": "Q", "let_frequency": 2, "let_relation": "at least"},
        ["Quick quiz"],
        ["quick"],
    ),
    (
        "keywords:letter_frequency",
        {"letter": "#", "let_frequency": 2, "let_relation": "less than"},
        ["#one"],
        ["#one #two"],
    ),
    (
        "language:response_language",
        {"language": "hi"},
        ["आज मौसम बहुत अच्छा है और हम शाम को बगीचे में जाएँगे।"],
        ["The weather is lovely today.", "42"],
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 3, **LESS},
        ["One,\nstill one. Two, Dr. Who.", "A list\nof lines\nwithout stops"],
        ["One. Two. Three."],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["a***b", "***a\n***\nb***"],
        ["a\n\nb", "a******b"],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 4, **AT_LEAST},
        ["don't well-known"],
        ["one two 3"],
    ),
    ("length_constraints:number_words", {"num_words": 3, **LESS}, ["नमस्ते दुनिया"], ["one two 3"]),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Firms"},
        ["One.\n\nfirms, two", "One.\n\n\n\n'FIRMS' two"],
        ["One.\n\nTwo firms", "firms\n\nfirms\n\nfirms", "firms"],
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        ["[a] and [b c]"],
        ["[a\nb] [c]"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Bye.\np. s. more"],
        ["PS: more"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.P.S"},
        ["P.P.S: x", "P. P. S. x"],
        ["P.S. x"],
    ),
    ("detectable_content:postscript", {"postscript_marker": "NB (1)"}, ["nb (1) x"], ["NB 1"]),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["* a\n  - b", "- a\n---"],
        ["** a\n* b", "*\n* b"],
    ),
    (
        "detectable_format:constrained_response",
        {},
        ["Well. My answer is no."],
        ["my answer is no."],
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*a* and **b**", "**a** **b**"],
        ["*a\nb*", "** ** *a*", "****"],
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        ["SECTION 1\na\nSECTION2 b"],
        ["Section 1 Section 2", "SECTION one SECTION 2"],
    ),
    (
        "detectable_format:json_format",
        {},
        ['```json\n{"a": [1]}\n```', "[]", '"x"'],
        ["{'a': 1}", 'x {"a": 1}'],
    ),
    (
        "detectable_format:title",
        {},
        ["<<a title>>\nx", "x <<a> b>>"],
        ["<<>>", "<< >>", "<<a\nb>>", "<a>", ">><<a"],
    ),
    (
        "combination:two_responses",
        {},
        ["a ****** b", "******a******b******"],
        ["a ****** a", "a", "a************b"],
    ),
    (
        "combination:repeat_prompt",
        {"prompt_to_repeat": " Say hi. "},
        ["say HI. Hi"],
        ["Sure: Say hi."],
    ),
    ("startend:end_checker", {"end_phrase": "Bye now."}, ['"So, bye NOW."'], ["Bye now. And more"]),
    ("startend:quotation", {}, ['" a "', '"a" and "b"'], ['"', '"a', "“a”"]),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        ["I love NASA", "I'M here", "COVID-19 A"],
        ["l'AI Nasa", "AND/OR"],
    ),
    (
        "change_case:english_capital",
        {},
        ["THE DOOR IS OPEN NOW."],
        ["The door.", "DIE TÜR IST JETZT OFFEN."],
    ),
    (
        "change_case:english_lowercase",
        {},
        ["the-door is open now."],
        ["The door.", "die tür ist jetzt offen."],
    ),
    ("punctuation:no_comma", {}, ["one; two"], ["one, two"]),
]


def test_all_25_instructions_are_measures_and_in_the_table():
    names = {name for name, _, _ in catalogue() if name.startswith("ifeval_")}
    assert len(names) == 25
    assert {measure_name(id, "ifeval") for id, *_ in TABLE} == names


@pytest.mark.parametrize(("id", "arguments", "follows", "breaks"), TABLE)
def test_an_instruction_at_its_edge(id, arguments, follows, breaks):
    measure = build({"name": measure_name(id, "ifeval"), **arguments})
    assert [measure.score(reply).value for reply in follows] == [1.0] * len(follows)
    assert [measure.score(reply).value for reply in breaks] == [0.0] * len(breaks)
    assert measure.score("  \n").value == 0.0  # the paper's checkers refuse an empty reply, too


@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aB1.,?!*-<>[]\"'\n #🙂ß़")) | st.text())
def test_no_text_makes_an_instruction_raise(text):
    for id, arguments, *_ in TABLE:
        if id not in ("language:response_language",):  # has a test of its own, and is slow
            spec = {"name": measure_name(id, "ifeval"), **arguments}
            loose = build({"name": "loosely", "measure": spec}).score(text).value
            assert build(spec).score(text).value <= loose <= 1.0


@pytest.mark.parametrize(
    "text", ["<<" * 20_000, "*" * 40_000, "[" * 40_000, "```" * 10_000, '"' * 40_000]
)
def test_no_text_takes_long(text):
    for id, arguments, *_ in TABLE:
        spec = {"name": measure_name(id, "ifeval"), **arguments}
        assert build(spec).score(text).value in (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('He said "Stop." Then he left.', 2),
        ("1. Wash it.\n2. Dry it.", 4),  # Punkt takes "1." for a sentence
        ("Dr. Byrne lives in the U.S. and leaves at 5 p.m. sharp.", 1),
        ("She left the U.S. The rest stayed.", 2),
        ("Well... I'm not sure... really. 😀", 3),
        ("no stop at all", 1),
        ("", 0),
    ],
)
def test_sentences_are_counted_as_punkt_does(text, count):
    assert count_sentences(text) == count


def test_loosely_leaves_out_the_first_line_the_last_and_stars():
    loose = build({"name": "loosely", "measure": {"name": "ifeval_punctuation_no_comma"}})
    assert loose.score("Sure, here:\nHello there").value == 1.0
    assert loose.score("Hello there\nBye, all").value == 1.0
    assert loose.score("Sure, here:\nHello there\nBye, all").value == 1.0
    assert loose.score("Hello, you\nand you\nall, too\nbye, now").value == 0.0
    starred = {
        "name": "loosely",
        "measure": {"name": "ifeval_startend_end_checker", "end_phrase": "Bye"},
    }
    assert build(starred).score("Hello *Bye*").value == 1.0
    assert (
        build(starred["measure"] | {"name": "ifeval_startend_end_checker"})
        .score("Hello *Bye*")
        .value
        == 0.0
    )
    assert build(loose.spec) == loose


def test_a_wrong_argument_is_named():
    with pytest.raises(
        UsageError, match=r"'relation' .* has to be one of at least, less than, not 'more than'"
    ):
        build(
            {
                "name": "ifeval_length_constraints_number_words",
                "num_words": 3,
                "relation": "more than",
            }
        )
    with pytest.raises(UsageError, match="'measure' of the measure 'loosely' is missing"):
        build("loosely")
