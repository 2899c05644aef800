"""Edits requests to chat APIs with message methods, and scores the replies by a suite's rules.

`holdfast proxy` does this between any client and any server, `holdfast.wrap` inside a client of
OpenAI's package.
"""
