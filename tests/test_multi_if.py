"""Multi-IF as a suite, on rows of our own in the published form."""

import csv
import itertools
import json

import pytest

from holdfast.drift import Case, Settings, Suite, load_suite
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import UsageError

FIELDS = [
    *("turns", "responses"),
    *(
        f"turn_{turn}_{name}"
        for turn in (1, 2, 3)
        for name in ("prompt", "instruction_id_list", "kwargs")
    ),
    *("key", "turn_index", "language"),
]
NO_COMMA, TITLE = ("punctuation:no_comma", {}), ("detectable_format:title", {})
WORDS = ("length_constraints:number_words", {"relation": "less than", "num_words": 30})
SECTIONS = (
    "detectable_format:multiple_sections",
    {"section_spliter": "Section", "num_sections": 2},
)
LOWER = ("change_case:english_lowercase", {})


def row(key, turns, language="English"):
    """A published row: texts of up to three turns, each with the instructions that it adds."""
    fields = dict.fromkeys(FIELDS, "") | {"key": key, "turn_index": "0", "language": language}
    so_far = []
    for number, (text, *added) in enumerate(turns, start=1):
        so_far += added
        fields[f"turn_{number}_prompt"] = json.dumps({"role": "user", "content": text})
        fields[f"turn_{number}_instruction_id_list"] = json.dumps([id for id, _ in so_far])
        fields[f"turn_{number}_kwargs"] = json.dumps([json.dumps(given) for _, given in so_far])
    return fields


THREE = [
    ("Tell me about eels, shortly.", NO_COMMA),
    ("Give it a title.", TITLE),
    ("Be brief.", WORDS),
]


def write(folder, *rows, name="multi.csv"):
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as file:
        if name.endswith(".csv"):
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
        else:
            file.writelines(json.dumps(fields) + "\n" for fields in rows)
    return path


@pytest.mark.parametrize("name", ["multi.csv", "multi.jsonl"])
def test_later_turns_are_the_prompt_and_the_first_is_the_probe(tmp_path, name):
    path = write(tmp_path, row("7:1:en", THREE), row("7:2:en", THREE[:2]), name=name)
    suite = load_suite(f"multi-if:{path}")
    first, second = suite.cases
    assert (first.id, first.category) == ("7:1:en", "English")
    assert first.system_prompt == "Give it a title.\nBe brief."
    assert [rule.id for rule in first.rules] == [TITLE[0], WORDS[0]]
    assert first.rules[0].probes == ("Tell me about eels, shortly.",)
    assert (second.system_prompt, len(second.rules)) == ("Give it a title.", 1)


def test_what_contradicts_the_probe_or_is_not_counted_in_a_language_is_left_out(tmp_path):
    clash = row("1", [("Tell me, in small letters.", LOWER), ("Two sections.", SECTIONS), THREE[1]])
    chinese = row("2", [THREE[0], ("简短。", WORDS), ("标题。", TITLE)], "Chinese")
    suite = load_suite(f"multi-if:{write(tmp_path, clash, chinese)}")
    assert [[rule.id for rule in case.rules] for case in suite.cases] == [[TITLE[0]], [TITLE[0]]]
    assert "2 of 4 instructions" in suite.notes[1] and "1 contradicting another" in suite.notes[1]
    assert f"No measure scores {WORDS[0]} in Chinese (1)" in suite.notes[2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"turn_1_prompt": ""}, r"line 3: the field 'turn_1_prompt' is '', not a text"),
        ({"turn_2_prompt": "Hi"}, r"line 3, turn_2_prompt is not JSON \(.*\): 'Hi'"),
        ({"turn_2_prompt": "[]"}, r"line 3: 'turn_2_prompt' is \[\], not a message"),
        ({"turn_3_kwargs": '["{"]'}, r"line 3, turn_3_kwargs is not JSON"),
        ({"turn_3_kwargs": "{}"}, r"line 3: 'instruction_id_list' is .* and 'kwargs' \[\]"),
        ({"language": ""}, r"line 3: the field 'language' is ''"),
        ({"key": "1"}, r"line 3: the key is '1', taken by .*line 2"),
    ],
)
def test_a_malformed_row_is_named_with_its_line(tmp_path, change, message):
    path = write(tmp_path, row("1", THREE), row("2", THREE) | change)
    with pytest.raises(UsageError, match=message):
        load_suite(f"multi-if:{path}")


def test_a_row_of_too_few_cells_is_named(tmp_path):
    path = write(tmp_path, row("1", THREE))
    path.write_text(path.read_text() + "one,two\n")
    with pytest.raises(
        UsageError, match=r"line 3 has not as many fields as the first line names \(14\)"
    ):
        load_suite(f"multi-if:{path}")


def test_all_pairs_go_through_the_permutations_of_the_cases():
    cases = tuple(Case(name, "c", "Hi.", ("Who?",), "one_sentence") for name in "abcd")
    suite, settings = Suite("s", cases, ("Hello",)), Settings(pairs="all")
    drawn = [draw_pairing(suite, settings, number) for number in range(13)]
    pairs = list(itertools.permutations("abcd", 2))
    assert [(pairing.agent.id, pairing.user.id) for pairing in drawn] == [*pairs, pairs[0]]
