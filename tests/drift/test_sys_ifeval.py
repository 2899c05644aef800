"""S-IFEval as a suite: reading its rows, and refusing bad ones."""

import gzip
import json

import pytest
from paths import ROOT

from holdfast.drift import load_suite
from holdfast.errors import UnknownName, UsageError

REQUEST = "Tell me about sardines."


def row(key, *instructions, request=REQUEST):
    """A row of S-IFEval with these instructions, each (id, arguments)."""
    system = {"role": "system", "content": f"Rules of {key}."}
    ids, arguments = [id for id, _ in instructions], [values for _, values in instructions]
    messages = [system, {"role": "user", "content": request}]
    return {"key": key, "instruction_id_list": ids, "kwargs": arguments, "messages": messages}


NO_COMMA, TITLE = ("punctuation:no_comma", {}), ("detectable_format:title", {})


def write(folder, rows, name="rows.jsonl"):
    path = folder / name
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


# Reading


def keyword(word, relation, count):
    return ("keywords:frequency", {"keyword": word, "relation": relation, "frequency": count})


def test_a_row_becomes_a_case_with_a_rule_per_instruction(tmp_path):
    keywords = keyword("fish", "at least", 2.0), keyword("sea", "at least", 1)
    rows = [row(7, NO_COMMA, TITLE), row(8, *keywords)]
    suite = load_suite(f"sys-ifeval:{write(tmp_path, rows)}")
    first, second = suite.cases
    assert (suite.name, first.id, first.system_prompt) == ("sys-ifeval", "7", "Rules of 7.")
    assert [rule.id for rule in first.rules] == ["punctuation:no_comma", "detectable_format:title"]
    assert {rule.probes for rule in first.rules} == {(REQUEST,)}
    assert (first.category, second.category) == ("several", "keywords")
    assert [rule.id for rule in second.rules] == ["keywords:frequency", "keywords:frequency (2)"]
    assert second.rules[0].measure.score("Fish eat fish.").value == 1.0
    zipped = load_suite(f"sys-ifeval:{write(tmp_path, rows, 'rows.jsonl.gz')}")
    assert zipped.fingerprint == suite.fingerprint


def test_messages_may_have_further_fields(tmp_path):
    variant = row(7, NO_COMMA)
    variant["messages"] = [{**message, "name": "x"} for message in variant["messages"]]
    suites = [
        load_suite(f"sys-ifeval:{write(tmp_path, [rows])}") for rows in (variant, row(7, NO_COMMA))
    ]
    assert suites[0].fingerprint == suites[1].fingerprint


def test_loose_scoring_makes_a_separate_suite(tmp_path):
    path = write(tmp_path, [row(7, NO_COMMA)])
    suites = [load_suite(f"sys-ifeval:{path}", scoring=name) for name in ("strict", "loose")]
    strict, loose = suites
    assert loose.name == "sys-ifeval-loose" and loose.fingerprint != strict.fingerprint
    measures = [suite.cases[0].rules[0].measure for suite in suites]
    assert [measure.score("Sure, so:\nSardines.").value for measure in measures] == [0.0, 1.0]
    for name, scoring, message in (
        (f"sys-ifeval:{path}", "released", "'released' is for li2024 suites, not for 'sys-ifeval"),
        ("core", "loose", r"'loose' is for .*sys-ifeval.* suites, not for 'core'"),
    ):
        with pytest.raises(UsageError, match=f"The scoring {message}"):
            load_suite(name, scoring=scoring)
    with pytest.raises(UnknownName, match="no scoring 'lose'; did you mean 'loose'"):
        load_suite("core", scoring="lose")


PUBLISHED = ROOT.parent / "shared" / "data" / "sys_ifeval.jsonl.gz"


@pytest.mark.skipif(not PUBLISHED.is_file(), reason=f"{PUBLISHED} is absent")
def test_the_whole_published_file_is_read():
    suite = load_suite(f"sys-ifeval:{PUBLISHED}")
    rules = [rule for case in suite.cases for rule in case.rules]
    assert (len(suite.cases), len(rules)) == (541, 833)
    assert len({rule.measure.name for rule in rules}) == 25


# Refusals


def words(relation, count):
    return ("length_constraints:number_words", {"relation": relation, "num_words": count})


GOOD, SECOND = row(1, NO_COMMA), row(2, NO_COMMA)
SECOND_LINE = r"^Line 2 of .*rows\.jsonl"
NO_TEXT = [{"role": "system", "content": 3}, GOOD["messages"][1]]


def row_with(name, arguments):
    return row(2, (name, arguments))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"key": 2,', r" is not JSON"),
        ("[1]", r": the row has to be an object, not a list of 1"),
        (GOOD, r": the key '1' is also that of line 1; give every row its own"),
        (GOOD | {"key": None}, r": key has to be a whole number or a text .*, not null"),
        (GOOD | {"key": " "}, r": key has to be a whole number or a text .*, not ' '"),
        (SECOND | {"messages": "Hi"}, r": messages has to be .*, not 'Hi'"),
        (SECOND | {"messages": GOOD["messages"][::-1]}, r": messages\[0\].role .*, not 'user'"),
        (SECOND | {"messages": NO_TEXT}, r": messages\[0\].content has to be a text .*, not 3"),
        (SECOND | {"kwargs": []}, r": instruction_id_list has 1 entry, but kwargs has 0"),
        (
            row_with("punctuation:no_coma", {}),
            r": no measure .* 'punctuation:no_coma'; did you mean",
        ),
        (row_with("punctuation:no_comma", 3), r": kwargs\[0\] has to be an object, not 3"),
        (row(2, words("at most", 30)), r": The argument 'relation' .* less than, not 'at most'"),
        (row(2, words("at least", 2.5)), r": The argument 'num_words' .* whole number .*, not 2.5"),
        (row_with("punctuation:no_comma", {"many": 3}), r": The measure .* has no field 'many'"),
        (row_with("punctuation:no_comma", {"name": "python"}), r": .*'name'"),
    ],
)
def test_a_malformed_row_is_reported_with_its_line(tmp_path, second, message):
    with pytest.raises(UsageError, match=SECOND_LINE + message):
        load_suite(f"sys-ifeval:{write(tmp_path, [GOOD, second])}")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "plain.gz").write_text("{}")
    (tmp_path / "latin.jsonl").write_bytes(b"\xff{}")
    for name, message in (
        ("nowhere.jsonl", r"nowhere\.jsonl cannot be read \(No such file"),
        ("plain.gz", r"plain\.gz cannot be unpacked .* without \.gz"),
        ("latin.jsonl", r"latin\.jsonl is not UTF-8 text \(byte 0\)"),
    ):
        with pytest.raises(UsageError, match=message):
            load_suite(f"sys-ifeval:{tmp_path / name}")
    with pytest.raises(UsageError, match="'sys-ifeval' needs the published file: write sys-ifeval"):
        load_suite("sys-ifeval")
