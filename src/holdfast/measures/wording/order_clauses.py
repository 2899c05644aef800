"""Tells whether a clause is an order: an imperative, a request or a permission.

    "ok, please push it"         ->  an order: it begins with a verb, after "ok, please"
    "can you push it"            ->  an order
    "you may skip the tests"     ->  a permission, which counts as an order
    "the push is done"           ->  no order

Clauses are written as `plain_text.plain_sentence` writes sentences.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from holdfast.measures.wording.plain_text import WORD, plain_sentence

# words before an order: "*ok, please* push it"
_LEADING = re.compile(
    r"^(?:(?:please|just|now|always|also|ok|okay|well|thanks|great|and|so|then|but|yes|no problem"
    r"|today|this time|(?:just )?this once|for (?:now|once)|next time|from (?:now|here) on)\W+)*"
)
# begins an order, a request or a permission: "*can you* push it", "*feel free* to push"
_ASKS = re.compile(
    r"^(?:(?:can|could|would|will) you\b(?! mind\b)"
    r"|you (?:may|can|could|should|must|need not|do not (?:need|have) to|are (?:allowed|free) to)\b"
    r"|it is (?:ok|okay|fine) (?:to|if you)\b"
    r"|i (?:want|need|would like) you\b"
    r"|(?:there is )?no need\b"
    r"|feel free\b|let us\b|do not\b|never\b|instead of\b)"
)
# a clause that begins with one of these is an imperative
_VERBS = frozenset(
    "add adjust allow answer append apply avoid begin bring build bump call change check clear"
    " close combine commit compare connect continue convert copy create cut delete deploy describe"
    " destroy discard disregard ditch do download drop edit elaborate end erase execute expand"
    " explain fetch fill finish fix force forget format get give go ignore include insert install"
    " keep land leave list lose make mention merge modify move name offer open override overwrite"
    " paste patch post prepend print provide provision publish pull push put quote recommend"
    " reformat release remove rename repeat replace reply reset respond restart revert rewrite roll"
    " run save say send set share ship show skip spare speak start stop submit suggest summarise"
    " summarize switch talk tell test throw touch translate try tweak undo update upgrade upload"
    " use waive wipe work write".split()
)
_PATH = re.compile(r"(?<![\w/])[\w.-]*[./][\w./-]*\w")  # "src/app.py", ".env"


@lru_cache(maxsize=65536)
def is_order(clause: str) -> bool:
    """Whether a clause is an imperative, a request or a permission."""
    text = _LEADING.sub("", clause).lstrip("\"'` ")
    if _ASKS.match(text):
        return True
    first = WORD.match(text)
    return first is not None and first[0] in _VERBS and not text.startswith(("do you ", "do we "))


def words_before_paths(clause: str) -> Iterator[tuple[str, str]]:
    """Yields the first word of an order with each path in it; "" if it has no word.

    >>> list(words_before_paths("Please edit src/app.py and docs/a.md"))
    [('edit', 'src/app.py'), ('edit', 'docs/a.md')]
    """
    text = _LEADING.sub("", plain_sentence(clause).strip())
    first = WORD.match(_ASKS.sub("", text).strip())
    for path in _PATH.findall(clause):
        yield first[0] if first else "", path
