"""The formats of logs that lack the system prompt or the agent's file of rules.

A rule that is not found in such a log may still have been in the model's context.
"""

# never have the system prompt, or only a part of what comes before the dialog
WITHOUT_PROMPTS = frozenset(
    {
        "aider",
        "chatgpt",
        "claude-ai",
        "claude-code",
        "cline",
        "codex-exec",
        "copilot",
        "copilot-cli",
        "cursor",
        "gemini-cli",
        "gemini-cli-stream",
        "goose",
        "google-adk",
        "openai-agents",
        "opencode",
        "sillytavern",
    }
)
# by format, the file of rules that the agent puts into every context, unseen in the log
AUTOMATIC_FILES = {
    "claude-code": "CLAUDE.md",
    "gemini-cli": "GEMINI.md",
    "gemini-cli-stream": "GEMINI.md",
}
# by format, the name of that agent
AGENTS = {
    "claude-code": "Claude Code",
    "gemini-cli": "Gemini CLI",
    "gemini-cli-stream": "Gemini CLI",
}
