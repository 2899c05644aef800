"""Suites of verifiable instructions, read from the files of published benchmarks. The files are the
user's; nothing of them is part of this package, and nothing in them is ever executed.
"""
