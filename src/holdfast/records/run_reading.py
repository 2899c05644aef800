"""Reads run folders, finished or still growing."""

from pathlib import Path

from holdfast.errors import AnotherRun, RecordsError
from holdfast.files import similar_path
from holdfast.records.lines import read_lines, read_notes
from holdfast.records.manifest import MANIFEST, read_manifest, read_raw_manifest
from holdfast.records.model import Failure
from holdfast.records.run import Run
from holdfast.records.stored_logs import LARGE_RUN_BYTES, StoredLogs

RECORDS = "records.jsonl"
FAILURES = "failures.jsonl"


def read_run(folder: Path | str) -> Run:
    """Reads a run folder, finished or still growing; a torn last line is left out.

    Raises:
        AnotherRun: it is not a run folder.
        RecordsError: the manifest is damaged, or a line is damaged or not of this run; the message
            names the line's number.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise AnotherRun(f"{folder} is not a run: {_explain_no_run(folder)}", option=str(folder))
    path = folder / RECORDS
    if path.is_file() and path.stat().st_size >= LARGE_RUN_BYTES:
        manifest = read_manifest(folder)
        if manifest.command == "logs" and not manifest.lines_without_crc32:
            return Run(folder, manifest, StoredLogs(path, manifest))
    # A running command writes the manifest before the records that it allows, so they are read in
    # the opposite order.
    lines = _bytes_of(path)
    failure_lines = _bytes_of(folder / FAILURES)
    manifest = read_manifest(folder)
    records = read_lines(lines, path, manifest)
    recorded = {(record.method, record.conversation) for record in records}
    notes = read_notes(failure_lines, folder / FAILURES, Failure)
    latest = {(note.method, note.conversation): note for note in notes}
    failures = [note for key, note in latest.items() if key not in recorded]
    return Run(folder, manifest, tuple(records), tuple(failures))


def read_earlier(folder: Path | str, command: str) -> Run:
    """Reads the run that `--against` names; refuses one that another command made."""
    run = read_run(folder)
    if run.manifest.command != command:
        raise AnotherRun(
            f"{folder} holds a run of `holdfast {run.manifest.command}`; give --against one of"
            f" `holdfast {command}`.",
            option="against",
            value=run.manifest.command,
            allowed=command,
        )
    return run


def _explain_no_run(folder: Path) -> str:
    """Says why a path is not a run, and what to give instead."""
    cure = "give the folder that a command's --out named."
    if folder.is_file():
        if (folder.parent / MANIFEST).is_file():
            cure = f"give the run's folder, {folder.parent}."
        return f"it is a file; {cure}"
    if not folder.is_dir():
        similar = similar_path(folder)
        return f"it does not exist; {cure if similar is None else f'did you mean {similar}?'}"
    subfolders = sorted(path.parent for path in folder.glob(f"*/{MANIFEST}"))
    drift_runs = [
        subfolder
        for subfolder in subfolders
        if read_raw_manifest(subfolder).get("command", "drift") == "drift"
    ]
    if not drift_runs:
        return f"it holds no {MANIFEST}; {cure}"
    page = folder / "report.html"
    if page.is_file():
        return (
            f"its page is {page}, and its conversations are in {drift_runs[0]}; give that folder."
        )
    return f"its conversations are in {drift_runs[0]}; give that folder."


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise RecordsError(
            f"Cannot read {path}: {error.strerror}; make it readable, or give another folder.",
            option=str(path),
        ) from error
