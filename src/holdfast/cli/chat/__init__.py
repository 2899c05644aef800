"""`holdfast chat`: talk with a model in the terminal, and steer it on the way."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from holdfast.cli.options import add_model, check_extra, load_model

if TYPE_CHECKING:
    from holdfast.cli.chat.talk import Chat

EXAMPLES = """examples:
  holdfast chat --system "Always reply in French."
  holdfast chat --model http://127.0.0.1:8000/v1 --method boost:factor=4
  holdfast chat --messages dialog.json

In the chat, /help lists the commands; Tab completes them. Ctrl-C stops a reply, Ctrl-D ends.
Where the input is no terminal, each line is a message or a command, and what is refused ends it."""


def add_parser(commands) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk with a model in the terminal",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXAMPLES,
        description="A chat in the terminal: steer it, compare methods, and see the mass.",
    )
    add = chat.add_argument
    add_model(add)
    add("--system", metavar="TEXT", help="the system prompt (default: none)")
    add("--messages", metavar="FILE", help="a dialog to go on with, as /save writes it")
    add("--method", metavar="SPEC", default="none", help="as of /method (default: %(default)s)")
    add(
        "--system-as",
        choices=("role", "first-user"),
        default="role",
        help="the system prompt's place: its own role, or the first user message (default: role)",
    )
    add("--temperature", type=float, default=1.0, help="of sampling (default: %(default)s)")
    add("--top-p", type=float, default=0.9, help="nucleus sampling (default: %(default)s)")
    add(
        "--max-new-tokens",
        type=int,
        default=400,
        help="the most tokens of a reply (default: %(default)s)",
    )
    add("--seed", type=int, default=0, help="the same gives the same chat (default: %(default)s)")
    add("--no-history", action="store_true", help="keep no history of what was typed")
    chat.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    check_extra("chat", ("rich", "prompt_toolkit"))
    from holdfast.cli.chat.commands import load, set_method, set_system, take
    from holdfast.cli.chat.dialog import Dialog
    from holdfast.cli.chat.screen import Screen
    from holdfast.cli.chat.talk import Chat
    from holdfast.methods import parse
    from holdfast.sampling import Sampling

    sampling = Sampling(arguments.temperature, arguments.top_p, arguments.max_new_tokens)
    parse(arguments.method)  # what is wrong with it is said before the model loads
    dialog = Dialog(sampling, arguments.seed, arguments.system_as)
    chat = Chat(load_model(arguments), dialog, Screen())
    if arguments.messages:
        load(chat, arguments.messages)
    if arguments.system is not None:
        set_system(chat, arguments.system)
    if arguments.method != "none":
        set_method(chat, arguments.method)
    if sys.stdin.isatty():
        _talk(chat, history=not arguments.no_history)
    else:
        for line in sys.stdin:
            take(chat, line.rstrip("\n"))
            if chat.over:
                return


def _talk(chat: Chat, *, history: bool) -> None:
    """Reads from a terminal until Ctrl-D or /quit; what is refused is said, and the chat goes
    on.
    """
    from holdfast.cli.chat.commands import take
    from holdfast.cli.chat.typing import Typing
    from holdfast.errors import HoldfastError

    typing = Typing(chat.screen, history)
    chat.screen.notice(f"{chat.model.name}; /help lists the commands, Ctrl-D ends.")
    while not chat.over and (line := typing.read()) is not None:
        try:
            take(chat, line)
        except HoldfastError as error:
            chat.screen.refuse(error.on_command_line)
