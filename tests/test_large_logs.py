"""Large logs: records that stay on the disk, and files that are read in parts."""

import numpy as np
import pytest
from logged_dialogs import PROBED, chats, cities, lines_of

from holdfast.analysis.adherence import adherence, read_scores
from holdfast.drift import load_suite
from holdfast.errors import RecordsError
from holdfast.logs import read_logs, score_logs
from holdfast.records import folder, read_run
from holdfast.records.stored_logs import StoredLogs
from holdfast.report.logs_page import logs_page
from holdfast.report.logs_sentences import logs_table


@pytest.fixture
def scored(tmp_path):
    """A run of forty dialogs, some of which break rules."""
    (tmp_path / "a.jsonl").write_text(lines_of([*cities(40), *chats(4, lambda n: 3)]))
    (tmp_path / "luna.yaml").write_text(PROBED)
    suite = load_suite(str(tmp_path / "luna.yaml"), probed=False)
    return score_logs(read_logs([tmp_path / "a.jsonl"]), suite, tmp_path / "run")


def _stored(run, monkeypatch):
    monkeypatch.setattr(folder, "MANY", 1)
    return read_run(run.folder)


def test_records_on_the_disk_are_those_in_memory(scored, monkeypatch):
    stored = _stored(scored, monkeypatch)
    assert isinstance(stored.records, StoredLogs) and not isinstance(scored.records, StoredLogs)
    assert [*stored.dialogs] == [*scored.dialogs] == [*stored.records]
    assert stored.records[-1] == scored.records[-1] and stored.records[2:4] == [
        *scored.records[2:4]
    ]
    with pytest.raises(IndexError):
        stored.records[len(scored.records)]
    assert stored.log_scores == scored.log_scores and not stored.conversations
    assert stored.to_columns() == scored.to_columns()


def test_results_of_records_on_the_disk_are_the_same(scored, monkeypatch):
    stored = _stored(scored, monkeypatch)
    rows = adherence(scored, min_adherence=0.9)
    assert adherence(stored, min_adherence=0.9) == rows
    assert logs_table(stored, rows, rows, 0.9) == logs_table(scored, rows, rows, 0.9)
    page = logs_page(stored, rows, rows, 0.9)
    assert "luna/city" in page and "not counted" in page
    assert "not counted" not in logs_page(scored, rows, rows, 0.9)


@pytest.mark.parametrize("fault", ["torn", "damaged", "repeated"])
def test_a_fault_in_records_on_the_disk_is_found(scored, monkeypatch, fault):
    path = scored.folder / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if fault == "torn":
        path.write_bytes(b"".join(lines)[:-20])
        assert len(_stored(scored, monkeypatch).records) == len(lines) - 1
        return
    lines[3] = lines[2] if fault == "repeated" else lines[3].replace(b"Rome", b"Roma", 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(RecordsError) as raised:
        _stored(scored, monkeypatch)
    assert raised.value.value == 4


def test_scores_by_category_count_the_turns_of_every_rule(scored):
    (category,) = read_scores(scored, by_category=True)
    rules = read_scores(scored)
    assert category.turns == sum(rule.turns for rule in rules)
    assert len(category.scores) == sum(len(rule.scores) for rule in rules)
    assert (np.diff(category.dialogs) >= 0).all()
