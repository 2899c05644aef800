"""Reads the databases of coding agents and libraries: one file each; `reading.py` finds which."""
