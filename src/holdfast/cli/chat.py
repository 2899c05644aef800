"""`holdfast chat`: talk with a model in the terminal, and steer it on the way."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import escape, glob
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from holdfast.cli.generate import read_chat
from holdfast.cli.options import add_draws, add_model, add_system_as, check_extra, load_model
from holdfast.cli.termination import Terminated
from holdfast.errors import HoldfastError, ModelError, UnknownName, UsageError

if TYPE_CHECKING:
    from holdfast.chat.messages import Message
    from holdfast.methods import Method
    from holdfast.models.requests import Request
    from holdfast.sampling import Sampling

    Setting = tuple[Method, ...]

EXAMPLES = """examples:
  holdfast chat --system "Always reply in French."
  holdfast chat --model http://127.0.0.1:8000/v1 --method boost:factor=4
  holdfast chat --messages dialog.json

In the chat, /help lists the commands; Tab completes them. Ctrl-C stops a reply, Ctrl-D ends.
Where the input is no terminal, each line is a message or a command, and what is refused ends it."""

_BAR = 40  # characters of the longest one
BOLD, RED = 1, 31  # as a terminal numbers styles
_ENDINGS = {  # how a reply ended that did not simply stop
    "stopped": "stopped",
    "length": "cut off at --max-new-tokens, or where the model's context ends",
    "empty": "no content",
    "refusal": "a refusal",
    "tool_calls": "a tool was called",
}


def add_parser(commands) -> None:
    chat = commands.add_parser(
        "chat",
        help="talk with a model in the terminal",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EXAMPLES,
        description="A chat in the terminal: steer it, compare methods, and see the mass.",
    )
    add = chat.option
    add_model(add)
    add("--system", str, "the system prompt (default: none)", metavar="TEXT")
    add("--messages", str, "a dialog to go on with, as /save writes it", metavar="FILE")
    add("--method", "none", "as of /method", metavar="SPEC")
    add_system_as(add)
    add_draws(add)
    add("--no-history", bool, "keep no history of what was typed")
    chat.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    check_extra("chat", ["prompt_toolkit"])
    from holdfast.methods import parse
    from holdfast.sampling import Sampling

    sampling = Sampling(arguments.temperature, arguments.top_p, arguments.max_new_tokens)
    parse(arguments.method)  # refused before the model loads
    chat = Chat(load_model(arguments), Screen(), sampling, arguments.seed, arguments.system_as)
    if arguments.messages:
        load(chat, arguments.messages)
    if arguments.system is not None:
        set_system(chat, arguments.system)
    if arguments.method != "none":
        set_method(chat, arguments.method)
    if not sys.stdin.isatty():
        for line in sys.stdin:
            take(chat, line.rstrip("\n"))
            if chat.over:
                return
        return
    read = _reader(chat, history=not arguments.no_history)
    chat.screen.notice(f"{chat.model.name}; /help lists the commands, Ctrl-D ends.")
    while not chat.over and (typed := read()) is not None:
        try:
            take(chat, typed)
        except HoldfastError as error:
            chat.screen.notice(str(error), RED)


class Screen:
    """The standard output; notices go to the error output where it is no terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    def notice(self, text: str, style: int = 2) -> None:
        self.line(text, style, sys.stdout if self.is_terminal else sys.stderr)

    def line(self, text: str, style: int = 0, file: TextIO | None = None) -> None:
        """Prints a line: on a terminal in a style, as its codes number them."""
        text = printable(text)
        styled = f"\x1b[{style}m{text}\x1b[0m" if style and self.is_terminal else text
        print(styled, file=file or sys.stdout, flush=True)


def printable(text: str) -> str:
    """Text without what a terminal obeys: other control characters than tabs and line breaks, and
    half pairs of surrogates, become spaces.
    """
    return "".join(ch if ch in "\t\n" or ch.isprintable() else " " for ch in text)


class Heard(NamedTuple):
    """A reply, as far as it came: its stop reason is "stopped" after Ctrl-C."""

    text: str
    masses: tuple[float, ...] = ()
    ending: str = "stopped"


