"""Logs of dialogs, read in many formats and scored by the rules of a suite; needs no model."""

from holdfast.logs.dialogs import LoggedDialog, LoggedTurn, Logs, read_logs
from holdfast.logs.formats import FORMATS
from holdfast.logs.scoring import score_logs
