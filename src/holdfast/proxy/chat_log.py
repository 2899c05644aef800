"""The file of `--log`: each scored chat as a line, which `holdfast logs` reads.

{"messages": [...], "choices": [...], "added": ["[Reminder: Be brief.]\\n\\n"]}
"""

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


class ChatLog:
    """A file with a chat per line, to which any thread may write.

    Raises:
        UsageError: the file cannot be written.
    """

    def __init__(self, path: Path):
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
            if _is_torn(path):  # a process was killed while it wrote; that spoils no other line
                self._file.write("\n")
        except OSError as error:
            raise UsageError(
                f"{path} cannot be written ({reason_of(error)}); name another file.",
                option="log",
                value=str(path),
            ) from None

    def write(self, request: ChatRequest, answer: Mapping[str, Any], added: Sequence[str]) -> None:
        """Writes a request as it came, the answer to it, and the texts that were added."""
        if request.api is Api.CHAT:
            chat = {"messages": request.body["messages"], **answer}
        else:
            chat = {
                **_select_fields(request.body, ("instructions", "input")),
                # `incomplete_details` says whether the reply was cut
                **_select_fields(answer, ("output", "incomplete_details")),
            }
        try:
            with self._lock:
                self._file.write(json.dumps({**chat, "added": list(added)}) + "\n")
                self._file.flush()
        except OSError as error:  # the reply itself is delivered
            _LOG.error("A chat could not be logged: %s", reason_of(error))


def _is_torn(path: Path) -> bool:
    """Whether the last line of a file lacks its line break."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return file.read(1) not in (b"", b"\n")


def _select_fields(fields: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns those of the named fields that are present."""
    return {name: fields[name] for name in names if name in fields}
