"""Reads logged dialogs in many formats and scores them by a suite's rules; needs no model."""

from holdfast.analysis.adherence import adherence
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, Logs, read_logs
from holdfast.logs.formats import FORMATS
from holdfast.logs.scoring import score_logs
