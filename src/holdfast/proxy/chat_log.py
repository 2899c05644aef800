"""A file of the chats that went through, for `holdfast logs`."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError, reason_of
from holdfast.proxy.chat_requests import Api, ChatRequest

_LOG = logging.getLogger("holdfast.proxy")


def _is_torn(path: Path) -> bool:
    """Whether a file has a last line that does not end."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read(1) not in (b"", b"\n")


def _some_fields(fields: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: fields[name] for name in names if name in fields}


class ChatLog:
    """A file of chats, one in a line; any thread may write to it.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: Path):
        self._lock = threading.Lock()
        try:
            self._file = path.open("a", encoding="utf-8")
            if _is_torn(path):  # by a process that was killed; it spoils no other line
                self._file.write("\n")
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written ({reason_of(error)}); name another file.",
                option="log",
                value=str(path),
            ) from None

    def write(self, request: ChatRequest, answer: Mapping[str, Any], added: Sequence[str]) -> None:
        """Writes a request as it came, its answer, and the texts that were added to it."""
        if request.api is Api.CHAT:
            chat = {"messages": request.body["messages"], **answer}
        else:
            chat = {
                **_some_fields(request.body, ("instructions", "input")),
                # the latter says whether it was cut
                **_some_fields(answer, ("output", "incomplete_details")),
            }
        try:
            with self._lock:
                self._file.write(json.dumps({**chat, "added": list(added)}) + "\n")
                self._file.flush()
        except OSError as error:  # the reply itself goes on
            _LOG.error("A chat could not be logged: %s", reason_of(error))
