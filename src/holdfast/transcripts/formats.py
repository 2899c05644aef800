"""The formats of logs, in the order in which a value is recognised."""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.reader import Format
from holdfast.transcripts.readers import (
    aider,
    atif,
    chatgpt,
    claude_ai,
    claude_code,
    cline,
    codex,
    codex_exec,
    copilot_cli,
    cursor,
    gemini,
    gemini_cli,
    inspect_log,
    langfuse,
    langsmith,
    librechat,
    litellm,
    message_lists,
    open_webui,
    openai_responses,
    opencode,
    otel,
    otlp,
    phoenix,
    run_records,
    sillytavern,
    vscode_chat,
)

# The first that recognises a value reads it, so what may be taken for another comes before that.
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        # events of sessions
        gemini_cli.FORMAT,
        codex.FORMAT,
        codex_exec.FORMAT,
        copilot_cli.FORMAT,
        cursor.FORMAT,
        claude_code.FORMAT,
        sillytavern.FORMAT,
        vscode_chat.FORMAT,
        aider.FORMAT,
        # dialogs
        cline.FORMAT,
        opencode.FORMAT,
        inspect_log.FORMAT,
        run_records.FORMAT,
        chatgpt.FORMAT,
        claude_ai.FORMAT,
        open_webui.FORMAT,
        atif.FORMAT,
        gemini.FORMAT,
        librechat.FORMAT,
        litellm.FORMAT,  # calls of a model, which have messages and an answer
        message_lists.AI_SDK,
        message_lists.SHAREGPT,
        message_lists.ANTHROPIC,
        message_lists.OPENAI,
        # other calls of models, and spans
        otlp.FORMAT,
        langsmith.FORMAT,
        otel.FORMAT,
        phoenix.FORMAT,
        langfuse.FORMAT,
        openai_responses.FORMAT,
    )
}


def format_of(value: Any) -> str | None:
    """The name of a value's format, recognised by its fields; None if it is in none."""
    return next((name for name, form in FORMATS.items() if form.recognises(value)), None)


def may_be(value: Any, form: str) -> bool:
    """Whether a value can be read in a format: it is in that one, in none, or in both."""
    detected = format_of(value)
    if detected in (form, None):
        return True
    # messages of a user and an assistant with nothing else are the same in these APIs
    return detected == "openai" and form in ("anthropic", "responses") and _is_plain(value, form)


def _is_plain(value: Any, form: str) -> bool:
    messages = value if isinstance(value, list) else value["messages"]
    if form == "responses":
        return isinstance(value, list)
    return all(
        isinstance(message, Mapping)
        and message.get("role") in ("user", "assistant")
        and not {"tool_calls", "function_call"} & message.keys()
        for message in messages
    )
