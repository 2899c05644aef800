"""S-IFEval as a suite: its rows, and refusals."""

import gzip
import json
from pathlib import Path

import pytest

from holdfast.drift import load_suite
from holdfast.errors import UnknownName, UsageError

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "data" / "sys_ifeval.jsonl.gz"
REQUEST = "Tell me about sardines."


def row(key, *instructions, request=REQUEST):
    """A row of S-IFEval with these (id, arguments)."""
    return {
        "key": key,
        "instruction_id_list": [id for id, _ in instructions],
        "kwargs": [arguments for _, arguments in instructions],
        "messages": [
            {"role": "system", "content": f"Rules of {key}."},
            {"role": "user", "content": request},
        ],
    }


NO_COMMA, TITLE = ("punctuation:no_comma", {}), ("detectable_format:title", {})
LOWER, UPPER = ("change_case:english_lowercase", {}), ("change_case:english_capital", {})
JSON, QUOTES = ("detectable_format:json_format", {}), ("startend:quotation", {})


def keyword(word, relation, count):
    return ("keywords:frequency", {"keyword": word, "relation": relation, "frequency": count})


def words(relation, count):
    return ("length_constraints:number_words", {"relation": relation, "num_words": count})


def write(folder, rows, name="rows.jsonl"):
    path = folder / name
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_a_row_becomes_a_case_with_a_rule_per_instruction(tmp_path):
    rows = [
        row(7, NO_COMMA, TITLE),
        row(8, keyword("fish", "at least", 2.0), keyword("sea", "at least", 1)),
    ]
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


def test_loose_scoring_is_another_suite(tmp_path):
    path = write(tmp_path, [row(7, NO_COMMA)])
    strict, loose = (
        load_suite(f"sys-ifeval:{path}", scoring=scoring) for scoring in ("strict", "loose")
    )
    assert loose.name == "sys-ifeval-loose" and loose.fingerprint != strict.fingerprint
    scores = [
        suite.cases[0].rules[0].measure.score("Sure, so:\nSardines.").value
        for suite in (strict, loose)
    ]
    assert scores == [0.0, 1.0]
    with pytest.raises(
        UsageError, match="The scoring 'released' is for li2024 suites, not for 'sys-ifeval"
    ):
        load_suite(f"sys-ifeval:{path}", scoring="released")
    with pytest.raises(
        UsageError, match=r"The scoring 'loose' is for .*sys-ifeval.* suites, not for 'core'"
    ):
        load_suite("core", scoring="loose")
    with pytest.raises(UnknownName, match="no scoring 'lose'; did you mean 'loose'"):
        load_suite("core", scoring="lose")


GOOD = row(1, NO_COMMA)
LINE = r"rows\.jsonl, line 2"


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ('{"key": 2,', rf"{LINE} is not JSON \(.*\): '{{\"key\": 2,'; give the published file"),
        ("[1]", rf"{LINE} is \[1\], not a JSON object"),
        ("[" * 100_000, rf"{LINE} is not JSON"),
        (GOOD, rf"{LINE}: the key is '1', taken by .*rows\.jsonl, line 1; give every row its own"),
        (GOOD | {"key": None}, rf"{LINE}: the key is None, neither a number nor a text"),
        (
            GOOD | {"key": 2, "messages": "Hi"},
            rf"{LINE}: 'messages' is 'Hi', not a system prompt and a request",
        ),
        (
            GOOD | {"key": 2, "messages": GOOD["messages"][:1]},
            rf"{LINE}: 'messages' is .*, not a system prompt",
        ),
        (
            GOOD | {"key": 2, "messages": [{"role": "system", "content": 3}, GOOD["messages"][1]]},
            rf"{LINE}: the field 'content' is 3, not a text",
        ),
        (
            GOOD | {"key": 2, "kwargs": []},
            rf"{LINE}: 'instruction_id_list' is .* and 'kwargs' \[\], not two lists",
        ),
        (
            row(2, ("punctuation:no_coma", {})),
            rf"{LINE}: no measure scores the instruction 'punctuation:no_coma'; did you mean",
        ),
        (
            row(2, (["a"], {})),
            rf"{LINE}: no measure scores the instruction \['a'\]; give the published file",
        ),
        (
            row(2, ("punctuation:no_comma", 3)),
            rf"{LINE}: the arguments of 'punctuation:no_comma' are 3, not a mapping",
        ),
        (
            row(2, words("at most", 30)),
            rf"{LINE}: The argument 'relation' .* one of at least, less than, not 'at most'",
        ),
        (
            row(2, words("at least", 2.5)),
            rf"{LINE}: The argument 'num_words' .* whole number .*, not 2.5",
        ),
        (
            row(2, ("punctuation:no_comma", {"many": 3})),
            rf"{LINE}: The measure .* has a field 'many', unknown here",
        ),
        (row(2, ("punctuation:no_comma", {"name": "python"})), rf"{LINE}: .*'name'"),
    ],
)
def test_a_malformed_row_is_named_with_its_line(tmp_path, second, message):
    with pytest.raises(UsageError, match=message):
        load_suite(f"sys-ifeval:{write(tmp_path, [GOOD, second])}")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nowhere\.jsonl cannot be read \(No such file"):
        load_suite(f"sys-ifeval:{tmp_path / 'nowhere.jsonl'}")
    with pytest.raises(
        UsageError, match="'sys-ifeval' needs the published file: write sys-ifeval:PATH"
    ):
        load_suite("sys-ifeval")
    (tmp_path / "plain.gz").write_text("{}")
    with pytest.raises(UsageError, match=r"plain\.gz cannot be unpacked .* without \.gz"):
        load_suite(f"sys-ifeval:{tmp_path / 'plain.gz'}")
    (tmp_path / "latin.jsonl").write_bytes(b"\xff{}")
    with pytest.raises(UsageError, match=r"latin\.jsonl is not UTF-8 text \(byte 0\)"):
        load_suite(f"sys-ifeval:{tmp_path / 'latin.jsonl'}")


@pytest.mark.skipif(not PUBLISHED.is_file(), reason=f"{PUBLISHED} is absent")
def test_the_published_file_is_read_whole():
    suite = load_suite(f"sys-ifeval:{PUBLISHED}")
    rules = [rule for case in suite.cases for rule in case.rules]
    assert (len(suite.cases), len(rules)) == (541, 833)
    assert len({rule.measure.name for rule in rules}) == 25