@dataclass
class Chat:
    """A chat in the terminal.

    Args:
        model, screen: that answers, and where it is shown.
        sampling, seed, system_as: of all replies.
        messages: so far.
        methods: of the next replies.
        emphasis: the ranges to hold on to, in place of the system prompt.
        awaited: texts to emphasise in the next message.
        masses: by round, the method and the mass at each token of the reply.
        attempt: how often the last message was answered before.
        comparing: the methods under which the next message is answered; () for `methods`.
        compared: the chat that was answered under several methods, and their replies.
        over: whether it has come to its end.
    """

    model: Any
    screen: Screen
    sampling: Sampling
    seed: int = 0
    system_as: str = "role"
    messages: tuple[Message, ...] = ()
    methods: Setting = ()
    emphasis: tuple[tuple[int, int, int], ...] = ()
    awaited: tuple[str, ...] = ()
    masses: dict[int, tuple[str, tuple[float, ...]]] = field(default_factory=dict)
    attempt: int = 0
    comparing: tuple[Setting, ...] = ()
    compared: tuple[tuple[Message, ...], Sequence[tuple[Setting, Heard]]] | None = None
    over: bool = False

    def __post_init__(self) -> None:
        from holdfast.methods import Ability
        from holdfast.models.capabilities import offers

        self.session = self.model.session() if offers(self.model, Ability.LAYERS) else None
        self.shows_mass = offers(self.model, Ability.LOG_ODDS)

    @property
    def last(self) -> tuple[Message, ...]:
        """The chat up to the last user message; () where there is none."""
        users = [n for n, message in enumerate(self.messages) if message["role"] == "user"]
        return self.messages[: users[-1] + 1] if users else ()

    def with_message(self, text: str) -> tuple[Message, ...]:
        """The chat with a new user message, in which awaited texts become emphasis."""
        from holdfast.chat.emphasis import resolve

        messages = (*self.messages, {"role": "user", "content": text})
        awaited, self.awaited = self.awaited, ()
        self.emphasis = resolve(messages, (*self.emphasis, *awaited))
        return messages

    def reply(self, messages: tuple[Message, ...], attempt: int) -> None:
        """Answers a chat, which then goes on behind the reply."""
        heard = self.ask(messages, self.methods, attempt)
        self.compared, self.attempt = None, attempt
        if heard.text or heard.ending != "stopped":
            self.hear(messages, heard)

    def hear(self, messages: tuple[Message, ...], heard: Heard) -> None:
        """Takes a reply into the chat."""
        from holdfast.methods import spell

        number = _rounds(messages)
        self.masses = {n: entry for n, entry in self.masses.items() if n < number}
        self.masses[number] = spell(self.methods), heard.masses
        self.messages = (*messages, {"role": "assistant", "content": heard.text})

    def ask(self, messages: Sequence[Message], methods: Setting, attempt: int = 0) -> Heard:
        """A reply, shown as it comes; Ctrl-C stops it."""
        from holdfast.chat.streaming import Pieces

        request, text = self._request(messages, methods, attempt), ""

        def tell(piece: str) -> None:
            nonlocal text
            text += piece
            print(printable(piece), end="", flush=True)

        try:
            if self.session is None:
                reply = self.model.stream(request, tell)
            else:
                pieces = Pieces(self.model.tokenizer, tell)
                reply = self.session.generate(request, drawn=pieces.add)
                pieces.finish(reply.text)
            heard = Heard(reply.text, reply.token_masses, reply.stop_reason)
        except Terminated:
            raise
        except KeyboardInterrupt:
            heard = Heard(text)
        finally:
            print(flush=True)
        if heard.ending in _ENDINGS:
            self.screen.notice(f"({_ENDINGS[heard.ending]})")
        return heard

    def _request(self, messages: Sequence[Message], methods: Setting, attempt: int) -> Request:
        """A request in the thread of its methods, so that nothing is computed twice."""
        from holdfast.methods import spell
        from holdfast.models.requests import Request
        from holdfast.seeds import seed_of

        return Request(
            messages,
            methods,
            self.sampling,
            seed_of("chat", self.seed, _rounds(messages), attempt),
            conversation_seed=seed_of("chat methods", self.seed),
            thread=spell(methods),
            keep=True,
            trace=self.shows_mass,
            system_as=self.system_as,
            emphasis=tuple(part for part in self.emphasis if part[0] < len(messages)),
        )


