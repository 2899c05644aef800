"""Drafts a suite from a rules file such as AGENTS.md or a bot's prompt, without a model.

`line_rules` decides which rule a line says, if any; the files of the themes have its forms.
"""

from holdfast.drafting.drafted_files import DraftedFile, draft_file
from holdfast.drafting.suite_text import suite_text

__all__ = ["DraftedFile", "draft_file", "suite_text"]
