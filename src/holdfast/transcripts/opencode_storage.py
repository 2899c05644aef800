"""Reads opencode's folder `storage/`, in which a session is spread over many files.

`storage/message/SESSION/` has a file per message, `storage/part/MESSAGE/` one per part of it, and
`storage/session/PROJECT/SESSION.json` describes the session. Before July 2025 the folders were
`session/message/SESSION`, `session/part/SESSION/MESSAGE` and `session/info`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.files import read_text
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread


def sessions_among(files: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Separates the folders of sessions from the files that are in no `storage/`."""
    files = list(files)
    sessions = {path.parent for path in files if _is_message(path)}
    roots = {session.parent.parent for session in sessions}
    return sorted(sessions), [path for path in files if roots.isdisjoint(path.parents)]


def _is_message(path: Path) -> bool:
    session = path.parent
    return (
        path.name.startswith("msg_")
        and path.suffix == ".json"
        and session.name.startswith("ses_")
        and session.parent.name == "message"
    )


def read_session(folder: Path) -> Iterator[Located | Unread]:
    """Reads a session in the form of `opencode export`, given the folder of its messages."""
    root = folder.parent.parent
    infos = [*root.glob(f"session/*/{folder.name}.json"), *root.glob(f"info/{folder.name}.json")]
    info: Any = {}
    for value in map(_loaded_file, infos[:1]):
        if isinstance(value, Unread):
            yield value
        else:
            info = value.value
    messages: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.json")):
        message = _loaded_file(path)
        if isinstance(message, Unread):
            yield message
            continue
        parts = [_loaded_file(part) for part in _parts_of(root, folder.name, path.stem)]
        yield from (part for part in parts if isinstance(part, Unread))
        values = [part.value for part in parts if isinstance(part, Located)]
        messages.append({"info": message.value, "parts": values})
    yield Located(f"{folder}, session", {"info": info, "messages": messages})


def files_of_session(folder: Path) -> list[Path]:
    """Returns the files of a session, given the folder of its messages."""
    root = folder.parent.parent
    messages = sorted(folder.glob("*.json"))
    parts = [part for path in messages for part in _parts_of(root, folder.name, path.stem)]
    return [*messages, *parts]


def _parts_of(root: Path, session: str, message: str) -> list[Path]:
    """Returns the files of a message's parts; their names sort by time of creation."""
    return sorted(
        [*root.glob(f"part/{message}/*.json"), *root.glob(f"part/{session}/{message}/*.json")]
    )


def _loaded_file(path: Path) -> Located | Unread:
    try:
        return load_json(str(path), read_text(path))
    except UsageError as error:
        return Unread(str(error).removesuffix("."))