def _rounds(messages: Sequence[Message]) -> int:
    return sum(message["role"] == "user" for message in messages)


def take(chat: Chat, typed: str) -> None:
    """Takes what was typed: a command, a message, or nothing.

    Raises:
        HoldfastError: it is refused; the chat is as it was.
    """
    from holdfast.methods import spell

    if typed.startswith("/"):
        name, _, rest = typed[1:].partition(" ")
        if name not in BY_NAME:
            raise UnknownName("command", f"/{name}", [f"/{known}" for known in BY_NAME])
        if rest.strip() and not BY_NAME[name].takes:
            raise UsageError(f"/{name} takes nothing behind it, not {rest.strip()!r}.")
        BY_NAME[name].run(chat, rest.strip())
    elif chat.comparing:
        settings, chat.comparing = chat.comparing, ()
        messages = chat.with_message(typed) if typed.strip() else chat.last
        if not messages:
            raise UsageError("There is no message to compare replies to; type one first.")
        replies = []
        for number, setting in enumerate(settings, 1):
            chat.screen.line(f"{number} {spell(setting)}", BOLD)
            replies.append((setting, chat.ask(messages, setting)))
        chat.compared = messages, replies
        chat.screen.notice("None of them is part of the dialog; /keep NUMBER takes one in.")
    elif typed.strip():
        chat.reply(chat.with_message(typed), attempt=0)


def _setting(chat: Chat, spec: str) -> Setting:
    from holdfast.methods import parse

    chat.model.check(methods := parse(spec))
    return methods


def set_method(chat: Chat, spec: str) -> None:
    from holdfast.methods import holds_span, spell
    from holdfast.methods.registry import METHODS

    chat.methods = _setting(chat, spec) if spec else chat.methods
    known = f"; there are {', '.join(m.name for m in METHODS)} and none." if not spec else ""
    chat.screen.notice(f"method: {spell(chat.methods)}{known}")
    system = any(m["role"] == "system" and m["content"].strip() for m in chat.messages)
    if any(map(holds_span, chat.methods)) and not (system or chat.emphasis or chat.awaited):
        chat.screen.notice("It has nothing to hold on to yet; give /system or /emphasis.")


def compare(chat: Chat, specs: str) -> None:
    settings = tuple(_setting(chat, spec) for spec in specs.split())
    if len(settings) < 2 or len(set(settings)) < len(settings):
        raise UsageError(
            "/compare takes two methods or more, each once, with blanks between, as in"
            f" /compare none boost:factor=4, not {specs!r}."
        )
    chat.comparing = settings
    again = "; an empty line takes the last one" if chat.last else ""
    chat.screen.notice(f"The next message is answered under each{again}.")


def keep(chat: Chat, number: str) -> None:
    if chat.compared is None:
        raise UsageError("There is no comparison to keep a reply of; begin with /compare.")
    messages, replies = chat.compared
    if not number.isdecimal() or not 1 <= int(number) <= len(replies):
        raise UsageError(f"/keep takes a number from 1 to {len(replies)}, not {number!r}.")
    chat.methods, heard = replies[int(number) - 1]
    chat.compared, chat.attempt = None, 0
    chat.hear(messages, heard)
    chat.screen.notice(f"The dialog goes on from reply {number}, under its method.")


