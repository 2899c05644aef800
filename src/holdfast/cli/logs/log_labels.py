"""`holdfast logs --label`: shows scored turns one by one, and keeps a person's labels of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from holdfast.analysis.measure_tests import Label
from holdfast.cli.shared.notes import note, printable
from holdfast.errors import UsageError
from holdfast.files import short_path
from holdfast.logs.label_agreement import LabelAgreement
from holdfast.logs.label_file import LabelFile
from holdfast.logs.label_sampling import LabelTask
from holdfast.measures.measure_specs import inner_specs, read_spec
from holdfast.measures.turns import ToolCall
from holdfast.measures.wording.command_words import commands_in_words
from holdfast.plurals import count_of
from holdfast.report.wording import aligned, plain

_KEYS = "y follows, n breaks, s skip the turn, r skip the rule, b back, q quit"
# arguments of measures whose values are patterns of shell commands
_COMMAND_ARGUMENTS = frozenset("command first then run after use rather_than".split())
# what a regular expression has and other texts hardly ever do, as in "^git (push|pull)"
_REGEX_SYNTAX = re.compile(r"[*+?^$|\\\[({]")
_LABELS: dict[str, Label] = {"y": "follows", "n": "breaks"}
_MAX_CHARACTERS_SHOWN = 4_000  # characters of a message that the terminal shows


def require_terminal() -> None:
    """Refuses to label turns if the input is not a terminal."""
    if not sys.stdin.isatty():
        raise UsageError(
            "--label asks for keys, and the input is not a terminal; run the command in one."
        )


def label_turns(tasks: Sequence[LabelTask], labels: LabelFile, read_key: Callable[[], str]) -> None:
    """Shows the turns that have no label yet, rule by rule, and saves each label at once.

    Args:
        read_key: waits for the next key and returns it; "" at the end of the input.
    """
    unlabelled = [task for task in tasks if task not in labels]
    position = 0
    while position < len(unlabelled):
        task = unlabelled[position]
        print(_turn_text(task, position + 1, len(unlabelled)), flush=True)
        key = _read_known_key(read_key)
        if key == "q":
            break
        if key == "b":
            position = max(0, position - 1)
            continue
        if key == "r":
            print(f"the rest of {task.rule} is skipped", flush=True)
            position = _next_rule(unlabelled, position)
            continue
        if key in _LABELS:
            labels.add(task, _LABELS[key])
        print(_LABELS.get(key, "skipped"), flush=True)
        position += 1


def _next_rule(tasks: Sequence[LabelTask], position: int) -> int:
    """The position of the next rule's first turn; the number of tasks after the last rule."""
    rule = tasks[position].rule
    while position < len(tasks) and tasks[position].rule == rule:
        position += 1
    return position


def _read_known_key(read_key: Callable[[], str]) -> str:
    """Asks for a key until one of `_KEYS` is pressed; returns "q" at the end of the input."""
    while True:
        print(f"{_KEYS}: ", end="", flush=True)
        key = read_key().lower() or "q"
        if key in "ynsrbq":
            return key
        print(f"\n{key!r} is not one of these keys.")


def _turn_text(task: LabelTask, number: int, count: int) -> str:
    """Returns a turn and its rule as the terminal shows them, without the score of the turn."""
    answer = task.turn.done
    texts = [
        f"\n{number} of {count}: {task.source}",
        _named_text("user", task.turn.user),
        *chain.from_iterable(map(_call_texts, answer.calls)),
        _named_text("reply", answer.text),
        _named_text("rule", f"{task.rule}: {task.text}"),
        _named_text("measured by", _measure_text(task.spec)),
    ]
    return "\n".join(text for text in texts if text)


def _call_texts(call: ToolCall) -> Iterator[str]:
    """Yields a tool call, and the user's answers if it asked questions."""
    yield _named_text("call", f"{call.name} {_call_arguments(call.arguments)}")
    for answer in call.answers:
        yield _named_text("answer", f"{answer.question} {answer.text}")


def _measure_text(spec: Any) -> str:
    """Describes a measure: "runs_before: first `make test`, then `git commit`".

    Regular expressions for commands are put into words where they have any.
    """
    name, arguments = read_spec(spec)
    inner = [_measure_text(part) for part in inner_specs(arguments)]
    if inner:
        return f"{name} of ({'; '.join(inner)})"
    texts = {key: _argument_text(key, value) for key, value in arguments.items()}
    shown = [f"{key} {text}" for key, text in texts.items() if text]
    return f"{name}: {', '.join(shown)}" if shown else name


def _argument_text(key: str, value: Any) -> str:
    """An argument of a measure in words; "" if it would tell the reader nothing."""
    if isinstance(value, str) and _REGEX_SYNTAX.search(value):
        return (commands_in_words(value) if key in _COMMAND_ARGUMENTS else "") or value
    if isinstance(value, list | tuple):
        return " or ".join(map(str, value))
    return str(value) if isinstance(value, str | int | float) else ""


def _call_arguments(arguments: Mapping[str, Any]) -> str:
    """A call's arguments: "command: git push; description: ..."."""
    texts = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        texts.append(f"{name}: {text}")
    return "; ".join(texts)


def _named_text(name: str, text: str) -> str:
    """A text under its name, cut if it is long; "" if the text is blank."""
    if not text.strip():
        return ""
    more = len(text) - _MAX_CHARACTERS_SHOWN
    rest = f" [and {more:,} more characters]" if more > 0 else ""
    return f"[{name}] {printable(text[:_MAX_CHARACTERS_SHOWN])}{rest}"


@contextlib.contextmanager
def key_reader() -> Iterator[Callable[[], str]]:
    """Within this context, the terminal gives single keys; on Windows, a line's first letter."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield lambda: sys.stdin.readline().strip()[:1]
        return
    terminal = sys.stdin.fileno()
    settings = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        yield lambda: os.read(terminal, 1).decode("latin-1").strip("\x04")
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, settings)


def print_agreements(agreements: Sequence[LabelAgreement], labels: LabelFile) -> None:
    """Prints how well each measure agrees with the labels, and where they are."""
    head = ("rule", "labelled", "agreement [95%]", "of those scored as broken", "as kept")
    rows = [
        (
            row.rule,
            str(row.agreement.n + row.unknown),
            *map(plain, (row.agreement, row.broken, row.kept)),
        )
        for row in agreements
    ]
    print("\n" + "\n".join(aligned([head, *rows])) if rows else "\nNothing is labelled.")
    if unknown := sum(row.unknown for row in agreements):
        note(f"{count_of(unknown, 'label')} not counted, for lack of a score in this run.")
    if rows:
        print(f"Labels: {short_path(labels.path)}")
