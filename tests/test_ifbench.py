"""IFBench's instructions as measures, each at its edge, and its rows, in the published form, as a
suite.
"""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_rows import rows_of

from holdfast.drift import load_suite
from holdfast.drift.verifiable.ifbench import BEYOND, WORDINGS
from holdfast.drift.verifiable.instructions import measure_name
from holdfast.errors import UsageError
from holdfast.measures import build, catalogue

# an instruction, its arguments, replies that keep it, replies that do not
TABLE = [tuple(row.values()) for row in rows_of("ifbench.jsonl")]


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
