"""Rollouts that are torn, compressed, repeated or very long."""

import gzip
import json
import time
from typing import Any

import pytest
from codex_lines import HI, META, A, line, rollout
from log_variations import ONE_TURN, Variation, file_text, lines, variations

from holdfast.errors import UsageError
from holdfast.logs import read_logs


def packed(*values: Any) -> bytes:
    return gzip.compress(file_text(lines(*values)).encode())


def result_of(call: str, words: str) -> dict:
    return line("response_item", type="function_call_output", call_id=call, output=words)


def call_of(call: str, words: str) -> dict:
    return line(
        "response_item",
        type="function_call",
        name="shell",
        call_id=call,
        arguments=json.dumps({"command": words}),
    )


LONG_RESULT = "x" * 100_000 + "ü"
TORN_ANSWER = json.dumps(A)[:40]

test_difficult_files = variations(
    Variation(
        "results in another order than their calls",
        rollout(
            META,
            HI,
            call_of("1", "ls"),
            call_of("2", "pwd"),
            result_of("2", "/x"),
            result_of("1", "a.py"),
            A,
        ),
        ONE_TURN,
        calls=["ls", "pwd"],
        results=["/x", "a.py"],
    ),
    Variation(
        "a result of a hundred thousand characters",
        rollout(META, HI, call_of("1", "ls"), result_of("1", LONG_RESULT), A),
        ONE_TURN,
        calls=["ls"],
        results=[LONG_RESULT],
    ),
    Variation(
        "line breaks of Windows after a byte order mark",
        {"r.jsonl": "\ufeff" + file_text(lines(META, HI, A)).replace("\n", "\r\n")},
        ONE_TURN,
    ),
    Variation("a compressed file", {"r.jsonl.gz": packed(META, HI, A)}, ONE_TURN),
    Variation(
        "a compressed file with a torn line",
        {"r.jsonl.gz": packed(META, HI, A, TORN_ANSWER)},
        ONE_TURN,
        problem="line 4: it is not JSON",
    ),
    Variation(
        "a line that was torn and written again behind its beginning",
        rollout(META, HI, TORN_ANSWER + json.dumps(A)),
        ONE_TURN,
        problem="written only in part",
    ),
    Variation(
        "the same, where objects within the line begin like the line",
        rollout(
            META,
            HI,
            '{"type": "respons'
            + json.dumps(dict(sorted(A.items(), key=lambda item: item[0] != "type"))),
        ),
        ONE_TURN,
        problem="written only in part",
    ),
    Variation("a file that repeats itself", rollout(*2 * [META, HI, A]), ONE_TURN),
    Variation(
        "zeros behind the last line",
        {"r.jsonl": file_text(lines(META, HI, A)).encode() + bytes(64)},
        ONE_TURN,
        problem="line 4: it is not JSON",
    ),
)


def test_a_long_line_that_was_torn_is_refused_at_once(tmp_path):
    """Its many parts begin as the line does, so each might be the record that is written again."""
    parts = ",".join('{"type":"text","text":"x"}' for _ in range(100_000))
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"user","message":{"role":"user","content":[' + parts + ',{"cut')
    start = time.process_time()
    with pytest.raises(UsageError):
        read_logs([path])
    assert time.process_time() - start < 5
