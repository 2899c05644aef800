"""`holdfast chat`: chat with a model in the terminal, and steer it along the way."""

import sys
from typing import Annotated, ClassVar

from holdfast.cli.look_up.methods import example_of
from holdfast.cli.serve.chat_dialog import ChatDialog
from holdfast.cli.serve.reply_printer import RED, notice
from holdfast.cli.serve.terminal_chat import COMMANDS, Chat
from holdfast.cli.shared.command import Arg, Command
from holdfast.cli.shared.interrupts import Terminated
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.model_loading import load_model
from holdfast.cli.shared.options import (
    DrawOptions,
    MethodOptions,
    ModelOptions,
    SystemOptions,
)
from holdfast.errors import HoldfastError
from holdfast.extras import check_extra
from holdfast.methods import compile_methods, parse
from holdfast.methods.all_methods import METHODS
from holdfast.models.engine_choice import Work

EXAMPLES = """examples:
  holdfast chat --system "Always reply in French."
  holdfast chat --model http://127.0.0.1:8000/v1 --method boost:factor=4
  holdfast chat --messages dialog.json

In the chat, /help lists the commands; Tab completes them. Ctrl-C stops a reply, Ctrl-D the chat.
Without a terminal, each line of input is a message or a command;
one that is refused ends the chat."""


class ChatArguments(ModelOptions, MethodOptions, SystemOptions, DrawOptions):
    work: ClassVar[Work] = "chat"

    system: Annotated[str | None, Arg("TEXT")] = None
    """the system prompt (default: none)"""
    messages: Annotated[str | None, Arg("FILE")] = None
    """a dialog to continue, as /save writes it"""


def run(arguments: ChatArguments) -> None:
    check_extra("chat", "chat", ["prompt_toolkit"])
    # whatever can be refused without the model is refused before it is loaded
    compile_methods(parse(arguments.method)).refuse_without_suite()
    sampling = arguments.sampling_for(arguments.model)
    saved = None if arguments.messages is None else ChatDialog.read(arguments.messages)
    model = load_model(arguments)
    chat = Chat(model, sampling, arguments.seed, arguments.system_as)
    if saved is not None:
        chat.resume(saved)
    if arguments.system is not None:
        chat.system(arguments.system)
    if arguments.method != "none":
        chat.method(arguments.method)
    _talk(chat, model.name)
    write_document(chat.dialog)


def _talk(chat: Chat, model: str) -> None:
    """Reads messages and commands until the chat ends; `model` is the name that it shows."""
    if not sys.stdin.isatty():
        while not chat.is_over and (line := sys.stdin.readline()):
            chat.handle(line.rstrip("\n"))
        return
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter

    completer = WordCompleter(completions(), WORD=True)
    prompt: PromptSession[str] = PromptSession(completer=completer, complete_while_typing=False)
    notice(f"{model}; /help lists the commands, Ctrl-D ends the chat.")
    while not chat.is_over:
        try:
            chat.handle(prompt.prompt("> "))
        except HoldfastError as error:
            notice(str(error), RED)
        except EOFError:
            return
        except KeyboardInterrupt as interrupt:  # Ctrl-C empties the line
            if isinstance(interrupt, Terminated):
                raise


def completions() -> list[str]:
    """The words that Tab completes: the commands, and a spec of every method."""
    return [*(f"/{name}" for name in COMMANDS), "none", *map(example_of, METHODS)]


COMMAND = Command(
    "chat",
    run,
    ChatArguments,
    "Opens a chat in the terminal, in which you can steer the model, compare methods and see how"
    " much attention goes to the system prompt.",
    EXAMPLES,
    common=("model", "system", "method", "temperature"),
)
