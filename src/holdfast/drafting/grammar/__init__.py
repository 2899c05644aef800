"""Reads English: a clause as an instruction with its modality, verbs, object and circumstances.

`clauses` cuts a statement into clauses; `instructions` reads a clause, with the words of
`instruction_words`; `acts`, `occasions` and `changed_files` give what it names a meaning: the
commands that are an act, the event or the change of files that is an occasion. `commands` and
`path_globs` read code spans, `language_files` names of languages. `forms` are wordings that are
matched as a whole, where no grammar is needed.
"""
