"""Reads the rules for a coding agent, one theme per file: commands, files, code, commits.

    Clause("never edit `vendor/`") -> protected_file_rule -> [Draft(file_not_touched)]

A reader takes a clause and returns the rules that the clause states, or [] if it states none of its
theme. `agent_readers` lists them in the order in which they are asked.
"""
