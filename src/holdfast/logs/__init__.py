"""Scores logged dialogs by a suite's rules; needs no model."""

from typing import TYPE_CHECKING, Any

from holdfast.lazy_imports import import_name

if TYPE_CHECKING:
    from holdfast.analysis.adherence import adherence
    from holdfast.logs.dialogs import LoggedDialog, LoggedTurn
    from holdfast.logs.log_reading import Logs, read_logs
    from holdfast.logs.scanning import scan_logs
    from holdfast.logs.scored_logs import score_logs
    from holdfast.transcripts import FORMATS

_LATER = {
    "adherence": "holdfast.analysis.adherence",
    **dict.fromkeys(("LoggedDialog", "LoggedTurn"), "holdfast.logs.dialogs"),
    **dict.fromkeys(("Logs", "read_logs"), "holdfast.logs.log_reading"),
    "scan_logs": "holdfast.logs.scanning",
    "score_logs": "holdfast.logs.scored_logs",
    "FORMATS": "holdfast.transcripts",
}


def __dir__() -> list[str]:
    return [*_LATER]


def __getattr__(name: str) -> Any:
    return import_name(__name__, _LATER, name)
