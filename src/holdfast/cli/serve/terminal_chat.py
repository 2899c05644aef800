"""A chat in the terminal, and its commands such as `/method boost:factor=4`."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.chat.emphasis import Part, TextRange, resolve
from holdfast.chat.messages import Message, has_prompt
from holdfast.cli.serve.chat_dialog import ChatDialog, round_of
from holdfast.cli.serve.reply_printer import BOLD, ReplyPrinter, notice, show
from holdfast.cli.shared.notes import naming_new_folders
from holdfast.errors import ModelError, UnknownName, UsageError
from holdfast.files import write_whole
from holdfast.generation.sampling import Sampling
from holdfast.methods import Method, compile_methods, parse, spec_of
from holdfast.models.protocol import ChatModel
from holdfast.plurals import count_of

_BAR_WIDTH = 40  # of the longest bar of /mass


class ChatCommand(NamedTuple):
    """A command in the chat; the method of `Chat` with the same name runs it."""

    argument: str  # as the help shows it; "" if the command takes none
    help: str


COMMANDS = {
    "method": ChatCommand("SPEC", "steer from here on; none stops it"),
    "compare": ChatCommand("SPEC SPEC ...", "answer the next message under each"),
    "mass": ChatCommand("", "show how much attention went to the prompt or emphasis"),
    "system": ChatCommand("TEXT", "change the system prompt; without a text, remove it"),
    "emphasis": ChatCommand(
        "TEXT", "steer towards this text; without a text, the system prompt again"
    ),
    "retry": ChatCommand("", "answer the last message again"),
    "save": ChatCommand("FILE", "write the dialog to a file"),
    "help": ChatCommand("", "list the commands"),
    "quit": ChatCommand("", "end the chat, like Ctrl-D"),
}


class RoundMass(NamedTuple):
    """The attention mass at each token of a round's reply."""

    spec: str  # of the methods that steered the reply
    masses: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.masses) / len(self.masses)


