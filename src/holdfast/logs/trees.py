"""Messages that name their parents: the path that is active, from the last message to the first."""

from collections.abc import Mapping


def path_to(leaf: str, parents: Mapping[str, str | None]) -> list[str]:
    """The ids from the root to `leaf`; a parent that is unknown, or leads in a circle, ends it."""
    path: dict[str, None] = {}
    node: str | None = leaf
    while node is not None and node in parents and node not in path:
        path[node] = None
        node = parents[node]
    return list(reversed(path))
