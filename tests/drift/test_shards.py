"""`holdfast drift --shard` and `holdfast join`: several machines share one run."""

import json

import pytest

from holdfast.cli import main
from holdfast.drift.shards import Shard
from holdfast.errors import AnotherRun, RecordsError, UsageError
from holdfast.records import join_runs, read_run, to_line
from holdfast.records.lines import to_manifest

DRIFT = ("drift", "--rounds", "1", "--max-new-tokens", "8")
THREE = ("--conversations", "3")
BOTH = ("--method", "none", "--method", "repetition:probability=1")


def drift(out, *options):
    conversations = () if "--conversations" in options else THREE
    assert main([*DRIFT, *conversations, *options, "--out", str(out)]) in (None, 0)
    return out


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    """The folders of the two shards of a run, of two conversations and of one."""
    folder = tmp_path_factory.mktemp("shards")
    return [drift(folder / f"{n}", *BOTH, "--shard", f"{n}/2") for n in (1, 2)]


def contents(folder):
    """The records of a run by their keys, without how long they took."""
    fields = {(record.method, record.conversation): record for record in read_run(folder).records}
    return {key: {**record.to_json(), "seconds": 0} for key, record in fields.items()}


def keys(folder):
    return {(record.method, record.conversation) for record in read_run(folder).records}


def test_joined_shards_are_the_run_of_one_machine(shards, tmp_path):
    whole = drift(tmp_path / "one", *BOTH)
    assert main(["join", *map(str, shards), "--out", str(tmp_path / "joined")]) in (None, 0)
    joined = tmp_path / "joined"
    assert contents(joined) == contents(whole)
    assert read_run(joined).manifest.identity == read_run(whole).manifest.identity


def test_a_shard_has_every_other_conversation(shards):
    assert [sorted({number for _, number in keys(folder)}) for folder in shards] == [[0, 2], [1]]


def test_shards_are_joined_as_they_arrive(shards, tmp_path, capsys):
    joined = tmp_path / "joined"
    main(["join", str(shards[1]), "--out", str(joined)])
    output = capsys.readouterr().out
    assert "4 conversations are missing" in output
    # the command of the whole run finishes it
    command = read_run(joined).manifest.argv
    assert "--shard" not in command and f"--out {joined}" in command
    main(["join", *map(str, shards), "--out", str(joined)])
    assert "missing" not in capsys.readouterr().out
    assert keys(joined) == keys(shards[0]) | keys(shards[1])


@pytest.mark.slow
def test_the_whole_command_resumes_a_joined_run(shards, tmp_path):
    joined = tmp_path / "joined"
    join_runs(shards[:1], joined, "holdfast drift")
    before = contents(joined)
    drift(joined, *BOTH)
    after = contents(joined)
    assert {key: after[key] for key in before} == before and len(after) == 6


def test_traces_are_joined_too(shards, tmp_path):
    (shards[1] / "traces").mkdir()
    (shards[1] / "traces" / "none-1.npz").write_bytes(b"masses")
    join_runs(shards, tmp_path / "joined", "holdfast drift")
    assert (tmp_path / "joined" / "traces" / "none-1.npz").read_bytes() == b"masses"


def test_another_run_is_refused(shards, tmp_path):
    other_shard = drift(tmp_path / "other", *BOTH, "--shard", "2/2", "--seed", "5")
    with pytest.raises(AnotherRun) as excinfo:
        join_runs([shards[0], other_shard], tmp_path / "joined", "holdfast drift")
    assert (excinfo.value.option, excinfo.value.value, excinfo.value.allowed) == (
        "settings.seed",
        5,
        0,
    )
    assert not (tmp_path / "joined").exists()


@pytest.mark.slow
def test_two_records_of_one_conversation_are_refused(shards, tmp_path):
    recomputed = drift(tmp_path / "again", *BOTH, "--shard", "1/2")  # its seconds differ
    with pytest.raises(RecordsError) as excinfo:
        join_runs([*shards, recomputed], tmp_path / "joined", "holdfast drift")
    assert excinfo.value.value[1] in (0, 2)


