"""A reader for each format of logs, one file each; `formats.py` lists them."""
