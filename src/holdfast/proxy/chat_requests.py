"""Reads requests to OpenAI's two chat APIs: their messages, and the place of each text in the body.

Chat Completions has `messages`. The Responses API has `input`, a text or a list of items, and the
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
from holdfast.proxy.json_edits import Insertion, JsonEdit, JsonPath, Removal
from holdfast.transcripts.call_messages import input_messages, system_prompt
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import objects_in

# the roles of items of the Responses API that are neither messages nor tool calls and results
_ITEM_ROLES = {"compaction": "summary", "additional_tools": "tools", "mcp_list_tools": "tools"}


class Api(Enum):
    """The APIs whose requests are edited; the values are the ends of their paths."""

    CHAT = "/chat/completions"
    RESPONSES = "/responses"

    @property
    def text_part(self) -> str:
        """The type of a text part in a message by the user."""
        return "text" if self is Api.CHAT else "input_text"


# the ends of the paths at which other APIs take chats and prompts
_OTHER_APIS = (
    "/completions",  # OpenAI's older Completions
    "/v1/messages",  # Anthropic's Messages
    ":generateContent",  # Gemini's API
    ":streamGenerateContent",
    "/api/chat",  # Ollama's API
    "/api/generate",
)


def api_of(method: str, path: str) -> Api | None:
    """Returns the API that a request is for; None if it is for neither."""
    if method.upper() != "POST":
        return None
    return next((api for api in Api if path.rstrip("/").endswith(api.value)), None)


def is_other_api(method: str, path: str) -> bool:
    """Whether a request is a chat or a prompt in an API that is neither of `Api`."""
    is_post = method.upper() == "POST"
    return is_post and not api_of(method, path) and path.rstrip("/").endswith(_OTHER_APIS)


class Unreadable(Exception):
    """A body that cannot be read as a request to an API; the exception's text says why."""


@dataclass(frozen=True)
class LocatedMessage:
    """A message of a request as text, and where it is in the body.

    Attributes:
        item: the path of the message, or of its text if the message is nothing but a text.
        texts: the paths of its texts; several if its content has several text parts.
        part_type: the type of its text parts; "" if its content is not a list of parts.
    """

    role: str
    text: str
    item: JsonPath
    texts: tuple[JsonPath, ...]
    part_type: str

    def insertions(self, edited: str) -> Iterator[Insertion]:
        """Yields the insertions that turn the message's text into `edited`.

        Raises:
            Unreadable: that takes more than adding text at the beginning or the end.
        """
        if edited == self.text:
            return
        if edited.endswith(self.text) and self.texts:
            yield Insertion(self.texts[0], edited.removesuffix(self.text))
        elif edited.startswith(self.text) and self.texts:
            yield Insertion(self.texts[-1], edited.removeprefix(self.text), at_end=True)
        elif self.part_type and not self.texts:  # only images, for example
            yield Insertion((*self.item, "content"), edited.rstrip(), part_type=self.part_type)
        else:
            raise Unreadable("a method rewrites a message, and text can only be added to it")


@dataclass(frozen=True)
class ChatRequest:
    """The body of a request, and the messages in it.

    Attributes:
        document: the body as it came; "" if only the parsed body is known.
    """

    api: Api
    body: Mapping[str, Any]
    messages: tuple[LocatedMessage, ...]
    document: str = ""

    @property
    def tokens(self) -> int:
        """The length of the messages, estimated from their bytes."""
        return estimated_tokens(message.text for message in self.messages)

    @property
    def system(self) -> str:
        """The system prompt; "" if there is none."""
        texts = [message.text for message in self.messages if message.role == "system"]
        return "\n\n".join(filter(str.strip, texts))

    @property
    def ends_with_user(self) -> bool:
        """Whether the user spoke last; otherwise an agent continues after the result of a tool."""
        return bool(self.messages) and self.messages[-1].role == "user"

    @property
    def is_stored(self) -> bool:
        """Whether the server keeps the dialog so far, or messages of it that the request lacks."""
        if any(self.body.get(name) for name in ("previous_response_id", "conversation")):
            return True
        items = objects_in(self.body.get("input"))
        return any(item.get("type") == "item_reference" for item in items)

    @property
    def is_in_background(self) -> bool:
        """Whether the server makes the reply after it has answered, and the client fetches it."""
        return bool(self.body.get("background"))

    @property
    def chat(self) -> list[Message]:
        """The messages as methods take them, each with its position."""
        return [
            {"role": message.role, "content": message.text, "position": position}
            for position, message in enumerate(self.messages)
        ]

    def changes_to(self, edited: Sequence[Message]) -> tuple[JsonEdit, ...]:
        """Returns the changes that turn the messages into `edited`, which was made from `chat`.

        Raises:
            Unreadable: that takes more than adding text and leaving out messages.
        """
        positions: list[int] = [message.get("position", -1) for message in edited]
        if -1 in positions or positions != sorted(set(positions)):
            raise Unreadable("a method adds messages, and only text can be added")
        contents = {message["position"]: str(message["content"]) for message in edited}
        changes = list[JsonEdit]()
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
        """The messages as events of a transcript."""
        if self.api is Api.CHAT:
            return input_messages(self.body["messages"])
        prompt = system_prompt(self.body.get("instructions"))
        return [*prompt, *input_messages(self.body["input"])]


def read_request(api: Api, document: str) -> ChatRequest:
    """Reads the body of a request.

    Raises:
        Unreadable: it is no request to this API; the server will report that.
    """
    try:
        body = json.loads(document)
    except (ValueError, RecursionError):
        raise Unreadable("it is not JSON") from None
    return replace(request_from_body(api, body), document=document)


def request_from_body(api: Api, body: Any) -> ChatRequest:
    """Reads a parsed body; raises `Unreadable` as `read_request` does."""
    field = "messages" if api is Api.CHAT else "input"
    if not isinstance(body, dict):
        raise Unreadable("it is not an object")
    items = body.get(field)
    if api is Api.RESPONSES and isinstance(items, str):
        located = [LocatedMessage("user", items, (field,), ((field,),), "")]
    elif isinstance(items, list):
        located = [
            _locate(item, (field, position), api)
            for position, item in enumerate(items)
            if isinstance(item, dict)
        ]
    else:
        raise Unreadable(f"it has no {field}")
    if isinstance(prompt := body.get("instructions"), str) and api is Api.RESPONSES:
        path = ("instructions",)
        located.insert(0, LocatedMessage("system", prompt, path, (path,), ""))
    return ChatRequest(api, body, tuple(located))


def _locate(message: Mapping[str, Any], item: JsonPath, api: Api) -> LocatedMessage:
    """Locates the texts of an item: a message, or in the Responses API a tool call or result."""
    content = message.get("content")
    role = str(message.get("role") or _ITEM_ROLES.get(str(message.get("type")), "tool"))
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
