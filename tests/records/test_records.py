"""Records of a run: what is written stays written, and damage is named."""

import random
import re
import zlib
from pathlib import Path

import pytest
from small_records import ABOUT, IDENTITY, METHODS, as_written, record, write_without_checksums
from synthetic_run import as_json

from holdfast.errors import RecordsError
from holdfast.records import FAILURES, open_run, read_run


def begin_run(folder: Path, identity: dict = IDENTITY) -> None:
    """A run of one conversation."""
    with open_run(folder, identity, ABOUT) as run:
        run.append(record(0))


# Written and read back


def test_what_is_appended_is_read_back(tmp_path):
    with open_run(tmp_path / "deep" / "run", IDENTITY, ABOUT) as run:
        run.append(record(0))
        run.append(record(0, "split-softmax:exponent=0.5"))
        run.append(record(1, text="naïve \u2028 \n \x85 🪸 \ud83c"))
        assert run.keys() == {("none", 0), ("split-softmax:exponent=0.5", 0), ("none", 1)}
    data = read_run(tmp_path / "deep" / "run")
    assert as_json(data)[2] == as_written(1, text="naïve \u2028 \n \x85 🪸 \ud83c")
    assert data.manifest.identity.to_json() == IDENTITY
    assert data.manifest.argv == ABOUT["argv"] and data.manifest.created
    assert len((tmp_path / "deep" / "run" / "records.jsonl").read_bytes().splitlines()) >= 3


def test_a_number_json_cannot_hold_is_not_written(tmp_path):
    (probe,) = record(0).probes
    unwritable = probe.model_copy(update={"score": float("nan")})
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        with pytest.raises(ValueError, match="nan"):
            run.append(record(0).model_copy(update={"probes": (unwritable,)}))
        run.append(record(0))
    assert len(read_run(tmp_path).records) == 1


def test_a_conversation_is_written_once(tmp_path):
    for _ in range(2):
        with open_run(tmp_path, IDENTITY, ABOUT) as run:
            if not run.keys():
                run.append(record(3))
            with pytest.raises(RecordsError) as excinfo:
                run.append(record(3))
            assert excinfo.value.value == ("none", 3)


def test_reading_does_not_show_the_checksum_and_json_readers_do(tmp_path):
    pandas = pytest.importorskip("pandas")
    begin_run(tmp_path)
    assert as_json(read_run(tmp_path)) == [as_written(0)]
    table = pandas.read_json(tmp_path / "records.jsonl", lines=True, dtype=False)
    line = (tmp_path / "records.jsonl").read_bytes()
    body = line[: line.index(b', "crc32"')]
    assert list(table["crc32"]) == [f"{zlib.crc32(body):08x}"] and list(table["conversation"]) == [
        0
    ]


def test_a_run_without_checksums_is_read_and_resumed_with_them(tmp_path):
    write_without_checksums(tmp_path, as_written(0), as_written(1))
    assert as_json(read_run(tmp_path)) == [as_written(0), as_written(1)]
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(2))
    assert as_json(read_run(tmp_path)) == [as_written(0), as_written(1), as_written(2)]
    path = tmp_path / "records.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    assert b"crc32" not in first + second and b"crc32" in third
    path.write_bytes(first + second + third.replace(b"crc32", b"crc33"))
    with pytest.raises(RecordsError, match="checksum") as excinfo:
        read_run(tmp_path)
    assert excinfo.value.value == 3


def test_a_run_is_read_as_a_table_of_probes(tmp_path):
    pandas = pytest.importorskip("pandas")
    begin_run(tmp_path)
    frame = read_run(tmp_path).to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 1
    row = frame.iloc[0]
    expected = {"method": "none", "conversation": 0, "agent": "a", "category": "pattern"}
    expected |= {"round": 1, "kind": "stability", "score": 1.0, "mass": 0.1, "reply": "hello"}
    assert {name: row[name] for name in expected} == expected
    assert row["user"] is None


# Damage


