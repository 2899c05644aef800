"""The commands about rules files and recorded dialogs: suite, logs, remind.

suite          drafts a suite from a rules file, and tests one
logs           scores recorded dialogs
log_progress   what `logs` prints while it reads
log_labels     how `logs --label` asks for labels
remind         the hook of coding agents, and its installation
"""
