"""Logs of any format as transcripts: trees of events, of which one path is active."""

from holdfast.transcripts.formats import FORMATS
from holdfast.transcripts.reader import Format, Unread
from holdfast.transcripts.reading import LogFile, read_transcripts
from holdfast.transcripts.transcript import Event, Kind, Transcript, linear
