"""Rules about the manner of writing: emojis, exclamation marks, contractions, questions.

For example:

    Never use emojis.                     -> regex(no emoji)
    Use at most two emojis per message.   -> regex(up to two emojis)
    End every reply with a short question -> asks_back()
"""

from dataclasses import dataclass

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.forms import (
    EMOJI_SIGNS,
    Forms,
    first_match,
    form,
    forms,
    one_of,
    word_pattern,
)
from holdfast.drafting.reply_rules.bot_prompts import LEAD, REPLY, BotClause
from holdfast.drafting.reply_rules.length_rules import NUMBER, number_value
from holdfast.measures.rule_kinds import Polarity

_NO = (
    r"(?:(?:\b|(?=n't))"
    + one_of(
        *("no", "never(?: use| add| include| write)?", "without(?: any| using)?"),
        *("avoid(?: using)?", "(?:not|n't) (?:use|include|add|write|put)", "do without"),
        *("nada de", "pas de", "keine", "niente", "sin"),
    )
    + r"(?: (?:any|the))?)"
)
_ITEMS = r"(?:(?:[\w-]+(?: \w+)?|⟪\d+⟫),? (?:or |and |nor )?(?:no )?){0,3}"  # others of a list
_BOUNDARY = rf"(?= *(?:$|[,:.]| (?:in|at all|ever|or|and|nor|because|when|please|as)\b|in {REPLY}))"
_MANY = one_of("more than", "too many", "multiple", "several", "excessive", "unnecessary", "many")
_ENTIRELY = r"(?: (?:everything|only|always|all|entirely|exclusively))*(?: in)?(?: all)?"
# "write everything in all", before "caps"
_WRITING = one_of("write", "type", "reply", "respond", "answer", "speak") + _ENTIRELY
_EXCLAMATION_MARKS = one_of(
    *("exclamation (?:marks?|points?)", "signos de exclamación", "points? d'exclamation"),
    "Ausrufezeichen",
)


@dataclass(frozen=True)
class _Tone:
    """A manner of writing that is required or forbidden.

    Args:
        ways: the wordings of the rule.
        regex: the pattern of the replies that keep it.
    """

    ways: Forms
    polarity: Polarity
    regex: str