@pytest.mark.parametrize("cut", [1, 2, 40, 10_000])
def test_a_torn_last_line_is_cut_off(tmp_path, cut):
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(0, text="é" * 20))
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    torn = whole.replace(b'"conversation": 0', b'"conversation": 1')
    path.write_bytes(whole + torn[: min(cut, len(whole) - 1)])
    assert len(read_run(tmp_path).records) == 1, "a reader leaves the torn line out"
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        assert run.keys() == {("none", 0)}
        assert path.read_bytes() == whole
        run.append(record(1))
    assert [r["conversation"] for r in as_json(read_run(tmp_path))] == [0, 1]


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    begin_run(tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes() + b"{not json}\n" + path.read_bytes())
    with pytest.raises(RecordsError, match="checksum") as excinfo:
        read_run(tmp_path)
    assert (excinfo.value.option, excinfo.value.value) == (str(path), 2)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] * 2)
    with pytest.raises(RecordsError, match="of line 1") as excinfo:
        read_run(tmp_path)
    assert (excinfo.value.option, excinfo.value.value) == (str(path), 2)


DEEP = b'{"method": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
PROBE = as_written(0)["probes"][0]
TURN = as_written(0)["turns"][0]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{not json}", "is not a record"),
        (b"[1]", "is not a record but a list"),
        (DEEP, "nested too deeply"),
        (b'{"method": "none", "conversation": ' + b"1" * 5000 + b"}", "is not a record"),
        (b'{"method": "none", "conversation": 1e999}', "has no 'agent'"),
        (b'{"method": "none", "conversation": 0, "agent": {}}', "has no 'agent.id'"),
        ({"conversation": 1e999}, "has conversation inf, which should be"),
        ({"conversation": "3"}, "has conversation '3', which should be a valid integer"),
        ({"conversation": -1}, "has conversation -1, which should be greater than or equal to 0"),
        ({"conversation": 999}, "has conversation 999, and the run's are 0 to 199"),
        ({"method": "boost:factor=4"}, "the method 'boost:factor=4', which the run does not have"),
        ({"method": None}, "has method None, which should be a valid string"),
        ({"agent": {}}, "has no 'agent.id'"),
        ({"turns": {"a": 1}}, "has turns {'a': 1}, which should be a valid list"),
        ({"turns": [{**TURN, "round": 9}]}, "has round 9, and the run's are 1 to 8"),
        ({"turns": [{**TURN, "text": None}]}, "has turns.0.text None, which should be"),
        ({"probes": [{**PROBE, "score": 2}]}, "has the score 2, which is not between 0 and 1"),
        ({"probes": [{**PROBE, "score": None}]}, "has probes.0.score None, which should be"),
        ({"probes": [{**PROBE, "score": float("nan")}]}, "has probes.0.score nan"),
        ({"tokens": {"forwarded": None}}, "has tokens.forwarded None"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_line_that_does_not_belong_is_refused(tmp_path, line, why):
    identity = {**IDENTITY, "settings": {"conversations": 200, "rounds": 8}}
    wrong = line if isinstance(line, bytes) else {**as_written(1), **line}
    write_without_checksums(tmp_path, as_written(0), wrong, identity=identity)
    with pytest.raises(RecordsError) as excinfo:
        read_run(tmp_path)
    message = str(excinfo.value)
    assert message.startswith(f"Line 2 of {tmp_path / 'records.jsonl'} ") and why in message
    assert excinfo.value.value == 2 and len(message) < 400


@pytest.mark.parametrize(
    ("command", "identity", "line", "why"),
    [
        ("tasks", {}, {"scores": {"format": None}}, "has scores.format None, which should be"),
        ("tasks", {}, {"scores": []}, "has scores [], which should be a valid dictionary"),
        ("tasks", {}, {"conversation": 7}, "has sample 7, and the run's are 0 to 4"),
        ("tasks", {}, {"task": "bios"}, "has the task 'bios', which the run does not have"),
        ("tasks", {}, {"variant": "marked"}, "the variant 'marked', which the run does not have"),
        ("profile", {"samples": 3}, {"conversation": 4}, "has sample 4, and the run's are 0 to 2"),
    ],
)
def test_a_sample_that_does_not_belong_is_refused(tmp_path, command, identity, line, why):
    sample = {"method": "json zero-shot", "conversation": 0, "task": "json"}
    sample |= {"variant": "zero-shot", "scores": {"format": 1.0}}
    settings = {"samples": 5, "tasks": ["json"]}
    identity = {"variants": ["zero-shot"], "settings": settings, **identity}
    write_without_checksums(tmp_path, sample, command=command, identity=identity)
    (stored,) = read_run(tmp_path).records
    assert stored == type(stored).model_validate(sample)
    write_without_checksums(tmp_path, {**sample, **line}, command=command, identity=identity)
    with pytest.raises(RecordsError, match=re.escape(why)):
        read_run(tmp_path)


def test_a_thousand_flipped_bits_are_all_refused(tmp_path):
    """No flipped bit of the records goes unnoticed, and the message names its line."""
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        for number in range(30):
            run.append(record(number, text=f"naïve 🪸 \ud83d {number / 7}"))
            run.append(record(number, METHODS[1], text='{"a": [1e-05, 0.1]}'))
    path, rng = tmp_path / "records.jsonl", random.Random(7)
    whole = path.read_bytes()
    bits = [rng.randrange(len(whole) * 8) for _ in range(1000)]
    bits += range(len(whole) * 8 - 8, len(whole) * 8)  # the last newline
    for count, bit in enumerate(bits):
        path.write_bytes(flip_bit(whole, bit))
        with pytest.raises(RecordsError) as excinfo:
            read_run(tmp_path)
        number = whole.count(b"\n", 0, bit // 8) + 1
        assert str(excinfo.value).startswith(f"Line {number} of {path} is damaged")
        if count % 100 == 99:
            with pytest.raises(RecordsError, match=f"^Line {number} of"):
                open_run(tmp_path, IDENTITY, ABOUT)
            assert path.read_bytes() == flip_bit(whole, bit)


def flip_bit(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def test_a_flipped_bit_of_the_manifest_is_refused(tmp_path):
    begin_run(tmp_path)
    path = tmp_path / "manifest.json"
    whole = path.read_bytes()
    for bit in random.Random(3).sample(range(len(whole) * 8), 1000):
        path.write_bytes(flip_bit(whole, bit))
        with pytest.raises(RecordsError, match=r"manifest\.json"):
            read_run(tmp_path)


# Notes on failures


def test_failure_notes_are_read_until_their_key_is_recorded(tmp_path):
    begin_run(tmp_path)
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.note_failure("none", 1, "failure", "It failed.")
        run.note_failure("none", 2, "filter", "Naïve \u2028 line.")
        run.note_failure("none", 1, "context", "It was too long.")
    notes = {note.conversation: note.why for note in read_run(tmp_path).failures}
    assert notes == {1: "context", 2: "filter"}
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.append(record(1))
    (failure,) = read_run(tmp_path).failures
    assert failure.conversation == 2 and failure.reason == "Naïve \u2028 line."


def test_a_torn_note_is_cut_and_a_damaged_one_named(tmp_path):
    begin_run(tmp_path)
    with open_run(tmp_path, IDENTITY, ABOUT) as run:
        run.note_failure("none", 1, "failure", "It failed.")
        run.note_failure("none", 2, "failure", "It failed.")
    path = tmp_path / FAILURES
    path.write_bytes(path.read_bytes()[:-20])
    assert [note.conversation for note in read_run(tmp_path).failures] == [1]
    open_run(tmp_path, IDENTITY, ABOUT).close()
    assert path.read_bytes().count(b"\n") == 1 and path.read_bytes().endswith(b"}\n")
    path.write_bytes(path.read_bytes().replace(b"failed", b"fooled"))
    with pytest.raises(RecordsError, match=r"Line 1 of .*failures\.jsonl"):
        read_run(tmp_path)
