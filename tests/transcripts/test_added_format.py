"""The page on contributing says how a format is added."""

import json
import shutil
import subprocess
import sys

from agent_sessions import write
from code_blocks import ROOT, blocks_of
from read_dialogs import turns_of

from holdfast.logs import read_logs
from holdfast.transcripts import FORMATS, EventKind, read_transcripts

CONTRIBUTING = ROOT / "docs" / "contributing.md"
(TICKETS,) = (block for block in blocks_of(CONTRIBUTING, "python") if "FORMAT =" in block.text)


def test_the_file_of_the_page_on_contributing_is_imported_where_it_says(tmp_path):
    """In a copy of the package: a reader is imported while the package itself still is."""
    package = tmp_path / "holdfast"
    shutil.copytree(
        ROOT / "src" / "holdfast", package, ignore=shutil.ignore_patterns("assets", "__pycache__")
    )
    (package / "assets").symlink_to(ROOT / "src" / "holdfast" / "assets")
    (package / "transcripts" / "readers" / "tickets.py").write_text(TICKETS.text)
    table = package / "transcripts" / "formats.py"
    text = table.read_text().replace("    run_records,\n", "    run_records,\n    tickets,\n")
    table.write_text(text.replace("run_records.FORMAT,", "run_records.FORMAT, tickets.FORMAT,"))
    script = "from holdfast.transcripts import FORMATS; print(FORMATS['tickets'].name)"
    subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(tmp_path)}, check=True)


def test_a_format_is_added_as_the_page_on_contributing_says(tmp_path, monkeypatch):
    (ticket,) = blocks_of(CONTRIBUTING, "json")
    names = {}
    exec(TICKETS.text, names)
    monkeypatch.setitem(FORMATS, "tickets", names["FORMAT"])
    wrong = json.dumps({"ticket": 8, "entries": [{"by": "cat", "text": "Meow."}]})
    for damaged in (3, [3], {"by": 3}, [{"by": [], "text": 3}], [{"text": "Meow."}]):
        (file,) = read_transcripts(write(tmp_path, {"ticket": 9, "entries": damaged}))
        assert not file.transcripts and len(file.unread) == 1
    for value in (None, 5, [1], {"a": 1}):
        (file,) = read_transcripts(write(tmp_path, value), "tickets")
        assert not file.transcripts and len(file.unread) == 1
    (file,) = read_transcripts(write(tmp_path, ticket.text.strip(), wrong))
    (transcript,) = file.transcripts
    assert transcript.format == "tickets"
    assert [event.kind for event in transcript.path] == [
        EventKind.MESSAGE,
        EventKind.REMINDER,
        EventKind.MESSAGE,
    ]
    assert len(file.unread) == 1 and "line 2" in file.unread[0] and "'cat'" in file.unread[0]
    (dialog,) = read_logs(file.path).dialogs
    assert turns_of(dialog) == [("Where is my bike?", "On its way.")]
