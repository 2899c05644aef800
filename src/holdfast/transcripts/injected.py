"""Text that a coding agent puts into the user's messages: reminders, outputs, notifications.

Nobody said it. It stands in elements such as `<system-reminder>...</system-reminder>`.
"""

import re
from collections.abc import Iterable


def without_elements(text: str, names: Iterable[str]) -> str:
    """The text without the elements of these names, and without space at its ends.

    An element that is not closed was cut off, and counts if it opens the rest: elsewhere, its
    name is likely to be part of a sentence.
    """
    opening = rf"<({'|'.join(map(re.escape, names))})(?:\s[^>]*)?>"
    rest = re.sub(rf"{opening}.*?</\1>", "", text, flags=re.DOTALL).strip()
    return "" if re.match(opening, rest) else rest


_WRAPPED = re.compile(r"\s*<([a-z][a-z0-9_ -]*)[^>]*>.*</\1>\s*", re.DOTALL)


def element_around(text: str) -> str:
    """The name of the element that the whole text is in; "" if it is in none."""
    match = _WRAPPED.fullmatch(text)
    return match[1].strip() if match else ""


def element_text(text: str, name: str) -> str:
    """The text in the first element of this name; "" if there is none."""
    match = re.search(rf"<{re.escape(name)}>(.*?)</{re.escape(name)}>", text, re.DOTALL)
    return match[1].strip() if match else ""
