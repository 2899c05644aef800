"""`holdfast generate`: answer one chat."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel

from holdfast.chat.emphasis import read_marks
from holdfast.chat.messages import Message, has_prompt
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.notes import note, printable
from holdfast.cli.shared.options import (
    DrawOptions,
    MethodOptions,
    ModelOptions,
    SystemOptions,
)
from holdfast.errors import HoldfastError, UsageError, reason_of
from holdfast.generation.sampling import NO_CONTENT
from holdfast.models.engine_choice import Work
from holdfast.models.protocol import ChatModel
from holdfast.models.requests import Reply, Request
from holdfast.models.streaming import stream_text

EXAMPLES = """examples:
  holdfast generate --system "Reply in French." --user "Do you like it?" --method boost:factor=4
  echo "Do you like the garden?" | holdfast generate --system "Reply in French."
  holdfast generate --messages chat.json --method boost:factor=4
  holdfast generate --user "Name a job in JSON." --emphasis "in JSON" --method boost:factor=4
  holdfast generate --user "Name a job *in JSON*." --marks --method boost:factor=4"""


class ReplyDocument(BaseModel):
    """A reply, why it stopped, and the model that gave it."""

    text: str
    stop_reason: str
    model: str


class GenerateArguments(ModelOptions, MethodOptions, SystemOptions, DrawOptions):
    work: ClassVar[Work] = "chat"

    system: Annotated[str | None, Arg("TEXT")] = None
    """the system prompt (default: none)"""
    user: Annotated[str | None, Arg("TEXT")] = None
    """the user's message"""
    messages: Annotated[str | None, Arg("FILE")] = None
    """the whole chat, in place of --system and --user: a JSON list of {"role": ..., "content":
    ...}; - reads standard input"""
    emphasis: Annotated[list[list[str]] | None, Arg(("TEXT", "OCCURRENCE"), nargs="+")] = None
    """emphasise this text in place of the system prompt; repeatable; give its occurrence, from 1,
    if it is in the chat more than once"""
    marks: bool = False
    r"""*like this* in a message is emphasis; \* is an asterisk"""
    continue_final_message: bool = False
    """continue the last message of --messages, the assistant's, in place of answering it"""


def run(arguments: GenerateArguments) -> None:
    request = Request(
        _read_messages(arguments),
        arguments.method,
        arguments.sampling_for(arguments.model),
        arguments.seed,
        system_as=arguments.system_as,
        emphasis=tuple(map(_parse_emphasis, arguments.emphasis or ())),
        marks=arguments.marks,
        continue_final_message=arguments.continue_final_message,
    )
    _refuse_without_effect(request, arguments)
    model = load_model(arguments)
    reply = _stream(model, request)
    if reply.stop_reason in NO_CONTENT:
        note(f"The reply has no content ({reply.stop_reason}).")
    write_document(ReplyDocument(text=reply.text, stop_reason=reply.stop_reason, model=model.name))


def _stream(model: ChatModel, request: Request) -> Reply:
    """Prints a reply as it is generated, and ends its line even if the reply breaks off."""
    has_begun = False

    def write(piece: str) -> None:
        nonlocal has_begun
        has_begun = has_begun or bool(piece)
        print(printable(piece), end="", flush=True)

    try:
        reply = stream_text(model, request, write)
    except HoldfastError:
        if has_begun:
            print(flush=True)
        raise
    print()
    return reply


def _read_messages(arguments: GenerateArguments) -> list[Message]:
    """The chat of --messages, or of --system and --user; without --user, reads stdin."""
    if arguments.messages:
        if arguments.system or arguments.user is not None:
            raise UsageError("--messages is the whole chat; leave out --system and --user.")
        return list(read_chat_file(arguments.messages, "--messages")["messages"])
    user = arguments.user
    if user is None:
        if sys.stdin.isatty():
            raise UsageError("There is no message to answer; give --user TEXT or --messages FILE.")
        user = sys.stdin.read().strip()
        if not user:
            raise UsageError("Standard input holds no message; give --user TEXT.")
    if not user.strip():
        raise UsageError(f"--user is {user!r}, which holds no message; give it a text.")
    messages = [{"role": "system", "content": arguments.system}] if arguments.system else []
    return [*messages, {"role": "user", "content": user}]


def read_chat_file(name: str, source: str) -> dict[str, Any]:
    """Reads a chat from a JSON file: a list of messages, or an object with "messages".

    Args:
        name: the file; "-" reads standard input.
        source: the option that names it, for the error.

    Returns:
        The object. Its other fields, and the messages themselves, are not checked.
    """
    cure = "give a JSON list of messages, each with a role and a content."
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        chat = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{source} {name} cannot be read ({reason_of(error)}); {cure}") from error
    chat = chat if isinstance(chat, dict) else {"messages": chat}
    if not isinstance(chat.get("messages"), list):
        raise UsageError(f"{source} {name} holds no list; {cure}")
    return chat


def _refuse_without_effect(request: Request, arguments: GenerateArguments) -> None:
    """Refuses options that could have no effect, before a model is loaded."""
    request.compiled.refuse_without_suite()
    if request.emphasis and not request.methods:
        raise UsageError(
            "Emphasis says what a method should stress, and there is no method; add --method, such"
            " as boost:factor=4."
        )
    untargeted = request.compiled.lacking_target(
        prompted=has_prompt(request.messages),
        emphasised=bool(request.emphasis),
    )
    if untargeted:
        if untargeted.needs_system_prompt:
            cure = "give --system"
        else:
            cure = "give --system, or --emphasis with a text of the chat"
        raise UsageError(
            f"--method {untargeted.spec} works on the system prompt, and this chat has none;"
            f" {cure}."
        )
    if not arguments.marks and _has_marks(request.messages):
        note("asterisks are plain text here; with --marks, *like this* is emphasis.")


def _has_marks(messages: Sequence[Message]) -> bool:
    try:
        return bool(read_marks(messages)[1])
    except HoldfastError:  # a single asterisk, which marks nothing
        return False


def _parse_emphasis(words: Sequence[str]) -> str | tuple[str, int]:
    """The words of one --emphasis: a text, perhaps with its occurrence."""
    if len(words) == 1:
        return words[0]
    if len(words) > 2 or not words[1].isdecimal():
        raise UsageError(
            f"--emphasis takes a text and at most its occurrence, not {' '.join(words)!r}; put the"
            " text into quotes, and repeat the option."
        )
    return words[0], int(words[1])


COMMAND = Command(
    "generate",
    run,
    GenerateArguments,
    description=(
        "Answers one chat, steered by methods that keep the model on its system prompt, or on the"
        " emphasised parts.\nWithout --user and --messages, the user's message is read from"
        " standard input."
    ),
    examples=EXAMPLES,
    common=("model", "system", "user", "messages", "method"),
)
