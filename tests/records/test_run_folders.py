"""The folder of a run: one run each, named differences, locks, and older manifests."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from small_records import (
    ABOUT,
    IDENTITY,
    METHODS,
    RUNTIME,
    as_written,
    record,
    write_without_checksums,
)

from holdfast.errors import AnotherRun, ModelError, RecordsError, RequestFailed
from holdfast.records import Compatibility, command_of, open_run, read_run, refuse_early, union
from holdfast.report.how_measured import about_runs


def begin_run(folder: Path, identity: dict = IDENTITY) -> None:
    """A run of one conversation."""
    with open_run(folder, identity, ABOUT) as run:
        run.append(record(0))


# Another run


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"rounds": 4}, ("rounds", 8, 4)),
        ({"runtime": {**RUNTIME, "device": "cuda"}}, ("runtime.device", "cpu", "cuda")),
        ({"methods": ["none"]}, ("methods", METHODS, ["none"])),
        ({"extra": True}, ("extra", None, True)),
        ({"rounds": True}, ("rounds", 8, True)),
        ({"seed": ...}, ("seed", 0, None)),
    ],
)
def test_another_run_is_refused_by_its_first_difference(tmp_path, changes, difference):
    begin_run(tmp_path)
    identity = {k: v for k, v in {**IDENTITY, **changes}.items() if v is not ...}
    with pytest.raises(RecordsError) as excinfo:
        open_run(tmp_path, identity, {**ABOUT, "argv": "holdfast drift"})
    error = excinfo.value
    assert (error.option, error.allowed, error.value) == difference
    assert type(error.value) is type(difference[2])
    assert str(tmp_path) in str(error)
    assert ABOUT["argv"] in str(error)  # the command that would resume it
    open_run(tmp_path, IDENTITY, ABOUT).close()  # the refusal did not keep the lock


def test_tuples_and_lists_are_the_same_setting(tmp_path):
    begin_run(tmp_path, {**IDENTITY, "methods": tuple(METHODS)})
    open_run(tmp_path, IDENTITY, ABOUT).close()


def test_resuming_keeps_the_first_manifest_and_adds_its_own(tmp_path):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    first = read_run(tmp_path).manifest
    open_run(tmp_path, IDENTITY, {**ABOUT, "versions": {"python": "3.12"}}).close()
    second = read_run(tmp_path).manifest
    assert second.versions == {"python": "3.11"} and second.created == first.created
    assert [about.versions for about in second.resumed] == [{"python": "3.12"}]


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    for name in ("records.jsonl", "thesis.tex"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(AnotherRun) as excinfo:
            open_run(tmp_path, IDENTITY, ABOUT)
        assert excinfo.value.value == "records.jsonl"
        assert (tmp_path / name).read_text() == "mine"


def test_a_path_that_is_not_a_run_is_refused(tmp_path):
    with pytest.raises(AnotherRun) as excinfo:
        read_run(tmp_path / "nowhere")
    assert excinfo.value.option == str(tmp_path / "nowhere")
    with pytest.raises(AnotherRun, match=r"manifest\.json"):
        read_run(tmp_path)
    (page := tmp_path / "report.html").write_text("a page")
    with pytest.raises(AnotherRun) as excinfo:
        read_run(page)
    assert excinfo.value.option == str(page)
    run = tmp_path / "stability"
    open_run(run, IDENTITY, ABOUT).close()
    with pytest.raises(AnotherRun) as excinfo:
        read_run(tmp_path)
    assert str(page) in str(excinfo.value) and str(run) in str(excinfo.value)
    (run / "report.html").write_text("a page")
    with pytest.raises(AnotherRun, match=f"{re.escape(str(run))}\\."):
        read_run(run / "report.html")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RecordsError, match=r"manifest\.json") as excinfo:
        read_run(tmp_path)
    assert not isinstance(excinfo.value, AnotherRun)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match="Not a directory") as excinfo:
        open_run(tmp_path / "file" / "run", IDENTITY, ABOUT)
    assert excinfo.value.option == str(tmp_path / "file" / "run")


# Locks


def test_two_writers_are_kept_apart(tmp_path):
    run = open_run(tmp_path, IDENTITY, ABOUT)
    with pytest.raises(RecordsError) as excinfo:
        open_run(tmp_path, IDENTITY, ABOUT)
    assert excinfo.value.value == str(os.getpid())
    code = (
        "import sys; from holdfast.records import open_run; from holdfast.errors import"
        f" RecordsError\ntry: open_run({str(tmp_path)!r}, {IDENTITY!r}, {{}})\nexcept RecordsError"
        " as error: print(error.value)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True
    )
    assert result.stdout.strip() == str(os.getpid())
    run.close()
    run.close()
    open_run(tmp_path, IDENTITY, ABOUT).close()


def without_flock(monkeypatch, error: int = errno.ENOLCK) -> None:
    """Simulates a network file system without locks."""
    import fcntl

    def unsupported(file: int, operation: int) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fcntl, "flock", unsupported)


@pytest.mark.parametrize("error", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, error):
    without_flock(monkeypatch, error)
    with pytest.warns(UserWarning, match=f"{tmp_path} has no locks"):
        begin_run(tmp_path)
    assert len(read_run(tmp_path).records) == 1


def test_a_file_system_that_cannot_be_synced_is_a_warning(tmp_path, monkeypatch):
    def unsupported(file: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", unsupported)
    with pytest.warns(UserWarning, match="cannot be synced"):
        begin_run(tmp_path)
    assert len(read_run(tmp_path).records) == 1


# Runs that grow


def test_an_older_manifest_is_read_with_defaults_for_what_it_lacks(tmp_path):
    identity = {"model": "a", "settings": {"rounds": 8, "sampling": {"temperature": 1.0}}}
    defaults = {"settings": {"pairs": "random", "sampling": {"top_p": 0.9}}, "scoring": "strict"}
    write_without_checksums(tmp_path, as_written(0), identity=identity)
    sampling = {"temperature": 1.0, "top_p": 0.9}
    settings = {"rounds": 8, "pairs": "random", "sampling": sampling}
    newer = {"model": "a", "settings": settings, "scoring": "strict"}
    open_run(tmp_path, newer, ABOUT, Compatibility(defaults)).close()
    assert read_run(tmp_path).manifest.identity.to_json() == newer
    write_without_checksums(tmp_path, as_written(0), identity=identity)
    newer["settings"]["pairs"] = "all"
    with pytest.raises(AnotherRun) as excinfo:
        open_run(tmp_path, newer, ABOUT, Compatibility(defaults))
    error = excinfo.value
    assert (error.option, error.allowed, error.value) == ("settings.pairs", "random", "all")


def test_a_run_is_extended_if_its_identity_may_grow(tmp_path):
    begin_run(tmp_path)
    joins = {"methods": union, "seed": lambda old, new: None}
    grows = Compatibility(joins=joins, reasons={"rounds": "dialogs are over"})
    open_run(tmp_path, {**IDENTITY, "methods": ["none", "boost"]}, ABOUT, grows).close()
    assert read_run(tmp_path).manifest.identity.to_json()["methods"] == [*METHODS, "boost"]
    for changes, message in (
        ({"rounds": 9}, "rounds is 8 there and 9 here (dialogs are over); choose"),
        ({"seed": 1}, "seed is 0 there"),
    ):
        with pytest.raises(RecordsError, match=re.escape(message)):
            open_run(tmp_path, {**IDENTITY, **changes}, ABOUT, grows)
        with pytest.raises(RecordsError, match=re.escape(message)):
            refuse_early(tmp_path, changes, {}, grows)
    refuse_early(tmp_path, {"methods": ["boost"], "rounds": 8}, {}, grows)
    defaults = {"settings": {"pairs": "random", "batch": 48}, "plan": {"draws": 5}}
    newer = Compatibility(defaults=defaults)
    refuse_early(tmp_path, {"settings": {"pairs": "random"}}, {}, newer)
    assert read_run(tmp_path).manifest.identity.to_json()["methods"] == [*METHODS, "boost"]


def test_a_run_without_records_accepts_changed_settings(tmp_path):
    open_run(tmp_path, IDENTITY, ABOUT).close()
    refuse_early(tmp_path, {"rounds": 4}, {})
    begin_run(tmp_path, {**IDENTITY, "rounds": 4})
    manifest = read_run(tmp_path).manifest
    assert manifest.identity.to_json()["rounds"] == 4 and not manifest.resumed


def test_an_extended_run_names_the_command_that_extended_it(tmp_path):
    grows = Compatibility(joins={"methods": union})
    begin_run(tmp_path)
    nine_rounds = {**IDENTITY, "rounds": 9}
    typed = {**ABOUT, "argv": "holdfast drift --rounds 9"}
    with pytest.raises(RecordsError, match="drift --seed 0`"):
        open_run(tmp_path, nine_rounds, typed, grows)
    wider = {**IDENTITY, "methods": ["none", "boost"]}
    open_run(tmp_path, wider, {**ABOUT, "argv": "holdfast drift --method boost"}, grows).close()
    about_again = {**ABOUT, "argv": "holdfast drift --seed 0 --progress"}
    open_run(tmp_path, IDENTITY, about_again, grows).close()
    message = r"repeat the last command that extended it to .*drift --method boost`"
    with pytest.raises(RecordsError, match=message):
        open_run(tmp_path, nine_rounds, typed, grows)
    run = read_run(tmp_path)
    assert command_of(run.manifest) == "holdfast drift --method boost"
    (about,) = about_runs([run], [""])
    assert about.command == "holdfast drift --method boost"


# What a refusal says


def test_the_refusal_of_a_command_does_not_suggest_repeating_it(tmp_path):
    begin_run(tmp_path)
    message = r"there and 9 here; choose another folder with out\.$"
    with pytest.raises(AnotherRun, match=message) as excinfo:
        open_run(tmp_path, {**IDENTITY, "rounds": 9}, ABOUT)
    assert "repeat" not in str(excinfo.value)


def test_a_changed_suite_is_reported_without_its_fingerprints(tmp_path):
    edited = [{**IDENTITY, "suite": "bot", "suite_fingerprint": sign * 64} for sign in "ab"]
    begin_run(tmp_path, edited[0])
    with pytest.raises(AnotherRun) as excinfo:
        open_run(tmp_path, edited[1], ABOUT)
    message = f"The suite 'bot' has changed since the run in {tmp_path}; choose another folder"
    assert str(excinfo.value).startswith(message) and "fingerprint" not in str(excinfo.value)


def test_a_run_of_another_command_is_reported_before_any_difference(tmp_path):
    begin_run(tmp_path)
    nine_rounds = {**IDENTITY, "rounds": 9}
    check = {**ABOUT, "argv": "holdfast check bot.yaml"}
    message = r"a run of `holdfast drift`, not of `holdfast check`; .*--seed 0`\)\.$"
    with pytest.raises(AnotherRun, match=message):
        open_run(tmp_path, nine_rounds, check)
    python = {**ABOUT, "command": "tasks", "argv": ""}
    with pytest.raises(AnotherRun, match=r"`holdfast drift`.*`holdfast tasks`"):
        open_run(tmp_path, nine_rounds, python)
    with pytest.raises(AnotherRun, match="rounds is 8 there"):
        open_run(tmp_path, nine_rounds, {**python, "command": ABOUT["command"]})


def test_a_dry_run_is_not_the_command_that_made_the_run(tmp_path):
    dry, whole = "holdfast drift --dry-run --seed 0", "holdfast drift --seed 0"
    open_run(tmp_path, IDENTITY, {**ABOUT, "argv": dry}).close()
    assert command_of(read_run(tmp_path).manifest) == dry
    open_run(tmp_path, IDENTITY, {**ABOUT, "argv": whole}).close()
    open_run(tmp_path, IDENTITY, {**ABOUT, "argv": dry}).close()
    (about,) = about_runs([read_run(tmp_path)], [""])
    assert about.command == whole


def test_errors_of_a_reachable_endpoint_are_passed_on_unchanged(tmp_path):
    for error in (ModelError("The key is wrong."), RequestFailed("It failed.")):
        with pytest.raises(type(error)) as excinfo, open_run(tmp_path, IDENTITY, ABOUT):
            raise error
        assert excinfo.value is error
