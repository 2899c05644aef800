"""Reads English: a clause as an instruction with its modality, verbs, object and circumstances.

    "In tests, never use `sleep`"  -> NEVER + use + "`sleep`" + (in, "tests")

`clauses` cuts a statement into clauses; `instructions` reads a clause, with the words of
`instruction_words`, the tokens of `clause_tokens` and the circumstances of `circumstances`.
`acts`, `occasions` and `named_files` find what its words stand for: commands, an event or a change
of files, globs. `commands` reads code spans. `forms` are wordings that are matched as a whole,
where no grammar is needed.
"""
