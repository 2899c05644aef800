"""A guide to the formats of logs: what each is, where programs keep it, how to export it.

`holdfast logs --list-formats` and the table in docs/logs.md are made from it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """Where a program keeps its logs; exactly one of the fields is given.

    Args:
        home: a path below the user's home folder, the same on every system.
        settings: a path below the folder for settings: `~/.config` on Linux,
            `~/Library/Application Support` on macOS, `%APPDATA%` on Windows.
        folder: words for a place in a folder that the user chose.
    """

    home: str = ""
    settings: str = ""
    folder: str = ""

    @property
    def linux(self) -> str:
        """The path on Linux, or the words that describe the folder."""
        return self.folder or (f"~/.config/{self.settings}" if self.settings else f"~/{self.home}")

    @property
    def macos(self) -> str:
        """The path on macOS, or the words that describe the folder."""
        application = f"~/Library/Application Support/{self.settings}"
        return application if self.settings else self.linux

    @property
    def windows(self) -> str:
        """The path on Windows, or the words that describe the folder."""
        path = f"%APPDATA%/{self.settings}" if self.settings else f"%USERPROFILE%/{self.home}"
        return self.folder or path.replace("/", "\\")


@dataclass(frozen=True)
class Guide:
    """A format in words.

    Args:
        reads: a description of the logs that are read, in Markdown.
        places: where the program keeps its logs; () if people export or write them themselves.
        export: how to export a log, in place of or besides `places`; "" if it is not exported.
    """

    reads: str
    places: tuple[Place, ...] = ()
    export: str = ""


_VS_CODE = "Code/User"  # its folder for settings

GUIDES = {  # by the name in `FORMATS`
    # coding agents
    "claude-code": Guide(
        "Claude Code's transcripts, its subagents' in `subagents/` among them",
        places=(Place(home=".claude/projects/*/*.jsonl"),),
        export="`claude -p --verbose --output-format stream-json > log.jsonl`",
    ),
    "codex": Guide(
        "Codex CLI's rollouts; for `.jsonl.zst`, install `holdfast-llm[zstd]`",
        places=(Place(home=".codex/sessions/*/*/*/rollout-*.jsonl"),),
    ),
    "codex-exec": Guide(
        "the output of `codex exec --json`, which lacks what the user said",
        export="`codex exec --json ... > log.jsonl`",
    ),
    "gemini-cli": Guide(
        "Gemini CLI's sessions", places=(Place(home=".gemini/tmp/*/chats/session-*"),)
    ),
    "gemini-cli-stream": Guide(
        "the output of `gemini --output-format stream-json`",
        export="`gemini --output-format stream-json -p ... > log.jsonl`",
    ),
    "goose": Guide(
        "Goose's database, its older files `*.jsonl`, or an exported session",
        places=(Place(home=".local/share/goose/sessions/sessions.db"),),
        export="`goose session export --format json > session.json`",
    ),
    "cline": Guide(
        "tasks of Cline and Roo Code (`api_conversation_history.json`), and Cline's sessions",
        places=(
            Place(settings=f"{_VS_CODE}/globalStorage/saoudrizwan.claude-dev/tasks"),
            Place(settings=f"{_VS_CODE}/globalStorage/rooveterinaryinc.roo-cline/tasks"),
            Place(home=".cline/data/sessions/*/*.messages.json"),
        ),
    ),
    "copilot": Guide(
        "VS Code's chats, GitHub Copilot's among them: `.json`, `.jsonl`, or exported",
        places=(
            Place(settings=f"{_VS_CODE}/workspaceStorage/*/chatSessions"),
            Place(settings=f"{_VS_CODE}/globalStorage/emptyWindowChatSessions"),
        ),
        export="the command `Chat: Export Chat...` of VS Code",
    ),
    "copilot-cli": Guide(
        "GitHub Copilot CLI's sessions",
        places=(Place(home=".copilot/session-state/*/events.jsonl"),),
    ),
    "opencode": Guide(
        "opencode's database (of versions 1 and 2), its older folder `storage`, or an exported"
        " session",
        places=(
            Place(home=".local/share/opencode/opencode.db"),
            Place(home=".local/share/opencode/storage"),
        ),
        export="`opencode export SESSION > session.json`",
    ),
    "aider": Guide(
        "aider's history in Markdown",
        places=(Place(folder=".aider.chat.history.md in the project"),),
    ),
    "cursor": Guide(
        "Cursor's chats: exported as Markdown, its database, or its agent's databases, transcripts"
        " and output",
        places=(
            Place(settings="Cursor/User/globalStorage/state.vscdb"),
            Place(home=".cursor/chats/*/*/store.db"),
            Place(home=".cursor/projects/*/agent-transcripts"),
        ),
        export="`Export Transcript` in a chat's menu, which writes `cursor_*.md`, or"
        " `cursor-agent -p --output-format stream-json > log.jsonl`",
    ),
    # evaluations and chats
    "inspect": Guide(
        "Inspect AI's logs, a dialog per sample: `.eval` or `.json`",
        places=(Place(folder="logs/*.eval where the evaluation ran"),),
        export="`inspect log convert --to json --output-dir json logs`",
    ),
    "sillytavern": Guide(
        "SillyTavern's chats; of a message's versions, the one that is shown",
        places=(Place(folder="data/*/chats/*/*.jsonl in SillyTavern's folder"),),
    ),
    "chatgpt": Guide(
        "ChatGPT's export, `conversations.json`",
        export="Settings, Data controls, Export data",
    ),
    "claude-ai": Guide(
        "Claude's export, `conversations.json`", export="Settings, Privacy, Export data"
    ),
    "open-webui": Guide(
        "Open WebUI's export", export="Settings, Data controls (or Chats), Export all chats"
    ),
    "librechat": Guide(
        "LibreChat's export, not the recursive one",
        export="Export conversation, as json, without `Recursive`",
    ),
    # messages as APIs and agent frameworks write them
    "openai": Guide(
        '`{"messages": [...]}`, `{"conversation": [...]}` or a list of messages, with `tool_calls`'
        " and `tool` messages; roles of LangChain too (`human`, `ai`, `AIMessage`)",
    ),
    "responses": Guide(
        "`input`, `output` and `instructions` of the Responses API, or a list of its items"
    ),
    "openai-agents": Guide(
        "databases of sessions of OpenAI's Agents SDK (`SQLiteSession` and its kind)",
        places=(Place(folder="*.db or *.sqlite where the program keeps it"),),
    ),
    "anthropic": Guide('`{"system": ..., "messages": [...]}` with content blocks'),
    "gemini": Guide(
        "`contents` and `systemInstruction` of Gemini's API, perhaps with the `response`"
    ),
    "ai-sdk": Guide("messages with `parts`, as Vercel's AI SDK writes them"),
    "sharegpt": Guide('`{"conversations": [{"from": ..., "value": ...}]}`'),
    "pydantic-ai": Guide(
        "Pydantic AI's messages: lists as `result.all_messages_json()` returns them, or a message"
        " per line",
        export="`ModelMessagesTypeAdapter.dump_json(messages)`",
    ),
    "google-adk": Guide(
        "sessions and events of Google's Agent Development Kit, its databases, and its evaluation"
        " sets",
        places=(Place(folder=".adk/session.db in the folder of the agent"),),
        export="`adk run --save_session AGENT`, or `session.model_dump_json()`",
    ),
    "atif": Guide("trajectories in the Agent Trajectory Interchange Format"),
    # logged calls and traces
    "litellm": Guide(
        "LiteLLM's payloads: `messages`, and the answer in `response` or `choices`",
    ),
    "langfuse": Guide("observations, as the API and the exports write them"),
    "langgraph": Guide(
        "states of LangGraph's threads with `messages`, one or the history of a thread",
        export="`GET /threads/THREAD/history` of its API",
    ),
    "langsmith": Guide("runs of the type `llm`"),
    "phoenix": Guide(
        "spans with [OpenInference attributes]"
        "(https://arize-ai.github.io/openinference/spec/semantic_conventions.html), nested or with"
        " dotted names"
    ),
    "otel": Guide("OpenTelemetry spans with `gen_ai` attributes"),
    "otlp": Guide(
        "the same, or spans of OpenInference, as OTLP and the API of Grafana Tempo write them in"
        " JSON; also log records with the messages of calls"
    ),
    "jaeger": Guide("traces of Jaeger with such spans", export="Trace JSON in the menu of a trace"),
    "bedrock": Guide("the records in which Amazon Bedrock logs calls of models"),
    # Holdfast's own runs
    "run": Guide(
        "the folder of a drift run, or its `records.jsonl`", export="`holdfast drift --out FOLDER`"
    ),
}
