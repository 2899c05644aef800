"""`holdfast remind` as a hook calls it: from standard input to the answer and the exit code.

A hook has a fifth of a second. So the command line hands its words over before it builds a parser,
and nothing that this module imports may import Pydantic
(`tests/coding_agents/test_hook_speed.py` checks this).
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

_MAX_SECONDS = 2.0  # of computing, after which it gives up


class _TooLong(BaseException):
    """The time is up. It is no `Exception`, so that no handler on the way, such as that around the
    user's own code, takes it for a failure of something else.
    """


@dataclass(frozen=True)
class HookCall:
    """The options with which a hook calls the command.

    Args:
        strict: whether a failure blocks the agent.
    """

    suite: str
    allow_code: bool = False
    strict: bool = False


def hook_call(words: Sequence[str]) -> HookCall | None:
    """The call of a hook with these words; None if they are not as `--install` writes them."""
    match list(words):
        case ["remind", "--suite", suite, *flags] if not suite.startswith("-"):
            if {*flags} <= {"--allow-code", "--strict"} and len({*flags}) == len(flags):
                allow_code = "--allow-code" in flags
                return HookCall(suite, allow_code, strict="--strict" in flags)
    return None


def answer_on_stdin(call: HookCall) -> int:
    """Answers the hook whose input is on standard input, and returns the exit code.

    A failure is reported on stderr. The exit code is 0 all the same, so that the agent carries on;
    with `strict` it is 2, by which agents are blocked.
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
    except Exception as error:  # a fault in Holdfast must not stop the agent
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
    """Raises an error in the block after some seconds of computing, if the system has timers.

    No text may hold up an agent. Users' regular expressions have a limit of their own; this one is
    for everything else.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(*_: object) -> NoReturn:
        raise _TooLong(f"`holdfast remind` took more than {seconds:g} s, and gave up.")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # the time of other processes does not count
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
