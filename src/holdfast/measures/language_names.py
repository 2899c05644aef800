"""The codes and names of the languages that a rule can ask for.

For example:

    names_of("de") -> ("german", "deutsch");  CODES["deutsch"] -> "de"
"""

import re

from holdfast.files import asset

# the English name by the code that the package `py3langid` uses
NAMES = dict(line.split(" ", 1) for line in asset("languages.txt").splitlines())
# names in the languages themselves, and other English names
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
    """Returns the names of a language in lower case."""
    return NAMES[code].lower(), *_OTHER_NAMES.get(code, ())


CODES = {name: code for code in NAMES for name in names_of(code)}
# a pattern of the names of all languages, for any case of letters
ANY_NAME = "|".join(sorted(map(re.escape, CODES), key=len, reverse=True))
