"""Drafts a suite from a rules file such as AGENTS.md, or from a bot's prompt, without a model.

A file passes these stations, each of which knows only those before it:

1. `rules_file` reads it into statements: sentences with the headings above them, and the rules that
   `table_rows` finds in rows of tables;
2. `grammar` reads a statement: its clauses, and each clause as an instruction;
3. `agent_rules` and `reply_rules` have a reader for each theme of rules, which drafts the rules
   that a clause states;
4. `line_rules` decides whether a statement is a rule at all, and asks the readers;
5. `drafted_files` does so for each line of a file, and keeps the reason for every other line;
6. `suite_text` writes both as a suite.

`proposals` asks a model about the lines that no reader knows; `proposable_measures` has the
measures that it may propose.
"""

from holdfast.drafting.drafted_files import DraftedFile, draft_file
from holdfast.drafting.suite_text import suite_text

__all__ = ["DraftedFile", "draft_file", "suite_text"]
