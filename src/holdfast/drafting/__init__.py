"""Drafts a suite from a rules file such as AGENTS.md, without a model: `line_rules` says how a line
becomes a rule.
"""

from holdfast.drafting.suite_text import DraftedFile, draft_file, suite_text

__all__ = ["DraftedFile", "draft_file", "suite_text"]
