"""Forward passes: rows that generate or are scored, their keys and values, and the drawing of
tokens.
"""
