"""Files and lines that cannot be read are named with the reason, and the rest is read."""

import gzip
import json
import os
from pathlib import Path

import pytest
from agent_sessions import GEMINI, bash, codex, codex_says, gemini, reply, user, write
from read_dialogs import read_lines

from holdfast.errors import UnknownName, UsageError
from holdfast.logs import read_logs
from holdfast.transcripts import read_transcripts

# Files


HI, HELLO = {"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}


def test_files_that_are_compressed_in_other_ways_are_named(tmp_path):
    write(tmp_path, {"messages": [HI, HELLO]}, name="logs/a.jsonl")
    for name in ("b.jsonl.lz4", "c.tar.zst"):
        (tmp_path / "logs" / name).write_bytes(b"\x28")
        with pytest.raises(UsageError) as excinfo:
            read_transcripts(tmp_path / "logs" / name)
        assert excinfo.value.value == str(tmp_path / "logs" / name)
    (first, second) = read_logs([tmp_path / "logs"]).problems
    assert "b.jsonl.lz4" in first and "c.tar.zst" in second


GOOD = {"messages": [HI, HELLO]}
DEEP = b'{"attributes": {"gen_ai": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}}"  # but valid JSON
PACKED = gzip.compress(json.dumps(GOOD).encode() * 50, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cut.jsonl.gz", PACKED[:-20], "unpacked"),
        ("head.jsonl.gz", PACKED[:5], "unpacked"),
        ("damaged.jsonl.gz", PACKED[:30] + b"\0\0\0\0" + PACKED[34:], "unpacked"),
        ("tail.json.gz", PACKED + b"{}", "unpacked"),
        ("plain.jsonl.gz", json.dumps(GOOD).encode(), "unpacked"),
        ("empty.jsonl.gz", b"", "empty"),
        ("cut.jsonl.zst", b"\x28\xb5\x2f\xfd", "unpacked"),
        ("damaged.jsonl.zst", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff", "unpacked"),
        ("cut.jsonl.xz", b"\xfd7zXZ", "unpacked"),
        ("damaged.jsonl.bz2", b"BZh", "unpacked"),
        ("cut.jsonl.br", b"\x8b", "compressed"),
        ("undefined.jsonl", b'{"messages": "caf\x81"}', "UTF-8"),
        ("wide_unmarked.jsonl", json.dumps(GOOD).encode("utf-16-le"), "JSON"),
        ("empty.jsonl", b"", "empty"),
        ("blank.json", b"\n \n", "empty"),
        ("zeros.jsonl", bytes(4096), "JSON"),
        ("zeros.json", bytes(4096), "JSON"),
        ("brackets.jsonl", b"[" * 100_000, "JSON"),
        ("deep.jsonl", DEEP, "deeply"),
        ("digits.jsonl", b"9" * 5000, "JSON"),
        ("unknown.jsonl", json.dumps("x" * 10**6).encode(), "no known format"),
        ("cursor_notes.md", b"# Rules\n", "its Markdown is in no known format"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_a_file_of_a_folder_that_cannot_be_read_is_named_and_the_rest_is_read(
    name, content, reason, tmp_path
):
    write(tmp_path, GOOD, name="logs/a.jsonl")
    write(tmp_path, GOOD, name="logs/z.jsonl")
    (tmp_path / "logs" / name).write_bytes(content)
    logs = read_logs([tmp_path / "logs"])
    assert len(logs.dialogs) == 2
    (problem,) = logs.problems
    assert name in problem and reason in problem and len(problem) < 400
    with pytest.raises(UsageError) as excinfo:
        read_logs([tmp_path / "logs" / name])
    assert name in str(excinfo.value)


def test_what_is_no_file_is_named_unless_it_is_a_folder_of_logs(tmp_path):
    write(tmp_path, GOOD, name="logs/a.jsonl")
    write(tmp_path, GOOD, name="logs/folder.jsonl/b.jsonl")
    os.mkfifo(tmp_path / "logs" / "pipe.jsonl")
    (tmp_path / "logs" / "broken.jsonl").symlink_to(tmp_path / "nowhere")
    logs = read_logs([tmp_path / "logs"])
    assert len(logs.dialogs) == 2
    pipe, dead_link = logs.problems
    assert "pipe.jsonl" in pipe and "broken.jsonl" in dead_link


def test_files_and_folders_that_may_not_be_opened_are_named(tmp_path, monkeypatch):
    write(tmp_path, GOOD, name="logs/a.jsonl")
    write(tmp_path, GOOD, name="logs/locked.jsonl")
    write(tmp_path, GOOD, name="logs/private/b.jsonl")

    def refusing(function, name):  # as permissions do, which do not bind an administrator
        def check_path(path, *arguments, **options):
            if Path(path).name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return function(path, *arguments, **options)

        return check_path

    monkeypatch.setattr(Path, "open", refusing(Path.open, "locked.jsonl"))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir, "private"))
    logs = read_logs([tmp_path / "logs"])
    assert len(logs.dialogs) == 1
    private, locked = sorted(logs.problems, key=lambda problem: "locked" in problem)
    assert "private" in private and "locked.jsonl" in locked
    assert all("Permission denied" in problem for problem in logs.problems)


def test_a_line_of_50_megabytes_is_read(tmp_path):
    long = {"messages": [HI, {**HELLO, "content": "x" * 50_000_000}]}
    (file,) = read_transcripts(write(tmp_path, GOOD, long, GOOD))
    lengths = [len(transcript.path[-1].text) for transcript in file.transcripts]
    assert lengths == [6, 50_000_000, 6] and not file.unread


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.ndjson.gz", "a.json.gz", "a.jsonl"])
def test_gzipped_logs_are_read(name, tmp_path):
    chats = [{"messages": [HI, HELLO]}, {"messages": [HI, {**HELLO, "content": "Again."}]}]
    text = json.dumps(chats, indent=1) if name == "a.json.gz" else "\n".join(map(json.dumps, chats))
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path, tmp_path / name):
        (file,) = read_transcripts(path)
        replies = [transcript.path[-1].text for transcript in file.transcripts]
        assert (replies, file.unread) == (["Hello.", "Again."], ())


def test_a_document_that_is_cut_off_is_one_problem_with_its_place(tmp_path):
    text = json.dumps([{"messages": [HI, HELLO]}] * 20, indent=2)
    lines = text.split("\n")[:-3]
    (file,) = read_transcripts(write(tmp_path, *lines, name="a.json"))
    (sentence,) = file.unread
    assert f"line {len(lines) + 1}" in sentence and not file.transcripts


def test_lines_in_a_file_named_json_are_read_without_those_that_are_cut_off(tmp_path):
    chat = {"messages": [HI, HELLO]}
    (file,) = read_transcripts(write(tmp_path, "", chat, "{", chat, name="a.json"))
    assert len(file.transcripts) == 2
    assert len(file.unread) == 1 and "line 3" in file.unread[0]


def test_an_empty_document_is_one_problem(tmp_path):
    (file,) = read_transcripts(write(tmp_path, "", name="a.json"))
    assert len(file.unread) == 1


def test_a_bad_format_or_path_is_refused_before_anything_is_read(tmp_path):
    file = write(tmp_path, {"messages": [HI, HELLO]})
    with pytest.raises(UnknownName) as excinfo:
        read_transcripts(file, "opena")
    assert excinfo.value.suggestion == "openai"
    (tmp_path / "empty").mkdir()
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "a.jsonl.lz4").write_bytes(b"\x28")
    for name in ("nowhere.jsonl", "empty", "packed"):
        with pytest.raises(UsageError) as excinfo:
            read_transcripts([file, tmp_path / name])
        assert (excinfo.value.option, excinfo.value.value) == ("paths", str(tmp_path / name))


