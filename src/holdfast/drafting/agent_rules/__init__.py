"""Reads the rules for a coding agent, one theme per file: commands, files, code, commits.

A reader takes a clause and returns the rules that the clause states, or [] if it states none of its
theme. `agent_readers` lists them.
"""
