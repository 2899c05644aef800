"""Archives of Inspect's logs, and samples that failed or were cut."""

import json
import zipfile

import pytest
from agent_files import INSPECT_HEADER, inspect_archive, inspect_sample
from read_dialogs import write_document

from holdfast.logs import read_logs
from holdfast.transcripts import read_transcripts


@pytest.mark.parametrize("zstandard", [False, True])
def test_the_samples_of_an_archive_are_dialogs(zstandard, tmp_path):
    inspect_archive(tmp_path / "log.eval", zstandard)
    logs = read_logs([tmp_path])
    assert logs.formats == {"inspect": 2} and not logs.problems
    assert [dialog.turns[0].done.text for dialog in logs.dialogs] == ["Hello 1."] * 2


def test_a_sample_that_was_cut_or_failed_says_so(tmp_path):
    cut = inspect_sample(1, output={"choices": [{"stop_reason": "max_tokens"}]})
    failed = inspect_sample(2, error={"message": "The tool crashed."})
    log = {**INSPECT_HEADER, "version": 9, "samples": [cut, failed]}
    logs = read_logs([write_document(tmp_path, log)])
    assert [dialog.turns[0].done.is_cut for dialog in logs.dialogs] == [True, False]
    assert any("version 9" in problem for problem in logs.problems)
    assert any("sample 2" in problem for problem in logs.problems)


def test_a_sample_that_is_nested_too_deeply_is_named(tmp_path):
    deep = json.dumps(inspect_sample(1, store="DEEP")).replace('"DEEP"', "[" * 900 + "]" * 900)
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as file:
        file.writestr("samples/1_epoch_1.json", deep)
    (file,) = read_transcripts(tmp_path)
    assert len(file.transcripts) + len(file.unread) == 1