def test_what_programs_keep_beside_their_sessions_is_no_log(tmp_path):
    write(tmp_path, user("u1", None, "Hi"), reply("a1", "u1", bash("t1")), name="c/s.jsonl")
    files = {"c/s/custom-title.json": {"customTitle": "x"}, "c/s/tool-results/a.json": [{"a": 1}]}
    hello, answer = gemini(1, "user", "Hi"), gemini(2, "gemini", "Hello.")
    write(tmp_path, GEMINI, hello, answer, name="g/chats/session-1.jsonl")
    typed = {"sessionId": "s", "messageId": 0, "type": "user", "message": "Hi", "timestamp": "t"}
    for name, value in {**files, "g/logs.json": [typed]}.items():
        write(tmp_path, value, name=name)
    logs = read_logs([tmp_path])
    assert len(logs.dialogs) == 2 and not logs.problems
    with pytest.raises(UsageError, match="no known format"):
        read_logs([tmp_path / "g" / "logs.json"])


# Lines


META = codex("session_meta", id="s1", instructions="Work on the shop.")
SESSION_LINES = (META, codex_says("user", "Explain it."), codex_says("assistant", "It adds up."))


def test_a_torn_line_is_named(tmp_path):
    torn = json.dumps(SESSION_LINES[2])[:60]
    turns, (problem,), _ = read_lines(tmp_path, *SESSION_LINES[:2], torn, SESSION_LINES[2])
    assert turns == [("Explain it.", "It adds up.")] and "line 3:" in problem


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        ('{"type": "user", "message": {"content": "größ'.encode()[:-1], "line 3: it is not UTF-8"),
        (b'{"type": "user", "content": "caf\x81"}\n', "line 3: it is not UTF-8"),
        (b"\0" * 4096, "line 3: it is not JSON"),
    ],
)
def test_a_line_that_is_no_text_costs_only_itself(end, problem, tmp_path):
    """A program writes to its log while it is read, or the computer stops as it does."""
    path = write(tmp_path, user("u1", None, "Hi"), reply("a1", "u1", bash("t1")))
    path.write_bytes(path.read_bytes() + end)
    logs = read_logs([path])
    assert [len(dialog.turns) for dialog in logs.dialogs] == [1]
    assert [problem in sentence for sentence in logs.problems] == [True]


@pytest.mark.parametrize(
    "torn", ["{0}{1}", "{0}" + "\0" * 64 + "\n{1}", "{0}\n" + "\0" * 64 + "{1}"]
)
def test_events_on_one_line_or_beside_zeros_are_read(torn, tmp_path):
    """Two programs write at once, or the computer stops while one does."""
    path = write(tmp_path, user("u1", None, "Hi"), reply("a1", "u1", bash("t1")))
    first, second = path.read_text().splitlines()
    path.write_text(torn.format(first, second) + "\n")
    logs = read_logs([path])
    assert [turn.user for dialog in logs.dialogs for turn in dialog.turns] == ["Hi"]
    assert not logs.problems