@pytest.fixture
def shard_of_another_machine(shards, tmp_path):
    """The second shard, computed with another version of torch."""
    folder = tmp_path / "other machine"
    folder.mkdir()
    manifest = json.loads((shards[1] / "manifest.json").read_text())
    manifest["identity"]["runtime"]["torch"] = "0.0"
    manifest.pop("crc32")
    (folder / "manifest.json").write_bytes(to_manifest(manifest))
    (folder / "records.jsonl").write_bytes(b"".join(map(to_line, read_run(shards[1]).records)))
    return folder


def test_shards_of_different_machines_are_joined_and_noted(
    shards, shard_of_another_machine, tmp_path
):
    run = join_runs([shards[0], shard_of_another_machine], tmp_path / "joined", "holdfast drift")
    assert len(run.records) == 6
    assert any("different versions or devices" in note for note in run.manifest.notes)


def test_machines_are_compared_with_those_that_were_joined_before(
    shards, shard_of_another_machine, tmp_path
):
    joined = tmp_path / "joined"
    assert not join_runs([shards[0]], joined, "holdfast drift").manifest.notes
    for _ in range(2):
        run = join_runs([shard_of_another_machine], joined, "holdfast drift")
        assert len([note for note in run.manifest.notes if "versions" in note]) == 1


@pytest.mark.slow
def test_shards_that_were_extended_are_joined_again(tmp_path):
    shards = [drift(tmp_path / f"{n}", "--shard", f"{n}/2") for n in (1, 2)]
    joined = tmp_path / "joined"
    join_runs(shards, joined, "holdfast drift")
    for n, shard in enumerate(shards, 1):
        drift(shard, "--shard", f"{n}/2", "--conversations", "5")
    run = join_runs(shards, joined, "holdfast drift --conversations 5")
    assert len(run.records) == 5
    assert (run.manifest.identity.settings.conversations, run.manifest.earlier_sizes) == (5, (3,))
    assert "--shard" not in (run.manifest.extended_by or "")


@pytest.mark.slow
def test_the_next_step_after_a_shard_is_to_join_it(tmp_path, capsys, monkeypatch):
    words = [*DRIFT, *THREE, "--shard", "2/3", "--out", str(tmp_path / "run")]
    monkeypatch.setattr("sys.argv", ["holdfast", *words])
    assert main() in (None, 0)
    assert "Next: join shard 2/3 with the others" in capsys.readouterr().out


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main(["join", str(tmp_path), "--out", str(tmp_path / "joined")]) == 2
    assert "is not a run" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "a/b", "1/2/3", "-1/2", "²/3"])
def test_a_malformed_shard_is_refused(text, tmp_path, capsys):
    assert main([*DRIFT, *THREE, f"--shard={text}", "--out", str(tmp_path / "run")]) == 2
    assert "PART/PARTS, with PART from 1 to PARTS, such as 1/4 to 4/4" in capsys.readouterr().err


def test_an_empty_shard_is_refused(tmp_path, capsys):
    assert main([*DRIFT, *THREE, "--shard", "4/4", "--out", str(tmp_path / "run")]) == 2
    assert "fewer parts, or more --conversations" in capsys.readouterr().err


def test_the_baseline_is_of_the_whole_run(tmp_path, capsys):
    assert (
        main([*DRIFT, *THREE, "--shard", "1/2", "--baseline", "--out", str(tmp_path / "run")]) == 2
    )
    assert "join the shards" in capsys.readouterr().err


def test_a_dry_run_estimates_the_shard(tmp_path, capsys):
    main([*DRIFT, *THREE, "--shard", "2/2", "--dry-run", "--out", str(tmp_path / "run")])
    output = capsys.readouterr().out
    assert output.splitlines()[1].split()[4:6] == ["1", "0"]  # at most, left


def test_python_reads_a_shard():
    with pytest.raises(UsageError):
        Shard.read("5/4")
    assert Shard.read("2/3").numbers(7) == [1, 4]
