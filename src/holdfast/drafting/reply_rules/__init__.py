"""Reads the rules for replies in a bot's prompt, one theme per file: language, length, words.

`bot_prompts` cuts a sentence into clauses and masks what it quotes. `bot_rules` asks the readers of
all themes (`reply_readers`), and `negation` drops a rule whose opposite the clause states.
`agent_replies` does the same for rules files of coding agents.
"""
