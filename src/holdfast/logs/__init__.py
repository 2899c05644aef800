"""Scores logged dialogs by a suite's rules; needs no model."""

from holdfast.analysis.adherence import adherence
from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, Logs, read_logs
from holdfast.logs.turn_scoring import score_logs
from holdfast.transcripts import FORMATS