def show_mass(chat: Chat, _: str) -> None:
    if not chat.shows_mass:
        raise ModelError(
            f"{chat.model.name} gives no attention mass; use a local model whose attention can be"
            " reached, or a server that steers (`holdfast serve`)."
        )
    rows = [(n, method, masses) for n, (method, masses) in chat.masses.items() if masses]
    if not rows:
        raise UsageError(
            "No reply here has a mass yet; it is that on the system prompt, or on the emphasis, at"
            " each token of a reply."
        )
    means = [sum(masses) / len(masses) for _, _, masses in rows]
    span = "emphasis" if chat.emphasis else "system prompt"
    chat.screen.line(f"Attention mass on the {span}, mean over all heads, by round", BOLD)
    width, screen = max(len(method) for _, method, _ in rows), chat.screen.width
    for (number, method, _tokens), mean in zip(rows, means, strict=True):
        drawn = bar(mean, max(means), min(_BAR, max(8, screen - width - 14)))
        chat.screen.line(f"{number:>3}  {method:<{width}}  {mean:.3f}  {drawn}")
    tokens = rows[-1][2]
    extent = f"from {min(tokens):.3f} to {max(tokens):.3f}"
    chat.screen.line(f"The last reply, {len(tokens)} tokens, {extent}", BOLD)
    chat.screen.line(sparkline(tokens, screen))


def bar(value: float, most: float, width: int) -> str:
    """A bar of at most `width` characters, as long as `value` is of `most`."""
    whole, rest = divmod(round(8 * width * min(1.0, value / most)) if most > 0 else 0, 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()


def sparkline(values: Sequence[float], width: int) -> str:
    """Values from 0 as heights, at most `width`: where there are more, means of neighbours."""
    if (count := len(values)) > width:
        ends = [count * n // width for n in range(width + 1)]
        groups = [values[a:b] for a, b in pairwise(ends)]
        values = [sum(group) / len(group) for group in groups]
    most = max(values, default=0) or 1
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * value / most))] for value in values)


def set_system(chat: Chat, text: str) -> None:
    rest = tuple(message for message in chat.messages if message["role"] != "system")
    lost = "; nothing is emphasised any longer" if chat.emphasis or chat.awaited else ""
    chat.messages = ({"role": "system", "content": text}, *rest) if text else rest
    chat.emphasis, chat.awaited, chat.compared = (), (), None  # emphasis counts messages
    chat.screen.notice((f"system prompt: {text}" if text else "no system prompt") + lost)


def emphasise(chat: Chat, text: str) -> None:
    from holdfast.chat.emphasis import resolve

    count = sum(message["content"].count(text) for message in chat.messages)
    if not text:
        chat.emphasis, chat.awaited = (), ()
        chat.screen.notice("nothing is emphasised")
    elif count > 1:
        raise UsageError(
            f"{text!r} occurs {count} times in the chat; give more of the text around it."
        )
    elif count:
        chat.emphasis = resolve(chat.messages, (*chat.emphasis, text))
        chat.screen.notice(f"emphasised: {text}")
    else:
        chat.awaited = (*chat.awaited, text)
        chat.screen.notice(f"emphasised in the next message: {text}")


def retry(chat: Chat, _: str) -> None:
    if not chat.last:
        raise UsageError("There is no message to answer again; type one first.")
    chat.reply(chat.last, attempt=chat.attempt + 1)


def save(chat: Chat, name: str) -> None:
    from holdfast.files import write_whole
    from holdfast.methods import spell

    path = _path("save", name)
    dialog: dict[str, Any] = {"messages": chat.messages, "method": spell(chat.methods)}
    if chat.emphasis:
        dialog["emphasis"] = chat.emphasis
    text = json.dumps(dialog, indent=1, ensure_ascii=False) + "\n"
    try:
        write_whole(path, text.encode(errors="replace"))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror}); name another file."
        ) from None
    chat.screen.notice(f"saved: {path}")


