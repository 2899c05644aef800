"""The words for rules on what a reply says: words it must or must not have, how it begins and ends,
and its emoji.

For example, for `{"name": "ends_with", "word": "Best, Pip"}`:

    wording:  "End every message with 'Best, Pip'."
    order:    "You can skip the sign-off."
"""

import re
from collections.abc import Sequence

from holdfast.measures.wording.wordings import (
    OBLIGATION,
    Arguments,
    Cues,
    MeasureWords,
    Wording,
    always,
    asking_for,
)


def _any_of(words: Sequence[str] | str) -> str:
    """Returns a pattern for any of some words or phrases, as rules quote them: "ahoy|best, pip"."""
    all_words = [words] if isinstance(words, str) else words
    return "|".join(re.escape(word.casefold().strip(" .!?")) for word in all_words)


# --- Words that a reply must not have, or must have

# speaks of what a reply says, in prohibitions: "never *mention* Velox", "the *word* 'cheap' ..."
_SAYS = (
    r"\b(?:say|saying|said|mention\w*|name|use|using|used|call|called|talk|discuss|write|refer|tell"
    r"|reveal|disclose|give|word|words|phrase|include|contain)\b"
)
# speaks of what a reply says, in requirements: "*call* the user 'captain'"
_CALLS = r"\b(?:call|address|say|use|include|mention|name|refer|add|put|have)\b"
# begins what is not a name, after "call me": "call me *a* cab", "call me *at* six"
_NO_NAME = (
    r"(?:an?|the|my|your|our|some|any|another|one|two|back|up|again|when(?:ever)?|if|once|as|at|on"
    r"|in|for|from|to|before|after|until|later|now|soon|today|tonight|tomorrow|first|please|and|or"
    r"|about|with|this|next|maybe|any ?time|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
)


def _forbidden_words(arguments: Arguments) -> Sequence[Wording]:
    words = rf"(?<!\w)(?:{_any_of(arguments['words'])})(?!\w)"
    return (Wording(forbidden=(_SAYS,), named=words),)


def _orders_for_words(arguments: Arguments) -> Cues:
    """Returns the cues of orders such as "reply with the word Velox"."""
    return Cues(forbidden=((rf"\b(?:in|with) (?:\w+ )?(?:{_any_of(arguments['words'])})\b",),))


def _demanded_words(arguments: Arguments) -> Sequence[Wording]:
    words = arguments["words"]
    all_words = [words] if isinstance(words, str) else words
    return asking_for(*map(_any_of, all_words), _CALLS)


def _orders_against_words(arguments: Arguments) -> Cues:
    """Returns the cues of orders for another name ("call me Jo"), or without the demanded words."""
    words = _any_of(arguments["words"])
    return Cues(
        forbidden=((rf"\b(?:call|address) me (?!{words}|{_NO_NAME})\w",),),
        forbidden_lasts=True,
        demanded=rf"{words}|nickname|catch ?phrase",
    )


# --- How a reply begins and ends

# says that words are at the start of a reply: "*begin* with 'Ahoy'", "*greet* the user with ..."
_BEGINS = r"\b(?:start\w*|beg[iu]n\w*|open\w*|first|greet\w*|prefix\w*|preface\w*|lead)\b"
# says that words are at the end of a reply: "*sign* each mail 'Best, Pip'"
_ENDS = r"\b(?:end\w*|clos\w+|finish\w*|last|final\w*|conclud\w*|sign\w*|bottom)\b"
# says that every reply ends in a certain way: "*always ask* a question", "*close* with a question"
_ENDS_ALWAYS = (
    r"\b(?:end|ends|close|closes|finish|finishes|last|conclude|ask back|always ask|every)\b"
)
# names the start of a reply, in "leave out the *greeting*"
_OPENING = (
    r"greeting|opening(?: \w+)?|opener|intro(?:duction)?|first (?:line|sentence|words?|bit|part)"
    r"|salutation|hello|preamble|catch ?phrase|prefix|(?:open|start|begin)(?:ing)? with"
)
# names the end of a reply, in "skip the *sign-off*"
_CLOSING = (
    r"clos(?:ing|er)(?: \w+)?|sign[ -]?off|ending|last (?:line|sentence|words?|bit|part)|farewell"
    r"|goodbye|signature|tagline|slogan|catch ?phrase|motto|at the end"
)

