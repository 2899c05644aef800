"""The formats of logs, in the order in which they are tried on a value."""

from collections.abc import Mapping
from typing import Any

from holdfast.transcripts.reader import Format
from holdfast.transcripts.readers import (
    aider,
    atif,
    bedrock,
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
    gemini_cli_stream,
    google_adk,
    goose,
    inspect_log,
    jaeger,
    langfuse,
    langgraph,
    langsmith,
    librechat,
    litellm,
    message_lists,
    open_webui,
    openai_agents,
    openai_responses,
    opencode,
    otel,
    otlp,
    phoenix,
    pydantic_ai,
    run_records,
    sillytavern,
    vscode_chat,
)

# The first format that recognises a value reads it, so a stricter format precedes a looser one.
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        # events of sessions
        gemini_cli.FORMAT,
        gemini_cli_stream.FORMAT,
        codex.FORMAT,
        codex_exec.FORMAT,
        copilot_cli.FORMAT,
        cursor.FORMAT,
        claude_code.FORMAT,
        sillytavern.FORMAT,
        vscode_chat.FORMAT,
        aider.FORMAT,
        pydantic_ai.FORMAT,
        google_adk.FORMAT,
        goose.FORMAT,
        # dialogs
        cline.FORMAT,
        opencode.FORMAT,
        inspect_log.FORMAT,
        run_records.FORMAT,
        chatgpt.FORMAT,
        claude_ai.FORMAT,
        open_webui.FORMAT,
        openai_agents.FORMAT,
        atif.FORMAT,
        gemini.FORMAT,
        librechat.FORMAT,
        litellm.FORMAT,  # calls of a model, which have messages and an answer
        message_lists.AI_SDK,
        message_lists.SHAREGPT,
        message_lists.ANTHROPIC,
        message_lists.OPENAI,
        # other calls of models, and spans
        bedrock.FORMAT,
        jaeger.FORMAT,
        otlp.FORMAT,
        langgraph.FORMAT,
        langsmith.FORMAT,
        otel.FORMAT,
        phoenix.FORMAT,
        langfuse.FORMAT,
        openai_responses.FORMAT,
    )
}


def format_of(value: Any) -> str | None:
    """Returns the name of the first format that recognises a value; None if none does."""
    return next((name for name, form in FORMATS.items() if form.recognises(value)), None)


def can_read_as(value: Any, form: str) -> bool:
    """Whether to try to read a value in a format that the user named.

    A value that no format recognises is tried too: the reader says what is wrong with it.
    """
    detected = format_of(value)
    if detected in (form, None):
        return True
    if detected != "openai":
        return False
    # messages of only a user and an assistant look the same in these APIs
    if form == "responses":
        return isinstance(value, list)
    return form == "anthropic" and _has_plain_messages(value)


def _has_plain_messages(value: Any) -> bool:
    """Whether all messages are by the user or the assistant, without OpenAI's tool calls."""
    messages = value if isinstance(value, list) else value["messages"]
    return all(
        isinstance(message, Mapping)
        and message.get("role") in ("user", "assistant")
        and not {"tool_calls", "function_call"} & message.keys()
        for message in messages
    )
