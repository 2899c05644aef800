"""The folder of the repository, in which tests find its documents and their data."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
