"""Removes from a message what it quotes: an order in it is not the author's.

For example:

    > Push it.
    No, do not.    -> "No, do not."
"""

import re

from holdfast.measures.wording.sentences import MAX_QUOTE_CHARACTERS

_FENCE = re.compile(r"[ \t]*(```|~~~)")  # begins or ends a block of code or output
# "Please run this:" at the end of a line
_ORDERS_BLOCK = re.compile(r"\b(?:run|execute|do|use|type|try)\b[^.?!]*:\s*\Z", re.IGNORECASE)


def without_quoted_lines(text: str) -> str:
    """Returns a message without what it quotes, unless it has nothing else: lines that begin with
    `>`, and blocks of output. A block stays if the line above it, with or without a blank one
    between them, orders to run it.
    """
    kept: list[str] = []
    block: list[str] = []  # the lines of a block that has not ended yet
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if block:
            block.append(line)
            if fence and fence[1] == line.strip() == block[0].strip()[:3]:
                before = next(filter(str.strip, reversed(kept[-2:])), "")
                kept += block if _ORDERS_BLOCK.search(before[-MAX_QUOTE_CHARACTERS:]) else ()
                block = []
        elif fence:
            block = [line]
        else:
            kept.append(line)
    lines = [line for line in (*kept, *block) if not line.startswith(">")]
    return "\n".join(lines) if any(map(str.strip, lines)) else text
