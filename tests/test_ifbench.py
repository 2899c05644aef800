"""IFBench's instructions as measures, each at its edge, and its rows, in the published form, as a
suite.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.drift import load_suite
from holdfast.drift.verifiable.ifbench import BEYOND, WORDINGS
from holdfast.drift.verifiable.instructions import measure_name
from holdfast.errors import UsageError
from holdfast.measures import build, catalogue

FIVE = {f"keyword{number}": word for number, word in enumerate("abcde", start=1)}
TABLE = [  # an instruction, its arguments, replies that keep it, replies that do not
    (
        "count:word_count_range",
        {"min_words": 2, "max_words": 3},
        ["a b", "a b c"],
        ["a", "a b c d"],
    ),
    ("count:unique_word_count", {"N": 2}, ["Go, stop", "a b a"], ["Go, go!", "a -"]),
    ("count:conjunctions", {"small_n": 2}, ["this AND, that yet"], ["and And and,"]),
    (
        "count:person_names",
        {"N": 2},
        ["Emma and Liam"],
        ["Emma and Emma", "emma liam", "Leon Emma"],
    ),
    ("count:numbers", {"N": 2}, ["1,234.5 and 6"], ["1 2 3", "one two"]),
    ("count:pronouns", {"N": 3}, ["She/her hers", "I, you: it"], ["I and you"]),
    (
        "count:punctuation",
        {},
        ["Really?! A, b; c: d. E! F?"],
        ["Really?! A, b; c: d. E!", "a, b; c: d. E! F?"],
    ),
    (
        "count:keywords_multiple",
        FIVE,
        ["abbcccdddddeeeeeee"],
        ["abbcccdddddeeeeee", "aabbcccdddddeeeeeee"],
    ),
    (
        "count:words_japanese",
        {"N": 2},
        ["one 二 three 四", "one 2 three", "one"],
        ["one two", "一 two"],
    ),
    ("words:repeats", {"small_n": 2}, ["go Go stop"], ["go, go. Go!"]),
    ("words:alphabet", {}, ["Yes, zebras are big"], ["a c", "b a", "1 2"]),
    ("words:vowel", {}, ["a big dog"], ["a big dog ate", "a big\ndog"]),
    ("words:consonants", {}, ["string things"], ["string a", "go"]),
    ("words:palindrome", {}, ["level " * 9 + "Radar."], ["level " * 9 + "noon"]),
    ("words:prime_lengths", {}, ["to the world, again"], ["to the moon", "a"]),
    ("words:no_consecutive", {}, ["big red bus"], ["big blue", "go Go"]),
    (
        "words:words_position",
        {"keyword": "fish"},
        ["A fish, fish ends.", "a Fish b"],
        ["a fish b c", "fish", "a b fish c"],
    ),
    ("words:paragraph_last_first", {}, ["Go and go.\n\nwe like we"], ["Go and stop", "go go\na b"]),
    ("words:last_first", {}, ["I like tea. Tea is good."], ["I like tea. It is.", "I like tea."]),
    ("ratio:sentence_type", {}, ["Yes. No. Why?"], ["Yes. Why?", "Hm!", "Yes. No."]),
    ("ratio:sentence_balance", {}, ["Yes. Why? Go!"], ["Yes. Why?", "no stop"]),
    (
        "ratio:sentence_words",
        {},
        ["Go on. We do. He is."],
        ["Go on. Go to. He is.", "Go on. We do.", "Go on. We do. He was."],
    ),
    (
        "sentence:alliteration_increment",
        {},
        ["No rest. Big boys. Big bad boys."],
        ["Big boys. Bad bats."],
    ),
    (
        "sentence:keyword",
        {"word": "Eel", "N": 2},
        ["Yes. Two eels swim."],
        ["An eel. Yes.", "An eel."],
    ),
    (
        "sentence:increment",
        {"small_n": 2},
        ["Go. We go now. Now all of us go."],
        ["Go. We go.", "We go now. Go."],
    ),
    ("format:parentheses", {}, ["(a [b {c (d [e])}])"], ["(a [b {c (d)}])", "(([[{", "((((("]),
    ("format:quotes", {}, ['"a \'b "c" d\' e"'], ["\"a 'b' c\"", '"a \'b "c']),
    ("format:quote_unquote", {}, ['"a" means b.', "no quotation"], ['"a" "b" c', 'he said "a".']),
    ("format:options", {"options": "yes/no/maybe"}, ["Maybe.", "no"], ["yes or no", "yes, it is"]),
    (
        "format:options",
        {"options": "I know or I don't know"},
        ["I don't know."],
        ["I know or I don't know"],
    ),
    ("format:options", {"options": "a), b), c), d)"}, ["a)"], ["a", "A)"]),
    ("format:newline", {}, ["one\n\ntwo,"], ["one two", "!"]),
    ("format:emoji", {}, ["Yes 🎉. No! 🎉"], ["Yes. No 🎉.", "🎉 Yes."]),
    ("format:line_indent", {}, ["a\n  b\n\n   c"], ["a\nb", " a\nb"]),
    ("format:list", {"sep": "!?!?"}, ["!?!? a\n!?!? b"], ["!?!? a"]),
    (
        "format:thesis",
        {},
        ["<i>a</i> b", "x <em>a</em> b"],
        ["<i>a</i>", "<i> </i> b", "<i>a</em> b"],
    ),
    ("format:sub-bullets", {}, ["* a\n - b\n* c\n - d"], ["* a\n - b\n* c", "no bullet"]),
    (
        "format:no_bullets_bullets",
        {},
        ["Yes. No.\n* a\n\n* b"],
        ["Yes.\n* a\n* b", "Yes. No.\n* a", "Yes. No.\n* a\n* b\nend"],
    ),
    ("format:title_case", {}, ["The Cat's Meow: 3D Art", "Be a Cat"], ["The cat", "A of B"]),
    (
        "format:output_template",
        {},
        ["My Answer: a My Conclusion: b Future Outlook: c"],
        ["My Answer: a"],
    ),
    ("format:no_whitespace", {}, ["none-at-all"], ["one two", "a\n"]),
]


def test_all_measured_instructions_are_in_the_table_and_58_are_known():
    names = {name for name, _, _ in catalogue() if name.startswith("ifbench_")}
    assert {measure_name(id, "ifbench") for id, *_ in TABLE} == names
    assert {measure_name(id, "ifbench") for id in WORDINGS} == names
    assert len(WORDINGS) + len(BEYOND) == 58 and not set(WORDINGS) & set(BEYOND)


@pytest.mark.parametrize(("id", "arguments", "follows", "breaks"), TABLE)
def test_an_instruction_at_its_edge(id, arguments, follows, breaks):
    measure = build({"name": measure_name(id, "ifbench"), **arguments})
    assert [measure.score(reply).value for reply in follows] == [1.0] * len(follows)
    assert [measure.score(reply).value for reply in breaks] == [0.0] * len(breaks)
    assert measure.score(" \n").value == 0.0


@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aB1.,?!*-<>[]({})\"'\n 🎉ß日")) | st.text())
def test_no_text_makes_an_instruction_raise(text):
    for id, arguments, *_ in TABLE:
        spec = {"name": measure_name(id, "ifbench"), **arguments}
        assert build(spec).score(text).value in (0.0, 1.0)


def row(key, prompt, *instructions):
    """A published row, in which arguments that are not given are null and numbers have a point."""
    blank = dict.fromkeys(("N", "small_n", "options", "sep", "word", "keyword"))
    return {
        "key": key,
        "prompt": prompt,
        "instruction_id_list": [id for id, _ in instructions],
        "kwargs": [blank | arguments for _, arguments in instructions],
    }


def load(folder, *rows, scoring="strict"):
    path = folder / "ifbench.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_suite(f"ifbench:{path}", scoring=scoring)


NUMBERS = ("count:numbers", {"N": 2.0})


def test_the_words_of_an_instruction_are_the_prompt_and_the_rest_is_the_probe(tmp_path):
    suite = load(
        tmp_path,
        row("1", "What are eels?\nIn short. Include exactly 2 numbers in the response. ", NUMBERS),
        row(
            "2",
            "Answer with one of the following options: yes/no/maybe. Do not give any explanation. "
            "No two consecutive words can share the same first letter. Are eels fish?",
            ("format:options", {"options": "yes/no/maybe"}),
            ("words:no_consecutive", {}),
        ),
    )
    first, second = suite.cases
    assert first.system_prompt == "Include exactly 2 numbers in the response."
    assert first.rules[0].probes == ("What are eels?\nIn short.",)
    assert first.rules[0].measure.score("1 and 2").value == 1.0
    assert second.system_prompt == (
        "Answer with one of the following options: yes/no/maybe. Do not give any explanation. "
        "No two consecutive words can share the same first letter."
    )
    assert {rule.probes for rule in second.rules} == {("Are eels fish?",)}
    assert (first.category, second.category) == ("count", "several")


def test_what_no_measure_scores_or_stands_in_other_words_is_left_out_by_name(tmp_path):
    suite = load(
        tmp_path,
        row("1", "Include exactly 2 numbers in the response. Eels?", NUMBERS),
        row("2", "Count from 10 to 50 but only print multiples of 7.", ("custom:multiples", {})),
        row("3", "Eels? Two numbers, please.", NUMBERS),
        row("4", "Include exactly 2 numbers in the response.", NUMBERS),
    )
    assert [case.id for case in suite.cases] == ["1"]
    assert "1 of 4 instructions and 1 of 4 prompts" in suite.notes[1]
    assert suite.notes[2] == (
        "No measure scores count:numbers in other words (2), custom:multiples (1); these are left"
        " out."
    )


def test_loose_scoring_and_malformed_rows(tmp_path):
    good = row("1", "Include exactly 2 numbers in the response. Eels?", NUMBERS)
    loose = load(tmp_path, good, scoring="loose")
    assert loose.name == "ifbench-loose"
    assert loose.cases[0].rules[0].measure.score("Here are 9:\n1 and 2").value == 1.0
    with pytest.raises(
        UsageError, match=r"line 2: no measure scores the instruction 'count:nombers'"
    ):
        load(tmp_path, good, row("2", "x", ("count:nombers", {})))
    with pytest.raises(UsageError, match=r"line 2: The argument 'N' .* not 2.5"):
        load(tmp_path, good, row("2", "x", ("count:numbers", {"N": 2.5})))
    with pytest.raises(UsageError, match=r"line 2: the field 'prompt' is None, not a text"):
        load(tmp_path, good, row("2", None, NUMBERS))
