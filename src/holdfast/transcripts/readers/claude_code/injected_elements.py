"""Names of the elements that Claude Code writes into messages of the user."""

INJECTED = (
    *("system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat"),
    *("bash-input", "bash-stdout", "bash-stderr", "task-notification", "user-prompt-submit-hook"),
    *("teammate-message", "cross-session-message", "fork-boilerplate"),
    *("ide_opened_file", "ide_selection", "ide_diagnostics", "new-diagnostics"),
)
COMMAND = ("command-name", "command-message", "command-args", "command-contents")