_TONES = (
    _Tone(
        forms(
            {
                "no emojis at all": rf"{_NO} (?:or )?emojis?{_BOUNDARY}",
                "never use hashtags or emojis": (
                    rf"{_NO} (?!(?:\w+ )?(?:{_MANY}|more|less)\b)(?:[\w-]+(?: [\w-]+)?"
                    rf"(?:, (?:or |and |nor )?| (?:or|and|nor) )(?:no |any )?){{1,3}}"
                    rf"emojis?{_BOUNDARY}"
                ),
            }
        ),
        "prohibition",
        rf"\A[^{EMOJI_SIGNS}]*\Z",
    ),
    _Tone(
        forms(
            {
                "at least one emoji in every reply": (
                    r"\b(?<!at most )(?<!more than )(?<!up to )(?<!max )(?<!maximum )"
                    r"(?<!maximum of )(?:at least )?"
                    r"(?:one|an|un) ?'?emojis? (?:in(?:to)?|per|in each of|to)"
                    rf" (?:{REPLY}|ogni \w+|chaque \w+|cada \w+)\b"
                    r"(?!,? (?:at (?:the )?most|max))"
                ),
                "no message without an emoji": rf"\bno {REPLY} without an emoji\b",
                "always include one emoji in each reply": (
                    rf"{LEAD}(?:include|use|add|put) (?:at least )?(?:one|an) emoji"
                    rf" (?:in|into|to) {REPLY}"
                ),
            }
        ),
        "requirement",
        rf"[{EMOJI_SIGNS}]",
    ),
    _Tone(
        forms(
            {
                "no slang or exclamation marks": (
                    rf"{_NO} (?!(?:\w+ )?{_MANY}){_ITEMS}{_EXCLAMATION_MARKS}\b"
                    r"(?! (?:excessively|too often|in every|everywhere|a lot))"
                ),
                "there is no exclamation mark in any reply": (
                    rf"\bthere is no {_EXCLAMATION_MARKS} in {REPLY}\b"
                ),
            }
        ),
        "prohibition",
        r"(?s)\A(?!.*[!！¡]).*\S",
    ),
    _Tone(
        form("never use contractions", rf"{_NO} contractions\b"),
        "prohibition",
        r"(?si)\A(?!.*\b(?:\w+n['’]t|\w+['’](?:re|ve|ll|m|d)|(?:it|that|what|there|here|he|she|who"
        r"|how|where|let)['’]s)\b).*\S",
    ),
    _Tone(
        forms(
            {
                "always write everything in lower case": (
                    rf"{LEAD}(?:{_WRITING}|use{_ENTIRELY})(?: only)? lower ?-?case(?: letters)?"
                    r"(?= only|$|[,.:])"
                ),
                "never use capital letters": (r"\bnever use (?:capital|upper-?case) letters"),
                "there are no capital letters in your replies": (
                    rf"\bno capital letters in {REPLY}\b"
                ),
                "lower case only": r"\blower ?case only\b",
            }
        ),
        "requirement",
        r"(?s)\A(?!.*\p{Lu}).*\p{Ll}",
    ),
    _Tone(
        forms(
            {
                "never ask the user any questions": (
                    r"(?:\bnever|\bnot|n't) ask(?: the \w+)?(?: any)?(?: follow-up| further)?"
                    rf" questions?(?= *(?:$|[,:.]|in {REPLY}|back|ever))"
                ),
                "no follow-up questions": r"^no (?:follow-up )?questions$",
            }
        ),
        "prohibition",
        r"(?s)\A(?!.*[?？]).*\S",
    ),
)
_EMOJI_LIMIT = forms(
    {
        "use at most two emojis per message": (
            rf"\b(?:at most|(?:no|never|not) (?:\w+ )?more than|max(?:imum)?(?: of)?|up to)"
            rf" (?P<count>{NUMBER}) emojis?"
            rf"(?= *(?:$|[,.:]| (?:per|in|in each of|for|to) (?:an? )?{REPLY}\b))"
        ),
        "1-2 emojis per message": (
            rf"{NUMBER} ?(?:-|–|to|or) ?(?P<count>{NUMBER}) emojis?(?: max(?:imum)?)? per {REPLY}"
        ),
        "one emoji per message at most": (
            rf"\b(?P<count>{NUMBER}) emojis? per {REPLY},? (?:at (?:the )?most|max(?:imum)?)"
        ),
    }
)
# what a limit of emojis may be for, other than a reply
_OF_A_PART = word_pattern(
    *"sentences? paragraphs? lines? bullets? items? headings? titles? sections? steps?".split(),
    *"conversations? chats? sessions? days? hours? types? kinds? words? topics? points?".split(),
)
# Where an emoji begins. © and → are emojis only with the sign U+FE0F after them.
_EMOJI = r"(?=\p{Emoji_Presentation}|.\uFE0F|.\u20E3)"
# the end of a question: "Really??" is one question, and "https://a.b/?q=1" is none
_QUESTION_END = r"(?:？++|\?[\"'”’»)*_]*+(?=\s|\Z))"
_ONE_QUESTION = forms(
    {
        "ask only one question per reply": (
            r"\bask(?:ing)? (?:only |just )?(?:one|a single) (?:[\w-]+ )?question"
            rf" (?:at (?:the )?most|per {REPLY}|per turn)\b"
        ),
        "ask at most one question": (
            r"\bask (?:at most|no more than|a maximum of) one (?:[\w-]+ )?question\b"
        ),
        "never ask multiple questions": (
            r"(?:\bnever|\bnot|n't|\bavoid) ask(?:ing)?(?: the \w+)?"
            r" (?:multiple|more than one|several|two or more) (?:[\w-]+ )?questions?"
            rf"(?= *(?:$|[,:.]|at (?:once|a time)|in (?:a|one|the same)(?: single)? (?:{REPLY})))"
        ),
    }
)
_KIND_OF_QUESTION = one_of(
    *"a one exactly single short relevant open-ended follow-?up thought-provoking clear".split(),
    *"engaging simple friendly brief ,".split(),
)
_QUESTION_LAST = forms(
    {
        "end every reply with a short question": (
            rf"\b(?:end|finish|close|conclude)s?(?: {REPLY})?(?: always)? with"
            rf" (?:{_KIND_OF_QUESTION} ?)*question\b"
            r"(?!,? or\b|(?:, (?:an? |the |some )?[\w-]+(?: [\w-]+)?)+,? or\b)"
        ),
        "termina siempre con una pregunta": (
            rf"\b(?:termin[ae]s?|terminez|beende|endet)(?: siempre| toujours| immer)?"
            rf"(?: (?:{REPLY}|cada \w+|chaque \w+|jede \w+))? "
            r"(?:con una pregunta|par une question|mit einer Frage)\b"
        ),
        "always ask a follow-up question at the end of each reply": (
            rf"\balways ask (?:a|one) (?:follow-?up )?question at the end of {REPLY}"
        ),
    }
)


def tone_rules(clause: BotClause) -> list[Draft]:
    """Reads rules about emojis, exclamation marks, contractions, lower case and questions."""
    drafts = []
    for tone in _TONES:
        if first_match(tone.ways, clause.text):
            spec = measure("regex", regex=tone.regex)
            drafts.append(Draft("tone", tone.polarity, spec))
    limit = first_match(_EMOJI_LIMIT, clause.text)
    if limit and not _OF_A_PART.search(clause.text):
        count = number_value(limit["count"])
        other = rf"(?:(?!{_EMOJI}).)*+"
        spec = measure("regex", regex=rf"(?s)\A{other}(?:{_EMOJI}\X{other}){{0,{count}}}\Z")
        drafts.append(Draft("tone", "requirement", spec))
    if first_match(_ONE_QUESTION, clause.text):
        spec = measure("regex", regex=rf"(?s)\A(?!(?:.*?{_QUESTION_END}){{2}})")
        drafts.append(Draft("length", "requirement", spec))
    if first_match(_QUESTION_LAST, clause.text):
        drafts.append(Draft("closing", "requirement", measure("asks_back")))
    return drafts