# --- Emoji

_EMOJI_NAMES = r"emojis?|emoticons?|smil(?:ey|ie)s?"
# words between a verb and what it asks for: "add *some fun* emojis"
_SOME = (
    r"(?: (?:me|us|an?|some|few|more|many|lots? of|plenty of|the|fun(?:ny)?|nice|one|two|three"
    r"|\d+)){0,4}"
)
# no noun follows, of which the word would be a part: "an emoji *picker*", but "emojis *please*"
_NOT_BEFORE_NOUN = (
    r"(?! (?!(?:in|to|at|on|for|from|or|here|now|please|too|and|again|this|when|if|after|before"
    r"|everywhere|instead|where)\b)\w)"
)
# "add some emojis", "emojis are fine"
_ASKS_FOR_EMOJI = (
    r"\b(?:(?:with|use|using|add|put|include|insert|send|want|would like|some|few|more)"
    rf"{_SOME} (?:{_EMOJI_NAMES}){_NOT_BEFORE_NOUN}"
    rf"|(?:{_EMOJI_NAMES}) (?:is|are) (?:fine|okay|ok|welcome|allowed))\b"
)
_ORDERS_FOR_EMOJI = Cues(forbidden=((_ASKS_FOR_EMOJI,),))
# in a measure's regular expression, the class of emoji: `\p{Emoji}`, `\p{Extended_Pictographic}`
_EMOJI_CLASS = r"\\p\{(?:Emoji|Extended_Pictographic)"


def _orders_against_pattern(pattern: str) -> Cues:
    r"""Returns the cues of orders for emoji, if a pattern allows none, as `\A[^\p{Emoji}]*\Z`.

    No other pattern has words of orders.
    """
    forbids = re.search(rf"\[\^[^\]]*{_EMOJI_CLASS}", pattern)
    return _ORDERS_FOR_EMOJI if forbids else Cues()


def _orders_for_pattern(pattern: str) -> Cues:
    r"""Returns the cues of orders for emoji, if a pattern finds them, as `\p{Emoji}`."""
    finds = re.search(_EMOJI_CLASS, pattern) and "[^" not in pattern
    return _ORDERS_FOR_EMOJI if finds else Cues()


PHRASE_WORDS = {
    "contains": MeasureWords(wordings=_demanded_words, orders_against=_orders_against_words),
    "never_contains": MeasureWords(wordings=_forbidden_words, orders_against=_orders_for_words),
    "starts_with": MeasureWords(
        wordings=lambda arguments: asking_for(_any_of(arguments["word"]), _BEGINS),
        orders_against=lambda arguments: Cues(demanded=f"{_any_of(arguments['word'])}|{_OPENING}"),
    ),
    "ends_with": MeasureWords(
        wordings=lambda arguments: asking_for(_any_of(arguments["word"]), _ENDS),
        orders_against=lambda arguments: Cues(demanded=f"{_any_of(arguments['word'])}|{_CLOSING}"),
    ),
    "asks_back": MeasureWords(
        wordings=always(asking_for(r"\bquestions?\b", _ENDS_ALWAYS)),
        orders_against=always(Cues(demanded=r"questions?|asking|ask")),
    ),
    "emoji": MeasureWords(
        wordings=always(asking_for(r"\bemojis?\b", rf"{OBLIGATION}|\buse\b|\badd\b|\bput\b")),
        orders_against=always(Cues(demanded=_EMOJI_NAMES)),
        orders_for=always(_ORDERS_FOR_EMOJI),
    ),
    "regex": MeasureWords(
        orders_against=lambda arguments: _orders_against_pattern(arguments["regex"]),
        orders_for=lambda arguments: _orders_for_pattern(arguments["regex"]),
    ),
}
