"""`holdfast logs --label`: shows scored turns one by one, and keeps what a person says of them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.cli.progress import note, printable
from holdfast.errors import UsageError
from holdfast.logs.labelling import Agreement, Label, LabelFile, LabelTask
from holdfast.measures.command_words import in_words
from holdfast.measures.measure_specs import inner_specs, read_spec
from holdfast.plurals import count_of
from holdfast.report.wording import aligned, plain

_KEYS = "y follows, n breaks, s skip the turn, r skip the rule, b back, q quit"
_COMMANDS = frozenset("command first then run after use rather_than".split())  # are patterns
_REGEX = re.compile(r"\\\\|[*+?^$|\\[({]")
_LABELS: dict[str, Label] = {"y": "follows", "n": "breaks"}
_MAX_CHARACTERS_SHOWN = 4_000  # characters of a message that the terminal shows


def require_terminal() -> None:
    """Refuses to label where no key can be pressed."""
    if not sys.stdin.isatty():
        raise UsageError("--label asks for keys, and the input is not a terminal; run it in one.")


def label_turns(tasks: Sequence[LabelTask], labels: LabelFile, read_key: Callable[[], str]) -> None:
    """Shows the turns that have no label yet, rule after rule, and keeps the label of each at once.

    Args:
        read_key: gives the next key; "" if there is none.
    """
    unlabelled = [task for task in tasks if task not in labels]
    position = 0
    while position < len(unlabelled):
        task = unlabelled[position]
        print(_turn_text(task, position + 1, len(unlabelled)), flush=True)
        key = _answer(read_key)
        if key == "q":
            break
        if key == "b":
            position = max(0, position - 1)
            continue
        if key == "r":
            print(f"the rest of {task.rule} is skipped", flush=True)
            position = _after_rule(unlabelled, position)
            continue
        if key in _LABELS:
            labels.add(task, _LABELS[key])
        print(_LABELS.get(key, "skipped"), flush=True)
        position += 1


def _after_rule(tasks: Sequence[LabelTask], position: int) -> int:
    """The position of the next turn of another rule."""
    rule = tasks[position].rule
    while position < len(tasks) and tasks[position].rule == rule:
        position += 1
    return position


def _answer(read_key: Callable[[], str]) -> str:
    """The next key that means something; an input that ends means q."""
    while True:
        print(f"{_KEYS}: ", end="", flush=True)
        key = read_key().lower() or "q"
        if key in "ynsrbq":
            return key
        print(f"\n{key!r} is not one of these keys.")


def _turn_text(task: LabelTask, number: int, count: int) -> str:
    """A turn with its rule, and nothing of how it was scored."""
    answer = task.turn.done
    calls = [f"{call.name} {_arguments(call.arguments)}" for call in answer.calls]
    parts = [
        f"\n{number} of {count}: {task.source}",
        _part("user", task.turn.user),
        *(_part("call", call) for call in calls),
        _part("reply", answer.text),
        _part("rule", f"{task.rule}: {task.text}"),
        _part("measured by", _measure(task.spec)),
    ]
    return "\n".join(part for part in parts if part)


def _measure(spec: Any) -> str:
    """A measure as "runs_before: first `make test`, then `git commit`"; other regular expressions
    than those for commands are left out.
    """
    name, arguments = read_spec(spec)
    inner = [_measure(part) for part in inner_specs(arguments)]
    if inner:
        return f"{name} of ({'; '.join(inner)})"
    texts = {key: _argument_text(key, value) for key, value in arguments.items()}
    written = [f"{key} {text}" for key, text in texts.items() if text]
    return f"{name}: {', '.join(written)}" if written else name


def _argument_text(key: str, value: Any) -> str:
    """An argument of a measure as a reader of the rule needs it; "" if it says nothing to them."""
    if isinstance(value, str) and _REGEX.search(value):
        return in_words(value) if key in _COMMANDS else ""
    if isinstance(value, list | tuple):
        return " or ".join(map(str, value))
    return str(value) if isinstance(value, str | int | float) else ""


def _arguments(arguments: Mapping[str, Any]) -> str:
    """A call's arguments, as "command: git push; description: ..."."""
    written = [
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    return "; ".join(written)


def _part(name: str, text: str) -> str:
    if not text.strip():
        return ""
    more = len(text) - _MAX_CHARACTERS_SHOWN
    rest = f" [and {more:,} more characters]" if more > 0 else ""
    return f"[{name}] {printable(text[:_MAX_CHARACTERS_SHOWN])}{rest}"


@contextlib.contextmanager
def key_reader() -> Iterator[Callable[[], str]]:
    """Reads single keys from the terminal, or else the first letter of a line."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield lambda: sys.stdin.readline().strip()[:1]
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        yield lambda: os.read(terminal, 1).decode("latin-1").strip("\x04")
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def print_agreements(agreements: Sequence[Agreement], labels: LabelFile) -> None:
    """Prints how well each measure agrees with the labels, and where they are."""
    head = ("rule", "labelled", "agreement [95%]", "of those scored as broken", "as kept")
    rows = [
        (
            item.rule,
            str(item.agreement.n + item.unknown),
            *map(plain, (item.agreement, item.broken, item.kept)),
        )
        for item in agreements
    ]
    print("\n" + "\n".join(aligned([head, *rows])) if rows else "\nNothing is labelled.")
    if unknown := sum(item.unknown for item in agreements):
        note(f"{count_of(unknown, 'label')} of turns that this run has no score of not counted.")
    if rows:
        print(f"Labels: {labels.path.resolve()}")