class Chat:
    """A chat in the terminal; the methods named in `COMMANDS` are its commands.

    Attributes:
        is_over: whether the user has ended it.
    """

    def __init__(
        self, model: ChatModel, sampling: Sampling, seed: int = 0, system_as: str = "role"
    ):
        self.is_over = False
        self._model = model
        self._printer = ReplyPrinter(model, sampling, seed, system_as)
        self._dialog = ChatDialog()
        self._masses: dict[int, RoundMass] = {}  # by round
        self._attempt = 0  # how many times the last message was answered before
        self._to_compare: list[tuple[Method, ...]] = []  # the methods that /compare named

    def handle(self, line: str) -> None:
        """Handles a line that was typed: a command, a message, or nothing."""
        if line.startswith("/"):
            name, _, argument = line[1:].partition(" ")
            self._run_command(name, argument.strip())
        elif line.strip():
            self._answer((*self._dialog.messages, {"role": "user", "content": line}))

    def _run_command(self, name: str, argument: str) -> None:
        """Calls the method of a command, with an argument if the command takes one."""
        if name not in COMMANDS:
            raise UnknownName("command", f"/{name}", [f"/{command}" for command in COMMANDS])
        run_command = getattr(self, name)
        if COMMANDS[name].argument:
            run_command(argument)
        elif argument:
            raise UsageError(f"/{name} takes no argument, not {argument!r}.")
        else:
            run_command()

    def _answer(self, messages: tuple[Message, ...]) -> None:
        """Answers the last message, or shows its answer under each method of `/compare`."""
        emphasis = resolve(messages, self._dialog.emphasised)
        if not self._to_compare:
            self._add_reply(messages, emphasis)
            return
        steerings, self._to_compare = self._to_compare, []
        for number, methods in enumerate(steerings, 1):
            show(f"{number} {spec_of(methods)}", BOLD)
            self._printer.print_reply(messages, methods, emphasis)
        notice("None of these replies is part of the dialog; /method SPEC steers from here on.")

    def _add_reply(
        self, messages: tuple[Message, ...], emphasis: Sequence[Part], attempt: int = 0
    ) -> None:
        """Answers the last message, and adds it and the reply to the dialog.

        Args:
            attempt: how many times it was answered before.
        """
        methods = self._dialog.methods
        reply = self._printer.print_reply(messages, methods, emphasis, attempt)
        self._attempt = attempt
        if not reply.text and reply.stop_reason == "stopped":
            return  # ended before its first word, it leaves the dialog as it was
        if not attempt:  # texts to emphasise have now been found in messages of the dialog
            self._dialog = replace(self._dialog, emphasised=tuple(emphasis))
        current = round_of(messages)
        earlier = {number: mass for number, mass in self._masses.items() if number < current}
        self._masses = {**earlier, current: RoundMass(spec_of(methods), reply.token_masses)}
        # chat templates leave out the reasoning of earlier replies
        content = reply.without_reasoning().text or reply.text
        answered = (*messages, {"role": "assistant", "content": content})
        self._dialog = replace(self._dialog, messages=answered)

    @property
    def dialog(self) -> dict[str, Any]:
        """The dialog so far, as `/save` and `--json` write it."""
        return self._dialog.to_json()

    def resume(self, saved: ChatDialog) -> None:
        """Continues a saved dialog."""
        self._model.check(saved.methods)
        self._dialog = saved
        count = count_of(len(saved.messages), "message")
        notice(f"loaded: {count}, method {spec_of(saved.methods)}")

    def _parse(self, spec: str) -> tuple[Method, ...]:
        """Reads a spec, and refuses methods that the model cannot apply."""
        methods = parse(spec)
        compile_methods(methods).refuse_without_suite()
        self._model.check(methods)
        return methods

    # --- The commands in `COMMANDS`

    def method(self, spec: str) -> None:
        """Steers by a spec from here on; "" only shows the current one."""
        if spec:
            self._dialog = replace(self._dialog, methods=self._parse(spec))
        dialog = self._dialog
        notice(f"method: {spec_of(dialog.methods)}")
        lacks_target = compile_methods(dialog.methods).lacking_target(
            prompted=has_prompt(dialog.messages), emphasised=bool(dialog.emphasised)
        )
        if lacks_target:
            notice("There is nothing to steer towards yet; give /system or /emphasis.")

    def compare(self, specs: str) -> None:
        steerings = [self._parse(spec) for spec in specs.split()]
        if len(steerings) < 2 or len(set(steerings)) < len(steerings):
            raise UsageError(
                "/compare takes two methods or more, each once, separated by spaces, as in"
                f" /compare none boost:factor=4, not {specs!r}."
            )
        self._to_compare = steerings
        notice("The next message is answered under each.")

    def mass(self) -> None:
        """Shows the mass of the replies so far, by round."""
        if not self._printer.has_mass:
            raise ModelError(
                f"{self._model.name} gives no attention mass; use a local model whose attention can"
                " be read, or a server that steers (`holdfast serve`)."
            )
        measured = {number: mass for number, mass in self._masses.items() if mass.masses}
        if not measured:
            raise UsageError(
                "No reply has a mass yet: it is the attention to the system prompt or the emphasis"
                " while a reply is written. Send a message, under a system prompt or with emphasis."
            )
        span = "emphasis" if self._dialog.emphasised else "system prompt"
        show(f"Attention mass on the {span}, mean over all heads, by round", BOLD)
        highest = max(mass.mean for mass in measured.values())
        width = max(len(mass.spec) for mass in measured.values())
        for number, mass in measured.items():
            bar = "█" * round(_BAR_WIDTH * mass.mean / highest)
            show(f"{number:>3}  {mass.spec:<{width}}  {mass.mean:.3f}  {bar}")

    def system(self, text: str) -> None:
        had_emphasis = bool(self._dialog.emphasised)
        rest = tuple(message for message in self._dialog.messages if message["role"] != "system")
        messages = ({"role": "system", "content": text}, *rest) if text else rest
        # emphasis refers to messages by number, and these have changed
        self._dialog = replace(self._dialog, messages=messages, emphasised=())
        notice(f"system prompt: {text}" if text else "no system prompt")
        if had_emphasis:
            notice("nothing is emphasised any longer")

    def emphasis(self, text: str) -> None:
        dialog = self._dialog
        if not text:
            self._dialog = replace(dialog, emphasised=())
            notice("nothing is emphasised")
        elif any(text in message["content"] for message in dialog.messages):
            parts = resolve(dialog.messages, (text,))
            self._dialog = replace(dialog, emphasised=(*dialog.emphasised, *parts))
            notice(f"emphasised: {text}")
        else:
            self._dialog = replace(dialog, emphasised=(*dialog.emphasised, text))
            notice(f"emphasised in the next message: {text}")

    def retry(self) -> None:
        """Answers the last message again; the new reply replaces the old one."""
        messages = self._dialog.messages
        by_user = [n for n, message in enumerate(messages) if message["role"] == "user"]
        if not by_user:
            raise UsageError("There is no message to answer again; type one first.")
        messages = messages[: by_user[-1] + 1]
        # a text that has not been found yet is meant for the next message
        found = [part for part in self._dialog.emphasised if isinstance(part, TextRange)]
        emphasis = [part for part in found if part.message < len(messages)]
        self._add_reply(messages, emphasis, self._attempt + 1)

    def save(self, name: str) -> None:
        if not name:
            raise UsageError("/save takes the name of a file, as in /save dialog.json.")
        path = Path(name).expanduser()
        text = json.dumps(self.dialog, indent=1, ensure_ascii=False)
        with naming_new_folders(path):
            write_whole(path, f"{text}\n", "another file")
        notice(f"saved: {path}")

    def help(self) -> None:
        for name, command in COMMANDS.items():
            usage = f"/{name} {command.argument}"
            show(f"{usage:<22}  {command.help}")

    def quit(self) -> None:
        self.is_over = True
