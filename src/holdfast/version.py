"""The version; `pyproject.toml`, the command line, records and pages read it from here."""

__version__ = "0.4.0"
