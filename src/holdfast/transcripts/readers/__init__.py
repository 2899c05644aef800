"""A reader for each format of logs, some in several files; `formats.py` lists them."""
