"""Reads the rules for replies, one theme per file: language, length, words.

    BotClause("end every reply with ⟪0⟫", quotes=("Bye!",)) -> edge_rules -> [Draft(ends_with)]

`bot_prompts` cuts a sentence into clauses and replaces quotations by marks. `reply_readers` asks
the readers of all themes, and drops a rule whose opposite the clause states.
"""
