"""Requests to OpenAI's two chat APIs: their messages, and where the text of each is in the body.

Chat Completions has `messages`; the Responses API has `input`, a text or a list of items, and the
system prompt in `instructions`. The content of a message is a text, null or a list of parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from holdfast.chat.messages import Message
from holdfast.logs.dialogs import estimated_tokens
from holdfast.proxy.json_edits import Change, Insertion, Path, Removal
from holdfast.transcripts.call_messages import input_messages, system_prompt
from holdfast.transcripts.transcript import Event

# items of the Responses API that are neither messages nor a call or its result
_ROLES_OF_ITEMS = {"compaction": "summary", "additional_tools": "tools", "mcp_list_tools": "tools"}


class Api(Enum):
    """The APIs whose requests are edited, by the ends of their paths."""

    CHAT = "/chat/completions"
    RESPONSES = "/responses"

    @property
    def text_part(self) -> str:
        """The type of a text part in a message of the user."""
        return "text" if self is Api.CHAT else "input_text"


def api_of(method: str, path: str) -> Api | None:
    """The API that a request is for; None if it is neither."""
    if method.upper() != "POST":
        return None
    return next((api for api in Api if path.rstrip("/").endswith(api.value)), None)


class Unreadable(Exception):
    """A body that we cannot read as a request to this API; the text of the exception says why."""


@dataclass(frozen=True)
class LocatedMessage:
    """A message of a request as text, and where it is in the body.

    Attributes:
        item: its path, or that of its text if it is no more than that.
        texts: the paths of its texts; several if its content has several text parts.
        part_type: of its text parts; "" if its content is no list of parts.
    """

    role: str
    text: str
    item: Path
    texts: tuple[Path, ...]
    part_type: str

    def insertions(self, edited: str) -> Iterator[Insertion]:
        """The insertions after which the message says `edited`.

        Raises:
            Unreadable: it takes more than text in front or behind.
        """
        if edited == self.text:
            return
        if edited.endswith(self.text) and self.texts:
            yield Insertion(self.texts[0], edited.removesuffix(self.text))
        elif edited.startswith(self.text) and self.texts:
            yield Insertion(self.texts[-1], edited.removeprefix(self.text), at_end=True)
        elif self.part_type and not self.texts:  # images alone, say
            yield Insertion((*self.item, "content"), edited.rstrip(), part_type=self.part_type)
        else:
            raise Unreadable("a method rewrites a message, and text can only be added to it")


@dataclass(frozen=True)
class ChatRequest:
    """The body of a request, and its messages.

    Attributes:
        document: the body as it came; "" if it was not read from one.
    """

    api: Api
    body: Mapping[str, Any]
    messages: tuple[LocatedMessage, ...]
    document: str = ""

    @property
    def tokens(self) -> int:
        """The length of its messages, estimated from their bytes."""
        return estimated_tokens(message.text for message in self.messages)

    @property
    def system(self) -> str:
        """The system prompt; "" without one."""
        texts = [message.text for message in self.messages if message.role == "system"]
        return "\n\n".join(filter(str.strip, texts))

    @property
    def ends_with_user(self) -> bool:
        """Whether the user spoke last; otherwise an agent goes on, after the result of a tool."""
        return bool(self.messages) and self.messages[-1].role == "user"

    @property
    def is_stored(self) -> bool:
        """Whether the dialog so far is on the server, and only what is new is here."""
        return any(self.body.get(name) for name in ("previous_response_id", "conversation"))

    @property
    def chat(self) -> list[Message]:
        """The messages as methods read them, each with its position."""
        return [
            {"role": message.role, "content": message.text, "position": position}
            for position, message in enumerate(self.messages)
        ]

    def changes_to(self, edited: Sequence[Message]) -> tuple[Change, ...]:
        """The changes after which the body says `edited`, which was made from `chat`.

        Raises:
            Unreadable: it takes more than adding text and leaving messages out.
        """
        positions: list[int] = [message.get("position", -1) for message in edited]
        if -1 in positions or positions != sorted(set(positions)):
            raise Unreadable("a method adds messages, and only text can be added")
        contents = {message["position"]: str(message["content"]) for message in edited}
        changes = list[Change]()
        for position, message in enumerate(self.messages):
            if position in contents:
                changes += message.insertions(contents[position])
            elif isinstance(message.item[-1], int) and position < len(self.messages) - 1:
                changes.append(Removal(message.item))
            elif message.role == "system":
                raise Unreadable("a method leaves out the system prompt")
            else:
                raise Unreadable("a method leaves out the message that is to be answered")
        return tuple(changes)

    @property
    def events(self) -> list[Event]:
        """Its messages as a transcript's events."""
        if self.api is Api.CHAT:
            return input_messages(self.body["messages"])
        prompt = system_prompt(self.body.get("instructions"))
        return [*prompt, *input_messages(self.body["input"])]


def read_request(api: Api, document: str) -> ChatRequest:
    """Reads the body of a request.

    Raises:
        Unreadable: it is not such a request; the server will say so.
    """
    try:
        body = json.loads(document)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None
    return replace(request_of(api, body), document=document)


def request_of(api: Api, body: Any) -> ChatRequest:
    """Reads a parsed body, as `read_request` does."""
    field = "messages" if api is Api.CHAT else "input"
    if not isinstance(body, dict):
        raise Unreadable("it is not an object")
    items = body.get(field)
    if api is Api.RESPONSES and isinstance(items, str):
        located = [LocatedMessage("user", items, (field,), ((field,),), "")]
    elif isinstance(items, list):
        located = [
            _located(item, (field, position), api)
            for position, item in enumerate(items)
            if isinstance(item, dict)
        ]
    else:
        raise Unreadable(f"it has no {field}")
    if isinstance(prompt := body.get("instructions"), str) and api is Api.RESPONSES:
        path = ("instructions",)
        located.insert(0, LocatedMessage("system", prompt, path, (path,), ""))
    return ChatRequest(api, body, tuple(located))


def _located(message: Mapping[str, Any], item: Path, api: Api) -> LocatedMessage:
    """A message, or another item of the Responses API: a call of a tool, or its result."""
    content = message.get("content")
    role = str(message.get("role") or _ROLES_OF_ITEMS.get(str(message.get("type")), "tool"))
    if role == "developer":
        role = "system"
    path = (*item, "content")
    if isinstance(content, str) or ("content" in message and content is None):
        return LocatedMessage(role, content or "", item, (path,), "")
    if not isinstance(content, list):
        return LocatedMessage(role, "", item, (), "")
    texts = {
        (*path, number, "text"): part["text"]
        for number, part in enumerate(content)
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    }
    return LocatedMessage(role, "\n".join(texts.values()), item, tuple(texts), api.text_part)
