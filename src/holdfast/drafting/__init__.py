"""Drafts a suite from a rules file such as AGENTS.md, or from a bot's prompt, without a model.

A file is read into statements (`rules_file`), and a statement is cut into clauses (`clauses`). Each
module `..._rules` has readers for one theme: a reader takes a clause and returns the rules that the
clause states, or [] if it states none of this theme. `line_rules` tries the readers in turn.
`suite_text` writes the rules as a suite.

Rules for coding agents are read by a grammar (`instructions`, with its words in
`instruction_words`): it brings the ways to say one thing into one structure of modality, verbs,
object and circumstances, which the readers match. `acts` has the acts with known commands, such as
"commit", and `occasions` the events and changes of files that circumstances name.

Readers of replies and commit messages know the wordings of a rule by *forms* (`forms`), regular
expressions that each have an example, with which a test matches them.
"""

from holdfast.drafting.drafted_files import DraftedFile, draft_file
from holdfast.drafting.suite_text import suite_text

__all__ = ["DraftedFile", "draft_file", "suite_text"]
