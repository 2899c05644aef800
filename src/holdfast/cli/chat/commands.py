"""What is typed in a chat: messages, and commands, which are in one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.cli.chat.blocks import bar, line
from holdfast.cli.chat.talk import Chat, Setting
from holdfast.cli.generate import read_chat
from holdfast.errors import ModelError, UnknownName, UsageError
from holdfast.methods import holds_span, parse, spell
from holdfast.methods.registry import METHODS

_BAR = 40  # characters


def set_method(chat: Chat, spec: str) -> None:
    if not spec:
        known = ", ".join(method.name for method in METHODS)
        chat.screen.notice(f"method: {spell(chat.dialog.methods)}; there are {known} and none.")
        return
    chat.dialog.methods = _read_setting(chat, spec)
    chat.screen.notice(f"method: {spell(chat.dialog.methods)}")
    if any(map(holds_span, chat.dialog.methods)) and not _held_on_to(chat):
        chat.screen.notice("It has nothing to hold on to yet; give /system or /emphasis.")


def compare(chat: Chat, specs: str) -> None:
    settings = tuple(_read_setting(chat, spec) for spec in specs.split())
    if len(settings) < 2 or len(set(settings)) < len(settings):
        raise UsageError(
            "/compare takes two methods or more, each once, with blanks between, as in"
            f" /compare none boost:factor=4, not {specs!r}."
        )
    chat.comparing = settings
    told = "; an empty line takes the last one" if chat.dialog.asked else ""
    chat.screen.notice(f"The next message is answered under each{told}.")


def keep(chat: Chat, number: str) -> None:
    if chat.compared is None:
        raise UsageError("There is no comparison to keep a reply of; begin with /compare.")
    count = len(chat.compared.heard)
    if not number.isdecimal() or not 1 <= int(number) <= count:
        raise UsageError(f"/keep takes a number from 1 to {count}, not {number!r}.")
    place, compared, chat.compared = int(number) - 1, chat.compared, None
    chat.dialog.methods = compared.settings[place]
    chat.dialog.attempt = 0
    chat.dialog.hear(compared.messages, spell(chat.dialog.methods), compared.heard[place])
    chat.screen.notice(f"The dialog goes on from reply {number}, under its method.")


def show_mass(chat: Chat, _: str) -> None:
    if not chat.tells_mass:
        raise ModelError(
            f"{chat.model.name} gives no attention mass; use a local model whose attention can be"
            " reached, or a server that steers (`holdfast serve`)."
        )
    turns = [turn for turn in chat.dialog.turns if turn.heard.masses]
    if not turns:
        raise UsageError(
            "No reply here has a mass yet; it is that on the system prompt, or on the emphasis, at"
            " each token of a reply."
        )
    means = [sum(turn.heard.masses) / len(turn.heard.masses) for turn in turns]
    held = "emphasis" if chat.dialog.emphasis else "system prompt"
    chat.screen.heading(f"Attention mass on the {held}, mean over all heads, by round")
    width = max(len(turn.method) for turn in turns)
    for turn, mean in zip(turns, means, strict=True):
        drawn = bar(mean, max(means), min(_BAR, max(8, chat.screen.width - width - 14)))
        chat.screen.line(f"{turn.round:>3}  {turn.method:<{width}}  {mean:.3f}  {drawn}")
    masses = turns[-1].heard.masses
    chat.screen.heading(
        f"The last reply, {len(masses)} tokens, from {min(masses):.3f} to {max(masses):.3f}"
    )
    chat.screen.line(line(masses, chat.screen.width))


def set_system(chat: Chat, text: str) -> None:
    given_up = bool(chat.dialog.emphasis or chat.dialog.awaited)
    chat.dialog.set_system(text)
    chat.compared = None
    also = "; nothing is emphasised any longer" if given_up else ""
    chat.screen.notice(f"system prompt: {text}{also}" if text else f"no system prompt{also}")


def emphasise(chat: Chat, text: str) -> None:
    if not text:
        chat.dialog.emphasis, chat.dialog.awaited = (), ()
        chat.screen.notice("nothing is emphasised")
    elif chat.dialog.emphasise(text):
        chat.screen.notice(f"emphasised: {text}")
    else:
        chat.screen.notice(f"emphasised in the next message: {text}")


def retry(chat: Chat, _: str) -> None:
    if not chat.dialog.asked:
        raise UsageError("There is no message to answer again; type one first.")
    chat.reply(chat.dialog.asked, attempt=chat.dialog.attempt + 1)


def save(chat: Chat, name: str) -> None:
    if not name:
        raise UsageError("/save takes the name of a file, as in /save dialog.json.")
    path = Path(name).expanduser()
    chat.dialog.write(path)
    chat.screen.notice(f"saved: {path}")


def load(chat: Chat, name: str) -> None:
    if not name:
        raise UsageError("/load takes the name of a file, as in /load dialog.json.")
    loaded = dataclasses.replace(chat.dialog)
    loaded.read(read_chat(str(Path(name).expanduser()), "The dialog"))
    chat.model.check(loaded.methods)
    chat.dialog, chat.compared = loaded, None
    count = len(loaded.messages)
    chat.screen.notice(f"loaded: {count} messages, method {spell(loaded.methods)}")


def show_help(chat: Chat, _: str) -> None:
    width = max(len(command.spelled) for command in COMMANDS)
    for command in COMMANDS:
        chat.screen.line(f"{command.spelled:<{width}}  {command.help}")


def leave(chat: Chat, _: str) -> None:
    chat.over = True


@dataclass(frozen=True)
class Command:
    """A command of a chat.

    Args:
        name: without its slash.
        takes: what follows it, for people; "" for nothing.
        help: one line.
        run: takes the chat and what follows the name.
    """

    name: str
    takes: str
    help: str
    run: Callable[[Chat, str], None]

    @property
    def spelled(self) -> str:
        """As it is typed."""
        return f"/{self.name} {self.takes}".rstrip()


COMMANDS = (
    Command("method", "SPEC", "steer from here on; none stops it", set_method),
    Command("compare", "SPEC SPEC ...", "answer the next message under each", compare),
    Command("keep", "NUMBER", "take a compared reply into the dialog", keep),
    Command("mass", "", "how much attention went to what is held on to", show_mass),
    Command("system", "TEXT", "another system prompt; without a text, none", set_system),
    Command("emphasis", "TEXT", "hold on to this text; without one, to none", emphasise),
    Command("retry", "", "answer the last message again", retry),
    Command("save", "FILE", "write the dialog", save),
    Command("load", "FILE", "go on with a dialog", load),
    Command("help", "", "this list", show_help),
    Command("quit", "", "end; so does Ctrl-D", leave),
)
BY_NAME = {command.name: command for command in COMMANDS}


def take(chat: Chat, typed: str) -> None:
    """Takes what was typed: a command, a message, or nothing.

    Raises:
        HoldfastError: it is refused; the dialog is as it was.
    """
    if typed.startswith("/"):
        _run(chat, typed)
    elif chat.comparing:
        chat.compare(typed)
    elif typed.strip():
        chat.reply(chat.dialog.with_message(typed), attempt=0)


def _run(chat: Chat, typed: str) -> None:
    """Runs a command as it was typed.

    Raises:
        UnknownName: there is none of this name.
        HoldfastError: what it raises.
    """
    name, _, rest = typed[1:].partition(" ")
    if name not in BY_NAME:
        raise UnknownName("command", f"/{name}", [f"/{known}" for known in BY_NAME])
    command = BY_NAME[name]
    if rest.strip() and not command.takes:
        raise UsageError(f"/{name} takes nothing behind it, not {rest.strip()!r}.")
    command.run(chat, rest.strip())


def _read_setting(chat: Chat, spec: str) -> Setting:
    methods = parse(spec)
    chat.model.check(methods)
    return methods


def _held_on_to(chat: Chat) -> bool:
    dialog = chat.dialog
    return bool(dialog.system.strip() or dialog.emphasis or dialog.awaited)
