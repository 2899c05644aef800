"""Edits requests to a chat API by message methods, and scores the replies by a suite's rules.

The command `holdfast proxy` does so between any client and any server, `holdfast.wrap` inside a
client of OpenAI's package.
"""
