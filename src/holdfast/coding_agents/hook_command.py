"""`holdfast remind` when a hook calls it: from standard input to the answer and the exit code.

It has a fifth of a second. So the command line gives it the words that a hook calls it with before
it builds a parser, and nothing that it imports imports Pydantic; `tests/test_remind.py` holds that.
"""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from holdfast.coding_agents.hook_answers import HookAnswer
from holdfast.coding_agents.hook_input import read_hook_input
from holdfast.coding_agents.hook_rules import cached_hook_rules
from holdfast.coding_agents.reminding import answer_hook
from holdfast.coding_agents.session_state import state_file, states_folder
from holdfast.errors import HoldfastError

_MAX_SECONDS = 2.0  # seconds of computing, after which it gives up


class _TooLong(BaseException):
    """The time is up; no `except Exception` on the way, such as that around code of the user's own,
    may take it for a failure of something else.
    """


@dataclass(frozen=True)
class HookCall:
    """The options that a hook calls the command with."""

    suite: str
    allow_code: bool = False
    strict: bool = False


def hook_call(words: Sequence[str]) -> HookCall | None:
    """The call, if these are the words of a hook as `--install` writes them; else None."""
    suite = words[2:3]
    flags = {*words[3:]}
    as_written = [*words[:2]] == ["remind", "--suite"] and flags <= {"--allow-code", "--strict"}
    if not as_written or not suite or suite[0].startswith("-") or len(flags) < len(words[3:]):
        return None
    return HookCall(suite[0], "--allow-code" in flags, "--strict" in flags)


def answer_on_stdin(call: HookCall) -> int:
    """Answers the hook whose input is on standard input, and returns the exit code.

    What goes wrong is said on stderr. It ends with 0 all the same, so that the agent works on, or
    with 2 if that is wanted, which agents take as a block.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        _note(
            "`holdfast remind` answers the hook of a coding agent, whose JSON it reads from"
            " standard input; see `holdfast remind --suite rules.yaml --install`."
        )
        return 1
    try:
        with _giving_up_after(_MAX_SECONDS):
            answer = _answer(call)
        if answer.output:
            print(answer.output, flush=True)
    except (HoldfastError, _TooLong) as error:
        _note(str(error))
        return 2 if call.strict else 0
    except Exception as error:  # a fault of ours must not be one of the agent's
        _note(f"`holdfast remind` failed ({type(error).__name__}: {error}); please report it.")
        return 2 if call.strict else 0
    for problem in answer.problems:
        _note(problem)
    return 2 if call.strict and answer.problems else 0


def _answer(call: HookCall) -> HookAnswer:
    content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    hook = read_hook_input(content.decode("utf-8-sig", "replace"))
    folder = states_folder()
    rules = cached_hook_rules(call.suite, folder, call.allow_code)
    path = hook.transcript
    return answer_hook(hook, rules, state_file(folder, path, call.suite) if path else None)


def _note(line: str) -> None:
    print(f"holdfast: {line}", file=sys.stderr, flush=True)


@contextmanager
def _giving_up_after(seconds: float) -> Iterator[None]:
    """Ends what takes too long, where the system has timers: no text may hold up an agent.

    The user's regular expressions have limits of their own; this is for everything else.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(*_: object) -> NoReturn:
        raise _TooLong(f"`holdfast remind` took more than {seconds:g} s, and gave up.")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # other processes may take their time
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
