"""Reads log files into dialogs, in which a turn that several dialogs share counts once.

For example:

    july.jsonl -> Transcript -> LoggedDialog of LoggedTurns; all of them, with a fingerprint -> Logs
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from holdfast.errors import UsageError
from holdfast.logs.copies import EventIds, TurnEvents, copies_in, history_ids
from holdfast.logs.dialogs import LoggedDialog, dialog_of
from holdfast.transcripts.transcript import Transcript

# whose values may be requests of a model, each with the dialog so far
_FORMATS_OF_REQUESTS = ("openai", "anthropic", "gemini", "ai-sdk", "sharegpt")
MAX_CANDIDATES = 20  # earlier transcripts that a dialog may continue


@dataclass(frozen=True)
class Logs:
    """The dialogs in a set of log files.

    Args:
        problems: a sentence for each line or part of a file that was left out.
        formats: the number of dialogs in each format.
        fingerprint: SHA-256 of the files, their formats and the dialogs, in hexadecimal.
    """

    dialogs: tuple[LoggedDialog, ...]
    problems: tuple[str, ...]
    formats: Mapping[str, int]
    fingerprint: str


def read_logs(paths: Path | str | Sequence[Path | str], form: str | None = None) -> Logs:
    """Reads log files, including those in folders.

    Args:
        form: the format, one of `FORMATS`; None detects it for each value.

    Raises:
        UsageError: a file cannot be read, or no file has a dialog.
    """
    from holdfast.transcripts.reading import read_transcripts  # the readers of all formats

    paths = [paths] if isinstance(paths, (Path, str)) else paths
    dialogs: list[LoggedDialog] = []
    problems: list[str] = []
    formats: Counter[str] = Counter()
    files: list[str] = []
    for file in read_transcripts(paths, form):
        files.append(file.digest)
        problems += file.unread
        recent = RecentTranscripts()
        for transcript in file.transcripts:
            dialog = replace(dialog_of(transcript), before=recent.before_next())
            recent.add(transcript)
            if not dialog.turns:
                problems.append(silence_problem(dialog))
                continue
            dialogs.append(dialog)
            formats[transcript.format] += 1
    if not dialogs:
        raise no_dialog(paths, problems)
    fingerprint = log_fingerprint(files, formats, map(dialog_digest, dialogs))
    copies = copies_in([turn_events(dialog) for dialog in dialogs])
    pairs = zip(dialogs, copies.turns, strict=True)
    originals = [_without(dialog, positions) for dialog, positions in pairs]
    return Logs(
        tuple(dialog for dialog in originals if dialog.turns),
        (*problems, *copies.problems),
        dict(formats),
        fingerprint,
    )


class RecentTranscripts:
    """The last transcripts of a file, as it is read.

    Args:
        earlier: returns transcripts before the part of the file that is read, if that is not all of
            it. It is called at most once, with the number of transcripts that are needed.
    """

    def __init__(self, earlier: Callable[[int], Sequence[Transcript]] = lambda count: ()) -> None:
        self._recent: deque[Transcript] = deque(maxlen=MAX_CANDIDATES)
        self._earlier = cache(earlier)

    def add(self, transcript: Transcript) -> None:
        if not transcript.is_of_subagent:
            self._recent.append(transcript)

    def before_next(self) -> Callable[[], Sequence[Transcript]]:
        """Returns a function that reads the transcripts before the next one."""
        recent = tuple(self._recent)
        if len(recent) == MAX_CANDIDATES:
            return lambda: recent
        return lambda: (*self._earlier(MAX_CANDIDATES), *recent)[-MAX_CANDIDATES:]


def dialog_digest(dialog: LoggedDialog) -> bytes:
    """The SHA-256 of a dialog as it was read, which changes if its reader reads it otherwise."""
    return digest([dialog.system, [[t.number, t.user, t.done.text] for t in dialog.turns]])


def silence_problem(dialog: LoggedDialog) -> str:
    """The problem with a dialog in which the assistant has no turn."""
    return f"{dialog.source}: the assistant says nothing in it"


class NoDialog(UsageError):
    """The logs have no dialog, or no dialog with one of the suite's prompts."""


def no_dialog(paths: Sequence[Path | str], problems: Sequence[str]) -> NoDialog:
    """The error for logs without a dialog."""
    first = f" (the first problem: {problems[0]})" if problems else ""
    return NoDialog(
        f"There is no dialog in {', '.join(map(str, paths))}{first}; `holdfast docs"
        " logs` shows what is read, and --format names one of the formats."
    )


def turn_events(dialog: LoggedDialog) -> TurnEvents:
    """The ids by which copies of a dialog's turns are found."""
    transcript = dialog.transcript
    histories = history_ids(transcript)
    turns: list[tuple[EventIds, ...]] = []
    for turn in dialog.turns:
        ids = [(*transcript.path[n].copy_ids, *histories.get(n, ())) for n in turn.positions]
        turns.append(tuple(filter(None, ids)))
    is_request = transcript.format in _FORMATS_OF_REQUESTS
    return TurnEvents(dialog.source, tuple(turns), _digests(dialog) if is_request else ())


def _digests(dialog: LoggedDialog) -> tuple[bytes, ...]:
    """A digest of a dialog up to the end of each turn."""
    whole = hashlib.sha256(_as_json(dialog.system))
    digests: list[bytes] = []
    for turn in dialog.turns:
        calls = [[call.name, repr(call.arguments)] for call in turn.done.calls]
        whole.update(_as_json([turn.user, turn.done.text, calls]))
        digests.append(whole.digest()[:16])
    return tuple(digests)


def _without(dialog: LoggedDialog, positions: frozenset[int]) -> LoggedDialog:
    """A dialog without the turns at these positions."""
    if not positions:
        return dialog
    turns = tuple(turn for n, turn in enumerate(dialog.turns) if n not in positions)
    return replace(dialog, turns=turns)


# --- The fingerprint of a set of logs, which identifies a run of their scores


def digest(value: object) -> bytes:
    """The SHA-256 of a value, written as JSON."""
    return hashlib.sha256(_as_json(value)).digest()


def log_fingerprint(
    files: Iterable[str], formats: Mapping[str, int], dialogs: Iterable[bytes]
) -> str:
    """The SHA-256 of a set of logs, in hexadecimal.

    Args:
        files: the SHA-256 of each file in hexadecimal; "" for a file that was not read.
        formats: the number of dialogs in each format.
        dialogs: the digest of each dialog.
    """
    whole = hashlib.sha256(_as_json([*files]))
    whole.update(_as_json(dict(formats)))
    for dialog in dialogs:
        whole.update(dialog)
    return whole.hexdigest()


def _as_json(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")
