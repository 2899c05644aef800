"""The words for rules on the language of a reply, and on its layout: JSON, lists, case of letters.

For example, for `{"name": "language", "code": "de"}`:

    wording:  "Always answer in German."
    order:    "In English, please."
"""

import re
from collections.abc import Sequence

from holdfast.measures.language_names import CODES, NAMES, names_of
from holdfast.measures.wording.wordings import (
    IN_REPLIES,
    Arguments,
    Cues,
    MeasureWords,
    Wording,
    always,
    asking_for,
)

# --- Languages

# says that a language is that of replies: "*speak* German", "German *only*"
_IS_OF_REPLIES = rf"{IN_REPLIES}|\bonly\b|\balways\b|\blanguage\b|\btalk\b|\bstick\b"
_AMBIGUOUS_NAMES = frozenset({"gun"})  # the name of a language, and an English word
# orders a reply in a language: "*answer* in English"
_SPEAKS = r"\b(?:reply|answer|respond|write|speak|translate|talk|continue|switch|say|chat)\b"
# between such a verb and "in English": "tell *me the rest* in English"
_OBJECTS = (
    r"(?:\s(?:it|that|this|them|me|us|you|to|with|the|your|my|next|reply|replies|answers?|response"
    r"|text|message|everything|all|only|just|back|now|always|again|please|whole|rest|over))*"
)
# after the name of a language, the end of the clause or a word on the whole order: "in English
# *please*"; but not "in English *literature*"
_ENDS_ORDER = (
    r"(?=\W*$|\s(?:please|now|today|tonight|from|instead|only|again|this|next|for|too|thanks|then"
    r"|anyway|if|because|since|as|rather|not|never|once|always)\b)"
)


def _language_wordings(arguments: Arguments) -> Sequence[Wording]:
    names = "|".join(map(re.escape, names_of(arguments["code"])))
    return asking_for(rf"\b(?:{names})\b", _IS_OF_REPLIES)


def _orders_for_another_language(arguments: Arguments) -> Cues:
    demanded = arguments["code"]
    return _orders_for_languages([code for code in NAMES if code != demanded], demanded)


def _orders_for_languages(codes: Sequence[str], demanded: str = "") -> Cues:
    """Returns the cues of orders for one of some languages.

    Args:
        demanded: the code of another language, whose name may have one of theirs in it: "Egyptian
            Arabic"; "" for none.
    """
    names = [name for name in CODES if CODES[name] in codes and name not in _AMBIGUOUS_NAMES]
    own_names = names_of(demanded) if demanded else ()
    not_demanded = "".join(rf"(?<!\b{re.escape(name)})" for name in own_names)
    language = rf"(?:{'|'.join(map(re.escape, names))})\b{not_demanded}"
    described = rf"(?:\w+ )?{language}"  # "simple English"
    order = (
        rf"{_SPEAKS}{_OBJECTS}\s(?:in|into|to|auf|en)\s{described}"
        rf"|\b(?:in|into|to|auf|en|speak|use|using|with|try)\s{described}{_ENDS_ORDER}"
        rf"|^{language} please|\b{language} (?:version|translation|only)\b"
    )
    return Cues(forbidden=((order,),))


# --- JSON, lists, and the case of letters

# orders another layout than a list: "write it *as prose*", "put it *in a table*"
_OTHER_THAN_LIST = (
    r"\b(?:in|as|to|into|of)\b.*\b(?:prose|plain (?:text|english|words|language)|running text"
    r"|paragraphs?|(?:normal|full|plain|proper) sentences?|an? (?:\w+ )?table)\b"
)
# orders another layout than JSON: "give it to me *as yaml*"
_OTHER_THAN_JSON = (
    _OTHER_THAN_LIST
    + r"|\b(?:in|as)\b.*\b(?:yaml|xml|csv|markdown|bullets?|bullet points|list|text)\b"
)
# orders capital letters: "in *all caps*", "*shout* it"
_CAPITALS = r"\b(?:capital(?:s|i[sz]e\w*| letters)?|upper ?case|all caps|shout)\b"
# orders small letters: "*without caps*, please"
_SMALL_LETTERS = r"\b(?:lower ?case|small letters|without caps|normal case)\b"

LAYOUT_WORDS = {
    "language": MeasureWords(
        wordings=_language_wordings,
        orders_against=_orders_for_another_language,
        orders_for=lambda arguments: _orders_for_languages([arguments["code"]]),
    ),
    "json_object": MeasureWords(
        wordings=always(asking_for(r"\bjson\b", rf"{IN_REPLIES}|\bobject\b|\bexpects?\b")),
        orders_against=always(Cues(forbidden=((_OTHER_THAN_JSON,),), demanded=r"json")),
    ),
    "bullet_list": MeasureWords(
        orders_against=always(
            Cues(forbidden=((_OTHER_THAN_LIST,),), demanded=r"bullets?|bullet points|lists?")
        )
    ),
    "numbered_list": MeasureWords(
        orders_against=always(
            Cues(forbidden=((_OTHER_THAN_LIST,),), demanded=r"numbers?|numbering|lists?")
        )
    ),
    "lower_case": MeasureWords(
        wordings=always(asking_for(r"\b(?:lower ?case|small letters)\b")),
        orders_against=always(Cues(forbidden=((_CAPITALS,),))),
    ),
    "upper_case": MeasureWords(
        wordings=always(asking_for(r"\b(?:upper ?case|capital letters|all caps)\b")),
        orders_against=always(
            Cues(forbidden=((_SMALL_LETTERS,),), demanded=r"shouting|yelling|caps|capitals")
        ),
    ),
}
