"""Text that a coding agent adds to the user's messages, and nobody said: reminders, notifications.

For example:

    "<system-reminder>...</system-reminder>Hi" -> remove_elements -> "Hi"
                                               -> elements_in     -> "..."
"""

import re
from collections.abc import Iterable

# "<skill>...</skill>"
_IN_ONE_ELEMENT = re.compile(r"\s*<([a-z][a-z0-9_ -]*)[^>]*>(?:(?!</\1>).)*</\1>\s*", re.DOTALL)


def remove_elements(text: str, names: Iterable[str]) -> str:
    """Removes the elements of these names from a text, and white space at its ends.

    An element without an end was cut off. It is removed only if the rest of the text begins with
    it, since elsewhere its name is likely to be part of a sentence.
    """
    opening = rf"<({'|'.join(map(re.escape, names))})(?:\s[^>]*)?>"
    rest = re.sub(rf"{opening}.*?</\1>", "", text, flags=re.DOTALL).strip()
    return "" if re.match(opening, rest) else rest


def elements_in(text: str, names: Iterable[str]) -> str:
    """Returns the texts in the elements of these names, joined by line breaks."""
    texts: list[str] = []
    for name in names:
        for piece in text.split(f"</{name}>")[:-1]:
            opening = re.search(rf"<{re.escape(name)}(?:\s[^>]*)?>", piece)
            if opening is not None and (inner := piece[opening.end() :].strip()):
                texts.append(inner)
    return "\n".join(texts)


def enclosing_element(text: str) -> str:
    """Returns the name of the element that the whole text is in; "" if it is in none."""
    match = _IN_ONE_ELEMENT.fullmatch(text)
    return match[1].strip() if match else ""


def element_text(text: str, name: str) -> str:
    """Returns the text in the first element of this name; "" if there is none."""
    match = re.search(rf"<{re.escape(name)}>(.*?)</{re.escape(name)}>", text, re.DOTALL)
    return match[1].strip() if match else ""
