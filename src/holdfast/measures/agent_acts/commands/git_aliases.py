"""Aliases of Git: `git -c alias.p='push --force' p` runs `git push --force`."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

_VALUED = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env")
_PREFIX = "alias."
# commands of Git itself, which an alias cannot replace
_OWN_COMMANDS = frozenset(
    """add am apply bisect branch checkout cherry-pick clean clone commit config diff fetch grep
    init log ls-files merge mv pull push rebase reflog remote reset restore revert rm show stash
    status submodule switch tag worktree""".split()
)


def alias_defined_by(words: Sequence[str]) -> tuple[str, str] | None:
    """Returns the alias that `git config alias.NAME VALUE` defines, with its value.

    None for other commands.
    """
    if words[0] != "git" or "config" not in words[1:]:
        return None
    rest = words[words.index("config") + 1 :]
    for name, value in pairwise(rest):
        if name.startswith(_PREFIX):
            return name.removeprefix(_PREFIX), value
    return None


def alias_removed_by(words: Sequence[str]) -> str:
    """Returns the alias that `git config --unset alias.NAME` removes; "" for other commands."""
    if words[0] != "git" or "config" not in words or {"--unset", "unset"}.isdisjoint(words):
        return ""
    return next((w.removeprefix(_PREFIX) for w in words if w.startswith(_PREFIX)), "")


def script_of_alias(words: Sequence[str], aliases: Mapping[str, str]) -> str | None:
    """Returns the script of the alias that a command of Git uses; None if it uses none.

    Args:
        aliases: those that were defined before.
    """
    if words[0] != "git":
        return None
    known = dict(aliases)
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _VALUED and rest:
            name, _, value = rest.pop(0).partition("=")
            if option == "-c" and name.lower().startswith(_PREFIX):  # Git ignores the case
                known[name[len(_PREFIX) :]] = value
    text = known.get(rest[0]) if rest and rest[0] not in _OWN_COMMANDS else None
    if text is None:
        return None
    start = text[1:] if text.startswith("!") else f"git {text}"
    return " ".join([start, *map(shlex.quote, rest[1:])])
