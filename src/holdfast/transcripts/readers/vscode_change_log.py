"""Replays the log of the changes of a chat of VS Code's.

For example:

    {"kind": 0, "v": {"requests": []}}                                the whole session
    {"kind": 2, "k": ["requests"], "v": [{"message": "Hi"}]}          a request is appended
    {"kind": 1, "k": ["requests", 0, "message"], "v": "Hello"}        its message is set
    -> {"requests": [{"message": "Hello"}]}
"""

from collections.abc import Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.json_fields import at, optional_list, require_field, require_object
from holdfast.transcripts.reader import Unread, Values
from holdfast.transcripts.transcript import Malformed

INITIAL, _SET, _PUSH, _DELETE = range(4)  # the kinds of changes


def logs_by_session(changes: Values) -> list[Values]:
    """Splits changes into sessions; a session that is written again as a whole is the same one."""
    logs: list[Values] = []
    last: Any = None
    for change in changes:
        name = at(change.value, "v", "sessionId")
        is_initial = at(change.value, "kind") == INITIAL
        if not logs or (is_initial and name != last):
            logs.append([])
        last = name if is_initial else last
        logs[-1].append(change)
    return logs


def replay(changes: Values) -> tuple[Any, list[Unread]]:
    """Returns the session after all changes in a log, and the changes that could not be applied."""
    session: Any = None
    failures: list[Unread] = []
    for source, change in changes:
        if at(change, "kind") == INITIAL:
            session = at(change, "v")
            continue
        try:
            _apply(session, require_object(change))
        except (Malformed, TypeError, IndexError, KeyError, AttributeError):
            failures.append(
                Unread(
                    f"{source}: the change at {shortened(at(change, 'k'))} fits no earlier state"
                )
            )
    return session, failures


def _apply(session: Any, change: Mapping[str, Any]) -> None:
    """Applies a change to a session in place."""
    keys = optional_list(require_field(change, "k"))
    if not keys:
        raise Malformed("a change names no place")
    *path, last = keys
    node = session
    for name in path:
        node = node[name]
    kind = change.get("kind")
    if kind == _SET and isinstance(node, list) and last == len(node):
        node.append(change.get("v"))
    elif kind == _SET:
        node[last] = change.get("v")
    elif kind == _DELETE:
        if isinstance(node, dict):
            node.pop(last, None)
        else:
            node[last] = None
    elif kind == _PUSH:
        entries = node.get(last) or [] if isinstance(node, dict) else node[last]
        if change.get("i") is not None:
            del entries[change["i"] :]
        entries.extend(optional_list(change.get("v")))
        node[last] = entries
    else:
        raise Malformed(f"the kind {shortened(kind)} is not known")
