"""Logs of dialogs that were held: read in the forms that chat servers, tracing tools and coding
agents write, and scored turn by turn by the rules of a suite. No model is needed.
"""

from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, Logs, read_logs
from holdfast.logs.formats import FORMATS
from holdfast.logs.scoring import score_logs

__all__ = ["FORMATS", "LoggedDialog", "LoggedTurn", "Logs", "read_logs", "score_logs"]