def load(chat: Chat, name: str) -> None:
    from holdfast.chat.emphasis import resolve
    from holdfast.chat.messages import check_message
    from holdfast.methods import parse, spell

    dialog = read_chat(str(_path("load", name)), "The dialog")
    messages = tuple(dialog["messages"])
    for number, message in enumerate(messages, 1):
        check_message(number, message)
    emphasis = resolve(messages, [tuple(part) for part in dialog.get("emphasis", ())])
    methods = parse(dialog["method"]) if "method" in dialog else chat.methods
    if messages and messages[-1]["role"] == "user":
        raise UsageError(
            "The dialog ends with a user's message; leave it out, and type it in the chat."
        )
    chat.model.check(methods)
    chat.messages, chat.methods, chat.emphasis = messages, methods, emphasis
    chat.awaited, chat.masses, chat.attempt, chat.compared = (), {}, 0, None
    chat.screen.notice(f"loaded: {len(messages)} messages, method {spell(methods)}")


def _path(command: str, name: str) -> Path:
    if not name:
        raise UsageError(f"/{command} takes the name of a file, as in /{command} dialog.json.")
    return Path(name).expanduser()


def show_help(chat: Chat, _: str) -> None:
    width = max(len(command.usage) for command in COMMANDS)
    for command in COMMANDS:
        chat.screen.line(f"{command.usage:<{width}}  {command.help}")


def leave(chat: Chat, _: str) -> None:
    chat.over = True


class Command(NamedTuple):
    """A command of a chat: its name, the argument that it takes, a line of help, and what it does
    with the chat and the argument.
    """

    name: str
    takes: str
    help: str
    run: Callable[[Chat, str], None]

    @property
    def usage(self) -> str:
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


def _reader(chat: Chat, *, history: bool) -> Callable[[], str | None]:
    """Reads the next line from a terminal: None at Ctrl-D; Ctrl-C empties the line."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.history import FileHistory

    class Completing(Completer):
        def get_completions(self, document: Any, event: object) -> Iterator[Completion]:
            for text, begun, meaning in completions(document.text_before_cursor):
                yield Completion(text, -len(begun), display_meta=meaning)

    path = _history_file(chat.screen) if history else None
    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(path) if path else None,
        completer=Completing(),
        complete_while_typing=False,
    )

    def read() -> str | None:
        while True:
            try:
                return prompt.prompt("> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return None

    return read


def completions(typed: str) -> Iterator[tuple[str, str, str]]:
    """Words that may stand in place of the last one: each, its beginning, and what it means."""
    name, blank, rest = typed.partition(" ")
    if name.startswith("/") and not blank:
        for command in COMMANDS:
            yield from _matching(f"/{command.name}", name, command.help)
    elif name in ("/method", "/compare"):
        yield from _method_completions(rest.split(" ")[-1].split("+")[-1])
    elif name in ("/save", "/load"):
        for path in sorted(glob(f"{escape(os.path.expanduser(rest))}*")):
            yield path, rest, ""


def _method_completions(begun: str) -> Iterator[tuple[str, str, str]]:
    """A method with the parameters that it needs, or, behind its colon, another parameter."""
    from holdfast.methods.parameters import parameters_of, required_parameters
    from holdfast.methods.registry import BY_NAME, METHODS, summary

    name, colon, given = begun.partition(":")
    if colon and name in BY_NAME:
        for parameter, declared in parameters_of(BY_NAME[name]).items():
            text, last = f"{parameter}={declared.example}", given.split(",")[-1]
            yield from _matching(text, last, declared.description)
        return
    for method in METHODS:
        known = parameters_of(method)
        spec = ",".join(f"{name}={known[name].example}" for name in required_parameters(method))
        yield from _matching(f"{method.name}:{spec}", begun, summary(method))
    yield from _matching("none", begun, "the model as it is")


def _matching(text: str, begun: str, meaning: str) -> Iterator[tuple[str, str, str]]:
    if text.startswith(begun):
        yield text, begun, meaning


def _history_file(screen: Screen) -> str | None:
    """The history in the user's state folder, which nobody else may read."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(state) / "holdfast" / "chat_history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.open(mode="r+").close()  # raises where it is read-only
    except OSError as error:
        screen.notice(f"No history is kept: {path} cannot be written ({error.strerror}).")
        return None
    return str(path)
