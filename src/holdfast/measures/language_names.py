"""The languages that a reply can be asked to be in: their codes and names."""

import re

from holdfast.files import asset

# codes of the package `py3langid`, and the English names
NAMES = dict(line.split(" ", 1) for line in asset("languages.txt").splitlines())
# names in the languages themselves, and a second English one
_OTHER_NAMES = {
    "de": ("deutsch",),
    "es": ("español", "castellano"),
    "fr": ("français",),
    "it": ("italiano",),
    "nl": ("nederlands",),
    "pl": ("polski",),
    "pt": ("português",),
    "sv": ("svenska",),
    "tr": ("türkçe",),
    "zh": ("mandarin",),
}


def names_of(code: str) -> tuple[str, ...]:
    """The names of a language in lower case."""
    return NAMES[code].lower(), *_OTHER_NAMES.get(code, ())


CODES = {name: code for code in NAMES for name in names_of(code)}
# a pattern of the names of all languages, for any case of letters
ANY_NAME = "|".join(sorted(map(re.escape, CODES), key=len, reverse=True))
