"""The version, which `pyproject.toml`, the command line, records and pages read from here."""

__version__ = "0.4.0"
