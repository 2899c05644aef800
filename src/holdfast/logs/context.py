"""The events of a transcript that are in the model's context at a place in it."""

from bisect import bisect_left
from collections.abc import Sequence

from holdfast.transcripts.transcript import Event, Kind

# Formats that never record the system prompt, or only a part of what precedes the dialog.
WITHOUT_PROMPTS = frozenset(
    (
        *("claude-code", "gemini-cli", "codex-exec", "chatgpt", "claude-ai", "cline", "copilot"),
        *("copilot-cli", "opencode", "aider", "cursor", "sillytavern"),
    )
)
# Formats whose agent puts a file of rules into every context, which the transcript does not show.
AUTOMATIC_FILES = {"claude-code": "CLAUDE.md", "gemini-cli": "GEMINI.md"}
AGENTS = {"claude-code": "Claude Code", "gemini-cli": "Gemini CLI"}  # the names of these


def compactions(path: Sequence[Event]) -> list[int]:
    """Where the context begins again, on a path of events: each compaction may be several events,
    of which this is the first.
    """
    begins: list[int] = []
    before: Kind | None = None
    for position, event in enumerate(path):
        if event.kind is Kind.COMPACTION and before is not Kind.COMPACTION:
            begins.append(position)
        before = event.kind
    return begins


def is_in_context(path: Sequence[Event], begins: Sequence[int], number: int, position: int) -> bool:
    """Whether an event is in the context before another: a system prompt, or what came since the
    last compaction, with what that put in place of the context.

    Args:
        begins: the compactions of the path.
        number, position: of the event, and of the other.
    """
    before = bisect_left(begins, position)
    start = begins[before - 1] if before else 0
    return number < position and (number >= start or path[number].is_prompt)
